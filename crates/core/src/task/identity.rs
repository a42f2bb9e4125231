//! Identities of tasks' holes, independent of the names of files and folders.

use std::fmt;

use repoformer_store::content::ContentDigest;
use repoformer_text::lines::{is_separator, is_space, strip};

use super::sample::Kind;

/// Digest of a hole: of the last non-blank line before it, and of its target.
///
/// White space is ignored, because formats divide it differently between the left context and the target. Earlier lines are
/// ignored, because prompts may leave them out. So a task has the same digest in every format.
///
/// ```
/// use repoformer_core::task::Task;
/// let whole_lines = Task::new("r/0".into(), "r/a.py", 0, 1, "    return b\n", "def f(b):\n");
/// let within = Task::new("r/0".into(), "r/a.py", 0, 1, "return b", "import a\n\ndef f(b):\n    ");
/// assert_eq!(whole_lines.hole_digest(), within.hole_digest());
/// let other = Task::new("r/0".into(), "r/a.py", 0, 1, "return c", "def f(b):\n    ");
/// assert_ne!(whole_lines.hole_digest(), other.hole_digest());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoleDigest(ContentDigest);

impl HoleDigest {
    /// Computes the digest of the hole between a left context and a target.
    pub fn new(left: &str, target: &str) -> Self {
        let line = last_line(left).unwrap_or_default();
        Self(ContentDigest::from_texts([line, target].map(without_space).iter().map(|t| &**t)))
    }

    /// Returns the digest as a content digest.
    pub fn content(self) -> ContentDigest {
        self.0
    }
}

/// Mark of a task's hole, to detect records of other tasks that name this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoleMark {
    target: ContentDigest,
    /// End of the last non-blank line before the hole; empty if there is no such line.
    before: Box<str>,
}

/// Maximum number of characters kept of the line before a hole.
const KEPT: usize = 32;

/// Minimum number of characters with which the line before a hole identifies the hole.
const TELLING: usize = 8;

/// Difference that shows that a record belongs to another task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherHole {
    /// The record's target is not the task's.
    Target,
    /// The record's prompt lacks the line before the hole.
    LeftContext,
}

impl OtherHole {
    /// Describes the difference.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Target => "its target differs",
            Self::LeftContext => "its prompt lacks the line before the hole",
        }
    }
}

impl HoleMark {
    pub(super) fn new(left: &str, target: &str) -> Self {
        let line = strip(last_line(left).unwrap_or_default());
        let kept = line.char_indices().rev().nth(KEPT - 1).map_or(0, |(at, _)| at);
        Self { target: digest_without_space(target), before: line[kept..].into() }
    }

    /// Compares the hole with a record's target or, if there is none, with its prompt. Prompts of every style contain the end
    /// of the left context, regardless of how much they leave out. Returns true if anything could be compared.
    ///
    /// # Errors
    /// The record belongs to another hole.
    pub fn check(&self, target: Option<&str>, prompt: Option<&str>) -> Result<bool, OtherHole> {
        match (target, prompt) {
            (Some(target), _) if digest_without_space(target) == self.target => Ok(true),
            (Some(_), _) => Err(OtherHole::Target),
            // Too short to identify a hole: `)`, `else:`.
            (None, Some(_)) if self.before.chars().count() < TELLING => Ok(false),
            (None, Some(prompt)) if prompt.contains(&*self.before) => Ok(true),
            (None, Some(_)) => Err(OtherHole::LeftContext),
            (None, None) => Ok(false),
        }
    }
}

/// Returns the last non-blank line of a text.
pub(crate) fn last_line(text: &str) -> Option<&str> {
    text.rsplit(is_separator).find(|line| !line.chars().all(is_space))
}

fn digest_without_space(text: &str) -> ContentDigest {
    ContentDigest::from_texts([&*without_space(text)])
}

fn without_space(text: &str) -> String {
    text.chars().filter(|c| !is_space(*c)).collect()
}

/// Writes hexadecimal digits: `{:.16}` writes 16, `{}` all 64.
impl fmt::Display for HoleDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns true if tasks in other task files may have the same id: the id numbers the tasks of a repository (`repository/0`),
/// or is the same for all of them (RepoEval's `repository/idx`). An id with the file's path or a digest belongs to one task.
///
/// ```
/// use repoformer_core::task::is_numbered;
/// assert!(is_numbered("r/0") && is_numbered("r/idx") && is_numbered("17") && is_numbered("r/line_0"));
/// assert!(!is_numbered("r/line-1f3a9c20b4d7") && !is_numbered("r/a.py/4_5"));
/// ```
pub fn is_numbered(id: &str) -> bool {
    let last = id.rsplit('/').next().unwrap_or(id);
    // A file extension, as in `a.py`, or a name within a module.
    let names_code =
        id.split('.').skip(1).any(|part| part.starts_with(|c: char| c.is_alphabetic()));
    let ends_in_number = last.ends_with(|c: char| c.is_ascii_digit());
    (last == "idx" || ends_in_number) && name_before_digest(id).is_none() && !names_code
}

/// Returns the kind that the id of a drawn task names; see `Task::name_by_hole`.
pub(super) fn drawn_kind(id: &str) -> Option<Kind> {
    name_before_digest(id)?.parse().ok()
}

/// Returns the name before the digest at the end of an id: `line` for `r/line-1f3a9c20b4d7`.
fn name_before_digest(id: &str) -> Option<&str> {
    let (name, digest) = id.rsplit('/').next()?.rsplit_once('-')?;
    let is_digest = digest.len() >= 12 && digest.bytes().all(|b| b.is_ascii_hexdigit());
    is_digest.then_some(name)
}

/// Records that are assigned to their tasks only by numbers.
///
/// ```
/// use repoformer_core::task::NumberedRecords;
/// let mut records = NumberedRecords::default();
/// records.add("r/line-1f3a9c20b4d7");
/// assert_eq!(records.warning("t.jsonl", None), None);
/// records.add("r/0");
/// assert_eq!(
///     records.warning("t.jsonl", None).unwrap(),
///     "t.jsonl: 1 record has only ids such as \"r/0\" to identify the task, and other task files may use the same"
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumberedRecords {
    count: usize,
    /// Name of the first record's task.
    first: String,
}

impl NumberedRecords {
    /// Adds a record that names its task by an id alone, if other files may have that id.
    pub fn add(&mut self, id: &str) {
        if is_numbered(id) {
            self.count(|| format!("ids such as {id:?}"));
        }
    }

    /// Adds a record that names its task by a row of the task file alone.
    pub fn add_row(&mut self, row: usize) {
        self.count(|| format!("rows such as {row}"));
    }

    fn count(&mut self, name: impl FnOnce() -> String) {
        if self.count == 0 {
            self.first = name();
        }
        self.count += 1;
    }

    /// Returns a warning about such records in a file, with the field that would prove their tasks; `None` if there are no such
    /// records.
    pub fn warning(&self, file: impl fmt::Display, proof: Option<&str>) -> Option<String> {
        let records = match self.count {
            0 => return None,
            1 => "1 record has".to_owned(),
            n => format!("{n} records have"),
        };
        let first = &self.first;
        let proof = proof
            .map_or(String::new(), |proof| format!("; only records with {proof} can be checked"));
        Some(format!(
            "{file}: {records} only {first} to identify the task, and other task files may use the \
             same{proof}"
        ))
    }
}
