//! `--mine-tests`: the tests that fail when a hole is broken.

use anyhow::{Result, anyhow};
use repoformer::execute::mine::{Mining, mine};
use repoformer::execute::{Commands, Copies, Subject, Template, Values};
use repoformer::pipeline::Experiment;
use repoformer::task::TaskSet;

use super::bench::Bench;
use super::messages::list_tasks;
use crate::args::EvalArgs;
use crate::output::{self, fail, write_data};

/// Writes a map of the tests that fail when a hole is broken.
pub(super) fn mine_tests(
    args: &EvalArgs,
    (experiment, tasks): (&Experiment, &TaskSet),
    (bench, commands, subjects, copies): (
        &Bench,
        &Commands,
        &[Result<Subject, String>],
        &Copies<'_>,
    ),
) -> Result<()> {
    let exec = &args.exec;
    let templates: Result<Vec<Template>, String> = experiment
        .repositories
        .iter()
        .map(|name| commands.template(&experiment.repos_dir.join(name)))
        .collect();
    let templates = templates.map_err(|reason| anyhow!(reason))?;
    if let Some(fixed) = templates.iter().find(|template| !template.names("tests")) {
        return fail(
            format!("--test-cmd runs the same tests for every task: `{fixed}`"),
            "put {tests} in the place of the tests' names",
        );
    }
    let suite = |(name, template): (&String, &Template)| {
        let values = Values { repository: name, ..Values::default() };
        // The default stops at the first failure; here the whole suite is needed.
        let command = template.fill(values);
        if commands.test.is_none() { command.replace(" -x ", " ") } else { command }
    };
    let mining = Mining {
        max_tests: exec.max_tests.unwrap_or(10).max(1),
        suites: experiment.repositories.iter().zip(&templates).map(suite).collect(),
        templates,
        list: exec
            .list_tests_cmd
            .as_deref()
            .map(|text| Template::parse("list-tests-cmd", text))
            .transpose()?,
        suite_seconds: bench.setup_seconds,
    };
    let bar = output::bar("mine tests", tasks.tasks.len());
    let progress = |done: usize, known: usize| {
        bar.set_length(known as u64);
        bar.set_position(done as u64);
    };
    let mined = mine(tasks, subjects, &mining, &bench.settings, copies, &progress)?;
    bar.finish_and_clear();
    for (place, reason) in &mined.broken {
        output::failed(&format!(
            "{}: its tests cannot be listed: {reason}",
            experiment.repositories[*place]
        ));
    }
    let found: Vec<_> = mined.tasks.iter().filter(|mined| !mined.tests.is_empty()).collect();
    let lost = mined
        .tasks
        .iter()
        .filter_map(|mined| Some((mined.line, &*mined.task_id, mined.reason.as_deref()?)));
    let lost: Vec<_> = lost.collect();
    if !lost.is_empty() {
        let count = lost.len();
        output::failures(count);
        output::warning(format!(
            "{count} of {} tasks have no test that fails when their hole is broken",
            mined.tasks.len()
        ));
        list_tasks(tasks, lost);
    }
    let tests: usize = found.iter().map(|mined| mined.tests.len()).sum();
    output::note(format!("mine tests: {tests} tests of {} tasks", found.len()));
    if found.is_empty() {
        output::failed("no test was found for any task");
    }
    let lines: String = found.iter().map(|mined| mined.to_record().to_string() + "\n").collect();
    write_data(&args.output, lines.as_bytes())
}
