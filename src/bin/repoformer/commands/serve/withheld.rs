//! White space at the end of a prompt, which is not sent, and is taken off the completion.

use repoformer::complete::server::Ending;

/// Takes white space off the start of a completion that the prompt was not sent with.
pub(super) struct Withheld {
    removed: String,
    /// Text that the server wrote so far, until it is more than white space.
    written: Option<String>,
    dropped: Option<String>,
}

impl Withheld {
    pub(super) fn new(removed: &str) -> Self {
        let written = (!removed.is_empty()).then(String::new);
        Self { removed: removed.to_owned(), written, dropped: None }
    }

    /// The text to pass on; `None` while there is none.
    pub(super) fn pass(&mut self, text: &str) -> Option<String> {
        let Some(written) = &mut self.written else { return Some(text.to_owned()) };
        written.push_str(text);
        // What white space there is shows with the text behind it. A line that the model writes on is decided at its end.
        let restored = Ending::BeforeWhitespace.restore(&self.removed, written);
        (!restored.trim().is_empty()).then(|| self.rest())
    }

    /// Text that was not passed on yet.
    pub(super) fn rest(&mut self) -> String {
        let Some(written) = self.written.take() else { return String::new() };
        let restored = Ending::BeforeWhitespace.restore(&self.removed, &written);
        let dropped = written[..written.len() - restored.len()].trim();
        self.dropped = (!dropped.is_empty()).then(|| dropped.to_owned());
        restored.to_owned()
    }

    /// Text that was no part of the completion, since the model wrote on in the line before it.
    pub(super) fn dropped(&self) -> Option<&str> {
        self.dropped.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_the_text_of_the_whole_as_soon_as_it_is_known() {
        let texts = [
            "\n    return x\n", " # c\n    return x", "x = 1", "  x", "\n\n  y\n", "\n    \n x",
            "a b\nc\n", "", " ", "\n",
        ];
        for removed in ["\n    ", "\n", " ", "\n\n", "\n\n    "] {
            for text in texts {
                let whole = Ending::BeforeWhitespace.restore(removed, text);
                let mut withheld = Withheld::new(removed);
                let mut passed = String::new();
                for c in text.chars() {
                    passed.extend(withheld.pass(&c.to_string()));
                    assert!(whole.starts_with(&passed), "{removed:?} {text:?}: {passed:?}");
                }
                assert_eq!(passed + &withheld.rest(), whole, "{removed:?} {text:?}");
            }
        }
        let mut withheld = Withheld::new(" ");
        assert_eq!(withheld.pass("w0 ").as_deref(), Some("w0 "));
        let mut withheld = Withheld::new("\n    ");
        assert_eq!(withheld.pass("return total"), None);
        assert_eq!((&*withheld.rest(), withheld.dropped()), ("", Some("return total")));
    }
}
