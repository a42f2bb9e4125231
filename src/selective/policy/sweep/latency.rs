//! Latency of a request under a policy: the paper's latency model.
//!
//! The decision (T_d), the completion without retrieval (T_g), and retrieval followed by the completion with it (T_r + T_g)
//! start together ([`Clock::Parallel`]). A request without retrieval takes the longer of T_d and T_g, one with retrieval the longer of T_d and T_r + T_g.
//! The paper has one T_g; prompts with retrieved fragments are longer, so both are used if both were measured.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Error, Result, named};
use crate::selective::policy::rule::{DecisionCost, Policy};
use crate::store::jsonl;

/// Times of one request in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RequestTimes {
    /// T_r: retrieval.
    pub retrieval: f64,
    /// T_g without retrieved fragments.
    pub base: f64,
    /// T_g with retrieved fragments.
    pub generation: f64,
    /// T_d if a model decides: one token; `None` if nobody measured.
    pub decision: Option<f64>,
}

/// Which parts of a request run at the same time.
///
/// ```
/// use repoformer::selective::policy::sweep::Clock;
/// assert_eq!("serial".parse::<Clock>()?, Clock::Serial);
/// # Ok::<(), repoformer::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// Decision, retrieval and completion begin together, as in the paper's latency model.
    #[default]
    Parallel,
    /// Each part waits for the one before it: the decision, then retrieval if it says so, then one completion.
    Serial,
}

named! {
    Clock, "clock":
    Parallel = "parallel",
    Serial = "serial",
}

impl RequestTimes {
    /// Times of a generation that takes as long with retrieved fragments as without.
    pub fn new(retrieval: f64, generation: f64) -> Self {
        Self { retrieval, base: generation, generation, decision: None }
    }

    /// Returns the latency of a request; `None` if a part of it was not measured.
    ///
    /// ```
    /// use repoformer::selective::policy::{Policy, sweep::{Clock, RequestTimes}};
    /// let times = RequestTimes::new(300.0, 500.0);
    /// assert_eq!(times.cost(Policy::Learned, false, Clock::Parallel), Some(500.0));
    /// assert_eq!(times.cost(Policy::Learned, true, Clock::Parallel), Some(800.0));
    /// let slow = RequestTimes { retrieval: 900.0, ..times };
    /// let trial = |clock| slow.cost(Policy::TrialRetrieval, false, clock);
    /// assert_eq!(trial(Clock::Parallel), Some(900.0), "it waits for the score");
    /// assert_eq!(trial(Clock::Serial), Some(1400.0), "and then completes");
    /// assert_eq!(times.cost(Policy::SelfDecision, true, Clock::Parallel), None);
    /// ```
    pub fn cost(&self, policy: Policy, retrieves: bool, clock: Clock) -> Option<f64> {
        let decision = match policy.decision_cost() {
            DecisionCost::Nothing => 0.0,
            DecisionCost::Decision => self.decision?,
            DecisionCost::Retrieval => self.retrieval,
            DecisionCost::Generation => self.base,
        };
        let answer = if retrieves { self.retrieval + self.generation } else { self.base };
        let answer = match (clock, policy.decision_cost()) {
            (Clock::Parallel, _) => return Some(decision.max(answer)),
            // What the decision needed is there.
            (Clock::Serial, DecisionCost::Retrieval) if retrieves => self.generation,
            (Clock::Serial, DecisionCost::Generation) if !retrieves => 0.0,
            (Clock::Serial, _) => answer,
        };
        Some(decision + answer)
    }
}

/// Times of requests by task.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyModel {
    /// Measured times by task id; `None` if the times of every request are given.
    times: Option<BTreeMap<String, RequestTimes>>,
    /// Tasks whose completions without retrieval were measured, if these were measured separately.
    base: Option<BTreeSet<String>>,
    /// Given times, or mean times for tasks that were not measured.
    mean: RequestTimes,
    /// What runs at the same time.
    clock: Clock,
    /// Whether any measured retrieval lacks the time for its query's dense vector.
    pub without_embedding: bool,
}

impl LatencyModel {
    /// Returns a model of equal times for every request.
    pub fn given(times: RequestTimes) -> Self {
        let clock = Clock::default();
        Self { times: None, base: None, mean: times, without_embedding: false, clock }
    }

