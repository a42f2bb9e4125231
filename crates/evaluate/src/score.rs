//! Scores: every task by every metric, then means by repository and over all tasks.
//!
//! A mean is over tasks, so a repository's weight is its number of tasks; RepoCoder's `compute_score.py` prints the same means by
//! repository, rounded to four digits. Sums are computed in the order of the tasks, on any number of threads.

use std::collections::BTreeMap;

use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::{
    ComparedTexts, HoleContext, Postprocess, Recipe, UncutReason, are_function_bodies,
};
use repoformer_core::repository::parallel;
use repoformer_core::task::{Task, TaskSet};
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::Object;
use repoformer_store::progress::Work;
use repoformer_text::counts::part;
use repoformer_text::language::Language;
use repoformer_text::named;
use serde_json::Value;

use crate::pairs::Pair;
use crate::statistics::{Groups, Interval, IntervalKind, Resampling, ResamplingUnit};

mod record;

pub(crate) use record::StoredScores;

/// Metrics, with the decisive one first, and the post-processing before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scoring {
    /// Metrics, at least one.
    pub metrics: Vec<Metric>,
    /// Cut of predictions.
    pub postprocess: Postprocess,
}

impl Scoring {
    /// Creates the scoring of tasks by these metrics, or by the usual metric if none is given, each after the cut of its own
    /// program.
    pub fn new(tasks: &[Task], metrics: &[Metric]) -> Self {
        Self::with_bodies(tasks, metrics, are_function_bodies(tasks))
    }

    /// Creates the scoring of tasks for which it is known whether the holes are function bodies.
    pub fn with_bodies(tasks: &[Task], metrics: &[Metric], function_bodies: bool) -> Self {
        let is_repoformers =
            |task: &Task| matches!(task.kind().as_deref(), Some("chunk" | "function"));
        let are_repoformers =
            function_bodies || !tasks.is_empty() && tasks.iter().all(is_repoformers);
        let usual = if are_repoformers { Metric::Repoformer } else { Metric::RepoCoder };
        Self {
            metrics: if metrics.is_empty() { vec![usual] } else { metrics.to_vec() },
            postprocess: Postprocess::own(function_bodies),
        }
    }

    /// Returns the first metric, which decides whether a system is better.
    pub fn first(&self) -> Metric {
        self.metrics.first().copied().unwrap_or(Metric::RepoCoder)
    }

    /// Returns each metric with its cut.
    pub fn recipes(&self) -> impl Iterator<Item = (Metric, Recipe)> + '_ {
        self.metrics.iter().map(|&metric| (metric, self.postprocess.recipe(metric)))
    }

    /// Names a metric in a table, with its cut if it is not the usual one for lines, and with the way in which it combines
    /// several samples of a task: `repoformer (function-body, mean of 3)`.
    pub fn name(&self, metric: Metric, samples: usize) -> String {
        let recipe = self.postprocess.recipe(metric);
        let usual = Postprocess::own(false);
        let cut = (recipe != usual.recipe(metric)).then(|| recipe.to_string());
        let details: Vec<String> = cut.into_iter().chain(metric.of_several([samples])).collect();
        if details.is_empty() {
            metric.to_string()
        } else {
            format!("{metric} ({})", details.join(", "))
        }
    }
}

/// Treatment of tasks without a prediction.
///
/// ```
/// use repoformer_evaluate::score::MissingPredictions;
/// assert_eq!("skip".parse::<MissingPredictions>()?, MissingPredictions::Skip);
/// assert_eq!(MissingPredictions::default().to_string(), "error");
/// # Ok::<(), repoformer_store::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingPredictions {
    /// Return an error.
    #[default]
    Error,
    /// Score 0 and count in the means.
    Zero,
    /// Leave out of the means.
    Skip,
}

named! {
    MissingPredictions, "treatment of missing predictions":
    Error = "error",
    Zero = "zero",
    Skip = "skip",
}

