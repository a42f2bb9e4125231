//! Parquet tables of a build that cannot write them.

use std::convert::Infallible;
use std::path::Path;

use repoformer_store::error::{Error, Result};

use super::row::Row;

/// A table of sequences. This build lacks the feature `parquet`, so there is none.
pub(super) struct Table(Infallible);

impl Table {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let reason = "this build writes no Parquet: it lacks the feature `parquet`";
        let hint = "add `parquet` to the features of the dependency `repoformer`";
        Err(Error::artifact(path, reason, hint))
    }

    pub(super) fn push(&mut self, _row: Row) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn finish(self) -> Result<()> {
        match self.0 {}
    }
}
