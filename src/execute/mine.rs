//! Which tests notice a failure in which hole.
//!
//! For Python a first run of the whole suite has a mark in the place of each planted failure, all holes of a repository at
//! once, which notes the test that comes by. Other languages, and whoever gives a command that lists tests, begin with all
//! tests. Each of these candidates is then run alone with the planted failure, those that come by the fewest holes first,
//! until as many as are wanted have noticed it; they must pass with the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::command::{Template, Values};
use super::copies::{Copies, Errand, tail};
use super::guard::{Ended, Limits};
use super::log::{Kind, Log};
use super::run::{Settings, logged};
use super::subject::Subject;
use super::verdict::{Status, judge};
use crate::error::Result;
use crate::task::TaskSet;

/// The module that a marked run imports.
const PROBE: &str = include_str!("probe.py");
/// Where it lies in a copy, with what it notes.
const FOLDER: &str = ".repoformer-mining";
/// Candidates tried for each test that is wanted.
const TRIES: usize = 5;

/// How tests are mined.
#[derive(Debug, Clone)]
pub struct Mining {
    /// Tests kept a task, at most.
    pub max_tests: usize,
    /// The command of each repository, in their order, with the tests left open.
    pub templates: Vec<Template>,
    /// What runs the whole suite of each.
    pub suites: Vec<String>,
    /// What prints a repository's tests, one a line; needed where the language is not Python.
    pub list: Option<Template>,
    /// Seconds that a run of the whole suite may take.
    pub suite_seconds: f64,
}

/// What was found for one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mined {
    /// The task's 0-based place in its file.
    pub row: usize,
    /// 1-based line of its file, for messages.
    pub line: usize,
    /// Its id.
    pub task_id: String,
    /// The tests that notice a failure in its hole and pass with the truth.
    pub tests: Vec<String>,
    /// Why there is none.
    pub reason: Option<String>,
}

