//! Repositories as files of records: conversion of Repoformer's packages file (one source file per record) and its raw file
//! (one repository per record) to folders and back.

mod folders;
mod git;
mod package;
mod python;
mod raw;
mod statements;

pub use folders::{Folders, Placement, WriteOutcome};
pub use git::blob_sha1;
pub use package::Package;
pub use package::{OF_REPOSITORY, PACKAGE};
pub use python::{Imports, Modules, Point, PythonFile};
pub use raw::RAW;
pub use raw::{RawFile, RawRepository};

use std::path::Path;

use repoformer_store::error::{Error, Result};
use repoformer_text::language::Language;

use crate::corpus::{Listing, Walk, decode};
use crate::fragment::path_in_repository;

/// File of a repository: its path and its text, with newlines as they are on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    /// `folder/…/file.py`
    pub path: String,
    /// Text as it is on disk.
    pub text: String,
}

/// Returns the source files of a language in `<repos_dir>/<name>` in the order of their paths, and errors for the files that
/// cannot be read.
///
/// # Errors
/// The same as for [`Repository::read_with`](crate::corpus::Repository::read_with).
pub fn read_folder(
    repos_dir: &Path,
    name: &str,
    language: Language,
    walk: Walk,
) -> Result<(Vec<FileText>, Vec<Error>)> {
    let listing = Listing::new(repos_dir, name, language, walk)?;
    let (found, mut skipped) = listing.all()?;
    let mut contents = Vec::new();
    for file in found {
        let read = listing.read_bytes(&file);
        match read.and_then(|bytes| decode(&file.on_disk, bytes.content)) {
            Ok(text) => {
                contents.push(FileText { path: path_in_repository(&file.path).to_owned(), text })
            }
            Err(error) => skipped.push(error),
        }
    }
    Ok((contents, skipped))
}