/// Values of a metric, or their means.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricScore {
    /// Metric.
    pub metric: Metric,
    /// Values in the order of [`Metric::values`], each between 0 and 1.
    pub values: Vec<f64>,
}

impl MetricScore {
    /// Returns a value by name.
    pub fn get(&self, name: &str) -> Option<f64> {
        let place = self.metric.values().iter().position(|&value| value == name);
        place.and_then(|place| self.values.get(place)).copied()
    }
}

/// Scores of one task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskScore {
    /// 0-based position in the task file, or in the file of pairs.
    pub row: usize,
    /// Id of the task, as in its file.
    pub task_id: String,
    /// Repository of the task; `None` for a pair.
    pub repository: Option<String>,
    /// Scores by each requested metric, in the requested order.
    pub scores: Vec<MetricScore>,
    /// First 8 bytes of the target's BLAKE3, which reveal whether scores from elsewhere have the same target.
    pub target: u64,
    /// Number of samples.
    pub samples: usize,
    /// Samples as they were predicted.
    pub raw: Vec<String>,
    /// Samples as they were compared, in the order of [`Cuts::recipes`].
    pub cut: Vec<Vec<String>>,
    /// Numbers of samples that a recipe could not cut, in the order of [`Cuts::recipes`].
    pub uncut: Vec<UncutCounts>,
}

/// Number of samples that could not be cut, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UncutCounts([usize; UncutReason::ALL.len()]);

impl UncutCounts {
    /// Returns the number for a reason.
    pub fn get(self, reason: UncutReason) -> usize {
        self.0[reason as usize]
    }

    fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }
}

impl FromIterator<UncutReason> for UncutCounts {
    fn from_iter<I: IntoIterator<Item = UncutReason>>(reasons: I) -> Self {
        let mut counts = Self::default();
        reasons.into_iter().for_each(|reason| counts.0[reason as usize] += 1);
        counts
    }
}

/// Returns the first 8 bytes of a target's BLAKE3.
pub fn target_digest(target: &str) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&blake3::hash(target.as_bytes()).as_bytes()[..8]);
    u64::from_be_bytes(first)
}

/// Returns the number of samples in a task's record; 0 if the record does not show them.
pub fn samples_of(record: &Object) -> usize {
    match record.get("pred_raw") {
        Some(Value::Array(samples)) => samples.len(),
        shown => usize::from(shown.is_some()),
    }
}

impl TaskScore {
    /// Returns a value of a metric.
    pub fn get(&self, metric: Metric, value: &str) -> Option<f64> {
        let score = self.scores.iter().find(|score| score.metric == metric)?;
        score.get(value)
    }
}

/// Post-processing of the samples for each metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cuts {
    /// Distinct recipes.
    pub recipes: Vec<Recipe>,
    /// Index of each metric's recipe.
    pub of_metric: Vec<usize>,
    /// True if task records include the texts.
    pub are_shown: bool,
}

impl Cuts {
    fn new(metrics: &[Metric], postprocess: &Postprocess, are_shown: bool) -> Self {
        let mut recipes: Vec<Recipe> = Vec::new();
        let place = |&metric: &Metric| {
            let recipe = postprocess.recipe(metric);
            let place = recipes.iter().position(|known| *known == recipe);
            place.unwrap_or_else(|| {
                recipes.push(recipe);
                recipes.len() - 1
            })
        };
        let of_metric = metrics.iter().map(place).collect();
        Self { recipes, of_metric, are_shown }
    }

