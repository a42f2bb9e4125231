//! White space at the end of a prompt.
//!
//! Many tokenizers have tokens that join a newline and the following indentation, or a blank and the following word. After a
//! prompt that ends in white space, the model must continue from a token boundary that it has never seen, which halves the
//! exact matches of small models. So the white space is withheld, and removed from the completion.

use repoformer_text::named;

/// Treatment of white space at the end of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// The white space is sent.
    AsIs,
    /// The white space is withheld, and removed from the completion.
    #[default]
    BeforeWhitespace,
}

named! {
    Ending, "prompt end":
    AsIs = "as-is",
    BeforeWhitespace = "before-whitespace",
}

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

impl Ending {
    /// Splits a prompt into the part that is sent and the part that is withheld.
    ///
    /// ```
    /// use repoformer_core::completion::Ending;
    /// assert_eq!(Ending::BeforeWhitespace.split("def f():\n    "), ("def f():", "\n    "));
    /// assert_eq!(Ending::AsIs.split("def f():\n"), ("def f():\n", ""));
    /// ```
    pub fn split(self, prompt: &str) -> (&str, &str) {
        match self {
            Self::AsIs => (prompt, ""),
            Self::BeforeWhitespace => {
                let kept = prompt.trim_end_matches(SPACE).len();
                // A prompt that is only white space is sent.
                prompt.split_at(if kept == 0 { prompt.len() } else { kept })
            }
        }
    }

    /// Returns the completion after the withheld white space.
    ///
    /// This removes as many line ends as were withheld, and then the indentation as far as it matches. If the model continues
    /// the line before the completion, its text up to the end of that line is not part of the completion.
    ///
    /// ```
    /// use repoformer_core::completion::Ending;
    /// let of = |removed, written| Ending::BeforeWhitespace.restore(removed, written);
    /// assert_eq!(of("\n", "\n    return x"), "    return x");
    /// assert_eq!(of("\n    ", "\n    return x"), "return x");
    /// assert_eq!(of("\n", "  # a comment\n    return x"), "    return x");
    /// assert_eq!(of(" ", " x + 1"), "x + 1");
    /// ```
    pub fn restore<'w>(self, removed: &str, written: &'w str) -> &'w str {
        WithheldSpace::new(removed).restore(written)
    }

    /// Returns the completion in a chat model's answer, which may start anywhere: only repeated white space is removed.
    ///
    /// ```
    /// use repoformer_core::completion::Ending;
    /// let of = |removed, written| Ending::BeforeWhitespace.restore_answer(removed, written);
    /// assert_eq!(of("\n", "    return x\n    y"), "    return x\n    y");
    /// assert_eq!(of("\n    ", "\n    return x"), "return x");
    /// assert_eq!(of("\n    ", "return x"), "return x");
    /// ```
    pub fn restore_answer<'w>(self, removed: &str, written: &'w str) -> &'w str {
        let trimmed = written.trim_start_matches([' ', '\t', '\r']);
        let begins_a_line = trimmed.starts_with('\n');
        match removed.rfind('\n') {
            Some(end) if !begins_a_line => self.restore(&removed[end + 1..], written),
            _ => self.restore(removed, written),
        }
    }
}

/// White space that was withheld at the end of a prompt.
#[derive(Debug, Clone, Copy)]
pub(super) struct WithheldSpace<'r> {
    lines: usize,
    /// White space after the last line end.
    indentation: &'r str,
}

impl<'r> WithheldSpace<'r> {
    pub(super) fn new(removed: &'r str) -> Self {
        let start = removed.rfind('\n').map_or(0, |at| at + 1);
        let (lines, indentation) = removed.split_at(start);
        Self { lines: lines.matches('\n').count(), indentation }
    }

    /// Returns the completion after the white space, as [`Ending::restore`] does.
    pub(super) fn restore<'w>(&self, written: &'w str) -> &'w str {
        let mut rest = written;
        for line in 0..self.lines {
            match rest.find('\n') {
                // After the first line end, only blank lines can be withheld ones.
                Some(end) if line == 0 || rest[..end].trim_matches(SPACE).is_empty() => {
                    rest = &rest[end + 1..];
                }
                Some(_) => break,
                None if line == 0 => return "",
                None => break,
            }
        }
        let equal = rest.bytes().zip(self.indentation.bytes()).take_while(|(a, b)| a == b);
        let same = equal.count();
        &rest[same..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_back_is_dropped_once() {
        for (removed, written, restored) in [
            ("", "\n x", "\n x"),
            ("\n", "\n\n    x\n", "\n    x\n"),
            ("\n\n", "\n\n    x", "    x"),
            ("\n\n", "\n    x", "    x"),
            ("\n\n    ", "\n\n  x", "x"),
            ("\n    ", "\n        x", "    x"),
            ("\n", " + 1", ""),
            ("\n", "", ""),
            (" ", "x", "x"),
            ("\r\n", "\r\nx", "x"),
            (" \n", "\né", "é"),
        ] {
            assert_eq!(Ending::BeforeWhitespace.restore(removed, written), restored);
        }
        assert_eq!(Ending::BeforeWhitespace.split(" \n"), (" \n", ""));
    }
}
