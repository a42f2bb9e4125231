//! Policies in a run: each chooses one of two predictions for every task.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use repoformer_core::policy::model::CalibrationMethod;
use repoformer_core::policy::sweep::{Clock, LatencyModel, RequestTimes};
use repoformer_core::policy::{Example, Policy};
use repoformer_core::prompt::style::DecisionFrame;
use repoformer_core::retrieve::Mode;
use repoformer_core::task::Task;
use repoformer_evaluate::mode_scores::{ModeScores, ScoredTask};
use repoformer_evaluate::policy_scores::{TrainedPolicies, score};
use repoformer_pipeline as pipeline;
use repoformer_pipeline::{
    Completion, Experiment, Latency, Messages, PlanVerdict, PlannedArtifact, PromptLayout,
    SelectiveTasks, SignalSources, TokenQuestion, cached_probabilities, decision_latencies,
    forget_outdated, selective, write_chosen,
};
use repoformer_store::error::Error;
use repoformer_text::counts::part;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};

use crate::choices::seed;
use crate::chosen::{ThresholdPolicy, tell_of_shares, tell_threshold};
use crate::experiments::experiment_like;
use crate::judged::{JudgedPolicy, JudgedTasks};
use crate::report::ReportSource;
use crate::server::{self, PolicyServer, policy_model, resumable};
use crate::settings::{DECLARED, SettingValue, Settings, StyleName};
use crate::stage_log::StageLog;
use crate::{fail, hint_of, message_of};

/// Modes that policies may choose instead of mode none; the first available one is used.
const RETRIEVING: [Mode; 2] = [Mode::LeftContext, Mode::Given];

/// Policies of a run, and the trained ones among them.
#[derive(Debug)]
pub struct Policies {
    chosen: Vec<ThresholdPolicy>,
    trained: TrainedPolicies,
    /// Files of the probabilities that policy `self` uses.
    probabilities: Vec<PathBuf>,
    /// File of the samples that policy `entropy` uses.
    samples: Option<PathBuf>,
    /// True if the policies were chosen for this run; the policies of a settings file are used only if possible.
    asked: bool,
    messages: Arc<dyn Messages>,
}

impl Policies {
    /// Returns the policies that the settings choose, with the files of their signals.
    ///
    /// # Errors
    /// One is given twice or lacks its threshold, or a file cannot be read or belongs to no policy.
    pub fn new(
        probabilities: &[PathBuf],
        samples: Option<&PathBuf>,
        settings: &Settings,
        are_functions: bool,
    ) -> Result<Self> {
        let chosen = &settings.policy;
        let mut names = BTreeSet::new();
        if let Some(twice) = chosen.iter().find(|name| !names.insert(name.to_string())) {
            return fail(
                format!("policy '{twice}' is given twice"),
                "give each policy once, or with different thresholds",
            );
        }
        let chosen: Vec<ThresholdPolicy> = chosen
            .iter()
            .map(|name| ThresholdPolicy::new(name, are_functions))
            .collect::<Result<_>>()?;
        let has_self = chosen.iter().any(|one| one.policy.asks_model());
        if !probabilities.is_empty() && !has_self {
            return fail(
                message![
                    UserChoice::ProbabilitiesFile,
                    " is used only by policy self, which is not among the policies"
                ],
                message!["add ", &DECLARED.policy, " self@0.5, or leave it out"],
            );
        }
        if samples.is_some() && !chosen.iter().any(|one| one.policy == Policy::Entropy) {
            return fail(
                message![
                    UserChoice::SamplesFile,
                    " is used only by policy entropy, which is not among the policies"
                ],
                message!["add ", &DECLARED.policy, " entropy@1.0, or leave it out"],
            );
        }
        for path in probabilities.iter().chain(samples) {
            // Check this before spending hours on completions.
            repoformer_store::jsonl::open(path)?;
        }
        Ok(Self {
            chosen,
            trained: TrainedPolicies::read(&settings.policy_model)?,
            probabilities: probabilities.to_vec(),
            samples: samples.cloned(),
            asked: settings.policy.is_chosen(),
            messages: Arc::clone(&settings.messages),
        })
    }

    /// Returns true if there are no policies.
    pub fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// Explains what percentage thresholds mean, if there are any.
    pub fn tell_of_shares(&self) {
        tell_of_shares(&self.chosen, &*self.messages);
    }

