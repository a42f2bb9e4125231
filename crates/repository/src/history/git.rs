//! The program `git`, run on one repository.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;

use repoformer_store::error::{Error, Result};
use repoformer_store::program::program;

use super::bound::{Bound, BoundedResult};
use super::own::OwnFolder;

/// Option for dates in UTC.
pub(super) const DATES: &str = "--date=format-local:%Y-%m-%dT%H:%M:%SZ";

/// Options for a diff without context that is independent of settings.
pub(super) const PLAIN_DIFF: [&str; 12] = [
    "--unified=0",
    "--inter-hunk-context=0",
    "--diff-algorithm=histogram",
    "--indent-heuristic",
    "--no-color",
    "--no-ext-diff",
    // Otherwise, another git would diff a submodule, with that submodule's settings and history.
    "--submodule=short",
    "--ignore-submodules=all",
    "--no-textconv",
    "--no-prefix",
    "--text",
    "-O/dev/null",
];

/// Options for a log that is independent of settings.
pub(super) const PLAIN_LOG: [&str; 5] =
    ["log", "--no-show-signature", "--no-mailmap", "--encoding=UTF-8", DATES];

/// Git's environment variables that stay unchanged: paths of its programs and its user's settings.
const KEPT: [&str; 2] = ["GIT_CONFIG", "GIT_EXEC_PATH"];

/// Settings that override the user's own: unescaped names, no attributes, and no program that watches files.
const SETTINGS: [&str; 8] = [
    "core.attributesFile=/dev/null",
    "core.quotePath=false",
    "core.fsmonitor=false",
    "core.bigFileThreshold=64m",
    "log.showRoot=true",
    "log.follow=false",
    "diff.submodule=short",
    "submodule.recurse=false",
];

/// Environment variables: the same output everywhere, the history as it was committed, and no fetching by any protocol.
const VARIABLES: [(&str, &str); 9] = [
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
];

/// Greatest number of bytes kept of a part of a program's output, such as a line.
const MOST_PART: usize = 16 << 20;

/// Run of lines that a commit replaced with another run; lines are 0-based and end with `\n`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Removed lines of the parent's file; if empty, its start is the position of the new lines.
    pub removed: Range<usize>,
    /// Added lines of the commit's file.
    pub added: Range<usize>,
}

/// Program that reads a repository.
#[derive(Debug, Clone)]
pub(super) struct Git {
    /// Path of the repository, for messages.
    dir: PathBuf,
    own: Arc<OwnFolder>,
}

impl Git {
    pub(super) fn new(dir: &Path, own: OwnFolder) -> Self {
        Self { dir: dir.to_owned(), own: Arc::new(own) }
    }

    /// Returns true if the history ends before its first commit.
    pub(super) fn is_shallow(&self) -> bool {
        self.own.is_shallow()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program("git");
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("GIT_") && !KEPT.iter().any(|kept| text.starts_with(kept)) {
                command.env_remove(name);
            }
        }
        // Git also looks for files of attributes in its working directory.
        command.envs(VARIABLES).current_dir(self.own.path()).env("GIT_DIR", self.own.path());
        command.env("GIT_ATTR_SOURCE", self.own.tree_without_files());
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts a git program with limited memory, since a commit's message or a tag of a few megabytes may expand to gigabytes.
    fn start(&self, command: &mut Command) -> Result<Child> {
        let child = command.spawn().map_err(|e| self.not_run(&e))?;
        limit_memory(&child);
        Ok(child)
    }

    fn refusal(&self, reason: String) -> Error {
        Error::Repository { path: self.dir.clone(), reason: reason.into() }
    }

    fn not_run(&self, error: &std::io::Error) -> Error {
        self.refusal(format!("cannot run git to read its history: {error}; install git"))
    }

    fn failure(&self, subcommand: &str, said: &[u8]) -> Error {
        let said = String::from_utf8_lossy(said);
        let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
        self.refusal(format!("git {subcommand} failed: {}", said.trim()))
    }

    fn output(&self, arguments: &[&str]) -> Result<Output> {
        let child = self.start(&mut self.command(arguments))?;
        child.wait_with_output().map_err(|e| self.not_run(&e))
    }

