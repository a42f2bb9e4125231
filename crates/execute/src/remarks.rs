//! Remarks about executions: broken repositories, excluded tasks, missing predictions.

use std::path::Path;

use repoformer_core::task::TaskSet;
use repoformer_evaluate::score::MissingPredictions;
use repoformer_store::remark::{LeftOutTasks, Remark};
use repoformer_text::counts::{part, subject};
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use super::run::{Execution, TaskResult};
use super::summary::Summaries;
use super::verdict::Status;

impl Execution {
    /// Returns the remarks about the execution of a set of predictions: repositories whose tests cannot be run, excluded tasks, and tasks
    /// that are judged by output alone. `runs_all` means that each task runs all tests of its repository; `results` is the results file.
    pub fn remarks(
        &self,
        name: &str,
        tasks: &TaskSet,
        results: &Path,
        runs_all: bool,
    ) -> Vec<Remark> {
        let mut remarks = Vec::new();
        for (repository, broken) in &self.broken {
            let output = match broken.output.trim() {
                "" => String::new(),
                output => format!("\n{output}"),
            };
            let start = format!("{repository}: its tests cannot be run: ");
            remarks.push(Remark::Failed(message![start, &broken.reason, output]));
        }
        let excluded = || self.tasks.iter().filter(|task| task.excluded.is_some());
        let count = excluded().count();
        if count > 0 {
            let warning = format!(
                "{name}: {} excluded: their tests are not conclusive; their output is in {}",
                part(count, self.tasks.len(), "task", ["is", "are"]),
                results.display()
            );
            let of = excluded().filter_map(|task| {
                Some((task.line, &*task.task_id, &task.excluded.as_ref()?.reason))
            });
            remarks.push(Remark::LeftOut(LeftOutTasks::new(warning.into(), &tasks.path, of)));
            let is_failing = |of: &TaskResult| {
                let status = of.excluded.as_ref().and_then(|excluded| excluded.status);
                matches!(status, Some(Status::Fail | Status::Error))
            };
            if runs_all && excluded().any(is_failing) {
                remarks.push(Remark::Hint(message![
                    "one failing test excludes every task that runs it; pass only tests that pass \
                     with the reference text and fail with a broken hole as ",
                    UserChoice::TestsOfTasks
                ]));
            }
        }
        let is_judged = |of: &&TaskResult| of.excluded.is_none() && !of.samples.is_empty();
        let judged: Vec<_> = self.tasks.iter().filter(is_judged).collect();
        let by_output = judged.iter().filter(|of| !of.is_reported).count();
        if by_output > 0 {
            let warning = format!(
                "{name}: {} judged by the exit code and the output of the tests, which a prediction can fake \
                 (pytest and unittest report their own results if the command keeps PYTHONPATH)",
                part(by_output, judged.len(), "task", ["is", "are"])
            );
            remarks.push(Remark::Warning(warning.into()));
        }
        // On a busy machine, some runs get too little of a processor.
        let is_busy = |(status, _): &&(Status, String)| *status == Status::Timeout;
        let (busy, refused): (Vec<_>, Vec<_>) = self.lost.iter().partition(is_busy);
        let told = [(busy, Remark::Warning as fn(_) -> _), (refused, Remark::Failed)];
        for (lost, remark) in told {
            if let [(_, reason), ..] = &lost[..] {
                let runs = subject(lost.len(), "run", ["counts", "count"]);
                let text = format!(
                    "{name}: {runs} as failed without a final result (the first: {reason}); run the same command again"
                );
                remarks.push(remark(text.into()));
            }
        }
        let Self { runs, reused, .. } = self;
        let note = format!("exec {name}: {runs} runs, {reused} results reused");
        remarks.push(Remark::Note(note.into()));
        remarks
    }
}

