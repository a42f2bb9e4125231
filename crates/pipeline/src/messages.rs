//! Messages to the user who waits for the work.

use std::fmt;

use repoformer_models::endpoint::ServerNotice;
use repoformer_store::error::Error;
use repoformer_store::remark::Remark;
use repoformer_text::language::syntax::ParseGap;
use repoformer_text::message::Message;

use super::stage::StageReport;

/// Receives messages to the user who waits for the work; libraries print nothing.
pub trait Messages: Send + Sync {
    /// Shows a remark.
    fn tell(&self, remark: Remark);
    /// Shows the report of a stage.
    fn stage(&self, name: &str, report: &StageReport);
    /// Shows the remarks of a stage that was not run.
    fn remarks(&self, report: &StageReport);
    /// Sets the text to show if the user interrupts the work from now on; returns the previous text.
    fn on_interruption(&self, text: Option<String>) -> Option<String>;

    /// Shows a line that cannot be turned off.
    fn announce(&self, text: &str) {
        self.tell(Remark::Announcement(text.into()));
    }

    /// Shows a line of progress or of a result.
    fn note(&self, note: Message) {
        self.tell(Remark::Note(note));
    }

    /// Shows a line for users who ask for details.
    fn detail(&self, text: &str) {
        self.tell(Remark::Detail(text.into()));
    }

    /// Shows a warning.
    fn warning(&self, warning: Message) {
        self.tell(Remark::Warning(warning));
    }

    /// Shows a warning once, however often it is sent.
    fn warning_once(&self, warning: Message) {
        self.tell(Remark::WarningOnce(warning));
    }

    /// Shows a message about a server.
    fn server(&self, notice: ServerNotice) {
        self.tell(match notice {
            ServerNotice::Outage(text) => Remark::Note(text.into()),
            ServerNotice::Unsupported(text) => Remark::NoteOnce(text.into()),
        });
    }

    /// Shows a failed check, and counts it.
    fn failure(&self, failure: Message) {
        self.tell(Remark::Failed(failure));
    }

    /// Shows files, lines and tasks that were left out, and counts them.
    fn problems(&self, problems: Vec<Error>) {
        self.tell(Remark::Problems(problems));
    }

    /// Shows files in which functions, classes and names may not be found.
    fn gaps(&self, gaps: Vec<ParseGap>) {
        if !gaps.is_empty() {
            self.tell(Remark::Gaps(gaps));
        }
    }

    /// Shows that records which may be of other tasks were used.
    fn unproven(&self, warning: &str) {
        self.tell(Remark::Unproven(warning.to_owned()));
    }
}

impl fmt::Debug for dyn Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Messages")
    }
}

/// Shows nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoMessages;

impl Messages for NoMessages {
    fn tell(&self, _: Remark) {}
    fn stage(&self, _: &str, _: &StageReport) {}
    fn remarks(&self, _: &StageReport) {}
    fn on_interruption(&self, _: Option<String>) -> Option<String> {
        None
    }
}
