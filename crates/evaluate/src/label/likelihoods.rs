//! Probabilities of targets, which can be the criterion of labels.

use std::path::Path;

use foldhash::HashMap;
use repoformer_core::task::{NumberedRecords, TaskSet};
use repoformer_store::error::{Error, LabelInput, Result};

use crate::comparison;

/// Probability of a task's target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Likelihood {
    /// Geometric mean over the characters.
    pub(super) per_character: f64,
    /// Digest of the target, if known.
    target: Option<u64>,
}

impl Likelihood {
    /// Returns true if this is the probability of a target with another digest.
    pub(super) fn is_of_other(&self, digest: u64) -> bool {
        self.target.is_some_and(|target| target != digest)
    }
}

/// Reads the probability of each task's target.
pub(super) fn likelihoods(
    path: &Path,
    tasks: &TaskSet,
    problems: &mut Vec<Error>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Option<Likelihood>>> {
    let read = comparison::read(&path.to_string_lossy())?;
    problems.extend(read.problems);
    let by_row: HashMap<usize, usize> =
        tasks.tasks().iter().enumerate().map(|(place, task)| (task.row, place)).collect();
    let mut by_id: HashMap<&str, Option<usize>> = HashMap::default();
    for (place, task) in tasks.tasks().iter().enumerate() {
        // An id that two tasks share identifies neither.
        by_id.entry(&task.id).and_modify(|known| *known = None).or_insert(Some(place));
    }
    let mut found = vec![None; tasks.tasks().len()];
    let mut repeated = Vec::new();
    let mut numbered = NumberedRecords::default();
    for task in &read.scores.tasks {
        let Some(per_character) = read.scores.value(task, "likelihood.per_character") else {
            let reason = "contains no probabilities of targets";
            return Err(Error::labelling(path, reason, LabelInput::Likelihoods));
        };
        let place = match task.row {
            Some(row) => by_row.get(&row).copied(),
            None => by_id.get(task.task_id.as_str()).copied().flatten(),
        };
        let target = task.target.as_deref();
        let target = target.and_then(|digest| u64::from_str_radix(digest, 16).ok());
        if target.is_none() {
            numbered.add(&task.task_id);
        }
        match place.filter(|&place| tasks.tasks()[place].id == task.task_id) {
            Some(place) if found[place].is_some() => repeated.push(place),
            Some(place) => found[place] = Some(Likelihood { per_character, target }),
            None => {
                let reason = format!("task {} is not one of the instances", task.task_id);
                problems.push(Error::artifact(
                    path,
                    reason,
                    "pass the likelihoods of these instances",
                ));
            }
        }
    }
    warnings.extend(numbered.warning(path.display(), Some("`target_digest`")));
    for place in repeated {
        found[place] = None;
        let reason = format!("task {} occurs twice", tasks.tasks()[place].id);
        problems.push(Error::artifact(path, reason, "keep one line per task"));
    }
    Ok(found)
}
