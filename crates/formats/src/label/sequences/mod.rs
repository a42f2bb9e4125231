//! Training sequences from labelled instances: the token after `<eof>` states whether to retrieve, and the completion follows
//! `<fim_middle>` (Repoformer, section 3.3; `preprocess_repoformer.py` of its released program).
//!
//! - [`Sequence`]: tokens of one instance within the budgets, and the choice of supervised tokens.
//! - [`Split`]: repositories for training, validation and test.
//! - [`verbalize`]: conversion of files of labels to JSON lines and Parquet.

mod layout;
mod parquet;
mod row;
mod sequence;
mod split;
mod summary;
#[cfg(test)]
mod tests;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use repoformer_store::artifact::write_file;
use repoformer_store::error::{Error, Result, keep};
use repoformer_store::jsonl::{self, Reader};
use repoformer_text::message;
use repoformer_text::tokenize::model::Encoder;

pub use self::layout::{SequenceLayout, added_tokens};
use self::row::Row;
pub use self::sequence::{Sequence, SequenceRejection, VerbalizeSettings};
use self::split::{Occurrence, Occurrences, Plan, digest, repository_of};
pub use self::split::{Proportions, Split};
use self::summary::nothing;
pub use self::summary::{KindCounts, SplitSummary, VerbalizeSummary};
pub use self::write::{SequenceFiles, lines_of, outputs};
use repoformer_core::label::{InstanceKind, Label};
use repoformer_core::repository::{Shard, parallel};

/// Size in bytes of the records processed at once.
const BATCH: usize = 8 << 20;

/// Verbalizes files of labels, one after another, into a folder. It writes `train.jsonl` and `train.parquet`, the same files
/// for each requested split, the `tokenizer.json` with the added tokens, and the trained model's `prompt-style.toml`. The
/// labels are read twice and in parts; memory grows by 32 bytes per instance and the names of the repositories. Files of splits
/// that are not requested are removed, since their repositories are now training data. The output does not depend on the number
/// of threads. A shard has no Parquet, and may have no sequences.
///
/// # Errors
/// This build lacks the feature `parquet`, a file cannot be read or written, the labels are of several models or metrics, two
/// files contain the same instance, no instance can become a sequence, or there are too few repositories for the splits.
pub fn verbalize(
    labels: &[&Path],
    encoder: &Encoder,
    settings: &VerbalizeSettings,
    folder: &Path,
) -> Result<VerbalizeSummary> {
    let plan = plan(labels, settings)?;
    let mut verbalized = VerbalizeSummary { repeated: plan.repeated, ..Default::default() };
    let splits = || Split::ALL.into_iter().filter(|split| settings.held_out.wants(*split));
    let mut files = SequenceFiles::create(folder, splits(), settings.shard.is_none())?;
    for split in splits() {
        let repositories = plan.repositories(split, settings.shard);
        verbalized.splits.insert(split, SplitSummary { repositories, ..SplitSummary::default() });
    }
    for (file, path) in (0..).zip(labels) {
        for_each_part(path, |part| {
            let made = parallel::map(part, |record| make(path, record, &plan, encoder, settings));
            for (made, record) in made.into_iter().zip(part) {
                match made {
                    Ok(None) => {}
                    Ok(Some(Ok(made))) => {
                        verbalized.inexact += usize::from(!made.is_exact);
                        let summary = verbalized.splits.entry(made.split).or_default();
                        summary.add(&made.sequence, made.kind);
                        summary.lines.push((file << 32) | record.line as u64);
                        files.push(made.split, made.row, made.line.as_bytes())?;
                    }
                    Ok(Some(Err(reason))) => *verbalized.left_out.entry(reason).or_default() += 1,
                    Err(error) => keep(&mut verbalized.problems, path, error),
                }
            }
            Ok(())
        })?;
    }
    let is_empty = verbalized.splits.values().all(|split| split.sequences == 0);
    if is_empty && (settings.shard.is_none() || plan.is_empty()) {
        return Err(nothing(labels, &verbalized));
    }
    files.finish()?;
    let [tokenizer, style] = write::BESIDE.map(|name| folder.join(name));
    write_file(&tokenizer, &encoder.json)?;
    write_file(&style, settings.frame.to_style_file().as_bytes())?;
    Ok(verbalized)
}

/// Line of the labels.
struct LabelLine {
    line: usize,
    bytes: Vec<u8>,
}

/// Sequence with its split and line.
struct SequenceLine {
    split: Split,
    kind: Option<InstanceKind>,
    sequence: Sequence,
    row: Row,
    line: String,
    is_exact: bool,
}

/// Reads the records in parts of about [`BATCH`] bytes.
fn for_each_part(path: &Path, mut take: impl FnMut(&[LabelLine]) -> Result<()>) -> Result<()> {
    let mut reader = Reader::open(path)?;
    let (mut part, mut size) = (Vec::new(), 0);
    while let Some((at, bytes)) = reader.next_record()? {
        size += bytes.len();
        part.push(LabelLine { line: at.line, bytes: bytes.to_vec() });
        if size >= BATCH {
            take(&part)?;
            part.clear();
            size = 0;
        }
    }
    take(&part)
}

fn read(path: &Path, record: &LabelLine) -> Result<Label> {
    let object = jsonl::parse(path, record.line, &record.bytes)?;
    Label::read(path, record.line, object)
}