    /// Returns the choices of each policy for which both sets of predictions exist, and the judged tasks.
    pub fn choose(
        &self,
        experiment: &Experiment,
        modes: &[Mode],
        completion: &Completion,
        settings: &Settings,
    ) -> Result<(Vec<PolicyChoice>, Option<JudgedTasks>)> {
        let (seed, clock) = (seed(settings)?, *settings.clock);
        for mode in RETRIEVING {
            for path in forget_outdated(experiment, mode, &completion.model)? {
                settings.messages.note(format!(
                    "{}: removed, since a policy chose these from predictions that have changed",
                    path.display()
                ).into());
            }
        }
        if self.is_empty() && settings.paper.is_none() {
            return Ok((Vec::new(), None));
        }
        let Some(mode) = self.retrieving(experiment, modes) else {
            return Ok((Vec::new(), None));
        };
        let log = &mut StageLog::default();
        let decisions = self.decisions(experiment, completion, settings, log);
        let (probabilities, latencies) = decisions.known_values();
        let style = || settings.policy_prompt_style.open(StyleName::open);
        let deciding = self.asks().then(style).transpose()?;
        let sources = SignalSources {
            probabilities,
            deciding: deciding.as_ref(),
            samples: self.samples.as_deref(),
            decisions: latencies,
        };
        let mut found = selective(experiment, mode, &completion.model, &sources)?;
        settings.messages.problems(std::mem::take(&mut found.problems));
        if let Some(warning) = found.warnings.first() {
            settings.messages.unproven(warning);
        }
        let generator = Some(completion.model.as_str());
        let metric = Some(experiment.scoring.first().name());
        let fragments = (mode != Mode::Given).then(|| experiment.fragments_name());
        let fragments = fragments.as_deref();
        let warnings = self.trained.warnings(&found.examples, generator, metric, fragments);
        warnings.into_iter().for_each(|warning| self.messages.warning(warning));
        self.warn_of_targets(experiment, &found.examples);
        let (mut all, mut policies) = (Vec::new(), Vec::new());
        let mut possible = self.possible(experiment, &decisions);
        if found.scores.is_empty() && !possible.is_empty() {
            let names: Vec<&str> = possible.drain(..).map(|chosen| &*chosen.name).collect();
            let (benchmark, names) = (&experiment.name, names.join(", "));
            self.report_left_out(format!(
                "{benchmark} {names}: left out: no task has predictions of both none and {mode}"
            ));
        }
        for chosen in possible {
            match self.scores(chosen, &found.examples, seed) {
                Ok(judged) => {
                    let model = &completion.model;
                    let retrieves = &judged.retrieves;
                    tell_threshold(&experiment.name, mode, &judged, &*self.messages);
                    let mut one = select(chosen, &found, retrieves, experiment, mode, model, clock);
                    one.threshold = judged.printed_threshold();
                    all.push(one);
                    policies.push(judged);
                }
                Err(reason) => self.report_left_out(message![
                    format!("{} {}: left out: ", experiment.name, chosen.name),
                    message_of(&reason)
                ]),
            }
        }
        let chosen = all.iter().filter_map(|PolicyChoice { source, .. }| {
            Some((source.predictions.as_path(), source.retrieved.as_ref()?))
        });
        write_chosen(experiment, mode, &completion.model, &chosen.collect::<Vec<_>>())?;
        let clock = found.times.map(|times| {
            let each = found.examples.iter().zip(times);
            LatencyModel::of_each(each, found.without_embedding).by(clock)
        });
        Ok((all, Some(JudgedTasks { mode, examples: found.examples, clock, policies })))
    }

    /// Adds the artifacts that the policies of a dry run would make. Returns the names of the policies that would choose;
    /// `None` if none could.
    pub fn plan(
        &self,
        experiment: &Experiment,
        modes: &[Mode],
        completion: &Completion,
        settings: &Settings,
        log: &mut StageLog,
    ) -> Option<Vec<String>> {
        let mode = self.retrieving(experiment, modes)?;
        let decisions = self.decisions(experiment, completion, settings, log);
        let possible = self.possible(experiment, &decisions);
        let of_each = possible.iter().map(|chosen| {
            let path = experiment.paths().chosen_predictions(&chosen.name, mode, &completion.model);
            PlannedArtifact::file(path, "chosen predictions", PlanVerdict::EachTime)
        });
        log.add("policies", experiment, of_each.collect());
        Some(possible.into_iter().map(|chosen| chosen.name.clone()).collect())
    }

