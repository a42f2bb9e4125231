//! Which instances retrieval helps: completions of one model without and with what was retrieved, compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::{Label, Signals};
use crate::artifact;
use crate::cross_file::CrossFile;
use crate::error::{Error, Result};
use crate::jsonl;
use crate::kind::Kind;
use crate::metrics::Metric;
use crate::pipeline::report::read_fragments;
use crate::postprocess::{Postprocess, are_function_bodies};
use crate::predictions;
use crate::report;
use crate::score::{Missing, score_tasks};
use crate::statistics::Buckets;
use crate::task::{Task, TaskSet};

/// What an instance lacks, so that it cannot be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lacking {
    /// No completion without what was retrieved.
    Base,
    /// No completion with it.
    Augmented,
    /// Neither.
    Both,
}

impl std::fmt::Display for Lacking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Base => "no completion without retrieval",
            Self::Augmented => "no completion with retrieval",
            Self::Both => "no completion at all",
        })
    }
}

/// Instances with their labels.
#[derive(Debug, Default)]
pub struct Judged {
    /// A record in the label format for each instance that has both completions, in their order.
    pub records: Vec<Value>,
    /// Edit similarity with retrieval less that without, between −1 and 1, of each of them.
    pub gains: Vec<f64>,
    /// How many of them are labelled as helped.
    pub positive: usize,
    /// How many instances were not judged, by reason.
    pub lacking: BTreeMap<Lacking, usize>,
    /// What could not be read or belongs to no instance.
    pub problems: Vec<Error>,
}

impl Judged {
    /// The gains by size, as the paper's figure 10 shows them.
    pub fn buckets(&self) -> Buckets {
        Buckets::of(self.gains.iter().copied())
    }
}

/// What is judged by what.
#[derive(Debug, Clone, Copy)]
pub struct Judging<'a> {
    /// Instances, or any benchmark's tasks.
    pub instances: &'a Path,
    /// Predictions without retrieval.
    pub base: &'a Path,
    /// Predictions with it.
    pub augmented: &'a Path,
    /// The prompts of the latter, where the instances do not carry what was retrieved.
    pub prompts: Option<&'a Path>,
    /// The model, where the predictions do not say.
    pub model: Option<&'a str>,
    /// The least gain that does not count.
    pub threshold: f64,
}

/// Judges instances by predictions without (`base`) and with (`augmented`) their cross-file context: helped are those whose edit
/// similarity rises by more than `threshold` (0 in the paper). Both must be the same model's, where they say whose they are.
/// Any benchmark's tasks are instances.
///
/// # Errors
/// A file cannot be read, or the two are of different models.
pub fn judge(judging: &Judging<'_>) -> Result<Judged> {
    let Judging {
        instances,
        base,
        augmented,
        prompts,
        model,
        threshold,
    } = *judging;
    if base == augmented {
        return Err(Error::Parameter {
            name: "rag",
            reason: "is the file of --base: nothing would ever help".into(),
        });
    }
    let mut judged = Judged::default();
    let (tasks, mut labels) = read(instances, &mut judged.problems)?;
    if let Some(prompts) = prompts {
        show_fragments(&tasks, &mut labels, prompts)?;
    }
    let model = one_model(model, base, augmented)?;
    let mut scores = Vec::new();
    for path in [base, augmented] {
        let joined = predictions::read(path, &tasks)?;
        judged.problems.extend(joined.problems);
        scores.push(score(&tasks, &joined.predictions)?);
    }
    let signals = signals(base, &tasks)?;
    for (number, mut label) in labels.into_iter().enumerate() {
        let lacking = match (scores[0][number], scores[1][number]) {
            (Some(without), Some(with)) => {
                if let (Some(before), Some(now)) = (&label.generation_model, &model)
                    && before != now
                {
                    let reason = format!(
                        "it was judged by model {before}, and these completions are of {now}"
                    );
                    let problem = tasks.error(&tasks.tasks[number], reason);
                    judged.problems.push(problem);
                    continue;
                }
                let gain = with.es - without.es;
                (label.es_infile, label.es_rg1) = (Some(without.es), Some(with.es));
                (label.em_infile, label.em_rg1) = (Some(without.em), Some(with.em));
                label.signals = signals[number];
                label.generation_model = model.clone().or(label.generation_model);
                label.label = Some(gain > threshold);
                label.threshold = Some(threshold);
                judged.positive += usize::from(gain > threshold);
                judged.gains.push(gain);
                judged.records.push(label.to_record());
                continue;
            }
            (None, Some(_)) => Lacking::Base,
            (Some(_), None) => Lacking::Augmented,
            (None, None) => Lacking::Both,
        };
        *judged.lacking.entry(lacking).or_default() += 1;
    }
    Ok(judged)
}

/// The instances of a file, as tasks and as labels yet to be, in its order.
fn read(path: &Path, problems: &mut Vec<Error>) -> Result<(TaskSet, Vec<Label>)> {
    let (mut tasks, mut labels) = (Vec::new(), Vec::new());
    let found = jsonl::for_each(path, |at, object| {
        let label = match Kind::of(&object) {
            Some(Kind::Label) => Some(Label::read(path, at.line, object.clone())?),
            _ => None,
        };
        let task = Task::from_record(path, at, object)?;
        labels.push(label.unwrap_or_else(|| Label::of_task(&task)));
        tasks.push(task);
        Ok(())
    })?;
    problems.extend(found);
    let path = path.to_owned();
    Ok((TaskSet { path, tasks }, labels))
}

