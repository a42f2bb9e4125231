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
}

/// Report to which systems are added one after another, so that the scores of only one are in memory.
#[derive(Debug, Default)]
pub struct ReportBuilder {
    resampling: Resampling,
    /// Metrics of the first system.
    metrics: Vec<Metric>,
    /// Greatest number of samples of a task, of each system.
    samples: Vec<usize>,
    systems: Vec<System>,
    /// Scores that systems are compared by, of each system.
    sides: Vec<PerTask>,
    /// True for each system whose unit tests were run.
    executed: Vec<bool>,
}

impl ReportBuilder {
    /// Creates a report without systems, whose intervals are computed in this way.
    pub fn new(resampling: Resampling) -> Self {
        Self { resampling, ..Self::default() }
    }

    /// Adds a system, which was evaluated on the same tasks as the others.
    ///
    /// # Errors
    /// Scores or prompts cannot be read.
    pub fn add(&mut self, contender: Contender) -> Result<()> {
        let Contender { name, settings, evaluation, prompts, retrieved, executed } = contender;
        let (tasks, mut scores) = (evaluation.tasks, evaluation.scores?);
        if self.systems.is_empty() {
            self.metrics = scores.metrics();
        }
        self.samples.push(scores.samples());
        let measures = measures(&self.metrics);
        let main = of_metrics(&self.metrics).zip(&measures).nth(main_of(&measures));
        let side = main.map(|(metric, measure)| {
            PerTask::of_scores(name.clone(), &scores, metric, &measure.value)
        });
        self.sides.push(side.unwrap_or_default());
        self.executed.push(!executed.is_empty());
        let mut fragments = match &prompts {
            Some(path) => read_fragments(path)?,
            None => HashMap::default(),
        };
        if let Some(rows) = &retrieved {
            fragments.retain(|row, _| rows.contains(row));
        }
        let mut means = means(&scores, &self.resampling);
        means.extend(pass_rate(&tasks, &executed, &self.resampling));
        let scored = std::mem::take(&mut scores.tasks);
        let mut by_row: HashMap<usize, TaskScore> =
            scored.into_iter().map(|task| (task.row, task)).collect();
        let scored = tasks.tasks().iter().map(|task| {
            let score = by_row.remove(&task.row).filter(|score| !score.raw.is_empty());
            (task, score, fragments.remove(&task.row).unwrap_or_default())
        });
        let outcomes = parallel::map(scored.collect::<Vec<_>>(), |(task, score, shown)| {
            let mut outcome = outcome(task, score?, &scores, shown);
            if let Some(executed) = executed.get(&task.row) {
                outcome.status = Some(executed.status.clone());
            }
            if !executed.is_empty() {
                let rate = executed.get(&task.row).and_then(|executed| executed.pass_rate);
                outcome.values.push(rate.unwrap_or(f64::NAN));
            }
            Some(outcome)
        });
        self.systems.push(System {
            name,
            is_oracle: settings.iter().any(|(name, value)| {
                name == "mode" && value == "gt" || name == "policy" && value.starts_with("oracle")
            }),
            settings,
            means,
            n: scores.all.n,
            comparison: None,
            outcomes,
        });
        Ok(())
    }

    /// Compares the systems, and returns the report, which borrows the texts of the tasks.
    pub fn finish(self, tasks: &TaskSet, about: ReportTexts) -> ReportContents<'_> {
        let Self { resampling, metrics, samples, mut systems, sides, executed } = self;
        let names: Vec<&str> = systems.iter().map(|system| system.name.as_str()).collect();
        let ReportContents { mut measures, main, exact, tasks: shown, baseline, .. } =
            frame(&about, tasks, &metrics, &names);
        if let (Some(baseline), Some(measure)) = (baseline, measures.get(main)) {
            let settings = ComparisonSettings {
                measures: vec![format!("{}.{}", measure.metric, measure.value)],
                resampling,
                flips: SignFlips { seed: resampling.seed, ..SignFlips::default() },
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
        if executed.contains(&true) {
            measures.push(ReportMeasure {
                metric: ReportMeasure::UNIT_TESTS.into(),
                value: "pass@1".into(),
                title: "unit-test pass rate of the tasks with conclusive tests".into(),
            });
            let others = systems.iter_mut().zip(executed).filter(|(_, executed)| !executed);
            let outcomes = others.flat_map(|(system, _)| system.outcomes.iter_mut().flatten());
            outcomes.for_each(|outcome| outcome.values.push(f64::NAN));
        }
        ReportContents {
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
        }
    }
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
        main: main_of(&measures),
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

/// Returns the place of the measure by which systems are compared.
fn main_of(measures: &[ReportMeasure]) -> usize {
    measures.iter().position(|measure| measure.value == "es").unwrap_or(0)
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
        id: Cow::from(&task.id),
        repository: Cow::from(&task.repository),
        path: task.file_in_repository().into(),
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

/// Returns the mean of each value of each metric.
fn means(scores: &Scores, resampling: &Resampling) -> Vec<Estimate> {
    let intervals = scores.intervals(resampling);
    let means = scores.all.means.iter().flat_map(|mean| &mean.values);
    let means = means.zip(&intervals.of_values);
    means.map(|(&mean, interval)| Estimate { mean, interval: *interval }).collect()
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
    mut score: TaskScore,
    scores: &Scores,
    fragments: Vec<ShownFragment>,
) -> TaskOutcome {
    let first = |samples: Vec<String>| samples.into_iter().next();
    let raw = first(score.raw);
    let recipe = scores.cuts.of_metric.first().filter(|recipe| **recipe < score.cut.len());
    let cut = recipe.map(|&recipe| first(score.cut.swap_remove(recipe)));
    let (prediction, raw) = match cut {
        None => (raw.unwrap_or_default(), None),
        Some(cut) => {
            let cut = cut.unwrap_or_default();
            let raw = raw.filter(|raw| *raw != cut);
            (cut, raw)
        }
    };
    TaskOutcome {
        raw,
        values: score.scores.into_iter().flat_map(|one| one.values).collect(),
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
