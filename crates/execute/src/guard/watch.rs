//! Watches on resources of the whole system, of which a run may use only a share, and on the guard itself.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use foldhash::HashMap;

use super::order::RunEnd;
use super::processes::Process;
use super::usage::{SystemFiles, held_files};

/// Time for which the kernel's memory must exceed its limit: memory that others release is freed a little later.
const CONFIRMED: Duration = Duration::from_millis(200);

/// Watch on memory of the whole system: the kernel's own memory, some kinds of which it charges to nobody, or the memory of all processes.
pub(super) struct MemoryWatch {
    /// Bytes before the start.
    before: u64,
    /// Time since which the limit has been exceeded.
    beyond_since: Option<Instant>,
}

impl MemoryWatch {
    pub(super) fn new(before: u64) -> Self {
        Self { before, beyond_since: None }
    }

    /// Returns the number of bytes by which the memory has grown to `now`.
    pub(super) fn growth(&self, now: u64) -> u64 {
        now.saturating_sub(self.before)
    }

    /// Returns whether the memory has grown to `now` bytes because of the run. Other programs make it grow too, so the limit is `most` plus
    /// `room`; if the run's processes hold more than `most` bytes of `signs`, the limit is only `most`. Growth that ends soon does not
    /// count.
    pub(super) fn is_beyond(
        &mut self,
        now: u64,
        most: u64,
        room: u64,
        signs: impl FnOnce() -> u64,
    ) -> bool {
        let growth = self.growth(now);
        if growth <= most || (growth <= most.saturating_add(room) && signs() <= most) {
            self.beyond_since = None;
            return false;
        }
        self.beyond_since.get_or_insert_with(Instant::now).elapsed() >= CONFIRMED
    }
}

/// Watch on the files that the whole system has open: all runs together may hold a quarter of the system's maximum.
pub(super) struct FileWatch {
    /// Number of open files before the start.
    before: u64,
}

impl FileWatch {
    pub(super) fn new() -> Self {
        Self { before: SystemFiles::now().map_or(0, |files| files.open) }
    }

    /// Returns the limit that the processes of a run have exceeded, if they hold more than their share, or may do so because one of them
    /// `ends_slowly`.
    ///
    /// # Errors
    /// The system does not report the numbers.
    pub(super) fn look(
        &self,
        processes: &[Process],
        beside: usize,
        ends_slowly: bool,
    ) -> io::Result<Option<RunEnd>> {
        let system = SystemFiles::now()?;
        let share = system.share(beside);
        // Counting the files of the processes takes time, so check the system's number first.
        if system.open.saturating_sub(self.before) <= share {
            return Ok(None);
        }
        if held_files(processes, share) > share {
            return Ok(Some(RunEnd::Files));
        }
        Ok(ends_slowly.then_some(RunEnd::Unseen))
    }
}

/// Resources that a run may hold, from values that no process can lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeldResources {
    /// Memory in bytes.
    pub(super) memory: u64,
    /// Number of files that the whole system has open.
    pub(super) files: u64,
}

/// Time after which a look counts as long.
const LONG_LOOK: Duration = Duration::from_millis(100);
/// Number of checks, [`LONG_LOOK`] apart, at which a look waits for the kernel before it counts as stuck.
const STUCK_LOOK: u32 = 20;

/// Values that a [`LookWatch`] checks, and the way to end a run.
pub(super) struct LookChecks {
    /// Returns whether the looking thread waits for the kernel.
    pub(super) is_waiting: Box<dyn Fn() -> bool + Send>,
    /// Returns the processor time that the looking thread has used.
    pub(super) time: Box<dyn Fn() -> Duration + Send>,
    /// Most processor time of a look.
    pub(super) most_time: Duration,
    /// Returns the resources that the run may hold.
    pub(super) held: Box<dyn Fn() -> io::Result<HeldResources> + Send>,
    /// Resources that may be added during a look.
    pub(super) most_growth: HeldResources,
    /// Kills the processes of the run.
    pub(super) end: Box<dyn Fn() + Send>,
}

/// Watch on the guard's own looks at a run. A look reads lists that a process can keep locked, such as the list of its mappings while the
/// protection of many pages changes, or can make long. Meanwhile other processes of the run could exceed its limits unseen, so a thread of
/// its own watches what they hold, and ends a run that keeps the guard busy.
#[derive(Clone)]
pub(super) struct LookWatch {
    /// Receives a message at the start and the end of each look.
    borders: mpsc::Sender<()>,
    limit: Arc<OnceLock<RunEnd>>,
}

