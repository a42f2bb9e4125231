//! Conversion of repositories between folders, packages files and raw files.

use std::collections::BTreeMap;
use std::path::Path;

use foldhash::HashMap;
use repoformer_core::repository::corpus::{Walk, languages};
use repoformer_core::repository::record::{
    FileText, Folders, OF_REPOSITORY, Package, RawFile, RawRepository, WriteOutcome, read_folder,
};
use repoformer_core::task::kind::RecordKind;
use repoformer_store::error::{Error, Result, keep};
use repoformer_store::jsonl::{self, Object, Reader, RecordAddress};
use repoformer_store::progress::Work;
use repoformer_text::language::Language;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde_json::Value;

use super::archive;
use super::stream::{
    Conversion, Emit, TargetFormat, dropped_field_warnings, each, finish, other_kind,
};

/// Writes the files of a packages file, a raw file or a tar archive to `dir`, in one folder per repository; see [`Folders`]. A
/// file that cannot be written is reported as a problem, and the other files are written.
///
/// # Errors
/// The file cannot be read, or a folder cannot be written; no new folders exist then.
pub fn to_folders(path: &Path, dir: &Path) -> Result<Conversion> {
    let (is_archive, input) = archive::recognise(path, jsonl::open(path)?)?;
    if is_archive {
        return archive::to_folders(path, input, dir);
    }
    let mut folders = Folders::create(dir)?;
    let mut conversion = Conversion::default();
    let mut owners = Owners::default();
    let mut reader = Reader::with_input(path, input);
    while let Some((RecordAddress { line, .. }, bytes)) = reader.next_record()? {
        let files = jsonl::parse(path, line, bytes)
            .and_then(|object| files(path, line, object, &mut owners));
        match files {
            Ok((folder, contents, left_out)) => {
                left_out.into_iter().for_each(|one| keep(&mut conversion.problems, path, one));
                for content in contents {
                    match folders.write(&folder, &content.path, content.text.as_bytes())? {
                        WriteOutcome::Whole => conversion.records += 1,
                        WriteOutcome::LeftOut => {}
                        WriteOutcome::Refused(reason) => {
                            let problem = Error::record(path, line, reason);
                            keep(&mut conversion.problems, path, problem);
                        }
                    }
                }
            }
            Err(error) => keep(&mut conversion.problems, path, error),
        }
    }
    finish(folders, path, dir, &mut conversion)?;
    Ok(conversion)
}

/// Names of raw repositories by their folders.
#[derive(Default)]
struct Owners(HashMap<String, String>);

impl Owners {
    /// Reads a raw repository whose folder no other repository has, and the reasons for the files that are left out.
    fn read(
        &mut self,
        path: &Path,
        line: usize,
        object: Object,
    ) -> Result<(RawRepository, Vec<Error>)> {
        let (raw, left_out) = RawRepository::read(path, line, object)?;
        let folder = raw.folder();
        let owner = self.0.entry(folder.clone()).or_insert_with(|| raw.name.clone());
        if *owner == raw.name {
            return Ok((raw, left_out));
        }
        let reason = format!(
            "its folder '{folder}' already belongs to repository '{owner}'; rename one of them"
        );
        Err(Error::record(path, line, reason))
    }
}

/// Returns the repository's folder of a packages or raw record, the record's files, and the files that are left out.
fn files(
    path: &Path,
    line: usize,
    object: Object,
    owners: &mut Owners,
) -> Result<(String, Vec<FileText>, Vec<Error>)> {
    match RecordKind::from_record(&object) {
        Some(RecordKind::Package) => {
            let package = Package::read(path, line, object)?;
            let (folder, file) = package.place();
            let content = FileText { path: file.to_owned(), text: package.text.clone() };
            Ok((folder.to_owned(), vec![content], Vec::new()))
        }
        Some(RecordKind::RawRepository) => {
            let (raw, left_out) = owners.read(path, line, object)?;
            let folder = raw.folder();
            Ok((folder, raw.files.into_iter().map(|file| file.content).collect(), left_out))
        }
        _ => Err(other_kind(path, line, &object, TargetFormat::Folders)),
    }
}

/// Emits the source files of a language in repositories: as records of a packages file, one per file, or of a raw file, one per
/// repository, with every field that can be computed.
///
/// # Errors
/// `emit` returns an error.
pub fn from_folders(
    repos_dir: &Path,
    names: &[String],
    language: Language,
    walk: Walk,
    to: RecordKind,
    emit: &mut Emit<'_>,
) -> Result<Conversion> {
    let mut conversion = Conversion::default();
    let work = Work::new(format!("reading {}", repos_dir.display()), "repositories", names.len());
    for name in names {
        work.advance(1);
        let contents = match read_folder(repos_dir, name, language, walk) {
            Ok((contents, skipped)) => {
                conversion.problems.extend(skipped);
                contents
            }
            Err(error) => {
                conversion.problems.push(error);
                continue;
            }
        };
        if contents.is_empty() {
            let counts = languages(repos_dir, std::slice::from_ref(name), walk);
            let counts: Vec<String> = counts
                .iter()
                .map(|(other, files)| format!("{files} of {}", other.title()))
                .collect();
            let others = if counts.is_empty() {
                Message::default()
            } else {
                message![format!(", but {}; choose the ", counts.join(", ")), UserChoice::Language]
            };
            let none = format!("contains no readable {} files", language.title());
            let reason = message![none, others];
            conversion.problems.push(Error::Repository { path: repos_dir.join(name), reason });
        } else if to == RecordKind::Package {
            let record = |content| Package::record_of(name, content, &Object::new());
            contents.iter().try_for_each(|content| emit(&record(content)))?;
            conversion.records += contents.len();
        } else {
            emit(&RawRepository::new(name, contents).to_record(&mut conversion.gaps))?;
            conversion.records += 1;
        }
    }
    Ok(conversion)
}

