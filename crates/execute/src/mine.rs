//! Mining: finds the tests that detect a failure in a hole.
//!
//! For Python, the whole suite runs once with a mark in place of each planted failure, for all holes of a repository together;
//! the marks record which tests reach them. For other languages, or if a command lists the tests, all tests are candidates.
//! Each candidate then runs alone with the planted failure, starting with the tests that reach the fewest holes, until enough
//! tests have detected the failure; each of them must also pass with the reference text.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::HashMap;
use rayon::prelude::*;
use repoformer_core::task::TaskSet;
use repoformer_store::error::{Error, Result};
use repoformer_store::progress;
use repoformer_store::remark::{LeftOutTasks, Remark};
use repoformer_text::counts::{format_count, part};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde_json::{Value, json};

use super::command::{Template, Values};
use super::copies::{Copies, tail};
use super::guard::{Limits, RunEnd, RunOrder};
use super::log::{HoleText, Log};
use super::run::{ExecutionSettings, record_of};
use super::subject::{Commands, Subject};
use super::verdict::{Status, judge};

/// Python module imported by a marked run.
const PROBE: &str = include_str!("probe.py");
/// Folder of the module in a copy, also for its output.
const FOLDER: &str = ".repoformer-mining";
/// Number of candidates tried for each wanted test.
const TRIES: usize = 5;
/// Largest number of tests that a list command may print: each test may run once per task.
const MOST_LISTED: usize = 10_000;
/// Largest number of tests that may reach the holes of a repository.
const MOST_REACHING: usize = 100_000;

/// Settings for mining.
#[derive(Debug, Clone)]
pub struct MiningSettings {
    /// Largest number of tests kept per task.
    pub max_tests: usize,
    /// Test command of each repository, in the order of the repositories, with a placeholder for the tests.
    pub templates: Vec<Template>,
    /// Command that runs the whole suite of each repository.
    pub suites: Vec<String>,
    /// Command that prints a repository's tests, one per line; needed for languages other than Python.
    pub list: Option<Template>,
    /// Time limit of a run of the whole suite, in seconds.
    pub suite_seconds: f64,
}

impl MiningSettings {
    /// Creates settings with the test command of each repository, or its default. `list` prints a repository's tests, `max_tests` is the
    /// number of tests kept per task, and `suite_seconds` limits a run of the whole suite.
    ///
    /// # Errors
    /// A repository has no test command, or one that runs the same tests for every task.
    pub fn new(
        commands: &Commands,
        repositories: &[String],
        repos_dir: &Path,
        list: Option<Template>,
        max_tests: usize,
        suite_seconds: f64,
    ) -> Result<Self> {
        let template = |name: &String| {
            commands.template(&repos_dir.join(name)).map_err(|reason| {
                let hint = "pass a command with {tests} in place of the tests' names";
                Error::from_refusal(message![format!("{name}: "), reason], hint)
            })
        };
        let templates: Vec<Template> = repositories.iter().map(template).collect::<Result<_>>()?;
        if let Some(fixed) = templates.iter().find(|template| !template.names("tests")) {
            return Err(Error::from_refusal(
                message![
                    "the ",
                    UserChoice::TestCommand,
                    format!(" runs the same tests for every task: `{fixed}`")
                ],
                "put {tests} in place of the tests' names",
            ));
        }
        let suite = |(name, template): (&String, &Template)| {
            let values = Values { repository: name, ..Values::default() };
            // The default stops at the first failure, but mining needs the whole suite.
            let command = template.fill(values);
            if commands.test.is_none() { command.replace(" -x ", " ") } else { command }
        };
        let suites = repositories.iter().zip(&templates).map(suite).collect();
        Ok(Self { max_tests, templates, suites, list, suite_seconds })
    }
}

/// Tests found for one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinedTests {
    /// 0-based position of the task in its file.
    pub row: usize,
    /// 1-based line of the task file, for messages.
    pub line: usize,
    /// Id of the task.
    pub task_id: String,
    /// Tests that detect a failure in the hole and pass with the reference text.
    pub tests: Vec<String>,
    /// Reason why there are no tests.
    pub reason: Option<Message>,
}

impl MinedTests {
    /// Returns `{"task_id": …, "row": …, "tests": […]}`, a line of a test map.
    pub fn to_record(&self) -> Value {
        json!({"task_id": self.task_id, "row": self.row, "tests": self.tests})
    }
}

