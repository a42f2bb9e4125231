//! Tasks, their oracle and their predictions, as runs of tests on all cores.
//!
//! Each task goes through steps, each of which waits for the one before: the truth must pass (as often as asked for), the
//! planted failure must fail, then every prediction has its turn. Equal runs — the same text in the same file under the same
//! command — are one run: a prediction that is the truth has passed already, and where all tasks of a repository share its
//! whole suite, the truth is run once.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::copies::{Broken, Copies, Errand, tail};
use super::guard::{Limits, Outcome};
use super::log::{Kind, Log, Record};
use super::subject::Subject;
use super::verdict::{Status, Verdict, judge};
use crate::error::{Error, Result};
use crate::task::TaskSet;

/// Bytes of a run's output that its result keeps.
const OUTPUT_TAIL: usize = 4000;

/// How tests are run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What each run may use.
    pub limits: Limits,
    /// How often the truth is run; tasks whose runs disagree are left out.
    pub oracle_runs: usize,
    /// Where results are appended.
    pub results: PathBuf,
    /// Results with one of these statuses are made again.
    pub forgotten: Vec<Status>,
}

/// Why a task takes no part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exclusion {
    /// The status that it comes from, where something was run.
    pub status: Option<Status>,
    /// In words.
    pub reason: String,
}

/// What came of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskResult {
    /// The task's 0-based place in its file.
    pub row: usize,
    /// 1-based line of its file, for messages.
    pub line: usize,
    /// Its id.
    pub task_id: String,
    /// Its repository.
    pub repository: String,
    /// Why it takes no part, if it does not.
    pub excluded: Option<Exclusion>,
    /// Of each sample, in their order; none where it takes no part.
    pub samples: Vec<Status>,
    /// Why, of each sample, where its status does not say it all.
    pub reasons: Vec<String>,
}

/// What came of all.
#[derive(Debug)]
pub struct Execution {
    /// In the order of the task file.
    pub tasks: Vec<TaskResult>,
    /// The repositories whose tests cannot be run, and why.
    pub broken: Vec<(String, Broken)>,
    /// Runs that were made.
    pub runs: usize,
    /// Results that were known already, or those of an equal run.
    pub reused: usize,
}

/// Runs the tests of all subjects with the truth, a planted failure and each of their samples (`samples[i]` for the i-th
/// task). `progress` is told how many steps are done, of how many that are known so far.
///
/// # Errors
/// Results cannot be read or appended, or no guard can be started.
pub fn run(
    tasks: &TaskSet,
    subjects: &[Result<Subject, String>],
    samples: &[Vec<String>],
    (settings, copies): (&Settings, &Copies<'_>),
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Execution> {
    let mut board = Board {
        subjects,
        samples,
        tasks,
        settings,
        copies,
        log: Log::open(&settings.results, &settings.forgotten)?,
        states: vec![State::default(); subjects.len()],
        runs: Vec::new(),
        by_key: FxHashMap::default(),
        queues: Vec::new(),
        making: Vec::new(),
        broken: Vec::new(),
        running: 0,
        made: 0,
        steps: (0, 0),
        failed: None,
    };
    let repositories = subjects
        .iter()
        .flatten()
        .map(|subject| subject.repository + 1);
    let count = repositories.max().unwrap_or(0);
    board.queues.resize_with(count, VecDeque::new);
    board.making = vec![Making::New; count];
    board.broken = vec![None; count];
    for (task, subject) in subjects.iter().enumerate() {
        match subject {
            Ok(_) => board.request(task, Step::Truth(0)),
            Err(reason) => board.exclude(task, None, reason.clone()),
        }
    }
    let (board, changed) = (Mutex::new(board), Condvar::new());
    std::thread::scope(|scope| {
        for worker in 0..copies.workers() {
            let (board, changed) = (&board, &changed);
            scope.spawn(move || work(worker, board, changed, copies, progress));
        }
    });
    let board = board.into_inner().unwrap_or_else(PoisonError::into_inner);
    match board.failed {
        Some(error) => Err(error),
        None => Ok(board.into_execution()),
    }
}

/// A step of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Truth(usize),
    Planted,
    Sample(usize),
}

/// What is known of a task.
#[derive(Debug, Clone, Default)]
struct State {
    excluded: Option<Exclusion>,
    /// The fewest tests that passed with the truth.
    passed: Option<u64>,
    samples: Vec<Option<(Status, String)>>,
}

/// A run, and who waits for it.
#[derive(Debug)]
struct Run {
    key: String,
    errand: Errand,
    repository: usize,
    waiting: Vec<(usize, Step)>,
}

/// How far the one copy of a repository is, where workers share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Making {
    New,
    Begun,
    Ready,
}

