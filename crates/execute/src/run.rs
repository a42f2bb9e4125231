//! Schedules test runs on all cores: tasks, their oracle and their predictions.
//!
//! Each task goes through steps, one after another: the reference text must pass (as often as requested), the planted failure must fail,
//! then every prediction is tested. Equal runs (the same text in the same file with the same command) run once: a prediction equal to the
//! reference text has already passed, and if all tasks of a repository share its whole suite, the reference text runs only once.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use foldhash::{HashMap, HashSet};
use repoformer_core::task::TaskSet;
use repoformer_store::error::{Error, Result};
use repoformer_store::progress::Work;
use repoformer_text::message;
use repoformer_text::message::Message;

use super::copies::{Copies, CopyFailure, tail};
use super::guard::{Limits, Report, RunOrder, RunOutcome};
use super::log::{HoleText, Log, RunRecord};
use super::space::retry_when_full;
use super::subject::Subject;
use super::telling::telling_line;
use super::verdict::{ReachedLimit, Status, Verdict, judge};

/// Number of bytes of a run's output that its result keeps.
const OUTPUT_TAIL: usize = 4000;

/// Number of tasks after which a repository's environment counts as broken if none of their tests could be run. The value is arbitrary:
/// with a missing program, each task costs a run of a few milliseconds.
const TRIED_TASKS: usize = 20;

/// Settings of test runs.
#[derive(Debug, Clone)]
pub struct ExecutionSettings {
    /// Limits of each run.
    pub limits: Limits,
    /// Number of runs of the reference text; tasks whose runs disagree are excluded.
    pub oracle_runs: usize,
    /// Path of the results file.
    pub results: PathBuf,
    /// Statuses whose runs are repeated.
    pub forgotten: Vec<Status>,
}

/// Reason why a task is excluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exclusion {
    /// Status that caused it, if something was run.
    pub status: Option<Status>,
    /// Explanation of the exclusion.
    pub reason: Message,
}

/// Result of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskResult {
    /// 0-based position of the task in its file.
    pub row: usize,
    /// 1-based line of the task file, for messages.
    pub line: usize,
    /// Id of the task.
    pub task_id: String,
    /// Name of the task's repository.
    pub repository: String,
    /// Reason for the exclusion, if the task is excluded.
    pub excluded: Option<Exclusion>,
    /// Status of each sample, in order; empty if the task is excluded.
    pub samples: Vec<Status>,
    /// Explanation of each sample whose status does not suffice; otherwise empty.
    pub reasons: Vec<String>,
    /// True if the test library reported the results; otherwise they were read from the output of the tests.
    pub is_reported: bool,
}

/// Result of all tasks.
#[derive(Debug)]
pub struct Execution {
    /// Results in the order of the task file.
    pub tasks: Vec<TaskResult>,
    /// Repositories whose tests cannot be run, and the reasons.
    pub broken: Vec<(String, CopyFailure)>,
    /// Number of runs made.
    pub runs: usize,
    /// Number of results that were already known or shared with an equal run.
    pub reused: usize,
    /// Status and reason of each run of a prediction that has no final result.
    pub lost: Vec<(Status, String)>,
}

/// Runs the tests of all subjects with the reference text, a planted failure and each sample (`samples[i]` for the i-th
/// task).
///
/// # Errors
/// Results cannot be read or appended, or no guard can be started.
pub fn run(
    tasks: &TaskSet,
    subjects: &[Result<Subject, Message>],
    samples: &[Vec<String>],
    settings: &ExecutionSettings,
    copies: &Copies<'_>,
) -> Result<Execution> {
    let repositories = subjects.iter().flatten().map(|subject| subject.repository + 1);
    let count = repositories.max().unwrap_or(0);
    let mut board = Board {
        subjects,
        samples,
        tasks,
        settings,
        copies,
        log: Log::open(&settings.results, &settings.forgotten)?,
        states: vec![TaskProgress::default(); subjects.len()],
        runs: Vec::new(),
        by_key: HashMap::default(),
        queues: vec![VecDeque::new(); count],
        making: vec![CopyState::New; count],
        broken: vec![None; count],
        trials: vec![EnvironmentTrials::default(); count],
        running: 0,
        made: 0,
        done: 0,
        progress: Work::begin("run tests", "steps"),
        lost: Vec::new(),
        failed: None,
    };
    for subject in subjects.iter().flatten() {
        board.trials[subject.repository].tasks += 1;
    }
    for (task, subject) in subjects.iter().enumerate() {
        match subject {
            Ok(_) => board.request(task, Step::Truth(0)),
            Err(reason) => board.exclude(task, None, reason.clone()),
        }
    }
    let (board, changed) = (Mutex::new(board), Condvar::new());
    std::thread::scope(|scope| {
        for worker in 0..copies.workers {
            let (board, changed) = (&board, &changed);
            scope.spawn(move || work(worker, board, changed, copies));
        }
    });
    let board = board.into_inner().unwrap_or_else(PoisonError::into_inner);
    match board.failed {
        Some(error) => Err(error),
        None => Ok(board.into_execution()),
    }
}