/// Result of mining.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// Results in the order of the task file.
    pub tasks: Vec<MinedTests>,
    /// Indices of the repositories whose tests cannot be mined, and the reasons.
    pub broken: Vec<(usize, Message)>,
}

impl Findings {
    /// Returns the tasks with tests.
    pub fn tasks_with_tests(&self) -> impl Iterator<Item = &MinedTests> {
        self.tasks.iter().filter(|mined| !mined.tests.is_empty())
    }

    /// Returns the remarks about these tasks, in repositories with these names: whose tests cannot be listed, which tasks have
    /// no tests, and how many tests were found.
    pub fn remarks(&self, repositories: &[String], tasks: &TaskSet) -> Vec<Remark> {
        let mut remarks = Vec::new();
        for (place, reason) in &self.broken {
            let start = format!("{}: its tests cannot be listed: ", repositories[*place]);
            remarks.push(Remark::Failed(message![start, reason]));
        }
        let lost = self.tasks.iter();
        let lost = lost.filter_map(|of| Some((of.line, &*of.task_id, of.reason.as_ref()?)));
        let mut lost = LeftOutTasks::new(Message::default(), &tasks.path, lost);
        if lost.count() > 0 {
            let (count, all) = (lost.count(), self.tasks.len());
            let count = part(count, all, "task", ["has", "have"]);
            lost.warning = format!("{count} no test that fails if the hole is broken").into();
            remarks.push(Remark::LeftOut(lost));
        }
        let (tests, found) = self
            .tasks_with_tests()
            .fold((0, 0), |(tests, found), of| (tests + of.tests.len(), found + 1));
        let (tests, of) = (format_count(tests as u64, "test"), format_count(found as u64, "task"));
        remarks.push(Remark::Note(format!("mine tests: {tests} of {of}").into()));
        if found == 0 {
            remarks.push(Remark::Failed("no test was found for any task".into()));
        }
        remarks
    }
}

