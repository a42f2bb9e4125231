//! Sweep: the scores of each policy over sets of labels, and their curves.

use std::path::PathBuf;

use repoformer_core::policy::model::CalibrationMethod;
use repoformer_core::policy::sweep::{LatencyModel, SweepCurve};
use repoformer_core::policy::{Examples, Measure, Policy, Threshold};
use repoformer_store::error::{Error, Result};
use repoformer_store::progress::Work;
use repoformer_store::remark::Remark;
use repoformer_text::counts::{group, part, subject};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};

use super::labels::{LabelSet, read_labels};
use super::results::{SetCurves, SweepResults, finding};
use super::times::RetrieverTimes;
use crate::policy_scores::{PolicyScores, TrainedPolicies, score};

/// Policies to sweep and the settings of the sweep, independent of the labels.
#[derive(Debug, Default)]
pub struct Sweep {
    /// Policies; if empty, all policies, except those whose signals an instance lacks.
    pub policies: Vec<Policy>,
    /// Measure of gains; by default, the measure of the labels.
    pub measure: Option<Measure>,
    /// Calibration of the scores of policies that are trained here.
    pub method: CalibrationMethod,
    /// Policies that are already trained.
    pub trained: TrainedPolicies,
    /// Additional labels for policies that are trained here.
    pub training_labels: Vec<PathBuf>,
    /// True if policies that look at fragments see instances whose query contained the target.
    pub keeps_targets: bool,
    /// Seed of policy `random`.
    pub seed: u64,
    /// Thresholds; if empty, one for every fortieth of the instances.
    pub thresholds: Vec<Threshold>,
    /// Times of requests.
    pub times: RetrieverTimes,
}

impl Sweep {
    /// Returns the curves of the policies over each set of labels.
    ///
    /// # Errors
    /// Labels cannot be read, or have other metrics than the labels before; a chosen policy cannot score any instance; no
    /// instance can be scored by all policies; or times belong to none of the instances.
    pub fn run(&self, sets: Vec<LabelSet>, tell: &dyn Fn(Remark)) -> Result<SweepResults> {
        let mut swept: Vec<SetCurves> = Vec::new();
        for set in sets {
            swept.push(self.set(set, swept.first(), tell)?);
        }
        let lacks_embedding = self.times.models.iter().any(|model| model.without_embedding);
        Ok(SweepResults { sets: swept, retrievers: self.times.names.clone(), lacks_embedding })
    }

    /// Returns the curves over one set of labels, whose metric must be the metric of the `first` set.
    fn set(
        &self,
        LabelSet { name, files }: LabelSet,
        first: Option<&SetCurves>,
        tell: &dyn Fn(Remark),
    ) -> Result<SetCurves> {
        let policies = match &self.policies[..] {
            [] => &Policy::ALL[..],
            policies => policies,
        };
        let read = |files: &[PathBuf], measure| {
            read_labels(files, policies, measure, self.keeps_targets, tell)
        };
        let mut examples = read(&files, self.measure)?;
        if let Some(first) = first {
            check_metric(first, &examples)?;
        }
        let more = match &self.training_labels[..] {
            [] => Examples::default(),
            files => read(files, Some(examples.measure))?.behind(&examples),
        };
        check_making(&examples, &more)?;
        let [model, metric, fragments] =
            [&examples.model, &examples.metric, &examples.fragments].map(Option::as_deref);
        let warnings = self.trained.warnings(&examples.all, model, metric, fragments);
        warnings.into_iter().for_each(|warning| tell(Remark::Warning(warning)));
        let scored = self.scores(policies, &examples, &more, tell)?;
        let curves = curves(&mut examples, &scored, &self.thresholds, &self.times.models, tell)?;
        self.times.check(&examples, tell)?;
        Ok(SetCurves {
            name,
            finding: finding(&examples),
            measure: examples.measure,
            metric: examples.metric,
            curves,
        })
    }

    /// Returns the scores of each policy. Some policies that nobody chose are left out, since they would exclude instances from
    /// the others.
    fn scores(
        &self,
        policies: &[Policy],
        examples: &Examples,
        more: &Examples,
        tell: &dyn Fn(Remark),
    ) -> Result<Vec<PolicyScores>> {
        let are_chosen = !self.policies.is_empty();
        let mut scored = Vec::new();
        let work = Work::new("policy sweep", "policies", policies.len());
        for &policy in policies {
            work.advance(1);
            let found =
                score(policy, &examples.all, &more.all, &self.trained, self.method, self.seed);
            match found.and_then(check_signal) {
                Ok(found) if are_chosen || found.lacking() == 0 => scored.push(found),
                Ok(found) => tell(Remark::Note(message![
                    format!(
                        "policy sweep: policy {policy} is left out: {} ",
                        part(found.lacking(), examples.all.len(), "instance", ["lacks", "lack"])
                    ),
                    policy.lacking(),
                    "; as the ",
                    UserChoice::SweptPolicy,
                    " it is swept over the remaining instances"
                ])),
                Err(reason) if are_chosen => return Err(reason),
                Err(reason) => {
                    tell(Remark::Note(message!["policy sweep: left out: ", reason.message()]));
                }
            }
        }
        Ok(scored)
    }
}

/// Rejects labels by another metric than the first.
fn check_metric(first: &SetCurves, examples: &Examples) -> Result<()> {
    if first.metric == examples.metric {
        return Ok(());
    }
    let name = |metric: &Option<String>| metric.clone().unwrap_or("(not named)".into());
    let (here, before) = (name(&examples.metric), name(&first.metric));
    Err(Error::from_refusal(
        format!("these labels are by metric {here}, but earlier labels are by {before}"),
        one_metric(),
    ))
}