impl LookWatch {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system starts no thread.
    pub(super) fn start(checks: LookChecks) -> io::Result<Self> {
        let (borders, received) = mpsc::channel();
        let limit = Arc::new(OnceLock::new());
        let found = Arc::clone(&limit);
        thread::Builder::new().spawn(move || {
            while received.recv().is_ok() {
                checks.watch_look(&received, &found);
            }
        })?;
        Ok(Self { borders, limit })
    }

    /// Looks at a run. A limit that the watch found exceeded counts more than the result of the look.
    pub(super) fn look(&self, look: impl FnOnce() -> Option<RunEnd>) -> Option<RunEnd> {
        // The thread only ends after this value.
        let _ = self.borders.send(());
        let found = look();
        let _ = self.borders.send(());
        self.limit.get().copied().or(found)
    }
}

impl LookChecks {
    /// Waits for the end of a look. Records the first limit that the run exceeds meanwhile.
    fn watch_look(&self, end: &mpsc::Receiver<()>, exceeded: &OnceLock<RunEnd>) {
        let (mut waited, mut begin) = (0, None);
        while end.recv_timeout(LONG_LOOK) == Err(RecvTimeoutError::Timeout) {
            waited += u32::from((self.is_waiting)());
            let time = (self.time)();
            let limit = match (self.held)() {
                Ok(now) => {
                    let (before, begun) = *begin.get_or_insert((now, time));
                    let most = self.most_growth;
                    if now.memory.saturating_sub(before.memory) > most.memory {
                        Some(RunEnd::Memory)
                    } else {
                        let is_stuck = waited >= STUCK_LOOK || time - begun > self.most_time;
                        let are_many = now.files.saturating_sub(before.files) > most.files;
                        (is_stuck || are_many).then_some(RunEnd::Unseen)
                    }
                }
                Err(_) => Some(RunEnd::Unseen),
            };
            if let Some(limit) = limit {
                let _ = exceeded.set(limit); // an earlier one stays
                (self.end)();
            }
        }
    }
}

/// Watch on processes that end slowly. A process that ends shows neither memory nor files, but holds both until the kernel has freed them,
/// which takes seconds if the process has a low priority and others are busy.
#[derive(Debug, Default)]
pub(super) struct EndingWatch(HashMap<i32, EndingProcess>);

#[derive(Debug, Default)]
struct EndingProcess {
    /// The process's own memory when it last showed any, in bytes.
    memory: u64,
    ends_since: Option<Instant>,
}

impl EndingWatch {
    /// Notes which processes are ending at this time.
    pub(super) fn note(&mut self, processes: &[Process], now: Instant) {
        self.note_all(
            processes
                .iter()
                .filter(|process| process.is_alive())
                .map(|process| (process.pid, process.is_ending())),
            now,
        );
    }

    fn note_all(&mut self, processes: impl Iterator<Item = (i32, bool)>, now: Instant) {
        let mut before = std::mem::take(&mut self.0);
        self.0 = processes
            .map(|(pid, is_ending)| {
                let EndingProcess { memory, ends_since } = before.remove(&pid).unwrap_or_default();
                let ends_since = is_ending.then(|| ends_since.unwrap_or(now));
                (pid, EndingProcess { memory, ends_since })
            })
            .collect();
    }

    /// Notes the processes' own memory; processes that are ending keep what they had.
    pub(super) fn note_memory(&mut self, by_process: &[(i32, u64)]) {
        for (pid, memory) in by_process {
            if let Some(process) =
                self.0.get_mut(pid).filter(|process| process.ends_since.is_none())
            {
                process.memory = *memory;
            }
        }
    }

