//! An experiment's tasks as policies see them: the fragments retrieved for each task, and their effect on the prediction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashSet};
use repoformer_core::policy::features::Request;
use repoformer_core::policy::sweep::RequestTimes;
use repoformer_core::policy::{CompletionScores, Example, Policy};
use repoformer_core::prompt::shown::read_shown;
use repoformer_core::prompt::style::Style;
use repoformer_core::repository::parallel;
use repoformer_core::retrieve::Mode;
use repoformer_core::task::cross_file::CrossFileFragment;
use repoformer_evaluate::label::{self, signals};
use repoformer_evaluate::mode_scores::ScoredTask;
use repoformer_evaluate::origin::Origin;
use repoformer_evaluate::predictions;
use repoformer_store::artifact::OutputFile;
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::{self, RecordAddress};
use repoformer_store::{files, inputs};

use super::eval::scores;
use super::experiment::Experiment;
use super::remote::{Latency, latencies};

/// Tasks that have predictions both without retrieval and with `mode`'s retrieval.
#[derive(Debug)]
pub struct SelectiveTasks {
    /// The tasks as policies see them.
    pub examples: Vec<Example>,
    /// Scores of each task without and with retrieval, from the modes' own artifacts.
    pub scores: Vec<[ScoredTask; 2]>,
    /// Times of each task, if all were measured.
    pub times: Option<Vec<RequestTimes>>,
    /// True if a task lacks the time for a query's dense vector.
    pub without_embedding: bool,
    /// Records of probabilities that cannot be used.
    pub problems: Vec<Error>,
    /// Warnings about files whose records may belong to other tasks.
    pub warnings: Vec<String>,
}

/// Files with signals from the model, besides its predictions.
#[derive(Debug, Clone, Copy, Default)]
pub struct SignalSources<'a> {
    /// Probabilities of the token that asks for retrieval; records of other tasks are ignored.
    pub probabilities: &'a [PathBuf],
    /// Style of the model that decides, if it may differ from the model that completes.
    pub deciding: Option<&'a Style>,
    /// Samples without retrieval, from which the entropy is computed.
    pub samples: Option<&'a Path>,
    /// Times of the decisions for which the probabilities were computed.
    pub decisions: &'a [Latency],
}

