//! Repositories as files of records: Repoformer's packages file (a source file a record) and its raw file (a
//! repository a record), into folders and back.

mod folders;
mod git;
mod package;
mod python;
mod raw;
mod statements;

pub use folders::Folders;
pub use git::blob_sha1;
pub use package::Package;
pub use python::{Imports, Modules, Point, PythonFile};
pub use raw::{RawFile, RawRepository};

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::repository::corpus::{Listing, Walk, is_folder_name};
use crate::text::language::Language;

/// One file of a repository: where it is in it, and what it holds, newlines as they are on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// `folder/…/file.py`
    pub path: String,
    /// The text as it is on disk.
    pub text: String,
}

/// The source files of a language in `<repos_dir>/<name>` in the order of their paths, and those that cannot be read.
///
/// # Errors
/// As [`Repository::read`](crate::repository::corpus::Repository::read), whose rules say which files they are.
pub fn read_folder(
    repos_dir: &Path,
    name: &str,
    language: Language,
) -> Result<(Vec<Content>, Vec<Error>)> {
    // Which files there are, the listing says; what they hold is read anew, since it turns newlines into `\n`.
    let listing = Listing::read(repos_dir, name, (language, Walk::Glob), |_, _| true)?;
    let (mut contents, mut skipped) = (Vec::new(), listing.skipped);
    for file in listing.files {
        let on_disk = repos_dir.join(&file.path);
        let read = fs::read(&on_disk).map_err(|e| Error::reading(&on_disk, "read this file", e));
        let text = read.and_then(|bytes| {
            String::from_utf8(bytes).map_err(|e| Error::SourceFile {
                path: on_disk.clone(),
                reason: format!("not UTF-8 (byte {})", e.utf8_error().valid_up_to()),
            })
        });
        let path = match file.path.split_once('/') {
            Some((_, path)) => path.to_owned(),
            None => file.path.clone(),
        };
        match text {
            Ok(text) => contents.push(Content { path, text }),
            Err(error) => skipped.push(error),
        }
    }
    Ok((contents, skipped))
}

/// The names on a path that leads into its repository and nowhere else; in words what is wrong with it.
pub(crate) fn path_names(path: &str) -> Result<Vec<&str>, String> {
    let names: Vec<&str> = path.split('/').collect();
    match names.iter().find(|name| !is_folder_name(name)) {
        Some(bad) => Err(format!("leads out of the repository: {bad:?}")),
        None => Ok(names),
    }
}
