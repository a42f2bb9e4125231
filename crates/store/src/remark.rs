//! Messages that work sends besides its result.

use std::fmt;
use std::path::{Path, PathBuf};

use repoformer_text::language::syntax::ParseGap;
use repoformer_text::message::Message;

use crate::error::Error;

/// A message from work in progress. Libraries print nothing: they pass remarks to a function of the caller, `&dyn Fn(Remark)`.
#[derive(Debug)]
pub enum Remark {
    /// A line that cannot be turned off, such as a server's address.
    Announcement(Message),
    /// A line of progress or of a result.
    Note(Message),
    /// A line for users who ask for details.
    Detail(Message),
    /// A warning.
    Warning(Message),
    /// A warning that is shown once, however often it is sent.
    WarningOnce(Message),
    /// What can be done about a warning.
    Hint(Message),
    /// A failed check, or something that was left out; counts as one problem.
    Failed(Message),
    /// Files, lines and tasks that were left out; each counts as a problem.
    Problems(Vec<Error>),
    /// Tasks that were left out; each counts as a problem.
    LeftOut(LeftOutTasks),
    /// A warning that records were used which may belong to other tasks.
    Unproven(String),
    /// Files in which functions, classes and names may not be found.
    Gaps(Vec<ParseGap>),
}

/// Writes the message, one line for each problem.
impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Announcement(text)
            | Self::Note(text)
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
    /// What leaving out these tasks means.
    pub warning: Message,
    /// The task file.
    pub path: PathBuf,
    /// Each reason with its tasks, in the order of their first tasks: `demo/0 (line 1)`.
    pub reasons: Vec<(Message, Vec<String>)>,
}

impl LeftOutTasks {
    /// Groups tasks of a file by reason; each is given by its line, its id and its reason.
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
