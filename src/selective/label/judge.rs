//! Which instances retrieval helps: completions of one model without and with what was retrieved, compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::signals::{probabilities, signals};
use super::{Label, Signals};
use crate::error::{Error, Result};
use crate::evaluate::metrics::Metric;
use crate::evaluate::postprocess::{LOOKED_AT_FOR_BODIES, Postprocess, are_function_bodies};
use crate::evaluate::predictions;
use crate::evaluate::score::{Missing, score_tasks};
use crate::evaluate::statistics::Buckets;
use crate::prompt::shown::{self, read_fragments};
use crate::store::artifact;
use crate::store::jsonl::{self, At, Object, Reader};
use crate::task::cross_file::CrossFile;
use crate::task::kind::RecordKind;
use crate::task::{Task, TaskSet};
use crate::text::lines::{Lines, strip};

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

/// Instances whose targets have so many lines.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct OfLength {
    /// How many there are.
    pub count: usize,
    /// How many of them are labelled as helped.
    pub positive: usize,
    /// The sum of their gains.
    pub gain: f64,
}

/// What judging instances gave.
#[derive(Debug, Default)]
pub struct Judged {
    /// Edit similarity with retrieval less that without, between −1 and 1, of each instance that has both completions.
    pub gains: Vec<f64>,
    /// How many of them are labelled as helped.
    pub positive: usize,
    /// The same by the lines of their targets that are not blank.
    pub lengths: BTreeMap<usize, OfLength>,
    /// How many of them have the probability of the token that asks for retrieval.
    pub probable: usize,
    /// How many instances were not judged, by reason.
    pub lacking: BTreeMap<Lacking, usize>,
    /// What could not be read or belongs to no instance.
    pub problems: Vec<Error>,
}

impl Judged {
    fn add(&mut self, label: &Label, gain: f64) {
        let positive = usize::from(label.label == Some(true));
        let lines = Lines::new(&label.ground_truth);
        let lines = lines.iter().filter(|line| !strip(line).is_empty()).count();
        let of_length = self.lengths.entry(lines).or_default();
        of_length.count += 1;
        of_length.positive += positive;
        of_length.gain += gain;
        self.positive += positive;
        self.gains.push(gain);
    }

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
    /// The probabilities of the token that asks for retrieval, where they are in a file of their own.
    pub probabilities: Option<&'a Path>,
    /// The model, where the predictions do not say.
    pub model: Option<&'a str>,
    /// The least gain that does not count.
    pub threshold: f64,
}

/// Judges instances by predictions without (`base`) and with (`augmented`) their cross-file context: helped are those whose edit
/// similarity rises by more than `threshold` (0 in the paper). Both must be the same model's, where they say whose they are.
/// Any benchmark's tasks are instances. `emit` is given a record in the label format for each that has both completions, in
/// their order; of the instances, no more than some hundreds are in memory.
///
/// # Errors
/// A file cannot be read, the two are of different models, or `emit` fails.
pub fn judge(judging: &Judging<'_>, emit: &mut dyn FnMut(&Value) -> Result<()>) -> Result<Judged> {
    let Judging {
        base, augmented, ..
    } = *judging;
    if base == augmented {
        return Err(Error::Parameter {
            name: "rag",
            reason: "is the file of --base: nothing would ever help".into(),
        });
    }
    let mut judged = Judged::default();
    let known = Known::read(judging, &mut judged.problems)?;
    let mut reader = Reader::open(judging.instances)?;
    let mut first = 0;
    while let Some(batch) = known.batch(&mut reader, first)? {
        let next = first + batch.tasks.len();
        known.judge(batch, first, &mut judged, emit)?;
        first = next;
    }
    Ok(judged)
}

/// Instances in memory at once, and bytes of their records.
const AT_ONCE: (usize, usize) = (512, 32 << 20);

/// Some instances, as tasks and as labels yet to be.
struct Batch {
    tasks: Vec<Task>,
    labels: Vec<Label>,
}

/// What is known before the first instance is judged.
struct Known<'a> {
    judging: &'a Judging<'a>,
    /// The instances without their texts.
    tasks: TaskSet,
    /// Whether those that do not say it are function bodies.
    are_bodies: bool,
    model: Option<String>,
    /// Each task's predictions without retrieval and with it.
    predictions: [Vec<Vec<String>>; 2],
    signals: Vec<Signals>,
    /// What each row's prompt shows, where the instances do not say.
    shown: Option<FxHashMap<usize, Vec<shown::Fragment>>>,
}

impl<'a> Known<'a> {
    fn read(judging: &'a Judging<'a>, problems: &mut Vec<Error>) -> Result<Self> {
        let path = judging.instances;
        let (mut tasks, mut whole) = (Vec::new(), Vec::new());
        problems.extend(jsonl::for_each(path, |at, object| {
            let (mut task, _) = instance(path, at, object)?;
            if whole.len() < LOOKED_AT_FOR_BODIES {
                whole.push(task.clone());
            }
            task.forget_texts();
            tasks.push(task);
            Ok(())
        })?);
        let path = path.to_owned();
        let tasks = TaskSet { path, tasks };
        let model = one_model(judging.model, judging.base, judging.augmented)?;
        let mut of_file = |path: &Path| -> Result<_> {
            let joined = predictions::read(path, &tasks)?;
            problems.extend(joined.problems);
            Ok(joined.predictions)
        };
        let predictions = [of_file(judging.base)?, of_file(judging.augmented)?];
        let mut signals = signals(judging.base, &tasks)?;
        if let Some(path) = judging.probabilities {
            let found = probabilities(path, &tasks, &mut signals)?;
            if found.found == 0 {
                return Err(found.nothing(path));
            }
            problems.extend(found.problems);
            problems.extend(found.strangers);
        }
        Ok(Self {
            judging,
            are_bodies: are_function_bodies(&whole),
            model,
            predictions,
            signals,
            shown: judging.prompts.map(read_fragments).transpose()?,
            tasks,
        })
    }

