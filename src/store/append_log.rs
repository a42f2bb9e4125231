//! Files that lines of JSON are appended to as they come, from which interrupted work goes on.
//!
//! One write a line: an interruption cuts off the last one at most, which is dropped when the file is opened again. One
//! process writes at a time.

use std::fs::{self, File, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};

/// Where a line begins, and its length with its end, in bytes.
pub(crate) type Place = (u64, usize);

/// What a file of such lines holds, for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holds {
    /// How every line begins: `{"task_id":`.
    pub(crate) begin: &'static str,
    /// What a line is: `a result of …`.
    pub(crate) what: &'static str,
    /// The flag that names another file.
    pub(crate) flag: &'static str,
    /// What writes to it: `evaluation`.
    pub(crate) writer: &'static str,
}

/// Whether another process writes to a file, one that is about to end not counted; where a file system knows no locks there are
/// none.
fn is_locked(file: &File) -> bool {
    const TRIES: usize = 20;
    (0..TRIES).all(|number| {
        if number > 0 {
            std::thread::sleep(Duration::from_millis(50));
        }
        matches!(file.try_lock(), Err(TryLockError::WouldBlock))
    })
}

/// A file of lines, open for more; nobody else may write to it meanwhile.
#[derive(Debug)]
pub(crate) struct Appended {
    path: PathBuf,
    file: File,
    end: u64,
}

impl Appended {
    /// Opens or begins a file. `take` is given every whole line and where it stands, and says whether it is one of these;
    /// others are passed over and kept, but for a file that has no line of these.
    ///
    /// # Errors
    /// The file cannot be read or written, holds something else, or another process is writing to it.
    pub(crate) fn open(
        path: &Path,
        holds: Holds,
        take: impl FnMut(&[u8], Place) -> bool,
    ) -> Result<Self> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            fs::create_dir_all(folder)
                .map_err(|e| Error::writing(folder, "create this folder", e))?;
        }
        let writing = |e| Error::writing(path, "append to this file", e);
        if path.exists() && !path.is_file() {
            return Err(Error::Execution {
                reason: format!("{}: is no file", path.display()),
                hint: format!("name a file with {}", holds.flag),
            });
        }
        let file = File::options()
            .create(true)
            .read(true)
            .append(true)
            .open(path)
            .map_err(writing)?;
        if is_locked(&file) {
            return Err(Error::Execution {
                reason: format!(
                    "{}: another {} is writing to it",
                    path.display(),
                    holds.writer
                ),
                hint: format!("wait for its end, or name another file with {}", holds.flag),
            });
        }
        let mut appended = Self {
            path: path.to_owned(),
            file,
            end: 0,
        };
        appended.read_lines(holds, take)?;
        appended.file.set_len(appended.end).map_err(writing)?;
        Ok(appended)
    }

    fn read_lines(
        &mut self,
        holds: Holds,
        mut take: impl FnMut(&[u8], Place) -> bool,
    ) -> Result<()> {
        let reading = |e| Error::reading(&self.path, "read this file", e);
        let mut lines = BufReader::new(self.file.try_clone().map_err(reading)?);
        let (mut line, mut end, mut taken) = (Vec::new(), 0, 0);
        let mut first_other = None;
        for number in 1.. {
            line.clear();
            let length = lines.read_until(b'\n', &mut line).map_err(reading)?;
            if length == 0 {
                break;
            }
            if line.last() != Some(&b'\n') {
                // Only what an interruption cut off is dropped.
                let begin = holds.begin.as_bytes();
                if !line.starts_with(begin) && !begin.starts_with(&line) {
                    first_other.get_or_insert(number);
                    taken = 0;
                }
                break;
            }
            if take(&line, (end, length)) {
                taken += 1;
            } else if !line.iter().all(u8::is_ascii_whitespace) {
                first_other.get_or_insert(number);
            }
            end += length as u64;
        }
        if let (Some(number), 0) = (first_other, taken) {
            return Err(Error::Execution {
                reason: format!(
                    "{}:{number}: not {}; nothing was changed in this file",
                    self.path.display(),
                    holds.what
                ),
                hint: format!("name another file with {}", holds.flag),
            });
        }
        self.end = end;
        Ok(())
    }

    /// A line that stands there.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub(crate) fn line(&self, (begin, length): Place) -> Result<Vec<u8>> {
        let (mut line, mut file) = (vec![0; length], &self.file);
        file.seek(SeekFrom::Start(begin))
            .and_then(|_| file.read_exact(&mut line))
            .map_err(|e| Error::reading(&self.path, "read this file again", e))?;
        Ok(line)
    }

    /// Appends a line, given without its end.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn append(&mut self, mut line: Vec<u8>) -> Result<Place> {
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            // Half a line would swallow the next; where it cannot be taken back, it is dropped when the file is opened.
            let _ = self.file.set_len(self.end);
            return Err(Error::writing(&self.path, "append to this file", error));
        }
        let place = (self.end, line.len());
        self.end += line.len() as u64;
        Ok(place)
    }
}
