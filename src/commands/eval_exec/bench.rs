//! Folders, limits, isolation and setup of test runs.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use repoformer_core::task::TaskSet;
use repoformer_execute as execute;
use repoformer_execute::guard::{Guard, Limits};
use repoformer_execute::{Commands, Copies, Setup, Status, Template, Values};
use repoformer_pipeline::Experiment;
use repoformer_store::files;
use repoformer_store::manifest::{self, Manifest};
use repoformer_text::message;
use repoformer_text::message::Message;
use serde_json::{Map, Value, json};

use super::messages::Named;
use crate::commands::eval_args::{ExecArgs, Isolation, Switch};
use crate::output::{self, fail, write_json};

/// Program that starts the guard: the running one, even if its file was replaced meanwhile.
pub(in crate::commands) const PROGRAM: &str = "/proc/self/exe";

/// Folders, limits, isolation and setup of test runs.
pub(super) struct Bench {
    pub(super) guard: Guard,
    pub(super) settings: execute::ExecutionSettings,
    pub(super) work_dir: PathBuf,
    pub(super) setup_seconds: f64,
    setup_command: Option<String>,
}

impl Bench {
    pub(super) fn new(exec: &ExecArgs, experiment: &Experiment) -> Result<Self> {
        let paths = experiment.paths();
        let work_dir = exec.work_dir.clone().unwrap_or_else(|| paths.exec_copies());
        let results = exec.exec_results.clone().unwrap_or_else(|| paths.exec_results());
        files::create_dir_all(&work_dir).map_err(|e| {
            anyhow!("{}: cannot create this folder for copies: {e}", work_dir.display())
        })?;
        let seconds = |name: &str, value: Option<f64>, default: f64| match value.unwrap_or(default)
        {
            value if value > 0.0 && value.is_finite() => Ok(value),
            _ => fail(format!("--{name} must be more than 0 seconds"), "choose another"),
        };
        let wall_seconds = seconds("timeout", exec.timeout, 60.0)?;
        let limits = Limits {
            wall_seconds,
            cpu_seconds: seconds("cpu-limit", exec.cpu_limit, 4.0 * wall_seconds)?,
            memory_mb: exec.memory_limit.unwrap_or(4096).max(1),
            disk_mb: exec.disk_limit.unwrap_or(1024).max(1),
            processes: exec.process_limit.unwrap_or(256).max(1),
        };
        let isolation = exec.isolation.unwrap_or(Isolation::Required);
        let network = exec.network == Some(Switch::On);
        let trial = work_dir.canonicalize()?;
        let guard = Guard::try_out(PROGRAM.into(), &trial, isolation != Isolation::Off, network)?;
        let open = &guard.enclosure.open;
        if isolation == Isolation::Required && !open.is_empty() {
            return fail(
                message!["runs cannot be isolated here: ", Message::join(open.clone(), "; ")],
                "--isolation auto runs them with what this system allows",
            );
        }
        for part in open {
            output::warning(message!["exec: ", part]);
        }
        for part in &guard.enclosure.notes {
            output::note(format!("exec: {part}"));
        }
        Ok(Self {
            guard,
            settings: execute::ExecutionSettings {
                limits,
                oracle_runs: exec.oracle_runs.unwrap_or(1).max(1),
                results,
                forgotten: forgotten(exec)?,
            },
            work_dir,
            setup_seconds: seconds("setup-timeout", exec.setup_timeout, 1800.0)?,
            setup_command: exec.setup_cmd.clone(),
        })
    }

    pub(super) fn setup(&self, exec: &ExecArgs, experiment: &Experiment) -> Result<Setup> {
        let mut commands = vec![None; experiment.repositories.len()];
        if let Some(text) = &exec.setup_cmd {
            let template = Template::parse("setup-cmd", text)?;
            if ["tests", "task_id", "path"].iter().any(|place| template.names(place)) {
                return fail(
                    "--setup-cmd runs once per repository, not per task",
                    "of {tests}, {task_id}, {path} and {repository} it can use only the last",
                );
            }
            for (command, name) in commands.iter_mut().zip(&experiment.repositories) {
                let values = Values { repository: name, ..Values::default() };
                *command = Some(template.fill(values));
            }
        }
        Ok(Setup { commands, seconds: self.setup_seconds })
    }

