//! From scores to a report: each system's result for each task, the fragments it was shown, and a comparison of the systems.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use foldhash::{HashMap, HashSet};
use repoformer_core::metrics::Metric;
use repoformer_core::prompt::shown::{ShownFragment, read_fragments};
use repoformer_core::repository::parallel;
use repoformer_core::task::{Task, TaskSet};
use repoformer_evaluate::comparison::{Comparison, ComparisonSettings, PerTask};
use repoformer_evaluate::executed::TestOutcome;
use repoformer_evaluate::report::{
    BaselineComparison, ReportContents, ReportMeasure, ReportTask, System, TaskOutcome,
};
use repoformer_evaluate::score::{Scores, TaskScore};
use repoformer_evaluate::statistics::{Estimate, Groups, IntervalKind, Resampling, SignFlips};
use repoformer_store::error::Result;
use repoformer_text::language::{Language, bare_identifiers, identifiers, without_strings};
use serde_json::Value;

use super::eval::Evaluation;

/// System to be shown in a report.
#[derive(Debug)]
pub struct Contender {
    /// Name in tables.
    pub name: String,
    /// Settings of the system, as names and values.
    pub settings: Vec<(String, String)>,
    /// Samples of the system and their scores; tasks without samples may lack scores.
    pub evaluation: Evaluation,
    /// Prompts that the system completed, if they are at hand; they contain the retrieved fragments.
    pub prompts: Option<PathBuf>,
    /// Rows of these prompts that the system completed, if it retrieves only for some.
    pub retrieved: Option<BTreeSet<usize>>,
    /// Results of the unit tests by row of the task file, if tests were run.
    pub executed: BTreeMap<usize, TestOutcome>,
}

/// Title and notes of a report, and how systems are compared.
#[derive(Debug, Clone, Default)]
pub struct ReportTexts {
    /// The headline.
    pub title: String,
    /// Names and values: inputs, settings, counts.
    pub provenance: Vec<(String, String)>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// Name of the system with which the others are compared; `None` for the first, if there are several.
    pub baseline: Option<String>,
    /// How intervals are computed.
    pub resampling: Resampling,
}

/// Gathers a report on the tasks that all systems were evaluated on, whose texts the report borrows.
///
/// # Errors
/// Scores or prompts cannot be read.
pub fn gather(
    tasks: &TaskSet,
    about: ReportTexts,
    contenders: Vec<Contender>,
) -> Result<ReportContents<'_>> {
    let Some(first) = contenders.first() else {
        return Ok(ReportContents::default());
    };
    let metrics = first.evaluation.scores.as_ref().map_or(Vec::new(), Scores::metrics);
    let samples =
        contenders.iter().filter_map(|one| Some(one.evaluation.scores.as_ref().ok()?.samples()));
    let samples: Vec<usize> = samples.collect();
    let is_executed = contenders.iter().any(|contender| !contender.executed.is_empty());
    let names: Vec<&str> = contenders.iter().map(|contender| contender.name.as_str()).collect();
    let ReportContents { mut measures, main, exact, tasks: shown, baseline, .. } =
        frame(&about, tasks, &metrics, &names);
    if is_executed {
        measures.push(ReportMeasure {
            metric: ReportMeasure::UNIT_TESTS.into(),
            value: "pass@1".into(),
            title: "unit-test pass rate of the tasks with conclusive tests".into(),
        });
    }
    let mut systems = Vec::new();
    let mut sides = Vec::new();
    for contender in contenders {
        let name = contender.name.clone();
        let (system, scores) = system(tasks, contender, is_executed, &about.resampling)?;
        let mut side = PerTask::new(name);
        for task in &scores.tasks {
            if let Value::Object(record) = task.to_record(&scores.cuts) {
                // A task that was scored has an id and scores.
                let _ = side.add(&record);
            }
        }
        systems.push(system);
        sides.push(side);
    }
    if let (Some(baseline), Some(measure)) = (baseline, measures.get(main)) {
        let settings = ComparisonSettings {
            measures: vec![format!("{}.{}", measure.metric, measure.value)],
            resampling: about.resampling,
            flips: SignFlips { seed: about.resampling.seed, ..SignFlips::default() },
            ..ComparisonSettings::default()
        };
        for (number, system) in systems.iter_mut().enumerate() {
            if number != baseline {
                system.comparison = compare(&sides[baseline], &sides[number], &settings);
            }
        }
    }
    for (measure, metric) in measures.iter_mut().zip(of_metrics(&metrics)) {
        if let Some(several) = metric.of_several(samples.iter().copied()) {
            measure.metric += &format!(", {several}");
            measure.title += &format!(", {several}");
        }
    }
    Ok(ReportContents {
        title: about.title,
        tool_version: env!("CARGO_PKG_VERSION").into(),
        provenance: about.provenance,
        notes: about.notes,
        measures,
        main,
        exact,
        tasks: shown,
        systems,
        baseline,
        few: few_repositories(tasks),
    })
}

