//! Pass rates of a repository and overall, over one denominator.
//!
//! The denominator is the number of tasks with a sound oracle. A task with a sound oracle but no prediction counts with pass rate 0 (or is
//! excluded on request), and the number of such tasks is reported.

use std::collections::BTreeMap;

use repoformer_evaluate::score::MissingPredictions;
use repoformer_evaluate::statistics::{Groups, Interval, IntervalKind, Resampling, ResamplingUnit};
use serde_json::{Map, Value, json};

use super::pass_at_k::pass_at_k;
use super::run::{Execution, TaskResult};
use super::verdict::Status;

/// Pass rates over some tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Number of tasks.
    pub tasks: usize,
    /// Number of tasks that are excluded because their oracle is not sound.
    pub excluded: usize,
    /// Number of tasks in the denominator of the rates.
    pub n: usize,
    /// Number of tasks in the denominator without a prediction.
    pub missing: usize,
    /// Smallest and largest number of samples of a task that has samples.
    pub samples: (usize, usize),
    /// Mean pass@k for each k; `None` if a task has fewer samples, or there is no task.
    pub rates: Vec<(usize, Option<f64>)>,
    /// Number of samples with each status, in the order of [`Status::ALL`].
    pub counts: [usize; 7],
}

/// Pass rates by repository, in the order of their names, and overall.
#[derive(Debug, Clone, PartialEq)]
pub struct Summaries {
    /// By repository.
    pub repositories: Vec<(String, Summary)>,
    /// Overall.
    pub all: Summary,
    /// Interval of each overall rate, if it has one.
    pub intervals: Vec<Option<Interval>>,
    /// Unit that is resampled, and the number of units.
    pub drawn: (ResamplingUnit, usize),
}

impl Summaries {
    /// Summarizes an execution, for each k of pass@k; whole repositories are resampled if there are two or more.
    pub fn new(
        execution: &Execution,
        ks: &[usize],
        missing: MissingPredictions,
        resampling: &Resampling,
    ) -> Self {
        let mut by_name: BTreeMap<&str, Vec<&TaskResult>> = BTreeMap::new();
        for task in &execution.tasks {
            by_name.entry(&task.repository).or_default().push(task);
        }
        let of = |(name, tasks): (&str, Vec<&TaskResult>)| {
            (name.to_owned(), Summary::new(tasks.into_iter(), ks, missing))
        };
        let counted: Vec<&TaskResult> = denominator(execution.tasks.iter(), missing).collect();
        let groups = Groups::new(counted.iter().map(|task| Some(&*task.repository)));
        let all = Summary::new(execution.tasks.iter(), ks, missing);
        let interval = |(k, mean): &(usize, Option<f64>)| {
            mean.as_ref()?; // a task has too few samples
            let rates: Option<Vec<f64>> = counted.iter().map(|task| task.rate(*k)).collect();
            resampling.interval(&groups, &rates?)
        };
        Self {
            intervals: all.rates.iter().map(interval).collect(),
            drawn: (groups.unit(), groups.len()),
            all,
            repositories: by_name.into_iter().map(of).collect(),
        }
    }

    /// Returns the kind of the intervals, if there are any.
    pub fn interval_kind(&self) -> Option<IntervalKind> {
        let (unit, units) = self.drawn;
        self.intervals.iter().any(Option::is_some).then(|| unit.interval_kind(units))
    }

    /// Returns the record of the intervals, `{"kind", "unit", "units", "level", "resamples", "seed", "exec": {"pass_1": [low, high], …}}`.
    pub fn intervals_to_record(&self, resampling: &Resampling) -> Value {
        let named = self.all.rates.iter().zip(&self.intervals);
        let named = named.map(|((k, _), interval)| {
            let ends = interval.map_or(Value::Null, |i| json!([i.low, i.high]));
            (format!("pass_{k}"), ends)
        });
        let ((unit, units), kind) = (self.drawn, self.interval_kind());
        json!({
            "kind": kind.map(IntervalKind::name), "unit": unit.name(), "units": units,
            "level": kind.and_then(|kind| kind.level(resampling.level)),
            "resamples": resampling.resamples, "seed": resampling.seed, "exec": named.collect::<Map<String, Value>>(),
        })
    }
}

/// Iterates over the tasks in the denominator.
fn denominator<'t>(
    tasks: impl Iterator<Item = &'t TaskResult>,
    missing: MissingPredictions,
) -> impl Iterator<Item = &'t TaskResult> {
    tasks.filter(move |task| {
        task.excluded.is_none() && (missing != MissingPredictions::Skip || !task.samples.is_empty())
    })
}

