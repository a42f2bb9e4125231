//! Sets up the environment in which tests run: folders, limits, isolation and setup, and the manifest that records them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use repoformer_core::repository::corpus::is_test_file;
use repoformer_core::task::TaskSet;
use repoformer_store::artifact::write_file;
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_store::manifest::{self, Manifest};
use repoformer_store::remark::Remark;
use repoformer_store::seal::seal;
use repoformer_text::counts::subject;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde_json::{Map, Value, json};

use super::command::{Template, Values, default_test_command};
use super::copies::{Copies, Setup};
use super::guard::Guard;
use super::results::TestedPredictions;
use super::run::ExecutionSettings;
use super::subject::Commands;

/// Isolation that runs must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Complete isolation; otherwise nothing is run.
    #[default]
    Required,
    /// As much isolation as the system allows.
    Auto,
    /// No isolation.
    Off,
}

/// Settings of a [`Bench`].
#[derive(Debug, Clone)]
pub struct BenchSettings {
    /// Settings of each run.
    pub execution: ExecutionSettings,
    /// Folder for the copies of repositories.
    pub work_dir: PathBuf,
    /// Command that prepares a copy; `{repository}` is replaced by the repository's name.
    pub setup_command: Option<String>,
    /// Time limit of the setup, in seconds.
    pub setup_seconds: f64,
    /// Isolation of runs.
    pub isolation: Isolation,
    /// True if tests may use the network.
    pub network: bool,
}

/// Environment in which tests can run.
#[derive(Debug)]
pub struct Bench {
    /// Settings of the bench.
    pub settings: BenchSettings,
    /// Guard that runs commands.
    pub guard: Guard,
}

impl Bench {
    /// Creates the folder of copies, and tests how far runs can be isolated. `program` is the program that starts the guard.
    ///
    /// # Errors
    /// The folder cannot be created, no guard can be started, or runs cannot be isolated as required.
    pub fn open(program: OsString, settings: BenchSettings, tell: &dyn Fn(Remark)) -> Result<Self> {
        let work_dir = &settings.work_dir;
        files::create_dir_all(work_dir)
            .map_err(|e| Error::writing(work_dir, "create this folder for copies", e))?;
        let trial = files::canonicalize(work_dir)
            .map_err(|e| Error::reading(work_dir, "find this folder", e))?;
        let isolation = settings.isolation;
        let guard = Guard::try_out(program, &trial, isolation != Isolation::Off, settings.network)?;
        let open = &guard.enclosure.open;
        if isolation == Isolation::Required && !open.is_empty() {
            return Err(Error::from_refusal(
                message!["runs cannot be isolated here: ", Message::join(open.clone(), "; ")],
                message!["run them with ", UserChoice::IsolationAuto],
            ));
        }
        open.iter().for_each(|part| tell(Remark::Warning(message!["exec: ", part])));
        let notes = guard.enclosure.notes.iter();
        notes.for_each(|part| tell(Remark::Note(format!("exec: {part}").into())));
        Ok(Self { settings, guard })
    }

    /// Returns the commands that set up the copies of these repositories.
    ///
    /// # Errors
    /// The setup command has an unknown placeholder, or a placeholder for a property of a task.
    pub fn setup(&self, repositories: &[String]) -> Result<Setup> {
        let mut commands = vec![None; repositories.len()];
        if let Some(text) = &self.settings.setup_command {
            let template = Template::parse("setup-cmd", text)?;
            if ["tests", "task_id", "path"].iter().any(|place| template.names(place)) {
                return Err(Error::from_refusal(
                    message![
                        "the ",
                        UserChoice::SetupCommand,
                        " runs once per repository, not per task"
                    ],
                    "use only {repository}, not {tests}, {task_id} or {path}",
                ));
            }
            for (command, name) in commands.iter_mut().zip(repositories) {
                let values = Values { repository: name, ..Values::default() };
                *command = Some(template.fill(values));
            }
        }
        Ok(Setup { commands, seconds: self.settings.setup_seconds })
    }

