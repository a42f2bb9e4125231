//! Draws instances from many repositories. Memory is bounded by one repository per thread.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use repoformer_store::artifact::digest;
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::Reader;
use repoformer_store::progress::Work;
use repoformer_store::{files, readings};
use repoformer_text::language::Language;
use repoformer_text::language::syntax::ParseGap;
use repoformer_text::message;
use repoformer_text::message::UserChoice;
use serde::Deserialize;

use super::draw::{Draw, Drawing, draw};
use super::filter::{Facts, Filter, Rejection};
use super::journal::{self, Journal, RepositoryDraw};
use super::written::RecordFormat;
use crate::repository::corpus::{Repository, Walk};
use crate::repository::record::RawRepository;
use crate::repository::{Shard, parallel};
use crate::task::sample::{Exclusions, UnparsedFile};

/// Source of repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repositories {
    /// Folder of repositories, names of the subfolders to use, and the way in which their files are listed.
    Folders(PathBuf, Vec<String>, Walk),
    /// File of raw repositories, or folder of such shards (see [`Shard`]), and the names of the repositories to use; all if
    /// empty.
    Raw(PathBuf, Vec<String>),
}

/// Settings of [`collect`].
#[derive(Debug, Clone, Copy)]
pub struct CollectSettings<'a> {
    /// Source of the repositories.
    pub from: &'a Repositories,
    /// Shard of the repositories to draw from.
    pub shard: Shard,
    /// Filter of the repositories.
    pub filter: &'a Filter,
    /// Settings for drawing from each repository.
    pub drawing: &'a Drawing,
    /// Format of the records.
    pub format: RecordFormat,
    /// File that keeps the records drawn so far until the run is complete; an interrupted run resumes from it.
    pub journal: Option<&'a Path>,
}

/// Counts of [`collect`].
#[derive(Debug, Default)]
pub struct CollectSummary {
    /// Number of repositories used.
    pub repositories: usize,
    /// Names of the repositories that were rejected, by reason.
    pub rejected: BTreeMap<Rejection, Vec<String>>,
    /// Whether each pattern of excluded paths matches a file of a repository.
    pub matched: Vec<bool>,
    /// Files of the used repositories that could not be parsed completely.
    pub unparsed: Vec<UnparsedFile>,
    /// Files whose imports the filter could not read.
    pub gaps: Vec<ParseGap>,
    /// Number of instances.
    pub instances: usize,
    /// Number of lines of the instances' targets.
    pub lines: usize,
    /// Number of repositories taken from the journal.
    pub known: usize,
    /// Repositories and files that could not be read.
    pub problems: Vec<Error>,
    /// Digest of all data read; [`fingerprint`] returns the same digest for the same data.
    pub drawn_from: String,
}

/// Function that receives a repository's number, counted from 0 over all shards, and a record: a line of JSON without a
/// newline.
pub(super) type EmitRecord<'e> = dyn FnMut(u64, &str) -> Result<()> + 'e;

/// Draws the instances of all repositories that pass a filter, in the order of the repositories. Passes each record to `emit`.
///
/// # Errors
/// The raw file cannot be read, the journal cannot be written, or `emit` fails.
pub fn collect(
    collecting: &CollectSettings<'_>,
    emit: &mut EmitRecord<'_>,
) -> Result<CollectSummary> {
    let (mut collected, mut hasher) = (CollectSummary::default(), blake3::Hasher::new());
    let mut journal = collecting.journal.map(Journal::open).transpose()?;
    // In a raw file, the number of repositories is unknown, so progress follows the bytes.
    let work = Work::new("label sample", "repositories", collecting.known_repositories());
    collecting.for_each_batch(&mut |batch| {
        let drawn: Vec<Result<RepositoryOutcome>> = parallel::map(batch, |read| {
            let read = read?;
            let (name, position) = (read.repository.name.clone(), read.position);
            let matched = collecting.drawing.exclusions.match_files(&read.repository);
            let mut gaps = Vec::new();
            let (key, draw) =
                collecting.draw(read.repository, read.said, journal.as_ref(), &mut gaps);
            work.advance(1);
            Ok(RepositoryOutcome {
                name,
                position,
                key,
                draw,
                matched,
                skipped: read.skipped,
                gaps,
            })
        });
        for drawn in drawn {
            let RepositoryOutcome { name, position, key, draw, matched, skipped, gaps } =
                match drawn {
                    Ok(drawn) => drawn,
                    Err(error) => {
                        hasher.update(error.to_string().as_bytes());
                        collected.problems.push(error);
                        continue;
                    }
                };
            hasher.update(key.as_bytes());
            collected.problems.extend(skipped);
            collected.gaps.extend(gaps);
            Exclusions::also_matched(&mut collected.matched, &matched);
            let emit = &mut |record: &str| emit(position, record);
            let result = match (draw, &journal) {
                (Some(draw), _) => collecting.write(key, draw, journal.as_mut(), emit)?,
                (None, Some(journal)) => {
                    collected.known += 1;
                    journal.replay(&key, emit)?
                }
                (None, None) => continue, // without a journal, no draw is known
            };
            collected.add(name, result);
        }
        Ok(())
    })?;
    collected.drawn_from = hasher.finalize().to_hex().to_string();
    Ok(collected)
}