    /// Scores the samples of one target. Returns the scores, the samples after each recipe, and the numbers of uncut samples.
    fn score(
        &self,
        metrics: &[Metric],
        hole: HoleContext<'_>,
        samples: &[String],
    ) -> (Vec<MetricScore>, Vec<Vec<String>>, Vec<UncutCounts>) {
        let cut = |recipe: &Recipe| -> Vec<_> {
            if recipe.is_empty() && !self.are_shown {
                return Vec::new();
            }
            let samples = samples.iter().map(|sample| recipe.apply(hole, sample));
            samples.collect()
        };
        let cut: Vec<Vec<_>> = self.recipes.iter().map(cut).collect();
        let score = |(&metric, &recipe): (&Metric, &usize)| {
            if self.recipes[recipe].is_empty() {
                let values = metric.score(hole.target, samples, hole.language);
                return MetricScore { metric, values };
            }
            // A recipe may cut the target too, and differently for each sample.
            let one = |one: &ComparedTexts<'_>| {
                metric.score(&one.target, &[&*one.prediction], hole.language)
            };
            let values = match &cut[recipe][..] {
                [sample] => one(sample),
                samples => metric.of_samples(&samples.iter().map(one).collect::<Vec<_>>()),
            };
            MetricScore { metric, values }
        };
        let scores = metrics.iter().zip(&self.of_metric).map(score).collect();
        let uncut = cut.iter().map(|cut| cut.iter().filter_map(|one| one.uncut).collect());
        let uncut = uncut.collect();
        let texts = |cut: Vec<ComparedTexts<'_>>| {
            let texts = cut.into_iter().map(|one| one.prediction.into_owned());
            texts.collect()
        };
        let shown = cut.into_iter().filter(|_| self.are_shown);
        (scores, shown.map(texts).collect(), uncut)
    }
}

/// Means over some tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricMeans {
    /// Number of tasks.
    pub n: usize,
    /// Means by each metric; 0 without tasks.
    pub means: Vec<MetricScore>,
}

impl MetricMeans {
    /// Averages the scores of tasks, summed in their order.
    pub(crate) fn new<'a>(
        metrics: &[Metric],
        tasks: impl Iterator<Item = &'a [MetricScore]>,
    ) -> Self {
        let zero =
            |&metric: &Metric| MetricScore { metric, values: vec![0.0; metric.values().len()] };
        let (mut n, mut means) = (0, metrics.iter().map(zero).collect::<Vec<_>>());
        for task in tasks {
            n += 1;
            for (sum, score) in means.iter_mut().zip(task) {
                for (sum, value) in sum.values.iter_mut().zip(&score.values) {
                    *sum += value;
                }
            }
        }
        for mean in means.iter_mut().flat_map(|score| &mut score.values) {
            *mean /= n.max(1) as f64;
        }
        Self { n, means }
    }
}

/// Scores of a benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// Scored tasks, in the order of their file.
    pub tasks: Vec<TaskScore>,
    /// Means by repository, in the order of their names.
    pub repositories: Vec<(String, MetricMeans)>,
    /// Means over all tasks.
    pub all: MetricMeans,
    /// Number of tasks without a prediction: they count as 0 with [`MissingPredictions::Zero`], and are left out of the means
    /// with [`MissingPredictions::Skip`].
    pub missing: usize,
    /// Post-processing before each metric.
    pub cuts: Cuts,
}

impl Scores {
    /// Returns the numbers of samples that recipes could not cut, in the order of [`Cuts::recipes`].
    pub fn uncut(&self) -> Vec<UncutCounts> {
        let mut all = vec![UncutCounts::default(); self.cuts.recipes.len()];
        for task in &self.tasks {
            all.iter_mut().zip(&task.uncut).for_each(|(sum, counts)| sum.add(*counts));
        }
        all
    }

    /// Describes for each metric how many samples could not be cut for this reason, and names some of their tasks.
    pub fn tell_uncut(&self, reason: UncutReason) -> Vec<String> {
        const SHOWN: usize = 5;
        let why = match reason {
            UncutReason::File => {
                "because the grammar cannot parse the file up to the end of the hole"
            }
            UncutReason::Prediction => "because no prefix of the prediction can be parsed",
            UncutReason::Bound => "because parsing would take too much time or memory",
        };
        let all: usize = self.tasks.iter().map(|task| task.samples).sum();
        let uncut = self.uncut();
        let metrics = self.metrics().into_iter().zip(&self.cuts.of_metric);
        let told = metrics.filter(|&(_, &recipe)| uncut[recipe].get(reason) > 0);
        let tell = |(metric, &recipe): (Metric, &usize)| {
            let is_uncut = |task: &&TaskScore| {
                task.uncut.get(recipe).is_some_and(|counts| counts.get(reason) > 0)
            };
            let ids: Vec<&str> =
                self.tasks.iter().filter(is_uncut).map(|task| &*task.task_id).collect();
            let rest = match ids.len().saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let (count, ids) = (uncut[recipe].get(reason), ids[..ids.len().min(SHOWN)].join(", "));
            let count = part(count, all, "prediction", ["is", "are"]);
            format!("{metric}: {count} compared without being cut, {why}: {ids}{rest}")
        };
        told.map(tell).collect()
    }

