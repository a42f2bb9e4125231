//! Watches on resources of the whole system, of which a run may use only a share.

use std::io;
use std::time::{Duration, Instant};

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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

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
