//! Progress of long work.
//!
//! Work is registered while it runs and counts its steps; a count costs one addition. A caller that wants to show progress asks
//! for the [`running`] work; the library displays nothing.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

static RUNNING: Mutex<Vec<Arc<Progress>>> = Mutex::new(Vec::new());

fn lock_registered() -> MutexGuard<'static, Vec<Arc<Progress>>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the running work of this process, in the order in which it began.
pub fn running() -> Vec<Arc<Progress>> {
    lock_registered().clone()
}

/// Progress of one piece of work.
#[derive(Debug)]
pub struct Progress {
    /// Name of the work: `search line`.
    pub label: String,
    /// Unit of its steps, in the plural: `queries`, or `bytes` for a file.
    pub unit: &'static str,
    /// Time when the work began.
    pub begun: Instant,
    total: AtomicU64,
    done: AtomicU64,
    kept: AtomicU64,
}

impl Progress {
    /// Returns the total number of steps, if known.
    pub fn total(&self) -> Option<u64> {
        let total = self.total.load(Relaxed);
        (total > 0).then(|| total.max(self.steps_done()))
    }

    /// Returns the number of steps done, including the steps of an earlier run.
    pub fn steps_done(&self) -> u64 {
        self.done.load(Relaxed) + self.kept.load(Relaxed)
    }

    /// Returns the steps per second since the beginning; steps of an earlier run do not count.
    pub fn rate(&self) -> f64 {
        self.done.load(Relaxed) as f64 / self.begun.elapsed().as_secs_f64().max(1e-9)
    }

    /// Returns the number of seconds left at the current rate.
    pub fn seconds_left(&self) -> Option<f64> {
        let (total, rate) = (self.total()?, self.rate());
        (rate > 0.0).then(|| total.saturating_sub(self.steps_done()) as f64 / rate)
    }
}

/// Work in progress; it ends when this value is dropped.
///
/// ```
/// use repoformer_store::progress::{Work, running};
///
/// let work = Work::new("search line", "queries", 30);
/// work.advance_kept(10); // answered in an earlier run
/// work.advance(5);
/// let shown = running().pop().unwrap();
/// assert_eq!((shown.steps_done(), shown.total()), (15, Some(30)));
/// drop(work);
/// assert!(running().is_empty());
/// ```
#[derive(Debug)]
pub struct Work(Arc<Progress>);

impl Work {
    /// Begins work on an unknown number of steps.
    pub fn begin(label: impl Into<String>, unit: &'static str) -> Self {
        Self::new(label, unit, 0)
    }

    /// Begins work on this many steps.
    pub fn new(label: impl Into<String>, unit: &'static str, steps: usize) -> Self {
        let progress = Arc::new(Progress {
            label: label.into(),
            unit,
            begun: Instant::now(),
            total: AtomicU64::new(steps as u64),
            done: AtomicU64::new(0),
            kept: AtomicU64::new(0),
        });
        lock_registered().push(Arc::clone(&progress));
        Self(progress)
    }

    /// Adds steps to the total.
    pub fn more(&self, steps: usize) {
        self.0.total.fetch_add(steps as u64, Relaxed);
    }

    /// Counts steps that were done.
    pub fn advance(&self, steps: usize) {
        self.0.done.fetch_add(steps as u64, Relaxed);
    }

    /// Counts steps that an earlier run did.
    pub fn advance_kept(&self, steps: usize) {
        self.0.kept.fetch_add(steps as u64, Relaxed);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        lock_registered().retain(|progress| !Arc::ptr_eq(progress, &self.0));
    }
}

/// Reader that counts its bytes as steps of work.
pub(super) struct CountedReader<R> {
    input: R,
    work: Work,
}

impl<R> CountedReader<R> {
    pub(super) fn new(input: R, work: Work) -> Self {
        Self { input, work }
    }
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // `fill_buf` does not retry after an interruption, so this loop does.
        let read = loop {
            match self.input.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.work.advance(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// If the 29 kept answers counted, the rate would be thousands per second.
    #[test]
    fn kept_answers_do_not_count_for_the_rate() {
        let work = Work::new("complete", "prompts", 60);
        work.advance_kept(29);
        std::thread::sleep(Duration::from_millis(50));
        work.advance(1);
        assert_eq!((work.0.steps_done(), work.0.total()), (30, Some(60)));
        assert!((1.0..=20.0).contains(&work.0.rate()), "{}", work.0.rate());
        let left = work.0.seconds_left().unwrap();
        assert!(left >= 1.5, "30 steps at 20 a second at most: {left}");
    }

    #[test]
    fn nothing_is_left_of_an_unknown_number_or_before_the_first_step() {
        let unknown = Work::begin("read", "bytes");
        unknown.advance(10);
        assert_eq!((unknown.0.total(), unknown.0.seconds_left()), (None, None));
        let none_done = Work::new("complete", "prompts", 2);
        assert_eq!(none_done.0.seconds_left(), None);
        none_done.more(1);
        none_done.advance(4); // more than announced
        assert_eq!((none_done.0.total(), none_done.0.seconds_left()), (Some(4), Some(0.0)));
    }

    #[test]
    fn work_is_listed_while_it_lasts() {
        let is_listed = |label: &str| running().iter().any(|progress| progress.label == label);
        let outer = Work::begin("the outer of two", "steps");
        {
            let _inner = Work::begin("the inner of two", "steps");
            assert!(is_listed("the outer of two") && is_listed("the inner of two"));
        }
        assert!(is_listed("the outer of two") && !is_listed("the inner of two"));
        drop(outer);
        assert!(!is_listed("the outer of two"));
    }
}
