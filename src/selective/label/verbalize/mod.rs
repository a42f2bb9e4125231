//! Labelled instances as training sequences: the token after `<eof>` says whether to retrieve, what follows `<fim_middle>` is the
//! completion (Repoformer, section 3.3; `preprocess_repoformer.py` of its released program).
//!
//! - [`Sequence`]: one instance within its budgets, and which of its tokens are supervised.
//! - [`Split`]: repositories for training, validation and test.
//! - [`verbalize`]: a file of labels → JSON lines and Parquet.

mod parquet;
mod sequence;
mod split;
mod summary;
#[cfg(test)]
mod tests;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;

use self::split::{Occurrences, Plan, digest, repository_of};
use self::summary::nothing;
use self::write::{Row, SplitFiles};
use super::Label;
use crate::error::{Error, Result};
use crate::prompt::style::DecisionFrame;
use crate::store::artifact::write_file;
use crate::store::jsonl::{self, Reader};
use crate::text::tokenize::model::Encoder;

pub use self::sequence::Sequence;
pub use self::split::{Proportions, Split};
pub use self::summary::{LeftOut, SplitSummary, Verbalized};

/// How sequences are made.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What stands around the contexts.
    pub frame: DecisionFrame,
    /// Tokens of a sequence, at most; 2,048 in the paper.
    pub max_tokens: usize,
    /// Tokens of a cross-file context, at most, of which the first are kept; 512 in the paper.
    pub max_cross_file_tokens: usize,
    /// A token after the target, which the model learns to stop with. The released program has none.
    pub end: Option<String>,
    /// How much the decision weighs against the completion; 1 in the paper.
    pub lambda: f32,
    /// Which shares of the repositories are held out.
    pub held_out: Proportions,
    /// Another seed, other repositories.
    pub seed: u64,
}

/// Bytes of records that are taken on at once.
const BATCH: usize = 8 << 20;

/// Verbalizes a file of labels into a folder: `train.jsonl`, `train.parquet` and the same of each split that is asked for, the
/// `tokenizer.json` with the tokens that were added, and the `prompt-style.toml` of a model so trained. The labels are read twice and
/// in parts, so memory grows by 20 bytes an instance and the names of the repositories. Files
/// of a split that is not asked for any more are removed: its repositories are trained on now. Same input, same bytes, whatever the
/// number of threads. `progress` is called after each part with the number of its records.
///
/// # Errors
/// A file cannot be read or written, the labels are of several models, no instance can be a sequence, or there are too few
/// repositories for the splits.
pub fn verbalize(
    labels: &Path,
    encoder: &Encoder,
    settings: &Settings,
    folder: &Path,
    progress: &dyn Fn(usize),
) -> Result<Verbalized> {
    let plan = plan(labels, settings)?;
    let mut verbalized = Verbalized::default();
    let mut files = BTreeMap::new();
    for split in Split::ALL {
        if settings.held_out.wants(split) {
            files.insert(split, SplitFiles::create(folder, split.name())?);
            let summary = SplitSummary {
                repositories: plan.repositories(split),
                ..SplitSummary::default()
            };
            verbalized.splits.insert(split, summary);
        }
    }
    for_each_part(labels, |part| {
        let made = part
            .par_iter()
            .map(|record| make(labels, record, &plan, encoder, settings));
        for made in made.collect::<Vec<_>>() {
            match made {
                Ok(Ok(made)) => {
                    if let Some(files) = files.get_mut(&made.split) {
                        files.push(&made.sequence, settings.lambda, &made.line)?;
                    }
                    verbalized.inexact += usize::from(!made.is_exact);
                    let summary = verbalized.splits.entry(made.split).or_default();
                    summary.add(&made.sequence);
                }
                Ok(Err(reason)) => *verbalized.left_out.entry(reason).or_default() += 1,
                Err(error) => verbalized.problems.push(error),
            }
        }
        progress(part.len());
        Ok(())
    })?;
    if verbalized.splits.values().all(|split| split.sequences == 0) {
        return Err(nothing(labels, &verbalized));
    }
    // Splits of another run hold other repositories: none of them may lie beside new ones, whenever this is broken off.
    for split in Split::ALL {
        write::remove(folder, split.name())?;
    }
    for files in files.into_values() {
        files.finish()?;
    }
    write_file(&folder.join("tokenizer.json"), encoder.json())?;
    let style = settings.frame.to_style_file();
    write_file(&folder.join("prompt-style.toml"), style.as_bytes())?;
    Ok(verbalized)
}

/// A line of the labels.
struct Record {
    line: usize,
    bytes: Vec<u8>,
}

/// A sequence on its way to its file.
struct Made {
    split: Split,
    sequence: Sequence,
    line: String,
    is_exact: bool,
}

