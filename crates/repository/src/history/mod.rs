//! History of a Git repository: its commits, the changes of each, and the files of a commit.
//!
//! The program `git` reads only the objects of the repository, which may be a checkout or bare; it reads no settings and no
//! attributes. Nothing in the repository is changed, no hook, filter or other program that it names is run, and nothing is
//! fetched.

mod bound;
mod git;
mod lines;
mod links;
mod own;
mod refs;

pub use bound::{Bound, BoundedResult, SkippedCommit};
pub use git::Hunk;
pub use lines::LineHistory;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

use bound::{ByteCount, LineCount, MOST_FILES, TreeSizes};
use git::Git;
use links::{HistoryPath, NamedFolder};
use own::OwnFolder;
use refs::Tip;
use repoformer_store::error::{Error, Result};
use repoformer_text::language::Language;
use repoformer_text::lines::universal_newlines;
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use super::corpus::{Repository, SourceFile, is_folder_name, path_names};

/// Greatest number of bytes, and of lines, of a text of a changed file: to compare two texts, git needs many times their size
/// in memory.
const MOST_TEXT_BYTES: u64 = 64 << 20;
const MOST_TEXT_LINES: usize = 1_000_000;

/// Git repository on disk.
#[derive(Debug)]
pub struct History {
    git: Git,
    name: String,
    /// Sizes of checked trees: a commit shares most of them with other commits.
    sizes: RefCell<TreeSizes>,
}

/// Commit with one parent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Commit {
    /// Object id, in hexadecimal.
    pub id: String,
    /// Object id of its parent.
    pub parent: String,
    /// Time of the commit, as `2024-01-31T12:00:00Z`.
    pub date: String,
}

/// Source file that a commit added or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// `folder/…/file.py`.
    pub path: String,
    /// Object id of the file in the parent; `None` for a new file.
    before: Option<String>,
    /// Object id of the file in the commit.
    after: String,
}

impl FileChange {
    /// Returns true if the file is new.
    pub fn is_new(&self) -> bool {
        self.before.is_none()
    }
}

/// Source file of a commit that is left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOutFile {
    /// `folder/…/file.py`; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The reason.
    pub reason: LeftOutReason,
}

/// Reason why a source file of a commit is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOutReason {
    /// It is a link.
    Link,
    /// Its name is not UTF-8.
    Name,
    /// Its text is not UTF-8.
    Encoding,
    /// A changed file has line ends other than `\n` and `\r\n`, is not UTF-8, or is too long.
    Change,
}

impl fmt::Display for LeftOutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Link => "a link, which is not followed in a history",
            Self::Name => "its name is not UTF-8",
            Self::Encoding => "not UTF-8",
            Self::Change => "not UTF-8, with unusual line ends, or too long",
        })
    }
}

/// Texts of a changed file, and their differences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Text in the parent; empty for a new file.
    pub before: String,
    /// Text in the commit.
    pub after: String,
    /// Runs of lines that differ, in order.
    pub hunks: Vec<Hunk>,
}

impl History {
    /// Opens a repository: a checkout, or a bare one. Its name is the name of its folder, without `.git`.
    ///
    /// # Errors
    /// There is no repository, it has no commits, its history is stored elsewhere or in an unsupported form, its name cannot
    /// name a folder, or `git` cannot be run.
    pub fn open(dir: &Path) -> Result<Self> {
        let whole = dir.canonicalize().map_err(|e| Error::reading(dir, "open this folder", e))?;
        let named_folder = NamedFolder { dir, root: &whole };
        let place = HistoryPath::find(named_folder)?;
        let tip = Tip::read(named_folder, &place)?;
        // `.` and `..` are not names; a checkout's own `.git` gets the checkout's name.
        let is_named =
            |path: &&Path| folder_name(path).is_some_and(|name| !name.is_empty() && name != ".git");
        let named = [dir, &whole].into_iter().find(is_named);
        let name = named.or(whole.parent()).and_then(folder_name).unwrap_or_default();
        let name = name.strip_suffix(".git").unwrap_or(name);
        if !is_folder_name(name) || name.starts_with('.') {
            return Err(
                named_folder.refusal("has a name that cannot be used as a folder name; rename it")
            );
        }
        let git = Git::new(dir, OwnFolder::make(&place, &tip)?);
        let mut sizes = TreeSizes::start(&git)?;
        // Git would follow a tag to its end, and the chain may be endless.
        if let Some(kind) = sizes.other_kind(&tip.id)? {
            return Err(named_folder.refusal(format!(
                "its HEAD points to a {kind} instead of a commit; check out a branch"
            )));
        }
        Ok(Self { name: name.to_owned(), git, sizes: RefCell::new(sizes) })
    }

    /// Returns the name of the repository.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if it is a shallow clone, whose history ends before its first commit.
    pub fn is_shallow(&self) -> bool {
        self.git.is_shallow()
    }

