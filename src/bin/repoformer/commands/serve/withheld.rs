//! White space at the end of a prompt, which is not sent, and is taken off the completion.

use repoformer::complete::server::Ending;

/// Takes white space off the start of a completion that the prompt was not sent with.
pub(super) struct Withheld {
    removed: String,
    /// Text that the server wrote so far, until it is more than white space.
    written: Option<String>,
}

impl Withheld {
    pub(super) fn new(removed: &str) -> Self {
        Self { removed: removed.to_owned(), written: (!removed.is_empty()).then(String::new) }
    }

    /// The text to pass on; `None` while there is none.
    pub(super) fn pass(&mut self, text: &str) -> Option<String> {
        let Some(written) = &mut self.written else { return Some(text.to_owned()) };
        written.push_str(text);
        // A line that the model writes on is decided at its end.
        let is_decided = written.trim_start().contains('\n')
            || written.starts_with(&self.removed) && written.len() > self.removed.len();
        is_decided.then(|| self.rest()).filter(|text| !text.is_empty())
    }

    /// Text that was not passed on yet.
    pub(super) fn rest(&mut self) -> String {
        let Some(written) = self.written.take() else { return String::new() };
        Ending::BeforeWhitespace.restore(&self.removed, &written).to_owned()
    }
}
