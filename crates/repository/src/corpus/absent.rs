//! Replacement for git's rules in a build that cannot read them.

use std::convert::Infallible;
use std::path::Path;

use repoformer_store::error::{Error, Result};

/// Git's rules for the files of one repository. This build lacks the feature `gitignore`, so no such rules exist.
#[derive(Debug)]
pub(super) struct GitRules(Infallible);

impl GitRules {
    pub(super) fn new(root: &Path) -> Result<Self> {
        let reason = "cannot be read without the files that git ignores: this build lacks the feature `gitignore`";
        Err(Error::Repository { path: root.to_owned(), reason: reason.into() })
    }

    pub(super) fn ignore(&self, _below: &Path, _is_folder: bool) -> bool {
        match self.0 {}
    }

    pub(super) fn ignore_within(&self, _below: &Path, _is_folder: bool) -> bool {
        match self.0 {}
    }

    pub(super) fn take_problems(&self) -> Vec<Error> {
        match self.0 {}
    }
}