struct Board<'a> {
    subjects: &'a [Result<Subject, String>],
    samples: &'a [Vec<String>],
    tasks: &'a TaskSet,
    settings: &'a Settings,
    copies: &'a Copies<'a>,
    log: Log,
    states: Vec<State>,
    runs: Vec<Run>,
    by_key: FxHashMap<String, usize>,
    /// The runs that wait, by repository.
    queues: Vec<VecDeque<usize>>,
    making: Vec<Making>,
    broken: Vec<Option<Broken>>,
    running: usize,
    made: usize,
    /// Steps that are done, and that are known of.
    steps: (usize, usize),
    failed: Option<Error>,
}

fn lock<'b, 'a>(board: &'b Mutex<Board<'a>>) -> MutexGuard<'b, Board<'a>> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A worker: takes a run, preferably of the repository that it worked on last, until there is none and none can come.
fn work(
    worker: usize,
    board: &Mutex<Board<'_>>,
    changed: &Condvar,
    copies: &Copies<'_>,
    progress: &(dyn Fn(usize, usize) + Sync),
) {
    let _leaving = Leaving { board, changed };
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
        let (repository, errand) = (
            guard.runs[number].repository,
            guard.runs[number].errand.clone(),
        );
        let limits = guard.settings.limits;
        drop(guard);
        last = repository;
        let outcome = match copies.of(repository, worker) {
            Ok(copy) => copies.run(copy, &errand, limits).map(Ok),
            Err(broken) => Ok(Err(broken.clone())),
        };
        let mut guard = lock(board);
        guard.finish(number, outcome);
        progress(guard.steps.0, guard.steps.1);
        changed.notify_all();
    }
}

/// A worker that leaves in a panic ends the others, which would wait for its run for ever.
struct Leaving<'w, 'b> {
    board: &'w Mutex<Board<'b>>,
    changed: &'w Condvar,
}

impl Drop for Leaving<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let reason = "a worker was ended by an error of this program".to_owned();
            let hint = "please report it".to_owned();
            lock(self.board)
                .failed
                .get_or_insert(Error::Execution { reason, hint });
            self.changed.notify_all();
        }
    }
}