    /// Returns the largest number of samples of a task.
    pub fn samples(&self) -> usize {
        self.tasks.iter().map(|task| task.samples).max().unwrap_or(0)
    }

    /// Returns the recipes that are not empty, by metric.
    pub fn cuts_by_metric(&self) -> Vec<(Metric, &Recipe)> {
        let metrics = self.metrics().into_iter().zip(&self.cuts.of_metric);
        let cuts = metrics.map(|(metric, &recipe)| (metric, &self.cuts.recipes[recipe]));
        cuts.filter(|(_, recipe)| !recipe.is_empty()).collect()
    }

    /// Returns the metrics, in the requested order.
    pub fn metrics(&self) -> Vec<Metric> {
        self.all.means.iter().map(|mean| mean.metric).collect()
    }

    fn new(metrics: &[Metric], tasks: Vec<TaskScore>, missing: usize, cuts: Cuts) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&TaskScore>> = BTreeMap::new();
        for task in &tasks {
            if let Some(name) = &task.repository {
                by_name.entry(name).or_default().push(task);
            }
        }
        let summary = |(name, tasks): (&str, Vec<&TaskScore>)| {
            (
                name.to_owned(),
                MetricMeans::new(metrics, tasks.iter().map(|task| task.scores.as_slice())),
            )
        };
        Self {
            repositories: by_name.into_iter().map(summary).collect(),
            all: MetricMeans::new(metrics, tasks.iter().map(|task| task.scores.as_slice())),
            tasks,
            missing,
            cuts,
        }
    }

    /// Returns the interval of each mean over all tasks; repositories are resampled if there are two or more.
    pub fn intervals(&self, resampling: &Resampling) -> Intervals {
        let repositories = self.tasks.iter().map(|task| task.repository.as_deref());
        let groups = Groups::new(repositories);
        let count = self.all.means.iter().map(|mean| mean.values.len()).sum();
        let mut columns = vec![Vec::with_capacity(self.tasks.len()); count];
        for task in &self.tasks {
            let values = task.scores.iter().flat_map(|score| &score.values);
            for (column, value) in columns.iter_mut().zip(values) {
                column.push(*value);
            }
        }
        let columns = columns.iter().map(|column| column.iter().copied().map(Some));
        Intervals {
            of_values: resampling.intervals(&groups, columns),
            unit: groups.unit(),
            units: groups.len(),
        }
    }
}

/// Intervals of means.
#[derive(Debug, Clone, PartialEq)]
pub struct Intervals {
    /// Interval of each value of each metric, in the order of [`Scores::all`]; `None` if there are fewer than two units.
    pub of_values: Vec<Option<Interval>>,
    /// Resampled unit.
    pub unit: ResamplingUnit,
    /// Number of units.
    pub units: usize,
}

impl Intervals {
    /// Returns the kind of these intervals, if there are any.
    pub fn kind(&self) -> Option<IntervalKind> {
        let has_any = self.of_values.iter().any(Option::is_some);
        has_any.then(|| self.unit.interval_kind(self.units))
    }
}

