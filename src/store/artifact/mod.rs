//! What the stages leave on disk: typed artifacts with a readable header, written whole or not at all.

mod columns;
mod header;
mod output;
mod replace;
mod store;

pub use columns::{Column, ColumnHeader, Columns, Number};
pub use header::{Header, Identity, LineTotals};
pub use output::OutputFile;
pub use replace::write_file;
pub use store::{
    LineSink, State, digest, header_path, jsonl_header, open, parameters, read, read_header,
    read_jsonl, read_jsonl_header, state, state_jsonl, write, write_lines,
};

use crate::error::Result;

/// What can be the content of an artifact.
pub trait Payload: Sized {
    /// What it is, as its header and messages name it.
    const KIND: &'static str;

    /// How many records it holds.
    fn records(&self) -> usize;

    /// What it consists of.
    ///
    /// # Errors
    /// A record cannot be encoded, in words.
    fn columns(&self) -> Result<Vec<Column<'_>>, String>;

    /// Puts it together again.
    ///
    /// # Errors
    /// A column is missing, damaged, or cannot be read.
    fn from_columns(columns: &mut Columns) -> Result<Self>;

    /// Reads all of it and checks its bytes, keeping nothing.
    ///
    /// # Errors
    /// It is damaged or cannot be read.
    fn check_columns(columns: &mut Columns) -> Result<()> {
        columns.check_all()
    }

    /// Whether its parts fit together; asked after reading, so that no reader can be led out of bounds.
    ///
    /// # Errors
    /// What does not fit.
    fn check(&self) -> Result<(), String>;
}

/// Whether `offsets` cut `total` items into `offsets.len() - 1` runs.
pub(crate) fn check_offsets(offsets: &[u32], total: usize) -> Result<(), String> {
    let ordered = offsets.first() == Some(&0)
        && offsets.is_sorted()
        && offsets.last().map(|n| *n as usize) == Some(total);
    if ordered {
        Ok(())
    } else {
        Err("its offsets are out of order".into())
    }
}
