//! `--mine-tests`: the tests that fail when a hole is broken.

use anyhow::{Error, Result};
use repoformer_core::task::TaskSet;
use repoformer_execute::mine::{Mining, mine};
use repoformer_execute::{Commands, Copies, Subject, Template, Values};
use repoformer_pipeline::Experiment;
use repoformer_text::message;
use repoformer_text::message::Message;

use super::bench::Bench;
use super::messages::list_tasks;
use crate::commands::eval_args::EvalArgs;
use crate::output::{self, fail, write_data};
use crate::table::json_lines;

/// Writes a map of the tests that fail when a hole is broken.
pub(super) fn mine_tests(
    args: &EvalArgs,
    experiment: &Experiment,
    tasks: &TaskSet,
    bench: &Bench,
    commands: &Commands,
    subjects: &[Result<Subject, Message>],
    copies: &Copies<'_>,
) -> Result<()> {
    let exec = &args.exec;
    let names = experiment.repositories.iter();
    let templates = names.map(|name| commands.template(&experiment.repos_dir.join(name)));
    let templates: Vec<Template> = templates.collect::<Result<_, _>>().map_err(Error::new)?;
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
        list: match &exec.list_tests_cmd {
            Some(text) => Some(Template::parse("list-tests-cmd", text)?),
            None => None,
        },
        suite_seconds: bench.setup_seconds,
    };
    let mined = mine(tasks, subjects, &mining, &bench.settings, copies)?;
    for (place, reason) in &mined.broken {
        let name = &experiment.repositories[*place];
        output::failed(message![format!("{name}: its tests cannot be listed: "), reason]);
    }
    let found: Vec<_> = mined.tasks.iter().filter(|mined| !mined.tests.is_empty()).collect();
    let lost: Vec<_> = (mined.tasks.iter())
        .filter_map(|mined| Some((mined.line, &*mined.task_id, mined.reason.as_ref()?)))
        .collect();
    if !lost.is_empty() {
        let (count, all) = (lost.len(), mined.tasks.len());
        output::failures(count);
        output::warning(format!(
            "{count} of {all} tasks have no test that fails when their hole is broken"
        ));
        list_tasks(tasks, lost);
    }
    let tests: usize = found.iter().map(|mined| mined.tests.len()).sum();
    output::note(format!("mine tests: {tests} tests of {} tasks", found.len()));
    if found.is_empty() {
        output::failed("no test was found for any task");
    }
    write_data(&args.output, json_lines(found.iter().map(|mined| mined.to_record())))
}
