//! Labels instances by comparing a model's completions without and with retrieval.

use std::collections::BTreeMap;
use std::path::Path;

use foldhash::HashMap;
use repoformer_core::label::{LIKELIHOOD, Label, PASS, Signals};
use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::Postprocess;
use repoformer_core::prompt::shown::{ShownContexts, ShownFragment, read_checked};
use repoformer_core::task::cross_file::CrossFile;
use repoformer_core::task::{Task, TaskSet};
use repoformer_store::error::{Error, LabelInput, Result};
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use super::instances::{Batch, Instances};
use super::likelihoods::{Likelihood, likelihoods};
use super::settings::{JudgeSettings, LabelCriterion, check_threshold};
use super::signals::{entropies, probabilities, signals};
use super::summary::{EmitLabel, JudgeSummary, JudgedInstance, MissingCompletion};
use super::trials::{TrialScores, wrong_mode};
use crate::executed::{self, TestOutcome};
use crate::origin::Origin;
use crate::predictions::{self, TaskIndex};
use crate::score::{MissingPredictions, Scoring, score_tasks, target_digest};

/// Judges instances by predictions without (`base`) and with (`augmented`) their cross-file context: retrieval helps if the
/// edit similarity, or the pass rate, rises by more than `threshold` (0 in the paper). Both files must have the same model,
/// prompt style and settings, as far as the files record them. Instances may be tasks of any benchmark. `emit` receives a
/// record in the label format for each instance with both completions, in order. Only a few hundred instances are in memory at
/// a time.
///
/// # Errors
/// A file cannot be read, the files were made in different ways, or `emit` fails.
pub fn judge(judging: &JudgeSettings<'_>, emit: &mut EmitLabel<'_>) -> Result<JudgeSummary> {
    let JudgeSettings { base, augmented, .. } = *judging;
    if base == augmented {
        return Err(Error::from_refusal(
            "the predictions with and without retrieval are the same file, so no gain can be measured",
            message![
                "pass different files as ",
                UserChoice::BasePredictions,
                " and ",
                UserChoice::RetrievalPredictions
            ],
        ));
    }
    check_threshold(judging.threshold)?;
    if matches!(judging.by, LabelCriterion::Tests(_)) && !judging.trials.is_empty() {
        return Err(Error::from_refusal(
            "metric pass judges completions with all fragments, not single fragments",
            "choose another metric",
        ));
    }
    let mut judged = JudgeSummary::default();
    let known = JudgeInputs::read(judging, &mut judged)?;
    judged.metric = known.scorer.metric_name().to_owned();
    known.instances.for_each_batch(&mut |batch| known.judge(batch, &mut judged, emit))?;
    Ok(judged)
}

/// Data needed before the first instance is judged.
struct JudgeInputs<'a> {
    judging: &'a JudgeSettings<'a>,
    instances: Instances<'a>,
    scorer: Scorer<'a>,
    /// Scores of prompts that show some of an instance's fragments.
    trials: TrialScores,
    /// Pass rates of each row without and with retrieval, if they are the criterion.
    passed: Option<[BTreeMap<usize, TestOutcome>; 2]>,
    /// Probabilities of each task's target without and with retrieval, if they are the criterion.
    likely: Option<[Vec<Option<Likelihood>>; 2]>,
    model: Option<String>,
    /// Predictions of each task without and with retrieval.
    predictions: [Vec<Vec<String>>; 2],
    signals: Vec<Signals>,
    /// Contexts of each row's prompt, if the instances lack them.
    shown: Option<HashMap<usize, ShownContexts>>,
    /// True if these contexts come from a new search, and not from the instances.
    asks_anew: bool,
}

