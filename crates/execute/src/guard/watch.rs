//! Watches on resources of the whole system, of which a run may use only a share, and on the guard itself.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

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

    /// Returns whether the processes of a run hold more than their share, if `beside` other runs are in progress.
    ///
    /// # Errors
    /// The system does not report the numbers.
    pub(super) fn is_beyond(&self, processes: &[Process], beside: usize) -> io::Result<bool> {
        let SystemFiles { open, most } = SystemFiles::now()?;
        let share = most / 4 / (beside as u64 + 1);
        // Counting the files of the processes takes time, so check the system's number first.
        Ok(open.saturating_sub(self.before) > share && held_files(processes, share) > share)
    }
}

/// Time after which a look counts as long.
const LONG_LOOK: Duration = Duration::from_millis(100);
/// Number of successive checks, [`LONG_LOOK`] apart, at which a look waits for the kernel before it counts as stuck.
const STUCK_LOOK: u32 = 20;

/// What a [`LookWatch`] knows and does.
pub(super) struct LookChecks {
    /// Returns whether the looking thread waits for the kernel.
    pub(super) is_waiting: Box<dyn Fn() -> bool + Send>,
    /// Returns memory that the run may hold, in bytes, from values that no process can lock.
    pub(super) memory: Box<dyn Fn() -> io::Result<u64> + Send>,
    /// Bytes by which the memory may grow during a look.
    pub(super) most_growth: u64,
    /// Kills the processes of the run.
    pub(super) end: Box<dyn Fn() + Send>,
}

/// Watch on the guard's own looks at a run. A look reads lists that a process can keep locked, such as the list of its mappings, for
/// example by changing the protection of many pages. Meanwhile other processes of the run could exceed its limits unseen, so a thread of
/// its own watches their memory and ends a run that keeps the guard waiting.
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
        let (mut waited, mut before) = (0, None);
        while end.recv_timeout(LONG_LOOK) == Err(RecvTimeoutError::Timeout) {
            if !(self.is_waiting)() {
                waited = 0;
                continue;
            }
            waited += 1;
            let is_beyond = (self.memory)().map(|now| {
                let growth = now.saturating_sub(*before.get_or_insert(now));
                growth > self.most_growth
            });
            let limit = match is_beyond {
                Ok(true) => RunEnd::Memory,
                Ok(false) if waited < STUCK_LOOK => continue,
                _ => RunEnd::Unseen,
            };
            let _ = exceeded.set(limit); // an earlier one stays
            (self.end)();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use super::*;

    #[test]
    fn a_look_that_a_process_holds_up_ends_the_run() {
        // The values that the watch reads, and whether it ended the run.
        let (waits, memory, ended) = (
            Arc::<AtomicBool>::default(),
            Arc::<AtomicU64>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (in_wait, in_memory, in_end) = (waits.clone(), memory.clone(), ended.clone());
        let watch = LookWatch::start(LookChecks {
            is_waiting: Box::new(move || in_wait.load(Relaxed)),
            memory: Box::new(move || Ok(in_memory.load(Relaxed))),
            most_growth: 100,
            end: Box::new(move || in_end.store(true, Relaxed)),
        });
        let watch = watch.unwrap();
        assert_eq!(watch.look(|| None), None);
        assert_eq!(watch.look(|| Some(RunEnd::Cpu)), Some(RunEnd::Cpu));
        let long = || {
            thread::sleep(LONG_LOOK * 4);
            memory.fetch_add(1000, Relaxed);
            thread::sleep(LONG_LOOK * 4);
            None
        };
        assert_eq!(watch.look(long), None, "a slow look that does not wait");
        waits.store(true, Relaxed);
        let until_the_end = || {
            while !ended.load(Relaxed) {
                thread::sleep(LONG_LOOK / 10);
            }
            None
        };
        assert_eq!(watch.look(|| long().or_else(until_the_end)), Some(RunEnd::Memory));
        assert_eq!(watch.look(|| None), Some(RunEnd::Memory), "from now on");
    }

    #[test]
    fn a_look_that_never_ends_cannot_be_seen() {
        let (ended, ends) = mpsc::channel();
        let watch = LookWatch::start(LookChecks {
            is_waiting: Box::new(|| true),
            memory: Box::new(|| Ok(0)),
            most_growth: 0,
            end: Box::new(move || ended.send(()).unwrap_or_default()),
        });
        let begin = Instant::now();
        let look = || {
            ends.recv().unwrap();
            None
        };
        assert_eq!(watch.unwrap().look(look), Some(RunEnd::Unseen));
        assert!(begin.elapsed() >= LONG_LOOK * STUCK_LOOK);
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
