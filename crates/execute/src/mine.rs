//! Mining: which tests detect a failure in which hole.
//!
//! For Python, the whole suite runs once with a mark in place of each planted failure, all holes of a repository together;
//! the marks record which test reaches them. For other languages, or if a command lists the tests, all tests are candidates.
//! Each candidate is then run alone with the planted failure, those that reach the fewest holes first, until enough tests
//! have detected it; they must pass with the reference text.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use repoformer_core::task::TaskSet;
use repoformer_store::error::{Error, Result};
use repoformer_store::progress;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde_json::{Value, json};

use super::command::{Template, Values};
use super::copies::{Copies, tail};
use super::guard::{Ended, Limits, RunOrder};
use super::log::{Filling, Log};
use super::run::{ExecutionSettings, record_of};
use super::subject::Subject;
use super::verdict::{Status, judge};

/// Python module imported by a marked run.
const PROBE: &str = include_str!("probe.py");
/// Its folder in a copy, also for its output.
const FOLDER: &str = ".repoformer-mining";
/// Number of candidates tried for each wanted test.
const TRIES: usize = 5;

/// Settings of mining.
#[derive(Debug, Clone)]
pub struct Mining {
    /// Largest number of tests kept per task.
    pub max_tests: usize,
    /// Test command of each repository, in their order, with a placeholder for the tests.
    pub templates: Vec<Template>,
    /// Command that runs the whole suite of each repository.
    pub suites: Vec<String>,
    /// Command that prints a repository's tests, one a line; needed for languages other than Python.
    pub list: Option<Template>,
    /// Time limit of a run of the whole suite, in seconds.
    pub suite_seconds: f64,
}

/// Tests found for one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mined {
    /// 0-based position of the task in its file.
    pub row: usize,
    /// 1-based line of the task file, for messages.
    pub line: usize,
    /// Its id.
    pub task_id: String,
    /// Tests that detect a failure in the hole and pass with the reference text.
    pub tests: Vec<String>,
    /// Why there are none.
    pub reason: Option<Message>,
}

impl Mined {
    /// Returns `{"task_id": …, "row": …, "tests": […]}`, a line of a test map.
    pub fn to_record(&self) -> Value {
        json!({"task_id": self.task_id, "row": self.row, "tests": self.tests})
    }
}

/// Result of mining.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// In the order of the task file.
    pub tasks: Vec<Mined>,
    /// Indices of the repositories whose tests cannot be mined, and the reason.
    pub broken: Vec<(usize, Message)>,
}

/// Mines the tests of all subjects; a task that is not a subject has no tests, for the reason it gives.
///
/// # Errors
/// Results cannot be read or appended, or no guard can be started.
pub fn mine(
    tasks: &TaskSet,
    subjects: &[Result<Subject, Message>],
    mining: &Mining,
    settings: &ExecutionSettings,
    copies: &Copies<'_>,
) -> Result<Findings> {
    let log = Mutex::new(Log::open(&settings.results, &settings.forgotten)?);
    let work = Work { tasks, subjects, mining, settings, copies, log };
    let count = mining.templates.len();
    let progress = progress::Work::of("mine tests", "steps", count + subjects.len());
    let found = in_parallel(copies.workers, count, |worker, repository| {
        let found = work.candidates(repository, worker);
        progress.done(1);
        found
    })?;
    let mined = in_parallel(copies.workers, subjects.len(), |worker, task| {
        let mined = match &subjects[task] {
            Err(reason) => Ok((Vec::new(), Some(reason.clone()))),
            Ok(subject) => match &found[subject.repository] {
                Err(_) => Ok((Vec::new(), Some("its repository's tests cannot be mined".into()))),
                Ok(candidates) => work.detecting(task, subject, candidates, worker),
            },
        };
        progress.done(1);
        mined
    })?;
    let mined = tasks.tasks().iter().zip(mined).map(|(task, (tests, reason))| Mined {
        row: task.row,
        line: task.line,
        task_id: task.id.clone(),
        tests,
        reason,
    });
    let broken = found.into_iter().enumerate();
    Ok(Findings {
        tasks: mined.collect(),
        broken: broken.filter_map(|(place, found)| Some((place, found.err()?))).collect(),
    })
}

