//! Conversion of repositories between folders, packages files and raw files.

use std::path::Path;

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::stream::{Conversion, Emit, TargetFormat, each, other_kind};
use crate::error::{Error, Result};
use crate::repository::record::{Content, Folders, Package, RawRepository, read_folder};
use crate::store::jsonl::{self, At, Object, Reader};
use crate::task::kind::RecordKind;
use crate::text::language::Language;

/// Writes the files of a packages or raw file, a folder per repository, below `dir`; see [`Folders`]. The first file of a
/// record that cannot be written is the record's problem; the others are still written.
///
/// # Errors
/// The file cannot be read, or a folder cannot be written; then there are no new folders.
pub fn to_folders(path: &Path, dir: &Path) -> Result<Conversion> {
    let mut folders = Folders::create(dir)?;
    let mut conversion = Conversion::default();
    let mut reader = Reader::open(path)?;
    while let Some((At { line, .. }, bytes)) = reader.next_record()? {
        let files = jsonl::parse(path, line, bytes)
            .and_then(|object| files(path, line, object, TargetFormat::Folders));
        let mut problem = None;
        match files {
            Ok((folder, contents)) => {
                for content in contents {
                    match folders.write(&folder, &content.path, &content.text)? {
                        Ok(()) => conversion.records += 1,
                        Err(reason) => {
                            problem.get_or_insert_with(|| Error::record(path, line, reason));
                        }
                    }
                }
            }
            Err(error) => problem = Some(error),
        }
        conversion.problems.extend(problem);
    }
    if conversion.records > 0 {
        folders.finish()?;
    }
    Ok(conversion)
}

/// Returns the folder of the repository of a packages or raw record, and the record's files.
fn files(
    path: &Path,
    line: usize,
    object: Object,
    to: TargetFormat,
) -> Result<(String, Vec<Content>)> {
    match RecordKind::of(&object) {
        Some(RecordKind::Package) => {
            let package = Package::read(path, line, object)?;
            let (folder, file) = package.place();
            let content = Content { path: file.to_owned(), text: package.text.clone() };
            Ok((folder.to_owned(), vec![content]))
        }
        Some(RecordKind::RawRepository) => {
            let raw = RawRepository::read(path, line, object)?;
            Ok((raw.folder(), raw.files.into_iter().map(|file| file.content).collect()))
        }
        _ => Err(other_kind(path, line, &object, to)),
    }
}

/// Emits the source files of a language in repositories: as records of a packages file, a record a file, or of a raw file, a
/// record a repository with every field that can be computed.
///
/// # Errors
/// An error of `emit`.
pub fn from_folders(
    repos_dir: &Path,
    names: &[String],
    language: Language,
    to: RecordKind,
    emit: &mut Emit<'_>,
) -> Result<Conversion> {
    let mut conversion = Conversion::default();
    for name in names {
        let contents = match read_folder(repos_dir, name, language) {
            Ok((contents, skipped)) => {
                conversion.problems.extend(skipped);
                contents
            }
            Err(error) => {
                conversion.problems.push(error);
                continue;
            }
        };
        if to == RecordKind::Package {
            contents.iter().try_for_each(|content| emit(&Package::record_of(name, content)))?;
            conversion.records += contents.len();
        } else {
            emit(&RawRepository::of(name, contents).to_record())?;
            conversion.records += 1;
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
            (_, RecordKind::Package) => {
                let (folder, contents) = files(path, line, object, TargetFormat::Records(to))?;
                let record = |content| Package::record_of(&folder, content);
                Ok(contents.iter().map(record).collect())
            }
            _ => {
                let (folder, contents) = files(path, line, object, TargetFormat::Records(to))?;
                let place = *places.entry(folder.clone()).or_insert(gathered.len());
                if place == gathered.len() {
                    gathered.push((folder, Vec::new()));
                }
                gathered[place].1.extend(contents);
                Ok(Vec::new())
            }
        })?;
    for (name, contents) in gathered {
        emit(&RawRepository::of(&name, contents).to_record())?;
        conversion.records += 1;
    }
    Ok(conversion)
}
