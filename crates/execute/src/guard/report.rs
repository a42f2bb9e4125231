//! Reports of Python's test libraries, through a channel whose secret the code under test does not know.
//!
//! Any code can print a summary or choose an exit code. Therefore the interpreters of a command load a reporter (`reporter.py`, as
//! `sitecustomize`) before anything else. In pytest and unittest it begins a session on a socket of the guard, which answers with a secret;
//! the code under test is imported afterwards. Only messages with the secret count. A session ends with the counts of the library's own
//! results, and with the tests and parts of the library that were replaced meanwhile. [`Report::missing`] compares a report with the report
//! of the reference text.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};
use nix::sys::stat::fstat;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use serde::{Deserialize, Serialize};

/// Source of the reporter.
const REPORTER: &str = include_str!("reporter.py");
/// Environment variable of the reporter: number and inode of its socket.
const VARIABLE: &str = "_REPOFORMER_REPORT";
/// Lowest numbers to try for the command's descriptor: the first is above any that scripts use; the others are for systems that allow
/// fewer.
const LOWEST: [i32; 3] = [200, 50, 10];
/// Largest number of sessions of a run.
const MOST_SESSIONS: usize = 1000;
/// Maximum number of messages of a run, and of wrong ones: more can only be meant to keep the guard busy.
const MOST_MESSAGES: usize = 100_000;
const MOST_FORGED: usize = 1000;
/// Maximum total length of the names of changes, in bytes.
const LONGEST_CHANGES: usize = 256 << 10;

/// Sessions of test libraries in one run, as the libraries report them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Number of sessions that began.
    pub begun: usize,
    /// Number of sessions that ended.
    pub ended: usize,
    /// Number of tests that passed.
    pub passed: u64,
    /// Number of tests that failed, or could not be run.
    pub failed: u64,
    /// Number of tests that were skipped or failed as expected.
    pub skipped: u64,
    /// Tests and parts of the test libraries that were replaced, sorted.
    pub changed: Vec<String>,
    /// Number of messages without a secret, or after the end of their session.
    pub forged: usize,
}

impl Report {
    /// Returns whether this report of a reference text is complete and without failures, so that other reports can be compared with it.
    pub fn is_whole(&self) -> bool {
        self.begun > 0 && self.begun == self.ended && self.failed == 0 && self.forged == 0
    }

    /// Returns why a run with this report did not pass, compared with the [complete](Self::is_whole) report of the reference text.
    pub fn missing(&self, reference: &Self) -> Option<String> {
        let Self { begun, ended, passed, failed, skipped, .. } = self;
        if self.forged > 0 {
            return Some("a report of tests was forged".into());
        }
        if begun != ended || *begun < reference.begun {
            return Some("the tests ended without their report".into());
        }
        if *failed > 0 {
            return Some(format!("{failed} tests failed by their report"));
        }
        if *begun > reference.begun {
            return Some(format!(
                "{begun} runs of tests reported, {} with the reference text",
                reference.begun
            ));
        }
        if *skipped > reference.skipped {
            let usual = reference.skipped;
            return Some(format!("{skipped} tests were skipped, {usual} with the reference text"));
        }
        let new = self.changed.iter().find(|name| reference.changed.binary_search(name).is_err());
        if let Some(name) = new {
            return Some(format!("the tests or their library were changed: {name}"));
        }
        (*passed < reference.passed).then(|| {
            format!(
                "{passed} tests passed by their report, {} with the reference text",
                reference.passed
            )
        })
    }

    /// Combines the reports of several runs of the reference text: the tests that every run passes, and the changes of any run. `None` if
    /// their sessions differ.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Option<Self> {
        if !self.is_whole() || !other.is_whole() || self.begun != other.begun {
            return None;
        }
        self.passed = self.passed.min(other.passed);
        self.skipped = self.skipped.max(other.skipped);
        self.changed.extend(other.changed.iter().cloned());
        self.changed.sort();
        self.changed.dedup();
        Some(self)
    }
}

/// Channel of one run: the guard's end and the command's.
pub(super) struct Channel {
    guards: OwnedFd,
    commands: OwnedFd,
    /// Folder of the reporter.
    pub(super) folder: PathBuf,
}

