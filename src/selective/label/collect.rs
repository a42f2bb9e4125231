//! Draws instances of many repositories: memory is bounded by one repository per thread.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::draw::{Drawing, Instance, draw};
use super::filter::{Facts, Filter, Rejection};
use super::journal::{self, Journal, RepositoryDraw};
use super::written::RecordFormat;
use crate::error::{Error, Result};
use crate::repository::corpus::{Repository, Walk};
use crate::repository::parallel;
use crate::repository::record::RawRepository;
use crate::repository::shard::Shard;
use crate::store::jsonl::Reader;
use crate::store::progress::Work;
use crate::task::sample::Exclusions;

/// Source of repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repositories {
    /// Folders in a folder, by name, and how their files are listed.
    Folders(PathBuf, Vec<String>, Walk),
    /// A file of raw repositories, and the names of those to use; empty: all.
    Raw(PathBuf, Vec<String>),
}

/// Settings of [`collect`].
#[derive(Debug, Clone, Copy)]
pub struct CollectSettings<'a> {
    /// Source of the repositories.
    pub from: &'a Repositories,
    /// Part of the repositories to draw from.
    pub shard: Shard,
    /// Filter of the repositories.
    pub filter: &'a Filter,
    /// Settings of drawing from each repository.
    pub drawing: &'a Drawing,
    /// Format of the records.
    pub format: RecordFormat,
    /// File that keeps what was drawn until all is done: an interrupted run resumes from it.
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
    /// Number of instances.
    pub instances: usize,
    /// Number of lines of their targets.
    pub lines: usize,
    /// Number of repositories taken from the journal.
    pub known: usize,
    /// Repositories and files that could not be read.
    pub problems: Vec<Error>,
    /// Digest of all that was read, as [`fingerprint`] returns it for the same.
    pub drawn_from: String,
}