/// Joins the scores without retrieval and with `mode` with the retrieved fragments and the model's signals.
///
/// # Errors
/// Predictions or prompts of one of the two are missing, or a file cannot be read.
pub fn selective(
    experiment: &Experiment,
    mode: Mode,
    model: &str,
    sources: &SignalSources<'_>,
) -> Result<SelectiveTasks> {
    let tasks = experiment.tasks()?;
    let scores_of = |mode| match scores(experiment, mode, model, &experiment.scoring, None) {
        Ok((scores, _)) => Ok(scores.map(|scores| scores.tasks).unwrap_or_default()),
        // No task has predictions of both modes then.
        Err(Error::NoPrediction { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let (base, augmented) = (scores_of(Mode::Without)?, scores_of(mode)?);
    let mut shown = read_shown(&experiment.paths().prompts(mode))?;
    let mut signals = signals(&experiment.paths().predictions(Mode::Without, model), tasks)?;
    // The entropy must not come from the base predictions: it would change what is compared.
    signals.iter_mut().for_each(|signals| signals.entropy = None);
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    let sampled = sources.samples.into_iter().map(|path| (path, true));
    let asked = sources.probabilities.iter().map(|path| (path.as_path(), false));
    let files: Vec<(&Path, bool)> = asked.chain(sampled).collect();
    let base_of = |_: &_| Origin::read(&experiment.paths().predictions(Mode::Without, model));
    let made = files.first().map(base_of).transpose()?;
    for (path, are_samples) in files {
        let Some(made) = &made else { continue };
        let origin = Origin::read(path)?;
        origin.check_without()?;
        if are_samples {
            origin.check_model_of(made)?;
            origin.check_style_of(made)?;
            let found = label::entropies(path, tasks, &mut signals)?;
            warnings.extend(predictions::warning(path, &found.numbered));
            problems.extend(found.problems);
            continue;
        }
        origin.check_token()?;
        if !sources.deciding.is_some_and(|style| origin.is_of_style(style)) {
            origin.check_style_of(made)?;
        }
        // A file may also hold records of other benchmarks.
        let found = label::probabilities(path, tasks, &mut signals)?;
        warnings.extend(predictions::warning(path, &found.numbered));
        problems.extend(found.problems);
    }
    let clock = TaskTimes::measure(experiment, mode, model, sources.decisions)?;
    let mut selective = SelectiveTasks {
        examples: Vec::new(),
        scores: Vec::new(),
        times: None,
        without_embedding: clock.without_embedding,
        problems,
        warnings,
    };
    let mut times = Vec::new();
    for without in base {
        // All lists are in the order of the tasks.
        let Ok(found) = augmented.binary_search_by_key(&without.row, |task| task.row) else {
            continue;
        };
        let with = augmented[found].clone();
        let Ok(place) = tasks.tasks().binary_search_by_key(&without.row, |task| task.row) else {
            continue;
        };
        let task = &tasks.tasks()[place];
        let shown = shown.remove(&task.row).unwrap_or_default();
        let retrieved: Vec<CrossFileFragment> =
            shown.fragments.iter().map(|fragment| fragment.to_cross_file()).collect();
        let request = Request {
            left: &task.prompt,
            right: shown.right.as_deref().or(task.right_context.as_deref()).unwrap_or(""),
            path: &task.path,
            language: task.language(),
            fragments: &retrieved,
        };
        let metric = experiment.scoring.first();
        let similarity = |score: &ScoredTask| {
            score.get(metric, "es").ok_or_else(|| {
                tasks.error(task, format!("its scores lack {metric}.es; score it again"))
            })
        };
        let outcome = CompletionScores {
            score: [similarity(&without)?, similarity(&with)?],
            em: [&without, &with].map(|score| score.get(metric, "em")),
            label: None,
        };
        // If a task carries its context as one text, prompts name no fragments.
        let carries_text = || task.cross_file.as_ref().is_some_and(|context| !context.is_empty());
        let retrieved_something = mode == Mode::Given && carries_text();
        let signals = signals[place];
        let example = Example::new(&task.id, request, outcome, signals, retrieved_something);
        // Other modes search with queries of their own.
        let knows = mode == Mode::Given
            && task.metadata.get("query_has_target").is_some_and(|it| it == true);
        let (row, query_has_target) = (Some(task.row), knows);
        selective.examples.push(Example { row, query_has_target, ..example });
        times.push(clock.of(without.row as u64));
        selective.scores.push([without, with]);
    }
    selective.times = times.into_iter().collect();
    Example::count_repeats(&mut selective.examples);
    Ok(selective)
}

/// Measured times by row of the task file.
struct TaskTimes {
    without: HashMap<u64, f64>,
    with: HashMap<u64, (f64, f64)>,
    decisions: HashMap<u64, f64>,
    without_embedding: bool,
}

impl TaskTimes {
    fn measure(
        experiment: &Experiment,
        mode: Mode,
        model: &str,
        decisions: &[Latency],
    ) -> Result<Self> {
        let without = latencies(experiment, Mode::Without, model)?;
        let with = latencies(experiment, mode, model)?;
        let without_embedding = with.iter().any(|latency| latency.without_embedding);
        let with = with.iter().filter_map(|latency: &Latency| {
            let times = (latency.retrieval(mode)?, latency.generation_ms?);
            Some((latency.row?, times))
        });
        let without =
            without.iter().filter_map(|latency| Some((latency.row?, latency.generation_ms?)));
        let decisions = decisions.iter().filter_map(|one| Some((one.row?, one.decision_ms?)));
        Ok(Self {
            without: without.collect(),
            with: with.collect(),
            decisions: decisions.collect(),
            without_embedding,
        })
    }

    fn of(&self, row: u64) -> Option<RequestTimes> {
        let &(retrieval, generation) = self.with.get(&row)?;
        Some(RequestTimes {
            base: *self.without.get(&row)?,
            decision: self.decisions.get(&row).copied(),
            ..RequestTimes::new(retrieval, generation)
        })
    }
}

/// Removes the choices that policies made in earlier runs between other predictions, of `mode` or without retrieval, than the
/// current ones; returns the files that it removed. Choices between the current predictions are kept.
///
/// # Errors
/// A file cannot be read or removed.
pub fn forget_outdated(experiment: &Experiment, mode: Mode, model: &str) -> Result<Vec<PathBuf>> {
    let of_nobody = experiment.paths().chosen_predictions("", mode, model);
    let (Some(folder), Some(end)) = (of_nobody.parent(), of_nobody.file_name()) else {
        return Ok(Vec::new());
    };
    let end = end.to_string_lossy();
    let read = |path: &Path| if path.exists() { jsonl::read(path) } else { Ok(Vec::new()) };
    let paths = [Mode::Without, mode].map(|mode| experiment.paths().predictions(mode, model));
    let (without, with) = (read(&paths[0])?, read(&paths[1])?);
    let both = jsonl::records(&without).chain(jsonl::records(&with));
    let known: HashSet<&[u8]> = both.map(|(_, line)| line).collect();
    let with = by_row(&paths[1], &with)?;
    let without = by_row(&paths[0], &without)?;
    let count = without.keys().filter(|row| with.contains_key(row)).count();
    let mut removed = Vec::new();
    for entry in files::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let policy = name.to_str().and_then(|name| name.strip_suffix(&*end));
        let name = policy.map(|policy| policy.split('@').next().unwrap_or(policy));
        if name.is_some_and(|name| name.parse::<Policy>().is_ok()) {
            let path = entry.path();
            let text = jsonl::read(&path)?;
            let is_known = |(_, line): (_, &[u8])| known.contains(line);
            if jsonl::records(&text).count() == count && jsonl::records(&text).all(is_known) {
                continue;
            }
            files::remove_file(&path).map_err(|e| Error::writing(&path, "remove this file", e))?;
            removed.push(path);
        }
    }
    removed.sort();
    Ok(removed)
}

/// Writes the predictions that policies chose, each policy's into its file, with the lines of the modes' artifacts: predictions
/// with retrieval for the policy's rows, and predictions without retrieval for the others.
///
/// # Errors
/// Predictions cannot be read, or the chosen ones cannot be written.
pub fn write_chosen(
    experiment: &Experiment,
    mode: Mode,
    model: &str,
    policies: &[(&Path, &BTreeSet<usize>)],
) -> Result<()> {
    let paths = [Mode::Without, mode].map(|mode| experiment.paths().predictions(mode, model));
    let (without, with) = (jsonl::read(&paths[0])?, jsonl::read(&paths[1])?);
    let (without, with) = (by_row(&paths[0], &without)?, by_row(&paths[1], &with)?);
    for (path, retrieved) in policies {
        // `forget_outdated` read the choices of an earlier run.
        inputs::release(path);
        let mut output = OutputFile::create(path)?;
        for (row, base) in &without {
            let line =
                if retrieved.contains(row) { with.get(row) } else { with.get(row).and(Some(base)) };
            output.write(line.copied().unwrap_or_default())?;
        }
        output.finish()?;
    }
    Ok(())
}

/// Returns the record of each row's first prediction, which is the one that is scored.
fn by_row<'t>(path: &Path, text: &'t [u8]) -> Result<BTreeMap<usize, &'t [u8]>> {
    let records: Vec<(RecordAddress, &[u8])> = jsonl::records(text).collect();
    let rows = parallel::map(&records, |(at, bytes)| {
        Latency::of_prompt(path, at.line, bytes).map(|latency| latency.row)
    });
    let mut found = BTreeMap::new();
    for (row, (_, record)) in rows.into_iter().zip(records) {
        if let Some(row) = row? {
            found.entry(row as usize).or_insert(record);
        }
    }
    Ok(found)
}