/// Mines the tests of all subjects; a task that is not a subject has no tests, for the reason given there.
///
/// # Errors
/// Results cannot be read or appended, or no guard can be started.
pub fn mine(
    tasks: &TaskSet,
    subjects: &[Result<Subject, Message>],
    mining: &MiningSettings,
    settings: &ExecutionSettings,
    copies: &Copies<'_>,
) -> Result<Findings> {
    let log = Mutex::new(Log::open(&settings.results, &settings.forgotten)?);
    let work = Work { tasks, subjects, mining, settings, copies, log };
    let count = mining.templates.len();
    let progress = progress::Work::new("mine tests", "steps", count + subjects.len());
    let found = in_parallel(copies.workers, count, |worker, repository| {
        let found = work.candidates(repository, worker);
        progress.advance(1);
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
        progress.advance(1);
        mined
    })?;
    let mined = tasks.tasks().iter().zip(mined).map(|(task, (tests, reason))| MinedTests {
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

/// Candidates of each task, by its index.
type Candidates = BTreeMap<usize, TaskCandidates>;

/// Tests that may detect a failure in one task's hole.
#[derive(Debug, Clone)]
struct TaskCandidates {
    /// Tests to try, in this order. Tasks share the names.
    tests: Arc<[Arc<str>]>,
    /// Number of candidates, including candidates that are not tried.
    count: usize,
}

struct Work<'a> {
    tasks: &'a TaskSet,
    subjects: &'a [Result<Subject, Message>],
    mining: &'a MiningSettings,
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
            Some(list) => self.list_tests(list, repository, &tasks, worker),
            None if marked => self.find_reaching_tests(repository, &tasks, worker),
            None => Ok(Err(message![
                "how its tests are listed is unknown; a ",
                UserChoice::ListCommand,
                " is needed"
            ])),
        }
    }

    /// Returns all tests that a command lists, for each task.
    fn list_tests(
        &self,
        list: &Template,
        repository: usize,
        tasks: &[usize],
        worker: usize,
    ) -> Result<Result<Candidates, Message>> {
        let name = &self.tasks.tasks()[tasks[0]].repository;
        let named = list.named_paths(name);
        let list = list.fill(Values { repository: name, ..Values::default() });
        let texts = match self.test_files(tasks) {
            Ok(texts) => texts,
            Err(reason) => return Ok(Err(reason.into())),
        };
        let order = RunOrder {
            command: format!("mkdir -p {FOLDER} && ( {list} ) > {FOLDER}/tests"),
            named,
            texts,
            collect: Some(format!("{FOLDER}/tests")),
            ..RunOrder::default()
        };
        Ok(self.suite(repository, worker, order)?.and_then(|(text, output)| {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let tests: Arc<[Arc<str>]> = lines.take(MOST_LISTED + 1).map(Arc::from).collect();
            if tests.len() > MOST_LISTED {
                let end =
                    format!(" lists more than {MOST_LISTED} tests, and each may run once per task");
                return Err(message!["the ", UserChoice::ListCommand, end]);
            }
            if let Some(name) = tests.iter().find(|name| name.starts_with(['-', '@'])) {
                let end = format!(
                    " lists {:?}: a name that begins with a hyphen or @ could be taken for an option",
                    tail(name, 100)
                );
                return Err(message!["the ", UserChoice::ListCommand, end]);
            }
            if tests.is_empty() {
                let end = tail(output.trim(), 300);
                let end = format!(" lists no test: {end}");
                return Err(message!["the ", UserChoice::ListCommand, end]);
            }
            let candidates = TaskCandidates { count: tests.len(), tests };
            Ok(tasks.iter().map(|task| (*task, candidates.clone())).collect())
        }))
    }

    /// Returns the tests that reach each hole, from one marked run of the suite.
    fn find_reaching_tests(
        &self,
        repository: usize,
        tasks: &[usize],
        worker: usize,
    ) -> Result<Result<Candidates, Message>> {
        let copy = match self.copies.of(repository, worker) {
            Ok(copy) => copy,
            Err(broken) => return Ok(Err(broken.reason.clone())),
        };
        let name = &self.tasks.tasks()[tasks[0]].repository;
        let folder = copy.folder.join(FOLDER);
        let mut texts = self.mark_files(tasks);
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
            named: self.mining.templates[repository].named_paths(name),
            texts,
            environment: vec![("PYTHONPATH".into(), path.to_string_lossy().into_owned())],
            collect: Some(format!("{FOLDER}/reached")),
            ..RunOrder::default()
        };
        Ok(self.suite(repository, worker, order)?.and_then(|(text, output)| {
            if text.is_empty() {
                let end = tail(output.trim(), 300);
                return Err(format!(
                    "no test of the whole suite reaches any hole; the output ends with: {end}"
                )
                .into());
            }
            in_order(&text, tasks, TRIES * self.mining.max_tests).map_err(Message::from)
        }))
    }

    /// Returns the test files that come with the tasks of a repository.
    fn test_files(&self, tasks: &[usize]) -> Result<Vec<(String, String)>, String> {
        let mut files: BTreeMap<&String, &String> = BTreeMap::new();
        for subject in tasks.iter().filter_map(|task| self.subjects[*task].as_ref().ok()) {
            for (path, text) in &subject.test_files {
                if files.insert(path, text).is_some_and(|before| before != text) {
                    return Err(format!("its tasks have different texts for {path}"));
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
            (None, RunEnd::Exited) => {
                let text = outcome.collected.unwrap_or(Ok(String::new()));
                text.map(|text| (text, outcome.output)).map_err(Message::from)
            }
            (None, RunEnd::Unwritten) => Err(outcome.output.into()),
            (None, ended) => Err(message![
                format!("a run of the whole suite was stopped ({ended:?}); see the "),
                UserChoice::SetupTimeLimit,
                " and the other limits"
            ]),
        })
    }

    /// Returns the files of these tasks with a mark before every hole.
    fn mark_files(&self, tasks: &[usize]) -> Vec<(String, String)> {
        let mut files: BTreeMap<&str, Vec<(super::StatementPosition, usize, &str)>> =
            BTreeMap::new();
        for &task in tasks {
            if let Ok(subject) = &self.subjects[task]
                && let Ok(planting) = subject.site.planting()
            {
                let site = &subject.site;
                files.entry(&site.path).or_default().push((planting, task, site.text()));
            }
        }
        let mark = |(path, mut marks): (&str, Vec<(super::StatementPosition, usize, &str)>)| {
            // Insert from the end to the start, so that earlier offsets remain valid.
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

    /// Returns the candidates that fail with the planted failure and pass with the reference text.
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
        for (turn, test) in candidates.tests.iter().enumerate() {
            if kept.len() == self.mining.max_tests {
                break;
            }
            let status = self.one(task, subject, test, HoleText::Planted, turn, worker)?;
            if matches!(status, Status::Fail | Status::Error)
                && self.one(task, subject, test, HoleText::Truth, turn, worker)? == Status::Pass
            {
                kept.push(test.to_string());
            }
        }
        let reason = format!("none of {} tests detects a failure in its hole", candidates.count);
        let reason = kept.is_empty().then(|| reason.into());
        Ok((kept, reason))
    }

    /// Runs one test alone, with the reference text or the planted failure, unless its result is known.
    fn one(
        &self,
        task: usize,
        subject: &Subject,
        test: &str,
        kind: HoleText,
        turn: usize,
        worker: usize,
    ) -> Result<Status> {
        let of = &self.tasks.tasks()[task];
        let command = self.mining.templates[subject.repository].fill(Values {
            tests: &[test.to_owned()],
            repository: &of.repository,
            task_id: &of.id,
            path: of.file_in_repository(),
        });
        let text = (kind == HoleText::Planted).then_some(subject.planted.as_str());
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
        log().append(&record_of(verdict, &outcome, key).with_task(of, kind, turn))?;
        Ok(status)
    }
}

/// Orders candidates from lines of `number<TAB>test`: tests that reach few holes are specific to these, so they come first. If a hole is
/// reached while its file is loaded, every test is a candidate. The first `most` candidates of each task are kept.
///
/// # Errors
/// There are more tests than a suite can have; the error is text.
fn in_order(reached: &str, tasks: &[usize], most: usize) -> Result<Candidates, String> {
    let reaching = HoleTests::read(reached, tasks)?;
    let names: Vec<Arc<str>> = reaching.tests.iter().map(|(name, _)| Arc::from(*name)).collect();
    let mut ranks: HashMap<usize, Vec<usize>> = HashMap::default();
    for (rank, (_, holes)) in reaching.tests.iter().enumerate() {
        for &hole in holes {
            ranks.entry(hole).or_default().push(rank);
        }
    }
    let mut candidates = Candidates::new();
    for &task in tasks {
        let own = ranks.get(&task).map_or(&[][..], Vec::as_slice);
        let is_loaded = reaching.while_loading.binary_search(&task).is_ok();
        let count = if is_loaded { names.len() } else { own.len() };
        let all = if is_loaded { names.len() } else { 0 };
        let others = (0..all).filter(|rank| own.binary_search(rank).is_err());
        let first = own.iter().copied().chain(others).take(most);
        let tests = first.map(|rank| Arc::clone(&names[rank])).collect();
        if count > 0 {
            candidates.insert(task, TaskCandidates { tests, count });
        }
    }
    Ok(candidates)
}

/// Tests that reach holes of tasks.
struct HoleTests<'a> {
    /// Name of each test, and the holes that the test reaches, sorted. Tests that reach the fewest holes come first; ties are sorted by
    /// name.
    tests: Vec<(&'a str, Vec<usize>)>,
    /// Holes that are reached while their files are loaded, sorted.
    while_loading: Vec<usize>,
}

impl<'a> HoleTests<'a> {
    /// Reads lines of `number<TAB>test`; `tasks` must be sorted.
    fn read(reached: &'a str, tasks: &[usize]) -> Result<Self, String> {
        let mut of_test: HashMap<&str, Vec<usize>> = HashMap::default();
        let mut while_loading: Vec<usize> = Vec::new();
        for line in reached.lines() {
            if let Some((hole, test)) = line.split_once('\t')
                && let Ok(hole) = hole.parse::<usize>()
                && tasks.binary_search(&hole).is_ok()
                && !test.contains("_FailedTest")
            {
                let holes = match test {
                    "" => &mut while_loading,
                    _ => of_test.entry(test).or_default(),
                };
                if holes.last() != Some(&hole) {
                    holes.push(hole);
                }
            }
            if of_test.len() > MOST_REACHING {
                return Err(format!(
                    "it reports that more than {MOST_REACHING} tests of the whole suite reach its holes"
                ));
            }
        }
        for holes in of_test.values_mut().chain([&mut while_loading]) {
            holes.sort_unstable();
            holes.dedup();
            holes.shrink_to_fit();
        }
        let mut tests: Vec<(&str, Vec<usize>)> = of_test.into_iter().collect();
        tests.sort_unstable_by(|one, other| (one.1.len(), one.0).cmp(&(other.1.len(), other.0)));
        Ok(Self { tests, while_loading })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_come_by_few_holes_come_first() {
        let reached = "0\tt.b\n1\tt.b\n0\tt.c\n2\t\n0\tt.a\n1\tt.a\n2\tt.a\nnonsense\n7\tt.d\n\
                       2\tunittest.loader._FailedTest.x\n";
        let names = |most: usize, task: usize| {
            let found = in_order(reached, &[0, 1, 2, 3], most).unwrap();
            found.get(&task).map(|found| {
                let names: Vec<String> = found.tests.iter().map(|test| test.to_string()).collect();
                (names.join(" "), found.count)
            })
        };
        assert_eq!(names(9, 0), Some(("t.c t.b t.a".into(), 3)));
        assert_eq!(names(9, 1), Some(("t.b t.a".into(), 2)));
        assert_eq!(names(9, 2), Some(("t.a t.c t.b".into(), 3))); // reached while loading
        assert_eq!(names(2, 2), Some(("t.a t.c".into(), 3)));
        assert_eq!(names(9, 3), None);
    }

    #[test]
    fn a_suite_runs_all_tests_and_a_task_those_it_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["plain", "python"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("python/conftest.py"), "").unwrap();
        let mining = |test: Option<&str>, name: &str| {
            let test = test.map(|text| Template::parse("test-cmd", text).unwrap());
            let commands = Commands { test, ..Commands::default() };
            MiningSettings::new(&commands, &[name.to_owned()], folder.path(), None, 3, 9.0)
        };
        let suites = |test, name| mining(test, name).unwrap().suites;
        assert_eq!(suites(Some("run -x {repository} {tests}"), "plain"), ["run -x plain "]);
        let usual = &suites(None, "python")[0];
        assert!(usual.contains("pytest") && !usual.contains(" -x"), "{usual}");
        let refused = |test, name| mining(test, name).unwrap_err().to_string();
        assert!(refused(Some("run"), "plain").contains("the same tests for every task: `run`"));
        assert!(refused(None, "plain").starts_with("plain: how its tests are run is unknown"));
    }

    #[test]
    fn findings_say_which_tasks_have_no_test() {
        let mined = |line: usize, tests: &[&str]| MinedTests {
            row: line - 1,
            line,
            task_id: format!("t/{line}"),
            tests: tests.iter().map(|test| (*test).to_owned()).collect(),
            reason: tests.is_empty().then(|| "no test reaches it".into()),
        };
        let tasks = TaskSet::new("tasks.jsonl".into(), Vec::new());
        let said = |findings: Findings| -> Vec<String> {
            let remarks = findings.remarks(&["demo".to_owned()], &tasks);
            let word = |remark| match remark {
                Remark::Note(text) | Remark::Failed(text) => text.to_string(),
                Remark::LeftOut(tasks) => format!("{}: {:?}", tasks.warning, tasks.reasons[0].1),
                other => panic!("{other:?}"),
            };
            remarks.into_iter().map(word).collect()
        };
        let some = Findings { tasks: vec![mined(1, &["a", "b"]), mined(2, &[])], broken: vec![] };
        assert_eq!(
            said(some),
            [
                "1 of 2 tasks has no test that fails if the hole is broken: [\"t/2 (line 2)\"]",
                "mine tests: 2 tests of 1 task",
            ]
        );
        let none = Findings { tasks: Vec::new(), broken: vec![(0, "no list".into())] };
        assert_eq!(
            said(none),
            [
                "demo: its tests cannot be listed: no list",
                "mine tests: 0 tests of 0 tasks",
                "no test was found for any task",
            ]
        );
    }

    /// The code under test may write the list of tests itself.
    #[test]
    fn more_tests_than_a_suite_has_are_refused() {
        let reached: String = (0..MOST_REACHING + 1).map(|n| format!("0\tt{n}\n")).collect();
        let refused = in_order(&reached, &[0], 5).unwrap_err();
        assert!(refused.contains("more than 100000 tests"), "{refused}");
        let most = reached.trim_end().rsplit_once('\n').unwrap().0;
        let tasks: Vec<usize> = (0..1000).collect();
        let loaded: String = tasks.iter().map(|task| format!("{task}\t\n")).collect();
        let found = in_order(&format!("{loaded}{most}\n"), &tasks, 5).unwrap();
        assert!(found.values().all(|found| found.tests.len() == 5 && found.count == MOST_REACHING));
    }
}
