//! Unit-test results of a run's predictions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Result;
use repoformer_core::retrieve::Mode;
use repoformer_evaluate::executed::{TestOutcome, is_of, read_executed};
use repoformer_pipeline::{Completion, Experiment};
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use crate::fail;
use crate::policies::PolicyChoice;

/// Results of `eval --exec` by mode, and the results found for the current benchmark.
#[derive(Debug, Default)]
pub struct TestResults {
    files: Vec<(Mode, PathBuf)>,
    /// Indexes of the files that some benchmark used.
    used: BTreeSet<usize>,
    passed: BTreeMap<(String, Mode), BTreeMap<usize, f64>>,
}

impl TestResults {
    /// Reads the files that `MODE=FILE` names.
    ///
    /// # Errors
    /// One of them names no mode, or cannot be read.
    pub fn new(given: &[String]) -> Result<Self> {
        let mut files = Vec::new();
        for given in given {
            let Some((mode, path)) = given.split_once('=') else {
                return fail(
                    message![
                        UserChoice::TestResultsFile,
                        format!(" '{given}' does not name the mode of the results")
                    ],
                    "name it: rg1=FILE",
                );
            };
            repoformer_store::jsonl::open(path.as_ref())?;
            files.push((mode.parse()?, path.into()));
        }
        Ok(Self { files, ..Self::default() })
    }

    /// Rejects results of only one of the completions without and with retrieval: both are shown.
    pub fn check_pairs(&self) -> Result<()> {
        let has = |is_it: fn(Mode) -> bool| self.files.iter().any(|(mode, _)| is_it(*mode));
        let (without, with) =
            (has(|mode| mode == Mode::Without), has(|mode| mode != Mode::Without));
        if without == with {
            return Ok(());
        }
        fail(
            message![
                "each ",
                UserChoice::TestResultsFile,
                " has results of one mode, but tables and figures of the paper compare two"
            ],
            "give both: none=FILE and rg1=FILE",
        )
    }

    /// Returns the pass rates of a mode's predictions by row; empty if no file belongs to these predictions.
    pub fn of_mode(
        &mut self,
        experiment: &Experiment,
        mode: Mode,
        completion: &Completion,
    ) -> Result<BTreeMap<usize, f64>> {
        let predictions = experiment.paths().predictions(mode, &completion.model);
        for (place, (of, path)) in self.files.iter().enumerate() {
            if *of != mode || is_of(path, &predictions)? == Some(false) {
                continue;
            }
            let found = read_executed(path, mode.name())?;
            let tasks = experiment.tasks()?.tasks();
            let is_known = |(row, one): (&usize, &TestOutcome)| {
                let place = tasks.binary_search_by_key(row, |task| task.row);
                place.is_ok_and(|place| tasks[place].id == one.task_id)
            };
            if found.is_empty() || !found.iter().all(is_known) {
                continue;
            }
            self.used.insert(place);
            let rates = found.iter().filter_map(|(row, one)| Some((*row, one.pass_rate?)));
            let rates: BTreeMap<usize, f64> = rates.collect();
            self.passed.insert((experiment.name.clone(), mode), rates.clone());
            return Ok(rates);
        }
        Ok(BTreeMap::new())
    }

    /// Returns the pass rates of a mode that were found before.
    pub fn pass_rates(&self, experiment: &Experiment, mode: Mode) -> Option<&BTreeMap<usize, f64>> {
        self.passed.get(&(experiment.name.clone(), mode))
    }

    /// Returns the pass rates of a policy's choices, by row.
    pub fn of_policy(
        &self,
        experiment: &Experiment,
        selected: &PolicyChoice,
    ) -> Result<BTreeMap<usize, f64>> {
        let of = |mode| self.pass_rates(experiment, mode);
        let (Some(without), Some(with)) = (of(Mode::Without), of(selected.mode)) else {
            return Ok(BTreeMap::new());
        };
        let chosen = selected.source.retrieved.as_ref();
        let rate = |(row, without): (&usize, &f64)| {
            let retrieves = chosen.is_some_and(|rows| rows.contains(row));
            Some((*row, if retrieves { *with.get(row)? } else { *without }))
        };
        Ok(without.iter().filter_map(rate).collect())
    }

    /// Rejects a file that belongs to none of the predictions.
    pub fn check_used(&self) -> Result<()> {
        let unused = self.files.iter().enumerate().find(|(place, _)| !self.used.contains(place));
        match unused {
            None => Ok(()),
            Some((_, (mode, path))) => fail(
                format!(
                    "{}: contains no test results of these predictions of mode {mode}",
                    path.display()
                ),
                message!["compute the ", UserChoice::UnitTestResults, " with this run's settings"],
            ),
        }
    }
}
