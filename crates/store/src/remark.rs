//! Messages that work sends in addition to its result.

use std::fmt;
use std::path::{Path, PathBuf};

use repoformer_text::language::syntax::ParseGap;
use repoformer_text::message::Message;

use crate::error::Error;

/// Message from running work. Libraries print nothing: they pass remarks to a function of the caller, `&dyn Fn(Remark)`.
#[derive(Debug)]
pub enum Remark {
    /// A line that cannot be turned off, such as a server's address.
    Announcement(Message),
    /// A line of progress or of a result.
    Note(Message),
    /// A note that is shown once, however often it is sent.
    NoteOnce(Message),
    /// A line for users who ask for details.
    Detail(Message),
    /// A warning.
    Warning(Message),
    /// A warning that is shown once, however often it is sent.
    WarningOnce(Message),
    /// Advice on a warning.
    Hint(Message),
    /// Failed check, or something that was left out; counts as one problem.
    Failed(Message),
    /// Files, lines and tasks that were left out; each counts as a problem.
    Problems(Vec<Error>),
    /// Tasks that were left out; each counts as a problem.
    LeftOut(LeftOutTasks),
    /// Warning that the used records may belong to other tasks.
    Unproven(String),
    /// Files in which functions, classes and names may have been missed.
    Gaps(Vec<ParseGap>),
}

/// Writes the message, one line for each problem.
impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Announcement(text)
            | Self::Note(text)
            | Self::NoteOnce(text)
            | Self::Detail(text)
            | Self::Warning(text)
            | Self::WarningOnce(text)
            | Self::Hint(text)
            | Self::Failed(text) => text.fmt(f),
            Self::Unproven(text) => f.write_str(text),
            Self::Gaps(gaps) => {
                f.write_str(&gaps.iter().map(|gap| &*gap.path).collect::<Vec<_>>().join("\n"))
            }
            Self::LeftOut(tasks) => tasks.warning.fmt(f),
            Self::Problems(all) => {
                f.write_str(&all.iter().map(Error::to_string).collect::<Vec<_>>().join("\n"))
            }
        }
    }
}

/// Tasks that were left out, by reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutTasks {
    /// Consequence of leaving out these tasks.
    pub warning: Message,
    /// Path of the task file.
    pub path: PathBuf,
    /// Each reason with its tasks, in the order of their first tasks: `demo/0 (line 1)`.
    pub reasons: Vec<(Message, Vec<String>)>,
}

impl LeftOutTasks {
    /// Groups tasks of a file by reason; each task is given by its line, its id and its reason.
    pub fn new<'t>(
        warning: Message,
        path: &Path,
        tasks: impl Iterator<Item = (usize, &'t str, &'t Message)>,
    ) -> Self {
        let mut reasons: Vec<(Message, Vec<String>)> = Vec::new();
        for (line, id, reason) in tasks {
            let name = format!("{id} (line {line})");
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, names)) => names.push(name),
                None => reasons.push((reason.clone(), vec![name])),
            }
        }
        Self { warning, path: path.to_owned(), reasons }
    }

    /// Returns the number of tasks.
    pub fn count(&self) -> usize {
        self.reasons.iter().map(|(_, names)| names.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_one_reason_are_together() {
        let [slow, wrong] = ["too slow", "wrong"].map(Message::from);
        let tasks = [(1, "a", &slow), (2, "b", &wrong), (4, "a", &slow)];
        let left_out = LeftOutTasks::new("lost".into(), Path::new("t.jsonl"), tasks.into_iter());
        assert_eq!(left_out.count(), 3);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let wanted =
            [(slow, names(&["a (line 1)", "a (line 4)"])), (wrong, names(&["b (line 2)"]))];
        assert_eq!(left_out.reasons, wanted);
    }
}
