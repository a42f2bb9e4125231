//! The program `git`, asked about one repository.

use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use repoformer_store::error::{Error, Result};
use repoformer_store::program::program;

/// Dates are those of UTC.
pub(super) const DATES: &str = "--date=format-local:%Y-%m-%dT%H:%M:%SZ";

/// A diff of which no setting changes anything, without context.
pub(super) const PLAIN_DIFF: [&str; 10] = [
    "--unified=0",
    "--inter-hunk-context=0",
    "--diff-algorithm=histogram",
    "--indent-heuristic",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-prefix",
    "--text",
    "-O/dev/null",
];

/// A log of which no setting changes anything.
pub(super) const PLAIN_LOG: [&str; 5] =
    ["log", "--no-show-signature", "--no-mailmap", "--encoding=UTF-8", DATES];

/// Variables of git that stay as they are: where its programs and its user's settings lie.
const KEPT: [&str; 2] = ["GIT_CONFIG", "GIT_EXEC_PATH"];

/// Settings that hold whatever a repository says: names as they are, and no program that watches its files.
const SETTINGS: [&str; 4] =
    ["core.quotePath=false", "core.fsmonitor=false", "log.showRoot=true", "log.follow=false"];

/// Variables: the same output everywhere, the history as it was committed, and nothing fetched by any protocol.
const VARIABLES: [(&str, &str); 9] = [
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
];

/// Most bytes of messages that are kept.
const MOST_SAID: u64 = 1 << 16;

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

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program("git");
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("GIT_") && !KEPT.iter().any(|kept| text.starts_with(kept)) {
                command.env_remove(name);
            }
        }
        command.envs(VARIABLES).arg("-C").arg(&self.dir);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn refused(&self, reason: String) -> Error {
        Error::Repository { path: self.dir.clone(), reason: reason.into() }
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
        let mut child = self.command(arguments).spawn().map_err(|e| self.not_run(&e))?;
        let said = said(&mut child);
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
            false => Err(self.failed(arguments[0], &said.join().unwrap_or_default())),
        }
    }

    /// Contents of files.
    ///
    /// # Errors
    /// The repository lacks one, or it is no file.
    pub(super) fn contents(&self, ids: &[&str]) -> Result<Vec<Vec<u8>>> {
        let mut command = self.command(&["cat-file", "--batch"]);
        let mut child = command.stdin(Stdio::piped()).spawn().map_err(|e| self.not_run(&e))?;
        let said = said(&mut child);
        let asked: String = ids.iter().flat_map(|id| [id, "\n"]).collect();
        let input = child.stdin.take();
        // Asked beside reading: both pipes could fill up.
        let asking = std::thread::spawn(move || {
            // A program that ended says why itself.
            let _ = input.map(|mut input| input.write_all(asked.as_bytes()));
        });
        let cannot_read = |e| Error::reading(&self.dir, "read files of this repository", e);
        let mut contents = Vec::with_capacity(ids.len());
        if let Some(output) = child.stdout.take() {
            let mut output = BufReader::with_capacity(1 << 16, output);
            // One answer for each, unless the program ends before.
            while let Some(answer) = content(&mut output).map_err(cannot_read)? {
                contents.push(answer);
            }
        }
        let _ = asking.join();
        let is_done = child.wait().map_err(cannot_read)?.success() && contents.len() == ids.len();
        if !is_done {
            return Err(self.failed("cat-file", &said.join().unwrap_or_default()));
        }
        contents.into_iter().collect::<Option<Vec<_>>>().ok_or_else(|| {
            self.refused(
                "lacks the content of files, as a partial clone does; fetch them with `git fetch --refetch --no-filter`, or clone it whole"
                    .into(),
            )
        })
    }
}

/// Reads what a program says, beside its output; at most [`MOST_SAID`] bytes are kept.
fn said(child: &mut Child) -> JoinHandle<Vec<u8>> {
    let messages = child.stderr.take();
    std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(messages) = messages {
            let mut messages = messages.take(MOST_SAID);
            let _ = messages.read_to_end(&mut said);
            let _ = std::io::copy(&mut messages.into_inner(), &mut std::io::sink());
        }
        said
    })
}

/// Reads one answer of `git cat-file --batch`: `<id> <type> <size>`, the content and a newline, or `<id> missing`, which has no
/// content. `None` at the end.
fn content(output: &mut impl BufRead) -> std::io::Result<Option<Option<Vec<u8>>>> {
    let mut head = String::new();
    if output.read_line(&mut head)? == 0 {
        return Ok(None);
    }
    let words: Vec<&str> = head.trim_end().split(' ').collect();
    let [_, kind, size] = words[..] else { return Ok(Some(None)) };
    let invalid = |_| std::io::Error::from(std::io::ErrorKind::InvalidData);
    let mut bytes = vec![0; size.parse::<usize>().map_err(invalid)? + 1];
    output.read_exact(&mut bytes)?;
    bytes.pop();
    Ok(Some((kind == "blob").then_some(bytes)))
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