/// Scores the samples of each task: `samples[i]` belongs to the i-th task, and an empty list is a missing prediction.
///
/// ```
/// use repoformer_core::metrics::Metric;
/// use repoformer_core::postprocess::Postprocess;
/// use repoformer_evaluate::score::{MissingPredictions, score_tasks};
/// use repoformer_core::task::{Task, TaskSet};
/// let task = |path| Task::new("id".into(), path, 0, 3, "return x", "");
/// let tasks = TaskSet::new("t.jsonl".into(), vec![task("a/x.py"), task("b/x.py")]);
/// let samples = [vec!["return x".to_owned()], vec![]];
/// let scores = score_tasks(&tasks, &samples, &[Metric::RepoCoder], &Postprocess::NONE, MissingPredictions::Zero)?;
/// assert_eq!(scores.all.means[0].values, [0.5, 0.5]);
/// assert_eq!(scores.repositories[0].1.means[0].values, [1.0, 1.0]);
/// assert_eq!(scores.missing, 1);
/// # Ok::<(), repoformer_store::error::Error>(())
/// ```
///
/// # Errors
/// A task has no sample and `missing` is [`MissingPredictions::Error`], or the numbers of lists and tasks differ.
pub fn score_tasks(
    tasks: &TaskSet,
    samples: &[Vec<String>],
    metrics: &[Metric],
    postprocess: &Postprocess,
    missing: MissingPredictions,
) -> Result<Scores> {
    if samples.len() != tasks.tasks().len() {
        let (lists, tasks) = (samples.len(), tasks.tasks().len());
        let reason = format!("{lists} lists of samples for {tasks} tasks");
        return Err(Error::parameter("predictions", reason));
    }
    let pairs: Vec<_> = tasks.tasks().iter().zip(samples).collect();
    let mut without = pairs.iter().filter(|(_, samples)| samples.is_empty());
    let count = without.clone().count();
    if let (MissingPredictions::Error, Some((task, _))) = (missing, without.next()) {
        let total = tasks.tasks().len();
        let count = part(count, total, "task", ["has", "have"]);
        let reason = format!("it has no prediction ({count} none)");
        return Err(tasks.error(task, reason));
    }
    let cuts = Cuts::new(metrics, postprocess, true);
    let mut wanted: Vec<_> = pairs.into_iter().enumerate().collect();
    wanted.retain(|(_, (_, samples))| missing != MissingPredictions::Skip || !samples.is_empty());
    // If the holes of a file follow each other, cuts of function bodies parse less.
    wanted.sort_by_key(|(_, (task, _))| (&task.path, task.line_no));
    let work = Work::new("score", "tasks", wanted.len());
    let mut scored = parallel::map(wanted, |(place, (task, samples))| {
        work.advance(1);
        let (scores, cut, uncut) = cuts.score(metrics, HoleContext::new(task), samples);
        let score = TaskScore {
            row: task.row,
            task_id: task.id.clone(),
            repository: Some(task.repository.clone()),
            scores,
            target: target_digest(&task.ground_truth),
            samples: samples.len(),
            raw: samples.clone(),
            cut,
            uncut,
        };
        (place, score)
    });
    scored.sort_by_key(|(place, _)| *place);
    let scored = scored.into_iter().map(|(_, score)| score).collect();
    Ok(Scores::new(metrics, scored, count, cuts))
}

/// Scores pairs of a target and a prediction without a task file; `language` applies to pairs that name none.
pub fn score_pairs(
    pairs: &[Pair],
    metrics: &[Metric],
    postprocess: &Postprocess,
    language: Language,
) -> Scores {
    let mut cuts = Cuts::new(metrics, postprocess, false);
    cuts.are_shown = cuts.recipes.iter().any(|recipe| !recipe.is_empty());
    let work = Work::new("score", "pairs", pairs.len());
    let scored = parallel::map(pairs, |pair| {
        work.advance(1);
        let hole = HoleContext {
            left_context: pair.prompt.as_deref().unwrap_or_default(),
            whole_left_context: None,
            target: &pair.target,
            language: pair.language.unwrap_or(language),
        };
        let (scores, cut, uncut) = cuts.score(metrics, hole, &pair.samples);
        TaskScore {
            row: pair.row,
            task_id: pair.task_id.clone(),
            repository: None,
            scores,
            target: target_digest(&pair.target),
            samples: pair.samples.len(),
            raw: pair.samples.iter().filter(|_| cuts.are_shown).cloned().collect(),
            cut,
            uncut,
        }
    });
    Scores::new(metrics, scored, 0, cuts)
}

