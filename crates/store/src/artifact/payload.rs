//! Content of an artifact as columns.

use super::columns::{Column, Columns};
use crate::error::Result;

/// Type that can be the content of an artifact.
pub trait Payload: Sized {
    /// Kind of the content, in headers and messages.
    const KIND: &'static str;

    /// Returns the number of records.
    fn records(&self) -> usize;

    /// Returns the content as columns.
    ///
    /// # Errors
    /// A record cannot be encoded; the message gives the reason.
    fn columns(&self) -> Result<Vec<Column<'_>>, String>;

    /// Assembles the content from its columns.
    ///
    /// # Errors
    /// A column is missing, damaged, or cannot be read.
    fn from_columns(columns: &mut Columns) -> Result<Self>;

    /// Reads and verifies all columns; nothing is kept.
    ///
    /// # Errors
    /// A column is damaged or cannot be read.
    fn check_columns(columns: &mut Columns) -> Result<()> {
        columns.check_all(None)
    }

    /// Checks that the parts fit together. Called after reading, so that no reader goes out of bounds.
    ///
    /// # Errors
    /// A part does not fit; the message names it.
    fn check(&self) -> Result<(), String>;
}

/// Checks that `offsets` divide `total` items into `offsets.len() - 1` runs.
pub fn check_offsets(offsets: &[u32], total: usize) -> Result<(), String> {
    let ordered = offsets.first() == Some(&0)
        && offsets.is_sorted()
        && offsets.last().map(|n| *n as usize) == Some(total);
    if ordered { Ok(()) } else { Err("its offsets are out of order".into()) }
}
