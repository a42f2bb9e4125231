//! Latency of a request under a policy: the paper's latency model.
//!
//! The decision (T_d), the completion without retrieval (T_g), and retrieval followed by the completion with it (T_r + T_g)
//! start together ([`Clock::Parallel`]). A request without retrieval takes the longer of T_d and T_g; a request with retrieval
//! takes the longer of T_d and T_r + T_g. The paper has one T_g. Because prompts with retrieved fragments are longer, two are
//! used if both were measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use repoformer_store::error::{Error, RequestPart, Result};
use repoformer_store::jsonl::{self, Object};
use repoformer_text::named;

use crate::policy::Example;
use crate::policy::rule::{DecisionCost, Policy};
use crate::task::kind::RecordKind;

/// Times of one request in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RequestTimes {
    /// T_r: retrieval.
    pub retrieval: f64,
    /// T_g without retrieved fragments.
    pub base: f64,
    /// T_g with retrieved fragments.
    pub generation: f64,
    /// T_d if a model decides: the time of one token. `None` if it was not measured.
    pub decision: Option<f64>,
}

/// Timing of a request's parts: at the same time, or one after another.
///
/// ```
/// use repoformer_core::policy::sweep::Clock;
/// assert_eq!("serial".parse::<Clock>()?, Clock::Serial);
/// # Ok::<(), repoformer_store::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// Decision, retrieval and completion begin together, as in the paper's latency model.
    #[default]
    Parallel,
    /// Each part waits for the one before it: the decision, then retrieval if the policy retrieves, then one completion.
    Serial,
}

named! {
    Clock, "clock":
    Parallel = "parallel",
    Serial = "serial",
}

impl RequestTimes {
    /// Creates times of a generation that takes as long with retrieved fragments as without.
    pub fn new(retrieval: f64, generation: f64) -> Self {
        Self { retrieval, base: generation, generation, decision: None }
    }

    /// Returns the latency of a request; `None` if a required part was not measured.
    ///
    /// ```
    /// use repoformer_core::policy::Policy;
    /// use repoformer_core::policy::sweep::{Clock, RequestTimes};
    /// let times = RequestTimes::new(300.0, 500.0);
    /// assert_eq!(times.cost(Policy::Learned, false, Clock::Parallel), Some(500.0));
    /// assert_eq!(times.cost(Policy::Learned, true, Clock::Parallel), Some(800.0));
    /// let slow = RequestTimes { retrieval: 900.0, ..times };
    /// let trial = |clock| slow.cost(Policy::TrialRetrieval, false, clock);
    /// assert_eq!(trial(Clock::Parallel), Some(900.0), "it waits for the score");
    /// assert_eq!(trial(Clock::Serial), Some(1400.0), "and then completes");
    /// assert_eq!(times.cost(Policy::SelfDecision, true, Clock::Parallel), None);
    /// let asked = RequestTimes { decision: Some(50.0), ..times };
    /// assert_eq!(asked.cost(Policy::SelfScored, true, Clock::Serial), Some(50.0 + 300.0 + 500.0));
    /// ```
    pub fn cost(&self, policy: Policy, retrieves: bool, clock: Clock) -> Option<f64> {
        let decision = match policy.decision_cost() {
            DecisionCost::Nothing => 0.0,
            DecisionCost::Decision => self.decision?,
            DecisionCost::Retrieval => self.retrieval,
            DecisionCost::DecisionAndRetrieval => match clock {
                Clock::Parallel => self.retrieval.max(self.decision?),
                Clock::Serial => self.retrieval + self.decision?,
            },
            DecisionCost::Generation => self.base,
        };
        let answer = if retrieves { self.retrieval + self.generation } else { self.base };
        let answer = match (clock, policy.decision_cost()) {
            (Clock::Parallel, _) => return Some(decision.max(answer)),
            // The retrieval that the decision needed is already done.
            (Clock::Serial, DecisionCost::Retrieval | DecisionCost::DecisionAndRetrieval)
                if retrieves =>
            {
                self.generation
            }
            (Clock::Serial, DecisionCost::Generation) if !retrieves => 0.0,
            (Clock::Serial, _) => answer,
        };
        Some(decision + answer)
    }
}

/// Values by task: by id and, if known, by row of the task file, because ids may repeat.
#[derive(Debug, Clone, PartialEq)]
struct ByTask<T> {
    rows: BTreeMap<(String, usize), T>,
    /// Each with its row, if known; `None` if several records have the id.
    ids: BTreeMap<String, Option<(Option<usize>, T)>>,
}