    /// The next instances, of which the first is at this place; none at the end of the file.
    fn batch(&self, reader: &mut Reader<'_>, first: usize) -> Result<Option<Batch>> {
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while lines.len() < AT_ONCE.0
            && bytes < AT_ONCE.1
            && let Some((at, line)) = reader.next_record()?
        {
            bytes += line.len();
            lines.push((at, line.to_owned()));
        }
        if lines.is_empty() {
            return Ok(None);
        }
        let path = self.judging.instances;
        let read = lines.into_par_iter().filter_map(|(at, line)| {
            let object = jsonl::parse(path, at.line, &line);
            // What is wrong with the others was told of when they were read first.
            object.and_then(|object| instance(path, at, object)).ok()
        });
        let (tasks, labels): (Vec<Task>, Vec<Label>) = read.unzip();
        for (place, task) in tasks.iter().enumerate() {
            let before = self.tasks.tasks.get(first + place);
            if before.is_none_or(|before| (before.row, &before.id) != (task.row, &task.id)) {
                return Err(Error::Artifact {
                    path: path.to_owned(),
                    reason: "was changed while it was read".into(),
                    hint: "judge again once nobody writes to it".into(),
                });
            }
        }
        Ok(Some(Batch { tasks, labels }))
    }

    /// Judges the instances from this place on.
    fn judge(
        &self,
        mut batch: Batch,
        first: usize,
        judged: &mut Judged,
        emit: &mut dyn FnMut(&Value) -> Result<()>,
    ) -> Result<()> {
        let places = first..first + batch.tasks.len();
        if let Some(shown) = &self.shown {
            for (task, label) in batch.tasks.iter().zip(&mut batch.labels) {
                let found = shown.get(&task.row).map_or(&[][..], Vec::as_slice);
                let found = found.iter().map(shown::Fragment::to_cross_file).collect();
                label.show(CrossFile::of(found, task.language()));
            }
        }
        let path = self.tasks.path.clone();
        let tasks = TaskSet {
            path,
            tasks: batch.tasks,
        };
        let [without, with] = &self.predictions;
        let without = self.score(&tasks, &without[places.clone()])?;
        let with = self.score(&tasks, &with[places.clone()])?;
        for ((number, label), place) in batch.labels.into_iter().enumerate().zip(places) {
            let lacking = match (without[number], with[number]) {
                (Some(without), Some(with)) => {
                    match self.label(label, without, with, self.signals[place]) {
                        Ok(label) => {
                            judged.probable += usize::from(label.signals.cc_probability.is_some());
                            judged.add(&label, with.es - without.es);
                            emit(&label.to_record())?;
                        }
                        Err(reason) => {
                            let problem = tasks.error(&tasks.tasks[number], reason);
                            judged.problems.push(problem);
                        }
                    }
                    continue;
                }
                (None, Some(_)) => Lacking::Base,
                (Some(_), None) => Lacking::Augmented,
                (None, None) => Lacking::Both,
            };
            *judged.lacking.entry(lacking).or_default() += 1;
        }
        Ok(())
    }

    /// An instance with its label; in words why it can have none.
    fn label(
        &self,
        mut label: Label,
        without: Quality,
        with: Quality,
        signals: Signals,
    ) -> Result<Label, String> {
        if let (Some(before), Some(now)) = (&label.generation_model, &self.model)
            && before != now
        {
            return Err(format!(
                "it was judged by model {before}, and these completions are of {now}"
            ));
        }
        // Of 0 and -0 the first.
        let threshold = self.judging.threshold + 0.0;
        (label.es_infile, label.es_rg1) = (Some(without.es), Some(with.es));
        (label.em_infile, label.em_rg1) = (Some(without.em), Some(with.em));
        // It depends on the prompt and the model alone, all else on the completion.
        let is_same_model =
            label.generation_model.is_some() && label.generation_model == self.model;
        let before = label.signals.cc_probability.filter(|_| is_same_model);
        label.signals = Signals {
            cc_probability: signals.cc_probability.or(before),
            ..signals
        };
        label.generation_model = self.model.clone().or(label.generation_model);
        label.label = Some(with.es - without.es > threshold);
        label.threshold = Some(threshold);
        Ok(label)
    }

    /// The scores of each task's first prediction, cut as the paper's program cuts its kind; `None` without any.
    fn score(&self, tasks: &TaskSet, samples: &[Vec<String>]) -> Result<Vec<Option<Quality>>> {
        let metric = Metric::Repoformer;
        let kind = |task: &Task| Some(task.metadata.get("kind")?.as_str()? == "function");
        let mut found = vec![None; tasks.tasks.len()];
        for function_bodies in [false, true] {
            let is_of_kind = |task: &Task| kind(task).unwrap_or(self.are_bodies) == function_bodies;
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
}

/// A record as a task and as a label yet to be.
fn instance(path: &Path, at: At, object: Object) -> Result<(Task, Label)> {
    let label = match RecordKind::of(&object) {
        Some(RecordKind::Label) => Some(Label::read(path, at.line, object.clone())?),
        _ => None,
    };
    let task = Task::from_record(path, at, object)?;
    let label = label.unwrap_or_else(|| Label::of_task(&task));
    Ok((task, label))
}

/// How good a completion is, each between 0 and 1.
#[derive(Debug, Clone, Copy)]
struct Quality {
    em: f64,
    es: f64,
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