    /// Reads measured times: JSON lines with `task_id`, `retrieval_ms`, `generation_ms`, of completions with retrieved fragments
    /// and, if measured, of those without (`base`). `generation` replaces generation times that were not measured.
    ///
    /// # Errors
    /// A file cannot be read, or has no time of one of the two.
    pub fn read(path: &Path, base: Option<&Path>, generation: Option<f64>) -> Result<Self> {
        let found = Measured::read(path, generation)?;
        let base = base.map(|path| Measured::read(path, generation)).transpose()?;
        let with = found.mean(|time| time.generation, "generation")?;
        let mut mean = RequestTimes::new(found.mean(|time| time.retrieval, "retrieval")?, with);
        if let Some(base) = &base {
            mean.base = base.mean(|time| time.generation, "base generation")?;
            mean.decision = base.mean(|time| time.decision, "decision").ok();
        }
        let of_task = |(id, time): (&String, &Took)| {
            let retrieval = time.retrieval.unwrap_or(mean.retrieval);
            let mut times = RequestTimes::new(retrieval, time.generation.unwrap_or(with));
            if let Some(base) = &base {
                let measured = base.times.get(id);
                times.base = measured.and_then(|time| time.generation).unwrap_or(mean.base);
                times.decision = measured.and_then(|time| time.decision).or(mean.decision);
            }
            (id.clone(), times)
        };
        Ok(Self {
            times: Some(found.times.iter().map(of_task).collect()),
            mean,
            clock: Clock::default(),
            without_embedding: found.without_embedding,
            base: base.map(|base| base.times.into_keys().collect()),
        })
    }

    /// Whether a task's times were measured or given.
    pub fn knows(&self, id: &str) -> bool {
        self.times.as_ref().is_none_or(|times| times.contains_key(id))
    }

    /// Whether completions without retrieval were measured separately.
    pub fn has_base(&self) -> bool {
        self.base.is_some()
    }

    /// Whether a task's completion without retrieval was measured.
    pub fn knows_base(&self, id: &str) -> bool {
        self.base.as_ref().is_some_and(|base| base.contains(id))
    }

    /// Sets the time that a model takes to decide, if it is given.
    pub fn deciding(mut self, decision: Option<f64>) -> Self {
        let measured = self.times.iter_mut().flat_map(BTreeMap::values_mut);
        for times in measured.chain([&mut self.mean]) {
            times.decision = decision.or(times.decision);
        }
        self
    }

    /// Sets what runs at the same time.
    pub fn by(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Returns the latency of a task's request; `None` if a part of it was not measured.
    pub fn cost(&self, id: &str, policy: Policy, retrieves: bool) -> Option<f64> {
        self.of(id).cost(policy, retrieves, self.clock)
    }

    /// Times of a task.
    pub(super) fn of(&self, id: &str) -> RequestTimes {
        let measured = self.times.as_ref().and_then(|times| times.get(id));
        *measured.unwrap_or(&self.mean)
    }
}

/// Measured times of one task.
struct Took {
    retrieval: Option<f64>,
    generation: Option<f64>,
    decision: Option<f64>,
}

/// A file of measured times.
struct Measured {
    path: PathBuf,
    times: BTreeMap<String, Took>,
    without_embedding: bool,
}

impl Measured {
    fn read(path: &Path, generation: Option<f64>) -> Result<Self> {
        let (mut times, mut without_embedding) = (BTreeMap::new(), false);
        let problems = jsonl::for_each(path, |at, object| {
            let number = |name: &str| match object.get(name) {
                None | Some(Value::Null) => Ok(None),
                Some(value) => match value.as_f64() {
                    Some(time) if time >= 0.0 => Ok(Some(time)),
                    Some(time) => Err(format!("field '{name}' cannot be {time}")),
                    None => {
                        let kind = jsonl::kind(value);
                        Err(format!("field '{name}' must be a number, not {kind}"))
                    }
                }
                .map_err(|reason| Error::record(path, at.line, reason)),
            };
            let id = jsonl::Fields::new(path, at.line, "", &object).string("task_id")?;
            let took = Took {
                retrieval: number("retrieval_ms")?,
                generation: number("generation_ms")?.or(generation),
                decision: number("decision_ms")?,
            };
            times.insert(id.to_owned(), took);
            without_embedding |= object.get("without_embedding") == Some(&Value::Bool(true));
            Ok(())
        })?;
        match problems.into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(Self { path: path.to_owned(), times, without_embedding }),
        }
    }

    /// Mean of a time over the tasks that have it.
    fn mean(&self, time: impl Fn(&Took) -> Option<f64>, name: &str) -> Result<f64> {
        let times: Vec<f64> = self.times.values().filter_map(time).collect();
        match times.len() {
            0 => {
                let (field, hint) = match name {
                    "base generation" => ("generation", "take the latencies of mode none"),
                    name => (name, "take the latencies of a mode that retrieves"),
                };
                Err(Error::artifact(&self.path, format!("has no {field}_ms"), hint))
            }
            count => Ok(times.iter().sum::<f64>() / count as f64),
        }
    }
}