    /// Returns the mode that policies may choose instead of none. Reports if there is no such mode.
    fn retrieving(&self, experiment: &Experiment, modes: &[Mode]) -> Option<Mode> {
        let mode = RETRIEVING.into_iter().find(|mode| modes.contains(mode));
        let mode = mode.filter(|_| modes.contains(&Mode::Without));
        if mode.is_none() && !self.is_empty() {
            let reason = "policies are left out, since they choose between modes none and rg1";
            self.report_left_out(format!("{}: {reason}", experiment.name));
        }
        mode
    }

    /// Returns the model's decisions for policies that ask it: from the given files, otherwise from a server.
    fn decisions(
        &self,
        experiment: &Experiment,
        completion: &Completion,
        settings: &Settings,
        log: &mut StageLog,
    ) -> Decisions {
        if !self.probabilities.is_empty() || !self.asks() {
            return Decisions::Known { files: self.probabilities.clone(), latencies: Vec::new() };
        }
        ask(experiment, completion, settings, log).unwrap_or_else(Decisions::Failed)
    }

    /// Returns the policies that can choose, as far as this is known before any task is scored. Reports the others.
    fn possible(&self, experiment: &Experiment, decisions: &Decisions) -> Vec<&ThresholdPolicy> {
        let tasks = experiment.tasks.iter().flat_map(|set| set.tasks());
        let takes_part = |task: &&Task| experiment.repositories.contains(&task.repository);
        let tasks: Vec<&Task> = tasks.filter(takes_part).collect();
        let refusal = |policy: Policy| match policy {
            policy if policy.asks_model() && decisions.refusal().is_some() => decisions.refusal(),
            Policy::Entropy if self.samples.is_none() => {
                let count = tasks.len();
                let all = part(count, count, "task", ["lacks ", "lack "]);
                Some(message![all, policy.lacking()])
            }
            policy => {
                let repositories = tasks.iter().map(|task| task.repository.as_str());
                let can_learn = self.trained.check_others(policy, repositories);
                can_learn.err().map(|reason| reason.message())
            }
        };
        let (mut possible, mut refused) = (Vec::new(), Vec::<(Message, Vec<&str>)>::new());
        for chosen in &self.chosen {
            let Some(reason) = refusal(chosen.policy) else {
                possible.push(chosen);
                continue;
            };
            match refused.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) => names.push(&chosen.name),
                None => refused.push((reason, vec![&*chosen.name])),
            }
        }
        for (reason, names) in refused {
            let (benchmark, names) = (&experiment.name, names.join(", "));
            self.report_left_out(message![format!("{benchmark} {names}: left out: "), reason]);
        }
        possible
    }

    /// Warns of tasks whose fragments reveal the target to policies that look at fragments.
    fn warn_of_targets(&self, experiment: &Experiment, examples: &[Example]) {
        let knowing = examples.iter().filter(|example| example.query_has_target).count();
        let looking = self.chosen.iter().filter(|chosen| chosen.policy.looks_at_fragments());
        let names: Vec<&str> = looking.map(|chosen| &*chosen.name).collect();
        if knowing > 0 && !names.is_empty() {
            experiment.messages.warning(format!(
                "{}: the queries of {knowing} of {} tasks contained the target, so their fragments give it away to {}; policies do not learn \
                 from these fragments",
                experiment.name,
                examples.len(),
                names.join(", ")
            ).into());
        }
    }

    /// Returns true if a policy asks a model.
    fn asks(&self) -> bool {
        self.chosen.iter().any(|chosen| chosen.policy.asks_model())
    }

    /// Checks that the policy's own server answers, if there is one.
    pub fn greet(&self, settings: &Settings) -> Result<()> {
        if let Some(own) = policy_server(settings)? {
            if !self.asks() {
                return fail(
                    message![
                        &DECLARED.policy_endpoint,
                        " is used only by policy self, which is not among the policies"
                    ],
                    message!["add ", &DECLARED.policy, " self, or leave it out"],
                );
            }
            server::greet(&policy_model(settings, &own)?, &*self.messages)?;
        }
        Ok(())
    }

    /// Reports rows that cannot be computed.
    fn report_left_out(&self, reason: impl Into<Message>) {
        if self.asked {
            self.messages.failure(reason.into())
        } else {
            self.messages.note(reason.into())
        }
    }

    /// Returns the policy's score of each task.
    fn scores(
        &self,
        chosen: &ThresholdPolicy,
        examples: &[Example],
        seed: u64,
    ) -> Result<JudgedPolicy> {
        let (policy, method) = (chosen.policy, CalibrationMethod::default());
        let scored = score(policy, examples, &[], &self.trained, method, seed)?;
        let known = |scores: Vec<Option<f64>>| -> Result<Vec<f64>> {
            match scores.iter().filter(|score| score.is_none()).count() {
                0 => Ok(scores.into_iter().flatten().collect()),
                n => Err(message![
                    part(n, examples.len(), "task", ["lacks ", "lack "]),
                    policy.lacking()
                ]
                .into()),
            }
        };
        let probabilities = scored.probabilities.map(known).transpose()?;
        let ordered = known(scored.ordered)?;
        let decided = probabilities.as_ref().unwrap_or(&ordered);
        let threshold = chosen.threshold.value(decided);
        Ok(JudgedPolicy {
            policy,
            name: chosen.name.clone(),
            asked: chosen.threshold,
            threshold,
            retrieves: decided.iter().map(|&score| score > threshold).collect(),
            ordered,
            probabilities,
        })
    }
}

