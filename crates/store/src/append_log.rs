//! Append-only files of JSON lines, from which interrupted work resumes.
//!
//! Each line is one write: an interruption cuts off at most the last line, which is dropped when the file is opened again. Each
//! line ends with its checksum; a line that does not match its checksum is skipped and reported. Only one process writes at a
//! time.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use repoformer_text::message;
use repoformer_text::message::UserChoice;

use crate::artifact::{create_folder, folder_of};
use crate::error::{Error, Result};
use crate::files::{File, TryLockError};
use crate::seal::{self, Seal};

/// Position of a line in the file, in bytes; the length includes the line end.
#[derive(Debug, Clone, Copy)]
pub struct LinePlace {
    begin: u64,
    length: usize,
}

impl LinePlace {
    /// Returns the byte at which the line begins.
    pub fn begin(self) -> u64 {
        self.begin
    }
}

/// Kind of a log: how its lines are recognised, and how messages name it.
#[derive(Debug, Clone, Copy)]
pub struct LogKind {
    /// Beginning of every line: `{"task_id":`.
    pub begin: &'static str,
    /// Name of one line in messages: `a result of …`.
    pub line: &'static str,
    /// Setting with which the user names the file.
    pub file: UserChoice,
    /// Text after the name of the file in messages; may be empty.
    pub remark: &'static str,
    /// Process that writes the log: `evaluation`.
    pub writer: &'static str,
}

/// Returns true if another process writes to a file, checked for a second because that process may be about to end. False on
/// file systems without locks.
fn is_locked(file: &File) -> bool {
    const TRIES: usize = 20;
    (0..TRIES).all(|number| {
        if number > 0 {
            std::thread::sleep(Duration::from_millis(50));
        }
        matches!(file.try_lock(), Err(TryLockError::WouldBlock))
    })
}

/// Fails if the path exists but cannot be a log.
fn check_file(path: &Path, kind: LogKind) -> Result<()> {
    if !path.exists() || path.is_file() {
        return Ok(());
    }
    let reason = format!("{}: not a file", path.display());
    Err(Error::execution(reason, message!["choose another ", kind.file, kind.remark]))
}

/// Log open for appending; its lock keeps other processes from writing to it.
#[derive(Debug)]
pub struct AppendLog {
    path: PathBuf,
    file: File,
    end: u64,
}

impl AppendLog {
    /// Opens or creates a log. `take` is called with every complete line and its position, and returns whether the line belongs
    /// to this log. Other lines are skipped and kept, unless no line of the file belongs to this log.
    ///
    /// # Errors
    /// The file cannot be read or written, contains something else, or another process is writing to it.
    pub fn open(
        path: &Path,
        kind: LogKind,
        take: impl FnMut(&[u8], LinePlace) -> bool,
    ) -> Result<Self> {
        create_folder(folder_of(path))?;
        let writing = |e| Error::writing(path, "append to this file", e);
        check_file(path, kind)?;
        let file =
            File::open_with(std::fs::File::options().create(true).read(true).append(true), path)
                .map_err(writing)?;
        if is_locked(&file) {
            let reason =
                format!("{}: another {} is writing to this file", path.display(), kind.writer);
            let hint = message!["wait until it ends, or choose another ", kind.file, kind.remark];
            return Err(Error::execution(reason, hint));
        }
        let mut log = Self { path: path.to_owned(), file, end: 0 };
        log.read_lines(kind, take)?;
        log.file.set_len(log.end).map_err(writing)?;
        Ok(log)
    }

    /// Reads a log that another process may be writing; nothing can be appended to the result.
    ///
    /// # Errors
    /// The file cannot be read, or contains something else.
    pub fn read(
        path: &Path,
        kind: LogKind,
        take: impl FnMut(&[u8], LinePlace) -> bool,
    ) -> Result<Self> {
        check_file(path, kind)?;
        let file =
            File::open_regular(path).map_err(|e| Error::reading(path, "read this file", e))?;
        let mut log = Self { path: path.to_owned(), file, end: 0 };
        log.read_lines(kind, take)?;
        Ok(log)
    }

    fn read_lines(
        &mut self,
        kind: LogKind,
        mut take: impl FnMut(&[u8], LinePlace) -> bool,
    ) -> Result<()> {
        let reading = |e| Error::reading(&self.path, "read this file", e);
        let mut lines = BufReader::new(self.file.try_clone().map_err(reading)?);
        let (mut line, mut end, mut taken) = (Vec::new(), 0, 0);
        let (mut first_other, mut damaged) = (None, Vec::new());
        for number in 1.. {
            line.clear();
            let length = lines.read_until(b'\n', &mut line).map_err(reading)?;
            if length == 0 {
                break;
            }
            if line.last() != Some(&b'\n') {
                // An unfinished line is dropped only if an interrupted write of this log left it.
                let begin = kind.begin.as_bytes();
                if !line.starts_with(begin) && !begin.starts_with(&line) {
                    first_other.get_or_insert(number);
                    taken = 0;
                }
                break;
            }
            let is_whole = seal::check(&line) != Seal::Broken;
            let format = seal::other_format_of_line(&line);
            if is_whole && format.is_none() && take(&line, LinePlace { begin: end, length }) {
                taken += 1;
            } else if !line.iter().all(u8::is_ascii_whitespace) {
                // A line of this log with its checksum, even a damaged one, shows that the file is a log.
                taken += usize::from(seal::is_sealed(&line));
                first_other.get_or_insert(number);
                damaged.push((number, format));
            }
            end += length as u64;
        }
        if let (Some(number), 0) = (first_other, taken) {
            let format = damaged.iter().find_map(|(_, format)| format.as_ref());
            let what = match format {
                Some(format) => format!("written {format}"),
                None => format!("not {}", kind.line),
            };
            let path = self.path.display();
            let reason = format!("{path}:{number}: {what}; the file was not changed");
            return Err(Error::execution(
                reason,
                message!["choose another ", kind.file, kind.remark],
            ));
        }
        for (number, format) in damaged {
            seal::pass_over(&self.path, number, format.as_deref());
        }
        self.end = end;
        Ok(())
    }

    /// Reads the line at a position.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn line(&self, place: LinePlace) -> Result<Vec<u8>> {
        let (mut line, mut file) = (vec![0; place.length], &self.file);
        file.seek(SeekFrom::Start(place.begin))
            .and_then(|_| file.read_exact(&mut line))
            .map_err(|e| Error::reading(&self.path, "read this file again", e))?;
        Ok(line)
    }

    /// Appends a line with its checksum; `line` is a JSON object without a line end.
    ///
    /// # Errors
    /// The line cannot be written.
    pub fn append(&mut self, line: Vec<u8>) -> Result<LinePlace> {
        let mut line = seal::seal(line);
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            // Half a line would swallow the next one. If it cannot be removed now, it is dropped when the log is next opened.
            let _ = self.file.set_len(self.end);
            return Err(Error::writing(&self.path, "append to this file", error));
        }
        let place = LinePlace { begin: self.end, length: line.len() };
        self.end += line.len() as u64;
        Ok(place)
    }
}