/// Returns a report before anything is measured: its tasks, measures, and systems by name.
fn frame<'t>(
    about: &ReportTexts,
    tasks: &'t TaskSet,
    metrics: &[Metric],
    names: &[&str],
) -> ReportContents<'t> {
    let measures = measures(metrics);
    let named = |name: &&str| System { name: (*name).to_owned(), ..System::default() };
    ReportContents {
        main: measures.iter().position(|measure| measure.value == "es").unwrap_or(0),
        exact: measures.iter().position(|measure| measure.value == "em"),
        measures,
        tasks: tasks.tasks().iter().map(report_task).collect(),
        systems: names.iter().map(named).collect(),
        baseline: match &about.baseline {
            None => (names.len() > 1).then_some(0),
            Some(name) => names.iter().position(|other| other == name),
        },
        ..ReportContents::default()
    }
}

/// Returns the names of the figures of a report on systems, and whether each figure is drawn in any case; the others are drawn only
/// if prompts show retrieved fragments.
pub fn foresee_figures(tasks: &TaskSet, metrics: &[Metric], names: &[&str]) -> Vec<(String, bool)> {
    let mut report = frame(&ReportTexts::default(), tasks, metrics, names);
    let names = |report: &ReportContents| report.figures().into_iter().map(|(name, _)| name);
    let sure: Vec<String> = names(&report).collect();
    for system in &mut report.systems {
        system.outcomes = vec![Some(TaskOutcome {
            values: vec![0.0; report.measures.len()],
            identifiers_retrieved: Some(0.0),
            ..TaskOutcome::default()
        })];
    }
    names(&report).map(|name| (name.clone(), sure.contains(&name))).collect()
}

/// Returns the metric of each value of these metrics.
fn of_metrics(metrics: &[Metric]) -> impl Iterator<Item = Metric> {
    metrics.iter().flat_map(|&metric| metric.values().iter().map(move |_| metric))
}

fn measures(metrics: &[Metric]) -> Vec<ReportMeasure> {
    let title = |value: &str| match value {
        "em" => "exact match",
        "es" => "edit similarity",
        "es_fuzz" => "fuzz ratio",
        "id_em" => "identifier exact match",
        "id_precision" => "identifier precision",
        "id_recall" => "identifier recall",
        "id_f1" => "identifier F1",
        _ => "value",
    };
    let of = |metric: &Metric| {
        let name = metric.name();
        metric.values().iter().map(move |value| ReportMeasure {
            metric: name.into(),
            value: (*value).into(),
            title: title(value).into(),
        })
    };
    metrics.iter().flat_map(of).collect()
}

fn report_task(task: &Task) -> ReportTask<'_> {
    ReportTask {
        row: task.row,
        id: task.id.clone(),
        repository: task.repository.clone(),
        path: task.file_in_repository().to_owned(),
        line_no: task.line_no,
        language: task.language().name().into(),
        target: Cow::from(&task.ground_truth),
        left_context: Cow::from(&task.prompt),
        right_context: task.right_context.as_ref().map(Cow::from),
    }
}

fn compare(
    baseline: &PerTask,
    side: &PerTask,
    settings: &ComparisonSettings,
) -> Option<BaselineComparison> {
    let compared = Comparison::new(baseline, side, settings).ok()?;
    let difference = compared.all.first()?;
    Some(BaselineComparison {
        mean_difference: difference.difference.mean,
        interval: difference.difference.interval,
        p_tasks: Some(difference.by_task.p),
        p_repositories: difference.by_repository.map(|test| test.p),
    })
}

