//! Inputs of judging, and the criterion for whether retrieval helps.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use repoformer_core::label::{LIKELIHOOD, PASS};
use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::Postprocess;
use repoformer_core::repository::Shard;
use repoformer_store::error::{Error, Result};
use repoformer_text::message;
use repoformer_text::message::UserChoice;
use repoformer_text::names::UnknownName;

use crate::conditions::are_chat_answers;

/// Metric for labels, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelMetric {
    /// The usual metric of the tasks.
    Usual,
    /// Edit similarity of a metric.
    Similarity(Metric),
    /// Unit-test pass rate.
    Pass,
    /// Probability of the target.
    Likelihood,
}

impl FromStr for LabelMetric {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            PASS => Ok(Self::Pass),
            LIKELIHOOD => Ok(Self::Likelihood),
            name => Ok(Self::Similarity(name.parse()?)),
        }
    }
}

/// Criterion for whether retrieval helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelCriterion<'a> {
    /// Edit similarity of the usual metric of these tasks.
    Usual,
    /// Edit similarity of a metric.
    Similarity(Metric),
    /// Unit-test pass rates in the results of the predictions without and with retrieval. Each is a path and the name of its
    /// predictions there.
    Tests([(&'a Path, &'a str); 2]),
    /// Probabilities of the targets: the two files contain these, and no predictions.
    Likelihood,
}

impl<'a> LabelCriterion<'a> {
    /// Creates the criterion of a metric; `results` are the unit-test results of the predictions without and with retrieval,
    /// each a path and the name of its predictions there.
    ///
    /// # Errors
    /// The metric is the pass rate and results are missing, or it is another metric and results are given.
    pub fn new(metric: LabelMetric, results: [Option<(&'a Path, &'a str)>; 2]) -> Result<Self> {
        match (metric, results) {
            (LabelMetric::Pass, [Some(base), Some(augmented)]) => {
                Ok(Self::Tests([base, augmented]))
            }
            (LabelMetric::Pass, _) => Err(Error::from_refusal(
                message!["metric pass needs the ", UserChoice::ResultsOfBoth],
                message!["make ", UserChoice::UnitTestResults, " for both files of predictions"],
            )),
            (_, [Some(_), _] | [_, Some(_)]) => Err(Error::from_refusal(
                message!["the ", UserChoice::ResultsOfBoth, " apply only to metric pass"],
                "choose metric pass, or omit the test results",
            )),
            (LabelMetric::Likelihood, _) => Ok(Self::Likelihood),
            (LabelMetric::Similarity(metric), _) => Ok(Self::Similarity(metric)),
            (LabelMetric::Usual, _) => Ok(Self::Usual),
        }
    }
}

/// Inputs and settings of [`judge`](super::judge).
#[derive(Debug, Clone, Copy)]
pub struct JudgeSettings<'a> {
    /// Instances, or tasks of any benchmark.
    pub instances: &'a Path,
    /// Predictions without retrieval.
    pub base: &'a Path,
    /// Predictions with retrieval.
    pub augmented: &'a Path,
    /// Pairs of files: tasks that show some of an instance's fragments, and their predictions or probabilities.
    pub trials: &'a [[PathBuf; 2]],
    /// Prompts of the predictions with retrieval, if the instances lack the contexts that these prompts show.
    pub prompts: Option<&'a Path>,
    /// Probabilities of the token that requests retrieval, if they are in a separate file.
    pub probabilities: Option<&'a Path>,
    /// Samples without retrieval, if their entropy is wanted.
    pub samples: Option<&'a Path>,
    /// Name of the model, if the predictions do not have it.
    pub model: Option<&'a str>,
    /// Criterion for whether retrieval helps.
    pub by: LabelCriterion<'a>,
    /// Cut of the predictions before the metric.
    pub postprocess: &'a Postprocess,
    /// Threshold that the gain must exceed.
    pub threshold: f64,
    /// Shard of the instances, by their repositories; [`Shard::WHOLE`] for all.
    pub shard: Shard,
}

/// Checks that a threshold is a number.
///
/// # Errors
/// The threshold is infinite or not a number.
pub fn check_threshold(threshold: f64) -> Result<()> {
    if threshold.is_finite() {
        return Ok(());
    }
    Err(Error::from_refusal(
        message!["the ", UserChoice::LabelThreshold, " must be a number"],
        "the paper uses 0, so any improvement counts",
    ))
}

/// Returns the usual cut of these predictions: their own cut, preceded by the cut of chat answers if there are any.
///
/// # Errors
/// A file or its header cannot be read.
pub fn usual_postprocess(predictions: [&Path; 2]) -> Result<Postprocess> {
    for path in predictions {
        if are_chat_answers(path)? {
            return Ok(Postprocess::chat(false));
        }
    }
    Ok(Postprocess::own(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_and_its_inputs_belong_together() {
        let results = |name| Some((Path::new("results.jsonl"), name));
        let both = [results("none"), results("rg1")];
        let tests = LabelCriterion::new(LabelMetric::Pass, both).unwrap();
        assert_eq!(tests, LabelCriterion::Tests(both.map(Option::unwrap)));
        let lacking = LabelCriterion::new(LabelMetric::Pass, [both[0], None]).unwrap_err();
        assert_eq!(lacking.to_string(), "metric pass needs the test results of both predictions");
        for metric in [LabelMetric::Usual, LabelMetric::Likelihood] {
            let needless = LabelCriterion::new(metric, [None, both[1]]).unwrap_err();
            assert!(needless.to_string().contains("only to metric pass"), "{needless}");
        }
        let likelihood = "likelihood".parse().unwrap();
        assert_eq!(LabelCriterion::new(likelihood, [None; 2]).unwrap(), LabelCriterion::Likelihood);
        assert_eq!("pass".parse(), Ok(LabelMetric::Pass));
        assert_eq!("repocoder".parse(), Ok(LabelMetric::Similarity(Metric::RepoCoder)));
        assert!("passes".parse::<LabelMetric>().is_err());
    }

    #[test]
    fn a_threshold_is_a_number() {
        assert!(check_threshold(-0.5).is_ok());
        assert!(check_threshold(f64::NAN).is_err());
        assert!(check_threshold(f64::INFINITY).is_err());
    }

    #[test]
    fn chat_answers_are_cut_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, api: &str| {
            let path = folder.path().join(name);
            let line = format!("{{\"choices\": [], \"asked\": {{\"api\": \"{api}\"}}}}\n");
            std::fs::write(&path, line).unwrap();
            path
        };
        let (plain, chat) = (write("plain", "completions"), write("chat", "chat"));
        let usual = |one, other| usual_postprocess([one, other]).unwrap();
        assert_eq!(usual(&plain, &plain), Postprocess::own(false));
        assert_eq!(usual(&plain, &chat), Postprocess::chat(false));
    }
}
