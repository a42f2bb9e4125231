//! What a request costs under a policy: the paper's latency model.
//!
//! The decision (T_d), the completion without retrieval (T_g), and retrieval followed by the completion with it (T_r + T_g)
//! begin together. A request that abstains costs the longer of T_d and T_g, one that retrieves the longer of T_d and T_r + T_g.
//! The paper has one T_g; a prompt that shows what was retrieved is longer, so where both were measured each counts as itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Error, Result};
use crate::selective::policy::rule::{Policy, Waits};
use crate::store::jsonl;

/// Milliseconds of one request.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Times {
    /// T_r: retrieval.
    pub retrieval: f64,
    /// T_g without what was retrieved.
    pub base: f64,
    /// T_g with it.
    pub generation: f64,
    /// T_d where the generator itself decides: its one token.
    pub decision: f64,
}

impl Times {
    /// Of a generation that takes as long with what was retrieved as without.
    pub fn new(retrieval: f64, generation: f64) -> Self {
        Self {
            retrieval,
            base: generation,
            generation,
            decision: 0.0,
        }
    }

    /// What a request costs.
    ///
    /// ```
    /// use repoformer::selective::policy::{Policy, sweep::Times};
    /// let times = Times::new(300.0, 500.0);
    /// assert_eq!(times.cost(Policy::Learned, false), 500.0);
    /// assert_eq!(times.cost(Policy::Learned, true), 800.0);
    /// let slow = Times { retrieval: 900.0, ..times };
    /// assert_eq!(slow.cost(Policy::TrialRetrieval, false), 900.0, "it waits for the score");
    /// ```
    pub fn cost(&self, policy: Policy, retrieves: bool) -> f64 {
        let decision = match policy.waits_for() {
            Waits::Nothing => 0.0,
            Waits::Decision => self.decision,
            Waits::Retrieval => self.retrieval,
            Waits::Generation => self.base,
        };
        let answer = match retrieves {
            true => self.retrieval + self.generation,
            false => self.base,
        };
        decision.max(answer)
    }
}

/// Times by task.
#[derive(Debug, Clone, PartialEq)]
pub enum Clock {
    /// The same for every request.
    Given(Times),
    /// As they were measured.
    Measured {
        /// By task id.
        times: BTreeMap<String, Times>,
        /// The tasks whose completions without retrieval were measured, where these are known apart.
        base: Option<BTreeSet<String>>,
        /// What is not measured of a task: the mean over the others.
        mean: Times,
    },
}

impl Clock {
    /// Reads measured times: JSON lines with `task_id`, `retrieval_ms`, `generation_ms`, as `run` and `complete` keep them; of
    /// completions with what was retrieved, and of those without (`base`) where they are known. What is given stands for what
    /// nobody measured.
    ///
    /// # Errors
    /// A file cannot be read, or has no time of one of the two.
    pub fn read(path: &Path, base: Option<&Path>, generation: Option<f64>) -> Result<Self> {
        let found = Measured::read(path, generation)?;
        let base = base
            .map(|path| Measured::read(path, generation))
            .transpose()?;
        let with = found.mean(|time| time.generation, "generation")?;
        let mean = Times {
            retrieval: found.mean(|time| time.retrieval, "retrieval")?,
            base: match &base {
                Some(base) => base.mean(|time| time.generation, "base generation")?,
                None => with,
            },
            generation: with,
            decision: 0.0,
        };
        let of_task = |(id, time): (&String, &Took)| {
            let with = time.generation.unwrap_or(mean.generation);
            let times = Times {
                retrieval: time.retrieval.unwrap_or(mean.retrieval),
                base: match &base {
                    Some(base) => base.generation_of(id).unwrap_or(mean.base),
                    None => with,
                },
                generation: with,
                decision: 0.0,
            };
            (id.clone(), times)
        };
        Ok(Self::Measured {
            times: found.times.iter().map(of_task).collect(),
            mean,
            base: base.map(|base| base.times.into_keys().collect()),
        })
    }

    /// Whether a task's times are known, not the mean of the others'.
    pub fn knows(&self, id: &str) -> bool {
        match self {
            Self::Given(_) => true,
            Self::Measured { times, .. } => times.contains_key(id),
        }
    }

    /// Whether completions without retrieval were measured apart.
    pub fn has_base(&self) -> bool {
        matches!(self, Self::Measured { base: Some(_), .. })
    }

    /// Whether that of a task was.
    pub fn knows_base(&self, id: &str) -> bool {
        match self {
            Self::Measured {
                base: Some(base), ..
            } => base.contains(id),
            _ => false,
        }
    }

    /// With the time that the generator takes to decide by itself.
    pub fn deciding(mut self, decision: f64) -> Self {
        match &mut self {
            Self::Given(times) => times.decision = decision,
            Self::Measured { times, mean, .. } => {
                mean.decision = decision;
                times
                    .values_mut()
                    .for_each(|times| times.decision = decision);
            }
        }
        self
    }

    /// Those of a task.
    pub fn of(&self, id: &str) -> Times {
        match self {
            Self::Given(times) => *times,
            Self::Measured { times, mean, .. } => times.get(id).copied().unwrap_or(*mean),
        }
    }
}

/// What was measured of one task.
struct Took {
    retrieval: Option<f64>,
    generation: Option<f64>,
}

/// A file of measured times.
struct Measured {
    path: PathBuf,
    times: BTreeMap<String, Took>,
}

impl Measured {
    fn read(path: &Path, generation: Option<f64>) -> Result<Self> {
        let mut times = BTreeMap::new();
        let problems = jsonl::for_each(path, |at, object| {
            let number = |name: &str| match object.get(name) {
                None | Some(Value::Null) => Ok(None),
                Some(value) => match value.as_f64() {
                    Some(time) if time >= 0.0 => Ok(Some(time)),
                    Some(time) => {
                        let reason = format!("field '{name}' cannot be {time}");
                        Err(Error::record(path, at.line, reason))
                    }
                    None => {
                        let kind = jsonl::kind(value);
                        let reason = format!("field '{name}' must be a number, not {kind}");
                        Err(Error::record(path, at.line, reason))
                    }
                },
            };
            let id = jsonl::Fields::new(path, at.line, "", &object).string("task_id")?;
            let took = Took {
                retrieval: number("retrieval_ms")?,
                generation: number("generation_ms")?.or(generation),
            };
            times.insert(id.to_owned(), took);
            Ok(())
        })?;
        match problems.into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(Self {
                path: path.to_owned(),
                times,
            }),
        }
    }

    fn generation_of(&self, id: &str) -> Option<f64> {
        self.times.get(id)?.generation
    }

    /// The mean of a time over the tasks that have it.
    fn mean(&self, time: impl Fn(&Took) -> Option<f64>, name: &str) -> Result<f64> {
        let times: Vec<f64> = self.times.values().filter_map(time).collect();
        match times.len() {
            0 => Err(Error::Artifact {
                path: self.path.clone(),
                reason: match name {
                    "retrieval" => "has no retrieval_ms".into(),
                    _ => "has no generation_ms".into(),
                },
                hint: match name {
                    "base generation" => "take the latencies of mode none".into(),
                    name => {
                        format!("take the latencies of a mode that retrieves, or give --{name}-ms")
                    }
                },
            }),
            count => Ok(times.iter().sum::<f64>() / count as f64),
        }
    }
}
