//! The end of a prompt.
//!
//! Many tokenizers have tokens of a newline with the indentation behind it, or of a blank with the word behind it. A prompt
//! that ends in white space makes the model go on from tokens that it never saw end there, which halves what small models
//! get right. So the white space is kept back, and what the model writes of it is taken off again.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// What is done with white space at the end of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// It is sent.
    AsIs,
    /// It is kept back, and dropped from what the model writes.
    #[default]
    BeforeWhitespace,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::AsIs => "as-is",
            Self::BeforeWhitespace => "before-whitespace",
        })
    }
}

impl FromStr for Ending {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "as-is" => Ok(Self::AsIs),
            "before-whitespace" => Ok(Self::BeforeWhitespace),
            other => Err(Error::Parameter {
                name: "prompt-end",
                reason: format!("'{other}' is not one of as-is, before-whitespace"),
            }),
        }
    }
}

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

impl Ending {
    /// A prompt as it is sent, and what is kept back of it.
    ///
    /// ```
    /// use repoformer::complete::server::Ending;
    /// assert_eq!(Ending::BeforeWhitespace.split("def f():\n    "), ("def f():", "\n    "));
    /// assert_eq!(Ending::AsIs.split("def f():\n"), ("def f():\n", ""));
    /// ```
    pub fn split(self, prompt: &str) -> (&str, &str) {
        match self {
            Self::AsIs => (prompt, ""),
            Self::BeforeWhitespace => {
                let kept = prompt.trim_end_matches(SPACE).len();
                // A prompt of nothing else stays.
                prompt.split_at(if kept == 0 { prompt.len() } else { kept })
            }
        }
    }

    /// What the model wrote behind the white space that was kept back.
    ///
    /// As many line ends as were kept back are dropped, then the indentation as far as it is the same. A model that goes on
    /// in the line before writes what is no part of the completion up to that line's end.
    ///
    /// ```
    /// use repoformer::complete::server::Ending;
    /// let of = |removed, written| Ending::BeforeWhitespace.restore(removed, written);
    /// assert_eq!(of("\n", "\n    return x"), "    return x");
    /// assert_eq!(of("\n    ", "\n    return x"), "return x");
    /// assert_eq!(of("\n", "  # a comment\n    return x"), "    return x");
    /// assert_eq!(of(" ", " x + 1"), "x + 1");
    /// ```
    pub fn restore<'w>(self, removed: &str, written: &'w str) -> &'w str {
        let (lines, indentation) = match removed.rfind('\n') {
            Some(at) => (removed[..=at].matches('\n').count(), &removed[at + 1..]),
            None => (0, removed),
        };
        let mut rest = written;
        for line in 0..lines {
            match rest.find('\n') {
                // Behind the first one only blank lines are those that were kept back.
                Some(end) if line == 0 || rest[..end].trim_matches(SPACE).is_empty() => {
                    rest = &rest[end + 1..];
                }
                Some(_) => break,
                None if line == 0 => return "",
                None => break,
            }
        }
        let same = rest
            .bytes()
            .zip(indentation.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        &rest[same..]
    }

    /// The same of a chat's answer, which need not begin where the prompt ends: only what it repeats is dropped.
    ///
    /// ```
    /// use repoformer::complete::server::Ending;
    /// let of = |removed, written| Ending::BeforeWhitespace.restore_answer(removed, written);
    /// assert_eq!(of("\n", "    return x\n    y"), "    return x\n    y");
    /// assert_eq!(of("\n    ", "\n    return x"), "return x");
    /// assert_eq!(of("\n    ", "return x"), "return x");
    /// ```
    pub fn restore_answer<'w>(self, removed: &str, written: &'w str) -> &'w str {
        let begins_a_line = written
            .trim_start_matches([' ', '\t', '\r'])
            .starts_with('\n');
        match removed.rfind('\n') {
            Some(end) if !begins_a_line => self.restore(&removed[end + 1..], written),
            _ => self.restore(removed, written),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_back_is_dropped_once() {
        let of = |removed, written| Ending::BeforeWhitespace.restore(removed, written);
        assert_eq!(of("", "\n x"), "\n x");
        assert_eq!(of("\n", "\n\n    x\n"), "\n    x\n");
        assert_eq!(of("\n\n", "\n\n    x"), "    x");
        assert_eq!(of("\n\n", "\n    x"), "    x");
        assert_eq!(of("\n\n    ", "\n\n  x"), "x");
        assert_eq!(of("\n    ", "\n        x"), "    x");
        assert_eq!(of("\n", " + 1"), "");
        assert_eq!(of("\n", ""), "");
        assert_eq!(of(" ", "x"), "x");
        assert_eq!(of("\r\n", "\r\nx"), "x");
        assert_eq!(of(" \n", "\né"), "é");
        assert_eq!(Ending::BeforeWhitespace.split(" \n"), (" \n", ""));
        for name in ["as-is", "before-whitespace"] {
            assert_eq!(name.parse::<Ending>().unwrap().to_string(), name);
        }
        assert!("newline".parse::<Ending>().is_err());
    }
}
