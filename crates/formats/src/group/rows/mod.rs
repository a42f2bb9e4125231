//! Rows of files and of repositories, read as streams: Parquet, JSON lines, tar archives.
//!
//! Rows of all formats are checked here. An invalid row is reported and skipped.

mod jsonl;
mod parquet;
mod tar;

use std::io::Read;
use std::path::{Path, PathBuf};

use repoformer_core::repository::corpus::path_names;
use repoformer_store::error::{Error, Result};
use repoformer_store::files::File;
use repoformer_store::jsonl::{PARQUET, open};
use repoformer_text::language::Language;
use serde::{Deserialize, Serialize};

use crate::convert::recognise_archive;

/// Names of the field with the repository's name: in The Stack and StarCoderData, The Stack v2, `codeparrot/github-code`, and
/// others.
const REPOSITORY: [&str; 4] = ["max_stars_repo_name", "repo_name", "repository_name", "repo"];
/// Names of the field with the path in the repository.
const PATH: [&str; 4] = ["max_stars_repo_path", "path", "filepath", "file_path"];
/// Names of the field with the text; `code` is `codeparrot/github-code`'s.
const TEXT: [&str; 2] = ["content", "code"];
/// Names of the field with the stars, which may be missing.
const STARS: [&str; 4] = ["max_stars_count", "star_events_count", "stars_count", "stars"];
/// Name of the field with the files in a row that is a repository.
const FILES: &str = "files";
/// Hint for rows of The Stack v2 that have ids of texts instead of texts.
const NO_TEXT: &str = "The Stack v2 has no texts, only their `blob_id`: download the texts, and \
                       add each as a field `content` next to `path`";

/// Greatest size of an accepted file; no source file is larger.
const LONGEST: usize = 64 << 20;
/// Number of an input's problems that are kept with their text; further ones are only counted.
const LISTED: usize = 100;
/// Number of characters of an external name that a message shows.
const SHOWN: usize = 200;

/// Accepted file of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRow<'a> {
    /// Name of the repository, often `owner/name`.
    pub repository: &'a str,
    /// Path in the repository.
    pub path: &'a str,
    /// Text, unchanged.
    pub text: &'a str,
    /// Stars of the repository; 0 if they are unknown.
    pub stars: u64,
}

/// Settings for which files of rows are accepted, and how long they may be.
#[derive(Debug, Clone, Copy)]
pub struct RowSettings {
    /// Language of the files; `None` for all known languages.
    pub language: Option<Language>,
    /// Greatest size of a repository in bytes.
    pub max_repository: u64,
}

/// Problem in the form in which it is kept until the work is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Problem {
    path: PathBuf,
    line: Option<usize>,
    reason: String,
    hint: Option<String>,
}

impl Problem {
    pub(super) fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, reason: reason.into(), hint: None }
    }

    fn from_error(path: &Path, error: Error) -> Self {
        let hint = error.hint().map(|hint| hint.to_string());
        match error {
            Error::Record { path, line, reason, .. } => {
                Self { path, line: Some(line), reason: reason.to_string(), hint }
            }
            Error::Form { path, reason, .. } | Error::Artifact { path, reason, .. } => {
                Self { path, line: None, reason, hint }
            }
            Error::Repository { path, reason } => Self::new(&path, reason.to_string()),
            Error::SourceFile { path, reason } => Self::new(&path, format!("left out: {reason}")),
            Error::Io { path, action, reason, .. } => {
                Self::new(&path, format!("cannot {action}: {reason}"))
            }
            other => Self::new(path, other.to_string()),
        }
    }

    pub(super) fn into_error(self) -> Error {
        match (self.line, self.hint) {
            (Some(line), hint) => Error::Record {
                path: self.path,
                line,
                reason: self.reason.into(),
                hint: hint.map(Into::into),
            },
            (None, Some(hint)) => {
                Error::Form { path: self.path, reason: self.reason, hint: hint.into() }
            }
            (None, None) => Error::Repository { path: self.path, reason: self.reason.into() },
        }
    }
}

/// Counts of the rows of some inputs, and their problems.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Number of files in rows, accepted or not.
    pub(super) rows: u64,
    /// Number of accepted files.
    pub(super) taken: u64,
    /// Number of files of other languages.
    pub(super) other_languages: u64,
    /// Number of files whose first line was StarCoderData's marks.
    pub(super) marked: u64,
    /// Number of rows and parts of files that are broken or too large.
    pub(super) broken: u64,
    /// First of these problems.
    pub(super) problems: Vec<Problem>,
    /// Notes on archives.
    pub(super) notes: Vec<String>,
}

impl Tally {
    pub(super) fn problem(&mut self, problem: Problem) {
        self.broken += 1;
        if self.problems.len() < LISTED {
            self.problems.push(problem);
        }
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < LISTED {
            self.notes.push(note);
        }
    }
}

/// Receiver of the files of an input.
pub(super) struct Rows<'a> {
    input: &'a Path,
    settings: RowSettings,
    pub(super) tally: Tally,
    emit: &'a mut dyn FnMut(FileRow<'_>) -> Result<()>,
}

/// Position of a row.
#[derive(Debug, Clone, Copy)]
enum RowPosition {
    /// 1-based line of a file of JSON lines.
    Line(usize),
    /// 1-based row of a table.
    Row(u64),
    /// None: the file's name identifies it.
    Archive,
}