/// Returns a system as the report shows it, and its scores.
fn system(
    tasks: &TaskSet,
    contender: Contender,
    is_executed: bool,
    resampling: &Resampling,
) -> Result<(System, Scores)> {
    let scores = contender.evaluation.scores?;
    let mut fragments = match &contender.prompts {
        Some(path) => read_fragments(path)?,
        None => HashMap::default(),
    };
    if let Some(rows) = &contender.retrieved {
        fragments.retain(|row, _| rows.contains(row));
    }
    let by_row: HashMap<usize, &TaskScore> =
        scores.tasks.iter().map(|task| (task.row, task)).collect();
    let outcome = |task: &Task| {
        let score = by_row.get(&task.row).filter(|score| !score.raw.is_empty())?;
        let shown = fragments.get(&task.row).cloned().unwrap_or_default();
        let executed = contender.executed.get(&task.row);
        let mut outcome = outcome(task, score, &scores, shown);
        outcome.status = executed.map(|executed| executed.status.clone());
        if is_executed {
            let rate = executed.and_then(|executed| executed.pass_rate);
            outcome.values.push(rate.unwrap_or(f64::NAN));
        }
        Some(outcome)
    };
    let intervals = scores.intervals(resampling);
    let means = scores.all.means.iter().flat_map(|mean| &mean.values);
    let means = means
        .zip(&intervals.of_values)
        .map(|(&mean, interval)| Estimate { mean, interval: *interval });
    let mut means: Vec<Estimate> = means.collect();
    if is_executed {
        means.extend(pass_rate(tasks, &contender.executed, resampling));
    }
    let system = System {
        name: contender.name,
        is_oracle: contender.settings.iter().any(|(name, value)| {
            name == "mode" && value == "gt" || name == "policy" && value.starts_with("oracle")
        }),
        settings: contender.settings,
        means,
        n: scores.all.n,
        comparison: None,
        outcomes: parallel::map(tasks.tasks(), outcome),
    };
    Ok((system, scores))
}

/// Returns the number of repositories, if they are too few for intervals.
fn few_repositories(tasks: &TaskSet) -> Option<usize> {
    let groups = Groups::new(tasks.tasks().iter().map(|task| Some(&*task.repository)));
    (groups.unit().interval_kind(groups.len()) == IntervalKind::Range).then(|| groups.len())
}

/// Returns the mean of pass@1 over the tasks that have one; `None` if no task has one.
fn pass_rate(
    tasks: &TaskSet,
    executed: &BTreeMap<usize, TestOutcome>,
    resampling: &Resampling,
) -> Option<Estimate> {
    let rates = tasks.tasks().iter().filter_map(|task| {
        let rate = executed.get(&task.row)?.pass_rate?;
        Some((Some(&*task.repository), rate))
    });
    let (repositories, rates): (Vec<Option<&str>>, Vec<f64>) = rates.unzip();
    let interval = resampling.interval(&Groups::new(repositories), &rates);
    (!rates.is_empty())
        .then(|| Estimate { mean: rates.iter().sum::<f64>() / rates.len() as f64, interval })
}

fn outcome(
    task: &Task,
    score: &TaskScore,
    scores: &Scores,
    fragments: Vec<ShownFragment>,
) -> TaskOutcome {
    let cut = scores.cuts.of_metric.first().and_then(|&recipe| score.cut.get(recipe));
    let prediction = cut.unwrap_or(&score.raw).first().cloned().unwrap_or_default();
    let raw = score.raw.first().filter(|raw| **raw != prediction).cloned();
    TaskOutcome {
        raw,
        values: score.scores.iter().flat_map(|one| one.values.clone()).collect(),
        identifiers_retrieved: identifiers_retrieved(
            &task.ground_truth,
            &fragments,
            task.language(),
        ),
        prediction,
        fragments,
        status: None,
    }
}

/// Returns the proportion of the target's identifiers that occur in the fragments; `None` without fragments or identifiers.
fn identifiers_retrieved(
    target: &str,
    fragments: &[ShownFragment],
    language: Language,
) -> Option<f64> {
    let bare = without_strings(target);
    let mut wanted: HashSet<&str> = bare_identifiers(&bare, language).into_iter().collect();
    let count = wanted.len();
    if count == 0 || fragments.is_empty() {
        return None;
    }
    for fragment in fragments {
        for found in identifiers(&fragment.text, language) {
            wanted.remove(found);
        }
    }
    Some(1.0 - wanted.len() as f64 / count as f64)
}