/// Returns the policy's own model.
fn policy_server(settings: &Settings) -> Result<Option<PolicyServer>> {
    let (url, name) = (settings.policy_endpoint.as_deref(), settings.policy_model_name.as_deref());
    let (url, name) = match (url, name) {
        (None, None) => return Ok(None),
        (Some(url), Some(name)) => (url, name),
        (Some(_), None) => {
            return fail(
                message![
                    &DECLARED.policy_endpoint,
                    " is set and ",
                    &DECLARED.policy_model_name,
                    " is not"
                ],
                "name the model that policy self asks",
            );
        }
        (None, Some(_)) => {
            return fail(
                message![
                    &DECLARED.policy_model_name,
                    " is set and ",
                    &DECLARED.policy_endpoint,
                    " is not"
                ],
                "name its server, or the completion server if it has both models",
            );
        }
    };
    Ok(Some(PolicyServer {
        url: url.to_owned(),
        model: name.to_owned(),
        style: settings.policy_prompt_style.get().clone(),
    }))
}

/// Decisions of the model that policies ask: the probability of the token that requests retrieval, after each prompt.
enum Decisions {
    /// Files of the probabilities, and the time of each decision.
    Known { files: Vec<PathBuf>, latencies: Vec<Latency> },
    /// No server has the model.
    NoServer,
    /// The style of the prompts does not define the token.
    NoStyle,
    /// The model did not answer.
    Failed(anyhow::Error),
}

impl Decisions {
    fn known_values(&self) -> (&[PathBuf], &[Latency]) {
        match self {
            Self::Known { files, latencies } => (files, latencies),
            Self::NoServer | Self::NoStyle | Self::Failed(_) => (&[], &[]),
        }
    }

    /// Returns the reason why the policies cannot choose.
    fn refusal(&self) -> Option<Message> {
        match self {
            Self::Known { .. } => None,
            Self::NoServer => Some(message![
                "it needs a model on a server that was trained to decide: ",
                &DECLARED.endpoint,
                " URL ",
                &DECLARED.model,
                " NAME with its ",
                &DECLARED.prompt_style,
                ", or ",
                &DECLARED.policy_endpoint,
                " URL ",
                &DECLARED.policy_model_name,
                " NAME"
            ]),
            Self::NoStyle => Some(message![
                "RepoCoder's prompts have no token that asks for retrieval: name the model's ",
                &DECLARED.prompt_style
            ]),
            Self::Failed(error) => Some(match (error.downcast_ref::<Error>(), hint_of(error)) {
                (Some(unknown @ Error::UnknownToken { .. }), _) => message![
                    format!("{unknown}; name the model's tokenizer.json with "),
                    &DECLARED.tokenizer,
                    " FILE"
                ],
                (_, Some(hint)) => message![message_of(error), "; ", hint],
                (_, None) => message_of(error),
            }),
        }
    }
}

