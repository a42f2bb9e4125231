//! What a model says of itself, read off its predictions and off the answers to what it was asked.

use std::path::Path;

use super::Signals;
use crate::error::{Error, Result};
use crate::evaluate::predictions;
use crate::store::jsonl::{self, Fields};
use crate::task::TaskSet;

/// What the model said of itself in each task's first prediction, in the order of the tasks; nothing where that cannot be told
/// apart from another's. Where the others come with log-probabilities, a completion of no token at all is as doubtful as can be.
///
/// # Errors
/// The file cannot be read.
pub fn signals(path: &Path, tasks: &TaskSet) -> Result<Vec<Signals>> {
    let index = predictions::TaskIndex::new(tasks);
    let mut signals = vec![None; tasks.tasks.len()];
    let mut empty = Vec::new();
    // What is wrong with the records was told of when their texts were read.
    let _ = jsonl::for_each(path, |at, object| {
        if let predictions::TaskMatch::Task(place) = index.find(path, at.line, &object)? {
            if signals[place].is_some() {
                return Ok(());
            }
            let said = Signals::of_prediction(&object);
            let wrote = predictions::samples(path, at.line, &object)?;
            if said.min_logprob.is_none() && wrote.first().is_some_and(String::is_empty) {
                empty.push(place);
            }
            signals[place] = Some(said);
        }
        Ok(())
    })?;
    let mut signals: Vec<Signals> = signals.into_iter().map(Option::unwrap_or_default).collect();
    if signals.iter().any(|said| said.min_logprob.is_some()) {
        for place in empty {
            signals[place].min_logprob = Some(f64::MIN_POSITIVE.ln());
        }
    }
    Ok(signals)
}

/// What a file of probabilities gave.
#[derive(Debug, Default)]
pub struct Probabilities {
    /// Tasks that have one now.
    pub found: usize,
    /// What is wrong with records.
    pub problems: Vec<Error>,
    /// Records that belong to none of the tasks.
    pub strangers: Vec<Error>,
}

impl Probabilities {
    /// Why a file gave none.
    pub(super) fn nothing(self, path: &Path) -> Error {
        let first = self.problems.into_iter().chain(self.strangers).next();
        first.unwrap_or_else(|| Error::Artifact {
            path: path.to_owned(),
            reason: "holds no probability".into(),
            hint: "`complete --probability-of '<cc>' --after '<eof>'` writes them".into(),
        })
    }
}

/// Adds the probabilities of the token that asks for retrieval, as `complete --probability-of` writes them, to the signals of
/// each task; of a task's several the first.
///
/// # Errors
/// The file cannot be read.
pub fn probabilities(
    path: &Path,
    tasks: &TaskSet,
    signals: &mut [Signals],
) -> Result<Probabilities> {
    let index = predictions::TaskIndex::new(tasks);
    let mut of_task: Vec<Option<f64>> = vec![None; tasks.tasks.len()];
    let mut strangers = Vec::new();
    let problems = jsonl::for_each(path, |at, object| {
        let record = Fields::new(path, at.line, "", &object);
        let probability = Signals::asked_for(&object).filter(|p| (0.0..=1.0).contains(p));
        let Some(probability) = probability else {
            return Err(record.error("field 'next_token.probability' must be a number from 0 to 1"));
        };
        match index.find(path, at.line, &object) {
            Ok(predictions::TaskMatch::Task(place)) => {
                of_task[place].get_or_insert(probability);
                Ok(())
            }
            Ok(predictions::TaskMatch::Alike(_)) => {
                Err(record.error("several tasks are called so; add metadata.row"))
            }
            Err(stranger) => {
                strangers.push(stranger);
                Ok(())
            }
        }
    })?;
    for (signals, probability) in signals.iter_mut().zip(&of_task) {
        signals.cc_probability = probability.or(signals.cc_probability);
    }
    Ok(Probabilities {
        found: of_task.iter().flatten().count(),
        problems,
        strangers,
    })
}