#[cfg(test)]
mod tests {
    use repoformer_core::task::Task;

    use super::*;

    fn tasks() -> TaskSet {
        let task = |row, path: &str, target: &str| Task {
            row,
            line: row + 1,
            ..Task::new(format!("id{row}"), path, 0, 1, target, "")
        };
        let tasks = [(0, "b/x.py", "ab"), (1, "a/x.py", "abcd"), (2, "b/y.py", "abc")];
        let tasks = tasks.map(|(row, path, target)| task(row, path, target));
        TaskSet::new("t.jsonl".into(), tasks.to_vec())
    }

    fn samples(texts: [&[&str]; 3]) -> Vec<Vec<String>> {
        let owned = |samples: &[&str]| samples.iter().map(|&s| s.to_owned()).collect();
        texts.into_iter().map(owned).collect()
    }

    fn score(set: &TaskSet, given: &[Vec<String>], missing: MissingPredictions) -> Result<Scores> {
        let metrics = [Metric::RepoCoder];
        score_tasks(set, given, &metrics, &Postprocess::NONE, missing)
    }

    #[test]
    fn means_are_over_tasks() {
        let given = samples([&["ab"], &["xbcd"], &["zz", "abz", ""]]);
        let scores = score(&tasks(), &given, MissingPredictions::Error).unwrap();
        assert_eq!(
            scores.tasks[1].to_record(&scores.cuts).to_string(),
            r#"{"task_id":"id1","row":1,"repository":"a","repocoder":{"em":0.0,"es":0.75},"target_digest":"8c9c9881805d1a84","pred_raw":"xbcd","pred":"xbcd"}"#
        );
        let third = 1.0 - 1.0 / 3.0;
        let [(_, a), (_, b)] = &scores.repositories[..] else { panic!("{scores:?}") };
        assert_eq!(a.to_record().to_string(), r#"{"n":1,"repocoder":{"em":0.0,"es":0.75}}"#);
        assert_eq!((b.n, &b.means[0].values[..]), (2, &[0.5, (1.0 + third) / 2.0][..]));
        assert_eq!(scores.all.means[0].get("es"), Some((1.0 + 0.75 + third) / 3.0));
        assert_eq!(scores.all.means[0].get("id_em"), None);
    }

    #[test]
    fn missing_predictions() {
        // Samples of one task, of none, and an empty sample, which is not missing.
        for (given, missing, n, without) in [
            ([&["ab"][..], &[], &[]], MissingPredictions::Zero, 3, 2),
            ([&["ab"], &[], &[]], MissingPredictions::Skip, 1, 2),
            ([&[], &[], &[]], MissingPredictions::Skip, 0, 3),
            ([&["ab"], &[""], &["abc"]], MissingPredictions::Error, 3, 0),
        ] {
            let scores = score(&tasks(), &samples(given), missing).unwrap();
            assert_eq!((scores.all.n, scores.missing, scores.tasks.len()), (n, without, n));
            assert!(scores.all.means[0].values.iter().all(|mean| mean.is_finite()));
        }
        assert!(score(&tasks(), &samples([&[]; 3])[1..], MissingPredictions::Zero).is_err());
    }

    #[test]
    fn the_same_bits_at_every_number_of_threads() {
        let task = |row: usize| {
            let path = ["a/x.py", "b/x.py"][row % 2];
            Task { row, ..Task::new(format!("{row}"), path, 0, 1, &"ab".repeat(row), "") }
        };
        let set = TaskSet::new("t.jsonl".into(), (0..500).map(task).collect());
        let given: Vec<Vec<String>> = (0..500).map(|i| vec!["abc".repeat(i)]).collect();
        let scored = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| score(&set, &given, MissingPredictions::Error).unwrap())
        };
        assert_eq!(scored(1), scored(3));
    }
}
