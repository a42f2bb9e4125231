//! What work says on its way, beside its result.

use repoformer_text::message::Message;

use crate::error::Error;

/// Something that work says on its way. Libraries print nothing: they hand it to a function of the caller, `&dyn Fn(Remark)`.
#[derive(Debug)]
pub enum Remark {
    /// A line that nobody turns off, such as a server's address.
    Announcement(Message),
    /// A line of progress or of a result.
    Note(Message),
    /// A line for those who ask for details.
    Detail(Message),
    /// A warning.
    Warning(Message),
    /// A warning that is shown once, however often it is told.
    WarningOnce(Message),
    /// A failed check, or something that is left out; it counts as one problem.
    Failed(Message),
    /// Files, lines and tasks that are left out; each counts as a problem.
    Problems(Vec<Error>),
    /// Records that may be of other tasks were used.
    Unproven(String),
}
