//! Finds a task's hole in the text of its file, and the text around it.

use repoformer_text::counts::format_count;
use repoformer_text::lines::{
    IndexedText, Lines, is_separator, is_space, line_starts, strip, unfinished_line,
};

use super::Task;

/// A hole, as a byte range of its file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    /// Byte offset of the hole's first character.
    pub start: usize,
    /// Byte offset after the hole's last character.
    pub end: usize,
}

const OTHER_VERSION: &str = "is this the repository version that the task was made from?";

impl Task {
    /// Finds the hole in the text of its file (newlines as text mode reads them). The task's line, the line before it and its
    /// ground truth must match the file. Lines that RepoCoder joined with `\n` may have other line ends there, and a prompt may
    /// be stripped at its end, as in RepoEval's function-level files.
    ///
    /// ```
    /// use repoformer_core::task::{Hole, Task};
    /// let task = Task::new("r/0".into(), "r/a.py", 0, 1, "b = 2", "a = 1\n");
    /// assert_eq!(task.hole("a = 1\nb = 2\nc = 3\n"), Ok(Hole { start: 6, end: 11 }));
    /// assert!(task.hole("a = 1\n").is_err());
    /// ```
    ///
    /// # Errors
    /// The task and the text disagree; the error describes the difference.
    pub fn hole(&self, text: &str) -> Result<Hole, String> {
        self.hole_in(&IndexedText::new(text))
    }

    /// Finds the hole as [`hole`](Self::hole) does, in the text of a file with many tasks.
    ///
    /// # Errors
    /// As [`hole`](Self::hole).
    pub fn hole_in(&self, file: &IndexedText<'_>) -> Result<Hole, String> {
        let text = file.text();
        let Some(line) = file.start(self.line_no) else {
            return Err(self.beyond(text));
        };
        if line == text.len() && !self.ground_truth.is_empty() {
            return Err(self.beyond(text));
        }
        // The prompt ends within the hole's line, or it was stripped and ends before that line.
        let begun = unfinished_line(&self.prompt);
        let is_begun = text[line..].starts_with(begun);
        let within = is_begun.then_some(line + begun.len());
        let before = (!begun.is_empty()).then_some(line);
        let starts = [within, before].into_iter().flatten();
        let mut starts = starts.filter(|start| ends_alike(&self.prompt, file, *start)).peekable();
        if starts.peek().is_none() {
            let on_line = if is_begun { "" } else { ", on its line" };
            return Err(self.differs(&format!("before the hole{on_line}")));
        }
        let ended = |start: usize| Some((start, end_of(&self.ground_truth, &text[start..])?));
        match starts.find_map(ended) {
            Some((start, length)) => Ok(Hole { start, end: start + length }),
            None => Err(self.differs("in the hole")),
        }
    }

    /// Sets the whole contexts from the text of the file, if the task does not have them. If the prompt was stripped, the blank
    /// text before the hole is added again.
    ///
    /// # Errors
    /// As [`Task::hole`].
    pub fn fill(&mut self, file: &IndexedText<'_>) -> Result<(), String> {
        let Hole { start, end } = self.hole_in(file)?;
        let text = file.text();
        let blank = &text[text[..start].trim_end_matches(is_space).len()..start];
        if !self.prompt.is_empty() && !self.prompt.ends_with(is_space) {
            self.prompt = [&*self.prompt, blank].concat().into();
        }
        self.full_left_context.get_or_insert_with(|| text[..start].into());
        self.full_right_context.get_or_insert_with(|| text[end..].into());
        Ok(())
    }

    fn beyond(&self, text: &str) -> String {
        format!(
            "its hole is at line {} (counted from 0) of {}, which has {}; {OTHER_VERSION}",
            self.line_no,
            self.path,
            format_count(Lines::new(text).count() as u64, "line")
        )
    }

    fn differs(&self, place: &str) -> String {
        format!(
            "{} has different text {place} (line {}, counted from 0); {OTHER_VERSION}",
            self.path, self.line_no
        )
    }
}

/// Returns true if a prompt and the text before an offset have the same last line that is not blank; a prompt of blank lines fits
/// everywhere.
fn ends_alike(prompt: &str, file: &IndexedText<'_>, offset: usize) -> bool {
    let mut lines = prompt.rsplit(is_separator).map(strip);
    let last = lines.find(|line| !line.is_empty());
    last.is_none_or(|line| file.last_filled(offset) == Some(line))
}

/// Returns the length of the start of `text` that is equal to `target`, apart from line ends; `None` if it differs.
fn end_of(target: &str, text: &str) -> Option<usize> {
    if text.starts_with(target) {
        return Some(target.len());
    }
    let lines = Lines::new(target);
    let mut end = line_starts(text).nth(lines.count()).unwrap_or(text.len());
    if !target.ends_with(is_separator) {
        // The separator of the last line is not part of the target.
        let last = &text[..end];
        end = last
            .strip_suffix("\r\n")
            .map_or_else(|| last.strip_suffix(is_separator).map_or(end, str::len), str::len);
    }
    (Lines::new(&text[..end]) == lines).then_some(end)
}