    /// Returns the commits that lead to `HEAD`, have one parent, and were both written and committed on a day (`2024-01-31`,
    /// UTC) or later; ordered by their ids.
    ///
    /// # Errors
    /// The day is invalid, or the history cannot be read.
    pub fn commits(&self, since: &str) -> Result<Vec<Commit>> {
        check_day(since)?;
        let chosen = ["--min-parents=1", "--max-parents=1", "--format=%H %P %ad %cd", "HEAD", "--"];
        let listed = self.git.text(&[&git::PLAIN_LOG[..], &chosen].concat())?;
        let commit = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            let [id, parent, written, date] = std::array::from_fn(|_| words.next());
            let is_later = |date: &Option<String>| date.as_deref().is_some_and(|d| d >= since);
            let is_chosen = is_later(&written) && is_later(&date);
            is_chosen.then_some(Commit { id: id?, parent: parent?, date: date? })
        };
        let mut commits: Vec<Commit> = listed.lines().filter_map(commit).collect();
        commits.sort_unstable();
        Ok(commits)
    }

    /// Checks that a commit and its parent are within the bounds.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn check(&self, commit: &Commit) -> Result<Result<(), SkippedCommit>> {
        let mut sizes = self.sizes.borrow_mut();
        match sizes.check(&commit.parent)? {
            Ok(()) => sizes.check(&commit.id),
            skipped => Ok(skipped),
        }
    }

    /// Returns the files of a language that a commit added or changed, in the order of their paths. Moved and copied files are
    /// left out, and so are links and hidden files. The commit must first be [checked](Self::check).
    ///
    /// # Errors
    /// The commit cannot be read.
    pub fn changes(
        &self,
        commit: &Commit,
        language: Language,
    ) -> Result<BoundedResult<Vec<FileChange>>> {
        let raw = match self.git.objects(&[
            "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--find-renames", "--find-copies",
            "-l0", "-O/dev/null", &commit.parent, &commit.id, "--",
        ])? {
            Ok(raw) => raw,
            Err(bound) => return Ok(Err(bound)),
        };
        let mut fields = raw.split(|byte| *byte == 0);
        let mut changes = Vec::new();
        while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
            let head = String::from_utf8_lossy(head);
            let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
            let [before_mode, after_mode, before, after, status] = words[..] else { break };
            if status.starts_with(['R', 'C']) {
                fields.next();
                continue;
            }
            let before = match status {
                "A" => None,
                "M" if is_file(before_mode) => Some(before.to_owned()),
                _ => continue,
            };
            // A task cannot contain a path that is not UTF-8.
            let path = str::from_utf8(path).ok().filter(|path| is_source(path, language));
            if let Some(path) = path.filter(|_| is_file(after_mode)) {
                changes.push(FileChange { path: path.to_owned(), before, after: after.to_owned() });
            }
        }
        Ok(Ok(changes))
    }

    /// Returns the texts of a changed file, and its hunks; `None` if a text is not UTF-8, has line ends other than `\n` and
    /// `\r\n`, or is too long.
    ///
    /// # Errors
    /// The texts cannot be read.
    pub fn edit(&self, change: &FileChange) -> Result<BoundedResult<Option<Edit>>> {
        let ids: Vec<&str> =
            change.before.iter().chain([&change.after]).map(String::as_str).collect();
        let is_short =
            |_, bytes| if bytes > MOST_TEXT_BYTES { Err(Bound::FileBytes) } else { Ok(()) };
        let contents = match self.git.contents(&ids, is_short)? {
            Ok(contents) => contents,
            Err(Bound::FileBytes) => return Ok(Ok(None)),
            Err(bound) => return Ok(Err(bound)),
        };
        let texts: Option<Vec<String>> = contents.into_iter().map(text).collect();
        let Some(mut texts) = texts else { return Ok(Ok(None)) };
        let after = texts.pop().unwrap_or_default();
        let hunks = match &change.before {
            None => vec![Hunk { removed: 0..0, added: 0..after.matches('\n').count() }],
            Some(before) => {
                let asked = [&["diff"][..], &git::PLAIN_DIFF, &[before, &change.after, "--"]];
                match self.git.objects(&asked.concat())? {
                    Ok(diff) => git::hunks(&String::from_utf8_lossy(&diff)),
                    Err(bound) => return Ok(Err(bound)),
                }
            }
        };
        Ok(Ok(Some(Edit { before: texts.pop().unwrap_or_default(), after, hunks })))
    }

    /// Returns the files of a language in a commit, as a repository named `name`, and its files that are left out: links, and
    /// files that are not UTF-8. Hidden files do not count. The commit must first be [checked](Self::check).
    ///
    /// # Errors
    /// The commit cannot be read.
    pub fn files(
        &self,
        commit: &str,
        name: &str,
        language: Language,
    ) -> Result<BoundedResult<(Repository, Vec<LeftOutFile>)>> {
        let (mut found, mut left_out): (Vec<(String, String)>, _) = (Vec::new(), Vec::new());
        let arguments = ["ls-tree", "-r", "-z", commit, "--"];
        let is_whole = self.git.for_each_part(0, &arguments, |entry| {
            match source_entry(entry, language) {
                Some(Ok((path, id))) => found.push((path.to_owned(), id.to_owned())),
                Some(Err(file)) => left_out.push(file),
                None => {}
            }
            if found.len() + left_out.len() > MOST_FILES {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        match is_whole {
            Ok(true) => {}
            Ok(false) => return Ok(Err(Bound::Files)),
            Err(bound) => return Ok(Err(bound)),
        }
        let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (path, id) in found {
            paths.entry(id).or_default().push(path);
        }
        let ids: Vec<&str> = paths.keys().map(String::as_str).collect();
        let numbers: Vec<u64> = paths.values().map(|paths| paths.len() as u64).collect();
        let mut count = ByteCount::default();
        let accept = |number: usize, bytes| count.add(bytes, numbers[number]);
        let contents = match self.git.contents(&ids, accept)? {
            Ok(contents) => contents,
            Err(bound) => return Ok(Err(bound)),
        };
        let (mut files, mut lines): (Vec<SourceFile>, _) = (Vec::new(), LineCount::default());
        for (paths, content) in paths.into_values().zip(contents) {
            let Ok(text) = String::from_utf8(content).map(universal_newlines) else {
                let reason = LeftOutReason::Encoding;
                left_out.extend(paths.into_iter().map(|path| LeftOutFile { path, reason }));
                continue;
            };
            if let Err(bound) = lines.add(&text, paths.len()) {
                return Ok(Err(bound));
            }
            let file = |path| SourceFile {
                path: format!("{name}/{path}"),
                text: text.clone(),
                same_as: 0,
            };
            files.extend(paths.iter().map(file));
        }
        files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        for (number, file) in (0..).zip(&mut files) {
            file.same_as = number;
        }
        Ok(Ok((Repository { name: name.to_owned(), files }, left_out)))
    }

    /// Returns the lines that any commit before `HEAD` added to files of a language, each with the date of the first such
    /// commit; or a commit so large that the history cannot be read.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn lines(&self, language: Language) -> Result<Result<LineHistory, SkippedCommit>> {
        LineHistory::read(&self.git, &mut self.sizes.borrow_mut(), language)
    }
}

/// Returns the path and object of an entry that `git ls-tree` lists, if it is a source file: `<mode> blob <id>`, a tab and the
/// path. The error is a source file that is left out.
fn source_entry(
    entry: &[u8],
    language: Language,
) -> Option<std::result::Result<(&str, &str), LeftOutFile>> {
    let tab = memchr::memchr(b'\t', entry)?;
    let head = str::from_utf8(&entry[..tab]).ok()?;
    let [mode, "blob", id] = head.split(' ').collect::<Vec<_>>()[..] else { return None };
    let shown = String::from_utf8_lossy(&entry[tab + 1..]);
    if !is_source(&shown, language) {
        return None;
    }
    let left_out = |reason| Some(Err(LeftOutFile { path: shown.to_string(), reason }));
    match str::from_utf8(&entry[tab + 1..]) {
        _ if mode == "120000" => left_out(LeftOutReason::Link),
        Err(_) => left_out(LeftOutReason::Name),
        Ok(path) => is_file(mode).then_some(Ok((path, id))),
    }
}

/// Returns the text of a file, with `\r\n` read as `\n`; `None` if it is not UTF-8, has other line ends, or has too many lines.
fn text(content: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(content).ok()?;
    let ends = text.matches('\n').count();
    if ends > MOST_TEXT_LINES {
        return None;
    }
    let text = universal_newlines(text);
    (text.matches('\n').count() == ends).then_some(text)
}

fn folder_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// Returns true if git's mode of an entry is the mode of a file, not of a link or a repository inside the repository.
fn is_file(mode: &str) -> bool {
    matches!(mode, "100644" | "100755")
}

/// Returns true if a path leads to a source file that a walk over the repository would find.
fn is_source(path: &str, language: Language) -> bool {
    language.holds(path)
        && path_names(path).is_ok_and(|names| !names.iter().any(|name| name.starts_with('.')))
}

/// Checks a day, `2024-01-31`.
fn check_day(day: &str) -> Result<()> {
    let numbers: Vec<&str> = day.split('-').collect();
    let number = |text: &str, digits: usize| -> Option<u32> {
        let is_plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse().ok())?
    };
    // Greatest number of days of each month.
    const DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let is_day = match numbers[..] {
        [year, month, day] => {
            let most = number(month, 2).and_then(|month| DAYS.get(month.checked_sub(1)? as usize));
            let day = number(day, 2);
            number(year, 4).is_some()
                && most.zip(day).is_some_and(|(most, day)| (1..=*most).contains(&day))
        }
        _ => false,
    };
    if is_day {
        Ok(())
    } else {
        Err(Error::from_refusal(
            message!["the ", UserChoice::FirstDay, format!(": '{day}' is not a date")],
            "write the date as in 2024-01-31",
        ))
    }
}

#[cfg(test)]
mod tests;
