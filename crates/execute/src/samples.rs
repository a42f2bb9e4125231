//! Predictions to execute, cut so that they fit into their files.

use std::path::Path;

use repoformer_core::postprocess::{HoleContext, Postprocess, Recipe, Step};
use repoformer_core::task::{Task, TaskSet};
use repoformer_evaluate::predictions;
use repoformer_evaluate::score::MissingPredictions;
use repoformer_store::error::{Error, Result};
use repoformer_store::remark::Remark;
use repoformer_text::counts::part;
use repoformer_text::message;
use repoformer_text::message::UserChoice;

/// Returns the settings by which predictions are cut before they are written into their files: the requested ones, or the usual ones.
///
/// # Errors
/// The requested settings differ by metric, or remove the beginning of a function.
pub fn execution_recipe(asked: Option<&Postprocess>, usual: Recipe) -> Result<Recipe> {
    match asked {
        None => Ok(usual),
        Some(Postprocess::Same(recipe)) if !recipe.has(Step::FunctionBody) => Ok(recipe.clone()),
        Some(asked) => Err(Error::from_refusal(
            message![
                "the ",
                UserChoice::Postprocessing,
                format!(" {asked} produces texts for comparison, not for execution")
            ],
            "use only steps that cut text, such as chat or lines",
        )),
    }
}

/// Reads the predictions in a file, joins them with their tasks and cuts them. Returns the samples of each tested task, in the order of the
/// tasks. `name` is the name of the predictions in warnings.
///
/// # Errors
/// The file cannot be read, or contains predictions of other tasks.
pub fn read_samples(
    name: &str,
    path: &Path,
    tasks: &TaskSet,
    recipe: &Recipe,
    is_tested: &dyn Fn(&Task) -> bool,
    tell: &dyn Fn(Remark),
) -> Result<Vec<Vec<String>>> {
    let joined = predictions::read(path, tasks)?;
    let warning = predictions::warning(path, &joined.numbered);
    tell(Remark::Problems(joined.problems));
    warning.into_iter().for_each(|warning| tell(Remark::Unproven(warning)));
    if recipe.is_empty() {
        let warning = long_predictions(name, tasks, &joined.predictions);
        warning.into_iter().for_each(tell);
    }
    let of_tested = tasks.tasks().iter().zip(joined.predictions);
    let cut = |(task, samples): (&Task, Vec<String>)| {
        let cut =
            |sample: &String| recipe.apply(HoleContext::new(task), sample).prediction.into_owned();
        samples.iter().map(cut).collect()
    };
    Ok(of_tested.filter(|(task, _)| is_tested(task)).map(cut).collect())
}

/// Returns a warning if many predictions continue after the hole: uncut, they pass no test.
fn long_predictions(name: &str, tasks: &TaskSet, predictions: &[Vec<String>]) -> Option<Remark> {
    let lines = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let is_long = |(task, samples): &(&Task, &Vec<String>)| {
        let first = samples.first().map_or(0, |sample| lines(sample));
        first > 2 * lines(&task.ground_truth)
    };
    let long = tasks.tasks().iter().zip(predictions).filter(is_long).count();
    let given = predictions.iter().filter(|samples| !samples.is_empty()).count();
    (long * 4 > given).then(|| {
        Remark::Warning(message![
            format!(
                "exec {name}: {} more than twice the lines of the target; ",
                part(long, given, "prediction", ["has", "have"])
            ),
            UserChoice::Postprocessing,
            " by lines cuts them"
        ])
    })
}

/// Checks that every task has a sample, if missing predictions are errors.
///
/// # Errors
/// A task has no sample.
pub fn check_missing(
    tasks: &TaskSet,
    samples: &[Vec<String>],
    missing: MissingPredictions,
) -> Result<()> {
    let pairs = tasks.tasks().iter().zip(samples);
    let without: Vec<_> = pairs.filter(|(_, samples)| samples.is_empty()).collect();
    match (missing, without.first()) {
        (MissingPredictions::Error, Some((task, _))) => {
            let count = part(without.len(), tasks.tasks().len(), "task", ["has", "have"]);
            let reason = message![
                format!("it has no prediction ({count} none); choose the treatment of "),
                UserChoice::TasksWithoutPrediction
            ];
            Err(tasks.error(task, reason))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn tasks() -> TaskSet {
        let task = |id: &str| Task::new(id.into(), "demo/a.py", 0, 0, "x = 1", "");
        TaskSet::new("tasks.jsonl".into(), vec![task("demo/0"), task("demo/1")])
    }

    #[test]
    fn predictions_are_only_cut() {
        let usual = Recipe::chat();
        assert_eq!(execution_recipe(None, usual.clone()).unwrap(), usual);
        let lines: Postprocess = "lines".parse().unwrap();
        assert_eq!(execution_recipe(Some(&lines), usual.clone()).unwrap().to_string(), "lines");
        let own = Postprocess::own(true);
        let error = execution_recipe(Some(&own), usual).unwrap_err().to_string();
        assert!(error.ends_with("produces texts for comparison, not for execution"), "{error}");
    }

    #[test]
    fn samples_are_of_the_tasks_that_are_tested() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut tasks) = (folder.path().join("p.jsonl"), tasks());
        tasks.tasks_mut()[1].repository = "other".into();
        let long = "x = 1\\ny = 2\\nz = 3";
        std::fs::write(
            &path,
            format!(
                "{{\"task_id\": \"demo/0\", \"pred\": [\"{long}\", \"a\"]}}\n{{\"task_id\": \"demo/1\", \"pred\": \"b\"}}\nno\n"
            ),
        )
        .unwrap();
        let read = |recipe: &str| {
            let said = RefCell::new(Vec::new());
            let tell = |remark| match remark {
                Remark::Warning(text) => said.borrow_mut().push(text.to_string()),
                Remark::Problems(all) => said.borrow_mut().push(format!("{} problems", all.len())),
                _ => {}
            };
            let recipe = match recipe.parse().unwrap() {
                Postprocess::Same(recipe) => recipe,
                other => panic!("{other}"),
            };
            let is_tested = |task: &Task| task.repository == "demo";
            let samples = read_samples("p", &path, &tasks, &recipe, &is_tested, &tell).unwrap();
            (samples, said.take())
        };
        let (samples, said) = read("none");
        assert_eq!(samples, [["x = 1\ny = 2\nz = 3", "a"]]);
        assert_eq!(
            said,
            [
                "1 problems",
                "exec p: 1 of 2 predictions has more than twice the lines of the target; postprocessing by lines cuts them",
            ]
        );
        let (samples, said) = read("lines");
        assert_eq!(
            (samples, &said[..]),
            (vec![vec!["x = 1".to_owned(), "a".into()]], &["1 problems".to_owned()][..])
        );
    }

    #[test]
    fn a_task_without_sample_is_an_error_unless_it_may_be_missing() {
        let (tasks, samples) = (tasks(), [vec!["x".to_owned()], Vec::new()]);
        let error =
            check_missing(&tasks, &samples, MissingPredictions::Error).unwrap_err().to_string();
        assert!(
            error.contains("task demo/1: it has no prediction (1 of 2 tasks has none)"),
            "{error}"
        );
        for missing in [MissingPredictions::Zero, MissingPredictions::Skip] {
            assert!(check_missing(&tasks, &samples, missing).is_ok());
        }
    }
}