/// Returns the hint for labels of two metrics.
fn one_metric() -> Message {
    message![
        "gains in two metrics cannot be compared: judge all labels with the same ",
        UserChoice::LabelMetric
    ]
}

/// Checks that the training labels have the same model, metric and fragments.
fn check_making(examples: &Examples, more: &Examples) -> Result<()> {
    let name = |metric: &Option<String>| metric.clone().unwrap_or("(not named)".into());
    let differ = |[there, here]: [String; 2], hint: Message| {
        let [training, swept] = [UserChoice::TrainingLabels, UserChoice::SweptLabels];
        let reason = message![training, format!(" {there}, but "), swept, format!(" {here}")];
        Err(Error::from_refusal(reason, hint))
    };
    if !more.all.is_empty() && examples.metric != more.metric {
        let (here, there) = (name(&examples.metric), name(&more.metric));
        return differ([format!("are by the metric {there}"), format!("by {here}")], one_metric());
    }
    if let (Some(here), Some(there)) = (&examples.fragments, &more.fragments)
        && here != there
    {
        let hint =
            "scores of two kinds of fragments cannot be compared: pass labels of one kind".into();
        return differ([format!("have {there}"), format!("have {here}")], hint);
    }
    match (&examples.model, &more.model) {
        (Some(here), Some(there)) if here != there => {
            let hint =
                "retrieval may help one model and not another: label both with the same model"
                    .into();
            differ([format!("are of model {there}"), format!("of {here}")], hint)
        }
        _ => Ok(()),
    }
}

/// Rejects a policy that cannot score any instance.
fn check_signal(scored: PolicyScores) -> Result<PolicyScores> {
    if scored.ordered.iter().any(Option::is_some) {
        return Ok(scored);
    }
    let policy = scored.policy;
    let hint = match policy {
        Policy::TrialRetrieval => message![
            "the instances' fragments have no scores: retrieve again, and label the instances with the new ",
            UserChoice::LabelPrompts
        ],
        _ => "complete the instances and label them again".into(),
    };
    let reason =
        message![format!("policy {policy}: no instance has its signal: "), policy.lacking()];
    Err(Error::from_refusal(reason, hint))
}

/// Returns the curves of the policies over the instances that all of them can score, of which there must be some; the others
/// are left out.
fn curves(
    examples: &mut Examples,
    scored: &[PolicyScores],
    thresholds: &[Threshold],
    times: &[LatencyModel],
    tell: &dyn Fn(Remark),
) -> Result<Vec<SweepCurve>> {
    let is_kept = |place: usize| scored.iter().all(|scored| scored.ordered[place].is_some());
    let kept: Vec<bool> = (0..examples.all.len()).map(is_kept).collect();
    let lack = scored.iter().filter(|scored| scored.lacking() > 0);
    if !kept.contains(&true) {
        let needs =
            lack.map(|one| message![format!("{} needs ", one.policy), one.policy.lacking()]);
        return Err(Error::from_refusal(
            message![
                "no instance can be scored by all of these policies: ",
                Message::join(needs, "; ")
            ],
            "sweep the policies one by one, or label the instances again with the signals of all policies",
        ));
    }
    for scored in lack {
        let (instances, policy) =
            (subject(scored.lacking(), "instance", ["is", "are"]), scored.policy);
        tell(Remark::Failed(message![
            format!("{instances} left out of every curve: policy {policy} lacks "),
            policy.lacking()
        ]));
    }
    let mut each = kept.iter();
    examples.all.retain(|_| each.next() == Some(&true));
    let of_kept = |scores: &[Option<f64>]| -> Vec<f64> {
        scores
            .iter()
            .zip(&kept)
            .filter(|(_, kept)| **kept)
            .filter_map(|(score, _)| *score)
            .collect()
    };
    let curve = |scored: &PolicyScores| {
        let ordered = of_kept(&scored.ordered);
        let probabilities = scored.probabilities.as_deref().map(of_kept);
        // Thresholds are compared with values that are known when the policy decides.
        let scores = match (&probabilities, thresholds) {
            (Some(probabilities), [_, ..]) => probabilities,
            _ => &ordered,
        };
        let probabilities = probabilities.as_deref();
        for &asked in thresholds {
            let note = at_threshold(scored.policy, scores, asked);
            note.into_iter().for_each(|note| tell(Remark::Note(note)));
        }
        SweepCurve::new(scored.policy, &examples.all, scores, probabilities, thresholds, times)
    };
    Ok(scored.iter().map(curve).collect())
}

/// Reports the number that a percentage threshold becomes, or that a threshold does not separate any instances; `None` if there
/// is nothing to report.
fn at_threshold(policy: Policy, scores: &[f64], asked: Threshold) -> Option<Message> {
    if matches!(policy, Policy::Never | Policy::Always) {
        return None;
    }
    let count = scores.len();
    let threshold = asked.value(scores);
    let retrieved = scores.iter().filter(|score| **score > threshold).count();
    if asked.at_most(count).is_some() {
        let [retrieves, all] = [retrieved, count].map(group);
        return Some(message![
            format!(
                "policy sweep: {policy} at {asked}: retrieves for {retrieves} of {all} instances \
                 (scores above {threshold}); {policy}@{threshold} as a "
            ),
            UserChoice::PolicyOfRun,
            " uses this threshold on other tasks"
        ]);
    }
    let (equals, few) = match retrieved {
        0 => ("never", "no"),
        _ if retrieved == count => ("always", "every"),
        _ => return None,
    };
    let note = format!(
        "policy sweep: {policy}: {few} instance has a score above {asked}, so the policy equals \
         {equals} at that threshold"
    );
    Some(note.into())
}
