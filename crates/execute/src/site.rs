//! The hole in a file on disk, and the file with another text in the hole.

use std::ops::Range;

use repoformer_core::task::Task;
use repoformer_text::language::Grammar;
use repoformer_text::lines::{Lines, universal_newlines};

use super::plant::{self, StatementPosition};

/// A task's hole in its file.
#[derive(Debug, Clone)]
pub struct Site {
    /// Path of the file in its repository.
    pub path: String,
    /// Content of the file on disk, with its line ends.
    text: String,
    hole: Range<usize>,
    grammar: Grammar,
}

impl Site {
    /// Finds the hole of a task in its file.
    ///
    /// ```
    /// use repoformer_execute::Site;
    /// use repoformer_core::task::Task;
    /// let task = Task::new("r/0".into(), "r/a.py", 0, 1, "b = 2", "a = 1\n");
    /// let site = Site::find(&task, "a = 1\r\nb = 2\r\n".into()).unwrap();
    /// assert_eq!(site.with("b = 3\nc = 4"), "a = 1\r\nb = 3\r\nc = 4\r\n");
    /// assert_eq!(site.with("b = 2"), "a = 1\r\nb = 2\r\n");
    /// assert_eq!(site.plant_failure().unwrap(), "a = 1\r\nraise AssertionError(\"planted failure\")\nb = 2\r\n");
    /// ```
    ///
    /// # Errors
    /// The file does not match the task; the error is the reason.
    pub fn find(task: &Task, text: String) -> Result<Self, String> {
        let normal = universal_newlines(text.clone());
        let hole = task.hole(&normal)?;
        let (start, end) = (on_disk(&text, hole.start), on_disk(&text, hole.end));
        Ok(Self {
            path: task.file_in_repository().to_owned(),
            grammar: Grammar::for_path(task.language(), &task.path),
            hole: start..end,
            text,
        })
    }

    /// Returns the content of the file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the file with a text in the hole, with the file's line ends. The reference text restores the file byte for byte.
    pub fn with(&self, text: &str) -> String {
        let (before, after) = (&self.text[..self.hole.start], &self.text[self.hole.end..]);
        let there = &self.text[self.hole.clone()];
        if Lines::new(there) == Lines::new(text) && there.ends_with('\n') == text.ends_with('\n') {
            return self.text.clone();
        }
        let text = universal_newlines(text.to_owned());
        let first_end = self.text.find('\n');
        let uses_crlf = first_end.is_some_and(|at| self.text[..at].ends_with('\r'));
        let text = if uses_crlf { text.replace('\n', "\r\n") } else { text };
        [before, &text, after].concat()
    }

    /// Returns the position for a statement that is reached before the content of the hole.
    ///
    /// # Errors
    /// The hole contains no executed code.
    pub fn planting(&self) -> Result<StatementPosition, String> {
        plant::find(&self.text, self.grammar, self.hole.clone())
    }

    /// Returns the file with a failure before the statement that contains the hole.
    ///
    /// # Errors
    /// The hole contains no executed code.
    pub fn plant_failure(&self) -> Result<String, String> {
        let planting = self.planting()?;
        Ok(planting.insert(&self.text, self.grammar.language().spec().failure))
    }
}

/// Converts an offset in the text with `\n` line ends to one in the file on disk.
fn on_disk(text: &str, offset: usize) -> usize {
    // Each `\r\n` before the offset is one byte longer on disk; a lone `\r` is not.
    let (mut normal, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while normal < offset && at < bytes.len() {
        at += if bytes[at..].starts_with(b"\r\n") { 2 } else { 1 };
        normal += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn site(text: &str, line: usize, truth: &str, prompt: &str) -> Site {
        let task = Task::new("r/0".into(), "r/a.py", 0, line, truth, prompt);
        Site::find(&task, text.to_owned()).unwrap()
    }

    #[test]
    fn line_ends_stay_as_they_are() {
        let text = "\u{feff}a = 1\r\nb = [\r\n  2]\rc = 3";
        let site = site(text, 1, "b = [\n  2]", "\u{feff}a = 1\n");
        assert_eq!(site.with("b = [\n  2]"), text);
        assert_eq!(site.with("b = 2\n"), "\u{feff}a = 1\r\nb = 2\r\n\rc = 3");
        assert_eq!(site.with(""), "\u{feff}a = 1\r\n\rc = 3");
    }

    #[test]
    fn a_hole_may_begin_in_its_line_and_must_be_the_files() {
        let middle = site("x = 1\ny = 2\n", 1, "2", "x = 1\ny = ");
        assert_eq!(middle.with("3"), "x = 1\ny = 3\n");
        let task = Task::new("r/0".into(), "r/a.py", 0, 0, "y", "");
        assert!(Site::find(&task, "x = 1\n".into()).is_err());
    }

    proptest! {
        #[test]
        fn the_truth_gives_back_the_file(lines in prop::collection::vec("[a-c é]{0,4}(\n|\r\n|\r)", 1..8), hole in 0..8_usize, length in 1..4_usize) {
            let text = lines.concat();
            let normal = universal_newlines(text.clone());
            let split: Vec<&str> = normal.split_inclusive('\n').collect();
            let hole = hole.min(split.len() - 1);
            let end = (hole + length).min(split.len());
            let truth = split[hole..end].concat();
            let site = site(&text, hole, truth.trim_end_matches('\n'), &split[..hole].concat());
            prop_assert_eq!(site.with(truth.trim_end_matches('\n')), text);
        }
    }
}
