//! What stands in the place of Parquet tables in a build that cannot write them.

use std::convert::Infallible;
use std::path::Path;

use super::sequence::Sequence;
use crate::error::{Error, Result};

/// A table of sequences. This build lacks the feature `parquet`, so there is none.
pub(super) struct Table(Infallible);

impl Table {
    pub(super) fn create(path: &Path, _lambda: f32) -> Result<Self> {
        let reason = "this build writes no Parquet: it lacks the feature `parquet`";
        let hint = "add `parquet` to the features of the dependency `repoformer`";
        Err(Error::artifact(path, reason, hint))
    }

    pub(super) fn push(&mut self, _sequence: Sequence) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn finish(self) -> Result<()> {
        match self.0 {}
    }
}
