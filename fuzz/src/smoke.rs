//! The corpus of the fuzzer as a test of its own: `cargo test --test fuzz` reads each file once. With `-- SECONDS` it also reads
//! random changes of them for so long a group, two groups at a time, as CI does: without coverage, but with nothing to compile.
//!
//! A group runs in a process of its own, which fails on a panic, and on more time or memory than an input's length allows.

#![allow(clippy::print_stdout, clippy::print_stderr)] // a program

mod budget;
mod readers;

use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use budget::INPUT;
use readers::{GROUPS, Group};

/// Processor seconds after which an input is taken for one that never ends.
const LONGEST: f64 = 60.0;
/// Name of the variable with the group of a process.
const VARIABLE: &str = "READERS";

fn main() -> ExitCode {
    // A filter of tests, such as cargo passes on, chooses none of ours.
    let seconds = std::env::args().skip(1).find_map(|argument| argument.parse::<u64>().ok());
    if let Ok(name) = std::env::var(VARIABLE) {
        let group = GROUPS.iter().find(|group| group.name == name);
        run(group.expect("the name of a group"), seconds.unwrap_or(0));
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for pair in GROUPS.chunks(2) {
        let children: Vec<(&Group, Child)> =
            pair.iter().map(|group| (group, start(group))).collect();
        for (group, mut child) in children {
            let folder = readers::folder_of(child.id());
            if child.wait().is_ok_and(|status| status.success()) {
                let _ = std::fs::remove_dir_all(folder);
            } else {
                eprintln!("{}: failed; its input is {}", group.name, folder.join(INPUT).display());
                failed += 1;
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn start(group: &Group) -> Child {
    let program = std::env::current_exe().expect("the path of this program");
    let arguments = std::env::args_os().skip(1);
    let child = Command::new(program).args(arguments).env(VARIABLE, group.name).spawn();
    child.expect("this program starts again")
}

fn run(group: &'static Group, seconds: u64) {
    let seeds = seeds(group.name);
    assert!(!seeds.is_empty(), "{} has a corpus", group.name);
    readers::end_at_panics();
    std::thread::spawn(watch);
    let begin = Instant::now();
    let mut count = 0;
    for seed in &seeds {
        read(group, seed);
        count += 1;
    }
    let longest = group.longest.min(1 << 13);
    let small: Vec<&Vec<u8>> = seeds.iter().filter(|seed| seed.len() <= longest).collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    while begin.elapsed() < Duration::from_secs(seconds) {
        read(group, &random.changed(&small));
        count += 1;
    }
    let (seconds, costliest) = (begin.elapsed().as_secs_f64(), budget::COSTLIEST.load(Relaxed));
    println!("{}: {count} inputs in {seconds:.1} s, at most {costliest} ns a byte", group.name);
}

fn read(group: &Group, bytes: &[u8]) {
    INPUTS.fetch_add(1, Relaxed);
    budget::read(group, bytes);
}

/// Inputs begun so far.
static INPUTS: AtomicU64 = AtomicU64::new(0);

/// Ends the process where one input does not end.
fn watch() {
    let (mut input, mut begin, mut used) = (0, Instant::now(), 0.0);
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = processor_seconds();
        if INPUTS.load(Relaxed) != input {
            (input, begin, used) = (INPUTS.load(Relaxed), Instant::now(), now);
        } else if now - used > LONGEST || begin.elapsed() > Duration::from_secs(300) {
            eprintln!(
                "one input took {:.1} s of processor time, {:.1} s in all",
                now - used,
                begin.elapsed().as_secs_f64()
            );
            std::process::abort();
        }
    }
}

/// Processor time of this process, from the kernel's hundredths of seconds.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Contents of a group's files: its own, and those in the folders that `fuzz/seeds` has for it.
fn seeds(group: &str) -> Vec<Vec<u8>> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let others = include_str!("../seeds").lines().filter_map(|line| line.split_once(' '));
    let others = others.filter(|(of, _)| *of == group).map(|(_, folder)| project.join(folder));
    let folders: Vec<_> = others.chain([project.join("fuzz/corpus").join(group)]).collect();
    let entries =
        folders.iter().flat_map(|folder| walkdir::WalkDir::new(folder).sort_by_file_name());
    let files = entries.map(|entry| entry.expect("a file of the corpus"));
    let files = files.filter(|entry| entry.file_type().is_file());
    files.map(|entry| std::fs::read(entry.path()).expect("a file of the corpus")).collect()
}

/// Random numbers (xorshift), the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    /// A seed with a few changes: bits, bytes, numbers, parts removed, repeated, or taken from another seed.
    fn changed(&mut self, seeds: &[&Vec<u8>]) -> Vec<u8> {
        const WORDS: [&[u8]; 12] = [
            b"0", b"-1", b"18446744073709551615", b"1e999", b"null", b"[", b"{}", b"\"\"", b"\n",
            b"\0", b"\xff", b"\xe2\x80\xa8",
        ];
        let mut bytes = seeds[self.below(seeds.len())].clone();
        for _ in 0..1 + self.below(4) {
            let from = self.below(bytes.len() + 1);
            let to = (from + self.below(32)).min(bytes.len());
            match self.below(5) {
                0 if from < bytes.len() => bytes[from] ^= 1 << self.below(8),
                1 => drop(bytes.drain(from..to)),
                2 => bytes
                    .splice(from..to, WORDS[self.below(WORDS.len())].iter().copied())
                    .for_each(drop),
                3 => {
                    let part = bytes[from..to].to_vec();
                    bytes.splice(from..from, part).for_each(drop);
                }
                _ => {
                    let other = seeds[self.below(seeds.len())];
                    let begin = self.below(other.len() + 1);
                    let part = &other[begin..(begin + self.below(256)).min(other.len())];
                    bytes.splice(from..to, part.iter().copied()).for_each(drop);
                }
            }
        }
        bytes
    }
}