impl<'a> JudgeInputs<'a> {
    fn read(judging: &'a JudgeSettings<'a>, judged: &mut JudgeSummary) -> Result<Self> {
        let JudgeSummary { problems, warnings, .. } = judged;
        let instances = Instances::read(judging.instances, judging.shard, problems)?;
        let tasks = &instances.tasks;
        let (model, asks_anew) = check_origins(judging)?;
        let is_likelihood = judging.by == LabelCriterion::Likelihood;
        let likely = if is_likelihood {
            Some([
                likelihoods(judging.base, tasks, problems, warnings)?,
                likelihoods(judging.augmented, tasks, problems, warnings)?,
            ])
        } else {
            None
        };
        let mut of_file = |path: &Path| -> Result<_> {
            if is_likelihood {
                return Ok(Vec::new());
            }
            let joined = predictions::read(path, tasks)?;
            problems.extend(joined.problems);
            warnings.extend(predictions::warning(path, &joined.numbered));
            Ok(joined.predictions)
        };
        let predictions = [of_file(judging.base)?, of_file(judging.augmented)?];
        for (path, predictions) in [judging.base, judging.augmented].into_iter().zip(&predictions) {
            check_sample_counts(path, tasks, predictions)?;
        }
        let mut signals = if is_likelihood {
            vec![Signals::default(); tasks.tasks().len()]
        } else {
            signals(judging.base, tasks)?
        };
        if let Some(path) = judging.samples {
            let found = entropies(path, tasks, &mut signals)?;
            warnings.extend(predictions::warning(path, &found.numbered));
            problems.extend(found.problems);
        }
        if let Some(path) = judging.probabilities {
            let found = probabilities(path, tasks, &mut signals)?;
            if let Some(others) = found.others {
                return Err(others);
            }
            if found.found == 0 {
                return Err(found.nothing(path));
            }
            warnings.extend(predictions::warning(path, &found.numbered));
            problems.extend(found.problems);
            problems.extend(found.unmatched);
        }
        let shown = match judging.prompts {
            Some(path) => Some(read_shown_contexts(path, tasks, problems, warnings)?),
            None => None,
        };
        let passed = read_pass_rates(judging, tasks, warnings)?;
        let scorer = Scorer {
            by: judging.by,
            postprocess: judging.postprocess,
            are_bodies: instances.are_bodies(),
            metric: match judging.by {
                LabelCriterion::Similarity(metric) => metric,
                _ => Scoring::new(&instances.first, &[]).first(),
            },
        };
        let mut trials = TrialScores::default();
        for files in judging.trials {
            trials.add(files.each_ref().map(|path| &**path), &instances, &scorer, judged)?;
        }
        Ok(Self {
            judging,
            scorer,
            trials,
            passed,
            likely,
            model,
            predictions,
            signals,
            shown,
            asks_anew,
            instances,
        })
    }

    /// Judges the instances of a batch.
    fn judge(
        &self,
        mut batch: Batch,
        judged: &mut JudgeSummary,
        emit: &mut EmitLabel<'_>,
    ) -> Result<()> {
        if let Some(shown) = &self.shown {
            for (task, label) in batch.tasks.iter().zip(&mut batch.labels) {
                let found = shown.get(&task.row).cloned().unwrap_or_default();
                let fragments = found.fragments.iter().map(ShownFragment::to_cross_file).collect();
                let cross_file = CrossFile::new(fragments, task.language());
                label.show(cross_file, found.right);
                if self.asks_anew {
                    label.forget_query();
                }
            }
        }
        let path = self.instances.tasks.path.clone();
        let tasks = TaskSet::new(path, batch.tasks);
        if let Some(likely) = &self.likely {
            let instances = batch.labels.into_iter().zip(batch.places).enumerate();
            for (number, (label, place)) in instances {
                let digest = target_digest(&label.ground_truth);
                let of = |of: usize| likely[of][place];
                let outcome = match (of(0), of(1)) {
                    (Some(without), Some(with)) => {
                        let is_other = [without, with].iter().any(|one| one.is_of_other(digest));
                        let both =
                            Outcome::Likelihood([without, with].map(|one| one.per_character));
                        if is_other {
                            Err("the probability belongs to another target".into())
                        } else {
                            Ok(both)
                        }
                    }
                    (without, with) => {
                        let lacking = MissingCompletion::new(without.is_some(), with.is_some());
                        *judged.lacking.entry(lacking).or_default() += 1;
                        continue;
                    }
                };
                let task = &tasks.tasks()[number];
                let labelled =
                    outcome.and_then(|both| self.label(task.row, label, both, self.signals[place]));
                judged.take(&tasks, task, labelled, emit)?;
            }
            return Ok(());
        }
        let [without, with] = [0, 1].map(|of| {
            let samples = batch.places.iter().map(|&place| self.predictions[of][place].as_slice());
            self.scorer.score(&tasks, &samples.collect::<Vec<_>>())
        });
        let (without, with) = (without?, with?);
        for ((number, label), place) in batch.labels.into_iter().enumerate().zip(batch.places) {
            let row = tasks.tasks()[number].row;
            let rates = self.passed.as_ref().map(|passed| {
                let rate = |of: &BTreeMap<usize, TestOutcome>| of.get(&row)?.pass_rate;
                Some([rate(&passed[0])?, rate(&passed[1])?])
            });
            let lacking = match (without[number], with[number]) {
                (Some(_), Some(_)) if rates == Some(None) => MissingCompletion::Tests,
                (Some(without), Some(with)) => {
                    let outcome = Outcome::Completions([without, with], rates.flatten());
                    let labelled = self.label(row, label, outcome, self.signals[place]);
                    judged.take(&tasks, &tasks.tasks()[number], labelled, emit)?;
                    continue;
                }
                (without, with) => MissingCompletion::new(without.is_some(), with.is_some()),
            };
            *judged.lacking.entry(lacking).or_default() += 1;
        }
        Ok(())
    }

