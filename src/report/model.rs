//! What a report is made of: tasks, systems, and what each system made of each task.

use crate::prompt::shown::Fragment;

/// Everything that a report shows; nothing else is read to make it.
///
/// Indices into `measures`, `systems` and `tasks` that point nowhere, and lists shorter than they should be, are read as
/// *missing*, so that every value of this type has a page.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The page's headline.
    pub title: String,
    /// The program's version, for the foot of the page.
    pub tool_version: String,
    /// How the report was made, as names and values: inputs with their digests, settings, counts.
    pub provenance: Vec<(String, String)>,
    /// What a reader has to know before believing a number: missing predictions, tasks left out.
    pub notes: Vec<String>,
    /// What was measured, in the order of the tables.
    pub measures: Vec<Measure>,
    /// Index of the measure whose gain is plotted and whose sign is a task's verdict: usually edit similarity.
    pub main: usize,
    /// Index of a measure that is 1 exactly where the prediction is the target.
    pub exact: Option<usize>,
    /// The tasks, in the order of the task file.
    pub tasks: Vec<Task>,
    /// The systems compared, in the order of the tables.
    pub systems: Vec<System>,
    /// Index of the system that the others are compared with, if any.
    pub baseline: Option<usize>,
}

/// One value that each outcome has, between 0 and 1 and shown × 100.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// The metric that it belongs to: `repocoder`.
    pub metric: String,
    /// Its name there, short enough for a column: `es`.
    pub value: String,
    /// Its name in a sentence: `edit similarity`.
    pub title: String,
}

/// One hole of the benchmark.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Task {
    /// 0-based row in the task file.
    pub row: usize,
    /// The benchmark's id.
    pub id: String,
    /// The repository's name.
    pub repository: String,
    /// The file, within the repository.
    pub path: String,
    /// 0-based line where the hole begins.
    pub line_no: usize,
    /// `python`, `java`, `csharp`, `typescript`, `go`, or any other word.
    pub language: String,
    /// What stood in the hole.
    pub target: String,
    /// The file above the hole, as far as the task's own prompt shows it.
    pub left_context: String,
    /// The file below the hole.
    pub right_context: Option<String>,
}

/// One way to complete the tasks: a mode of retrieval, a model, a file of predictions.
#[derive(Debug, Clone, Default)]
pub struct System {
    /// How tables and figures call it: `rg1`.
    pub name: String,
    /// Its settings, as names and values.
    pub settings: Vec<(String, String)>,
    /// Whether it was shown what it had to find, as retrieval with the truth is: a bound, and no competitor.
    pub is_oracle: bool,
    /// Its mean of each measure.
    pub means: Vec<Mean>,
    /// Over how many tasks the means were taken.
    pub n: usize,
    /// The paired test against the baseline, on the report's main measure.
    pub comparison: Option<Comparison>,
    /// What it made of each task; `None` where it has no prediction.
    pub outcomes: Vec<Option<Outcome>>,
}

/// A mean and its interval, each between 0 and 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Lower and upper bound of its 95 % interval.
    pub interval: Option<(f64, f64)>,
}

/// A system's mean difference from the baseline. How many tasks it is better and worse on is counted from the outcomes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Comparison {
    /// Mean over tasks of the system's value minus the baseline's, between -1 and 1.
    pub mean_difference: f64,
    /// Lower and upper bound of its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// Of the hypothesis that there is no difference.
    pub p_value: Option<f64>,
}

/// What a system made of a task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The prediction as the model gave it, where post-processing changed it.
    pub raw: Option<String>,
    /// The prediction that was measured.
    pub prediction: String,
    /// Its value of each measure, between 0 and 1.
    pub values: Vec<f64>,
    /// What retrieval showed the model, best first.
    pub fragments: Vec<Fragment>,
    /// Share, between 0 and 1, of the target's identifiers that the fragments hold; `None` where the target has none, or
    /// nothing was retrieved.
    pub identifiers_retrieved: Option<f64>,
    /// Any further result in a word: of unit tests `pass`, `fail`.
    pub status: Option<String>,
}

impl Report {
    /// A system's value of a task, between 0 and 1: `None` without a prediction, or where it is not a number.
    pub fn value(&self, system: usize, task: usize, measure: usize) -> Option<f64> {
        let value = *self.outcome(system, task)?.values.get(measure)?;
        value.is_finite().then_some(value)
    }

    /// What a system made of a task, if it has a prediction.
    pub fn outcome(&self, system: usize, task: usize) -> Option<&Outcome> {
        self.systems.get(system)?.outcomes.get(task)?.as_ref()
    }

    /// The baseline, where there is one.
    pub(super) fn baseline(&self) -> Option<(usize, &System)> {
        let baseline = self.baseline?;
        Some((baseline, self.systems.get(baseline)?))
    }

    /// The systems that are compared with the baseline, with their indices; none without a baseline.
    pub(super) fn compared(&self) -> impl Iterator<Item = (usize, &System)> {
        let baseline = self.baseline().map(|(baseline, _)| baseline);
        let systems = self.systems.iter().enumerate();
        systems.filter(move |(index, _)| baseline.is_some_and(|baseline| baseline != *index))
    }

    /// The short name of the main measure, as axes and columns show it: `ES`.
    pub(super) fn main_label(&self) -> String {
        let measure = self.measures.get(self.main);
        measure.map_or_else(|| "value".into(), |measure| measure.label())
    }
}

impl Measure {
    /// Its name as columns and axes show it: abbreviations in capitals.
    pub(super) fn label(&self) -> String {
        match self.value.len() {
            ..=3 => self.value.to_uppercase(),
            _ => self.value.replace('_', " "),
        }
    }
}