impl<T: Clone> ByTask<T> {
    fn new(all: impl IntoIterator<Item = (String, Option<usize>, T)>) -> Self {
        let (mut rows, mut ids) = (BTreeMap::new(), BTreeMap::new());
        for (id, row, value) in all {
            let of_id = ids.entry(id.clone()).and_modify(|one| *one = None);
            of_id.or_insert_with(|| Some((row, value.clone())));
            if let Some(row) = row {
                rows.insert((id, row), value);
            }
        }
        Self { rows, ids }
    }

    /// Returns the value of an instance; `None` if there is none, or if it may belong to another instance with the same id.
    fn get(&self, example: &Example) -> Option<&T> {
        let of_row = example.row.and_then(|row| self.rows.get(&(example.id.clone(), row)));
        of_row.or_else(|| {
            let (row, value) = self.ids.get(&example.id)?.as_ref()?;
            // Different rows are different tasks.
            (row.is_none() || example.row.is_none()).then_some(value)
        })
    }
}

/// Times of requests by task.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyModel {
    /// Measured times, in which means replace parts that were not measured; `None` if fixed times are given for every request.
    times: Option<ByTask<RequestTimes>>,
    /// Tasks whose retrieval and completion were both measured, if measured times were read.
    whole: Option<ByTask<()>>,
    /// Tasks whose completions without retrieval were measured, if these completions were measured separately.
    base: Option<ByTask<()>>,
    /// Fixed times, or mean times for tasks that were not measured.
    mean: RequestTimes,
    /// Parts that run at the same time.
    clock: Clock,
    /// Whether the time of any measured retrieval excludes its query's dense vector.
    pub without_embedding: bool,
}

impl LatencyModel {
    /// Returns a model that has the same times for every request.
    pub fn from_times(times: RequestTimes) -> Self {
        let clock = Clock::default();
        Self { times: None, whole: None, base: None, mean: times, without_embedding: false, clock }
    }

    /// Reads measured times: JSON lines with `task_id`, `retrieval_ms` and `generation_ms`, for completions with retrieved
    /// fragments and, if measured, for completions without them (`base`). `generation` replaces generation times that were not
    /// measured.
    ///
    /// # Errors
    /// A file cannot be read, or has no retrieval time or no generation time.
    pub fn read(path: &Path, base: Option<&Path>, generation: Option<f64>) -> Result<Self> {
        let found = TimeFile::read(path, generation)?;
        let base = base.map(|path| TimeFile::read(path, generation)).transpose()?;
        let with = found.mean(|time| time.generation);
        let with = with.ok_or_else(|| found.lacks(RequestPart::Generation))?;
        let retrieval = found.mean(|time| time.retrieval);
        let retrieval = retrieval.ok_or_else(|| found.lacks(RequestPart::Retrieval))?;
        let mut mean = RequestTimes::new(retrieval, with);
        if let Some(base) = &base {
            let without = base.mean(|time| time.generation);
            mean.base = without.ok_or_else(|| base.lacks(RequestPart::BaseGeneration))?;
            mean.decision = base.mean(|time| time.decision);
        }
        let of_task = |(id, row, time): &Record| {
            let retrieval = time.retrieval.unwrap_or(mean.retrieval);
            let mut times = RequestTimes::new(retrieval, time.generation.unwrap_or(with));
            if let Some(base) = &base {
                let same = |(other, at, _): &&Record| (other, at) == (id, row);
                let place = base.times.partition_point(|(other, at, _)| (other, at) < (id, row));
                let measured = base.times.get(place).filter(same).map(|(.., time)| time);
                times.base = measured.and_then(|time| time.generation).unwrap_or(mean.base);
                times.decision = measured.and_then(|time| time.decision).or(mean.decision);
            }
            (id.clone(), *row, times)
        };
        let known = |all: &TimeFile, is_known: fn(&MeasuredTimes) -> bool| {
            let known = all.times.iter().filter(|(.., time)| is_known(time));
            ByTask::new(known.map(|(id, row, _)| (id.clone(), *row, ())))
        };
        let is_whole = |time: &MeasuredTimes| time.retrieval.is_some() && time.generation.is_some();
        Ok(Self {
            times: Some(ByTask::new(found.times.iter().map(of_task))),
            mean,
            clock: Clock::default(),
            without_embedding: found.without_embedding,
            whole: Some(known(&found, is_whole)),
            base: base.as_ref().map(|base| known(base, |time| time.generation.is_some())),
        })
    }