    /// Adds the judgement to an instance, or returns the reason why it cannot be judged.
    fn label(
        &self,
        row: usize,
        mut label: Label,
        outcome: Outcome,
        signals: Signals,
    ) -> Result<JudgedInstance, String> {
        // Without this check, the instance would count as one that shows no fragments.
        if let (Some(shown), Some(prompts)) = (&self.shown, self.judging.prompts)
            && !shown.contains_key(&row)
        {
            return Err(format!(
                "{} has no prompt for row {row}: pass the prompts that were completed",
                prompts.display()
            ));
        }
        if let (Some(before), Some(now)) = (&label.generation_model, &self.model)
            && before != now
        {
            return Err(format!(
                "it was judged with completions of model {before}, but these are of {now}"
            ));
        }
        // This signal depends only on the prompt and the model, the others on the completion.
        let is_same_model =
            label.generation_model.is_some() && label.generation_model == self.model;
        let before = Some(label.signals).filter(|_| is_same_model).unwrap_or_default();
        let said = if signals.cc_probability.is_some() { signals } else { before };
        let Signals { cc_probability, cc_likeliest, .. } = said;
        label.signals = Signals { cc_probability, cc_likeliest, ..signals };
        label.generation_model = self.model.clone().or(label.generation_model);
        let without = outcome.score_without();
        let metric = self.scorer.metric_name();
        let gain = compare(&mut label, outcome, metric, self.judging.threshold);
        // Earlier gains belong to other completions.
        let (gains, wrong) = self.trials.gains(row, &label, without);
        label.gains = gains;
        Ok(JudgedInstance { label, gain, wrong })
    }
}

/// Scores of completions by the criterion of the labels.
pub(super) struct Scorer<'a> {
    by: LabelCriterion<'a>,
    metric: Metric,
    /// True if instances of unknown kind are function bodies.
    are_bodies: bool,
    postprocess: &'a Postprocess,
}

impl Scorer<'_> {
    /// Returns true if the labels compare probabilities, and not completions.
    pub(super) fn is_likelihood(&self) -> bool {
        self.by == LabelCriterion::Likelihood
    }

    /// Scores each task's prediction after its cut; `None` without a prediction.
    pub(super) fn score(
        &self,
        tasks: &TaskSet,
        samples: &[&[String]],
    ) -> Result<Vec<Option<CompletionScore>>> {
        score(tasks, samples, self.metric, self.are_bodies, self.postprocess)
    }

    fn metric_name(&self) -> &'static str {
        match self.by {
            LabelCriterion::Tests(_) => PASS,
            LabelCriterion::Likelihood => LIKELIHOOD,
            _ => self.metric.name(),
        }
    }
}

/// Checks that each task has at most one sample.
pub(super) fn check_sample_counts(
    path: &Path,
    tasks: &TaskSet,
    predictions: &[Vec<String>],
) -> Result<()> {
    let Some(place) = predictions.iter().position(|samples| samples.len() > 1) else {
        return Ok(());
    };
    let reason = format!(
        "task {} has {} samples, but a label compares two single completions",
        tasks.tasks()[place].id,
        predictions[place].len()
    );
    Err(Error::labelling(path, reason, LabelInput::Samples))
}

