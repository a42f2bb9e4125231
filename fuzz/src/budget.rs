//! Bounds on the memory and time of reading one input, in proportion to its length.
//!
//! Quadratic work seldom shows in the short inputs that a fuzzer prefers. So some inputs are also read stretched: a part is repeated up to the group's longest
//! input, and an eighth as often. Reading the longer one may take little more than eight times the work.

// An allocator is unsafe by its interface; this one counts and hands on.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use cpu_time::ProcessTime;

use crate::readers::{FOLDER, Group};

/// Most bytes of memory that readers may have at once, for any input and for each of its bytes.
const MEMORY: (usize, usize) = (192 << 20, 1 << 12);
/// Bytes by which an input counts as longer: what is read along with each, such as the tasks that predictions belong to.
const SPARE: usize = 1 << 13;
/// One in so many inputs is read stretched.
const ONE_IN: u64 = 128;
/// How much more often the longer of two stretched inputs has the repeated part.
const STRETCH: usize = 8;
/// Most times the work of the shorter one that the longer one may take. Sorting, and memory that no longer fits into the processor,
/// take a little more than their share.
const GROWTH: u32 = 14;
/// Processor time in which no growth is seen.
const UNSEEN: Duration = Duration::from_millis(40);

/// Reads an input, and some inputs stretched too. The process ends where that takes more than the length allows.
pub(crate) fn read(group: &Group, bytes: &[u8]) {
    time(group, bytes);
    let Some([short, long]) = stretched(bytes, group.longest) else { return };
    let times = || (time(group, &short), time(group, &long));
    // Other programs take the processor's caches away: one good time of four is enough.
    let mut tries = std::iter::repeat_with(times).take(4);
    if tries.all(|(short, long)| long > short * GROWTH + UNSEEN) {
        let (short, long) = times();
        fail(&format!("{STRETCH} times the input took {long:?} instead of {short:?}"));
    }
}

/// Reads an input and returns the processor time. A copy of the input is kept in the process's folder, for the report of a failure.
fn time(group: &Group, bytes: &[u8]) -> Duration {
    std::fs::write(FOLDER.join(INPUT), bytes).expect("a file in memory can be written");
    let most = |(any, each): (usize, usize)| any + each * bytes.len();
    BOUND.store(USED.load(Relaxed).saturating_add(most(MEMORY)), Relaxed);
    let resident = (bytes.len() >= SPARE).then(Resident::begin);
    let measure = || {
        let start = ProcessTime::now();
        (group.read)(bytes);
        start.elapsed()
    };
    let mut took = measure();
    BOUND.store(usize::MAX, Relaxed);
    if resident.is_some_and(|resident| resident.grown() > most(MEMORY)) {
        fail("the memory of the process grew by more than the input's length allows");
    }
    let length = (bytes.len() + SPARE) as u32;
    for _ in 0..3 {
        if took > group.time * length {
            took = took.min(measure());
        }
    }
    if took > group.time * length {
        fail(&format!("{} bytes took {took:?}", bytes.len()));
    }
    COSTLIEST.fetch_max((took / length).as_nanos() as u64, Relaxed);
    took
}

/// Greatest time so far for each byte, in nanoseconds.
pub(crate) static COSTLIEST: AtomicU64 = AtomicU64::new(0);

/// Name of the copy of the input that is being read, in the folder of the process.
pub(crate) const INPUT: &str = "read";

fn fail(message: &str) -> ! {
    eprintln!("panicked at a budget: {message}; the input is {}", FOLDER.join(INPUT).display());
    std::process::abort();
}

/// The input with a part of it repeated up to a length, and an eighth as often; for one in [`ONE_IN`] inputs.
fn stretched(bytes: &[u8], longest: usize) -> Option<[Vec<u8>; 2]> {
    let mut random = BuildHasherDefault::<DefaultHasher>::default().hash_one(bytes);
    let mut below = |end: usize| {
        let chosen = random % end as u64;
        random /= end as u64;
        chosen as usize
    };
    if bytes.is_empty() || below(ONE_IN as usize) > 0 {
        return None;
    }
    let from = below(bytes.len());
    let to = from + 1 + below(24.min(bytes.len() - from));
    let most = longest.saturating_sub(bytes.len()) / (to - from);
    let stretch =
        |times: usize| [&bytes[..from], &bytes[from..to].repeat(times + 1), &bytes[to..]].concat();
    Some([most / STRETCH, most].map(stretch))
}

/// Memory of the process, that of parsers in C included.
struct Resident(usize);

impl Resident {
    fn begin() -> Self {
        let _ = std::fs::write("/proc/self/clear_refs", "5"); // its greatest value is from here on
        Self(Self::of("VmRSS:"))
    }

    /// Bytes by which it grew at most.
    fn grown(&self) -> usize {
        Self::of("VmHWM:").saturating_sub(self.0)
    }

    fn of(name: &str) -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        kilobytes.unwrap_or(0) << 10
    }
}

static USED: AtomicUsize = AtomicUsize::new(0);
static BOUND: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn take(bytes: usize) {
    let used = USED.fetch_add(bytes, Relaxed).saturating_add(bytes);
    let bound = BOUND.load(Relaxed);
    if used > bound {
        BOUND.store(usize::MAX, Relaxed);
        panic!("one input took more memory than its length allows");
    }
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        take(size);
        USED.fetch_sub(layout.size(), Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}
