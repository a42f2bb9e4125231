//! Output of records one after another, to a file that appears only when it is complete.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use repoformer_store::artifact::OutputFile;
use repoformer_store::error::Error;
use repoformer_store::literal;
use repoformer_store::manifest;

use crate::bars;

/// Destination of records, opened at the first record.
pub(crate) enum RecordsOutput<'a> {
    Unopened(&'a Path),
    Stdout(io::BufWriter<io::StdoutLock<'static>>),
    File(&'a Path, Box<OutputFile>),
}

impl<'a> RecordsOutput<'a> {
    pub(crate) fn new(path: &'a Path) -> Self {
        Self::Unopened(path)
    }

    pub(crate) fn line(&mut self, record: &serde_json::Value) -> Result<(), Error> {
        self.bytes(&literal::line(record))
    }

    /// Writes a record, given as a line without its end.
    pub(crate) fn text(&mut self, line: &str) -> Result<(), Error> {
        self.open()?.write(line.as_bytes())?;
        self.write(b"\n")
    }

    /// Writes a record, given as a line with its end.
    pub(crate) fn bytes(&mut self, line: &[u8]) -> Result<(), Error> {
        self.open()?.write(line)
    }

    fn open(&mut self) -> Result<&mut Self, Error> {
        if let Self::Unopened(path) = self {
            *self = if *path == Path::new("-") {
                if io::stdout().is_terminal() {
                    bars::end();
                }
                Self::Stdout(io::BufWriter::new(io::stdout().lock()))
            } else {
                Self::File(path, Box::new(OutputFile::create(path)?))
            };
        }
        Ok(self)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Self::Unopened(_) => Ok(()),
            Self::Stdout(stdout) => stdout.write_all(bytes).map_err(standard_output),
            Self::File(_, file) => file.write(bytes),
        }
    }

    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.open()?;
        match self {
            Self::Unopened(_) => Ok(()),
            Self::Stdout(mut stdout) => stdout.flush().map_err(standard_output),
            Self::File(path, file) => {
                manifest::forget_beside(path)?;
                file.finish()
            }
        }
    }
}

fn standard_output(reason: io::Error) -> Error {
    Error::Io {
        path: "standard output".into(),
        access: repoformer_store::error::Access::Write,
        action: "write",
        reason,
    }
}
