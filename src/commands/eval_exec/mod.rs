//! `eval --exec`: predictions judged by the repository's own tests.

mod samples;

use std::num::NonZero;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use repoformer_core::task::TaskSet;
use repoformer_evaluate::score::MissingPredictions;
use repoformer_execute as execute;
use repoformer_execute::guard::Limits;
use repoformer_execute::mine::{MiningSettings, mine};
use repoformer_execute::{
    Bench, BenchSettings, Commands, Copies, CopyFolders, ExecutionResults, ExecutionSettings,
    Status, Subject, Summaries, Template, TestMap, TestedPredictions, check_missing,
};
use repoformer_pipeline::{Experiment, check_any};
use repoformer_study::choices::{resampling, set_profile, warn_of_departures};
use repoformer_study::experiments::single;
use repoformer_text::message::Message;

use self::samples::samples;
use super::eval_output::write_with_manifest;
use super::parts;
use crate::commands::eval_args::{EvalArgs, ExecArgs, Isolation, Switch};
use crate::output::{self, fail, write_data};
use crate::settings::Settings;
use crate::table::{ScoreFormat, format_results, json_lines};

/// Program that starts the guard: the running one, even if its file was replaced meanwhile.
pub(super) const PROGRAM: &str = "/proc/self/exe";

pub(super) fn run(args: &EvalArgs, settings: &Settings) -> Result<()> {
    execute::guard::enter_scope();
    let exec = &args.exec;
    let is_lines = match args.format()? {
        ScoreFormat::Text | ScoreFormat::Jsonl => true,
        ScoreFormat::Json => args.format.is_none(),
        _ => false,
    };
    if exec.mine_tests && !is_lines {
        return fail(
            "--format cannot be used with --mine-tests, which always writes JSON lines for --tests",
            "leave --format out, and name the file .jsonl",
        );
    }
    let (experiment, settings) = single(settings)?;
    let (names, repos_dir) = (&experiment.repositories, &experiment.repos_dir);
    let tasks = taking_part(&experiment)?;
    let bench = Bench::open(PROGRAM.into(), exec.bench(&experiment)?, &output::tell)?;
    let ks = exec.pass_ks()?;
    let commands = exec.commands(&tasks)?;
    let subjects = execute::subjects(&tasks, names, repos_dir, &commands);
    let remarks = bench.remarks(&tasks, names, repos_dir, &commands, exec.mine_tests);
    remarks.into_iter().for_each(output::tell);
    let results = &bench.settings.execution.results;
    let given = [&args.predictions, &exec.tests].into_iter().flatten();
    // A file of settings may hold the key of a server.
    let files = settings.files();
    let answers = given.chain([&tasks.path, results, &args.output]).chain(&files);
    let answers: Vec<&Path> = answers.map(PathBuf::as_path).collect();
    let folders = CopyFolders {
        repos_dir,
        work_dir: &bench.settings.work_dir,
        cache: &experiment.layout.cache,
        answers: &answers,
    };
    let (setup, workers) = (bench.setup(names)?, rayon::current_num_threads());
    let copies = Copies::new(folders, names, &bench.guard, setup, workers)?;
    if exec.mine_tests {
        return mine_tests(args, &experiment, &tasks, &bench, &commands, &subjects, &copies);
    }
    warn_of_departures(&settings);
    let missing: MissingPredictions = args.missing.parse()?;
    let is_part = experiment.layout.shard.is_some();
    let mut manifest = bench.manifest(&tasks, names, repos_dir, &commands, &copies, is_part)?;
    manifest.setting("missing", missing.to_string());
    manifest.setting("pass_k", ks.clone());
    set_profile(&mut manifest, &settings);
    let resampling = resampling(&settings)?;
    let mut tested = Vec::new();
    for (name, samples) in samples(args, &settings, &experiment, &tasks, &mut manifest)? {
        check_missing(&tasks, &samples, missing)?;
        if missing == MissingPredictions::Skip {
            check_any(&experiment, name.as_ref(), &samples)?;
        }
        let execution =
            execute::run(&tasks, &subjects, &samples, &bench.settings.execution, &copies)?;
        let remarks = execution.remarks(&name, &tasks, results, commands.map.is_none());
        remarks.into_iter().for_each(output::tell);
        let summaries = Summaries::new(&execution, &ks, missing, &resampling);
        tested.push(TestedPredictions { name, execution, summaries });
    }
    let part = experiment.layout.shard.map(|shard| {
        let rows =
            |of: &TestedPredictions| of.execution.tasks.iter().map(|task| task.row).collect();
        let all = experiment.all_tasks().map_or(&tasks, |all| all);
        (shard, parts::positions(all, tested.iter().map(rows)))
    });
    let manifest = parts::of_part(manifest.to_record(), part);
    bench.write_manifest(&manifest, &tested, &output::tell)?;
    for TestedPredictions { name, summaries, .. } in &tested {
        summaries.remarks(name, missing, is_part).into_iter().for_each(output::tell);
    }
    let results = ExecutionResults {
        tested: &tested,
        ks: &ks,
        per_task: args.per_task,
        resampling: &resampling,
        manifest: &manifest,
    };
    write_with_manifest(args, &format_results(&results, args.format()?)?, &manifest)
}

