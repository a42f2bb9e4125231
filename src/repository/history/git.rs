//! The program `git`, asked about one repository.

use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};

/// Dates are those of UTC.
pub(super) const DATES: &str = "--date=format-local:%Y-%m-%dT%H:%M:%SZ";

/// A diff of which no setting changes anything, without context.
pub(super) const PLAIN_DIFF: [&str; 8] = [
    "--unified=0",
    "--inter-hunk-context=0",
    "--diff-algorithm=histogram",
    "--indent-heuristic",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-prefix",
];

/// Variables by which git would look elsewhere.
const ELSEWHERE: [&str; 6] = [
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
];

/// Run of lines that a commit replaced by another; lines are 0-based, and end with `\n`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Lines of the parent's file that were removed; where it is empty, its start is where the new lines were put.
    pub removed: Range<usize>,
    /// Lines of the commit's file that were added.
    pub added: Range<usize>,
}

/// Program that reads a repository.
#[derive(Debug)]
pub(super) struct Git {
    dir: PathBuf,
}

impl Git {
    pub(super) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        // A program that a checkout names watches its files.
        let settings = ["-c", "core.quotePath=false", "-c", "core.fsmonitor=false"];
        command.arg("-C").arg(&self.dir).args(settings).args(arguments);
        ELSEWHERE.iter().for_each(|variable| {
            command.env_remove(variable);
        });
        for (variable, value) in [
            ("LC_ALL", "C"),
            ("TZ", "UTC"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_PAGER", "cat"),
        ] {
            command.env(variable, value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn refused(&self, reason: String) -> Error {
        Error::Repository { path: self.dir.clone(), reason }
    }

    fn not_run(&self, error: &std::io::Error) -> Error {
        self.refused(format!("git, which reads its history, cannot be run: {error}; install git"))
    }

    fn failed(&self, subcommand: &str, said: &[u8]) -> Error {
        let said = String::from_utf8_lossy(said);
        let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
        self.refused(format!("git {subcommand} failed: {}", said.trim()))
    }

    /// Output of a subcommand.
    pub(super) fn bytes(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let output = self.command(arguments).output().map_err(|e| self.not_run(&e))?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(self.failed(arguments[0], &output.stderr)),
        }
    }

    /// Output of a subcommand as text; what is not UTF-8 becomes U+FFFD.
    pub(super) fn text(&self, arguments: &[&str]) -> Result<String> {
        self.bytes(arguments).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Hands each line of a subcommand's output on, without its newline.
    pub(super) fn for_each_line(
        &self,
        arguments: &[&str],
        mut each: impl FnMut(&[u8]),
    ) -> Result<()> {
        let mut command = self.command(arguments);
        // Nobody reads messages while lines are read; they are few.
        command.stderr(Stdio::null());
        let mut child = command.spawn().map_err(|e| self.not_run(&e))?;
        let cannot_read = |e| Error::reading(&self.dir, "read the history of this repository", e);
        if let Some(output) = child.stdout.take() {
            let (mut output, mut line) = (BufReader::with_capacity(1 << 20, output), Vec::new());
            while output.read_until(b'\n', &mut line).map_err(cannot_read)? > 0 {
                each(line.strip_suffix(b"\n").unwrap_or(&line));
                line.clear();
            }
        }
        match child.wait().map_err(cannot_read)?.success() {
            true => Ok(()),
            false => Err(self.failed(arguments[0], b"")),
        }
    }

    /// Contents of objects; `None` for those that are missing or are no files.
    pub(super) fn contents(&self, ids: &[&str]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut command = self.command(&["cat-file", "--batch"]);
        let mut child = command.stdin(Stdio::piped()).spawn().map_err(|e| self.not_run(&e))?;
        let asked: String = ids.iter().flat_map(|id| [id, "\n"]).collect();
        let input = child.stdin.take();
        // Asked beside reading: both pipes could fill up.
        let asking = std::thread::spawn(move || {
            input.map_or(Ok(()), |mut input| input.write_all(asked.as_bytes()))
        });
        let cannot_read = |e| Error::reading(&self.dir, "read files of this repository", e);
        let mut contents = Vec::with_capacity(ids.len());
        if let Some(output) = child.stdout.take() {
            let mut output = BufReader::with_capacity(1 << 16, output);
            for _ in ids {
                contents.push(content(&mut output).map_err(cannot_read)?);
            }
        }
        let is_asked = asking.join().is_ok_and(|asked| asked.is_ok());
        let output = child.wait_with_output().map_err(cannot_read)?;
        match is_asked && output.status.success() && contents.len() == ids.len() {
            true => Ok(contents),
            false => Err(self.failed("cat-file", &output.stderr)),
        }
    }
}

/// Reads one answer of `git cat-file --batch`: `<id> <type> <size>`, the content and a newline, or `<id> missing`.
fn content(output: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut head = String::new();
    if output.read_line(&mut head)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let words: Vec<&str> = head.trim_end().split(' ').collect();
    let [_, kind, size] = words[..] else { return Ok(None) };
    let invalid = |_| std::io::Error::from(std::io::ErrorKind::InvalidData);
    let mut bytes = vec![0; size.parse::<usize>().map_err(invalid)? + 1];
    output.read_exact(&mut bytes)?;
    bytes.pop();
    Ok((kind == "blob").then_some(bytes))
}

/// Hunks of a diff without context.
pub(super) fn hunks(diff: &str) -> Vec<Hunk> {
    diff.lines().filter_map(hunk).collect()
}

/// Reads `@@ -3,2 +3 @@`: lines from 1, and their number where it is not 1. No other line of a diff begins so.
pub(super) fn hunk(line: &str) -> Option<Hunk> {
    let mut words = line.strip_prefix("@@ ")?.split(' ');
    let mut range = |sign| -> Option<Range<usize>> {
        let (first, count) = {
            let text = words.next()?.strip_prefix(sign)?;
            text.split_once(',').unwrap_or((text, "1"))
        };
        let (first, count): (usize, usize) = (first.parse().ok()?, count.parse().ok()?);
        // Of no lines, git names the one before.
        let start = if count == 0 { first } else { first.checked_sub(1)? };
        Some(start..start + count)
    };
    let removed = range('-')?;
    Some(Hunk { removed, added: range('+')? })
}
