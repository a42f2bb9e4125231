//! Reading of a model's confidence from its predictions and from files of token probabilities.

use std::path::Path;

use repoformer_core::label::Signals;
use repoformer_core::task::fields::MADE;
use repoformer_core::task::{NumberedRecords, TaskSet};
use repoformer_store::error::{Error, Result, keep};
use repoformer_store::jsonl::{self, Fields};
use repoformer_store::schema::require;
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use crate::{lm_eval, predictions};

/// Adds to each completion the entropy over samples, which were drawn at temperature 1 into a separate file.
///
/// # Errors
/// The file cannot be read, no task has an entropy, or a record belongs to another task than it names.
pub fn entropies(path: &Path, tasks: &TaskSet, signals: &mut [Signals]) -> Result<ReadSignals> {
    let index = predictions::TaskIndex::new(tasks);
    let mut found = vec![None; tasks.tasks().len()];
    let problems = jsonl::for_each(path, |at, object| {
        let record = Fields::new(path, at.line, "", &object);
        predictions::samples(path, at.line, &object)?;
        let Some(entropy) = Signals::of_prediction(&object).entropy else {
            return Err(record.error(
                "'entropy' is missing: it needs several samples at temperature 1, with \
                 log-probabilities of their tokens",
            ));
        };
        match index.find(path, at.line, &object)? {
            predictions::TaskMatch::Task(place) => {
                found[place].get_or_insert(entropy);
                Ok(())
            }
            predictions::TaskMatch::Alike(_) => {
                Err(record.error("several tasks have this id; add metadata.row"))
            }
        }
    })?;
    let numbered = index.finish(path)?;
    if found.iter().all(Option::is_none) {
        let hint = "draw several samples of each prompt without retrieval at temperature 1";
        let none = || Error::artifact(path, "contains no entropy of these tasks", hint);
        return Err(problems.into_iter().next().unwrap_or_else(none));
    }
    let count = found.iter().flatten().count();
    for (signals, entropy) in signals.iter_mut().zip(found) {
        signals.entropy = entropy;
    }
    Ok(ReadSignals { found: count, problems, numbered, ..ReadSignals::default() })
}

/// Returns the signals of each task's first prediction, in the order of the tasks; empty if the prediction's task is ambiguous.
/// If other predictions have log-probabilities, an empty completion gets the lowest.
///
/// # Errors
/// The file cannot be read.
pub fn signals(path: &Path, tasks: &TaskSet) -> Result<Vec<Signals>> {
    let index = predictions::TaskIndex::new(tasks);
    let mut signals = vec![None; tasks.tasks().len()];
    let mut empty = Vec::new();
    // Problems of the records were reported when their texts were read.
    let _ = jsonl::for_each(path, |at, object| {
        let object = lm_eval::as_prediction(path, at.line, object)?;
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
            signals[place].min_logprob = Some(libm::log(f64::MIN_POSITIVE));
        }
    }
    Ok(signals)
}

/// Result of reading a file of signals.
#[derive(Debug, Default)]
pub struct ReadSignals {
    /// Number of tasks with a signal.
    pub found: usize,
    /// Records that cannot be used.
    pub problems: Vec<Error>,
    /// Records that belong to none of the tasks.
    pub unmatched: Vec<Error>,
    /// Error that rejects the file, if records belong to other tasks than they name.
    pub others: Option<Error>,
    /// Records that are assigned to their tasks by numbers alone.
    pub numbered: NumberedRecords,
}

impl ReadSignals {
    /// Returns the error for a file without probabilities.
    pub(super) fn nothing(self, path: &Path) -> Error {
        let first = self.problems.into_iter().chain(self.unmatched).next();
        let hint = message!["ask the model for the ", UserChoice::RetrievalProbability];
        first.unwrap_or_else(|| Error::artifact(path, "contains no probabilities", hint))
    }
}

/// Adds the probability of the token that requests retrieval to the signals of each task; if a task has several, the first.
///
/// # Errors
/// The file cannot be read.
pub fn probabilities(path: &Path, tasks: &TaskSet, signals: &mut [Signals]) -> Result<ReadSignals> {
    let index = predictions::TaskIndex::new(tasks);
    let mut of_task = vec![None; tasks.tasks().len()];
    let mut unmatched = Vec::new();
    let problems = jsonl::for_each(path, |at, object| {
        let record = Fields::new(path, at.line, "", &object);
        require(path, at.line, MADE, &object)?;
        let Some(probability) = Signals::requested_probability(&object) else {
            return Err(record.error("field 'next_token.probability' must be a number from 0 to 1"));
        };
        match index.find(path, at.line, &object) {
            Ok(predictions::TaskMatch::Task(place)) => {
                of_task[place].get_or_insert((probability, Signals::is_likeliest(&object)));
                Ok(())
            }
            Ok(predictions::TaskMatch::Alike(_)) => {
                Err(record.error("several tasks have this id; add metadata.row"))
            }
            Err(error) => {
                keep(&mut unmatched, path, error);
                Ok(())
            }
        }
    })?;
    for (signals, found) in signals.iter_mut().zip(&of_task) {
        if let Some((probability, is_likeliest)) = *found {
            (signals.cc_probability, signals.cc_likeliest) = (Some(probability), is_likeliest);
        }
    }
    let (found, others) = (of_task.iter().flatten().count(), index.others(path));
    Ok(ReadSignals { found, problems, unmatched, others, numbered: index.numbered_records() })
}
