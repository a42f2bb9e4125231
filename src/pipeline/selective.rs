//! An experiment's tasks as policies see them: what was retrieved for each, and what it did for the prediction.

use serde_json::Value;

use super::report::read_fragments;
use super::{Experiment, scores};
use crate::cross_file::Fragment;
use crate::error::Result;
use crate::label::signals;
use crate::policy::features::Request;
use crate::policy::{Example, Outcome};
use crate::query::Mode;

/// The tasks that have predictions both without retrieval and with that of `mode`.
#[derive(Debug)]
pub struct Selective {
    /// As policies see them.
    pub examples: Vec<Example>,
    /// The score of each without retrieval and with it, as the modes' own artifacts have them.
    pub scores: Vec<[Value; 2]>,
}

/// Joins the scores of none and of `mode` with what was retrieved.
///
/// # Errors
/// Predictions or prompts of one of the two are missing.
pub fn selective(experiment: &Experiment, mode: Mode, model: &str) -> Result<Selective> {
    let tasks = experiment.tasks()?;
    let (base, _) = scores(experiment, Mode::Without, model, None)?;
    let (augmented, _) = scores(experiment, mode, model, None)?;
    let fragments = read_fragments(&experiment.layout.prompts(mode))?;
    let signals = signals(&experiment.layout.predictions(Mode::Without, model), tasks)?;
    let list = |scores: &Value| scores["tasks"].as_array().cloned().unwrap_or_default();
    let row = |score: &Value| score["row"].as_u64();
    let mut selective = Selective {
        examples: Vec::new(),
        scores: Vec::new(),
    };
    let augmented = list(&augmented);
    for without in list(&base) {
        // Both lists are in the order of the tasks.
        let found = augmented.binary_search_by_key(&row(&without), row);
        let (Ok(found), Some(number)) = (found, row(&without)) else {
            continue;
        };
        let with = augmented[found].clone();
        let Ok(place) = (tasks.tasks).binary_search_by_key(&(number as usize), |task| task.row)
        else {
            continue;
        };
        let task = &tasks.tasks[place];
        let retrieved: Vec<Fragment> = fragments
            .get(&task.row)
            .map(|found| {
                found
                    .iter()
                    .map(|fragment| fragment.to_cross_file())
                    .collect()
            })
            .unwrap_or_default();
        let request = Request {
            left: &task.prompt,
            right: task.right_context.as_deref().unwrap_or(""),
            path: &task.path,
            language: task.language(),
            fragments: &retrieved,
        };
        let value = |score: &Value, name: &str| score["repocoder"][name].as_f64();
        let outcome = Outcome {
            es: [&without, &with].map(|score| value(score, "es").unwrap_or(0.0)),
            em: [&without, &with].map(|score| value(score, "em")),
            label: None,
        };
        let example = Example::new(&task.id, request, outcome, signals[place]);
        selective.examples.push(example);
        selective.scores.push([without, with]);
    }
    Ok(selective)
}
