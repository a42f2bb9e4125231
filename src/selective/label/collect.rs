//! Instances of many repositories, one after another: memory is bounded by as many of the largest as there are threads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::draw::{Drawing, Instance, draw};
use super::drawn::{Journal, Key, Outcome};
use super::filter::{Facts, Filter, Rejection};
use crate::error::{Error, Result};
use crate::repository::corpus::{Repository, Walk};
use crate::repository::record::RawRepository;
use crate::store::jsonl::Reader;

/// Where repositories come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repositories {
    /// Folders of a folder, by their names, and which files of them count.
    Folders(PathBuf, Vec<String>, Walk),
    /// A file of raw repositories, and the names of those that are wanted; none: all.
    Raw(PathBuf, Vec<String>),
}

/// A part of the repositories: the `index`-th of `count`, from 0. Which part one belongs to, its name alone determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 0.
    pub index: u64,
    /// At least 1.
    pub count: u64,
}

impl Shard {
    /// All of them.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Whether a repository belongs to this part.
    pub fn holds(self, repository: &str) -> bool {
        let digest = blake3::hash(repository.as_bytes());
        let number = digest
            .as_bytes()
            .first_chunk()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes));
        number % self.count == self.index
    }
}

/// What is drawn from, and how.
#[derive(Debug, Clone, Copy)]
pub struct Collecting<'a> {
    /// The repositories.
    pub from: &'a Repositories,
    /// The part of them that is drawn from.
    pub shard: Shard,
    /// Which of these serve.
    pub filter: &'a Filter,
    /// How instances are drawn from each.
    pub drawing: &'a Drawing,
    /// How they are written.
    pub recorded: Recorded,
    /// Where what was drawn is kept until all is: a drawing that was broken off goes on from this file.
    pub journal: Option<&'a Path>,
}

/// What was collected.
#[derive(Debug, Default)]
pub struct Collected {
    /// Repositories that serve.
    pub repositories: usize,
    /// How many do not, by reason.
    pub rejected: BTreeMap<Rejection, usize>,
    /// Instances.
    pub instances: usize,
    /// Lines of their targets.
    pub lines: usize,
    /// Repositories whose outcome the journal knew.
    pub known: usize,
    /// What could not be read.
    pub problems: Vec<Error>,
}

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recorded {
    /// In the label format.
    #[default]
    Labels,
    /// As a benchmark's tasks, without what was retrieved.
    Tasks,
}

