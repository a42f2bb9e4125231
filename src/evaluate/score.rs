//! Scores: every task by every metric, then means by repository and over all.
//!
//! A mean is over tasks, so a repository counts as much as it has tasks; RepoCoder's `compute_score.py` prints the same
//! means by repository, rounded to four digits. Sums run in the order of the tasks, whatever the number of threads.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::evaluate::metrics::Metric;
use crate::evaluate::pairs::Pair;
use crate::evaluate::postprocess::{Hole, Postprocess, Recipe};
use crate::evaluate::statistics::{Groups, Interval, Resampling, Unit};
use crate::task::TaskSet;
use crate::text::language::Language;

/// What to do with tasks that have no prediction.
///
/// ```
/// use repoformer::evaluate::score::Missing;
/// assert_eq!("skip".parse::<Missing>()?, Missing::Skip);
/// assert_eq!(Missing::default().to_string(), "error");
/// # Ok::<(), repoformer::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// Score nothing at all.
    #[default]
    Error,
    /// They score 0 and count in the means.
    Zero,
    /// They are left out of the means.
    Skip,
}

impl Missing {
    const ALL: [Self; 3] = [Self::Error, Self::Zero, Self::Skip];

    fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Zero => "zero",
            Self::Skip => "skip",
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Missing {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|policy| policy.name() == name);
        found.ok_or_else(|| Error::Parameter {
            name: "missing",
            reason: format!("'{name}' is not one of error, zero, skip"),
        })
    }
}

/// A metric's values, or their means.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricScore {
    /// The metric.
    pub metric: Metric,
    /// In the order of [`Metric::values`], each between 0 and 1.
    pub values: Vec<f64>,
}

impl MetricScore {
    /// One of its values by name.
    pub fn get(&self, name: &str) -> Option<f64> {
        let place = self.metric.values().iter().position(|&value| value == name);
        place.and_then(|place| self.values.get(place)).copied()
    }
}

/// The scores of one task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskScore {
    /// 0-based place in the task file, or in the file of pairs.
    pub row: usize,
    /// The task's id, as its file gives it.
    pub task_id: String,
    /// Its repository; a pair has none.
    pub repository: Option<String>,
    /// One for each metric asked for, in that order.
    pub scores: Vec<MetricScore>,
    /// The samples as they were predicted.
    pub raw: Vec<String>,
    /// The samples as they were compared, in the order of [`Cuts::recipes`].
    pub cut: Vec<Vec<String>>,
}

impl TaskScore {
    /// `{"task_id": …, "row": …, "repository": …, "repocoder": {"em": …, "es": …}, …}`, every value between 0 and 1.
    ///
    /// Then the texts where they are kept: `pred_raw` as predicted, `pred` as the first metric compared it, and under
    /// `pred_by` what other metrics compared instead; a list where a task has several samples.
    pub fn to_record(&self, cuts: &Cuts) -> Value {
        let mut record = Map::new();
        record.insert("task_id".into(), self.task_id.clone().into());
        record.insert("row".into(), self.row.into());
        if let Some(repository) = &self.repository {
            record.insert("repository".into(), repository.as_str().into());
        }
        record.extend(metrics_json(&self.scores));
        if cuts.are_shown {
            let text = |samples: &[String]| match samples {
                [one] => Value::from(one.as_str()),
                several => several.into(),
            };
            let first = cuts.of_metric.first().map(|&recipe| &self.cut[recipe]);
            record.insert("pred_raw".into(), text(&self.raw));
            record.insert("pred".into(), text(first.unwrap_or(&self.raw)));
            let others = self.scores.iter().zip(&cuts.of_metric).skip(1);
            let others = others.filter(|&(_, &recipe)| Some(&self.cut[recipe]) != first);
            let others = others
                .map(|(score, &recipe)| (score.metric.name().to_owned(), text(&self.cut[recipe])));
            let others: Map<String, Value> = others.collect();
            if !others.is_empty() {
                record.insert("pred_by".into(), others.into());
            }
        }
        Value::Object(record)
    }

    /// One of the values.
    pub fn get(&self, metric: Metric, value: &str) -> Option<f64> {
        let score = self.scores.iter().find(|score| score.metric == metric)?;
        score.get(value)
    }
}

