//! Texts as in RepoCoder's scores: stripped lines, without blank ones.

use foldhash::HashMap;
use repoformer_core::metrics::repocoder::stripped_lines;

use super::measure::Share;

/// Stripped, non-blank lines of a text, joined by `\n`.
#[derive(Debug, Clone)]
pub(super) struct StrippedLines {
    text: String,
    /// End of each line in the text: its newline or the text's end.
    ends: Vec<usize>,
}

impl StrippedLines {
    pub(super) fn new(text: &str) -> Self {
        let (text, count) = stripped_lines(text, usize::MAX);
        let mut ends = Vec::with_capacity(count);
        ends.extend(memchr::memchr_iter(b'\n', text.as_bytes()));
        if count > 0 {
            ends.push(text.len());
        }
        Self { text, ends }
    }

    /// Returns all lines joined by `\n`.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of lines.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the start of a line in the text.
    fn start(&self, line: usize) -> usize {
        line.checked_sub(1).map_or(0, |before| self.ends[before] + 1)
    }

    /// Returns a line.
    pub(super) fn line(&self, line: usize) -> &str {
        self.run((line, line))
    }

    /// Returns the first and last line of every run that has as many lines as `target`; of the whole text if it has fewer.
    pub(super) fn runs(&self, target: &Self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let length = target.count().min(self.count());
        let runs = if length == 0 { 0 } else { self.count() - length + 1 };
        (0..runs).map(move |first| (first, first + length - 1))
    }

    /// Returns lines `first..=last` joined by `\n`.
    pub(super) fn run(&self, (first, last): (usize, usize)) -> &str {
        &self.text[self.start(first)..self.ends[last]]
    }

    /// Returns true if this text contains the lines of `target` one after another.
    pub(super) fn holds(&self, target: &Self) -> bool {
        self.runs(target).any(|run| self.run(run) == target.text)
    }

    /// Counts the lines that are lines of some fragment; repeated lines count each time.
    pub(super) fn share_among(&self, fragments: &[Self]) -> Share {
        let lines = (0..self.count()).map(|line| (self.line(line), false));
        let mut seen: HashMap<&str, bool> = lines.collect();
        for fragment in fragments {
            for line in 0..fragment.count() {
                if let Some(seen) = seen.get_mut(fragment.line(line)) {
                    *seen = true;
                }
            }
        }
        let found = (0..self.count()).filter(|&line| seen.get(self.line(line)) == Some(&true));
        Share { found: found.count(), of: self.count() }
    }
}