    /// Returns a model of times that were measured for each of these instances.
    pub fn of_each<'e>(
        each: impl IntoIterator<Item = (&'e Example, RequestTimes)>,
        without_embedding: bool,
    ) -> Self {
        let each =
            each.into_iter().map(|(example, times)| (example.id.clone(), example.row, times));
        let times = Some(ByTask::new(each));
        Self { times, without_embedding, ..Self::from_times(RequestTimes::default()) }
    }

    /// Returns true if a task's times were measured or given.
    pub fn knows(&self, example: &Example) -> bool {
        let is_there = self.times.as_ref().is_none_or(|times| times.get(example).is_some());
        is_there && self.whole.as_ref().is_none_or(|whole| whole.get(example).is_some())
    }

    /// Returns true if times were measured per task.
    pub fn is_measured(&self) -> bool {
        self.times.is_some()
    }

    /// Returns true if completions without retrieval were measured separately.
    pub fn has_base(&self) -> bool {
        self.base.is_some()
    }

    /// Returns true if a task's completion without retrieval was measured.
    pub fn knows_base(&self, example: &Example) -> bool {
        self.base.as_ref().is_some_and(|base| base.get(example).is_some())
    }

    /// Sets the time in which a model decides, if it is given.
    pub fn deciding(mut self, decision: Option<f64>) -> Self {
        let measured = self.times.iter_mut().flat_map(|times| {
            let of_ids = times.ids.values_mut().flatten().map(|(_, times)| times);
            times.rows.values_mut().chain(of_ids)
        });
        for times in measured.chain([&mut self.mean]) {
            times.decision = decision.or(times.decision);
        }
        self
    }

    /// Sets which parts run at the same time.
    pub fn by(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Returns the latency of a task's request; `None` if a required part was not measured.
    pub fn cost(&self, example: &Example, policy: Policy, retrieves: bool) -> Option<f64> {
        self.of(example).cost(policy, retrieves, self.clock)
    }

    /// Returns the times of a task.
    pub(super) fn of(&self, example: &Example) -> RequestTimes {
        let measured = self.times.as_ref().and_then(|times| times.get(example));
        *measured.unwrap_or(&self.mean)
    }
}

/// Measured times of one task.
struct MeasuredTimes {
    retrieval: Option<f64>,
    generation: Option<f64>,
    decision: Option<f64>,
}

/// Id, row in the task file if known, and times of a task.
type Record = (String, Option<usize>, MeasuredTimes);

/// Reads the times of a task, and whether its retrieval time excludes the query's dense vector.
fn took(
    path: &Path,
    line: usize,
    object: &Object,
) -> Result<(String, Option<usize>, MeasuredTimes, bool)> {
    RecordKind::Latency.check(path, line, object)?;
    let fields = jsonl::Fields::new(path, line, "", object);
    let time = |name: &str| fields.optional_number(name);
    let took = MeasuredTimes {
        retrieval: time("retrieval_ms")?,
        generation: time("generation_ms")?,
        decision: time("decision_ms")?,
    };
    let row = fields.optional_count("row")?;
    let without_embedding = fields.optional_flag("without_embedding")?.unwrap_or(false);
    Ok((fields.task_id()?, row, took, without_embedding))
}

/// Checks a record of measured times in the same way as a sweep.
///
/// # Errors
/// A field is missing or of another type, or a time is negative.
pub fn check_latency(path: &Path, line: usize, object: &Object) -> Result<()> {
    took(path, line, object).map(drop)
}

/// File of measured times, in the order of ids and rows.
struct TimeFile {
    path: PathBuf,
    times: Vec<Record>,
    without_embedding: bool,
}

impl TimeFile {
    fn read(path: &Path, generation: Option<f64>) -> Result<Self> {
        let (mut times, mut without_embedding) = (Vec::<Record>::new(), false);
        let problems = jsonl::for_each(path, |at, object| {
            let (id, row, took, is_without) = took(path, at.line, &object)?;
            let generation = took.generation.or(generation);
            times.push((id, row, MeasuredTimes { generation, ..took }));
            without_embedding |= is_without;
            Ok(())
        })?;
        times.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        match problems.into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(Self { path: path.to_owned(), times, without_embedding }),
        }
    }

    /// Returns the mean of a time over the tasks that have it; `None` if none has it.
    fn mean(&self, time: impl Fn(&MeasuredTimes) -> Option<f64>) -> Option<f64> {
        let times: Vec<f64> = self.times.iter().filter_map(|(.., took)| time(took)).collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    }

    fn lacks(&self, part: RequestPart) -> Error {
        Error::NoTime { path: self.path.clone(), part }
    }
}