impl<'a> Rows<'a> {
    pub(super) fn new(
        input: &'a Path,
        settings: RowSettings,
        tally: Tally,
        emit: &'a mut dyn FnMut(FileRow<'_>) -> Result<()>,
    ) -> Self {
        Self { input, settings, tally, emit }
    }

    /// Reads the input, whose format is recognised by its content.
    ///
    /// # Errors
    /// The disk fails, or `emit` fails. A defect of the input itself is a problem, not an error.
    pub(super) fn read(&mut self, unpack_in: &Path) -> Result<()> {
        let path = self.input;
        let mut start = Vec::new();
        let file = File::open(path).map_err(|e| Error::reading(path, "open this file", e))?;
        let read = file.take(PARQUET.len() as u64).read_to_end(&mut start);
        read.map_err(|e| Error::reading(path, "read this file", e))?;
        if start.is_empty() {
            self.problem(None, "is empty");
            return Ok(());
        }
        if start == PARQUET {
            return self.parquet();
        }
        let opened = open(path).and_then(|input| recognise_archive(path, input));
        match opened {
            Ok((true, input)) => self.archive(input, unpack_in),
            Ok((false, input)) => self.lines(input),
            Err(error) => self.note_error(error),
        }
    }

    /// Records an error of the input's content; an error of the disk ends the work.
    fn note_error(&mut self, error: Error) -> Result<()> {
        match &error {
            Error::Io { reason, .. } if reason.raw_os_error().is_some() => Err(error),
            _ => {
                self.tally.problem(Problem::from_error(self.input, error));
                Ok(())
            }
        }
    }

    fn problem(&mut self, place: Option<RowPosition>, reason: impl Into<String>) {
        let (line, reason) = match place {
            Some(RowPosition::Line(line)) => (Some(line), reason.into()),
            Some(RowPosition::Row(row)) => (None, format!("row {row}: {}", reason.into())),
            Some(RowPosition::Archive) | None => (None, reason.into()),
        };
        self.tally.problem(Problem { path: self.input.to_owned(), line, reason, hint: None });
    }

    /// Accepts a file in a row, or records its problem.
    fn file(
        &mut self,
        place: RowPosition,
        repository: &[u8],
        path: &[u8],
        text: &[u8],
        stars: u64,
    ) -> Result<()> {
        self.tally.rows += 1;
        let names = std::str::from_utf8(repository).and_then(|name| {
            // The Stack v2's paths begin at the root of the repository.
            std::str::from_utf8(path).map(|path| (name, path.strip_prefix('/').unwrap_or(path)))
        });
        let Ok((repository, path)) = names else {
            let names = [repository, path].map(|name| shorten_name(&String::from_utf8_lossy(name)));
            self.problem(Some(place), format!("{}: a name that is not UTF-8", names.join(": ")));
            return Ok(());
        };
        let wrong = |reason: String| {
            format!("{}: {}: {reason}", shorten_name(repository), shorten_name(path))
        };
        let path = match path_names(repository).and_then(|_| path_names(path)) {
            Ok(names) => names.join("/"),
            Err(reason) => {
                self.problem(Some(place), wrong(reason.to_string().chars().take(SHOWN).collect()));
                return Ok(());
            }
        };
        let path = &*path;
        let is_taken = match self.settings.language {
            Some(language) => language.holds(path),
            None => Language::of_path(path).is_some(),
        };
        if !is_taken {
            self.tally.other_languages += 1;
            return Ok(());
        }
        if text.len() > LONGEST {
            let reason = format!("longer than {} MiB", LONGEST >> 20);
            self.problem(Some(place), wrong(reason));
            return Ok(());
        }
        let text = match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => {
                let line = 1 + memchr::memchr_iter(b'\n', &text[..error.valid_up_to()]).count();
                self.problem(Some(place), wrong(format!("not UTF-8 (its line {line})")));
                return Ok(());
            }
        };
        let plain = without_marks(text);
        self.tally.marked += u64::from(plain.len() < text.len());
        self.tally.taken += 1;
        (self.emit)(FileRow { repository, path, text: plain, stars })
    }
}

/// Shortens an external name and removes line ends.
fn shorten_name(name: &str) -> String {
    let cut: String = name.chars().take(SHOWN).collect();
    cut.escape_debug().to_string()
}

/// Removes the first line that StarCoderData adds to about half of its files, a random part of
/// `<reponame>…<filename>…<gh_stars>…`: these are marks for the model, not the file's own text.
fn without_marks(text: &str) -> &str {
    let Some((first, rest)) = text.split_once('\n') else { return text };
    let mut line = first;
    for mark in ["<reponame>", "<filename>", "<gh_stars>"] {
        if let Some(after) = line.strip_prefix(mark) {
            line = &after[after.find('<').unwrap_or(after.len())..];
        }
    }
    if line.is_empty() && !first.is_empty() { rest } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The forms come from StarCoder's model card; the other texts begin as source files may.
    #[test]
    fn marks_of_starcoderdata_are_taken_away_and_nothing_else() {
        for marks in [
            "<reponame>a/b<filename>c/d.py<gh_stars>10-100",
            "<filename>c/d.py<gh_stars>0",
            "<gh_stars>1000+",
            "<reponame>a/b",
        ] {
            assert_eq!(without_marks(&format!("{marks}\nx = 1\n")), "x = 1\n");
        }
        for text in ["", "\nx", "<gh_stars>0", "<gh_stars>0<b>\nx", "<html>\nx", "# <reponame>a\nx"]
        {
            assert_eq!(without_marks(text), text);
        }
    }
}