impl Summaries {
    /// Returns the remarks about the pass rates of a set of predictions: tasks without predictions, rates that need more samples, and the
    /// absence of judged tasks. With `is_part`, a shard may have no task.
    pub fn remarks(&self, name: &str, missing: MissingPredictions, is_part: bool) -> Vec<Remark> {
        let (all, mut remarks) = (&self.all, Vec::new());
        if all.missing > 0 {
            let count = match (missing, all.missing) {
                (MissingPredictions::Skip, 1) => "it is left out",
                (MissingPredictions::Skip, _) => "they are left out",
                (_, 1) => "it counts as failed",
                (_, _) => "they count as failed",
            };
            let tasks = subject(all.missing, "task", ["has", "have"]);
            let warning = format!("{name}: {tasks} no prediction; {count}");
            remarks.push(Remark::Warning(warning.into()));
        }
        let least = all.samples.0;
        for (k, _) in all.rates.iter().filter(|(_, rate)| rate.is_none() && all.n > 0) {
            let reason = format!("{name}: pass@{k} needs more samples: a task has {least}");
            remarks.push(Remark::Failed(reason.into()));
        }
        if all.n == 0 && (all.tasks > 0 || !is_part) {
            let reason = format!("{name}: no task can be judged by its tests");
            remarks.push(Remark::Failed(reason.into()));
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use repoformer_core::task::Task;
    use repoformer_evaluate::statistics::Resampling;

    use super::super::copies::CopyFailure;
    use super::super::run::Exclusion;
    use super::*;

    fn task(id: &str, excluded: Option<Status>, samples: &[Status]) -> TaskResult {
        TaskResult {
            row: 0,
            line: 1,
            task_id: id.into(),
            repository: "demo".into(),
            excluded: excluded.map(|status| Exclusion {
                status: Some(status),
                reason: "its tests say no".into(),
            }),
            samples: samples.to_vec(),
            reasons: vec![String::new(); samples.len()],
            is_reported: false,
        }
    }

    fn execution(tasks: Vec<TaskResult>) -> Execution {
        Execution { tasks, broken: Vec::new(), runs: 3, reused: 2, lost: Vec::new() }
    }

    fn words(remarks: Vec<Remark>) -> Vec<String> {
        let word = |remark| match remark {
            Remark::Note(text) => format!("note: {text}"),
            Remark::Warning(text) => format!("warning: {text}"),
            Remark::Hint(text) => format!("hint: {text}"),
            Remark::Failed(text) => format!("failed: {text}"),
            Remark::LeftOut(tasks) => format!("{} left out: {}", tasks.count(), tasks.warning),
            other => panic!("{other:?}"),
        };
        remarks.into_iter().map(word).collect()
    }

    #[test]
    fn an_execution_says_what_cannot_be_judged() {
        let tasks = vec![Task::new("a".into(), "demo/a.py", 0, 0, "x = 1", "")];
        let tasks = TaskSet::new("tasks.jsonl".into(), tasks);
        let of = |tested: &Execution, runs_all| {
            words(tested.remarks("rg1", &tasks, Path::new("results.jsonl"), runs_all))
        };
        let last = "note: exec rg1: 3 runs, 2 results reused";
        let mut sound = execution(vec![task("a", None, &[Status::Pass])]);
        let faked = "warning: rg1: 1 of 1 task is judged by the exit code";
        let [warning, note] = &of(&sound, true)[..] else { panic!() };
        assert!(warning.starts_with(faked) && note == last, "{warning}");
        sound.tasks[0].is_reported = true;
        let broken = CopyFailure { reason: "its setup failed".into(), output: "no make\n".into() };
        sound.broken = vec![("demo".into(), broken)];
        let failed = "failed: demo: its tests cannot be run: its setup failed\nno make";
        assert_eq!(of(&sound, true), [failed, last]);
        sound.broken.clear();
        let killed = (Status::Error, "its guard was killed".to_owned());
        sound.lost = vec![killed, (Status::Timeout, "busy".into()), (Status::Error, String::new())];
        let lost = "failed: rg1: 2 runs count as failed without a final result (the first: its guard was killed)";
        let said = of(&sound, true);
        assert!(said[1].starts_with(lost), "{said:?}");
        assert!(said[0].starts_with("warning: rg1: 1 run counts as failed"), "{said:?}");
        for (status, hints) in [(Status::Fail, 1), (Status::Error, 1), (Status::Timeout, 0)] {
            let tested =
                execution(vec![task("a", Some(status), &[]), task("b", Some(status), &[])]);
            let said = of(&tested, true);
            assert!(said[0].starts_with("2 left out: rg1: 2 of 2 tasks are excluded"), "{said:?}");
            assert_eq!(said.iter().filter(|text| text.starts_with("hint")).count(), hints);
            assert_eq!(of(&tested, false).len(), 2, "no other tests run");
        }
    }

    #[test]
    fn rates_say_what_they_lack() {
        let said = |tasks, missing, is_part| {
            let ks = [1, 2];
            let summaries = Summaries::new(&execution(tasks), &ks, missing, &Resampling::default());
            words(summaries.remarks("rg1", missing, is_part))
        };
        let some = || vec![task("a", None, &[Status::Pass]), task("b", None, &[])];
        let few = "failed: rg1: pass@2 needs more samples: a task has 1";
        let missing = "warning: rg1: 1 task has no prediction; it ";
        assert_eq!(
            said(some(), MissingPredictions::Zero, false),
            [format!("{missing}counts as failed"), few.into()]
        );
        assert_eq!(
            said(some(), MissingPredictions::Skip, false),
            [format!("{missing}is left out"), few.into()]
        );
        let none = ["failed: rg1: no task can be judged by its tests"];
        assert_eq!(
            said(vec![task("a", Some(Status::Fail), &[])], MissingPredictions::Error, true),
            none
        );
        assert_eq!(said(Vec::new(), MissingPredictions::Error, false), none);
        assert!(said(Vec::new(), MissingPredictions::Error, true).is_empty());
    }
}
