//! Panels of a figure: judged tasks, and the properties that distinguish one panel from another.

use std::collections::BTreeMap;

use anyhow::Result;
use repoformer_core::policy::sweep::{LatencyModel, SweepCurve};
use repoformer_core::policy::{Example, Measure, Policy, Threshold};
use repoformer_core::prompt::style::Style;
use repoformer_core::retrieve::Mode;
use repoformer_pipeline as pipeline;
use repoformer_pipeline::{Completion, Experiment, SignalSources, cached_predictions};
use repoformer_text::message;

use super::tasks::{Tasks, tasks_of};
use crate::experiments::experiment_like;
use crate::fail;
use crate::judged::{JudgedPolicy, JudgedTasks};
use crate::settings::{DECLARED, OtherModel, Settings};

/// Judged tasks of one file, by one model, ranker and right context.
pub struct Panel {
    pub(crate) tasks: Tasks,
    /// Name of the task file.
    pub(crate) benchmark: String,
    /// Sizes of the fragments.
    pub(crate) cut: String,
    pub(crate) ranker: String,
    /// True if prompts include the right context.
    pub(crate) has_right: bool,
    pub(crate) model: String,
    pub(crate) judged: JudgedTasks,
    /// Completions of these tasks by other models, in the same order.
    pub(crate) beside: Vec<(String, Vec<Example>)>,
    pub(crate) measure: Measure,
    /// Metric of edit similarities.
    pub(crate) metric: String,
}

impl Panel {
    /// Creates a panel of an experiment's tasks, judged by a metric of this name.
    ///
    /// # Errors
    /// Another model has no predictions for these tasks.
    pub fn new(
        experiment: &Experiment,
        settings: &Settings,
        completion: &Completion,
        judged: JudgedTasks,
        metric: String,
    ) -> Result<Self> {
        Ok(Self {
            tasks: tasks_of(experiment, settings)?,
            benchmark: experiment.layout.benchmark.clone(),
            cut: experiment.layout.cut.to_string(),
            // No ranker produced the contexts that tasks carry.
            ranker: match judged.mode {
                Mode::Given => Mode::Given.to_string(),
                _ => experiment.retrieval.search.ranker.to_string(),
            },
            has_right: experiment.prompts.layout.style().is_some_and(Style::shows_right),
            model: completion.model.clone(),
            beside: beside(experiment, settings, completion, &judged)?,
            judged,
            measure: Measure::default(),
            metric,
        })
    }

    /// Returns true if another panel shows the same data. This happens for contexts that tasks carry, which are the same for
    /// every ranker.
    pub fn repeats(&self, other: &Self) -> bool {
        let is_given = self.judged.mode == Mode::Given && other.judged.mode == Mode::Given;
        is_given && self.benchmark == other.benchmark && self.has_right == other.has_right
    }

    pub(crate) fn head(&self) -> String {
        match self.measure {
            Measure::Similarity => self.tasks.head(),
            Measure::Pass => format!("{} UT", self.tasks.head()),
            Measure::Likelihood => format!("{} likelihood", self.tasks.head()),
        }
    }

    /// Returns these tasks judged by their unit tests, given pass rates by row without and with retrieval. Tasks without
    /// results, or with inconclusive tests, are left out.
    pub fn judge_by_tests(
        &self,
        without: &BTreeMap<usize, f64>,
        with: &BTreeMap<usize, f64>,
    ) -> Option<Self> {
        let rates =
            |example: &Example| Some((*without.get(&example.row?)?, *with.get(&example.row?)?));
        let kept: Vec<bool> = self.judged.examples.iter().map(|one| rates(one).is_some()).collect();
        let mut judged = self.judged.only(&kept);
        for example in &mut judged.examples {
            let (base, augmented) = rates(example)?;
            (example.score_base, example.score_rag) = (base, augmented);
            example.label = augmented > base;
            example.is_right = Some(base >= 1.0);
        }
        // The oracle uses the measure of the panel.
        for policy in judged.policies.iter_mut().filter(|one| one.policy == Policy::Oracle) {
            policy.ordered = judged.examples.iter().map(Example::gain).collect();
            policy.threshold = policy.asked.value(&policy.ordered);
            let is_above = |gain: &f64| *gain > policy.threshold;
            policy.retrieves = policy.ordered.iter().map(is_above).collect();
        }
        (!judged.examples.is_empty()).then(|| Self {
            tasks: self.tasks.clone(),
            benchmark: self.benchmark.clone(),
            cut: self.cut.clone(),
            ranker: self.ranker.clone(),
            has_right: self.has_right,
            model: self.model.clone(),
            judged,
            beside: Vec::new(),
            measure: Measure::Pass,
            metric: self.metric.clone(),
        })
    }

