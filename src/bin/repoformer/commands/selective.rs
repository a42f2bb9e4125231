//! Rows of a run that retrieve for some tasks only, by a policy.

use anyhow::{Result, anyhow};
use repoformer::pipeline::{Completion, Experiment, Selective, selective};
use repoformer::policy::model::Method;
use repoformer::policy::{Example, Policy};
use repoformer::query::Mode;
use repoformer::statistics::Resampling;
use serde_json::{Value, json};

use super::policy::scored::{Trained, score};
use super::rows::{Row, Selected};
use crate::args::RunArgs;
use crate::config::Settings;
use crate::output::{Printer, hinted};

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
    /// Whether flags name them: what settings name serves where it can.
    asked: bool,
}

impl Policies {
    /// Those of the flags, or else of the settings.
    pub(super) fn of(args: &RunArgs, settings: &Settings) -> Result<Self> {
        let of_flags = |flags: &[String], key: &str| match flags {
            [] => settings.list(key).to_vec(),
            flags => flags.to_vec(),
        };
        let chosen = of_flags(&args.policy, "policy");
        let models = of_flags(&args.policy_model, "policy-model");
        Ok(Self {
            chosen: chosen
                .iter()
                .map(|text| parse(text))
                .collect::<Result<_>>()?,
            trained: Trained::read(&models)?,
            asked: !args.policy.is_empty(),
        })
    }

    /// A row a policy, where both the predictions that it chooses between are there.
    pub(super) fn rows(
        &self,
        experiment: &Experiment,
        modes: &[Mode],
        completion: &Completion,
        resampling: &Resampling,
        printer: &mut Printer,
    ) -> Result<Vec<Row>> {
        if self.chosen.is_empty() {
            return Ok(Vec::new());
        }
        let retrieves = [Mode::LeftContext, Mode::Given];
        let mode = retrieves.into_iter().find(|mode| modes.contains(mode));
        let (Some(mode), true) = (mode, modes.contains(&Mode::Without)) else {
            let benchmark = &experiment.layout.benchmark;
            self.left_out(
                &format!("{benchmark}: policies choose between none and rg1, and are left out"),
                printer,
            );
            return Ok(Vec::new());
        };
        let found = selective(experiment, mode, &completion.model)?;
        let generator = Some(completion.model.as_str());
        self.trained.warn(&found.examples, generator, printer);
        let mut rows = Vec::new();
        for chosen in &self.chosen {
            match self.scores(chosen.policy, &found.examples, resampling.seed) {
                Ok(scores) => {
                    let selected = select(chosen, &found, &scores);
                    rows.push(Row::selective(experiment, selected, resampling));
                }
                Err(reason) => self.left_out(
                    &format!(
                        "{} {}: left out: {reason:#}",
                        experiment.layout.benchmark, chosen.name
                    ),
                    printer,
                ),
            }
        }
        Ok(rows)
    }

    /// Tells of rows that cannot be.
    fn left_out(&self, reason: &str, printer: &mut Printer) {
        match self.asked {
            true => printer.failed(reason),
            false => printer.note(reason),
        }
    }

    /// What decides for each task.
    fn scores(&self, policy: Policy, examples: &[Example], seed: u64) -> Result<Vec<f64>> {
        let scored = score(
            policy,
            (examples, &[]),
            &self.trained,
            (Method::default(), seed),
        )?;
        let scores = scored.probabilities.unwrap_or(scored.ordered);
        let lacking = scores.iter().filter(|score| score.is_none()).count();
        match lacking {
            0 => Ok(scores.into_iter().flatten().collect()),
            n => Err(anyhow!("{n} tasks lack {}", policy.lacking())),
        }
    }
}

/// `NAME` or `NAME@THRESHOLD`.
fn parse(text: &str) -> Result<Chosen> {
    let (name, threshold) = match text.split_once('@') {
        Some((name, threshold)) => (name, Some(threshold)),
        None => (text, None),
    };
    let policy: Policy = name.parse()?;
    let usual = match policy {
        Policy::Never | Policy::Always | Policy::Oracle => Some(0.0),
        // The paper's for lines, calls and chunks.
        Policy::Learned | Policy::LearnedScored => Some(0.2),
        Policy::Random | Policy::SelfDecision => Some(0.5),
        Policy::TrialRetrieval | Policy::TrialGeneration | Policy::Entropy => None,
    };
    if let (Policy::Never | Policy::Always, Some(_)) = (policy, threshold) {
        return Err(hinted(
            anyhow!("policy '{text}': {policy} has no threshold"),
            format!("leave it out: {policy}"),
        ));
    }
    let threshold = match threshold {
        Some(threshold) => threshold
            .parse()
            .ok()
            .filter(|number: &f64| !number.is_nan()),
        None => usual,
    };
    let threshold = threshold.ok_or_else(|| {
        hinted(
            anyhow!("policy '{text}' has no threshold that is a number"),
            format!("it retrieves where its score is above one: {name}@0.3; `policy sweep` shows which is good"),
        )
    })?;
    Ok(Chosen {
        policy,
        threshold,
        name: text.to_owned(),
    })
}

/// For each task the score of the prediction that the policy chooses.
fn select(chosen: &Chosen, found: &Selective, scores: &[f64]) -> Selected {
    let mut retrieved = 0;
    let tasks: Vec<Value> = (found.scores.iter().zip(scores))
        .map(|([without, with], &score)| {
            let retrieves = score > chosen.threshold;
            retrieved += usize::from(retrieves);
            if retrieves { with } else { without }.clone()
        })
        .collect();
    let count = tasks.len();
    let mean = |name: &str| {
        let values = tasks
            .iter()
            .filter_map(|task| task["repocoder"][name].as_f64());
        values.sum::<f64>() / count.max(1) as f64
    };
    let all = json!({"n": count, "repocoder": {"em": mean("em"), "es": mean("es")}});
    Selected {
        policy: chosen.name.clone(),
        scores: json!({"all": all, "tasks": tasks}),
        rag_rate: retrieved as f64 / count.max(1) as f64,
    }
}