/// How the samples of each metric were cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cuts {
    /// The recipes, each once.
    pub recipes: Vec<Recipe>,
    /// For each metric the place of its recipe.
    pub of_metric: Vec<usize>,
    /// Whether the records of tasks show the texts.
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
        Self {
            recipes,
            of_metric,
            are_shown,
        }
    }

    /// The values of one target's samples, and the samples as each recipe leaves them.
    fn score(
        &self,
        metrics: &[Metric],
        hole: Hole<'_>,
        samples: &[String],
    ) -> (Vec<MetricScore>, Vec<Vec<String>>) {
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
            // A recipe can keep a part of the target, the same for every sample but where one could not be cut.
            let targets = cut[recipe].iter().map(|one| &*one.target);
            let same = targets
                .clone()
                .all(|target| Some(target) == targets.clone().next());
            let values = if same {
                let target = targets.clone().next().unwrap_or(hole.target);
                let samples: Vec<&str> = cut[recipe].iter().map(|one| &*one.prediction).collect();
                metric.score(target, &samples, hole.language)
            } else {
                let each = cut[recipe]
                    .iter()
                    .map(|one| metric.score(&one.target, &[&*one.prediction], hole.language));
                metric.of_samples(&each.collect::<Vec<_>>())
            };
            MetricScore { metric, values }
        };
        let scores = metrics.iter().zip(&self.of_metric).map(score).collect();
        let texts = |cut: Vec<crate::evaluate::postprocess::Processed<'_>>| {
            let texts = cut.into_iter().map(|one| one.prediction.into_owned());
            texts.collect()
        };
        let texts = match self.are_shown {
            true => cut.into_iter().map(texts).collect(),
            false => Vec::new(),
        };
        (scores, texts)
    }

    /// What was done before each metric: `{"repocoder": "stripped-lines", …}`.
    pub fn to_record(&self, metrics: &[Metric]) -> Value {
        let names = metrics
            .iter()
            .zip(&self.of_metric)
            .map(|(metric, &recipe)| {
                (
                    metric.name().to_owned(),
                    self.recipes[recipe].to_string().into(),
                )
            });
        Value::Object(names.collect())
    }
}

/// Means over some tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// How many tasks the means are over.
    pub n: usize,
    /// One for each metric; 0 where there is no task.
    pub means: Vec<MetricScore>,
}

impl Summary {
    /// Of the tasks, added up in their order.
    fn of<'a>(metrics: &[Metric], tasks: impl Iterator<Item = &'a TaskScore>) -> Self {
        let zero = |&metric: &Metric| MetricScore {
            metric,
            values: vec![0.0; metric.values().len()],
        };
        let (mut n, mut means) = (0, metrics.iter().map(zero).collect::<Vec<_>>());
        for task in tasks {
            n += 1;
            for (sum, score) in means.iter_mut().zip(&task.scores) {
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

    /// `{"n": …, "repocoder": {"em": …, "es": …}, …}`.
    pub fn to_record(&self) -> Value {
        let mut record = Map::new();
        record.insert("n".into(), self.n.into());
        record.extend(metrics_json(&self.means));
        Value::Object(record)
    }
}

fn metrics_json(scores: &[MetricScore]) -> impl Iterator<Item = (String, Value)> {
    scores.iter().map(|MetricScore { metric, values }| {
        let names = metric.values().iter().map(|&name| name.to_owned());
        let values = names.zip(values.iter().map(|&value| value.into()));
        (metric.name().to_owned(), Value::Object(values.collect()))
    })
}

/// The scores of a benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// The tasks that were scored, in the order of their file.
    pub tasks: Vec<TaskScore>,
    /// Means by repository, in the order of their names.
    pub repositories: Vec<(String, Summary)>,
    /// Means over all tasks.
    pub all: Summary,
    /// How many tasks had no prediction: 0 in the means with [`Missing::Zero`], left out with [`Missing::Skip`].
    pub missing: usize,
    /// How the samples were cut before each metric.
    pub cuts: Cuts,
}

impl Scores {
    /// All means as one object, every value between 0 and 1; `name` says what was scored.
    pub fn to_record(&self, name: &str, per_task: bool) -> Value {
        let of = |(name, summary): &(String, Summary)| (name.clone(), summary.to_record());
        let repositories: Map<String, Value> = self.repositories.iter().map(of).collect();
        let mut record = Map::new();
        record.insert("predictions".into(), name.into());
        record.insert("all".into(), self.all.to_record());
        record.insert("repositories".into(), repositories.into());
        record.insert("missing".into(), self.missing.into());
        record.insert("postprocess".into(), self.cuts.to_record(&self.metrics()));
        if per_task {
            let tasks = self.tasks.iter().map(|task| task.to_record(&self.cuts));
            record.insert("tasks".into(), tasks.collect());
        }
        Value::Object(record)
    }

    /// What was done to predictions before each metric, where something was.
    pub fn cuts_by_metric(&self) -> Vec<(Metric, &Recipe)> {
        let metrics = self.metrics().into_iter().zip(&self.cuts.of_metric);
        let cuts = metrics.map(|(metric, &recipe)| (metric, &self.cuts.recipes[recipe]));
        cuts.filter(|(_, recipe)| !recipe.is_empty()).collect()
    }

    /// The metrics, in the order that they were asked for.
    pub fn metrics(&self) -> Vec<Metric> {
        self.all.means.iter().map(|mean| mean.metric).collect()
    }

    fn of(metrics: &[Metric], tasks: Vec<TaskScore>, missing: usize, cuts: Cuts) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&TaskScore>> = BTreeMap::new();
        for task in &tasks {
            if let Some(name) = &task.repository {
                by_name.entry(name).or_default().push(task);
            }
        }
        let summary = |(name, tasks): (&str, Vec<&TaskScore>)| {
            (name.to_owned(), Summary::of(metrics, tasks.iter().copied()))
        };
        Self {
            repositories: by_name.into_iter().map(summary).collect(),
            all: Summary::of(metrics, tasks.iter()),
            tasks,
            missing,
            cuts,
        }
    }
}