/// Asks a model for the probability of the token that requests retrieval. It is the policy's own model, or else the model that
/// completes, if it is on a server and its prompt style defines the token.
fn ask(
    experiment: &Experiment,
    completion: &Completion,
    settings: &Settings,
    log: &mut StageLog,
) -> Result<Decisions> {
    let Some(own) = policy_server(settings)? else {
        return ask_model(experiment, completion, log);
    };
    let experiment = experiment_like(experiment, settings, Some(&own.style))?;
    if !experiment.repos_dir.as_os_str().is_empty() {
        // Its style may show right contexts although the run's style does not.
        log.stage("window", &experiment, || Ok(pipeline::window_repositories(&experiment)?))?;
    }
    log.stage("prompt", &experiment, || Ok(pipeline::prompt(&experiment, &[Mode::Without])?))?;
    ask_model(&experiment, &policy_model(settings, &own)?, log)
}

fn ask_model(
    experiment: &Experiment,
    completion: &Completion,
    log: &mut StageLog,
) -> Result<Decisions> {
    if completion.server.is_none() {
        return Ok(Decisions::NoServer);
    }
    let PromptLayout::Style(style) = &experiment.prompts.layout else {
        return Ok(Decisions::NoStyle);
    };
    let frame = DecisionFrame::new(style, None, None)?;
    let question =
        |id| TokenQuestion { text: frame.cc().to_owned(), id, after: Some(frame.eof().to_owned()) };
    let probabilities =
        |id| cached_probabilities(experiment, Mode::Without, completion, &question(id));
    let ask = || match probabilities(None) {
        Err(Error::UnknownToken { url, reason }) => {
            let tokenizer = Some(&experiment.prompts.tokenizer).filter(|one| one.is_model());
            let known = tokenizer.and_then(|tokenizer| tokenizer.special(frame.cc()));
            match known {
                Some(id) => probabilities(Some(id.into())),
                None => Err(Error::UnknownToken { url, reason }),
            }
        }
        result => result,
    };
    let (path, report) =
        if log.is_dry() { ask()? } else { resumable(completion, &*experiment.messages, ask)? };
    log.tell("probabilities", experiment, report);
    let latencies = decision_latencies(experiment, &completion.model)?;
    Ok(Decisions::Known { files: vec![path], latencies })
}

/// Choices of a policy.
pub struct PolicyChoice {
    /// Mode of the predictions that it chooses when it retrieves.
    pub mode: Mode,
    /// Chosen predictions, named after the policy with its threshold.
    pub source: ReportSource,
    /// Scores of the chosen predictions, in the same form as a mode's scores.
    pub scores: ModeScores,
    /// Number of tasks for which it retrieves.
    pub retrieved: usize,
    /// Threshold, if it has one.
    pub threshold: Option<f64>,
    /// Mean milliseconds per task in the paper's latency model, if its parts were measured.
    pub latency_ms: Option<f64>,
    /// True if the time lacks the time for computing the queries' dense vectors.
    pub without_embedding: bool,
}

/// Selects for each task the prediction that the policy chooses.
fn select(
    chosen: &ThresholdPolicy,
    found: &SelectiveTasks,
    retrieves: &[bool],
    experiment: &Experiment,
    mode: Mode,
    model: &str,
    clock: Clock,
) -> PolicyChoice {
    let (paths, metrics) = (experiment.paths(), &experiment.scoring.metrics);
    let pairs = found.scores.iter().zip(retrieves);
    let tasks: Vec<ScoredTask> =
        pairs.map(|(scores, &retrieves)| scores[usize::from(retrieves)].clone()).collect();
    let count = tasks.len() as f64;
    // A policy that looks at the retrieved fragments always spends the retrieval time.
    let retrieves_any = retrieves.contains(&true) || chosen.policy.looks_at_fragments();
    let rows = tasks.iter().zip(retrieves).filter(|(_, retrieves)| **retrieves);
    let latency = |times: &Vec<RequestTimes>| {
        let costs = times.iter().zip(retrieves);
        let costs = costs.map(|(times, &retrieves)| times.cost(chosen.policy, retrieves, clock));
        Some(costs.sum::<Option<f64>>()? / count)
    };
    let retrieved: BTreeSet<usize> = rows.map(|(task, _)| task.row).collect();
    PolicyChoice {
        mode,
        latency_ms: found.times.as_ref().and_then(latency),
        without_embedding: found.without_embedding && retrieves_any,
        scores: ModeScores::new(metrics, tasks),
        retrieved: retrieved.len(),
        threshold: None,
        source: ReportSource {
            name: chosen.name.clone(),
            predictions: paths.chosen_predictions(&chosen.name, mode, model),
            made_as: Some(paths.predictions(mode, model)),
            prompts: Some(paths.prompts(mode)),
            retrieved: Some(retrieved),
        },
    }
}
