//! Policies in a run: each chooses one of two predictions for every task.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Result, bail};
use repoformer::pipeline::{
    Completion, Experiment, Layout, PromptLayout, Selective, TokenQuestion, cached_probabilities,
    forget_chosen, prompt_totals, selective, write_chosen,
};
use repoformer::prompt::style::DecisionFrame;
use repoformer::retrieve::Mode;
use repoformer::selective::policy::model::CalibrationMethod;
use repoformer::selective::policy::sweep::RequestTimes;
use repoformer::selective::policy::{Example, Policy};
use serde_json::{Value, json};

use super::policy::scored::{Trained, lacking, score};
use super::report::Source;
use super::server::resumable;
use super::session::label;
use crate::output::{self, fail, with_bar};
use crate::settings::Settings;

/// A policy with its threshold, as `learned@0.2`.
#[derive(Debug, Clone)]
pub(super) struct Chosen {
    policy: Policy,
    threshold: f64,
    name: String,
}

/// The policies of a run, and the trained ones among them.
#[derive(Debug, Default)]
pub(super) struct Policies {
    chosen: Vec<Chosen>,
    trained: Trained,
    /// Files of the probabilities that policy self uses.
    probabilities: Vec<PathBuf>,
    /// Whether they were chosen for this run; those of a file are used where possible.
    asked: bool,
}