impl Scores {
    /// The interval of each mean over all tasks, whole repositories drawn where there are two or more.
    pub fn intervals(&self, resampling: &Resampling) -> Intervals {
        let repositories = self.tasks.iter().map(|task| task.repository.as_deref());
        let groups = Groups::of(repositories);
        let count = self.all.means.iter().map(|mean| mean.values.len()).sum();
        let mut columns = vec![Vec::with_capacity(self.tasks.len()); count];
        // Task by task: each one's values lie elsewhere.
        for task in &self.tasks {
            let values = task.scores.iter().flat_map(|score| &score.values);
            for (column, value) in columns.iter_mut().zip(values) {
                column.push(*value);
            }
        }
        let columns = columns
            .iter()
            .map(|column| column.iter().copied().map(Some));
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
    /// One for each value of each metric, in the order of [`Scores::all`]; `None` where there is nothing to draw from.
    pub of_values: Vec<Option<Interval>>,
    /// What was drawn anew.
    pub unit: Unit,
    /// How many of them there are.
    pub units: usize,
}

impl Intervals {
    /// `{"unit", "units", "level", "resamples", "seed", "repocoder": {"em": [low, high], …}, …}`.
    pub fn to_record(&self, metrics: &[Metric], resampling: &Resampling) -> Value {
        let mut record = json!({
            "unit": self.unit.name(),
            "units": self.units,
            "level": resampling.level,
            "resamples": resampling.resamples,
            "seed": resampling.seed,
        });
        let mut intervals = self.of_values.iter();
        for metric in metrics {
            let of = metric.values().iter().zip(&mut intervals);
            let of = of.map(|(&name, interval)| {
                (
                    name.to_owned(),
                    interval.map_or(Value::Null, |i| json!([i.low, i.high])),
                )
            });
            record[metric.name()] = Value::Object(of.collect());
        }
        record
    }
}

/// Scores the samples of each task (`samples[i]` for the i-th task; none: a missing prediction).
///
/// ```
/// use repoformer::evaluate::metrics::Metric;
/// use repoformer::evaluate::postprocess::Postprocess;
/// use repoformer::evaluate::score::{Missing, score_tasks};
/// use repoformer::task::{Task, TaskSet};
/// let task = |path| Task::new("id".into(), path, 0, 3, "return x", "");
/// let tasks = TaskSet { path: "t.jsonl".into(), tasks: vec![task("a/x.py"), task("b/x.py")] };
/// let samples = [vec!["return x".to_owned()], vec![]];
/// let scores = score_tasks(&tasks, &samples, &[Metric::RepoCoder], &Postprocess::NONE, Missing::Zero)?;
/// assert_eq!(scores.all.means[0].values, [0.5, 0.5]);
/// assert_eq!(scores.repositories[0].1.means[0].values, [1.0, 1.0]);
/// assert_eq!(scores.missing, 1);
/// # Ok::<(), repoformer::error::Error>(())
/// ```
///
/// # Errors
/// A task has no sample and `missing` is [`Missing::Error`], or there are not as many lists as tasks.
pub fn score_tasks(
    tasks: &TaskSet,
    samples: &[Vec<String>],
    metrics: &[Metric],
    postprocess: &Postprocess,
    missing: Missing,
) -> Result<Scores> {
    if samples.len() != tasks.tasks.len() {
        return Err(Error::Parameter {
            name: "predictions",
            reason: format!(
                "{} lists of samples for {} tasks",
                samples.len(),
                tasks.tasks.len()
            ),
        });
    }
    let pairs: Vec<_> = tasks.tasks.iter().zip(samples).collect();
    let mut without = pairs.iter().filter(|(_, samples)| samples.is_empty());
    let first = without.next();
    let count = usize::from(first.is_some()) + without.count();
    if let (Missing::Error, Some((task, _))) = (missing, first) {
        let total = tasks.tasks.len();
        return Err(tasks.error(
            task,
            format!(
                "it has no prediction ({count} of {total} tasks have none); --missing zero counts them as wrong, --missing skip leaves them out"
            ),
        ));
    }
    let cuts = Cuts::new(metrics, postprocess, true);
    let scored = pairs
        .par_iter()
        .filter(|(_, samples)| missing != Missing::Skip || !samples.is_empty())
        .map(|(task, samples)| {
            let (scores, cut) = cuts.score(metrics, Hole::of(task), samples);
            TaskScore {
                row: task.row,
                task_id: task.id.clone(),
                repository: Some(task.repository.clone()),
                scores,
                raw: (*samples).clone(),
                cut,
            }
        })
        .collect();
    Ok(Scores::of(metrics, scored, count, cuts))
}

/// Scores pairs of target and prediction that belong to no task file; `language` is that of pairs which name none.
pub fn score_pairs(
    pairs: &[Pair],
    metrics: &[Metric],
    postprocess: &Postprocess,
    language: Language,
) -> Scores {
    let mut cuts = Cuts::new(metrics, postprocess, false);
    cuts.are_shown = cuts.recipes.iter().any(|recipe| !recipe.is_empty());
    let scored = pairs
        .par_iter()
        .map(|pair| {
            let hole = Hole {
                left_context: pair.prompt.as_deref().unwrap_or_default(),
                target: &pair.target,
                language: pair.language.unwrap_or(language),
            };
            let (scores, cut) = cuts.score(metrics, hole, &pair.samples);
            TaskScore {
                row: pair.row,
                task_id: pair.task_id.clone(),
                repository: None,
                scores,
                raw: match cuts.are_shown {
                    true => pair.samples.clone(),
                    false => Vec::new(),
                },
                cut,
            }
        })
        .collect();
    Scores::of(metrics, scored, 0, cuts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Task;

    fn tasks() -> TaskSet {
        let task = |row, path: &str, target: &str| Task {
            row,
            line: row + 1,
            ..Task::new(format!("id{row}"), path, 0, 1, target, "")
        };
        TaskSet {
            path: "t.jsonl".into(),
            tasks: vec![
                task(0, "b/x.py", "ab"),
                task(1, "a/x.py", "abcd"),
                task(2, "b/y.py", "abc"),
            ],
        }
    }

    fn samples(texts: [&[&str]; 3]) -> Vec<Vec<String>> {
        let owned = |samples: &[&str]| samples.iter().map(|&s| s.to_owned()).collect();
        texts.into_iter().map(owned).collect()
    }

    #[test]
    fn means_are_over_tasks() {
        let given = samples([&["ab"], &["xbcd"], &["zz", "abz", ""]]);
        let scores = score_tasks(
            &tasks(),
            &given,
            &[Metric::RepoCoder],
            &Postprocess::NONE,
            Missing::Error,
        )
        .unwrap();
        let third = 1.0 - 1.0 / 3.0;
        let rows: Vec<_> = scores
            .tasks
            .iter()
            .map(|t| t.scores[0].values.clone())
            .collect();
        assert_eq!(rows, [[1.0, 1.0], [0.0, 0.75], [0.0, third]]);
        let names: Vec<_> = scores
            .repositories
            .iter()
            .map(|(name, s)| (&**name, s.n))
            .collect();
        assert_eq!(names, [("a", 1), ("b", 2)]);
        let b = &scores.repositories[1].1.means[0];
        assert_eq!(
            (b.get("em"), b.get("es")),
            (Some(0.5), Some((1.0 + third) / 2.0))
        );
        assert_eq!(b.get("id_em"), None);
        assert_eq!(scores.all.n, 3);
        assert_eq!(
            scores.all.means[0].get("es"),
            Some((1.0 + 0.75 + third) / 3.0)
        );
        assert_eq!(
            scores.tasks[1].to_record(&scores.cuts).to_string(),
            r#"{"task_id":"id1","row":1,"repository":"a","repocoder":{"em":0.0,"es":0.75},"pred_raw":"xbcd","pred":"xbcd"}"#
        );
        assert_eq!(
            scores.repositories[0].1.to_record().to_string(),
            r#"{"n":1,"repocoder":{"em":0.0,"es":0.75}}"#
        );
    }

    #[test]
    fn missing_predictions() {
        let given = samples([&["ab"], &[], &[]]);
        let score = |missing| {
            score_tasks(
                &tasks(),
                &given,
                &[Metric::RepoCoder],
                &Postprocess::NONE,
                missing,
            )
        };
        assert_eq!(
            score(Missing::Error).unwrap_err().to_string(),
            "t.jsonl:2: task id1: it has no prediction (2 of 3 tasks have none); --missing zero counts them as wrong, --missing skip leaves them out"
        );
        let zero = score(Missing::Zero).unwrap();
        assert_eq!((zero.all.n, zero.missing, zero.tasks.len()), (3, 2, 3));
        assert_eq!(zero.all.means[0].values, [1.0 / 3.0; 2]);
        let skip = score(Missing::Skip).unwrap();
        assert_eq!((skip.all.n, skip.missing, skip.tasks.len()), (1, 2, 1));
        assert_eq!(skip.all.means[0].values, [1.0; 2]);
        // An empty prediction is no missing one.
        let given = samples([&["ab"], &[""], &["abc"]]);
        let all = score_tasks(
            &tasks(),
            &given,
            &[Metric::RepoCoder],
            &Postprocess::NONE,
            Missing::Error,
        )
        .unwrap();
        assert_eq!((all.all.n, all.missing), (3, 0));
        assert!(
            score_tasks(
                &tasks(),
                &given[1..],
                &[],
                &Postprocess::NONE,
                Missing::Zero
            )
            .is_err()
        );
    }

    #[test]
    fn each_metric_compares_its_own_cut() {
        let set = TaskSet {
            path: "t.jsonl".into(),
            tasks: vec![Task::new("id".into(), "a/x.py", 0, 1, "  ab", "x = 1\n")],
        };
        let own = Postprocess::Own {
            function_bodies: false,
        };
        let metrics = [
            Metric::RepoCoder,
            Metric::Repoformer,
            Metric::CrossCodeEval,
            Metric::Chars,
        ];
        let given = [vec!["ab\ncd\n".to_owned()]];
        let scores = score_tasks(&set, &given, &metrics, &own, Missing::Error).unwrap();
        let em = |metric| scores.tasks[0].get(metric, "em");
        assert_eq!(
            metrics.map(em),
            [Some(1.0), Some(1.0), Some(1.0), Some(0.0)]
        );
        let record = scores.tasks[0].to_record(&scores.cuts);
        assert_eq!(
            (&record["pred_raw"], &record["pred"]),
            (&"ab\ncd\n".into(), &"ab".into())
        );
        assert_eq!(record["pred_by"], serde_json::json!({"chars": "ab\ncd\n"}));
        let all = scores.to_record("x", false);
        assert_eq!(all["postprocess"]["crosscodeeval"], "statement");
    }

    #[test]
    fn no_task_left_is_no_division_by_zero() {
        let none = score_tasks(
            &tasks(),
            &samples([&[]; 3]),
            &[Metric::RepoCoder],
            &Postprocess::NONE,
            Missing::Skip,
        );
        let none = none.unwrap();
        assert_eq!((none.all.n, none.missing), (0, 3));
        assert_eq!(none.all.means[0].values, [0.0; 2]);
        assert_eq!(none.repositories, []);
    }

    #[test]
    fn policies_parse_and_print_alike() {
        for policy in Missing::ALL {
            assert_eq!(policy.to_string().parse::<Missing>().unwrap(), policy);
        }
        assert!("drop".parse::<Missing>().is_err());
    }

    #[test]
    fn the_same_bits_at_every_number_of_threads() {
        let set = TaskSet {
            path: "t.jsonl".into(),
            tasks: (0..500)
                .map(|row| Task {
                    row,
                    ..Task::new(
                        format!("{row}"),
                        ["a/x.py", "b/x.py"][row % 2],
                        0,
                        1,
                        &"ab".repeat(row),
                        "",
                    )
                })
                .collect(),
        };
        let given: Vec<Vec<String>> = (0..500).map(|i| vec!["abc".repeat(i)]).collect();
        let score = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| {
                score_tasks(
                    &set,
                    &given,
                    &[Metric::RepoCoder],
                    &Postprocess::NONE,
                    Missing::Error,
                )
                .unwrap()
            })
        };
        assert_eq!(score(1), score(3));
    }
}