/// Judges one instance by a model's completions without and with its cross-file context, as [`judge`] does by the usual metric.
///
/// # Errors
/// The completions cannot be scored.
pub fn judge_one(
    task: Task,
    completions: [String; 2],
    model: Option<&str>,
    threshold: f64,
) -> Result<Label> {
    let (mut label, path) = (Label::of_task(&task), task.path.clone().into());
    let tasks = TaskSet::new(path, vec![task]);
    let metric = Scoring::new(tasks.tasks(), &[]).first();
    let own = Postprocess::own(false);
    let score = |completion: String| {
        let scores = score(&tasks, &[&[completion]], metric, false, &own)?;
        scores[0].ok_or_else(|| tasks.error(&tasks.tasks()[0], "its completion has no score"))
    };
    let [without, with] = completions;
    let (without, with) = (score(without)?, score(with)?);
    label.generation_model = model.map(str::to_owned);
    compare(&mut label, Outcome::Completions([without, with], None), metric.name(), threshold);
    Ok(label)
}

/// Sets the scores and the label, and returns the gain.
fn compare(label: &mut Label, outcome: Outcome, metric: &str, threshold: f64) -> f64 {
    let (scores, rates, likely) = match outcome {
        Outcome::Completions(scores, rates) => (Some(scores), rates, None),
        Outcome::Likelihood(likely) => (None, None, Some(likely)),
    };
    let es = scores.map(|scores| scores.map(|score| score.es));
    let em = scores.map(|scores| scores.map(|score| score.em));
    let both = |of: Option<[f64; 2]>| (of.map(|of| of[0]), of.map(|of| of[1]));
    (label.es_infile, label.es_rg1) = both(es);
    (label.em_infile, label.em_rg1) = both(em);
    (label.pass_infile, label.pass_rg1) = both(rates);
    (label.likelihood_infile, label.likelihood_rg1) = both(likely);
    let gain = likely.or(rates).or(es).map_or(0.0, |[without, with]| with - without);
    // Turns -0 into 0.
    let threshold = threshold + 0.0;
    label.metric = Some(metric.to_owned());
    label.label = Some(gain > threshold);
    label.threshold = Some(threshold);
    gain
}

/// Scores each task's prediction after its cut; `None` without a prediction. Tasks of unknown kind count as function bodies if
/// `are_bodies`.
fn score(
    tasks: &TaskSet,
    samples: &[&[String]],
    metric: Metric,
    are_bodies: bool,
    postprocess: &Postprocess,
) -> Result<Vec<Option<CompletionScore>>> {
    let kind = |task: &Task| Some(task.kind()? == "function");
    let mut found = vec![None; tasks.tasks().len()];
    for function_bodies in [false, true] {
        let is_of_kind = |task: &Task| kind(task).unwrap_or(are_bodies) == function_bodies;
        let of_kind: Vec<Vec<String>> = tasks
            .tasks()
            .iter()
            .zip(samples)
            .map(|(task, samples)| {
                let samples = samples.iter().filter(|_| is_of_kind(task));
                samples.cloned().collect()
            })
            .collect();
        let postprocess = postprocess.clone().with_bodies(function_bodies);
        let scores =
            score_tasks(tasks, &of_kind, &[metric], &postprocess, MissingPredictions::Skip)?;
        let by_row: BTreeMap<usize, CompletionScore> = scores
            .tasks
            .iter()
            .filter_map(|task| {
                let (em, es) = (task.get(metric, "em")?, task.get(metric, "es")?);
                Some((task.row, CompletionScore { em, es }))
            })
            .collect();
        for (found, task) in found.iter_mut().zip(tasks.tasks()) {
            *found = found.or_else(|| by_row.get(&task.row).copied());
        }
    }
    Ok(found)
}

/// Effect of retrieval on an instance: values without and with it.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    /// Scores of the completions, and their pass rates if these are the criterion.
    Completions([CompletionScore; 2], Option<[f64; 2]>),
    /// Probabilities of the target.
    Likelihood([f64; 2]),
}

impl Outcome {
    /// Returns the score without retrieval, by the labels' criterion.
    fn score_without(&self) -> f64 {
        match self {
            Self::Completions([without, _], None) => without.es,
            Self::Completions(_, Some([without, _])) | Self::Likelihood([without, _]) => *without,
        }
    }
}