/// Step of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Truth(usize),
    Planted,
    Sample(usize),
}

/// Progress of a task.
#[derive(Debug, Clone, Default)]
struct TaskProgress {
    excluded: Option<Exclusion>,
    /// Result with the reference text, if it was run.
    reference: Option<Reference>,
    samples: Vec<Option<(Status, String)>>,
}

/// Results that every run with the reference text achieved.
#[derive(Debug, Clone)]
struct Reference {
    /// Smallest number of passed tests, according to the output.
    passed: Option<u64>,
    /// Combined report of all runs, if the test libraries wrote complete reports.
    report: Option<Report>,
}

impl Reference {
    /// Adds a run to the earlier ones.
    fn with(before: Option<Self>, passed: Option<u64>, report: Option<Report>) -> Self {
        let report = report.filter(Report::is_whole);
        match before {
            None => Self { passed, report },
            Some(before) => Self {
                passed: [before.passed, passed].into_iter().flatten().min(),
                report: before.report.zip(report).and_then(|(all, report)| all.and(&report)),
            },
        }
    }

    /// Returns why a prediction has not passed, even though its exit code and output indicate a pass.
    fn missing(&self, passed: Option<u64>, report: Option<&Report>) -> Option<String> {
        if let Some(reference) = &self.report {
            // A run without any session lacks all sessions.
            return report.cloned().unwrap_or_default().missing(reference);
        }
        // A prediction that ends the run early, or causes tests to be skipped, passes the remaining tests.
        let (passed, truth) = passed.zip(self.passed)?;
        (passed < truth).then(|| format!("{passed} tests passed, {truth} with the reference text"))
    }
}

/// A run, and the steps that wait for its result.
#[derive(Debug)]
struct Run {
    key: String,
    /// First step that waited for the run. Its text is made when the run begins: each text is a whole file.
    first: (usize, Step),
    repository: usize,
    waiting: Vec<(usize, Step)>,
}

/// State of a repository's only copy, if workers share the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyState {
    New,
    Begun,
    Ready,
}

/// Outcomes of the first tests in the environment of a repository.
#[derive(Debug, Clone, Default)]
struct EnvironmentTrials {
    /// Number of tasks.
    tasks: usize,
    /// True if the tests of a task could be run.
    is_working: bool,
    /// Tasks whose tests could not be run.
    broken_tasks: HashSet<usize>,
}

struct Board<'a> {
    subjects: &'a [Result<Subject, Message>],
    samples: &'a [Vec<String>],
    tasks: &'a TaskSet,
    settings: &'a ExecutionSettings,
    copies: &'a Copies<'a>,
    log: Log,
    states: Vec<TaskProgress>,
    runs: Vec<Run>,
    by_key: HashMap<String, usize>,
    /// Waiting runs, by repository.
    queues: Vec<VecDeque<usize>>,
    making: Vec<CopyState>,
    broken: Vec<Option<CopyFailure>>,
    /// Outcomes of the first tests of each repository.
    trials: Vec<EnvironmentTrials>,
    running: usize,
    made: usize,
    /// Number of steps done.
    done: usize,
    /// Progress in steps, as far as their number is known.
    progress: Work,
    lost: Vec<(Status, String)>,
    failed: Option<Error>,
}

fn lock<'b, 'a>(board: &'b Mutex<Board<'a>>) -> MutexGuard<'b, Board<'a>> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a worker: takes a run, preferably of the repository it worked on last, until no run is left and none can follow.
fn work(worker: usize, board: &Mutex<Board<'_>>, changed: &Condvar, copies: &Copies<'_>) {
    let _leaving = WorkerExit { board, changed };
    let mut last = 0;
    loop {
        let mut guard = lock(board);
        let number = loop {
            if guard.failed.is_some() {
                return;
            }
            match guard.take(last) {
                Some(number) => break number,
                None if guard.running == 0 => {
                    changed.notify_all();
                    return;
                }
                None => guard = changed.wait(guard).unwrap_or_else(PoisonError::into_inner),
            }
        };
        last = guard.runs[number].repository;
        let order = guard.order(number);
        drop(guard);
        let outcome = match copies.of(last, worker) {
            Ok(copy) => copies.run(copy, order).map(Ok),
            Err(broken) => Ok(Err(broken.clone())),
        };
        let mut guard = lock(board);
        guard.finish(number, outcome);
        changed.notify_all();
    }
}