impl Board<'_> {
    /// Takes a run that can begin: while a copy that all share is made, its repository's runs cannot.
    fn take(&mut self, last: usize) -> Option<usize> {
        let count = self.queues.len();
        let mut order: Vec<usize> = (0..count).map(|i| (last + i) % count.max(1)).collect();
        if self.copies.is_shared() {
            order.retain(|&repository| self.making[repository] != Making::Begun);
        }
        let found = order
            .into_iter()
            .find(|&repository| !self.queues[repository].is_empty())?;
        let number = self.queues[found].pop_front()?;
        if self.making[found] == Making::New {
            self.making[found] = Making::Begun;
        }
        self.running += 1;
        Some(number)
    }

    /// Asks for a step: its result may be known, its run may be under way, or it is queued.
    fn request(&mut self, task: usize, step: Step) {
        self.steps.1 += 1;
        let Ok(subject) = &self.subjects[task] else {
            return;
        };
        if let Some(broken) = self.broken[subject.repository].clone() {
            return self.break_off(task, step, &broken);
        }
        let text = match step {
            Step::Truth(_) => None,
            Step::Planted => Some(subject.planted.clone()),
            Step::Sample(sample) => Some(subject.site.with(&self.samples[task][sample])),
        };
        // A prediction that is the truth is the truth's first run.
        let text = text.filter(|text| text != subject.site.text());
        let turn = if let Step::Truth(turn) = step {
            turn
        } else {
            0
        };
        let key = match subject.key(text.as_deref(), turn, (self.copies, &self.settings.limits)) {
            Ok(key) => key,
            Err(reason) => {
                let output = String::new();
                return self.break_off(task, step, &Broken { reason, output });
            }
        };
        match self.log.of_key(&key) {
            Ok(Some(known)) => return self.deliver(task, step, known),
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
        let texts = text.map(|text| (subject.site.path.clone(), text));
        self.by_key.insert(key.clone(), number);
        self.queues[subject.repository].push_back(number);
        self.runs.push(Run {
            key,
            errand: Errand {
                command: subject.command.clone(),
                texts: texts.into_iter().collect(),
                ..Errand::default()
            },
            repository: subject.repository,
            waiting: vec![(task, step)],
        });
    }

    /// A run has come to its end.
    fn finish(&mut self, number: usize, outcome: Result<Result<Outcome, Broken>>) {
        self.running -= 1;
        let repository = self.runs[number].repository;
        self.making[repository] = Making::Ready;
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
        if verdict.status == Status::EnvironmentBroken && matches!(step, Step::Truth(_)) {
            let broken = Broken {
                reason: verdict.reason,
                output: tail(&outcome.output, OUTPUT_TAIL).to_owned(),
            };
            self.break_repository(repository, &broken);
            self.runs[number].waiting = waiting;
            return self.break_run(number, &broken);
        }
        let record = logged(verdict, &outcome, self.runs[number].key.clone());
        for (task, step) in waiting {
            self.deliver(task, step, record.clone());
        }
    }

    /// A step has its result: it is logged, and the next step asked for.
    fn deliver(&mut self, task: usize, step: Step, result: Record) {
        self.steps.0 += 1;
        let truth = self.states[task].passed;
        let (mut status, mut reason) = (result.status, result.reason.clone());
        let (is_lasting, passed) = (result.is_lasting, result.passed);
        match (step, status) {
            _ if !is_lasting => {}
            // The truth's tests could be run: what keeps these from running is their text.
            (Step::Planted | Step::Sample(_), Status::EnvironmentBroken) => {
                status = Status::Error;
            }
            // A text that ends the run, or has tests skipped, passes those that are left.
            (Step::Sample(_), Status::Pass) => {
                if let (Some(passed), Some(truth)) = (passed, truth)
                    && passed < truth
                {
                    status = Status::Fail;
                    reason = format!("{passed} tests passed, {truth} with the truth");
                }
            }
            _ => {}
        }
        let (kind, sample) = match step {
            Step::Truth(turn) => (Kind::Truth, turn),
            Step::Planted => (Kind::Planted, 0),
            Step::Sample(sample) => (Kind::Prediction, sample),
        };
        let record = Record {
            status,
            reason: reason.clone(),
            ..result
        };
        let record = record.of(&self.tasks.tasks[task], kind, sample);
        if let Err(error) = self.log.append(&record) {
            self.failed.get_or_insert(error);
            return;
        }
        match step {
            Step::Truth(turn) if status != Status::Pass => {
                let again = if turn > 0 { " when run again" } else { "" };
                self.exclude(
                    task,
                    Some(status),
                    in_words(&format!("its truth does not pass{again}"), status, &reason),
                );
            }
            Step::Truth(turn) => {
                let fewest = [truth, passed].into_iter().flatten().min();
                self.states[task].passed = fewest;
                let next = match turn + 1 < self.settings.oracle_runs {
                    true => Step::Truth(turn + 1),
                    false => Step::Planted,
                };
                self.request(task, next);
            }
            Step::Planted if !is_lasting || !matches!(status, Status::Fail | Status::Error) => {
                let what = match status {
                    Status::Pass => {
                        "its tests pass with a failure planted before the hole".to_owned()
                    }
                    _ => in_words(
                        "its tests do not fail with a failure planted before the hole",
                        status,
                        &reason,
                    ),
                };
                self.exclude(task, Some(status), what);
            }
            Step::Planted => {
                let count = self.samples[task].len();
                self.states[task].samples = vec![None; count];
                (0..count).for_each(|sample| self.request(task, Step::Sample(sample)));
            }
            Step::Sample(sample) => self.states[task].samples[sample] = Some((status, reason)),
        }
    }

    fn exclude(&mut self, task: usize, status: Option<Status>, reason: String) {
        self.states[task].excluded = Some(Exclusion { status, reason });
    }

    /// All that waits for a repository whose tests cannot be run.
    fn break_repository(&mut self, repository: usize, broken: &Broken) {
        self.broken[repository].get_or_insert_with(|| broken.clone());
        for number in std::mem::take(&mut self.queues[repository]) {
            self.break_run(number, broken);
        }
    }

    fn break_run(&mut self, number: usize, broken: &Broken) {
        for (task, step) in std::mem::take(&mut self.runs[number].waiting) {
            self.break_off(task, step, broken);
        }
    }

    fn break_off(&mut self, task: usize, step: Step, broken: &Broken) {
        self.steps.0 += 1;
        match step {
            // Its oracle was sound; the environment broke later.
            Step::Sample(sample) => {
                let status = (Status::EnvironmentBroken, broken.reason.clone());
                self.states[task].samples[sample] = Some(status);
            }
            _ => {
                let reason = format!("its tests cannot be run: {}", broken.reason);
                self.exclude(task, Some(Status::EnvironmentBroken), reason);
            }
        }
    }

    fn into_execution(self) -> Execution {
        let result = |(of, state): (&crate::task::Task, State)| {
            let known = state.samples.into_iter().flatten();
            let (samples, reasons) = known.filter(|_| state.excluded.is_none()).unzip();
            TaskResult {
                row: of.row,
                line: of.line,
                task_id: of.id.clone(),
                repository: of.repository.clone(),
                samples,
                reasons,
                excluded: state.excluded,
            }
        };
        let mut broken: Vec<(String, Broken)> = Vec::new();
        for subject in self.subjects.iter().flatten() {
            if let Some(reason) = &self.broken[subject.repository]
                && broken
                    .iter()
                    .all(|(name, _)| *name != subject.repository_name)
            {
                broken.push((subject.repository_name.clone(), reason.clone()));
            }
        }
        Execution {
            tasks: self
                .tasks
                .tasks
                .iter()
                .zip(self.states)
                .map(result)
                .collect(),
            broken,
            runs: self.made,
            reused: self.steps.0.saturating_sub(self.made),
        }
    }
}

fn in_words(what: &str, status: Status, reason: &str) -> String {
    match reason {
        "" => format!("{what}: {status}"),
        reason => format!("{what}: {status}, {reason}"),
    }
}

/// The result of a run, for every step that waited for it.
pub(super) fn logged(
    Verdict {
        status,
        reason,
        passed,
        is_lasting,
    }: Verdict,
    outcome: &Outcome,
    key: String,
) -> Record {
    let round = |number: f64| (number * 1000.0).round() / 1000.0;
    Record {
        task_id: String::new(),
        row: 0,
        repository: String::new(),
        kind: Kind::Truth,
        sample: 0,
        status,
        reason,
        passed,
        is_lasting,
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
