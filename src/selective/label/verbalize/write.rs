//! Writes a split's sequences as JSON lines and as Parquet.

use std::io;
use std::path::{Path, PathBuf};

use super::parquet::Table;
use super::sequence::Sequence;
use crate::error::{Error, Result};
use crate::store::artifact::OutputFile;
use crate::store::files;

fn places(folder: &Path, name: &str) -> [PathBuf; 2] {
    ["jsonl", "parquet"].map(|ending| folder.join(format!("{name}.{ending}")))
}

/// Removes the files of a split, if there are any.
pub(super) fn remove(folder: &Path, name: &str) -> Result<()> {
    for path in places(folder, name) {
        match files::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Error::writing(&path, "remove this file", e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The two files of a split during writing.
pub(super) struct SplitFiles {
    lines: OutputFile,
    table: Table,
}

impl SplitFiles {
    /// Starts the files in a folder.
    pub(super) fn create(folder: &Path, name: &str, lambda: f32) -> Result<Self> {
        let [lines, table] = places(folder, name);
        Ok(Self { lines: OutputFile::create(&lines)?, table: Table::create(&table, lambda)? })
    }

    /// Appends a sequence and its line.
    pub(super) fn push(&mut self, sequence: Sequence, line: &str) -> Result<()> {
        self.lines.write(line.as_bytes())?;
        self.table.push(sequence)
    }

    /// Moves both files into place.
    pub(super) fn finish(self) -> Result<()> {
        self.lines.finish()?;
        self.table.finish()
    }
}