    /// Returns the output of a subcommand as text; invalid UTF-8 becomes U+FFFD.
    ///
    /// # Errors
    /// The subcommand fails.
    pub(super) fn text(&self, arguments: &[&str]) -> Result<String> {
        let output = self.output(arguments)?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(self.failure(arguments[0], &output.stderr))
        }
    }

    /// Returns the output of a subcommand that reads objects of a commit; the subcommand fails if one of them is damaged.
    pub(super) fn objects(&self, arguments: &[&str]) -> Result<BoundedResult<Vec<u8>>> {
        let output = self.output(arguments)?;
        Ok(if output.status.success() { Ok(output.stdout) } else { Err(Bound::Form) })
    }

    /// Passes each part of a subcommand's output to `each`, until `each` breaks. A part does not include the byte that ends it,
    /// and has at most [`MOST_PART`] bytes; the rest is dropped. Returns true if all parts were passed on. The subcommand fails
    /// if an object is damaged.
    pub(super) fn for_each_part(
        &self,
        end: u8,
        arguments: &[&str],
        mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<BoundedResult<bool>> {
        let mut child = self.start(self.command(arguments).stderr(Stdio::null()))?;
        let cannot_read = |e| Error::reading(&self.dir, "read the history of this repository", e);
        if let Some(output) = child.stdout.take() {
            let (mut output, mut part) = (BufReader::with_capacity(1 << 20, output), Vec::new());
            while read_part(&mut output, end, &mut part).map_err(cannot_read)? {
                if each(&part).is_break() {
                    stop(&mut child);
                    return Ok(Ok(false));
                }
            }
        }
        let is_read = child.wait().map_err(cannot_read)?.success();
        Ok(if is_read { Ok(true) } else { Err(Bound::Form) })
    }

    /// Reads the contents of files. `accept` is called with the index and size of each file before it is read; if it refuses,
    /// reading ends.
    ///
    /// # Errors
    /// A file is missing from the repository.
    pub(super) fn contents(
        &self,
        ids: &[&str],
        mut accept: impl FnMut(usize, u64) -> BoundedResult<()>,
    ) -> Result<BoundedResult<Vec<Vec<u8>>>> {
        let mut command = self.command(&["cat-file", "--batch"]);
        let mut child = self.start(command.stdin(Stdio::piped()).stderr(Stdio::null()))?;
        let asked: String = ids.iter().flat_map(|id| [id, "\n"]).collect();
        let input = child.stdin.take();
        // Written while reading: otherwise, both pipes could fill up.
        let asking = std::thread::spawn(move || {
            // A program that has ended has read a damaged object.
            let _ = input.map(|mut input| input.write_all(asked.as_bytes()));
        });
        let cannot_read = |e| Error::reading(&self.dir, "read files of this repository", e);
        let (mut contents, mut is_lacking) = (Vec::with_capacity(ids.len()), false);
        if let Some(output) = child.stdout.take() {
            let mut output = BufReader::with_capacity(1 << 16, output);
            let mut answered = 0;
            // One answer per file, unless the program ends early.
            while let Some(head) = Head::read(&mut output).map_err(cannot_read)? {
                match head {
                    Head::Missing => is_lacking = true,
                    Head::Object { kind, size, .. } => {
                        let is_file = if kind == "blob" { Ok(()) } else { Err(Bound::Form) };
                        if let Err(refused) = is_file.and_then(|()| accept(answered, size)) {
                            stop(&mut child);
                            return Ok(Err(refused));
                        }
                        match exactly(&mut output, size) {
                            Ok(content) => contents.push(content),
                            Err(e) if e.kind() == ErrorKind::UnexpectedEof => break,
                            Err(e) => return Err(cannot_read(e)),
                        }
                    }
                }
                answered += 1;
            }
        }
        let _ = asking.join();
        let is_done = child.wait().map_err(cannot_read)?.success();
        match () {
            () if is_lacking => Err(self.lacks()),
            () if is_done && contents.len() == ids.len() => Ok(Ok(contents)),
            () => Ok(Err(Bound::Form)),
        }
    }

    fn lacks(&self) -> Error {
        self.refusal(
            "lacks the content of files, as a partial clone does; fetch them with `git fetch --refetch --no-filter`, or clone it whole"
                .into(),
        )
    }
}

/// Answer to a request for a tree.
pub(super) enum Object {
    /// Id of a tree, and its content.
    Tree(String, Vec<u8>),
    /// Id of a tree that is longer than requested.
    LongTree(String),
    /// Kind of an object that is not a tree.
    Other(String),
    /// No object has this id.
    Missing,
    /// Damaged object, at which the program ends.
    Damaged,
}

/// `git cat-file` process that returns one object after another.
#[derive(Debug)]
pub(super) struct ObjectReader {
    git: Git,
    child: Child,
    /// Input of the process; `None` once the process is to end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl ObjectReader {
    pub(super) fn start(git: &Git) -> Result<Self> {
        let mut command = git.command(&["cat-file", "--batch"]);
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = git.start(&mut command)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or_else(|| git.not_run(&ErrorKind::BrokenPipe.into()))?;
        let output = BufReader::with_capacity(1 << 16, output);
        Ok(Self { git: git.clone(), child, input, output })
    }