/// Returns the tasks of the selected repositories.
fn taking_part(experiment: &Experiment) -> Result<TaskSet> {
    let Some(tasks) = &experiment.tasks else {
        bail!("--tasks is not set, so there is nothing to run")
    };
    let mut tasks = TaskSet::clone(tasks);
    tasks
        .tasks_mut()
        .retain(|task| experiment.repositories.binary_search(&task.repository).is_ok());
    Ok(tasks)
}

/// Writes a map of the tests that fail when a hole is broken.
fn mine_tests(
    args: &EvalArgs,
    experiment: &Experiment,
    tasks: &TaskSet,
    bench: &Bench,
    commands: &Commands,
    subjects: &[Result<Subject, Message>],
    copies: &Copies<'_>,
) -> Result<()> {
    let (names, exec) = (&experiment.repositories, &args.exec);
    let list = exec.list_tests_cmd.as_deref();
    let mining = MiningSettings::new(
        commands,
        names,
        &experiment.repos_dir,
        list.map(|text| Template::parse("list-tests-cmd", text)).transpose()?,
        exec.max_tests.map_or(10, NonZero::get),
        bench.settings.setup_seconds,
    )?;
    let findings = mine(tasks, subjects, &mining, &bench.settings.execution, copies)?;
    findings.remarks(names, tasks).into_iter().for_each(output::tell);
    write_data(&args.output, json_lines(findings.tasks_with_tests().map(|mined| mined.to_record())))
}

impl ExecArgs {
    /// Returns the folders, limits, isolation and setup of test runs.
    fn bench(&self, experiment: &Experiment) -> Result<BenchSettings> {
        let paths = experiment.paths();
        let seconds = |name: &str, value: Option<f64>, default: f64| match value.unwrap_or(default)
        {
            value if value > 0.0 && value.is_finite() => Ok(value),
            _ => fail(format!("--{name} must be more than 0 seconds"), "give a larger number"),
        };
        let wall_seconds = seconds("timeout", self.timeout, 60.0)?;
        let limits = Limits {
            wall_seconds,
            cpu_seconds: seconds("cpu-limit", self.cpu_limit, 4.0 * wall_seconds)?,
            memory_mb: self.memory_limit.map_or(4096, NonZero::get),
            disk_mb: self.disk_limit.map_or(1024, NonZero::get),
            processes: self.process_limit.map_or(256, NonZero::get),
        };
        Ok(BenchSettings {
            execution: ExecutionSettings {
                limits,
                oracle_runs: self.oracle_runs.map_or(1, NonZero::get),
                results: self.exec_results.clone().unwrap_or_else(|| paths.exec_results()),
                forgotten: self.forgotten()?,
            },
            work_dir: self.work_dir.clone().unwrap_or_else(|| paths.exec_copies()),
            setup_command: self.setup_cmd.clone(),
            setup_seconds: seconds("setup-timeout", self.setup_timeout, 1800.0)?,
            isolation: match self.isolation {
                None | Some(Isolation::Required) => execute::Isolation::Required,
                Some(Isolation::Auto) => execute::Isolation::Auto,
                Some(Isolation::Off) => execute::Isolation::Off,
            },
            network: self.network == Some(Switch::On),
        })
    }

    /// Returns the statuses whose runs are repeated.
    fn forgotten(&self) -> Result<Vec<Status>> {
        if self.rerun.iter().any(|name| name == "all") {
            return Ok(Status::ALL.into());
        }
        let statuses: Result<Vec<Status>, _> = self.rerun.iter().map(|name| name.parse()).collect();
        Ok(statuses?)
    }

    /// Returns the commands that run the tests of tasks.
    fn commands(&self, tasks: &TaskSet) -> Result<Commands> {
        let map = match &self.tests {
            Some(path) => {
                let (read, problems) = TestMap::read(path, tasks)?;
                output::problems(&problems);
                output::warn_of_numbers(read.numbered.warning(path.display(), None));
                Some(read)
            }
            // Tests are mined.
            None if self.mine_tests => None,
            None => TestMap::of_tasks(tasks)?,
        };
        let test = self.test_cmd.as_deref();
        let test = test.map(|text| Template::parse("test-cmd", text)).transpose()?;
        let runner = self.runner.as_deref().map(str::parse).transpose()?.unwrap_or_default();
        Ok(Commands::new(test, map, runner)?)
    }

    /// Returns the distinct k of pass@k in ascending order.
    fn pass_ks(&self) -> Result<Vec<usize>> {
        let mut ks = self.pass_k.clone();
        if ks.contains(&0) {
            return fail("--pass-k cannot be 0", "give numbers of at least 1");
        }
        if ks.is_empty() {
            ks.push(1);
        }
        ks.sort_unstable();
        ks.dedup();
        Ok(ks)
    }
}