/// File whose presence shows that a folder has all its shards.
pub const RAW_FOLDER: &str = "group.json";

/// A file of raw repositories.
struct RawFile {
    /// Number of the file among the files of all shards.
    number: u64,
    path: PathBuf,
    /// Expected digest.
    digest: Option<String>,
}

impl RawFile {
    /// Checks that the file that was read is the one that the folder's record names.
    fn check(&self) -> Result<()> {
        let read = readings::find(&self.path)?.map(|content| content.digest);
        match (&self.digest, read) {
            (Some(wanted), Some(read)) if *wanted != read => {
                let reason = format!("does not match its checksum in {RAW_FOLDER}");
                Err(Error::artifact(&self.path, reason, "run `group` again"))
            }
            _ => Ok(()),
        }
    }
}

/// Record of a folder of shards; only the fields that are needed here.
#[derive(Deserialize)]
struct RawRecord {
    settings: RawSettings,
    shards: Vec<RawShard>,
}

#[derive(Deserialize)]
struct RawSettings {
    language: String,
}

#[derive(Deserialize)]
struct RawShard {
    name: String,
    digest: String,
}

impl RawRecord {
    fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(RAW_FOLDER);
        let text = files::read_regular_if_there(&path)
            .map_err(|e| Error::reading(&path, "read this record", e))?;
        let record = text.map(|text| serde_json::from_slice(&text)).transpose();
        record.map_err(|e| Error::artifact(&path, format!("damaged: {e}"), "run `group` again"))
    }
}

/// Returns the language by which a folder of shards, or one of its files, was grouped; `None` if it was not grouped by
/// language, or if there is no record.
///
/// # Errors
/// The record is damaged or cannot be read.
pub fn grouped_language(raw: &Path) -> Result<Option<Language>> {
    let record = if raw.is_dir() {
        RawRecord::read(raw)?
    } else {
        let beside = RawRecord::read(raw.parent().unwrap_or(raw)).ok().flatten();
        let is_it = |shard: &RawShard| raw.file_name() == Some(shard.name.as_ref());
        beside.filter(|record| record.shards.iter().any(is_it))
    };
    Ok(record.and_then(|record| record.settings.language.parse().ok()))
}

/// Returns the language to draw: the requested one, else the one by which a raw corpus was grouped, else the default.
///
/// # Errors
/// The corpus was grouped by another language, or its record is damaged or cannot be read.
pub fn drawn_language(asked: Option<Language>, raw: Option<&Path>) -> Result<Language> {
    let grouped = raw.map(grouped_language).transpose()?.flatten();
    if let (Some(raw), Some(asked), Some(grouped)) = (raw, asked, grouped)
        && asked != grouped
    {
        return Err(Error::from_refusal(
            format!("{}: grouped for {grouped} only, not for {asked}", raw.display()),
            message!["leave the ", UserChoice::Language, " out, or group the corpus again"],
        ));
    }
    Ok(asked.or(grouped).unwrap_or_default())
}