    /// Returns the id of the process.
    #[cfg(all(test, target_os = "linux"))]
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Reads a tree of at most `most` bytes.
    ///
    /// # Errors
    /// The program cannot be run.
    pub(super) fn read(&mut self, revision: &str, most: u64) -> Result<Object> {
        let git = self.git.clone();
        match self.answer(revision, most) {
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                *self = Self::start(&git)?;
                Ok(Object::Damaged)
            }
            answer => {
                answer.map_err(|e| Error::reading(&git.dir, "read folders of this repository", e))
            }
        }
    }

    fn answer(&mut self, revision: &str, most: u64) -> std::io::Result<Object> {
        if let Some(input) = &mut self.input {
            input.write_all(format!("{revision}\n").as_bytes())?;
        }
        let (id, kind, size) = match Head::read(&mut self.output)? {
            Some(Head::Object { id, kind, size }) => (id, kind, size),
            Some(Head::Missing) => return Ok(Object::Missing),
            None => return Err(ErrorKind::UnexpectedEof.into()),
        };
        if kind == "tree" && size <= most {
            return Ok(Object::Tree(id, exactly(&mut self.output, size)?));
        }
        let end = size.saturating_add(1);
        match std::io::copy(&mut (&mut self.output).take(end), &mut std::io::sink())? {
            read if read < end => Err(ErrorKind::UnexpectedEof.into()),
            _ if kind == "tree" => Ok(Object::LongTree(id)),
            _ => Ok(Object::Other(kind)),
        }
    }

    /// Returns the error that the repository lacks objects.
    pub(super) fn lacks(&self) -> Error {
        self.git.lacks()
    }
}

impl Drop for ObjectReader {
    fn drop(&mut self) {
        drop(self.input.take());
        stop(&mut self.child);
    }
}

/// Greatest number of bytes of private memory of a git program. The program may start without the limit, but cannot read much
/// before the limit applies.
#[cfg(target_os = "linux")]
const MOST_MEMORY: u64 = 2 << 30;

#[cfg(target_os = "linux")]
fn limit_memory(child: &Child) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let limit = Rlimit { current: Some(MOST_MEMORY), maximum: Some(MOST_MEMORY) };
    // A program that has ended needs no limit.
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let _ = pid.map(|pid| prlimit(Some(pid), Resource::Data, limit));
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_child: &Child) {}

/// Ends a program whose remaining output is not needed.
fn stop(child: &mut Child) {
    // It may have ended already.
    let _ = child.kill();
    let _ = child.wait();
}

/// Reads up to a byte, which is left out; only the first [`MOST_PART`] bytes are kept. Returns false at the end.
fn read_part(output: &mut impl BufRead, end: u8, part: &mut Vec<u8>) -> std::io::Result<bool> {
    part.clear();
    let mut is_begun = false;
    loop {
        let bytes = output.fill_buf()?;
        if bytes.is_empty() {
            return Ok(is_begun);
        }
        is_begun = true;
        let found = memchr::memchr(end, bytes);
        let length = found.unwrap_or(bytes.len());
        part.extend_from_slice(&bytes[..length.min(MOST_PART - part.len())]);
        output.consume(length + usize::from(found.is_some()));
        if found.is_some() {
            return Ok(true);
        }
    }
}

/// First line of an answer of `git cat-file --batch`.
enum Head {
    /// `<id> <type> <size>`, followed by the content and a newline.
    Object { id: String, kind: String, size: u64 },
    /// `<id> missing`.
    Missing,
}

impl Head {
    /// Reads the first line of an answer; `None` at the end.
    fn read(output: &mut impl BufRead) -> std::io::Result<Option<Self>> {
        let mut head = String::new();
        if output.read_line(&mut head)? == 0 {
            return Ok(None);
        }
        let words: Vec<&str> = head.trim_end().split(' ').collect();
        let [id, kind, size] = words[..] else { return Ok(Some(Self::Missing)) };
        let size = size.parse().map_err(|_| ErrorKind::InvalidData)?;
        Ok(Some(Self::Object { id: id.to_owned(), kind: kind.to_owned(), size }))
    }
}

/// Reads `size` bytes, and the newline after them.
fn exactly(output: &mut impl Read, size: u64) -> std::io::Result<Vec<u8>> {
    let size = usize::try_from(size).map_err(|_| ErrorKind::InvalidData)?;
    let mut bytes = vec![0; size + 1];
    output.read_exact(&mut bytes)?;
    bytes.pop();
    Ok(bytes)
}

/// Returns the hunks of a diff without context.
pub(super) fn hunks(diff: &str) -> Vec<Hunk> {
    diff.lines().filter_map(hunk).collect()
}

/// Reads `@@ -3,2 +3 @@`: 1-based lines, and their number if it is not 1. No other line of a diff begins like this.
pub(super) fn hunk(line: &str) -> Option<Hunk> {
    let mut words = line.strip_prefix("@@ ")?.split(' ');
    let mut range = |sign| -> Option<Range<usize>> {
        let (first, count) = {
            let text = words.next()?.strip_prefix(sign)?;
            text.split_once(',').unwrap_or((text, "1"))
        };
        let (first, count): (usize, usize) = (first.parse().ok()?, count.parse().ok()?);
        // For an empty range, git names the line before.
        let start = if count == 0 { first } else { first.checked_sub(1)? };
        Some(start..start + count)
    };
    let removed = range('-')?;
    Some(Hunk { removed, added: range('+')? })
}
