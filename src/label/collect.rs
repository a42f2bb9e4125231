//! Instances of many repositories, one after another: memory is bounded by as many of the largest as there are threads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde_json::{Value, json};

use super::draw::{Drawing, Instance, InstanceKind, draw};
use super::filter::{Facts, Filter, Rejection};
use crate::corpus::{Repository, Walk};
use crate::error::{Error, Result};
use crate::jsonl::Reader;
use crate::repository_file::RawRepository;

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
/// record to `emit`. `progress` is called after each repository.
///
/// # Errors
/// The raw file cannot be read on, or `emit` fails.
pub fn collect(
    from: &Repositories,
    drawing: &Drawing,
    filter: &Filter,
    (shard, recorded): (Shard, Recorded),
    progress: &(dyn Fn() + Sync),
    emit: &mut dyn FnMut(&Value) -> Result<()>,
) -> Result<Collected> {
    let mut collected = Collected::default();
    let at_once = rayon::current_num_threads().max(1);
    let mut take = |batch: Vec<Result<Read>>| -> Result<()> {
        let drawn: Vec<_> = batch
            .into_par_iter()
            .map(|read| {
                let read = read?;
                let outcome = outcome(read.repository, read.said, drawing, filter);
                progress();
                Ok((outcome, read.skipped))
            })
            .collect();
        for drawn in drawn {
            match drawn {
                Ok((outcome, skipped)) => {
                    collected.problems.extend(skipped);
                    collected.add(outcome, drawing, recorded, emit)?;
                }
                Err(error) => collected.problems.push(error),
            }
        }
        Ok(())
    };
    match from {
        Repositories::Folders(dir, names, walk) => {
            let names: Vec<&String> = names.iter().filter(|name| shard.holds(name)).collect();
            for names in names.chunks(at_once) {
                let read = names.par_iter().map(|name| {
                    let reading = Repository::read_with(dir, name, (drawing.language, *walk))?;
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
                let batch = raw_batch(&mut reader, path, (shard, at_once), wanted, drawing)?;
                if batch.is_empty() {
                    break;
                }
                take(batch)?;
            }
        }
    }
    Ok(collected)
}

struct Read {
    repository: Repository,
    /// What its record says of it, so that it need not be found out.
    said: Option<Facts>,
    skipped: Vec<Error>,
}

/// The next raw repositories of a shard; none at the end of the file.
fn raw_batch(
    reader: &mut Reader<'_>,
    path: &Path,
    (shard, at_once): (Shard, usize),
    wanted: &[String],
    drawing: &Drawing,
) -> Result<Vec<Result<Read>>> {
    let is_wanted = |name: &String| wanted.is_empty() || wanted.contains(name);
    let mut batch = Vec::new();
    while batch.len() < at_once {
        let Some((at, bytes)) = reader.next_record()? else {
            break;
        };
        let read = crate::jsonl::parse(path, at.line, bytes)
            .and_then(|object| RawRepository::read(path, at.line, object));
        match read {
            Ok(raw) if !shard.holds(&raw.folder()) || !is_wanted(&raw.folder()) => {}
            Ok(raw) => batch.push(Ok(Read {
                said: Facts::said(&raw, drawing.language),
                repository: raw.repository(drawing.language),
                skipped: Vec::new(),
            })),
            Err(error) => batch.push(Err(error)),
        }
    }
    Ok(batch)
}

fn outcome(
    repository: Repository,
    said: Option<Facts>,
    drawing: &Drawing,
    filter: &Filter,
) -> Result<Vec<Instance>, Rejection> {
    match said {
        Some(facts) => facts.pass(filter)?,
        None => filter.check(&repository, drawing.language)?,
    }
    match draw(repository, drawing) {
        drawn if drawn.is_empty() => Err(Rejection::NoInstance),
        drawn => Ok(drawn),
    }
}

impl Collected {
    fn add(
        &mut self,
        outcome: Result<Vec<Instance>, Rejection>,
        drawing: &Drawing,
        recorded: Recorded,
        emit: &mut dyn FnMut(&Value) -> Result<()>,
    ) -> Result<()> {
        let instances = match outcome {
            Ok(instances) => instances,
            Err(rejection) => {
                *self.rejected.entry(rejection).or_default() += 1;
                return Ok(());
            }
        };
        self.repositories += 1;
        for instance in instances {
            self.instances += 1;
            self.lines += instance.lines.len();
            emit(&match recorded {
                Recorded::Labels => instance.to_label(drawing.kind),
                Recorded::Tasks => instance.to_task(),
            })?;
        }
        Ok(())
    }
}

impl Instance {
    fn id(&self) -> String {
        format!("{}/{}_{}", self.path, self.lines.start, self.lines.end)
    }

    /// Its record in the label format, yet to be judged.
    pub fn to_label(&self, kind: InstanceKind) -> Value {
        let fragment = |fragment: &crate::cross_file::Fragment| json!({"retrieved_chunk": fragment.text, "filename": fragment.path, "score": fragment.score});
        let list: Vec<Value> = self.cross_file.fragments.iter().map(fragment).collect();
        json!({
            "metadata": {
                "task_id": self.id(), "filename": self.path, "start_i": self.lines.start, "end_i": self.lines.end,
                "kind": kind.name(), "query_has_target": self.query_has_target,
            },
            "prompt": self.left, "groundtruth": self.target, "right_context": self.right,
            "crossfile_context": {"text": self.cross_file.text, "list": list},
        })
    }

    /// The same as a benchmark's task, without what was retrieved: CrossCodeEval's record, which says its lines.
    pub fn to_task(&self) -> Value {
        let (repository, file) = self.path.split_once('/').unwrap_or(("", &self.path));
        let line = |text: &str| text.matches('\n').count();
        let (start, lines) = (line(&self.left), line(&self.target));
        json!({
            "prompt": self.left, "groundtruth": self.target, "right_context": self.right,
            "metadata": {
                "task_id": self.id(), "repository": repository, "file": file, "context_start_lineno": 0,
                "groundtruth_start_lineno": start, "right_context_start_lineno": start + lines + 1,
            },
            "crossfile_context": {"text": "", "list": []},
        })
    }
}
