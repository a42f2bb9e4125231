//! `eval --exec`: predictions judged by the repository's own tests.

mod bench;
mod messages;
mod mining;
mod results;
mod samples;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use repoformer_core::repository::corpus::is_test_file;
use repoformer_core::task::TaskSet;
use repoformer_evaluate::score::Missing;
use repoformer_execute as execute;
use repoformer_execute::{Commands, Copies, CopyFolders, Runner, Summaries, Template, TestMap};
use repoformer_pipeline::{Experiment, check_any};
use repoformer_study::choices::{resampling, set_profile, warn_of_departures};
use repoformer_study::experiments::{of_kind, single};

use self::bench::Bench;
pub(super) use self::bench::PROGRAM;
use self::messages::{Named, report_execution, report_summaries};
use self::mining::mine_tests;
use self::results::Results;
use self::samples::samples;
use super::eval_output::write_with_manifest;
use super::parts;
use crate::commands::eval_args::{EvalArgs, ExecArgs};
use crate::output::{self, fail};
use crate::settings::Settings;
use crate::table::{ScoreFormat, written};

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
            "--format is for results, and --mine-tests writes the lines of JSON that --tests reads",
            "leave it out, and name the file as .jsonl",
        );
    }
    let experiment = single(settings)?;
    let tasks = taking_part(&experiment)?;
    let bench = Bench::new(exec, &experiment)?;
    let ks = pass_ks(exec)?;
    let commands = commands(exec, &tasks)?;
    let subjects =
        execute::subjects(&tasks, &experiment.repositories, &experiment.repos_dir, &commands);
    bench.announce(&commands, &experiment, exec.mine_tests);
    let in_tests = tasks.tasks().iter().filter(|task| is_test_file(task.file_in_repository()));
    if let count @ 1.. = in_tests.count() {
        output::warning(format!(
            "exec: {count} tasks have their hole in test code, where an empty test passes"
        ));
    }
    let setup = bench.setup(exec, &experiment)?;
    let given = [&args.predictions, &exec.tests].into_iter().flatten();
    let answers = given.chain([&tasks.path, &bench.settings.results, &args.output]);
    let answers: Vec<&Path> = answers.map(PathBuf::as_path).collect();
    let copies = Copies::new(
        CopyFolders {
            repos_dir: &experiment.repos_dir,
            work_dir: &bench.work_dir,
            cache: &experiment.layout.cache,
            answers: &answers,
        },
        &experiment.repositories,
        &bench.guard,
        setup,
        rayon::current_num_threads(),
    )?;
    if exec.mine_tests {
        return mine_tests(args, &experiment, &tasks, &bench, &commands, &subjects, &copies);
    }
    let of_kind = of_kind(settings, Some(&tasks));
    warn_of_departures(&of_kind);
    let missing: Missing = args.missing.parse()?;
    let mut manifest = bench.manifest(&experiment, &commands, &tasks, &copies)?;
    manifest.setting("missing", missing.to_string());
    manifest.setting("pass_k", ks.clone());
    set_profile(&mut manifest, &of_kind);
    let mut named = Vec::new();
    for (name, samples) in samples(args, settings, &experiment, &tasks, &mut manifest)? {
        check_missing(&tasks, &samples, missing)?;
        if missing == Missing::Skip {
            check_any(&experiment, name.as_ref(), &samples)?;
        }
        let execution = execute::run(&tasks, &subjects, &samples, &bench.settings, &copies)?;
        report_execution(
            &name,
            &execution,
            &tasks,
            &bench.settings.results,
            commands.map.is_none(),
        );
        named.push((name, execution));
    }
    let part = experiment.layout.shard.map(|shard| {
        let rows = |(_, execution): &Named| execution.tasks.iter().map(|task| task.row).collect();
        let all = experiment.all_tasks().map_or(&tasks, |all| all);
        (shard, parts::positions(all, named.iter().map(rows)))
    });
    let manifest = parts::of_part(manifest.to_record(), part);
    bench.write_manifest(&manifest, &named)?;
    let resampling = resampling(settings)?;
    let summary = |(_, execution): &Named| Summaries::of(execution, &ks, missing, &resampling);
    let summaries: Vec<Summaries> = named.iter().map(summary).collect();
    report_summaries(&named, &summaries, missing, experiment.layout.shard.is_some());
    let results = Results {
        named: &named,
        summaries: &summaries,
        ks: &ks,
        per_task: args.per_task,
        resampling: &resampling,
        manifest: &manifest,
    };
    write_with_manifest(args, &written(&results, args.format()?)?, &manifest)
}

/// Tasks of the selected repositories.
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

fn commands(exec: &ExecArgs, tasks: &TaskSet) -> Result<Commands> {
    let map = match &exec.tests {
        Some(path) => {
            let (read, problems) = TestMap::read(path, tasks)?;
            output::problems(&problems);
            output::warn_of_numbers(read.numbered.warning(path.display(), None));
            Some(read)
        }
        // Tests are looked for.
        None if exec.mine_tests => None,
        None => TestMap::of_tasks(tasks)?,
    };
    let mut test = None;
    if let Some(text) = &exec.test_cmd {
        let template = Template::parse("test-cmd", text)?;
        if map.is_some() && !template.names("tests") {
            let (names, way) = match &exec.tests {
                Some(_) => ("--tests names", ", or leave out --tests"),
                None => ("metadata.tests names", ""),
            };
            return fail(
                format!(
                    "{names} the tests of each task, but --test-cmd does not use them: `{text}`"
                ),
                format!("put {{tests}} in the place of the tests' names{way}"),
            );
        }
        test = Some(template);
    }
    let runner = exec.runner.as_deref().map_or(Ok(Runner::Auto), str::parse)?;
    Ok(Commands { test, map, runner })
}

fn pass_ks(exec: &ExecArgs) -> Result<Vec<usize>> {
    let mut ks = exec.pass_k.clone();
    if ks.contains(&0) {
        return fail("--pass-k cannot be 0", "choose numbers from 1");
    }
    if ks.is_empty() {
        ks.push(1);
    }
    ks.sort_unstable();
    ks.dedup();
    Ok(ks)
}

fn check_missing(tasks: &TaskSet, samples: &[Vec<String>], missing: Missing) -> Result<()> {
    let pairs = tasks.tasks().iter().zip(samples);
    let without: Vec<_> = pairs.filter(|(_, samples)| samples.is_empty()).collect();
    if let (Missing::Error, Some((task, _))) = (missing, without.first()) {
        let (count, all) = (without.len(), tasks.tasks().len());
        let reason = format!(
            "it has no prediction ({count} of {all} tasks have none); --missing zero counts such tasks as failed, --missing skip leaves them out"
        );
        return Err(tasks.error(task, reason).into());
    }
    Ok(())
}
