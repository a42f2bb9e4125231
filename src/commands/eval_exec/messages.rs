//! Messages of an execution: excluded tasks, broken repositories, missing predictions.

use std::path::Path;

use repoformer_core::task::TaskSet;
use repoformer_evaluate::score::Missing;
use repoformer_execute::{Execution, Status, Summaries, TaskResult};
use repoformer_text::message;
use repoformer_text::message::Message;

use crate::output;

/// The name of some predictions, and their execution.
pub(super) type Named = (String, Execution);

/// Reasons of exclusions shown without `-v`, and tasks named for each.
const EXCLUDED_SHOWN: usize = 20;
const TASKS_NAMED: usize = 8;

/// Lists tasks below a warning, grouped by reason.
pub(super) fn list_tasks(tasks: &TaskSet, of: Vec<(usize, &str, &Message)>) {
    let mut reasons: Vec<(&Message, Vec<String>)> = Vec::new();
    for (line, id, reason) in of {
        let name = format!("{id} (line {line})");
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    let path = tasks.path.display();
    let lines = reasons.into_iter().map(|(reason, mut names)| {
        let more = names.len().saturating_sub(TASKS_NAMED);
        if more > 0 && !output::is_verbose() {
            names.truncate(TASKS_NAMED);
            names.push(format!("… and {more} more (-v)"));
        }
        message![format!("  {path}: "), reason, format!(": {}", names.join(", "))]
    });
    output::list(&lines.collect::<Vec<_>>(), EXCLUDED_SHOWN);
}

/// Reports excluded tasks, and repositories whose tests cannot be run.
/// With `runs_all`, each task runs all tests of its repository.
pub(super) fn report_execution(
    name: &str,
    execution: &Execution,
    tasks: &TaskSet,
    results: &Path,
    runs_all: bool,
) {
    for (repository, broken) in &execution.broken {
        let output = match broken.output.trim() {
            "" => String::new(),
            output => format!("\n{output}"),
        };
        let reason = &broken.reason;
        output::failed(message![
            format!("{repository}: its tests cannot be run: "),
            reason,
            output
        ]);
    }
    let excluded: Vec<_> = execution.tasks.iter().filter(|task| task.excluded.is_some()).collect();
    if !excluded.is_empty() {
        output::failures(excluded.len());
        output::warning(format!(
            "{name}: {} of {} tasks are excluded: their tests are not conclusive; their output is in {}",
            excluded.len(),
            execution.tasks.len(),
            results.display()
        ));
        let of = excluded
            .iter()
            .filter_map(|task| Some((task.line, &*task.task_id, &task.excluded.as_ref()?.reason)));
        list_tasks(tasks, of.collect());
        let is_failing = |of: &&TaskResult| {
            let status = of.excluded.as_ref().and_then(|excluded| excluded.status);
            matches!(status, Some(Status::Fail | Status::Error))
        };
        if runs_all && excluded.into_iter().any(|task| is_failing(&task)) {
            output::hint(
                "one failing test excludes every task that runs it. `eval --exec --mine-tests -o tests.jsonl` finds the tests that pass \
                 with the reference text and fail with a broken hole; --tests tests.jsonl runs these alone",
            );
        }
    }
    let is_judged = |of: &&TaskResult| of.excluded.is_none() && !of.samples.is_empty();
    let judged: Vec<_> = execution.tasks.iter().filter(is_judged).collect();
    let by_output = judged.iter().filter(|of| !of.is_reported).count();
    if by_output > 0 {
        output::warning(format!(
            "{name}: {by_output} of {} tasks are judged by the exit code and the output of their tests, which a prediction can fake \
             (pytest and unittest report their own results where the command keeps PYTHONPATH)",
            judged.len()
        ));
    }
    let Execution { runs, reused, .. } = execution;
    output::note(format!("exec {name}: {runs} runs, {reused} results known or shared"));
}

pub(super) fn report_summaries(
    named: &[Named],
    summaries: &[Summaries],
    missing: Missing,
    is_part: bool,
) {
    for ((name, _), summary) in named.iter().zip(summaries) {
        let all = &summary.all;
        if all.missing > 0 {
            let count = if missing == Missing::Skip { "are left out" } else { "count as failed" };
            let missing = all.missing;
            output::warning(format!("{name}: {missing} tasks have no prediction; they {count}"));
        }
        let least = all.samples.0;
        for (k, _) in all.rates.iter().filter(|(_, rate)| rate.is_none() && all.n > 0) {
            output::failed(format!("{name}: pass@{k} needs more samples: a task has {least}"));
        }
        // A shard may have no task.
        if all.n == 0 && (all.tasks > 0 || !is_part) {
            output::failed(format!("{name}: no task can be judged by its tests"));
        }
    }
}