/// Runs `job(worker, number)` for each number below `jobs` on several workers; results are in the order of the numbers.
fn in_parallel<T: Send>(
    workers: usize,
    jobs: usize,
    job: impl Fn(usize, usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().map_err(|e| {
        Error::execution(format!("cannot start {workers} threads: {e}"), "choose fewer threads")
    })?;
    let worker = || rayon::current_thread_index().unwrap_or(0);
    let numbers = (0..jobs).into_par_iter().with_max_len(1);
    let results: Vec<Result<T>> =
        pool.install(|| numbers.map(|number| job(worker(), number)).collect());
    results.into_iter().collect()
}

/// Tests to try for each task, by its index, in the order in which they are tried.
type Candidates = BTreeMap<usize, Vec<String>>;

struct Work<'a> {
    tasks: &'a TaskSet,
    subjects: &'a [Result<Subject, Message>],
    mining: &'a Mining,
    settings: &'a ExecutionSettings,
    copies: &'a Copies<'a>,
    log: Mutex<Log>,
}

impl Work<'_> {
    /// Returns the candidates of a repository's tasks.
    fn candidates(&self, repository: usize, worker: usize) -> Result<Result<Candidates, Message>> {
        let mine = |task: &usize| {
            self.subjects[*task].as_ref().is_ok_and(|subject| subject.repository == repository)
        };
        let tasks: Vec<usize> = (0..self.subjects.len()).filter(mine).collect();
        if tasks.is_empty() {
            return Ok(Ok(Candidates::new()));
        }
        let marked =
            tasks.iter().all(|task| self.tasks.tasks()[*task].language().spec().has_pytest);
        match &self.mining.list {
            Some(list) => self.listed(list, repository, &tasks, worker),
            None if marked => self.reached(repository, &tasks, worker),
            None => Ok(Err(message![
                "how its tests are listed is unknown; a ",
                UserChoice::ListCommand,
                " is needed"
            ])),
        }
    }

    /// Returns all tests listed by a command, for each task.
    fn listed(
        &self,
        list: &Template,
        repository: usize,
        tasks: &[usize],
        worker: usize,
    ) -> Result<Result<Candidates, Message>> {
        let name = &self.tasks.tasks()[tasks[0]].repository;
        let list = list.fill(Values { repository: name, ..Values::default() });
        let texts = match self.test_files(tasks) {
            Ok(texts) => texts,
            Err(reason) => return Ok(Err(reason.into())),
        };
        let order = RunOrder {
            command: format!("mkdir -p {FOLDER} && ( {list} ) > {FOLDER}/tests"),
            texts,
            collect: Some(format!("{FOLDER}/tests")),
            ..RunOrder::default()
        };
        Ok(self.suite(repository, worker, order)?.and_then(|(text, output)| {
            let lines = text.lines().map(|line| line.trim().to_owned());
            let tests: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
            if tests.is_empty() {
                let end = tail(output.trim(), 300);
                let end = format!(" lists no test: {end}");
                return Err(message!["the ", UserChoice::ListCommand, end]);
            }
            Ok(tasks.iter().map(|task| (*task, tests.clone())).collect())
        }))
    }

    /// Returns the tests that reach each hole, from one marked run of the suite.
    fn reached(
        &self,
        repository: usize,
        tasks: &[usize],
        worker: usize,
    ) -> Result<Result<Candidates, Message>> {
        let copy = match self.copies.of(repository, worker) {
            Ok(copy) => copy,
            Err(broken) => return Ok(Err(broken.reason.clone())),
        };
        let folder = copy.folder.join(FOLDER);
        let mut texts = self.marked(tasks);
        match self.test_files(tasks) {
            Ok(files) => texts.extend(files),
            Err(reason) => return Ok(Err(reason.into())),
        }
        texts.push((format!("{FOLDER}/repoformer_probe.py"), PROBE.to_owned()));
        let mut path = folder.into_os_string();
        if let Some(own) = std::env::var_os("PYTHONPATH").filter(|own| !own.is_empty()) {
            path.push(":");
            path.push(own);
        }
        let order = RunOrder {
            command: self.mining.suites[repository].clone(),
            texts,
            environment: vec![("PYTHONPATH".into(), path.to_string_lossy().into_owned())],
            collect: Some(format!("{FOLDER}/reached")),
            ..RunOrder::default()
        };
        Ok(self.suite(repository, worker, order)?.and_then(|(text, output)| {
            if text.is_empty() {
                let end = tail(output.trim(), 300);
                return Err(format!(
                    "no test of the whole suite reaches any hole; it ends with: {end}"
                )
                .into());
            }
            Ok(in_order(&text, tasks))
        }))
    }

    /// Files of tests that the tasks of a repository bring along.
    fn test_files(&self, tasks: &[usize]) -> Result<Vec<(String, String)>, String> {
        let mut files: BTreeMap<&String, &String> = BTreeMap::new();
        for subject in tasks.iter().filter_map(|task| self.subjects[*task].as_ref().ok()) {
            for (path, text) in &subject.test_files {
                if files.insert(path, text).is_some_and(|before| before != text) {
                    return Err(format!("its tasks bring different texts of {path} along"));
                }
            }
        }
        Ok(files.into_iter().map(|(path, text)| (path.clone(), text.clone())).collect())
    }

    /// Runs the whole suite; returns the collected file and the output.
    fn suite(
        &self,
        repository: usize,
        worker: usize,
        order: RunOrder,
    ) -> Result<Result<(String, String), Message>> {
        let copy = match self.copies.of(repository, worker) {
            Ok(copy) => copy,
            Err(broken) => {
                return Ok(Err(message![&broken.reason, format!("\n{}", broken.output)]));
            }
        };
        let limits = Limits {
            wall_seconds: self.mining.suite_seconds,
            cpu_seconds: self.mining.suite_seconds * 64.0,
            ..self.settings.limits
        };
        let outcome = self.copies.run(copy, RunOrder { limits, ..order })?;
        Ok(match (outcome.refused, outcome.ended) {
            (Some(reason), _) => Err(reason.into()),
            (None, Ended::Exited) => {
                let text = outcome.collected.unwrap_or(Ok(String::new()));
                text.map(|text| (text, outcome.output)).map_err(Message::from)
            }
            (None, ended) => Err(message![
                format!("a run of the whole suite was stopped ({ended:?}); see the "),
                UserChoice::SetupTimeLimit,
                " and the other limits"
            ]),
        })
    }

    /// Returns the files of these tasks with a mark before every hole.
    fn marked(&self, tasks: &[usize]) -> Vec<(String, String)> {
        let mut files: BTreeMap<&str, Vec<(super::Planting, usize, &str)>> = BTreeMap::new();
        for &task in tasks {
            if let Ok(subject) = &self.subjects[task]
                && let Ok(planting) = subject.site.planting()
            {
                let site = &subject.site;
                files.entry(&site.path).or_default().push((planting, task, site.text()));
            }
        }
        let mark = |(path, mut marks): (&str, Vec<(super::Planting, usize, &str)>)| {
            // From the end backwards, so that earlier offsets stay valid.
            marks.sort_by_key(|(planting, task, _)| (std::cmp::Reverse(planting.at), *task));
            let mut text = marks.first().map_or("", |(.., text)| text).to_owned();
            for (planting, task, _) in &marks {
                text = planting
                    .insert(&text, &format!("__import__(\"repoformer_probe\").reach({task})"));
            }
            (path.to_owned(), text)
        };
        files.into_iter().map(mark).collect()
    }

    /// Returns the candidates that fail with a failure planted before the hole and pass with the reference text.
    fn detecting(
        &self,
        task: usize,
        subject: &Subject,
        candidates: &Candidates,
        worker: usize,
    ) -> Result<(Vec<String>, Option<Message>)> {
        let Some(candidates) = candidates.get(&task) else {
            return Ok((Vec::new(), Some("no test reaches its hole".into())));
        };
        let mut kept: Vec<String> = Vec::new();
        let most = match self.mining.list {
            Some(_) => usize::MAX,
            None => TRIES * self.mining.max_tests,
        };
        for (turn, test) in candidates.iter().take(most).enumerate() {
            if kept.len() == self.mining.max_tests {
                break;
            }
            let status = self.one(task, subject, test, Filling::Planted, turn, worker)?;
            if matches!(status, Status::Fail | Status::Error)
                && self.one(task, subject, test, Filling::Truth, turn, worker)? == Status::Pass
            {
                kept.push(test.clone());
            }
        }
        let reason = format!("none of {} tests detects a failure in its hole", candidates.len());
        let reason = kept.is_empty().then(|| reason.into());
        Ok((kept, reason))
    }

    /// Runs one test alone, with the reference text or the planted failure, unless its result is known.
    fn one(
        &self,
        task: usize,
        subject: &Subject,
        test: &String,
        kind: Filling,
        turn: usize,
        worker: usize,
    ) -> Result<Status> {
        let of = &self.tasks.tasks()[task];
        let command = self.mining.templates[subject.repository].fill(Values {
            tests: std::slice::from_ref(test),
            repository: &of.repository,
            task_id: &of.id,
            path: of.file_in_repository(),
        });
        let text = (kind == Filling::Planted).then_some(subject.planted.as_str());
        let limits = self.settings.limits;
        let log = || self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let (Ok(key), Ok(copy)) = (
            subject.key_of(&command, text, 0, self.copies, &limits),
            self.copies.of(subject.repository, worker),
        ) else {
            return Ok(Status::EnvironmentBroken);
        };
        if let Some(known) = log().of_key(&key)? {
            return Ok(known.status);
        }
        let order = subject.order(&command, text.map(str::to_owned), &limits);
        let outcome = self.copies.run(copy, order)?;
        let verdict = judge(subject.runner, &outcome);
        let status = verdict.status;
        log().append(&record_of(verdict, &outcome, key).of(of, kind, turn))?;
        Ok(status)
    }
}

