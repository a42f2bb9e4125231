//! A task prepared for test runs: its file, its command, and its planted failure.

use std::path::Path;

use repoformer_core::repository::corpus::{identity, place_in, read_named};
use repoformer_core::task::{Task, TaskSet};
use repoformer_store::artifact::digest_parts;
use repoformer_store::error::{Error, Result};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};

use super::command::{NamedPaths, Template, Values, default_test_command};
use super::copies::Copies;
use super::guard::{Limits, RunOrder};
use super::site::Site;
use super::test_map::TestMap;
use super::verdict::Runner;

/// Task whose tests can be run.
#[derive(Debug)]
pub struct Subject {
    /// Index of the task's repository among the tested ones.
    pub repository: usize,
    /// Name of the task's repository.
    pub repository_name: String,
    /// The task's file, with the hole.
    pub site: Site,
    /// The file with a failure before the hole.
    pub planted: String,
    /// Test files that come with the task, by their paths in the repository.
    pub test_files: Vec<(String, String)>,
    /// Command that runs the task's tests.
    pub command: String,
    /// Paths that the user names in the command.
    pub named: NamedPaths,
    /// Runner by which the command's result is read.
    pub runner: Runner,
}

/// Commands that run the tests of tasks.
#[derive(Debug, Clone, Default)]
pub struct Commands {
    /// Test command, or `None` to choose one for each repository.
    pub test: Option<Template>,
    /// Tests of each task, or `None` for all tests of its repository.
    pub map: Option<TestMap>,
    /// Runner by which a command's result is read.
    pub runner: Runner,
}

impl Commands {
    /// Combines a test command with the tests of each task.
    ///
    /// # Errors
    /// Tests are given for each task, but the command does not use them.
    pub fn new(test: Option<Template>, map: Option<TestMap>, runner: Runner) -> Result<Self> {
        match (&test, &map) {
            (Some(template), Some(map)) if !template.names("tests") => Err(Error::from_refusal(
                message![
                    format!("{} names the ", map.path.display()),
                    UserChoice::TestsOfTasks,
                    ", but the ",
                    UserChoice::TestCommand,
                    format!(" does not use them: `{template}`")
                ],
                "put {tests} in place of the tests' names, or omit the tests of each task",
            )),
            _ => Ok(Self { test, map, runner }),
        }
    }

    /// Returns the test command for the repository in a folder: the given command or a default.
    ///
    /// # Errors
    /// No command is given and there is no default.
    pub fn template(&self, folder: &Path) -> Result<Template, Message> {
        match (&self.test, default_test_command(folder)) {
            (Some(template), _) => Ok(template.clone()),
            (None, Some(text)) => Template::parse("test command", text).map_err(|e| e.message()),
            (None, None) => Err(message![
                "how its tests are run is unknown; a ",
                UserChoice::TestCommand,
                " is needed"
            ]),
        }
    }
}

/// Prepares each task, or returns the reason why it cannot be tested.
pub fn subjects(
    tasks: &TaskSet,
    repositories: &[String],
    repos_dir: &Path,
    commands: &Commands,
) -> Vec<Result<Subject, Message>> {
    let templates: Vec<Result<Template, Message>> =
        repositories.iter().map(|name| commands.template(&repos_dir.join(name))).collect();
    let of = |task: &Task| -> Result<Subject, Message> {
        let repository = repositories
            .iter()
            .position(|name| *name == task.repository)
            .ok_or("its repository is not among the repositories to test")?;
        let template = templates[repository].clone()?;
        let site = site(task, repos_dir)?;
        let planted = site.plant_failure()?;
        let test_files = test_files(task, &site.path, repos_dir)?;
        let tests = match &commands.map {
            None => &[][..],
            Some(map) => {
                map.of(task).ok_or_else(|| format!("it has no tests in {}", map.path.display()))?
            }
        };
        let values = Values {
            tests,
            repository: &task.repository,
            task_id: &task.id,
            path: task.file_in_repository(),
        };
        values.check_options(&template)?;
        let command = template.fill(values);
        check_command(&command)?;
        Ok(Subject {
            repository,
            repository_name: task.repository.clone(),
            runner: commands.runner.of_command(&command),
            site,
            planted,
            test_files,
            command,
            named: template.named_paths(&task.repository),
        })
    };
    tasks.tasks().iter().map(of).collect()
}

/// Maximum length of a command, in bytes: the system accepts no argument of 128 KiB.
const LONGEST_COMMAND: usize = 120_000;

