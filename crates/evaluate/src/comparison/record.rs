//! A comparison as JSON, every value between −1 and 1.

use repoformer_store::jsonl::Object;
use serde_json::{Value, json};

use super::{Comparison, MeasureComparison, PairedTask, Side};
use crate::statistics::{Bucket, Buckets, Estimate, PermutationTest, ResamplingUnit};

impl Comparison {
    /// Returns the comparison as one object; with `per_task`, also the values of each task.
    pub fn to_record(&self, per_task: bool) -> Value {
        let differences = |differences: &[MeasureComparison]| -> Value {
            differences.iter().map(MeasureComparison::to_record).collect()
        };
        let kind = self.interval_kind();
        let mut record = json!({
            "a": self.a.to_record(),
            "b": self.b.to_record(),
            "n": self.tasks.len(),
            "bootstrap": {
                "kind": kind.name(),
                "unit": self.unit.name(),
                "units": self.units,
                "resamples": self.resampling.resamples,
                "level": kind.level(self.resampling.level),
                "seed": self.resampling.seed,
            },
            "sign_flips": {"flips": self.flips.flips, "seed": self.flips.seed},
            "measures": differences(&self.all),
        });
        if !self.repositories.is_empty() {
            let named = |(name, here): &(String, Vec<_>)| (name.clone(), differences(here));
            record["repositories"] = self.repositories.iter().map(named).collect::<Object>().into();
        }
        self.add_mixed(&mut record);
        let left_out = self.left_out.iter();
        let left_out = left_out.map(|(measure, reason)| (measure.clone(), reason.as_str().into()));
        record["left_out"] = left_out.collect::<Object>().into();
        if per_task {
            record["tasks"] = self.task_records().into();
        }
        record
    }

    fn add_mixed(&self, record: &mut Value) {
        if !self.mixed.is_empty() {
            record["mixed"] = self.mixed.clone().into();
        }
    }

    /// Returns a record for each measure, within each repository first if requested: the lines of JSONL.
    pub fn measure_records(&self) -> Vec<Value> {
        let within = self.repositories.iter();
        let within = within.flat_map(|(name, here)| here.iter().map(move |d| (Some(name), d)));
        let all = within.chain(self.all.iter().map(|difference| (None, difference)));
        let record = |(repository, difference): (Option<&String>, &MeasureComparison)| {
            // Within a repository, tasks are resampled.
            let kind = if repository.is_some() {
                ResamplingUnit::Tasks.interval_kind(difference.n)
            } else {
                self.interval_kind()
            };
            let mut record = json!({
                "names": {"a": self.a.name, "b": self.b.name},
                "repository": repository,
                "interval": difference.difference.interval.map(|_| kind.name()),
            });
            if let (Some(record), Value::Object(values)) =
                (record.as_object_mut(), difference.to_record())
            {
                record.extend(values);
            }
            for (name, side) in [("a", &self.a), ("b", &self.b)] {
                if side.samples > 1 {
                    record[name]["samples"] = side.samples.into();
                }
            }
            self.add_mixed(&mut record);
            record
        };
        all.map(record).collect()
    }

    /// Returns a record for each task of both: `{"task_id", "row", "repository", "repocoder.es": {"a", "b", "difference"}, …}`.
    pub fn task_records(&self) -> Vec<Value> {
        let record = |task: &PairedTask| {
            let mut record =
                json!({"task_id": task.task_id, "row": task.row, "repository": task.repository});
            for (MeasureComparison { measure, .. }, values) in self.all.iter().zip(&task.values) {
                let values = values.map(|(a, b)| json!({"a": a, "b": b, "difference": b - a}));
                record[measure] = values.unwrap_or_default();
            }
            record
        };
        self.tasks.iter().map(record).collect()
    }
}

impl Side {
    fn to_record(&self) -> Value {
        let mut record = json!({"name": self.name, "tasks": self.tasks, "alone": self.alone});
        if self.samples > 1 {
            record["samples"] = self.samples.into();
        }
        record
    }
}

fn estimate(Estimate { mean, interval }: Estimate) -> Value {
    json!({"mean": mean, "low": interval.map(|i| i.low), "high": interval.map(|i| i.high)})
}

impl MeasureComparison {
    /// Returns `{"measure", "n", "a": {"mean", "low", "high"}, "b", "difference", "p": {"tasks": {"p", "exact", "units"},
    /// "repositories"}, "better", "same", "worse", "buckets": {"-90": …, "0": …, "90": …}}`.
    fn to_record(&self) -> Value {
        let test = |PermutationTest { p, exact, units }: PermutationTest| json!({"p": p, "exact": exact, "units": units});
        let buckets = |buckets: Buckets| -> Object {
            let named =
                |(bucket, count): (Bucket, usize)| (bucket.label().to_string(), count.into());
            buckets.iter().map(named).collect()
        };
        json!({
            "measure": self.measure,
            "n": self.n,
            "a": estimate(self.a),
            "b": estimate(self.b),
            "difference": estimate(self.difference),
            "p": {"tasks": test(self.by_task), "repositories": self.by_repository.map(test)},
            "better": self.changes.better,
            "same": self.changes.same,
            "worse": self.changes.worse,
            "buckets": self.buckets.map(buckets),
        })
    }
}
