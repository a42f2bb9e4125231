//! Input of a report: tasks, systems, and the outcome of each system on each task.

use std::borrow::Cow;

use repoformer_core::prompt::shown::ShownFragment;

use super::text::{bounds, file_name, hundredths, with_interval};
use crate::statistics::{Estimate, Interval};

/// Contents of a report.
///
/// Indices out of range and lists that are too short mean *missing* values, so a page can be rendered for every value of this
/// type.
#[derive(Debug, Clone, Default)]
pub struct ReportContents<'t> {
    /// Headline of the page.
    pub title: String,
    /// Version of the program, for the foot of the page.
    pub tool_version: String,
    /// Names and values: inputs with their digests, settings, counts.
    pub provenance: Vec<(String, String)>,
    /// Notes needed to interpret the numbers: missing predictions, tasks left out.
    pub notes: Vec<String>,
    /// Measures, in the order of the tables.
    pub measures: Vec<ReportMeasure>,
    /// Index of the measure whose gains are plotted and decide whether a task is better or worse: usually edit similarity.
    pub main: usize,
    /// Index of a measure that is 1 exactly if the prediction equals the target.
    pub exact: Option<usize>,
    /// Tasks, in the order of the task file.
    pub tasks: Vec<ReportTask<'t>>,
    /// Systems, in the order of the tables.
    pub systems: Vec<System>,
    /// Index of the system that the others are compared with, if any.
    pub baseline: Option<usize>,
    /// Number of repositories if they are so few that the systems' intervals are only ranges over them.
    pub few: Option<usize>,
}

/// Measure, with values between 0 and 1, shown × 100.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportMeasure {
    /// Metric: `repocoder`.
    pub metric: String,
    /// Name of the value, short enough for a column: `es`.
    pub value: String,
    /// Name in a sentence: `edit similarity`.
    pub title: String,
}

/// Hole of the benchmark.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportTask<'t> {
    /// 0-based row in the task file.
    pub row: usize,
    /// Id in the benchmark.
    pub id: Cow<'t, str>,
    /// Name of the repository.
    pub repository: Cow<'t, str>,
    /// Path of the file in the repository.
    pub path: Cow<'t, str>,
    /// 0-based first line of the hole.
    pub line_no: usize,
    /// `python`, `java`, `csharp`, `typescript`, `go`, `javascript`, or any other word.
    pub language: Cow<'t, str>,
    /// Original text of the hole.
    pub target: Cow<'t, str>,
    /// Text above the hole, as far as the task's own prompt shows it.
    pub left_context: Cow<'t, str>,
    /// Text below the hole.
    pub right_context: Option<Cow<'t, str>>,
}

/// System that completes the tasks: a mode of retrieval, a model, a file of predictions.
#[derive(Debug, Clone, Default)]
pub struct System {
    /// Name in tables and figures: `rg1`.
    pub name: String,
    /// Settings, as names and values.
    pub settings: Vec<(String, String)>,
    /// True if the system retrieves with the ground truth, which makes it an upper bound and not a competitor.
    pub is_oracle: bool,
    /// Mean of each measure, between 0 and 1.
    pub means: Vec<Estimate>,
    /// Number of tasks in the means.
    pub n: usize,
    /// Comparison with the baseline by the main measure.
    pub comparison: Option<BaselineComparison>,
    /// Outcome of each task; `None` without a prediction.
    pub outcomes: Vec<Option<TaskOutcome>>,
}

/// Mean difference of a system from the baseline. The numbers of better and worse tasks are counted from the outcomes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BaselineComparison {
    /// Mean over tasks of the system's value minus the baseline's, between -1 and 1.
    pub mean_difference: f64,
    /// 95 % interval of the mean difference.
    pub interval: Option<Interval>,
    /// p-value of the hypothesis that there is no difference, from flipping the signs of tasks.
    pub p_tasks: Option<f64>,
    /// p-value from flipping the signs of repositories, each with its tasks.
    pub p_repositories: Option<f64>,
}

