//! Outages of a server, reported once for all requests that wait.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use repoformer_store::progress::Work;

/// Shortest time between reports of failures.
const REPORTED_EVERY: Duration = Duration::from_secs(60);

/// Failures of a server since its last answer, shared by all its requests.
#[derive(Debug, Default)]
pub(super) struct OutageWatch(Mutex<OutageState>);

#[derive(Debug, Default)]
struct OutageState {
    outage: Option<Outage>,
    reported: Option<Instant>,
}

#[derive(Debug)]
struct Outage {
    begun: Instant,
    is_reported: bool,
    /// Progress bar that counts the retries.
    work: Work,
}

/// Report of an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutageReport {
    /// The outage begins.
    Begins,
    /// The outage has lasted this long.
    Lasts(Duration),
}

impl OutageWatch {
    /// Counts a failure after which the request is sent again. Returns what to report, at most once a minute.
    pub(super) fn record_failure(&self, url: &str) -> Option<OutageReport> {
        self.record_failure_at(url, Instant::now())
    }

    fn record_failure_at(&self, url: &str, now: Instant) -> Option<OutageReport> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let OutageState { outage, reported } = &mut *state;
        let is_new = outage.is_none();
        let outage = outage.get_or_insert_with(|| Outage {
            begun: now,
            is_reported: false,
            work: Work::begin(format!("waiting for {url}"), "retries"),
        });
        outage.work.advance(1);
        if reported.is_some_and(|last| now < last + REPORTED_EVERY) {
            return None;
        }
        *reported = Some(now);
        outage.is_reported = true;
        Some(if is_new { OutageReport::Begins } else { OutageReport::Lasts(now - outage.begun) })
    }

    /// Ends the outage. Returns how long it lasted if it was reported.
    pub(super) fn record_answer(&self) -> Option<Duration> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let outage = state.outage.take()?;
        outage.is_reported.then(|| outage.begun.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_reported_once_a_minute_however_many_requests_wait() {
        let (watch, begin) = (OutageWatch::default(), Instant::now());
        let fails = |seconds| watch.record_failure_at("u", begin + Duration::from_secs(seconds));
        assert_eq!(watch.record_answer(), None);
        assert_eq!(fails(0), Some(OutageReport::Begins));
        assert_eq!([0, 1, 59].map(fails), [None; 3]);
        assert_eq!(fails(61), Some(OutageReport::Lasts(Duration::from_secs(61))));
        assert!(watch.record_answer().is_some());
        assert_eq!(watch.record_answer(), None);
        // Another one within the minute.
        assert_eq!(fails(70), None);
        assert_eq!(watch.record_answer(), None, "its end neither");
        assert_eq!(fails(80), None);
        assert_eq!(fails(125), Some(OutageReport::Lasts(Duration::from_secs(45))));
    }
}