/// Ends the other workers if one panics; otherwise they would wait for its run forever.
struct WorkerExit<'w, 'b> {
    board: &'w Mutex<Board<'b>>,
    changed: &'w Condvar,
}

impl Drop for WorkerExit<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = Error::execution(
                "a worker was stopped by a bug in this program",
                "please report it",
            );
            lock(self.board).failed.get_or_insert(error);
            self.changed.notify_all();
        }
    }
}

impl Board<'_> {
    /// Takes a run that can start: a repository's runs must wait while its shared copy is being made.
    fn take(&mut self, last: usize) -> Option<usize> {
        let count = self.queues.len();
        let mut order: Vec<usize> = (0..count).map(|i| (last + i) % count.max(1)).collect();
        if self.copies.is_shared() {
            order.retain(|&repository| self.making[repository] != CopyState::Begun);
        }
        let found = order.into_iter().find(|&repository| !self.queues[repository].is_empty())?;
        let number = self.queues[found].pop_front()?;
        if self.making[found] == CopyState::New {
            self.making[found] = CopyState::Begun;
        }
        self.running += 1;
        Some(number)
    }

    /// Returns the content of the task's file in a step; `None` if the step leaves the file unchanged.
    fn text(&self, subject: &Subject, task: usize, step: Step) -> Option<String> {
        let text = match step {
            Step::Truth(_) => None,
            Step::Planted => Some(subject.planted.clone()),
            Step::Sample(sample) => Some(subject.site.with(&self.samples[task][sample])),
        };
        // A prediction equal to the reference text shares the first run of that text.
        text.filter(|text| text != subject.site.text())
    }

    /// Returns the order of a run.
    fn order(&self, number: usize) -> RunOrder {
        let (task, step) = self.runs[number].first;
        match &self.subjects[task] {
            Ok(subject) => {
                let text = self.text(subject, task, step);
                subject.order(&subject.command, text, &self.settings.limits)
            }
            // Only subjects have runs.
            Err(_) => RunOrder::default(),
        }
    }

    /// Requests a step: uses the known result, waits for the equal run in progress, or queues a new run.
    fn request(&mut self, task: usize, step: Step) {
        self.progress.more(1);
        let Ok(subject) = &self.subjects[task] else {
            return;
        };
        if let Some(broken) = self.broken[subject.repository].clone() {
            return self.break_off(task, step, &broken);
        }
        let text = self.text(subject, task, step);
        let turn = if let Step::Truth(turn) = step { turn } else { 0 };
        let limits = &self.settings.limits;
        let key = match subject.key_of(&subject.command, text.as_deref(), turn, self.copies, limits)
        {
            Ok(key) => key,
            Err(reason) => {
                let output = String::new();
                return self.break_off(task, step, &CopyFailure { reason: reason.into(), output });
            }
        };
        match self.log.of_key(&key) {
            Ok(Some(known)) => {
                self.progress.advance_kept(1);
                // Only results of tests that could be run are kept.
                self.trials[subject.repository].is_working = true;
                return self.deliver(task, step, known);
            }
            Ok(None) => {}
            Err(error) => {
                self.failed.get_or_insert(error);
                return;
            }
        }
        if let Some(&number) = self.by_key.get(&key) {
            return self.runs[number].waiting.push((task, step));
        }
        let number = self.runs.len();
        self.by_key.insert(key.clone(), number);
        self.queues[subject.repository].push_back(number);
        self.runs.push(Run {
            key,
            first: (task, step),
            repository: subject.repository,
            waiting: vec![(task, step)],
        });
    }

    /// Handles the end of a run.
    fn finish(&mut self, number: usize, outcome: Result<Result<RunOutcome, CopyFailure>>) {
        self.running -= 1;
        let repository = self.runs[number].repository;
        self.making[repository] = CopyState::Ready;
        let outcome = match outcome {
            Err(error) => {
                self.failed.get_or_insert(error);
                return;
            }
            Ok(Err(broken)) => {
                self.break_repository(repository, &broken);
                return self.break_run(number, &broken);
            }
            Ok(Ok(outcome)) => outcome,
        };
        self.made += 1;
        let waiting = std::mem::take(&mut self.runs[number].waiting);
        self.by_key.remove(&self.runs[number].key);
        let Some(&(first, step)) = waiting.first() else {
            return;
        };
        let Ok(subject) = &self.subjects[first] else {
            return;
        };
        let verdict = judge(subject.runner, &outcome);
        let is_broken = verdict.status == Status::EnvironmentBroken;
        if is_broken
            && matches!(step, Step::Truth(_))
            && self.is_environment_broken(repository, &waiting)
        {
            let broken = CopyFailure {
                reason: verdict.reason.into(),
                output: tail(&outcome.output, OUTPUT_TAIL).to_owned(),
            };
            self.break_repository(repository, &broken);
            self.runs[number].waiting = waiting;
            return self.break_run(number, &broken);
        }
        self.trials[repository].is_working |= verdict.is_lasting && !is_broken;
        let record = record_of(verdict, &outcome, self.runs[number].key.clone());
        for (task, step) in waiting {
            self.progress.advance(1);
            self.deliver(task, step, record.clone());
        }
    }

    /// Handles the result of a step: logs the result and requests the next step.
    fn deliver(&mut self, task: usize, step: Step, result: RunRecord) {
        self.done += 1;
        let (mut status, mut reason) = (result.status, result.reason.clone());
        let (is_lasting, passed) = (result.is_lasting, result.passed);
        match (step, status) {
            _ if !is_lasting => {}
            // The tests ran with the reference text, so this text is the reason why they no longer run.
            (Step::Planted | Step::Sample(_), Status::EnvironmentBroken) => {
                status = Status::Error;
            }
            (Step::Sample(_), Status::Pass) => {
                let reference = self.states[task].reference.as_ref();
                let missing = reference.and_then(|of| of.missing(passed, result.report.as_ref()));
                if let Some(missing) = missing {
                    (status, reason) = (Status::Fail, missing);
                }
            }
            _ => {}
        }
        let (kind, sample) = match step {
            Step::Truth(turn) => (HoleText::Truth, turn),
            Step::Planted => (HoleText::Planted, 0),
            Step::Sample(sample) => (HoleText::Prediction, sample),
        };
        let record = RunRecord { status, reason: reason.clone(), ..result };
        let record = record.with_task(&self.tasks.tasks()[task], kind, sample);
        if let Err(error) = retry_when_full(self.running > 0, || self.log.append(&record)) {
            self.failed.get_or_insert(error);
            return;
        }
        match step {
            Step::Truth(_) if status == Status::EnvironmentBroken => {
                let reason = message!["its tests cannot be run: ", reason];
                self.exclude(task, Some(status), reason);
            }
            Step::Truth(turn) if status != Status::Pass => {
                let again = if turn > 0 { " when run again" } else { "" };
                let what = format!("its reference text does not pass{again}");
                // A reached limit needs no further explanation.
                let limit: Option<ReachedLimit> = reason.parse().ok();
                let limit = limit.filter(|limit| *limit != ReachedLimit::FullDisk);
                let is_own = matches!(status, Status::Fail | Status::Error | Status::NoTests)
                    && limit.is_none();
                let line = telling_line(&record.output_tail);
                let line = line.filter(|line| is_own && !reason.contains(line));
                let line = line.unwrap_or_default();
                self.exclude(task, Some(status), self.in_words(&what, status, &reason, &line));
            }
            Step::Truth(turn) => {
                let before = self.states[task].reference.take();
                let reference = Reference::with(before, passed, record.report);
                self.states[task].reference = Some(reference);
                let next = if turn + 1 < self.settings.oracle_runs {
                    Step::Truth(turn + 1)
                } else {
                    Step::Planted
                };
                self.request(task, next);
            }
            Step::Planted if !is_lasting || !matches!(status, Status::Fail | Status::Error) => {
                let what = match status {
                    Status::Pass => "its tests pass with a failure planted before the hole".into(),
                    _ => self.in_words(
                        "its tests do not fail as expected with a failure planted before the hole",
                        status,
                        &reason,
                        "",
                    ),
                };
                self.exclude(task, Some(status), what);
            }
            Step::Planted => {
                let count = self.samples[task].len();
                self.states[task].samples = vec![None; count];
                (0..count).for_each(|sample| self.request(task, Step::Sample(sample)));
            }
            Step::Sample(sample) => {
                if !is_lasting {
                    self.lost.push((status, reason.clone()));
                }
                self.states[task].samples[sample] = Some((status, reason));
            }
        }
    }

    /// Describes a failure with its reason and an informative line of the output, both of which may be empty. A limit that was reached is
    /// named by its setting.
    fn in_words(&self, what: &str, status: Status, reason: &str, line: &str) -> Message {
        let reason = reason.parse().map_or_else(
            |_| reason.into(),
            |limit: ReachedLimit| limit.message(&self.settings.limits),
        );
        let parts = [reason, line.into()].into_iter().filter(|part| *part != Message::default());
        let said = Message::join(parts, "; ");
        match said.parts() {
            [] => format!("{what}: {status}").into(),
            _ => message![format!("{what}: {status}, "), said],
        }
    }

    fn exclude(&mut self, task: usize, status: Option<Status>, reason: Message) {
        self.states[task].excluded = Some(Exclusion { status, reason });
    }

    /// Records tasks whose tests cannot be run. Returns true if the environment of their repository is at fault, because enough tasks were
    /// tried and none could be run; otherwise these tasks' own tests may be at fault.
    fn is_environment_broken(&mut self, repository: usize, waiting: &[(usize, Step)]) -> bool {
        let trials = &mut self.trials[repository];
        trials.broken_tasks.extend(waiting.iter().map(|&(task, _)| task));
        !trials.is_working && trials.broken_tasks.len() >= trials.tasks.min(TRIED_TASKS)
    }

    /// Ends all steps that wait for a repository whose tests cannot be run.
    fn break_repository(&mut self, repository: usize, broken: &CopyFailure) {
        self.broken[repository].get_or_insert_with(|| broken.clone());
        for number in std::mem::take(&mut self.queues[repository]) {
            self.break_run(number, broken);
        }
    }

    fn break_run(&mut self, number: usize, broken: &CopyFailure) {
        for (task, step) in std::mem::take(&mut self.runs[number].waiting) {
            self.break_off(task, step, broken);
        }
    }

    fn break_off(&mut self, task: usize, step: Step, broken: &CopyFailure) {
        self.done += 1;
        self.progress.advance_kept(1); // it took no time
        match step {
            // The oracle was sound; the environment broke later.
            Step::Sample(sample) => {
                let status = (Status::EnvironmentBroken, broken.reason.to_string());
                self.states[task].samples[sample] = Some(status);
            }
            _ => {
                let reason = message!["its tests cannot be run: ", &broken.reason];
                self.exclude(task, Some(Status::EnvironmentBroken), reason);
            }
        }
    }

    fn into_execution(self) -> Execution {
        let result = |(of, state): (&repoformer_core::task::Task, TaskProgress)| {
            let known = state.samples.into_iter().flatten();
            let (samples, reasons) = known.filter(|_| state.excluded.is_none()).unzip();
            TaskResult {
                row: of.row,
                line: of.line,
                task_id: of.id.clone(),
                repository: of.repository.clone(),
                samples,
                reasons,
                is_reported: state.reference.is_some_and(|reference| reference.report.is_some()),
                excluded: state.excluded,
            }
        };
        let mut broken: Vec<(String, CopyFailure)> = Vec::new();
        for subject in self.subjects.iter().flatten() {
            if let Some(reason) = &self.broken[subject.repository]
                && broken.iter().all(|(name, _)| *name != subject.repository_name)
            {
                broken.push((subject.repository_name.clone(), reason.clone()));
            }
        }
        Execution {
            tasks: self.tasks.tasks().iter().zip(self.states).map(result).collect(),
            broken,
            runs: self.made,
            reused: self.done.saturating_sub(self.made),
            lost: self.lost,
        }
    }
}

/// Returns the result of a run, for every step that waits for it.
pub(super) fn record_of(verdict: Verdict, outcome: &RunOutcome, key: String) -> RunRecord {
    let round = |number: f64| (number * 1000.0).round() / 1000.0;
    RunRecord {
        task_id: String::new(),
        row: 0,
        repository: String::new(),
        kind: HoleText::Truth,
        sample: 0,
        status: verdict.status,
        reason: verdict.reason,
        passed: verdict.passed,
        report: outcome.report.clone(),
        is_lasting: verdict.is_lasting,
        seconds: round(outcome.seconds),
        cpu_seconds: round(outcome.cpu_seconds),
        peak_memory_mb: round(outcome.peak_memory_mb),
        exit_code: outcome.exit_code,
        signal: outcome.signal,
        left_behind: outcome.left_behind,
        output_tail: tail(&outcome.output, OUTPUT_TAIL).to_owned(),
        output_bytes: outcome.output_bytes,
        key,
    }
}
