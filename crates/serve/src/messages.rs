//! Messages to the person who started a server.

use std::fmt;

use repoformer_store::error::Error;
use repoformer_text::message::Message;

/// Receives messages to the person who started a server; this crate prints nothing.
pub trait Messages: Send + Sync {
    /// Shows a line that nobody turns off, such as the server's address.
    fn announce(&self, text: &str);
    /// Shows a warning.
    fn warning(&self, warning: Message);
    /// Shows a line for those who ask for details.
    fn detail(&self, text: &str);
    /// Shows files that cannot be read.
    fn problems(&self, problems: &[Error]);
}

impl fmt::Debug for dyn Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Messages")
    }
}