/// Outcome of one task for one system.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskOutcome {
    /// Prediction before post-processing, if that changed it.
    pub raw: Option<String>,
    /// Prediction that was scored.
    pub prediction: String,
    /// Value of each measure, between 0 and 1.
    pub values: Vec<f64>,
    /// Retrieved fragments shown to the model, best first.
    pub fragments: Vec<ShownFragment>,
    /// Fraction, between 0 and 1, of the target's identifiers that are in the fragments; `None` if the target has none, or
    /// nothing was retrieved.
    pub identifiers_retrieved: Option<f64>,
    /// Further result in one word: `pass` or `fail` for unit tests.
    pub status: Option<String>,
}

impl ReportContents<'_> {
    /// Returns a system's value for a task, between 0 and 1; `None` without a prediction, or if the value is not a number.
    pub fn value(&self, system: usize, task: usize, measure: usize) -> Option<f64> {
        let value = *self.outcome(system, task)?.values.get(measure)?;
        value.is_finite().then_some(value)
    }

    /// Returns the outcome of a task, if the system has a prediction.
    pub fn outcome(&self, system: usize, task: usize) -> Option<&TaskOutcome> {
        self.systems.get(system)?.outcomes.get(task)?.as_ref()
    }

    /// Formats a mean with its interval, or with its range if there are few repositories.
    pub(super) fn with_interval(&self, mean: Estimate) -> String {
        match (self.few, mean.interval) {
            (Some(_), Some(range)) => {
                format!("{}, range {}", hundredths(mean.mean), bounds(range, hundredths))
            }
            _ => with_interval(mean),
        }
    }

    /// Returns the index of the baseline and the baseline, if there is one.
    pub(super) fn baseline(&self) -> Option<(usize, &System)> {
        let baseline = self.baseline?;
        Some((baseline, self.systems.get(baseline)?))
    }

    /// Returns the systems other than the baseline, with their indices; none without a baseline.
    pub(super) fn compared_systems(&self) -> impl Iterator<Item = (usize, &System)> {
        let baseline = self.baseline().map(|(baseline, _)| baseline);
        let systems = self.systems.iter().enumerate();
        systems.filter(move |(index, _)| baseline.is_some_and(|baseline| baseline != *index))
    }

    /// Returns the index of the compared system with the highest mean of the main measure; of equal ones, the first. An oracle
    /// is chosen only if there is no other system; without a baseline, all systems are compared.
    pub(super) fn best(&self) -> Option<usize> {
        let mean = |system: &System| {
            let mean = system.means.get(self.main);
            mean.map_or(f64::NEG_INFINITY, |mean| mean.mean)
        };
        let mut all: Vec<(usize, &System)> = self.compared_systems().collect();
        if all.is_empty() {
            all = self.systems.iter().enumerate().collect();
        }
        if all.iter().any(|(_, system)| !system.is_oracle) {
            all.retain(|(_, system)| !system.is_oracle);
        }
        all.into_iter()
            .reduce(|best, next| if mean(next.1) > mean(best.1) { next } else { best })
            .map(|(system, _)| system)
    }

    /// Returns the short name of the main measure for axes and columns: `ES`.
    pub(super) fn main_label(&self) -> String {
        let measure = self.measures.get(self.main);
        measure.map_or_else(|| "value".into(), ReportMeasure::full_label)
    }

    /// Returns the name of the main measure in file names.
    pub(super) fn main_file_name(&self) -> String {
        let measure = self.measures.get(self.main);
        measure.map_or_else(|| "value".into(), |measure| file_name(&measure.value))
    }
}

impl ReportMeasure {
    /// Metric of the unit-test pass rate.
    pub const UNIT_TESTS: &str = "unit tests";

    /// Returns the name for columns and axes: abbreviations in capitals.
    pub(super) fn label(&self) -> String {
        match self.value.len() {
            ..=3 => self.value.to_uppercase(),
            _ => self.value.replace('_', " "),
        }
    }

    /// Returns the label with its metric: `ES (repocoder)`.
    fn full_label(&self) -> String {
        format!("{} ({})", self.label(), self.metric)
    }
}