/// Orders candidates from lines of `number<TAB>test`: tests that reach few holes are specific to them. A hole that is reached
/// while its file is loaded has every test as a candidate.
fn in_order(reached: &str, tasks: &[usize]) -> Candidates {
    let mut holes: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for line in reached.lines() {
        if let Some((hole, test)) = line.split_once('\t')
            && let Ok(hole) = hole.parse::<usize>()
            && !test.contains("_FailedTest")
        {
            holes.entry(test).or_default().insert(hole);
        }
    }
    let while_loading = holes.remove("").unwrap_or_default();
    let mut tests: Vec<(&str, &BTreeSet<usize>)> =
        holes.iter().map(|(test, holes)| (*test, holes)).collect();
    tests.sort_by_key(|(test, holes)| (holes.len(), *test));
    let mut candidates = Candidates::new();
    for &task in tasks {
        let reaching = tests.iter().filter(|(_, holes)| holes.contains(&task));
        let mut found: Vec<String> = reaching.map(|(test, _)| (*test).to_owned()).collect();
        if while_loading.contains(&task) {
            let others = tests.iter().filter(|(_, holes)| !holes.contains(&task));
            found.extend(others.map(|(test, _)| (*test).to_owned()));
        }
        if !found.is_empty() {
            candidates.insert(task, found);
        }
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_come_by_few_holes_come_first() {
        let found = in_order(
            "0\tt.b\n1\tt.b\n0\tt.c\n2\t\n0\tt.a\n1\tt.a\n2\tt.a\nnonsense\n9\tunittest.loader._FailedTest.x\n",
            &[0, 1, 2, 3],
        );
        assert_eq!(found[&0], ["t.c", "t.b", "t.a"]);
        assert_eq!(found[&1], ["t.b", "t.a"]);
        assert_eq!(found[&2], ["t.a", "t.c", "t.b"]); // passed while loading
        assert_eq!(found.get(&3), None);
    }
}