/// Gives instances what their prompts show.
fn show_fragments(tasks: &TaskSet, labels: &mut [Label], prompts: &Path) -> Result<()> {
    let mut fragments = read_fragments(prompts)?;
    for (task, label) in tasks.tasks.iter().zip(labels) {
        let found = fragments.remove(&task.row).unwrap_or_default();
        let found = found.iter().map(report::Fragment::to_cross_file).collect();
        label.show(CrossFile::of(found, task.language()));
    }
    Ok(())
}

/// How good a completion is, each between 0 and 1.
#[derive(Debug, Clone, Copy)]
struct Quality {
    em: f64,
    es: f64,
}

/// The scores of each task's first prediction, cut as the paper's program cuts its kind; `None` without any.
fn score(tasks: &TaskSet, samples: &[Vec<String>]) -> Result<Vec<Option<Quality>>> {
    let metric = Metric::Repoformer;
    let kind = |task: &Task| Some(task.metadata.get("kind")?.as_str()? == "function");
    let guessed = are_function_bodies(&tasks.tasks);
    let mut found = vec![None; tasks.tasks.len()];
    for function_bodies in [false, true] {
        let is_of_kind = |task: &Task| kind(task).unwrap_or(guessed) == function_bodies;
        let of_kind: Vec<Vec<String>> = tasks
            .tasks
            .iter()
            .zip(samples)
            .map(|(task, samples)| match is_of_kind(task) {
                true => samples.clone(),
                false => Vec::new(),
            })
            .collect();
        let postprocess = Postprocess::Own { function_bodies };
        let scores = score_tasks(tasks, &of_kind, &[metric], &postprocess, Missing::Skip)?;
        let by_row: BTreeMap<usize, Quality> = scores
            .tasks
            .iter()
            .filter_map(|task| {
                let (em, es) = (task.get(metric, "em")?, task.get(metric, "es")?);
                Some((task.row, Quality { em, es }))
            })
            .collect();
        for (found, task) in found.iter_mut().zip(&tasks.tasks) {
            *found = found.or_else(|| by_row.get(&task.row).copied());
        }
    }
    Ok(found)
}

/// What the model said of itself in each task's first prediction, in the order of the tasks; nothing where that cannot be told
/// apart from another's.
///
/// # Errors
/// The file cannot be read.
pub fn signals(path: &Path, tasks: &TaskSet) -> Result<Vec<Signals>> {
    let index = predictions::Index::new(tasks);
    let mut signals = vec![None; tasks.tasks.len()];
    // What is wrong with the records was told of when their texts were read.
    let _ = jsonl::for_each(path, |at, object| {
        if let predictions::Target::Task(place) = index.find(path, at.line, &object)? {
            signals[place].get_or_insert_with(|| Signals::of_prediction(&object));
        }
        Ok(())
    })?;
    Ok(signals.into_iter().map(Option::unwrap_or_default).collect())
}

/// The model that both files are of; `None` where neither says and nobody did.
fn one_model(named: Option<&str>, base: &Path, augmented: &Path) -> Result<Option<String>> {
    let wrong = |path: &Path, reason: String| {
        Error::Artifact {
        path: path.to_owned(),
        reason,
        hint: "a label compares completions of one model; make both with the same, or name it with --model where a file does not"
            .into(),
    }
    };
    let mut said = Vec::new();
    for path in [base, augmented] {
        let models = models_of(path)?;
        let mut known = models.iter().map(String::as_str).chain(named);
        if let Some(first) = known.next()
            && let Some(other) = known.find(|other| *other != first)
        {
            return Err(wrong(
                path,
                format!("holds completions of model {first}, and others are of {other}"),
            ));
        }
        said.push(models.into_iter().next().or(named.map(str::to_owned)));
    }
    match (&said[0], &said[1]) {
        (one, other) if one == other => Ok(said.swap_remove(0)),
        (Some(one), Some(other)) => Err(wrong(
            augmented,
            format!("these predictions are of model {other}, and others of {one}"),
        )),
        (None, _) => Err(wrong(
            base,
            "does not say whose predictions these are".into(),
        )),
        (_, None) => Err(wrong(
            augmented,
            "does not say whose predictions these are".into(),
        )),
    }
}

/// The models that a file of predictions says it is of: in the header beside it, or in its records.
fn models_of(path: &Path) -> Result<BTreeSet<String>> {
    let mut models = BTreeSet::new();
    if let Ok(header) = artifact::read_jsonl_header(path) {
        models.extend(header.identity.parameters.get("model").cloned());
    }
    let mut reader = jsonl::Reader::open(path)?;
    while let Some((at, bytes)) = reader.next_record()? {
        if let Ok(object) = jsonl::parse(path, at.line, bytes) {
            let model = object
                .get("asked")
                .and_then(|asked| asked.get("model")?.as_str());
            models.extend(model.map(str::to_owned));
        }
    }
    Ok(models)
}