/// Reads the pass rates of exactly these predictions, if they are the criterion.
fn read_pass_rates(
    judging: &JudgeSettings<'_>,
    tasks: &TaskSet,
    warnings: &mut Vec<String>,
) -> Result<Option<[BTreeMap<usize, TestOutcome>; 2]>> {
    let LabelCriterion::Tests(results) = judging.by else {
        return Ok(None);
    };
    let mut all = Vec::new();
    for ((path, name), predictions) in results.into_iter().zip([judging.base, judging.augmented]) {
        let is_of = executed::is_of(path, predictions)?;
        if is_of == Some(false) {
            let reason = format!(
                "contains test results of predictions other than {}",
                predictions.display()
            );
            return Err(Error::labelling(path, reason, LabelInput::TestResults));
        }
        let found = executed::read_executed(path, name)?;
        let numbered = executed::join(path, &found, tasks)?;
        if is_of.is_none() {
            warnings.extend(numbered.warning(path.display(), None));
        }
        if found.is_empty() {
            let reason = format!("contains no test results of predictions '{name}'");
            return Err(Error::labelling(path, reason, LabelInput::TestedName));
        }
        all.push(found);
    }
    Ok(<[_; 2]>::try_from(all).ok())
}

/// Reads the contexts that the prompts of these instances show.
fn read_shown_contexts(
    path: &Path,
    tasks: &TaskSet,
    problems: &mut Vec<Error>,
    warnings: &mut Vec<String>,
) -> Result<HashMap<usize, ShownContexts>> {
    let index = TaskIndex::new(tasks);
    // Ignore prompts that belong to none of the instances.
    let (shown, wrong) = read_checked(path, |line, object| drop(index.find(path, line, object)))?;
    problems.extend(wrong);
    warnings.extend(predictions::warning(path, &index.finish(path)?));
    Ok(shown)
}

/// Scores of a completion, between 0 and 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct CompletionScore {
    pub(super) em: f64,
    pub(super) es: f64,
}

/// Returns the model of both files; `None` if it is unknown.
fn one_model(named: Option<&str>, base: &Origin, augmented: &Origin) -> Result<Option<String>> {
    let wrong =
        |of: &Origin, reason: String| Error::labelling(of.path(), reason, LabelInput::Model);
    let mut named_models = Vec::new();
    for of in [base, augmented] {
        let mut known = of.models().chain(named);
        if let Some(first) = known.next()
            && let Some(other) = known.find(|other| *other != first)
        {
            return Err(wrong(
                of,
                format!("contains completions of two models, {first} and {other}"),
            ));
        }
        named_models.push(of.models().next().or(named).map(str::to_owned));
    }
    match (&named_models[0], &named_models[1]) {
        (one, other) if one == other => Ok(named_models.swap_remove(0)),
        (Some(one), Some(other)) => Err(wrong(
            augmented,
            format!(
                "these predictions are of model {other}, but the predictions without retrieval are of {one}"
            ),
        )),
        (None, _) => Err(wrong(base, UNNAMED.into())),
        (_, None) => Err(wrong(augmented, UNNAMED.into())),
    }
}

const UNNAMED: &str = "does not name the model of its predictions";

/// Checks that the files can be compared, given how they were made. Returns their model, `None` if it is unknown, and whether
/// fragments come from a new search.
fn check_origins(judging: &JudgeSettings<'_>) -> Result<(Option<String>, bool)> {
    let (base, augmented) = (Origin::read(judging.base)?, Origin::read(judging.augmented)?);
    let model = one_model(judging.model, &base, &augmented)?;
    base.check_without()?;
    augmented.check_with()?;
    augmented.check_style_of(&base)?;
    augmented.check_settings_of(&base)?;
    if let Some(path) = judging.prompts {
        let prompts = Origin::read(path)?;
        prompts.check_mode_of(&augmented)?;
        prompts.check_style_of(&augmented)?;
    }
    for [_, answers] in judging.trials {
        let trials = Origin::read(answers)?;
        one_model(judging.model, &base, &trials)?;
        trials.check_with()?;
        trials.check_style_of(&base)?;
        trials.check_settings_of(&base)?;
        if trials.asks_anew() {
            return Err(wrong_mode(answers));
        }
    }
    if let Some(path) = judging.samples {
        let samples = Origin::read(path)?;
        one_model(judging.model, &base, &samples)?;
        samples.check_without()?;
        samples.check_style_of(&base)?;
    }
    if let Some(path) = judging.probabilities {
        let probabilities = Origin::read(path)?;
        probabilities.check_without()?;
        probabilities.check_style_of(&base)?;
        probabilities.check_token()?;
    }
    Ok((model, augmented.asks_anew()))
}