impl Mined {
    /// `{"task_id": …, "row": …, "tests": […]}`: a line of a map that can be read again.
    pub fn to_record(&self) -> Value {
        json!({"task_id": self.task_id, "row": self.row, "tests": self.tests})
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// In the order of the task file.
    pub tasks: Vec<Mined>,
    /// The places of the repositories whose tests cannot be looked at, and why.
    pub broken: Vec<(usize, String)>,
}

/// Mines the tests of all subjects; what is no subject has none, for the reason that it gives.
///
/// # Errors
/// Results cannot be read or appended, or no guard can be started.
pub fn mine(
    tasks: &TaskSet,
    subjects: &[Result<Subject, String>],
    mining: &Mining,
    (settings, copies): (&Settings, &Copies<'_>),
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Findings> {
    let log = Mutex::new(Log::open(&settings.results, &settings.forgotten)?);
    let work = Work {
        tasks,
        subjects,
        mining,
        settings,
        copies,
        log,
    };
    let count = mining.templates.len();
    let total = count + subjects.len();
    let done = AtomicUsize::new(0);
    let step = || progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
    let found = in_parallel(copies.workers(), count, |worker, repository| {
        let found = work.candidates(repository, worker);
        step();
        found
    })?;
    let mined = in_parallel(copies.workers(), subjects.len(), |worker, task| {
        let of = match &subjects[task] {
            Err(reason) => Ok((Vec::new(), Some(reason.clone()))),
            Ok(subject) => match &found[subject.repository] {
                Err(_) => Ok((
                    Vec::new(),
                    Some("its repository's tests cannot be looked at".into()),
                )),
                Ok(candidates) => work.noticing(task, subject, candidates, worker),
            },
        };
        step();
        of
    })?;
    let result =
        |(of, (tests, reason)): (&crate::task::Task, (Vec<String>, Option<String>))| Mined {
            row: of.row,
            line: of.line,
            task_id: of.id.clone(),
            tests,
            reason,
        };
    let broken = found.into_iter().enumerate();
    Ok(Findings {
        tasks: tasks.tasks.iter().zip(mined).map(result).collect(),
        broken: broken
            .filter_map(|(place, found)| Some((place, found.err()?)))
            .collect(),
    })
}

/// Does each of so many jobs on so many workers; the results in the jobs' order.
fn in_parallel<T: Send>(
    workers: usize,
    jobs: usize,
    job: impl Fn(usize, usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<T>>>> = Mutex::new((0..jobs).map(|_| None).collect());
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (next, results, job) = (&next, &results, &job);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= jobs {
                        return;
                    }
                    let result = job(worker, number);
                    results.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(result);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().flatten().collect()
}

/// The tests to try for each task, by its place; in the order in which they are tried.
type Candidates = BTreeMap<usize, Vec<String>>;

struct Work<'a> {
    tasks: &'a TaskSet,
    subjects: &'a [Result<Subject, String>],
    mining: &'a Mining,
    settings: &'a Settings,
    copies: &'a Copies<'a>,
    log: Mutex<Log>,
}

impl Work<'_> {
    /// The candidates of a repository's tasks.
    fn candidates(&self, repository: usize, worker: usize) -> Result<Result<Candidates, String>> {
        let mine = |task: &usize| {
            self.subjects[*task]
                .as_ref()
                .is_ok_and(|subject| subject.repository == repository)
        };
        let tasks: Vec<usize> = (0..self.subjects.len()).filter(mine).collect();
        if tasks.is_empty() {
            return Ok(Ok(Candidates::new()));
        }
        let marked = tasks
            .iter()
            .all(|task| self.tasks.tasks[*task].language().spec().has_pytest);
        match &self.mining.list {
            Some(list) => self.listed(list, repository, &tasks, worker),
            None if marked => self.reached(repository, &tasks, worker),
            None => Ok(Err(
                "its tests are not known; say what lists them with --list-tests-cmd".into(),
            )),
        }
    }

    /// All tests that a command lists, for each task.
    fn listed(
        &self,
        list: &Template,
        repository: usize,
        tasks: &[usize],
        worker: usize,
    ) -> Result<Result<Candidates, String>> {
        let name = &self.tasks.tasks[tasks[0]].repository;
        let list = list.fill(Values {
            repository: name,
            ..Values::default()
        });
        let errand = Errand {
            command: format!("mkdir -p {FOLDER} && ( {list} ) > {FOLDER}/tests"),
            collect: Some(format!("{FOLDER}/tests")),
            ..Errand::default()
        };
        Ok(self
            .suite(repository, worker, &errand)?
            .and_then(|(text, output)| {
                let tests: Vec<String> = text
                    .lines()
                    .map(|line| line.trim().to_owned())
                    .filter(|line| !line.is_empty())
                    .collect();
                match tests.is_empty() {
                    true => Err(format!(
                        "--list-tests-cmd lists no test: {}",
                        tail(output.trim(), 300)
                    )),
                    false => Ok(tasks.iter().map(|task| (*task, tests.clone())).collect()),
                }
            }))
    }

    /// The tests that come by each hole, from one marked run of the suite.
    fn reached(
        &self,
        repository: usize,
        tasks: &[usize],
        worker: usize,
    ) -> Result<Result<Candidates, String>> {
        let copy = match self.copies.of(repository, worker) {
            Ok(copy) => copy,
            Err(broken) => return Ok(Err(broken.reason.clone())),
        };
        let folder = copy.folder().join(FOLDER);
        let mut texts = self.marked(tasks);
        texts.push((format!("{FOLDER}/repoformer_probe.py"), PROBE.to_owned()));
        let mut path = folder.into_os_string();
        if let Some(own) = std::env::var_os("PYTHONPATH").filter(|own| !own.is_empty()) {
            path.push(":");
            path.push(own);
        }
        let errand = Errand {
            command: self.mining.suites[repository].clone(),
            texts,
            environment: vec![("PYTHONPATH".into(), path.to_string_lossy().into_owned())],
            collect: Some(format!("{FOLDER}/reached")),
        };
        Ok(self
            .suite(repository, worker, &errand)?
            .and_then(|(text, output)| match text.is_empty() {
                true => Err(format!(
                    "no test of the whole suite comes by any hole; it ends with: {}",
                    tail(output.trim(), 300)
                )),
                false => Ok(in_order(&text, tasks)),
            }))
    }

    /// A run of the whole suite: the file that it leaves, and what it prints.
    fn suite(
        &self,
        repository: usize,
        worker: usize,
        errand: &Errand,
    ) -> Result<Result<(String, String), String>> {
        let copy = match self.copies.of(repository, worker) {
            Ok(copy) => copy,
            Err(broken) => return Ok(Err(format!("{}\n{}", broken.reason, broken.output))),
        };
        let limits = Limits {
            wall_seconds: self.mining.suite_seconds,
            cpu_seconds: self.mining.suite_seconds * 64.0,
            ..self.settings.limits
        };
        let outcome = self.copies.run(copy, errand, limits)?;
        Ok(match (outcome.refused, outcome.ended) {
            (Some(reason), _) => Err(reason),
            (None, Ended::Exited) => Ok((outcome.collected.unwrap_or_default(), outcome.output)),
            (None, ended) => Err(format!(
                "a run of the whole suite was ended ({ended:?}); see --setup-timeout and the limits"
            )),
        })
    }

    /// The files of these tasks with a mark before every hole.
    fn marked(&self, tasks: &[usize]) -> Vec<(String, String)> {
        let mut files: BTreeMap<&str, Vec<(super::Planting, usize, &str)>> = BTreeMap::new();
        for &task in tasks {
            if let Ok(subject) = &self.subjects[task]
                && let Ok(planting) = subject.site.planting()
            {
                let site = &subject.site;
                files
                    .entry(&site.path)
                    .or_default()
                    .push((planting, task, site.text()));
            }
        }
        let mark = |(path, mut marks): (&str, Vec<(super::Planting, usize, &str)>)| {
            // From the end on, so that the places before stay where they are.
            marks.sort_by_key(|(planting, task, _)| (std::cmp::Reverse(planting.at), *task));
            let mut text = marks.first().map_or("", |(.., text)| text).to_owned();
            for (planting, task, _) in &marks {
                text = planting.insert(
                    &text,
                    &format!("__import__(\"repoformer_probe\").reach({task})"),
                );
            }
            (path.to_owned(), text)
        };
        files.into_iter().map(mark).collect()
    }

    /// The candidates that fail with a failure planted before the hole and pass with the truth.
    fn noticing(
        &self,
        task: usize,
        subject: &Subject,
        candidates: &Candidates,
        worker: usize,
    ) -> Result<(Vec<String>, Option<String>)> {
        let Some(candidates) = candidates.get(&task) else {
            return Ok((Vec::new(), Some("no test comes by its hole".into())));
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
            let status = self.one(task, subject, test, (Kind::Planted, turn), worker)?;
            if matches!(status, Status::Fail | Status::Error)
                && self.one(task, subject, test, (Kind::Truth, turn), worker)? == Status::Pass
            {
                kept.push(test.clone());
            }
        }
        let reason = format!(
            "none of {} tests notices a failure in its hole",
            candidates.len()
        );
        let reason = kept.is_empty().then_some(reason);
        Ok((kept, reason))
    }

    /// One test alone, with the truth or the planted failure; known where it was run before.
    fn one(
        &self,
        task: usize,
        subject: &Subject,
        test: &String,
        (kind, turn): (Kind, usize),
        worker: usize,
    ) -> Result<Status> {
        let of = &self.tasks.tasks[task];
        let command = self.mining.templates[subject.repository].fill(Values {
            tests: std::slice::from_ref(test),
            repository: &of.repository,
            task_id: &of.id,
            path: of.file_in_repository(),
        });
        let text = (kind == Kind::Planted).then_some(subject.planted.as_str());
        let copies = (self.copies, &self.settings.limits);
        let log = || self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let (Ok(key), Ok(copy)) = (
            subject.key_of(&command, text, 0, copies),
            self.copies.of(subject.repository, worker),
        ) else {
            return Ok(Status::EnvironmentBroken);
        };
        if let Some(known) = log().of_key(&key)? {
            return Ok(known.status);
        }
        let errand = Errand {
            command,
            texts: text
                .map(|text| (subject.site.path.clone(), text.to_owned()))
                .into_iter()
                .collect(),
            ..Errand::default()
        };
        let outcome = self.copies.run(copy, &errand, self.settings.limits)?;
        let verdict = judge(subject.runner, &outcome);
        let status = verdict.status;
        log().append(&logged(verdict, &outcome, key).of(of, kind, turn))?;
        Ok(status)
    }
}

/// Candidates from lines of `number<TAB>test`: tests that come by few holes are about them. A hole that is passed while
/// its file is loaded has every test for a candidate.
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
        let come_by = tests.iter().filter(|(_, holes)| holes.contains(&task));
        let mut found: Vec<String> = come_by.map(|(test, _)| (*test).to_owned()).collect();
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

    #[test]
    fn jobs_keep_their_order_on_any_number_of_workers() {
        for workers in [1, 2, 7] {
            let squares = in_parallel(workers, 20, |_, n| Ok(n * n)).unwrap();
            assert_eq!(squares, (0..20).map(|n| n * n).collect::<Vec<_>>());
        }
    }
}