impl Summary {
    fn new<'t>(
        tasks: impl Iterator<Item = &'t TaskResult>,
        ks: &[usize],
        missing: MissingPredictions,
    ) -> Self {
        let all: Vec<&TaskResult> = tasks.collect();
        let sound: Vec<&&TaskResult> = all.iter().filter(|task| task.excluded.is_none()).collect();
        let without = sound.iter().filter(|task| task.samples.is_empty()).count();
        let counted: Vec<&TaskResult> = denominator(all.iter().copied(), missing).collect();
        let numbers = || counted.iter().map(|task| task.samples.len()).filter(|n| *n > 0);
        let rate = |&k: &usize| {
            let sum: Option<f64> = counted.iter().map(|task| task.rate(k)).sum();
            (k, sum.filter(|_| !counted.is_empty()).map(|sum| sum / counted.len() as f64))
        };
        let mut counts = [0; 7];
        for status in counted.iter().flat_map(|task| &task.samples) {
            counts[*status as usize] += 1;
        }
        Self {
            tasks: all.len(),
            excluded: all.len() - sound.len(),
            n: counted.len(),
            missing: without,
            samples: (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0)),
            rates: ks.iter().map(rate).collect(),
            counts,
        }
    }

    /// Returns `{"n": …, "tasks": …, "excluded": …, "missing": …, "samples": [least, most], "exec": {"pass_1": …},
    /// "statuses": {…}}`; rates are between 0 and 1, or null.
    pub fn to_record(&self) -> Value {
        let rates: Map<String, Value> =
            self.rates.iter().map(|(k, rate)| (format!("pass_{k}"), json!(rate))).collect();
        let statuses: Map<String, Value> = Status::ALL
            .iter()
            .zip(self.counts)
            .map(|(status, count)| (status.name().to_owned(), count.into()))
            .collect();
        json!({
            "n": self.n, "tasks": self.tasks, "excluded": self.excluded, "missing": self.missing,
            "samples": [self.samples.0, self.samples.1], "exec": rates, "statuses": statuses,
        })
    }
}

impl TaskResult {
    /// Returns pass@k of this task; `None` if the task is excluded or has fewer samples.
    pub fn pass_at(&self, k: usize) -> Option<f64> {
        let passed = self.samples.iter().filter(|status| **status == Status::Pass);
        pass_at_k(self.samples.len(), passed.count(), k)
    }

    /// Returns pass@k of this task, or 0 if the task has no prediction.
    fn rate(&self, k: usize) -> Option<f64> {
        if self.samples.is_empty() && self.excluded.is_none() {
            return Some(0.0);
        }
        self.pass_at(k)
    }

    /// Returns `{"task_id": …, "row": …, "repository": …, "exec": {"pass_1": …}, "statuses": […]}`, with `"reasons": […]` if
    /// there are any; for an excluded task, `"excluded"` with the reason instead of `"exec"`.
    pub fn to_record(&self, ks: &[usize]) -> Value {
        let mut record =
            json!({"task_id": self.task_id, "row": self.row, "repository": self.repository});
        if let Some(exclusion) = &self.excluded {
            record["excluded"] = json!({"status": exclusion.status, "reason": exclusion.reason});
            return record;
        }
        let mut rates = Map::new();
        for &k in ks {
            rates.extend(self.rate(k).map(|rate| (format!("pass_{k}"), rate.into())));
        }
        record["exec"] = rates.into();
        record["statuses"] = json!(self.samples);
        if self.reasons.iter().any(|reason| !reason.is_empty()) {
            record["reasons"] = json!(self.reasons);
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::Exclusion;
    use super::*;

    fn task(repository: &str, samples: &[Status]) -> TaskResult {
        TaskResult {
            row: 0,
            line: 1,
            task_id: "t".into(),
            repository: repository.into(),
            excluded: None,
            samples: samples.to_vec(),
            reasons: vec![String::new(); samples.len()],
            is_reported: false,
        }
    }

    #[test]
    fn one_denominator_by_hand() {
        use Status::{Fail, Pass, Timeout};
        let excluded = TaskResult {
            excluded: Some(Exclusion { status: None, reason: "x".into() }),
            ..task("a", &[])
        };
        let execution = Execution {
            tasks: vec![
                task("b", &[Pass, Fail]),
                excluded,
                task("a", &[Pass, Timeout, Fail, Pass]),
                task("a", &[]),
            ],
            broken: vec![],
            runs: 0,
            reused: 0,
            lost: Vec::new(),
        };
        let resampling = Resampling::default();
        let zero = Summaries::new(&execution, &[1, 2, 3], MissingPredictions::Zero, &resampling);
        // Possible draws of two repositories: pass@1 is 1/2 (b twice), (1/2 + 0 + 1/2) / 3 (a and b) or (0 + 1/2) / 2 (a twice).
        assert_eq!(zero.drawn, (ResamplingUnit::Repositories, 2));
        let ends = zero.intervals[0].map(|interval| (interval.low, interval.high));
        assert_eq!((ends, zero.intervals[2]), (Some((0.25, 0.5)), None));
        let record = zero.intervals_to_record(&resampling);
        assert_eq!(
            record["exec"],
            json!({"pass_1": [0.25, 0.5], "pass_2": record["exec"]["pass_2"], "pass_3": null})
        );
        let (all, close) = (&zero.all, |a: Option<f64>, b: f64| (a.unwrap() - b).abs() < 1e-12);
        assert_eq!((all.tasks, all.excluded, all.n, all.missing), (4, 1, 3, 1));
        assert_eq!(all.samples, (2, 4));
        // Calculated by hand: pass@1 = (1/2 + 2/4 + 0) / 3; pass@2 = (1 + (1 − 1/6) + 0) / 3; one task has fewer than three samples.
        assert!(close(all.rates[0].1, 1.0 / 3.0) && close(all.rates[1].1, (1.0 + 5.0 / 6.0) / 3.0));
        assert_eq!(all.rates[2], (3, None));
        assert_eq!(all.counts, [3, 2, 0, 1, 0, 0, 0]);
        assert_eq!(zero.repositories[0].0, "a");
        assert!(close(zero.repositories[0].1.rates[0].1, 0.25));
        let record = execution.tasks[2].to_record(&[1, 5]);
        assert_eq!(record["exec"], json!({"pass_1": 0.5}));
        assert_eq!(record["statuses"], json!(["pass", "timeout", "fail", "pass"]));
        assert_eq!(execution.tasks[1].to_record(&[1])["excluded"]["reason"], "x");
    }
}
