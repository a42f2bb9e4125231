//! What a request costs under a policy: the paper's latency model.
//!
//! The decision (T_d), the completion without retrieval (T_g), and retrieval followed by the completion with it (T_r + T_g)
//! begin together. A request that abstains costs the longer of T_d and T_g, one that retrieves the longer of T_d and T_r + T_g.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::jsonl;
use crate::policy::rule::{Policy, Waits};

/// Milliseconds of one request.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Times {
    /// T_r: retrieval.
    pub retrieval: f64,
    /// T_g: generation.
    pub generation: f64,
    /// T_d where the generator itself decides: its one token.
    pub decision: f64,
}

impl Times {
    /// What a request costs.
    ///
    /// ```
    /// use repoformer::policy::{Policy, sweep::Times};
    /// let times = Times { retrieval: 300.0, generation: 500.0, decision: 40.0 };
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
            Waits::Generation => self.generation,
        };
        let answer = match retrieves {
            true => self.retrieval + self.generation,
            false => self.generation,
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
        /// What is not measured of a task: the mean over the others.
        mean: Times,
    },
}

impl Clock {
    /// Reads measured times: JSON lines with `task_id`, `retrieval_ms`, `generation_ms`, as `run` and `complete` keep them.
    /// What is given stands for what nobody measured.
    ///
    /// # Errors
    /// The file cannot be read, or has no time of one of the two.
    pub fn read(path: &Path, retrieval: Option<f64>, generation: Option<f64>) -> Result<Self> {
        let mut found: Vec<(String, Option<f64>, Option<f64>)> = Vec::new();
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
            let times = (number("retrieval_ms")?, number("generation_ms")?);
            found.push((id.to_owned(), times.0.or(retrieval), times.1.or(generation)));
            Ok(())
        })?;
        if let Some(problem) = problems.into_iter().next() {
            return Err(problem);
        }
        let mean = |times: Vec<f64>, name: &str| match times.len() {
            0 => Err(Error::Artifact {
                path: path.to_owned(),
                reason: format!("has no {name}_ms"),
                hint: format!("take the latencies of a mode that retrieves, or give --{name}-ms"),
            }),
            count => Ok(times.iter().sum::<f64>() / count as f64),
        };
        let mean = Times {
            retrieval: mean(
                found.iter().filter_map(|time| time.1).collect(),
                "retrieval",
            )?,
            generation: mean(
                found.iter().filter_map(|time| time.2).collect(),
                "generation",
            )?,
            decision: 0.0,
        };
        let times = found.into_iter().map(|(id, retrieval, generation)| {
            let times = Times {
                retrieval: retrieval.unwrap_or(mean.retrieval),
                generation: generation.unwrap_or(mean.generation),
                decision: 0.0,
            };
            (id, times)
        });
        Ok(Self::Measured {
            times: times.collect(),
            mean,
        })
    }

    /// Whether a task's times are known, not the mean of the others'.
    pub fn knows(&self, id: &str) -> bool {
        match self {
            Self::Given(_) => true,
            Self::Measured { times, .. } => times.contains_key(id),
        }
    }

    /// With the time that the generator takes to decide by itself.
    pub fn deciding(mut self, decision: f64) -> Self {
        match &mut self {
            Self::Given(times) => times.decision = decision,
            Self::Measured { times, mean } => {
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
            Self::Measured { times, mean } => times.get(id).copied().unwrap_or(*mean),
        }
    }
}