    /// Returns the memory that processes had which have been ending for some time; `None` without such a process.
    pub(super) fn memory(&self, now: Instant) -> Option<u64> {
        let is_slow = |process: &&EndingProcess| {
            process.ends_since.is_some_and(|since| now.duration_since(since) >= CONFIRMED)
        };
        self.0.values().filter(is_slow).map(|process| process.memory).reduce(u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use super::*;

    /// Values that checks of a look read, and whether they ended the run.
    #[derive(Default)]
    struct Values {
        waits: AtomicBool,
        milliseconds: AtomicU64,
        memory: AtomicU64,
        files: AtomicU64,
        has_ended: AtomicBool,
    }

    impl Values {
        /// Starts a watch with a bound of one second, 100 bytes and 10 files.
        fn watch(self: &Arc<Self>) -> LookWatch {
            let [waits, time, held, end] = std::array::from_fn(|_| Arc::clone(self));
            let checks = LookChecks {
                is_waiting: Box::new(move || waits.waits.load(Relaxed)),
                time: Box::new(move || Duration::from_millis(time.milliseconds.load(Relaxed))),
                most_time: Duration::from_secs(1),
                held: Box::new(move || {
                    let (memory, files) = (held.memory.load(Relaxed), held.files.load(Relaxed));
                    Ok(HeldResources { memory, files })
                }),
                most_growth: HeldResources { memory: 100, files: 10 },
                end: Box::new(move || end.has_ended.store(true, Relaxed)),
            };
            LookWatch::start(checks).unwrap()
        }

        /// Looks for some time, and longer if the run is to be ended.
        fn look(&self, change: impl FnOnce(&Self), is_ended: bool) -> Option<RunEnd> {
            thread::sleep(LONG_LOOK * 3);
            change(self);
            thread::sleep(LONG_LOOK * 3);
            while is_ended && !self.has_ended.load(Relaxed) {
                thread::sleep(LONG_LOOK / 10);
            }
            None
        }
    }

    #[test]
    fn a_look_that_a_process_holds_up_ends_the_run() {
        let values = Arc::<Values>::default();
        let watch = values.watch();
        assert_eq!(watch.look(|| None), None);
        assert_eq!(watch.look(|| Some(RunEnd::Cpu)), Some(RunEnd::Cpu));
        let slow = |values: &Values| {
            values.memory.store(100, Relaxed);
            values.files.store(10, Relaxed);
            values.milliseconds.store(1000, Relaxed);
            values.waits.store(true, Relaxed);
        };
        assert_eq!(watch.look(|| values.look(slow, false)), None, "a slow look");
        let memory = |values: &Values| values.memory.store(1000, Relaxed);
        assert_eq!(watch.look(|| values.look(memory, true)), Some(RunEnd::Memory));
        assert_eq!(watch.look(|| None), Some(RunEnd::Memory), "from now on");
        type Change = fn(&Values);
        let changes: [Change; 3] = [
            |values| values.files.store(11, Relaxed),
            |values| values.milliseconds.store(1001, Relaxed),
            |values| values.waits.store(true, Relaxed),
        ];
        for change in changes {
            let values = Arc::<Values>::default();
            let watch = values.watch();
            assert_eq!(watch.look(|| values.look(change, true)), Some(RunEnd::Unseen));
        }
    }

    #[test]
    fn memory_of_processes_that_end_slowly_is_remembered() {
        let (mut ending, begin) = (EndingWatch::default(), Instant::now());
        let at = |look: u32| begin + CONFIRMED / 2 * look;
        ending.note_all([(1, false), (2, false), (3, true)].into_iter(), at(0));
        ending.note_memory(&[(1, 10), (2, 20), (3, 0)]);
        assert_eq!(ending.memory(at(1)), None);
        assert_eq!(ending.memory(at(2)), Some(0), "one whose memory was never seen");
        ending.note_all([(1, true), (2, true), (4, false)].into_iter(), at(3));
        ending.note_memory(&[(1, 0), (2, 0), (4, 40)]);
        assert_eq!(ending.memory(at(4)), None, "only for a moment");
        assert_eq!(ending.memory(at(5)), Some(30));
        ending.note_all([(2, true), (4, false)].into_iter(), at(6));
        assert_eq!(ending.memory(at(6)), Some(20), "the other has ended");
    }

    #[test]
    fn memory_of_the_kernel_that_nobody_counts_has_a_bound() {
        let (most, room) = (64 << 20, 256 << 20);
        let mut kernel = MemoryWatch::new(1000 << 20);
        let mut looks = |mega: u64, lists: u64| {
            [0, 1].map(|_| {
                let is_beyond = kernel.is_beyond(mega << 20, most, room, || lists << 20);
                thread::sleep(CONFIRMED);
                is_beyond
            })
        };
        assert_eq!(looks(1000 + 320, 64), [false, false], "the bound");
        assert_eq!(looks(1000 + 321, 0), [false, true], "more, for some time");
        assert_eq!(looks(900, 1000), [false, false], "less than before");
        assert_eq!(looks(1000 + 65, 65), [false, true], "of lists");
        assert_eq!(looks(1000 + 64, 65), [false, false]);
    }
}