/// Draws the instances of all repositories that pass a filter, in the order of the repositories, and passes each record, a line
/// of JSON without newline, to `emit`.
///
/// # Errors
/// The raw file cannot be read, the journal cannot be written, or `emit` fails.
pub fn collect(
    collecting: &CollectSettings<'_>,
    emit: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<CollectSummary> {
    let (mut collected, mut hasher) = (CollectSummary::default(), blake3::Hasher::new());
    let mut journal = collecting.journal.map(Journal::open).transpose()?;
    // How many there are in a raw file is seen by its bytes.
    let work = Work::of("label sample", "repositories", collecting.known_repositories());
    collecting.for_each_batch(&mut |batch| {
        let drawn: Vec<Result<Drawn>> = parallel::map(batch, |read| {
            let read = read?;
            let name = read.repository.name.clone();
            let matched = collecting.drawing.exclusions.matched(&read.repository);
            let outcome = collecting.draw(read.repository, read.said, journal.as_ref());
            work.done(1);
            Ok(Drawn { name, outcome, matched, skipped: read.skipped })
        });
        for drawn in drawn {
            let Drawn { name, mut outcome, matched, skipped } = match drawn {
                Ok(drawn) => drawn,
                Err(error) => {
                    hasher.update(error.to_string().as_bytes());
                    collected.problems.push(error);
                    continue;
                }
            };
            hasher.update(outcome.key.as_bytes());
            collected.problems.extend(skipped);
            match &mut journal {
                Some(journal) if journal.knows(&outcome.key) => {
                    collected.known += 1;
                    outcome = journal.get(&outcome.key)?;
                }
                Some(journal) => journal.append(&outcome)?,
                None => {}
            }
            Exclusions::also_matched(&mut collected.matched, &matched);
            collected.add(name, &outcome, emit)?;
        }
        Ok(())
    })?;
    collected.drawn_from = hasher.finalize().to_hex().to_string();
    Ok(collected)
}

/// Returns a digest of all that [`collect`] depends on, the repositories' files and the settings, without drawing; and what could
/// not be read.
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

/// What a repository gave.
struct Drawn {
    name: String,
    outcome: RepositoryDraw,
    /// Whether each pattern of excluded paths matches a file.
    matched: Vec<bool>,
    skipped: Vec<Error>,
}

struct Read {
    repository: Repository,
    /// Facts in its record, which then need not be computed.
    said: Option<Facts>,
    skipped: Vec<Error>,
}

impl CollectSettings<'_> {
    /// Number of repositories of the shard; 0 where it is not known.
    fn known_repositories(&self) -> usize {
        match self.from {
            Repositories::Folders(_, names, _) => {
                names.iter().filter(|name| self.shard.holds(name)).count()
            }
            Repositories::Raw(..) => 0,
        }
    }

    /// Reads the repositories in their order, as many at once as there are threads.
    fn for_each_batch(&self, take: &mut dyn FnMut(Vec<Result<Read>>) -> Result<()>) -> Result<()> {
        let at_once = rayon::current_num_threads().max(1);
        match self.from {
            Repositories::Folders(dir, names, walk) => {
                let is_held = |name: &&String| self.shard.holds(name);
                let names: Vec<&String> = names.iter().filter(is_held).collect();
                for names in names.chunks(at_once) {
                    let read = parallel::map(names, |name| {
                        let language = self.drawing.language;
                        let reading = Repository::read_with(dir, name, language, *walk)?;
                        Ok(Read {
                            repository: reading.repository,
                            said: None,
                            skipped: reading.skipped,
                        })
                    });
                    take(read)?;
                }
            }
            Repositories::Raw(path, wanted) => {
                let mut reader = Reader::open(path)?;
                loop {
                    let batch = self.raw_batch(&mut reader, path, at_once, wanted)?;
                    if batch.is_empty() {
                        break;
                    }
                    take(batch)?;
                }
            }
        }
        Ok(())
    }

    fn key(&self, repository: &Repository, said: Option<&Facts>) -> String {
        journal::key(repository, said, self.drawing, self.filter, self.format)
    }

    /// Reads the next raw repositories of the shard; none at the end of the file.
    fn raw_batch(
        &self,
        reader: &mut Reader<'_>,
        path: &Path,
        at_once: usize,
        wanted: &[String],
    ) -> Result<Vec<Result<Read>>> {
        let is_wanted = |name: &String| wanted.is_empty() || wanted.contains(name);
        let language = self.drawing.language;
        let mut batch = Vec::new();
        while batch.len() < at_once {
            let Some((at, bytes)) = reader.next_record()? else {
                break;
            };
            let read = crate::store::jsonl::parse(path, at.line, bytes)
                .and_then(|object| RawRepository::read(path, at.line, object));
            match read {
                Ok(raw) if !self.shard.holds(&raw.folder()) || !is_wanted(&raw.folder()) => {}
                Ok(raw) => batch.push(Ok(Read {
                    said: Facts::said(&raw, language),
                    repository: raw.repository(language),
                    skipped: Vec::new(),
                })),
                Err(error) => batch.push(Err(error)),
            }
        }
        Ok(batch)
    }

    /// Draws from a repository. Of one that the journal knows only the key is returned.
    fn draw(
        &self,
        repository: Repository,
        said: Option<Facts>,
        journal: Option<&Journal>,
    ) -> RepositoryDraw {
        let key = self.key(&repository, said.as_ref());
        let mut drawn = RepositoryDraw { key, ..RepositoryDraw::default() };
        if journal.is_some_and(|journal| journal.knows(&drawn.key)) {
            return drawn;
        }
        match self.instances(repository, said) {
            Ok(instances) => {
                let record =
                    |instance: Instance| instance.to_record(self.format, self.drawing.kind);
                drawn.lines = instances.iter().map(|instance| instance.lines.len()).sum();
                drawn.records = instances.into_iter().map(record).collect();
            }
            Err(reason) => drawn.rejected = Some(reason),
        }
        drawn
    }

    fn instances(
        &self,
        repository: Repository,
        said: Option<Facts>,
    ) -> Result<Vec<Instance>, Rejection> {
        match said {
            Some(facts) => facts.pass(self.filter)?,
            None => self.filter.check(&repository, self.drawing.language)?,
        }
        match draw(repository, self.drawing) {
            drawn if drawn.is_empty() => Err(Rejection::NoInstance),
            drawn => Ok(drawn),
        }
    }
}

impl CollectSummary {
    fn add(
        &mut self,
        name: String,
        outcome: &RepositoryDraw,
        emit: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        if let Some(reason) = outcome.rejected {
            self.rejected.entry(reason).or_default().push(name);
            return Ok(());
        }
        self.repositories += 1;
        self.instances += outcome.records.len();
        self.lines += outcome.lines;
        outcome.records.iter().try_for_each(|record| emit(record.get()))
    }
}