/// Converts a packages or raw file to the other format, or to itself with the missing fields computed. A packages file may mix
/// its repositories; they are collected in memory, in the order of the file. Fields of packages that describe their repository
/// are stored in the metadata of the raw file's files, and restored from there.
///
/// # Errors
/// The file cannot be read, or `emit` returns an error.
pub fn records(path: &Path, to: RecordKind, emit: &mut Emit<'_>) -> Result<Conversion> {
    let mut gathered: Vec<RawRepository> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::default();
    let mut owners = Owners::default();
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    let mut leave_out = |name: String| *left_out.entry(name).or_default() += 1;
    let (mut files_left_out, mut gaps) = (Vec::new(), Vec::new());
    let mut conversion = each(path, emit, |RecordAddress { line, .. }, object: Object| {
        match (RecordKind::from_record(&object), to) {
            (Some(RecordKind::Package), RecordKind::Package) => {
                let package = Package::read(path, line, object)?;
                Ok(vec![Value::Object(package.record)])
            }
            (Some(RecordKind::RawRepository), RecordKind::RawRepository) => {
                let (raw, left_out) = RawRepository::read(path, line, object)?;
                left_out.into_iter().for_each(|one| keep(&mut files_left_out, path, one));
                Ok(vec![raw.to_record(&mut gaps)])
            }
            (Some(RecordKind::RawRepository), _) => {
                let (raw, left_out) = owners.read(path, line, object)?;
                left_out.into_iter().for_each(|one| keep(&mut files_left_out, path, one));
                no_place_in_packages(&raw).into_iter().for_each(&mut leave_out);
                let record =
                    |file: &RawFile| Package::record_of(&raw.name, &file.content, &file.metadata);
                Ok(raw.files.iter().map(record).collect())
            }
            (Some(RecordKind::Package), _) => {
                let package = Package::read(path, line, object)?;
                no_place_in_raw(&package).into_iter().for_each(&mut leave_out);
                let (folder, file) = package.place();
                let place = *places.entry(folder.to_owned()).or_insert(gathered.len());
                if place == gathered.len() {
                    gathered.push(RawRepository::new(package.name(), Vec::new()));
                }
                let content = FileText { path: file.to_owned(), text: package.text.clone() };
                gathered[place].files.push(RawFile { content, metadata: package.kept_fields() });
                Ok(Vec::new())
            }
            _ => Err(other_kind(path, line, &object, TargetFormat::Records(to))),
        }
    })?;
    conversion.problems.extend(files_left_out);
    for raw in gathered {
        emit(&raw.to_record(&mut gaps))?;
        conversion.records += 1;
    }
    conversion.gaps = gaps;
    conversion.warnings =
        dropped_field_warnings(left_out, "record", to.name()).map(Into::into).collect();
    Ok(conversion)
}

/// Returns the fields of a raw repository that have no place in packages, and that are not recomputed.
fn no_place_in_packages(raw: &RawRepository) -> Vec<String> {
    let is_known = |name: &String, value: &Value| match name.as_str() {
        "repo_size" => true,
        "stars_count" => value.as_u64() == Some(0),
        _ => false,
    };
    let mut names: Vec<String> =
        raw.extra.iter().filter(|(n, v)| !is_known(n, v)).map(|(n, _)| n.clone()).collect();
    let mut of_files: Vec<String> = raw
        .files
        .iter()
        .flat_map(|file| file.metadata.keys())
        .filter(|name| {
            !OF_REPOSITORY.contains(&name.as_str()) && !RawFile::COMPUTED.contains(&name.as_str())
        })
        .map(|name| format!("files[].metadata.{name}"))
        .collect();
    of_files.sort_unstable();
    of_files.dedup();
    names.extend(of_files);
    names
}

/// Returns the fields of a package that have no place in raw repositories.
fn no_place_in_raw(package: &Package) -> Vec<String> {
    let is_known = |name: &&String| {
        OF_REPOSITORY.contains(&name.as_str()) || ["filepath", "content"].contains(&name.as_str())
    };
    let mut names: Vec<String> =
        package.record.keys().filter(|name| !is_known(name)).cloned().collect();
    let contents = package.record.get("content").and_then(Value::as_array).map_or(0, Vec::len);
    names.extend((contents > 1).then(|| "content[1]".to_owned()));
    names
}