impl Channel {
    /// Creates a channel, and writes the reporter to a folder for temporary files.
    pub(super) fn open(scratch: &Path) -> io::Result<Self> {
        let folder = scratch.join(".repoformer-report");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("sitecustomize.py"), REPORTER)?;
        let kind = SockType::SeqPacket;
        let (guards, commands) =
            socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_CLOEXEC)?;
        let numbered = |number| fcntl_dupfd_cloexec(&commands, number);
        let mut found = LOWEST.map(numbered).into_iter();
        let commands = found.find(Result::is_ok).unwrap_or_else(|| numbered(3))?;
        fcntl_setfd(&commands, FdFlags::empty())?;
        Ok(Self { guards, commands, folder })
    }

    /// Returns the environment variables that lead Python to the reporter. `paths` are the paths that Python searches otherwise.
    pub(super) fn variables(&self, paths: Option<&str>) -> io::Result<[(&'static str, String); 2]> {
        let inode = fstat(self.commands.as_fd())?.st_ino;
        let folder = self.folder.to_string_lossy();
        if folder.contains(':') {
            let reason = format!("{folder}: Python reads no code from a path with ':'");
            return Err(io::Error::other(reason));
        }
        let paths = paths.filter(|paths| !paths.is_empty());
        let paths = paths.map_or(folder.clone().into_owned(), |paths| format!("{folder}:{paths}"));
        let socket = format!("{}:{inode}", self.commands.as_raw_fd());
        Ok([("PYTHONPATH", paths), (VARIABLE, socket)])
    }

    /// Separates the two ends. The command inherits its end, which must be closed here once the command has started.
    pub(super) fn apart(self) -> (Listener, OwnedFd) {
        (Listener { guards: self.guards }, self.commands)
    }
}

/// The guard's end of a channel.
pub(super) struct Listener {
    guards: OwnedFd,
}

