//! What tells a task's hole from others, whatever the files and folders that hold it are called.

use std::fmt;

use super::Task;
use super::sample::Kind;
use crate::store::content::ContentDigest;
use crate::text::lines::{is_separator, is_space};

/// Digest of a hole: the last line before it that is not blank, and its target.
///
/// White space does not count, since formats divide it otherwise between the left context and the target; nor do the lines before,
/// of which a prompt may hold fewer. So a task has the same digest in every format.
///
/// ```
/// use repoformer::task::Task;
/// let whole_lines = Task::new("r/0".into(), "r/a.py", 0, 1, "    return b\n", "def f(b):\n");
/// let within = Task::new("r/0".into(), "r/a.py", 0, 1, "return b", "import a\n\ndef f(b):\n    ");
/// assert_eq!(whole_lines.hole_digest(), within.hole_digest());
/// let other = Task::new("r/0".into(), "r/a.py", 0, 1, "return c", "def f(b):\n    ");
/// assert_ne!(whole_lines.hole_digest(), other.hole_digest());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoleDigest(ContentDigest);

/// Hexadecimal digits of a hole's digest in an id.
const DIGITS: usize = 12;

impl HoleDigest {
    /// Computes the digest of the hole between a left context and a target.
    pub fn new(left: &str, target: &str) -> Self {
        let line = last_line(left).unwrap_or_default();
        Self(ContentDigest::from_texts([&*without_space(line), &without_space(target)]))
    }

    /// Returns the digest of its content.
    pub fn content(self) -> ContentDigest {
        self.0
    }
}

/// The last line of a text that is not blank.
pub(crate) fn last_line(text: &str) -> Option<&str> {
    text.rsplit(is_separator).find(|line| !line.chars().all(is_space))
}

fn without_space(text: &str) -> String {
    text.chars().filter(|c| !is_space(*c)).collect()
}

/// Hexadecimal digits: `{:.16}` writes 16, `{}` all 64.
impl fmt::Display for HoleDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Task {
    /// Computes the digest of its hole.
    pub fn hole_digest(&self) -> HoleDigest {
        HoleDigest::new(&self.prompt, &self.ground_truth)
    }

    /// Names the task after its kind and its hole: `repository/line-1f3a9c20b4d7`. The same hole of the same file has the same id in
    /// every file of tasks, and any other hole another one.
    pub(super) fn name_by_hole(&mut self, kind: Kind) {
        let hole = self.hole_digest().to_string();
        let line = self.line_no.to_string();
        let digest = ContentDigest::from_texts([&hole, self.file_in_repository(), &line]);
        self.id = format!("{}/{kind}-{digest:.DIGITS$}", self.repository);
        self.metadata.insert("task_id".to_owned(), self.id.clone().into());
    }
}
