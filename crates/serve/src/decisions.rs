//! The latest decisions, for the web page and `/debug/last`.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use repoformer_core::prompt::shown::ShownFragment;
use repoformer_models::server::StreamEnd;
use serde::Serialize;

use crate::live::LiveRepository;

/// Number of decisions that are kept.
pub(crate) const KEPT: usize = 100;

/// Maximum number of bytes of a dropped text that are kept.
const LONGEST_DROPPED: usize = 2 << 10;

/// Shortens a dropped text for decisions and messages: a long one is cut, and its length is added.
pub(crate) fn shorten_dropped(text: &str) -> String {
    if text.len() > LONGEST_DROPPED {
        let shown = &text[..text.floor_char_boundary(LONGEST_DROPPED)];
        format!("{shown}… ({} bytes)", text.len())
    } else {
        text.to_owned()
    }
}

/// Decision about a request, and its outcome. A request that failed or was cancelled before its decision has only the first fields.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct DecisionRecord {
    pub(crate) number: u64,
    /// Seconds since 1970.
    pub(crate) time: f64,
    pub(crate) protocol: &'static str,
    /// Path of the file, if known.
    pub(crate) file: Option<String>,
    /// Line of the cursor, counted from 1.
    pub(crate) line: Option<usize>,
    /// Policy with its threshold.
    pub(crate) policy: String,
    pub(crate) score: Option<f64>,
    pub(crate) threshold: f64,
    pub(crate) retrieved: Option<bool>,
    pub(crate) fragments: Vec<FragmentRecord>,
    pub(crate) ms: Times,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dropped: Option<String>,
    pub(crate) outcome: &'static str,
    pub(crate) tokens: TokenCounts,
    /// Fragments that the prompt showed, until their line numbers have been looked up.
    #[serde(skip)]
    pub(crate) shown: Vec<ShownFragment>,
}

/// Fragment that a prompt showed.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FragmentRecord {
    path: String,
    /// First and last line in the saved file, counted from 1.
    first_line: Option<usize>,
    last_line: Option<usize>,
    score: Option<f64>,
}

/// Milliseconds of a request.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Times {
    /// Times of preparing the prompt.
    #[serde(flatten)]
    pub(crate) prompt: Option<PromptTimes>,
    /// Milliseconds from the request to the first text.
    pub(crate) first_token: Option<f64>,
    /// Milliseconds from the request to its end.
    pub(crate) whole: f64,
}

/// Milliseconds of a prompt's steps.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct PromptTimes {
    pub(crate) locate: f64,
    pub(crate) index: f64,
    pub(crate) search: f64,
    pub(crate) decide: f64,
    pub(crate) prompt: f64,
}

/// Token counts, if the model's server reports them.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct TokenCounts {
    pub(crate) prompt: Option<u64>,
    pub(crate) cached: Option<u64>,
    pub(crate) written: Option<u64>,
}

impl TokenCounts {
    pub(crate) fn new(end: &StreamEnd) -> Self {
        Self {
            prompt: end.prompt_tokens(),
            cached: end.cached_tokens(),
            written: end.written_tokens(),
        }
    }
}

impl DecisionRecord {
    /// Creates the record of a request that begins now.
    pub(crate) fn new(number: u64, protocol: &'static str) -> Self {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { number, protocol, time: time.as_secs_f64(), ..Self::default() }
    }

    /// Sets the fragments that the prompt shows.
    pub(crate) fn show(&mut self, fragments: &[ShownFragment]) {
        let record = |fragment: &ShownFragment| FragmentRecord {
            path: fragment.path.to_string(),
            first_line: None,
            last_line: None,
            score: fragment.score,
        };
        self.fragments = fragments.iter().map(record).collect();
        self.shown = fragments.to_vec();
    }

    /// Looks up the fragments' lines in the saved files; returns whether a lookup was needed.
    fn find_lines(&mut self, live: &LiveRepository) -> bool {
        let shown = std::mem::take(&mut self.shown);
        for (fragment, lines) in self.fragments.iter_mut().zip(live.lines_of(&shown)) {
            let [first, last] = lines.map_or([None; 2], |lines| lines.map(|line| Some(line + 1)));
            (fragment.first_line, fragment.last_line) = (first, last);
        }
        !shown.is_empty()
    }
}

/// The latest decisions, newest first.
#[derive(Debug, Default)]
pub(crate) struct Decisions(Mutex<VecDeque<DecisionRecord>>);

impl Decisions {
    fn lock(&self) -> MutexGuard<'_, VecDeque<DecisionRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn keep(&self, record: DecisionRecord) {
        let mut kept = self.lock();
        kept.push_front(record);
        kept.truncate(KEPT);
    }

    /// Returns at most `most` decisions with numbers above `number`. Reads the files of the fragments that were shown, to look up their
    /// lines.
    pub(crate) fn after(
        &self,
        number: u64,
        most: usize,
        live: &LiveRepository,
    ) -> Vec<DecisionRecord> {
        let is_wanted = |record: &&DecisionRecord| record.number > number;
        let mut found: Vec<DecisionRecord> =
            self.lock().iter().filter(is_wanted).take(most).cloned().collect();
        let mut is_new = false;
        for record in &mut found {
            is_new |= record.find_lines(live);
        }
        if is_new {
            // Store the lines, so that the files are not read again.
            for kept in self.lock().iter_mut() {
                if let Some(found) = found.iter().find(|found| found.number == kept.number) {
                    kept.clone_from(found);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_dropped_text_is_kept_in_part() {
        assert_eq!(shorten_dropped("é"), "é");
        let long = "é".repeat(1 << 20);
        let kept = shorten_dropped(&long);
        assert!(kept.starts_with("éé") && kept.ends_with("é… (2097152 bytes)"), "{kept}");
        assert!(kept.capacity() < 4 * LONGEST_DROPPED, "no part of the long text is kept");
    }
}