/// Makes the first reading: finds the repositories, and checks that one model, metric and threshold judged all instances, and
/// that no two files contain the same instance.
fn plan(labels: &[&Path], settings: &VerbalizeSettings) -> Result<Plan> {
    let mut found = Occurrences::default();
    let (mut judgements, mut unread) = (BTreeMap::new(), Vec::<Error>::new());
    for (file, path) in (0..).zip(labels) {
        for_each_part(path, |part| {
            let read = parallel::map(part, |record| {
                let label = read(path, record)?;
                let usable = sequence::label_of(&label).is_ok();
                let Some(repository) = repository_of(&label).filter(|_| usable) else {
                    return Ok(None);
                };
                let line = record.line as u32;
                let occurrence = Occurrence {
                    instance: digest(&label),
                    kind: label.kind(),
                    file,
                    line,
                    repository: 0,
                };
                Ok(Some((occurrence, repository.to_owned(), judgement(&label))))
            });
            for read in read {
                match read {
                    Ok(None) => {}
                    Ok(Some((occurrence, repository, judgement))) => {
                        judgements.entry(judgement).or_insert((file, occurrence.line));
                        found.note(occurrence, &repository);
                    }
                    // Reported at the second reading, if there is one.
                    Err(problem) => unread.push(problem),
                }
            }
            Ok(())
        })?;
    }
    let mut by_place: Vec<((u16, u32), &str)> =
        judgements.iter().map(|(judgement, place)| (*place, &**judgement)).collect();
    by_place.sort_unstable();
    let name = |file: u16| labels[usize::from(file)];
    if let [((before, _), first), ((file, line), other), ..] = by_place[..] {
        let others = if before == file {
            "lines before it".to_owned()
        } else {
            format!("those of {}", name(before).display())
        };
        let reason = format!("line {line} was judged {other}, and {others} {first}");
        let hint = "what helps one model, or by one metric, need not help another: verbalize the labels of each separately";
        return Err(Error::artifact(name(file), reason, hint));
    }
    if let Some((one, other, count)) = found.of_two_files() {
        let reason = format!(
            "line {} has the instance of {}:{}; {count} of its instances are in other files too",
            other.line,
            name(one.file).display(),
            one.line
        );
        return Err(Error::artifact(name(other.file), reason, "give each instance once"));
    }
    if found.is_empty() {
        // The second reading reports the problem of each line.
        return Ok(Plan::default());
    }
    Plan::new(found, settings.held_out, settings.seed).map_err(|error| match (error, &unread[..]) {
        (Error::Refused { reason, hint }, [first, rest @ ..]) => Error::Refused {
            hint,
            reason: match rest.len() {
                0 => message![reason, " (a record cannot be used: ", first.message(), ")"],
                more => {
                    let more = more + 1;
                    let more = format!(" ({more} records cannot be used, the first: ");
                    message![reason, more, first.message(), ")"]
                }
            },
        },
        (error, _) => error,
    })
}

/// Describes model, metric and threshold of a judgement.
fn judgement(label: &Label) -> String {
    let model = match &label.generation_model {
        Some(model) => format!("by model {model}"),
        None => "by an unnamed model".into(),
    };
    let model = match &label.metric {
        Some(metric) => format!("{model} and metric {metric}"),
        None => model,
    };
    match label.threshold {
        Some(threshold) => format!("{model} with threshold {threshold}"),
        None => model,
    }
}

/// Checks that there are enough repositories for the splits.
///
/// # Errors
/// The check fails, or a file cannot be read.
pub fn check_splits(instances: &[&Path], held_out: Proportions) -> Result<()> {
    let mut repositories = BTreeSet::new();
    for path in instances {
        for_each_part(path, |part| {
            let of_each = parallel::map(part, |record| {
                let label = read(path, record).ok()?;
                repository_of(&label).map(str::to_owned)
            });
            repositories.extend(of_each.into_iter().flatten());
            Ok(())
        })?;
    }
    held_out.of(repositories.len()).map(|_| ())
}

/// Verbalizes one record; `None` if it belongs to another shard.
fn make(
    path: &Path,
    record: &LabelLine,
    plan: &Plan,
    encoder: &Encoder,
    settings: &VerbalizeSettings,
) -> Result<Option<Result<SequenceLine, SequenceRejection>>> {
    let label = read(path, record)?;
    let repository = repository_of(&label);
    let is_of = |shard: Shard| shard.holds(repository.unwrap_or_default());
    if !settings.shard.is_none_or(is_of) {
        return Ok(None);
    }
    if let Err(reason) = sequence::label_of(&label) {
        return Ok(Some(Err(reason)));
    }
    let Some(repository) = repository else {
        return Ok(Some(Err(SequenceRejection::NoRepository)));
    };
    let Some(split) = plan.place(digest(&label), repository) else {
        return Ok(Some(Err(SequenceRejection::HeldOut)));
    };
    let sequence = match Sequence::new(&label, repository, encoder, settings) {
        Ok(Ok(sequence)) => sequence,
        Ok(Err(reason)) => return Ok(Some(Err(reason))),
        Err(error) => {
            return Err(Error::Task {
                path: path.to_owned(),
                line: record.line,
                task_id: label.id,
                reason: error.message(),
            });
        }
    };
    let row = Row::from_sequence(&sequence, settings.lambda);
    Ok(Some(Ok(SequenceLine {
        split,
        kind: label.kind(),
        line: row.to_line(),
        row,
        is_exact: encoder.decode(&sequence.ids)? == sequence.text,
        sequence,
    })))
}