    /// Reports the commands that were chosen by default.
    pub(super) fn announce(&self, commands: &Commands, experiment: &Experiment, mining: bool) {
        output::detail(format!("exec: {}", self.guard.enclosure.describe()));
        if commands.test.is_none() {
            for name in &experiment.repositories {
                let folder = experiment.repos_dir.join(name);
                if let Some(command) = execute::default_test_command(&folder) {
                    output::note(format!(
                        "exec: {name}: tests are run with `{command}` (--test-cmd)"
                    ));
                }
            }
        }
        if commands.map.is_none() && !mining {
            output::note(
                "exec: each task runs all tests of its repository (--tests names fewer, --mine-tests finds them)",
            );
        }
        output::note(format!(
            "exec: results are appended to {}; known ones are not run again (--rerun)",
            self.settings.results.display()
        ));
    }

    /// Manifest of all results, independent of time and number of workers.
    pub(super) fn manifest(
        &self,
        experiment: &Experiment,
        commands: &Commands,
        tasks: &TaskSet,
        copies: &Copies<'_>,
    ) -> Result<Manifest> {
        let shown = |name: &String| match &commands.test {
            Some(template) => template.to_string(),
            None => {
                let default = execute::default_test_command(&experiment.repos_dir.join(name));
                default.unwrap_or_default().to_owned()
            }
        };
        let test: Map<String, Value> =
            experiment.repositories.iter().map(|name| (name.clone(), shown(name).into())).collect();
        let mut manifest = Manifest::new("execution");
        let is_shard = experiment.layout.shard.is_some();
        match &commands.test {
            // The parts of one whole have the same manifest.
            Some(template) if is_shard => manifest.setting("test_cmd", template.to_string()),
            None if is_shard => manifest.setting("test_cmd", Value::Null),
            _ => manifest.setting("test_cmd", test),
        }
        manifest.setting("setup_cmd", self.setup_command.clone());
        manifest.setting("runner", serde_json::to_value(commands.runner)?);
        manifest.setting("limits", serde_json::to_value(self.settings.limits)?);
        manifest.setting("oracle_runs", self.settings.oracle_runs);
        manifest.setting("isolation", serde_json::to_value(&self.guard.enclosure)?);
        manifest.input("tasks", &tasks.path)?;
        if let Some(map) = &commands.map {
            manifest.input("tests", &map.path)?;
        }
        for (place, name) in experiment.repositories.iter().enumerate().filter(|_| !is_shard) {
            // An unreadable repository is reported when its tests are run.
            if let Ok(digest) = copies.digest(place) {
                manifest.digest(&format!("repository.{name}"), &digest);
            }
        }
        Ok(manifest)
    }

    /// Writes the manifest of each set of predictions beside the results, with the number of results.
    pub(super) fn write_manifest(&self, manifest: &Value, named: &[Named]) -> Result<()> {
        let path = self.settings.results.with_extension("manifest.json");
        let mut all = manifest::read(&path).unwrap_or_else(|damage| {
            output::warning(format!("{damage}; written anew"));
            Map::new()
        });
        for (name, execution) in named {
            let mut record = manifest.clone();
            // How many were made depends on what was interrupted.
            record["runs"] = json!(execution.runs + execution.reused);
            all.insert(name.clone(), record);
        }
        Ok(write_json(&path, &all.into())?)
    }
}

/// Statuses whose runs are repeated.
fn forgotten(exec: &ExecArgs) -> Result<Vec<Status>> {
    if exec.rerun.iter().any(|name| name == "all") {
        return Ok(Status::ALL.into());
    }
    let statuses: Result<Vec<Status>, _> = exec.rerun.iter().map(|name| name.parse()).collect();
    Ok(statuses?)
}