impl Policies {
    pub(super) fn of(probabilities: &[PathBuf], settings: &Settings) -> Result<Self> {
        let chosen = settings.list("policy");
        let mut names = BTreeSet::new();
        if let Some(twice) = chosen.iter().find(|name| !names.insert(name.as_str())) {
            return fail(
                format!("policy '{twice}' is given twice"),
                "give each once, or with another threshold",
            );
        }
        let chosen: Vec<Chosen> = chosen.iter().map(|text| parse(text)).collect::<Result<_>>()?;
        let has_self = chosen.iter().any(|one| one.policy == Policy::SelfDecision);
        if !probabilities.is_empty() && !has_self {
            return fail(
                "--probabilities is for policy self, which is not among the policies",
                "add --policy self@0.5, or leave it out",
            );
        }
        for path in probabilities {
            // Before the hours of completing.
            repoformer::store::jsonl::open(path)?;
        }
        Ok(Self {
            chosen,
            trained: Trained::read(settings.list("policy-model"))?,
            probabilities: probabilities.to_vec(),
            asked: settings.is_chosen("policy"),
        })
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// The choices of each policy, where both sets of predictions exist.
    pub(super) fn choose(
        &self,
        experiment: &Experiment,
        modes: &[Mode],
        completion: &Completion,
        seed: u64,
    ) -> Result<Vec<Selected>> {
        let retrieves = [Mode::LeftContext, Mode::Given];
        for mode in retrieves {
            forget_chosen(experiment, mode, &completion.model)?;
        }
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let mode = retrieves.into_iter().find(|mode| modes.contains(mode));
        let (Some(mode), true) = (mode, modes.contains(&Mode::Without)) else {
            let reason = "policies choose between none and rg1, and are left out";
            self.left_out(&format!("{}: {reason}", experiment.name));
            return Ok(Vec::new());
        };
        let mut probabilities = self.probabilities.clone();
        if probabilities.is_empty() && self.has(Policy::SelfDecision) {
            match ask(experiment, completion) {
                Ok(found) => probabilities.extend(found),
                Err(reason) => {
                    self.left_out(&format!("{}: policy self: {reason:#}", experiment.name))
                }
            }
        }
        let found = selective(experiment, mode, &completion.model, &probabilities)?;
        output::problems(&found.problems);
        let generator = Some(completion.model.as_str());
        self.trained.warn(&found.examples, generator);
        let mut all = Vec::new();
        for chosen in &self.chosen {
            match self.scores(chosen.policy, &found.examples, seed) {
                Ok(scores) => {
                    let (layout, model) = (&experiment.layout, &completion.model);
                    all.push(select(chosen, &found, &scores, layout, mode, model));
                }
                Err(reason) => self.left_out(&format!(
                    "{} {}: left out: {reason:#}",
                    experiment.name, chosen.name
                )),
            }
        }
        let chosen = all.iter().filter_map(|Selected { source, .. }| {
            Some((source.predictions.as_path(), source.retrieved.as_ref()?))
        });
        write_chosen(experiment, mode, &completion.model, &chosen.collect::<Vec<_>>())?;
        Ok(all)
    }

    fn has(&self, policy: Policy) -> bool {
        self.chosen.iter().any(|chosen| chosen.policy == policy)
    }

    /// Reports rows that cannot be made.
    fn left_out(&self, reason: &str) {
        if self.asked { output::failed(reason) } else { output::note(reason) }
    }

    /// The policy's score of each task.
    fn scores(&self, policy: Policy, examples: &[Example], seed: u64) -> Result<Vec<f64>> {
        let method = CalibrationMethod::default();
        let scored = score(policy, examples, &[], &self.trained, method, seed)?;
        let scores = scored.probabilities.unwrap_or(scored.ordered);
        match scores.iter().filter(|score| score.is_none()).count() {
            0 => Ok(scores.into_iter().flatten().collect()),
            n => bail!("{n} tasks lack {}", lacking(policy)),
        }
    }
}

/// Asks the server for the probability of the token that asks for retrieval, if there is a server and the prompt style names
/// the token; returns the files of the answers.
fn ask(experiment: &Experiment, completion: &Completion) -> Result<Option<PathBuf>> {
    let layout = &experiment.prompts.layout;
    let (PromptLayout::Style(style), true) = (layout, completion.server.is_some()) else {
        return Ok(None);
    };
    let frame = DecisionFrame::of(style, None, None)?;
    let question = TokenQuestion {
        text: frame.cc().to_owned(),
        id: None,
        after: Some(frame.eof().to_owned()),
    };
    let prompts = prompt_totals(experiment, Mode::Without)?.prompts;
    let (path, report) = with_bar("probabilities", prompts as usize, |bar| {
        let tick = || bar.inc(1);
        resumable(completion, || {
            cached_probabilities(experiment, Mode::Without, completion, &question, &tick)
        })
    })?;
    output::report(&label("probabilities", experiment), &report);
    Ok(Some(path))
}

/// `NAME` or `NAME@THRESHOLD`.
fn parse(text: &str) -> Result<Chosen> {
    let (name, threshold) =
        text.split_once('@').map_or((text, None), |(name, threshold)| (name, Some(threshold)));
    let policy: Policy = name.parse()?;
    let usual = match policy {
        Policy::Never | Policy::Always | Policy::Oracle => Some(0.0),
        // The paper's for lines, calls and chunks.
        Policy::Learned | Policy::LearnedScored => Some(0.2),
        Policy::Random | Policy::SelfDecision => Some(0.5),
        Policy::TrialRetrieval | Policy::TrialGeneration | Policy::Entropy => None,
    };
    if let (Policy::Never | Policy::Always, Some(_)) = (policy, threshold) {
        return fail(
            format!("policy '{text}': {policy} has no threshold"),
            format!("leave the threshold out: {policy}"),
        );
    }
    let threshold = match threshold {
        Some(threshold) => threshold.parse().ok().filter(|number: &f64| !number.is_nan()),
        None => usual,
    };
    match threshold {
        Some(threshold) => Ok(Chosen { policy, threshold, name: text.to_owned() }),
        None => fail(
            format!("policy '{text}' needs a threshold that is a number"),
            format!(
                "it retrieves where its score is above the threshold: {name}@0.3; `policy sweep` helps to choose one"
            ),
        ),
    }
}

/// The choices of a policy.
pub(super) struct Selected {
    /// The chosen predictions, named after the policy with its threshold.
    pub(super) source: Source,
    /// Scores of the chosen predictions, in the form of a mode's.
    pub(super) scores: Value,
    /// Number of tasks that it retrieves for.
    pub(super) retrieved: usize,
    /// Mean milliseconds per task in the paper's latency model, where its parts were measured.
    pub(super) latency_ms: Option<f64>,
}

/// Takes for each task the prediction that the policy chooses.
fn select(
    chosen: &Chosen,
    found: &Selective,
    scores: &[f64],
    layout: &Layout,
    mode: Mode,
    model: &str,
) -> Selected {
    let retrieves: Vec<bool> = scores.iter().map(|&score| score > chosen.threshold).collect();
    let pairs = found.scores.iter().zip(&retrieves);
    let tasks: Vec<Value> =
        pairs.map(|(scores, &retrieves)| scores[usize::from(retrieves)].clone()).collect();
    let count = tasks.len().max(1) as f64;
    let mean = |name: &str| {
        let values = tasks.iter().filter_map(|task| task["repocoder"][name].as_f64());
        values.sum::<f64>() / count
    };
    let all = json!({"n": tasks.len(), "repocoder": {"em": mean("em"), "es": mean("es")}});
    let rows = tasks.iter().zip(&retrieves).filter(|(_, retrieves)| **retrieves);
    let latency = |times: &Vec<RequestTimes>| {
        let costs = times.iter().zip(&retrieves);
        let costs = costs.map(|(times, &retrieves)| times.cost(chosen.policy, retrieves));
        costs.sum::<f64>() / count
    };
    let retrieved: BTreeSet<usize> =
        rows.filter_map(|(task, _)| Some(task["row"].as_u64()? as usize)).collect();
    Selected {
        latency_ms: found.times.as_ref().map(latency),
        scores: json!({"all": all, "tasks": tasks}),
        retrieved: retrieved.len(),
        source: Source {
            name: chosen.name.clone(),
            predictions: layout.chosen_predictions(&chosen.name, mode, model),
            made_as: Some(layout.predictions(mode, model)),
            prompts: Some(layout.prompts(mode)),
            retrieved: Some(retrieved),
        },
    }
}
