//! Writing of a split's sequences as JSON lines and as Parquet.

use std::io;
use std::path::{Path, PathBuf};

use repoformer_store::artifact::OutputFile;
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_store::manifest::forget_beside;

use super::parquet::Table;
use super::row::Row;
use super::split::Split;

fn places(folder: &Path, split: Split) -> [PathBuf; 2] {
    ["jsonl", "parquet"].map(|ending| folder.join(format!("{}.{ending}", split.name())))
}

/// Returns the path of a split's JSON lines in a folder of sequences.
pub fn lines_of(folder: &Path, split: Split) -> PathBuf {
    let [lines, _] = places(folder, split);
    lines
}

/// Returns the paths of all files that a verbalization may write into a folder.
pub fn outputs(folder: &Path) -> Vec<PathBuf> {
    let of_splits = Split::ALL.into_iter().flat_map(|split| places(folder, split));
    of_splits.chain(BESIDE.map(|name| folder.join(name))).collect()
}

/// Names of the tokenizer and prompt style next to the sequences.
pub(super) const BESIDE: [&str; 2] = ["tokenizer.json", "prompt-style.toml"];

/// Removes any files of a split.
fn remove(folder: &Path, split: Split) -> Result<()> {
    for path in places(folder, split) {
        // If the split belonged to a shard, it has a manifest.
        forget_beside(&path)?;
        match files::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Error::writing(&path, "remove this file", e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Files of the splits in a folder, while they are written.
pub struct SequenceFiles {
    folder: PathBuf,
    splits: Vec<(Split, OutputFile, Option<Table>)>,
}

impl SequenceFiles {
    /// Starts the files of these splits in a folder: JSON lines, and Parquet tables if `with_tables`.
    ///
    /// # Errors
    /// The files cannot be written, or this build lacks the feature `parquet`.
    pub fn create(
        folder: &Path,
        splits: impl IntoIterator<Item = Split>,
        with_tables: bool,
    ) -> Result<Self> {
        let splits = splits.into_iter().map(|split| {
            let [lines, table] = places(folder, split);
            let table = with_tables.then(|| Table::create(&table)).transpose()?;
            Ok((split, OutputFile::create(&lines)?, table))
        });
        Ok(Self { folder: folder.to_owned(), splits: splits.collect::<Result<_>>()? })
    }

    /// Appends a sequence, given as its line, to a split that was started.
    ///
    /// # Errors
    /// The line is not a sequence, or cannot be written.
    pub fn push_line(&mut self, split: Split, line: &[u8]) -> Result<()> {
        let row: Row = serde_json::from_slice(line).map_err(|error| {
            let path = lines_of(&self.folder, split);
            Error::artifact(&path, format!("not a training sequence: {error}"), "make it again")
        })?;
        self.push(split, row, line)
    }

    pub(super) fn push(&mut self, split: Split, row: Row, line: &[u8]) -> Result<()> {
        if let Some((_, lines, table)) = self.splits.iter_mut().find(|(its, ..)| *its == split) {
            lines.write(line)?;
            if let Some(table) = table {
                table.push(row)?;
            }
        }
        Ok(())
    }

    /// Moves all files into place. Files of other splits are removed, since their repositories are now training data.
    ///
    /// # Errors
    /// A file cannot be written or removed.
    pub fn finish(self) -> Result<()> {
        // Splits of another run must not be mixed with new ones, even after an interruption.
        for split in Split::ALL {
            remove(&self.folder, split)?;
        }
        for (_, lines, table) in self.splits {
            lines.finish()?;
            if let Some(table) = table {
                table.finish()?;
            }
        }
        Ok(())
    }
}