    /// Returns the curve of a policy, at these thresholds or at all.
    pub fn curve(&self, policy: &JudgedPolicy, thresholds: &[Threshold]) -> SweepCurve {
        let scores = match (&policy.probabilities, thresholds) {
            (Some(probabilities), [_, ..]) => probabilities,
            _ => &policy.ordered,
        };
        let clocks: &[LatencyModel] = self.judged.clock.as_slice();
        SweepCurve::new(
            policy.policy,
            &self.judged.examples,
            scores,
            policy.probabilities.as_deref(),
            thresholds,
            clocks,
        )
    }
}

/// Returns the tasks as other models, `MODEL` or `MODEL@STYLE`, completed them in earlier runs, with this run's settings except
/// for the style.
fn beside(
    experiment: &Experiment,
    settings: &Settings,
    completion: &Completion,
    judged: &JudgedTasks,
) -> Result<Vec<(String, Vec<Example>)>> {
    let mut all = Vec::new();
    for text in settings.beside.iter() {
        let OtherModel { model, style } = text;
        if text.to_string() == completion.model {
            return fail(
                message![&DECLARED.beside, format!(" {text} is the model of this run")],
                "name another model, or the same model with another prompt style: MODEL@STYLE",
            );
        }
        let other = experiment_like(experiment, settings, style.as_ref())?;
        let their = Completion { model: model.clone(), ..completion.clone() };
        for mode in [Mode::Without, judged.mode] {
            if !other.paths().predictions(mode, model).exists() {
                return fail(
                    format!("{}: there are no predictions of {model} ({mode})", experiment.name),
                    message![
                        "run these tasks first with ",
                        &DECLARED.model,
                        format!(" {model}, in this cache; "),
                        &DECLARED.beside,
                        format!(" {model}@STYLE names its prompt style")
                    ],
                );
            }
            cached_predictions(&other, mode, &their)?;
        }
        let found = pipeline::selective(&other, judged.mode, model, &SignalSources::default())?;
        settings.messages.problems(found.problems);
        let rows = |examples: &[Example]| examples.iter().map(|one| one.row).collect::<Vec<_>>();
        if rows(&found.examples) != rows(&judged.examples) {
            return fail(
                format!(
                    "{}: {text} completed {} tasks and {} {}, or different tasks",
                    experiment.name,
                    found.examples.len(),
                    completion.model,
                    judged.examples.len()
                ),
                "complete all tasks with both models first",
            );
        }
        all.push((text.to_string(), found.examples));
    }
    Ok(all)
}

/// Returns the measure of the panels with this heading.
pub(super) fn measure(panels: &[Panel], head: &str) -> Measure {
    let found = panels.iter().find(|panel| panel.head() == head);
    found.map_or(Measure::default(), |panel| panel.measure)
}

/// Returns the headings of the panels, without duplicates, in order.
pub(super) fn heads(panels: &[Panel]) -> Vec<String> {
    let mut heads: Vec<String> = Vec::new();
    for head in panels.iter().map(Panel::head) {
        if !heads.contains(&head) {
            heads.push(head);
        }
    }
    heads
}

/// Describes how a panel differs from the others: task file, ranker, sizes of fragments, contexts.
pub(super) fn variation(panels: &[Panel], panel: &Panel) -> String {
    let mut words: Vec<&str> = Vec::new();
    let is_twin =
        |other: &&Panel| other.head() == panel.head() && other.benchmark != panel.benchmark;
    words.extend(panels.iter().find(is_twin).map(|_| panel.benchmark.as_str()));
    let varies = |of: fn(&Panel) -> &str| panels.iter().any(|other| of(other) != of(panel));
    if varies(|one| &one.ranker) {
        words.push(&panel.ranker);
    }
    // Functions have sizes of their own.
    let is_same = |other: &&Panel| other.head() == panel.head();
    if panels.iter().filter(is_same).any(|other| other.cut != panel.cut) {
        words.push(&panel.cut);
    }
    if panels.iter().any(|other| other.has_right != panel.has_right) {
        words.push(if panel.has_right { "L+R" } else { "L" });
    }
    words.join(" ")
}

/// Returns the name of a series of a panel.
pub(super) fn series(panels: &[Panel], panel: &Panel, name: &str) -> String {
    format!("{} {name}", variation(panels, panel)).trim().to_owned()
}