/// Hands the records on in parts of about [`BATCH`] bytes.
fn for_each_part(path: &Path, mut take: impl FnMut(&[Record]) -> Result<()>) -> Result<()> {
    let mut reader = Reader::open(path)?;
    let (mut part, mut size) = (Vec::new(), 0);
    while let Some((at, bytes)) = reader.next_record()? {
        size += bytes.len();
        part.push(Record {
            line: at.line,
            bytes: bytes.to_vec(),
        });
        if size >= BATCH {
            take(&part)?;
            part.clear();
            size = 0;
        }
    }
    take(&part)
}

fn read(path: &Path, record: &Record) -> Result<Label> {
    let object = jsonl::parse(path, record.line, &record.bytes)?;
    Label::read(path, record.line, object)
}

/// The first reading: which repositories there are, and that all was judged alike.
fn plan(path: &Path, settings: &Settings) -> Result<Plan> {
    let mut found = Occurrences::default();
    let (mut judgements, mut unread) = (BTreeMap::new(), Vec::<Error>::new());
    for_each_part(path, |part| {
        let read = part.par_iter().map(|record| {
            let label = read(path, record)?;
            let usable = sequence::label_of(&label).is_ok();
            let Some(repository) = repository_of(&label).filter(|_| usable) else {
                return Ok(None);
            };
            let seen = (digest(&label), repository.to_owned());
            Ok(Some((seen, judgement(&label), record.line)))
        });
        for read in read.collect::<Vec<_>>() {
            match read {
                Ok(None) => {}
                Ok(Some(((instance, repository), judgement, line))) => {
                    found.note(instance, &repository);
                    judgements.entry(judgement).or_insert(line);
                }
                // What cannot be read is told of when it is read again, if it comes to that.
                Err(problem) => unread.push(problem),
            }
        }
        Ok(())
    })?;
    let mut by_line: Vec<(usize, &str)> =
        judgements.iter().map(|(j, line)| (*line, &**j)).collect();
    by_line.sort_unstable();
    if let [(_, first), (line, other), ..] = by_line[..] {
        return Err(Error::Artifact {
            path: path.to_owned(),
            reason: format!("line {line} was judged {other}, and lines before it {first}"),
            hint: "what helps one model need not help another: verbalize what was judged alike on its own".into(),
        });
    }
    if found.is_empty() {
        // What is wrong with each, the second reading tells.
        return Ok(Plan::default());
    }
    Plan::of(found, settings.held_out, settings.seed).map_err(|error| match (error, &unread[..]) {
        (Error::Parameter { name, reason }, [first, rest @ ..]) => Error::Parameter {
            name,
            reason: match rest.len() {
                0 => format!("{reason} (a record cannot be used: {first})"),
                more => format!(
                    "{reason} ({} records cannot be used, the first: {first})",
                    more + 1
                ),
            },
        },
        (error, _) => error,
    })
}

/// By whom and how an instance was judged, in words.
fn judgement(label: &Label) -> String {
    let model = match &label.generation_model {
        Some(model) => format!("by model {model}"),
        None => "by no model that is named".into(),
    };
    match label.threshold {
        Some(threshold) => format!("{model} with threshold {threshold}"),
        None => model,
    }
}

/// Whether instances are of enough repositories for these splits.
///
/// # Errors
/// They are not, or the file cannot be read.
pub fn check_splits(instances: &Path, held_out: Proportions) -> Result<()> {
    let mut repositories = BTreeSet::new();
    for_each_part(instances, |part| {
        let of_each = part.par_iter().filter_map(|record| {
            let label = read(instances, record).ok()?;
            repository_of(&label).map(str::to_owned)
        });
        repositories.extend(of_each.collect::<Vec<_>>());
        Ok(())
    })?;
    held_out.of(repositories.len()).map(|_| ())
}

/// Verbalizes one record.
fn make(
    path: &Path,
    record: &Record,
    plan: &Plan,
    encoder: &Encoder,
    settings: &Settings,
) -> Result<Result<Made, LeftOut>> {
    let label = read(path, record)?;
    if let Err(reason) = sequence::label_of(&label) {
        return Ok(Err(reason));
    }
    let Some(repository) = repository_of(&label) else {
        return Ok(Err(LeftOut::NoRepository));
    };
    let Some(split) = plan.place(digest(&label), repository) else {
        return Ok(Err(LeftOut::HeldOut));
    };
    let sequence = match Sequence::of(&label, repository, encoder, settings) {
        Ok(Ok(sequence)) => sequence,
        Ok(Err(reason)) => return Ok(Err(reason)),
        Err(error) => {
            return Err(Error::Task {
                path: path.to_owned(),
                line: record.line,
                task_id: label.id,
                reason: error.to_string(),
            });
        }
    };
    Ok(Ok(Made {
        split,
        line: Row::of(&sequence, settings.lambda).to_line(path)?,
        is_exact: encoder.decode(&sequence.ids)? == sequence.text,
        sequence,
    }))
}
