//! Repositories between folders, packages files and raw files.

use std::path::Path;

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::{Emit, Outcome, Target, each, other_kind};
use crate::error::{Error, Result};
use crate::repository::record::{Content, Folders, Package, RawRepository, read_folder};
use crate::store::jsonl::{self, At, Object};
use crate::task::kind::Kind;
use crate::text::language::Language;

/// Writes the files of a packages or raw file into a folder a repository below `dir`; see [`Folders`].
///
/// # Errors
/// The file cannot be read, or a folder cannot be written; there are no new folders then.
pub fn to_folders(path: &Path, dir: &Path) -> Result<Outcome> {
    let mut folders = Folders::create(dir)?;
    let mut failed = None;
    let mut outcome = Outcome::default();
    outcome.problems = jsonl::for_each(path, |At { line, .. }, object| {
        if failed.is_some() {
            return Ok(());
        }
        let mut write =
            |folder: &str, file: &str, text: &str| match folders.write(folder, file, text) {
                Ok(Ok(())) => {
                    outcome.records += 1;
                    Ok(())
                }
                Ok(Err(reason)) => Err(Error::record(path, line, reason)),
                Err(error) => {
                    failed = Some(error);
                    Ok(())
                }
            };
        match Kind::of(&object) {
            Some(Kind::Package) => {
                let package = Package::read(path, line, object)?;
                let (folder, file) = package.place();
                write(folder, file, &package.text)
            }
            Some(Kind::RawRepository) => {
                let raw = RawRepository::read(path, line, object)?;
                let folder = raw.folder();
                // The first file that cannot be written tells of its record; the others are written all the same.
                let outcomes: Vec<_> = raw
                    .files
                    .iter()
                    .map(|file| write(&folder, &file.content.path, &file.content.text))
                    .collect();
                outcomes.into_iter().collect()
            }
            _ => Err(other_kind(path, line, &object, Target::Folders)),
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    if outcome.records > 0 {
        folders.finish()?;
    }
    Ok(outcome)
}

/// Gives a language's source files of repositories as records of a packages file.
///
/// # Errors
/// An error of `emit`.
pub fn folders_to_packages(
    repos_dir: &Path,
    names: &[String],
    language: Language,
    emit: &mut Emit<'_>,
) -> Result<Outcome> {
    from_folders(repos_dir, names, language, |name, contents| {
        contents
            .iter()
            .try_for_each(|content| emit(&Package::record_of(name, content)))?;
        Ok(contents.len())
    })
}

/// Gives repositories, with their files of a language, as records of a raw file, with all that can be computed.
///
/// # Errors
/// An error of `emit`.
pub fn folders_to_raw(
    repos_dir: &Path,
    names: &[String],
    language: Language,
    emit: &mut Emit<'_>,
) -> Result<Outcome> {
    from_folders(repos_dir, names, language, |name, contents| {
        emit(&RawRepository::of(name, contents).to_record())?;
        Ok(1)
    })
}

fn from_folders(
    repos_dir: &Path,
    names: &[String],
    language: Language,
    mut write: impl FnMut(&str, Vec<Content>) -> Result<usize>,
) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for name in names {
        match read_folder(repos_dir, name, language) {
            Ok((contents, skipped)) => {
                outcome.problems.extend(skipped);
                outcome.records += write(name, contents)?;
            }
            Err(error) => outcome.problems.push(error),
        }
    }
    Ok(outcome)
}

/// Converts a packages or raw file `to` the other, or a raw file to itself, with what it does not say of its files
/// computed. A packages file may mix its repositories; they are gathered in memory, in the order of the file.
///
/// # Errors
/// The file cannot be read, or an error of `emit`.
pub fn records(path: &Path, to: Kind, emit: &mut Emit<'_>) -> Result<Outcome> {
    let mut gathered: Vec<(String, Vec<Content>)> = Vec::new();
    let mut places: FxHashMap<String, usize> = FxHashMap::default();
    let mut outcome = each(path, emit, |At { line, .. }, object: Object| {
        match (Kind::of(&object), to) {
            (Some(Kind::Package), Kind::Package) => {
                let package = Package::read(path, line, object)?;
                Ok(vec![Value::Object(package.record)])
            }
            (Some(Kind::RawRepository), Kind::RawRepository) => {
                Ok(vec![RawRepository::read(path, line, object)?.to_record()])
            }
            (Some(Kind::RawRepository), Kind::Package) => {
                let raw = RawRepository::read(path, line, object)?;
                let folder = raw.folder();
                let files = raw.files.iter();
                Ok(files
                    .map(|file| Package::record_of(&folder, &file.content))
                    .collect())
            }
            (Some(Kind::Package), Kind::RawRepository) => {
                let package = Package::read(path, line, object)?;
                let (folder, file) = package.place();
                let place = *places.entry(folder.to_owned()).or_insert(gathered.len());
                if place == gathered.len() {
                    gathered.push((folder.to_owned(), Vec::new()));
                }
                gathered[place].1.push(Content {
                    path: file.to_owned(),
                    text: package.text.clone(),
                });
                Ok(Vec::new())
            }
            _ => Err(other_kind(path, line, &object, Target::Records(to))),
        }
    })?;
    for (name, contents) in gathered {
        emit(&RawRepository::of(&name, contents).to_record())?;
        outcome.records += 1;
    }
    Ok(outcome)
}