impl Listener {
    /// Reads messages until no process holds the command's end any more, or too many messages have arrived.
    pub(super) fn listen(self) -> Report {
        let Self { guards } = self;
        let (mut report, mut secrets) = (Report::default(), Vec::new());
        let (mut names, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        for number in 0.. {
            if number == MOST_MESSAGES || report.forged >= MOST_FORGED {
                // Returning closes the channel.
                report.forged += 1;
                break;
            }
            let message = match recv(guards.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(0) => break,
                Ok(length) => &buffer[..length],
                Err(Errno::EINTR) => continue,
                Err(_) => break,
            };
            if message == b"hello" {
                report.begun += 1;
                if report.begun > MOST_SESSIONS {
                    report.forged += 1;
                }
                // A run with more sessions cannot be distinguished from a forged one.
                if let Some(secret) = secret().filter(|_| report.begun <= MOST_SESSIONS) {
                    // A process that does not read its answer has no session, and the guard does not wait for it.
                    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
                    let _ = send(guards.as_raw_fd(), secret.as_bytes(), flags);
                    secrets.push(Some(secret));
                }
                continue;
            }
            let holder = secrets.iter_mut().find_map(|slot| {
                let rest = message.strip_prefix(slot.as_ref()?.as_bytes())?;
                Some((slot, rest))
            });
            match holder {
                Some((_, rest)) if rest.starts_with(b" changed ") => {
                    if names.len() + rest.len() < LONGEST_CHANGES {
                        names.extend_from_slice(&rest[b" changed ".len()..]);
                    } else {
                        report.forged += 1;
                    }
                }
                Some((slot, rest)) => match counts(rest) {
                    Some([passed, failed, errors, skipped]) => {
                        *slot = None;
                        report.ended += 1;
                        report.passed += passed;
                        report.failed += failed + errors;
                        report.skipped += skipped;
                        names.push(b',');
                    }
                    None => report.forged += 1,
                },
                None => report.forged += 1,
            }
        }
        let names = String::from_utf8_lossy(&names).into_owned();
        report.changed = names.split(',').filter(|n| !n.is_empty()).map(str::to_owned).collect();
        report.changed.sort();
        report.changed.dedup();
        report
    }
}

/// Reads ` ended PASSED FAILED ERRORS SKIPPED`.
fn counts(text: &[u8]) -> Option<[u64; 4]> {
    let text = std::str::from_utf8(text).ok()?.strip_prefix(" ended ")?;
    let numbers: Option<Vec<u64>> = text.split(' ').map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// Returns a secret of 128 random bits.
fn secret() -> Option<String> {
    let mut bytes = [0; 16];
    let mut source = fs::File::open("/dev/urandom").ok()?;
    io::Read::read_exact(&mut source, &mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the report of a run that sends these messages; `SECRET` stands for the secret of the latest session.
    fn report(messages: &[&str]) -> Report {
        let dir = tempfile::tempdir().unwrap();
        let channel = Channel::open(dir.path()).unwrap();
        let sent = fcntl_dupfd_cloexec(&channel.commands, 0).unwrap();
        let (listener, commands) = channel.apart();
        let listening = std::thread::spawn(move || listener.listen());
        drop(commands);
        let (mut secret, mut buffer) = (String::new(), [0; 64]);
        for message in messages {
            let message = message.replace("SECRET", &secret);
            send(sent.as_raw_fd(), message.as_bytes(), MsgFlags::empty()).unwrap();
            if message == "hello" {
                let length = recv(sent.as_raw_fd(), &mut buffer, MsgFlags::empty()).unwrap();
                secret = String::from_utf8_lossy(&buffer[..length]).into_owned();
            }
        }
        drop(sent);
        listening.join().unwrap()
    }

    #[test]
    fn only_a_session_with_its_secret_and_its_end_passes() {
        let whole = report(&["hello", "SECRET changed b,a", "SECRET ended 3 0 0 1"]);
        assert_eq!((whole.begun, whole.ended, whole.passed, whole.forged), (1, 1, 3, 0));
        assert_eq!(whole.changed, ["a", "b"]);
        assert!(whole.is_whole());
        let missing = |messages: &[&str]| report(messages).missing(&whole).unwrap_or_default();
        assert_eq!(missing(&["hello", "SECRET changed a", "SECRET ended 4 0 0 0"]), "");
        for (messages, reason) in [
            (&[][..], "without their report"),
            (&["hello"], "without their report"),
            (&["hello", "hello", "SECRET ended 3 0 0 0"], "without their report"),
            (&["hello", "SECRET ended 2 1 0 0"], "1 tests failed"),
            (&["hello", "SECRET ended 2 0 1 0"], "1 tests failed"),
            (&["hello", "SECRET ended 2 0 0 1"], "2 tests passed"),
            (&["hello", "SECRET ended 3 0 0 2"], "2 tests were skipped"),
            (&["hello", "SECRET changed c", "SECRET ended 3 0 0 0"], "changed: c"),
            (&["hello", "SECRET ended 3 0 0 0", "hello", "SECRET ended 1 0 0 0"], "2 runs"),
            (&["hello", "SECRET ended 3 0 0 0", "SECRET ended 3 0 0 0"], "forged"),
            (&["hello", "SECRET ended 3 0 0", "SECRET ended 3 0 0 0"], "forged"),
            (&["hello", "0123 ended 3 0 0 0", "SECRET ended 3 0 0 0"], "forged"),
            (&["ended 3 0 0 0", "hello", "SECRET ended 3 0 0 0"], "forged"),
        ] {
            assert!(missing(messages).contains(reason), "{messages:?}: {}", missing(messages));
        }
    }

    #[test]
    fn a_flood_of_messages_ends_the_channel() {
        let dir = tempfile::tempdir().unwrap();
        for message in ["0", "hello"] {
            let (listener, commands) = Channel::open(dir.path()).unwrap().apart();
            let listening = std::thread::spawn(move || listener.listen());
            let end = (0..1_000_000).find(|_| {
                let sent = send(commands.as_raw_fd(), message.as_bytes(), MsgFlags::MSG_NOSIGNAL);
                // Unread answers fill the channel in the other direction.
                let _ = recv(commands.as_raw_fd(), &mut [0; 64], MsgFlags::MSG_DONTWAIT);
                sent.is_err()
            });
            assert!(end.is_some(), "{message}");
            let report = listening.join().unwrap();
            assert!((1..=MOST_FORGED + 1).contains(&report.forged), "{report:?}");
        }
    }

    #[test]
    fn reports_of_several_runs_are_combined_where_they_are_alike() {
        let one = report(&["hello", "SECRET changed a", "SECRET ended 3 0 0 1"]);
        let two = report(&["hello", "SECRET changed b", "SECRET ended 2 0 0 2"]);
        let both = one.clone().and(&two).unwrap();
        assert_eq!((both.passed, &both.changed[..]), (2, &["a".to_owned(), "b".to_owned()][..]));
        assert_eq!(one.and(&report(&["hello"])), None);
    }
}
