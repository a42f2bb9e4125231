//! Conversion of repositories between folders, packages files and raw files.

use std::path::Path;

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::stream::{Conversion, Emit, TargetFormat, each, other_kind};
use crate::error::{Error, Result};
use crate::repository::record::{Content, Folders, Package, RawFile, RawRepository, read_folder};
use crate::store::jsonl::{self, At, Object};
use crate::task::kind::RecordKind;
use crate::text::language::Language;

/// Writes the files of a packages or raw file, a folder per repository, below `dir`; see [`Folders`].
///
/// # Errors
/// The file cannot be read, or a folder cannot be written; then there are no new folders.
pub fn to_folders(path: &Path, dir: &Path) -> Result<Conversion> {
    let mut folders = Folders::create(dir)?;
    let mut failed = None;
    let mut conversion = Conversion::default();
    conversion.problems = jsonl::for_each(path, |At { line, .. }, object| {
        if failed.is_some() {
            return Ok(());
        }
        let mut write =
            |folder: &str, file: &str, text: &str| match folders.write(folder, file, text) {
                Ok(Ok(())) => {
                    conversion.records += 1;
                    Ok(())
                }
                Ok(Err(reason)) => Err(Error::record(path, line, reason)),
                Err(error) => {
                    failed = Some(error);
                    Ok(())
                }
            };
        match RecordKind::of(&object) {
            Some(RecordKind::Package) => {
                let package = Package::read(path, line, object)?;
                let (folder, file) = package.place();
                write(folder, file, &package.text)
            }
            Some(RecordKind::RawRepository) => {
                let raw = RawRepository::read(path, line, object)?;
                let folder = raw.folder();
                // The first file that cannot be written is the record's problem; the others are still written.
                let written: Vec<_> = raw
                    .files
                    .iter()
                    .map(|file| write(&folder, &file.content.path, &file.content.text))
                    .collect();
                written.into_iter().collect()
            }
            _ => Err(other_kind(path, line, &object, TargetFormat::Folders)),
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    if conversion.records > 0 {
        folders.finish()?;
    }
    Ok(conversion)
}

/// Emits the source files of a language in repositories as records of a packages file.
///
/// # Errors
/// An error of `emit`.
pub fn folders_to_packages(
    repos_dir: &Path,
    names: &[String],
    language: Language,
    emit: &mut Emit<'_>,
) -> Result<Conversion> {
    from_folders(repos_dir, names, language, |name, contents| {
        for content in &contents {
            emit(&Package::record_of(name, content))?;
        }
        Ok(contents.len())
    })
}

/// Emits repositories, with their files of a language, as records of a raw file, with every field that can be computed.
///
/// # Errors
/// An error of `emit`.
pub fn folders_to_raw(
    repos_dir: &Path,
    names: &[String],
    language: Language,
    emit: &mut Emit<'_>,
) -> Result<Conversion> {
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
) -> Result<Conversion> {
    let mut conversion = Conversion::default();
    for name in names {
        match read_folder(repos_dir, name, language) {
            Ok((contents, skipped)) => {
                conversion.problems.extend(skipped);
                conversion.records += write(name, contents)?;
            }
            Err(error) => conversion.problems.push(error),
        }
    }
    Ok(conversion)
}

/// Converts a packages or raw file to the other format, or to itself with the missing fields computed. A packages file may
/// mix its repositories; they are collected in memory, in the order of the file.
///
/// # Errors
/// The file cannot be read, or an error of `emit`.
pub fn records(path: &Path, to: RecordKind, emit: &mut Emit<'_>) -> Result<Conversion> {
    let mut gathered: Vec<(String, Vec<Content>)> = Vec::new();
    let mut places: FxHashMap<String, usize> = FxHashMap::default();
    let mut conversion =
        each(path, emit, |At { line, .. }, object: Object| match (RecordKind::of(&object), to) {
            (Some(RecordKind::Package), RecordKind::Package) => {
                let package = Package::read(path, line, object)?;
                Ok(vec![Value::Object(package.record)])
            }
            (Some(RecordKind::RawRepository), RecordKind::RawRepository) => {
                Ok(vec![RawRepository::read(path, line, object)?.to_record()])
            }
            (Some(RecordKind::RawRepository), RecordKind::Package) => {
                let raw = RawRepository::read(path, line, object)?;
                let folder = raw.folder();
                let record = |file: &RawFile| Package::record_of(&folder, &file.content);
                Ok(raw.files.iter().map(record).collect())
            }
            (Some(RecordKind::Package), RecordKind::RawRepository) => {
                let package = Package::read(path, line, object)?;
                let (folder, file) = package.place();
                let place = *places.entry(folder.to_owned()).or_insert(gathered.len());
                if place == gathered.len() {
                    gathered.push((folder.to_owned(), Vec::new()));
                }
                gathered[place]
                    .1
                    .push(Content { path: file.to_owned(), text: package.text.clone() });
                Ok(Vec::new())
            }
            _ => Err(other_kind(path, line, &object, TargetFormat::Records(to))),
        })?;
    for (name, contents) in gathered {
        emit(&RawRepository::of(&name, contents).to_record())?;
        conversion.records += 1;
    }
    Ok(conversion)
}