/// Draws the instances of all repositories that a filter lets through, in the order of the repositories, and hands each
/// record, a line of JSON without its end, to `emit`. `progress` is called after each repository.
///
/// # Errors
/// The raw file cannot be read on, the journal cannot be written, or `emit` fails.
pub fn collect(
    collecting: &Collecting<'_>,
    progress: &(dyn Fn() + Sync),
    emit: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<Collected> {
    let mut collected = Collected::default();
    let mut journal = collecting.journal.map(Journal::open).transpose()?;
    collecting.for_each_batch(&mut |batch| {
        let drawn: Vec<_> = batch
            .into_par_iter()
            .map(|read| {
                let read = read?;
                let drawn = collecting.draw(read.repository, read.said, journal.as_ref());
                progress();
                Ok((drawn, read.skipped))
            })
            .collect();
        for drawn in drawn {
            match drawn {
                Ok((drawn, skipped)) => {
                    collected.problems.extend(skipped);
                    let outcome = match drawn {
                        Drawn::Now(outcome) => {
                            if let Some(journal) = &mut journal {
                                journal.append(&outcome)?;
                            }
                            outcome
                        }
                        Drawn::Before(key) => {
                            collected.known += 1;
                            match &journal {
                                Some(journal) => journal.get(&key)?,
                                None => Outcome::default(),
                            }
                        }
                    };
                    collected.add(&outcome, emit)?;
                }
                Err(error) => collected.problems.push(error),
            }
        }
        Ok(())
    })?;
    Ok(collected)
}

/// A digest of all that [`collect`] would give, without drawing anything: of the repositories' files, and of how they are drawn
/// from. Also what could not be read.
///
/// # Errors
/// The raw file cannot be read on.
pub fn fingerprint(collecting: &Collecting<'_>) -> Result<(String, Vec<Error>)> {
    let (mut hasher, mut problems) = (blake3::Hasher::new(), Vec::new());
    collecting.for_each_batch(&mut |batch| {
        let keys = batch.into_par_iter().map(|read| match read {
            Ok(read) => {
                let key = collecting.key(&read.repository, read.said.as_ref());
                (key.to_string(), read.skipped)
            }
            Err(error) => (error.to_string(), vec![error]),
        });
        for (key, skipped) in keys.collect::<Vec<_>>() {
            hasher.update(key.as_bytes());
            problems.extend(skipped);
        }
        Ok(())
    })?;
    Ok((hasher.finalize().to_hex().to_string(), problems))
}

/// What came of a repository: just now, or when an earlier drawing came to it.
enum Drawn {
    Now(Outcome),
    Before(Key),
}

struct Read {
    repository: Repository,
    /// What its record says of it, so that it need not be found out.
    said: Option<Facts>,
    skipped: Vec<Error>,
}

impl Collecting<'_> {
    /// Reads as many repositories at once as there are threads, in their order.
    fn for_each_batch(&self, take: &mut dyn FnMut(Vec<Result<Read>>) -> Result<()>) -> Result<()> {
        let at_once = rayon::current_num_threads().max(1);
        match self.from {
            Repositories::Folders(dir, names, walk) => {
                let is_held = |name: &&String| self.shard.holds(name);
                let names: Vec<&String> = names.iter().filter(is_held).collect();
                for names in names.chunks(at_once) {
                    let read = names.par_iter().map(|name| {
                        let language = self.drawing.language;
                        let reading = Repository::read_with(dir, name, (language, *walk))?;
                        Ok(Read {
                            repository: reading.repository,
                            said: None,
                            skipped: reading.skipped,
                        })
                    });
                    take(read.collect())?;
                }
            }
            Repositories::Raw(path, wanted) => {
                let mut reader = Reader::open(path)?;
                loop {
                    let batch = self.raw_batch(&mut reader, path, (at_once, wanted))?;
                    if batch.is_empty() {
                        break;
                    }
                    take(batch)?;
                }
            }
        }
        Ok(())
    }

    fn key(&self, repository: &Repository, said: Option<&Facts>) -> Key {
        Key::of(repository, said, (self.drawing, self.filter, self.recorded))
    }

    /// The next raw repositories of the shard; none at the end of the file.
    fn raw_batch(
        &self,
        reader: &mut Reader<'_>,
        path: &Path,
        (at_once, wanted): (usize, &[String]),
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

    fn draw(
        &self,
        repository: Repository,
        said: Option<Facts>,
        journal: Option<&Journal>,
    ) -> Drawn {
        let key = journal.map(|_| self.key(&repository, said.as_ref()));
        if let (Some(journal), Some(key)) = (journal, &key)
            && journal.knows(key)
        {
            return Drawn::Before(key.clone());
        }
        let outcome = match self.instances(repository, said) {
            Ok(instances) => {
                let lines = instances.iter().map(|instance| instance.lines.len()).sum();
                let record =
                    |instance: &Instance| instance.to_record(self.recorded, self.drawing.kind);
                Outcome::drawn(lines, instances.iter().map(record).collect())
            }
            Err(reason) => Outcome::rejected(reason),
        };
        Drawn::Now(outcome.keyed(key))
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

impl Collected {
    fn add(&mut self, outcome: &Outcome, emit: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
        if let Some(reason) = outcome.rejected {
            *self.rejected.entry(reason).or_default() += 1;
            return Ok(());
        }
        self.repositories += 1;
        self.instances += outcome.records.len();
        self.lines += outcome.lines;
        outcome
            .records
            .iter()
            .try_for_each(|record| emit(record.get()))
    }
}