/// Checks that the system can run a command. If it could not, the failure would look like a broken copy for all tasks.
fn check_command(command: &str) -> Result<(), String> {
    if command.len() > LONGEST_COMMAND {
        return Err(format!(
            "its command has {} bytes, more than {LONGEST_COMMAND}",
            command.len()
        ));
    }
    if command.contains('\0') {
        Err("its command would contain a NUL character".into())
    } else {
        Ok(())
    }
}

/// Returns the test files in a task's `metadata.test_files`, `{path in the repository: text}`.
fn test_files(task: &Task, hole: &str, repos_dir: &Path) -> Result<Vec<(String, String)>, String> {
    let found = task.metadata.get("test_files").filter(|files| !files.is_null());
    let Some(found) = found else { return Ok(Vec::new()) };
    let files = found.as_object().ok_or(
        "its metadata.test_files is not an object of paths and texts, {\"path\": \"text\"}",
    )?;
    let place = |path: &str| place_in(repos_dir, &task.repository, path);
    let of_hole = identity(&place(hole)?);
    let file = |(path, text): (&String, &serde_json::Value)| {
        let text = text.as_str().ok_or_else(|| format!("its test file {path:?} has no text"))?;
        if identity(&place(path)?) == of_hole {
            Err(format!("its test file {path:?} is the file with the hole; give it another path"))
        } else {
            Ok((path.clone(), text.to_owned()))
        }
    };
    files.iter().map(file).collect()
}

/// Finds the hole of a task in its file.
///
/// # Errors
/// The file does not exist or does not match the task; the error is the reason.
pub fn site(task: &Task, repos_dir: &Path) -> Result<Site, String> {
    if task.file_in_repository().is_empty() {
        return Err("its record does not name a file".into());
    }
    Site::find(task, read_named(repos_dir, &task.path)?)
}

impl Subject {
    /// Returns the order for a run. `text` is the file's content, if the run changes the file.
    pub(super) fn order(&self, command: &str, text: Option<String>, limits: &Limits) -> RunOrder {
        RunOrder {
            command: command.to_owned(),
            named: self.named.clone(),
            texts: text
                .map(|text| (self.site.path.clone(), text))
                .into_iter()
                .chain(self.test_files.iter().cloned())
                .collect(),
            limits: *limits,
            reports: self.runner != Runner::ExitCode,
            ..RunOrder::default()
        }
    }

    /// Returns a digest of everything that a run depends on. `text` is the file's content, if the run changes the file; `turn`
    /// distinguishes runs of the same text.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub(super) fn key_of(
        &self,
        command: &str,
        text: Option<&str>,
        turn: usize,
        copies: &Copies<'_>,
        limits: &Limits,
    ) -> Result<String, String> {
        let digest = copies.digest(self.repository)?;
        let limits = serde_json::to_string(limits).unwrap_or_default();
        let setup = copies.setup_command(self.repository).unwrap_or_default();
        let runner = serde_json::to_string(&self.runner).unwrap_or_default();
        let turn = turn.to_string();
        let path = text.map_or("", |_| self.site.path.as_str());
        let tests = if self.test_files.is_empty() {
            None
        } else {
            Some(serde_json::to_string(&self.test_files).unwrap_or_default())
        };
        let parts = [
            "execution 3",
            &digest,
            setup,
            command,
            &runner,
            &limits,
            &copies.surroundings,
            path,
            text.unwrap_or_default(),
            &turn,
        ];
        Ok(digest_parts(parts.into_iter().chain(tests.as_deref())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_cannot_run_are_refused() {
        assert!(check_command(&"a".repeat(LONGEST_COMMAND)).is_ok());
        let error = check_command(&"a".repeat(LONGEST_COMMAND + 1)).unwrap_err();
        assert_eq!(error, "its command has 120001 bytes, more than 120000");
        assert!(check_command("a 'b\0'").unwrap_err().contains("NUL"));
    }

    #[test]
    fn a_command_uses_the_tests_that_are_named() {
        let mut task = Task::new("t".into(), "demo/a.py", 0, 0, "x = 1", "");
        task.metadata.insert("tests", serde_json::json!(["t.py"]));
        let tasks = TaskSet::new("tasks.jsonl".into(), vec![task]);
        let map = || TestMap::of_tasks(&tasks).unwrap();
        let new = |text: &str, map| {
            let template = Template::parse("test-cmd", text).unwrap();
            Commands::new(Some(template), map, Runner::Auto)
        };
        assert!(new("run {tests}", map()).is_ok() && new("run", None).is_ok());
        let error = new("run", map()).unwrap_err().to_string();
        let wanted = "tasks.jsonl names the tests of each task, but the test command does not use them: `run`";
        assert_eq!(error, wanted);
    }
}
