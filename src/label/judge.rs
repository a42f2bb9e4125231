//! Which instances retrieval helps: completions of one model without and with what was retrieved, compared.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::Label;
use crate::error::{Error, Result};
use crate::jsonl;
use crate::metrics::Metric;
use crate::pipeline::own_postprocess;
use crate::predictions;
use crate::score::{Missing, score_tasks};
use crate::statistics::Buckets;
use crate::task::TaskSet;

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

/// Judges instances by predictions without (`base`) and with (`augmented`) their cross-file context: helped are those whose edit
/// similarity rises by more than `threshold` (0 in the paper). Both must be the same model's, where they say whose they are.
///
/// # Errors
/// A file cannot be read, or the two are of different models.
pub fn judge(
    instances: &Path,
    (base, augmented): (&Path, &Path),
    model: Option<&str>,
    threshold: f64,
) -> Result<Judged> {
    let mut judged = Judged::default();
    let reading = TaskSet::read(instances)?;
    judged.problems.extend(reading.problems);
    let tasks = reading.set;
    let model = one_model(model, base, augmented)?;
    let mut similarities = Vec::new();
    for path in [base, augmented] {
        let joined = predictions::read(path, &tasks)?;
        judged.problems.extend(joined.problems);
        similarities.push(similarity(&tasks, &joined.predictions)?);
    }
    let labels = labels(instances)?;
    for (number, task) in tasks.tasks.iter().enumerate() {
        let pair = (similarities[0][number], similarities[1][number]);
        let lacking = match pair {
            (Some(without), Some(with)) => {
                let Some(mut label) = labels.get(&task.row).cloned() else {
                    continue;
                };
                let gain = with - without;
                label.es_infile = Some(without);
                label.es_rg1 = Some(with);
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

/// The edit similarity of each task's first prediction, cut as the paper's program cuts it; `None` without any.
fn similarity(tasks: &TaskSet, samples: &[Vec<String>]) -> Result<Vec<Option<f64>>> {
    let metric = Metric::Repoformer;
    let scores = score_tasks(
        tasks,
        samples,
        &[metric],
        &own_postprocess(tasks),
        Missing::Skip,
    )?;
    let by_row: BTreeMap<usize, f64> = scores
        .tasks
        .iter()
        .filter_map(|task| Some((task.row, task.get(metric, "es")?)))
        .collect();
    Ok(tasks
        .tasks
        .iter()
        .map(|task| by_row.get(&task.row).copied())
        .collect())
}

/// The instances as they stand in their file, by row.
fn labels(path: &Path) -> Result<BTreeMap<usize, Label>> {
    let mut labels = BTreeMap::new();
    // What cannot be read was told of already.
    jsonl::for_each(path, |at, object| {
        labels.insert(at.row, Label::read(path, at.line, object)?);
        Ok(())
    })?;
    Ok(labels)
}

/// The model that both files are of.
fn one_model(named: Option<&str>, base: &Path, augmented: &Path) -> Result<Option<String>> {
    let mut model = named.map(str::to_owned);
    for path in [base, augmented] {
        let Some(found) = model_of(path)? else {
            continue;
        };
        match &model {
            Some(known) if *known == found => {}
            Some(known) => {
                return Err(Error::Artifact {
                    path: path.to_owned(),
                    reason: format!(
                        "these predictions are of model {found}, and others of {known}"
                    ),
                    hint: "a label compares completions of one model; make both with the same"
                        .into(),
                });
            }
            None => model = Some(found),
        }
    }
    Ok(model)
}

/// The model that a file of predictions says it is of, in its first record.
fn model_of(path: &Path) -> Result<Option<String>> {
    let mut found = None;
    let mut reader = jsonl::Reader::open(path)?;
    while let Some((at, bytes)) = reader.next_record()? {
        if let Ok(object) = jsonl::parse(path, at.line, bytes) {
            let model = object
                .get("asked")
                .and_then(|asked| asked.get("model")?.as_str());
            found = model.map(str::to_owned);
            break;
        }
    }
    Ok(found)
}