/// Returns the files that hold repositories of a shard: the file itself, or those files of a folder that share repository names
/// with the shard.
fn raw_files(path: &Path, shard: Shard) -> Result<Vec<RawFile>> {
    if !path.is_dir() {
        return Ok(vec![RawFile { number: 0, path: path.to_owned(), digest: None }]);
    }
    let Some(record) = RawRecord::read(path)? else {
        let reason = format!("has no {RAW_FOLDER}, so its shards may be incomplete");
        return Err(Error::artifact(path, reason, "run `group` until it finishes"));
    };
    // A file and a shard can share a name only if their numbers are equal modulo the gcd of the two counts.
    let alike = gcd(record.shards.len() as u64, shard.count);
    let file = |(number, RawShard { name, digest }): (u64, RawShard)| {
        // Somebody else may have written the record.
        let file = path.join(&name);
        let is_within = Path::new(&name).components().eq([Component::Normal(name.as_ref())]);
        if !is_within || !files::symlink_metadata(&file).is_ok_and(|metadata| metadata.is_file()) {
            let reason = format!("its shard {name} is not a file in this folder");
            return Err(Error::artifact(&path.join(RAW_FOLDER), reason, "run `group` again"));
        }
        Ok(RawFile { number, path: file, digest: Some(digest) })
    };
    let found: Vec<RawFile> = (0..).zip(record.shards).map(file).collect::<Result<_>>()?;
    Ok(found.into_iter().filter(|file| file.number % alike == shard.index % alike).collect())
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Returns a digest of everything that [`collect`] depends on (the repositories' files and the settings) without drawing, and
/// the errors of files that could not be read.
///
/// # Errors
/// The raw file cannot be read.
pub fn fingerprint(collecting: &CollectSettings<'_>) -> Result<(String, Vec<Error>)> {
    let (mut hasher, mut problems) = (blake3::Hasher::new(), Vec::new());
    collecting.for_each_batch(&mut |batch| {
        let keys = parallel::map(batch, |read| match read {
            Ok(read) => (collecting.key(&read.repository, read.said.as_ref()), read.skipped),
            Err(error) => (error.to_string(), vec![error]),
        });
        for (key, skipped) in keys {
            hasher.update(key.as_bytes());
            problems.extend(skipped);
        }
        Ok(())
    })?;
    Ok((hasher.finalize().to_hex().to_string(), problems))
}

/// Result of drawing from one repository.
struct RepositoryOutcome {
    name: String,
    position: u64,
    /// Digest of everything that the result depends on.
    key: String,
    /// Instances of the repository, or the reason why there are none; `None` if the journal has them.
    draw: Option<Result<Draw, Rejection>>,
    /// Whether each pattern of excluded paths matches a file.
    matched: Vec<bool>,
    skipped: Vec<Error>,
    /// Files whose imports the filter could not read.
    gaps: Vec<ParseGap>,
}

struct CandidateRepository {
    /// Number of the repository among the repositories of all shards.
    position: u64,
    repository: Repository,
    /// Facts stated in the repository's record, which therefore need not be computed.
    said: Option<Facts>,
    skipped: Vec<Error>,
}

impl CollectSettings<'_> {
    /// Returns the number of repositories in the shard; 0 if it is unknown.
    fn known_repositories(&self) -> usize {
        match self.from {
            Repositories::Folders(_, names, _) => {
                names.iter().filter(|name| self.shard.holds(name)).count()
            }
            Repositories::Raw(..) => 0,
        }
    }

    /// Reads the repositories in order, as many at once as there are threads.
    fn for_each_batch(
        &self,
        take: &mut dyn FnMut(Vec<Result<CandidateRepository>>) -> Result<()>,
    ) -> Result<()> {
        let at_once = rayon::current_num_threads().max(1);
        match self.from {
            Repositories::Folders(dir, names, walk) => {
                let is_held = |(_, name): &(u64, &String)| self.shard.holds(name);
                let names: Vec<(u64, &String)> = (0..).zip(names).filter(is_held).collect();
                for names in names.chunks(at_once) {
                    let read = parallel::map(names, |&(position, name)| {
                        let language = self.drawing.language;
                        let reading = Repository::read_with(dir, name, language, *walk)?;
                        Ok(CandidateRepository {
                            position,
                            repository: reading.repository,
                            said: None,
                            skipped: reading.skipped,
                        })
                    });
                    take(read)?;
                }
            }
            Repositories::Raw(path, wanted) => {
                for file in raw_files(path, self.shard)? {
                    let mut reader = Reader::open(&file.path)?;
                    loop {
                        let mut batch = self.raw_batch(&mut reader, &file.path, at_once, wanted)?;
                        if batch.is_empty() {
                            break;
                        }
                        for read in batch.iter_mut().flatten() {
                            read.position += file.number << 32;
                        }
                        take(batch)?;
                    }
                    file.check()?;
                }
            }
        }
        Ok(())
    }

    /// Returns the digest of all settings except the shard.
    pub fn digest(&self) -> String {
        let Self { drawing, filter, format, .. } = self;
        // The debug text has every field, even fields added in the future.
        digest(format!("{drawing:?}{filter:?}{format:?}").as_bytes())
    }

    fn key(&self, repository: &Repository, said: Option<&Facts>) -> String {
        journal::key(repository, said, self.drawing, self.filter, self.format)
    }

    /// Reads the next raw repositories of the shard; empty at the end of the file.
    fn raw_batch(
        &self,
        reader: &mut Reader<'_>,
        path: &Path,
        at_once: usize,
        wanted: &[String],
    ) -> Result<Vec<Result<CandidateRepository>>> {
        let is_wanted = |name: &String| wanted.is_empty() || wanted.contains(name);
        let language = self.drawing.language;
        let mut batch = Vec::new();
        while batch.len() < at_once {
            let Some((at, bytes)) = reader.next_record()? else {
                break;
            };
            let read = repoformer_store::jsonl::parse(path, at.line, bytes)
                .and_then(|object| RawRepository::read(path, at.line, object));
            match read {
                Ok((raw, _)) if !self.shard.holds(&raw.folder()) || !is_wanted(&raw.folder()) => {}
                Ok((raw, skipped)) => batch.push(Ok(CandidateRepository {
                    position: at.row as u64,
                    said: Facts::from_record(&raw, language),
                    repository: raw.repository(language),
                    skipped,
                })),
                Err(error) => batch.push(Err(error)),
            }
        }
        Ok(batch)
    }

    /// Draws from a repository, unless the journal has its instances. Returns the repository's key, too.
    fn draw(
        &self,
        repository: Repository,
        said: Option<Facts>,
        journal: Option<&Journal>,
        gaps: &mut Vec<ParseGap>,
    ) -> (String, Option<Result<Draw, Rejection>>) {
        let key = self.key(&repository, said.as_ref());
        let is_known = journal.is_some_and(|journal| journal.knows(&key));
        let draw = (!is_known).then(|| self.instances(repository, said, gaps));
        (key, draw)
    }

    /// Passes the records of a repository's instances to the journal and to `emit` one by one, because together they can be
    /// many times as large as the repository.
    fn write(
        &self,
        key: String,
        draw: Result<Draw, Rejection>,
        mut journal: Option<&mut Journal>,
        emit: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<RepositoryDraw> {
        let mut result = RepositoryDraw { key, ..RepositoryDraw::default() };
        match draw {
            Ok(draw) => {
                for instance in draw.instances() {
                    let record = instance.to_record(self.format, self.drawing.kind);
                    if let Some(journal) = &mut journal {
                        journal.append_record(&result.key, &record)?;
                    }
                    emit(record.get())?;
                    result.instances += 1;
                    result.lines += instance.lines.len();
                }
                result.unparsed = draw.unparsed;
            }
            Err(reason) => result.rejected = Some(reason),
        }
        if let Some(journal) = journal {
            journal.append_result(&result)?;
        }
        Ok(result)
    }

    fn instances(
        &self,
        repository: Repository,
        said: Option<Facts>,
        gaps: &mut Vec<ParseGap>,
    ) -> Result<Draw, Rejection> {
        match said {
            Some(facts) => facts.pass(self.filter)?,
            None => self.filter.check(&repository, self.drawing.language, gaps)?,
        }
        match draw(repository, self.drawing) {
            drawn if drawn.is_empty() => Err(Rejection::NoInstance),
            drawn => Ok(drawn),
        }
    }
}

impl CollectSummary {
    fn add(&mut self, name: String, result: RepositoryDraw) {
        if let Some(reason) = result.rejected {
            self.rejected.entry(reason).or_default().push(name);
            return;
        }
        self.repositories += 1;
        self.unparsed.extend(result.unparsed);
        self.instances += result.instances;
        self.lines += result.lines;
    }
}