    /// Returns the remarks before tests are run or mined: on isolation, commands chosen by default, the results file, and holes in test
    /// code.
    pub fn remarks(
        &self,
        tasks: &TaskSet,
        repositories: &[String],
        repos_dir: &Path,
        commands: &Commands,
        is_mining: bool,
    ) -> Vec<Remark> {
        let enclosure = self.guard.enclosure.describe();
        let mut remarks = vec![Remark::Detail(format!("exec: {enclosure}").into())];
        for name in repositories.iter().filter(|_| commands.test.is_none()) {
            if let Some(command) = default_test_command(&repos_dir.join(name)) {
                remarks.push(Remark::Note(message![
                    format!("exec: {name}: the "),
                    UserChoice::TestCommand,
                    format!(" is `{command}`")
                ]));
            }
        }
        if commands.map.is_none() && !is_mining {
            remarks.push(Remark::Note(message![
                "exec: each task runs all tests of its repository; to run fewer, pass the ",
                UserChoice::TestsOfTasks
            ]));
        }
        let results = self.settings.execution.results.display();
        remarks.push(Remark::Note(message![
            format!(
                "exec: results are appended to {results}; tests with known results run again only with "
            ),
            UserChoice::RepeatedRuns
        ]));
        let in_tests = tasks.tasks().iter().filter(|task| is_test_file(task.file_in_repository()));
        if let count @ 1.. = in_tests.count() {
            let holes = subject(count, "task", ["has its hole", "have their hole"]);
            let warning = format!("exec: {holes} in test code, and an empty test passes");
            remarks.push(Remark::Warning(warning.into()));
        }
        remarks
    }

    /// Returns the manifest of all results. It does not depend on the time or the number of workers, and with `is_part` it is the same for
    /// all shards.
    ///
    /// # Errors
    /// An input cannot be read.
    pub fn manifest(
        &self,
        tasks: &TaskSet,
        repositories: &[String],
        repos_dir: &Path,
        commands: &Commands,
        copies: &Copies<'_>,
        is_part: bool,
    ) -> Result<Manifest> {
        let shown = |name: &String| match &commands.test {
            Some(template) => template.to_string(),
            None => default_test_command(&repos_dir.join(name)).unwrap_or_default().to_owned(),
        };
        let mut manifest = Manifest::new("execution");
        let test: Value = match &commands.test {
            Some(template) if is_part => template.to_string().into(),
            None if is_part => Value::Null,
            _ => {
                let each = repositories.iter().map(|name| (name.clone(), shown(name).into()));
                Value::Object(each.collect())
            }
        };
        let BenchSettings { execution, setup_command, .. } = &self.settings;
        manifest.setting("test_cmd", test);
        manifest.setting("setup_cmd", setup_command.clone());
        manifest.setting("runner", json!(commands.runner));
        manifest.setting("limits", json!(execution.limits));
        manifest.setting("oracle_runs", execution.oracle_runs);
        manifest.setting("isolation", json!(self.guard.enclosure));
        manifest.input("tasks", &tasks.path)?;
        if let Some(map) = &commands.map {
            manifest.input("tests", &map.path)?;
        }
        for (place, name) in repositories.iter().enumerate().filter(|_| !is_part) {
            // An unreadable repository is reported when its tests are run.
            if let Ok(digest) = copies.digest(place) {
                manifest.digest(&format!("repository.{name}"), &digest);
            }
        }
        Ok(manifest)
    }

    /// Writes the manifest of each set of predictions next to the results, with the number of results.
    ///
    /// # Errors
    /// The manifest cannot be written. A damaged existing one is replaced, with a warning.
    pub fn write_manifest(
        &self,
        manifest: &Value,
        tested: &[TestedPredictions],
        tell: &dyn Fn(Remark),
    ) -> Result<()> {
        let path = self.settings.execution.results.with_extension("manifest.json");
        let mut all = manifest::read(&path).unwrap_or_else(|damage| {
            tell(Remark::Warning(damage.message().then("; written anew")));
            Map::new()
        });
        for TestedPredictions { name, execution, .. } in tested {
            let mut record = manifest.clone();
            // The number of runs made depends on interruptions, so it includes reused results.
            record["runs"] = json!(execution.runs + execution.reused);
            all.insert(name.clone(), record);
        }
        write_file(&path, &seal(format!("{:#}\n", Value::Object(all)).into_bytes()))
    }
}
