//! Texts as RepoCoder's scores see them: stripped lines without the blank ones.

use rustc_hash::FxHashMap;

use super::measure::Share;
use crate::evaluate::metrics::lines::stripped_lines;

/// A text's stripped, non-blank lines, joined by `\n`.
#[derive(Debug, Clone)]
pub(super) struct Stripped {
    text: String,
    /// Where each line ends in the text: its newline or the text's end.
    ends: Vec<usize>,
}

impl Stripped {
    pub(super) fn new(text: &str) -> Self {
        let (text, count) = stripped_lines(text, usize::MAX);
        let mut ends = Vec::with_capacity(count);
        ends.extend(memchr::memchr_iter(b'\n', text.as_bytes()));
        if count > 0 {
            ends.push(text.len());
        }
        Self { text, ends }
    }

    /// All lines joined by `\n`.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Number of lines.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Where a line starts in the text.
    pub(super) fn start(&self, line: usize) -> usize {
        line.checked_sub(1)
            .map_or(0, |before| self.ends[before] + 1)
    }

    /// Where a line ends in the text.
    pub(super) fn end(&self, line: usize) -> usize {
        self.ends[line]
    }

    fn line(&self, line: usize) -> &str {
        &self.text[self.start(line)..self.ends[line]]
    }

    /// The first lines of all runs of as many lines as `target` has; that of the whole text where it has fewer, and
    /// none where it has none.
    pub(super) fn runs(&self, target: &Self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let length = target.count().min(self.count());
        let runs = match length {
            0 => 0,
            length => self.count() - length + 1,
        };
        (0..runs).map(move |first| (first, first + length - 1))
    }

    /// Lines `first..=last` joined by `\n`.
    pub(super) fn run(&self, (first, last): (usize, usize)) -> &str {
        &self.text[self.start(first)..self.ends[last]]
    }

    /// Whether all lines of `target` stand here one after the other.
    pub(super) fn holds(&self, target: &Self) -> bool {
        self.runs(target).any(|run| self.run(run) == target.text)
    }

    /// How many of these lines, each counted as often as it stands here, are lines of some fragment.
    pub(super) fn share_among(&self, fragments: &[Self]) -> Share {
        let lines = (0..self.count()).map(|line| (self.line(line), false));
        let mut seen: FxHashMap<&str, bool> = lines.collect();
        for fragment in fragments {
            for line in 0..fragment.count() {
                if let Some(seen) = seen.get_mut(fragment.line(line)) {
                    *seen = true;
                }
            }
        }
        let found = (0..self.count()).filter(|&line| seen.get(self.line(line)) == Some(&true));
        Share {
            found: found.count(),
            of: self.count(),
        }
    }
}
