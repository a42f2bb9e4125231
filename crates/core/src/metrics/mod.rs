//! Metrics: scores of a prediction compared with the text that was in the hole.
//!
//! The field uses at least six definitions of exact match and four of edit similarity, and the same predictions score 41 or 18
//! depending on the script. Each metric has its own file here. Its values are between 0 and 1; higher is better. [`Metric`]
//! names the metrics, and every output names the metric of a value. The metrics use the distances
//! [`levenshtein`](repoformer_text::distance::levenshtein), [`indel`](repoformer_text::distance::indel) and [`difflib`].
//!
//! | metric | exact match | edit similarity |
//! |---|---|---|
//! | `repocoder` | stripped non-blank lines, as many as the target has | Levenshtein over these lines |
//! | `repoformer` | code tokens | Levenshtein; InDel in whole percent |
//! | `repoformer-difflib` | the same | Levenshtein; `difflib` in whole percent |
//! | `crosscodeeval` | stripped non-blank lines without comments; identifiers | InDel in whole percent |
//! | `repobench` | words between white space | InDel in whole percent, nothing stripped |
//! | `chars` | the texts as they are | Levenshtein over the texts as they are |
//!
//! Post-processing of predictions ([`crate::postprocess`]) matters as much as the formulas.

use std::collections::BTreeSet;

use repoformer::Fuzz;
use repoformer_text::language::{
    Language, bare_identifiers, without_comment_signs, without_strings,
};
use repoformer_text::named;

pub mod chars;
pub mod crosscodeeval;
pub mod difflib;
mod pair;
pub mod repobench;
pub mod repocoder;
pub mod repoformer;

pub use pair::PairScore;

/// A named metric, which has one or more values.
///
/// ```
/// use repoformer_text::language::Language;
/// use repoformer_core::metrics::Metric;
/// let metric: Metric = "repocoder".parse()?;
/// assert_eq!(metric.to_string(), "repocoder");
/// assert_eq!(metric.values(), ["em", "es"]);
/// assert_eq!(metric.score("return x", &["return y"], Language::Python), [0.0, 0.875]);
/// # Ok::<(), repoformer_store::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Metric {
    /// [`repocoder`]: exact match and edit similarity over stripped lines, cut to the target's count.
    RepoCoder,
    /// [`repoformer`]: exact match by code tokens, edit similarity by Levenshtein and by `fuzz.ratio`.
    Repoformer,
    /// [`repoformer`] with the `fuzz.ratio` that its requirements install: [`difflib`].
    RepoformerDifflib,
    /// [`crosscodeeval`]: exact match, edit similarity and identifiers.
    CrossCodeEval,
    /// [`repobench`]: exact match by words, `fuzz.ratio`.
    RepoBench,
    /// [`chars`]: the texts as they are.
    Chars,
}

named! {
    Metric, "metric":
    RepoCoder = "repocoder",
    Repoformer = "repoformer",
    RepoformerDifflib = "repoformer-difflib",
    CrossCodeEval = "crosscodeeval",
    RepoBench = "repobench",
    Chars = "chars",
}

impl Metric {
    /// Returns the names of the metric's values, in the order of [`score`](Self::score).
    pub fn values(self) -> &'static [&'static str] {
        match self {
            Self::RepoCoder | Self::RepoBench | Self::Chars => &["em", "es"],
            Self::Repoformer | Self::RepoformerDifflib => &["em", "es", "es_fuzz"],
            Self::CrossCodeEval => &["em", "es", "id_em", "id_precision", "id_recall", "id_f1"],
        }
    }

    /// Scores the samples predicted for one target. Each value is between 0 and 1; without a sample it is 0. RepoCoder's values
    /// are the values of the best sample, as in its program. The other programs score one sample; for several, their values are
    /// averaged here.
    pub fn score<S: AsRef<str>>(self, target: &str, samples: &[S], language: Language) -> Vec<f64> {
        let one = |sample: &S| self.score_one(target, sample.as_ref(), language);
        match samples {
            [sample] => one(sample),
            samples => self.of_samples(&samples.iter().map(one).collect::<Vec<_>>()),
        }
    }

    /// Combines the values of the samples into the values of the target.
    pub fn of_samples(self, each: &[Vec<f64>]) -> Vec<f64> {
        let of = |value: usize| {
            let values = each.iter().map(|values| values[value]);
            match self {
                Self::RepoCoder => values.fold(0.0, f64::max),
                // An empty sum of `f64` is -0.
                _ => values.fold(0.0, |sum, value| sum + value) / each.len().max(1) as f64,
            }
        };
        (0..self.values().len()).map(of).collect()
    }

    /// Describes how the samples of a task are combined into one value, if some tasks have several, such as `best of 3` or
    /// `mean of 1 or 3`. The numbers are the sample counts that occur.
    ///
    /// ```
    /// use repoformer_core::metrics::Metric;
    /// assert_eq!(Metric::RepoCoder.of_several([3, 1, 3]).as_deref(), Some("best of 1 or 3"));
    /// assert_eq!(Metric::Chars.of_several([3]).as_deref(), Some("mean of 3"));
    /// assert_eq!(Metric::RepoCoder.of_several([1, 1]), None);
    /// ```
    pub fn of_several(self, samples: impl IntoIterator<Item = usize>) -> Option<String> {
        let counts: BTreeSet<usize> = samples.into_iter().filter(|count| *count > 0).collect();
        let how = if self == Self::RepoCoder { "best" } else { "mean" };
        let names: Vec<String> = counts.iter().map(usize::to_string).collect();
        counts.last().filter(|most| **most > 1)?;
        Some(format!("{how} of {}", names.join(" or ")))
    }

    fn score_one(self, target: &str, sample: &str, language: Language) -> Vec<f64> {
        match self {
            Self::RepoCoder => repocoder::score(target, sample).values(),
            Self::Repoformer | Self::RepoformerDifflib => {
                let fuzz = if self == Self::Repoformer { Fuzz::Indel } else { Fuzz::Difflib };
                let score = repoformer::score(target, sample, fuzz);
                vec![f64::from(score.em), score.es, score.es_fuzz]
            }
            Self::CrossCodeEval => {
                let score = crosscodeeval::score(target, sample, language);
                let (em, id_em) = (f64::from(score.em), f64::from(score.id_em));
                let [precision, recall] = [score.id_precision, score.id_recall];
                vec![em, score.es, id_em, precision, recall, score.id_f1]
            }
            Self::RepoBench => repobench::score(target, sample).values(),
            Self::Chars => chars::score(target, sample).values(),
        }
    }

    /// Returns the values of a target that is predicted exactly: 1, except if a formula gives 0 for empty texts.
    ///
    /// ```
    /// use repoformer_text::language::Language;
    /// use repoformer_core::metrics::Metric;
    /// let of = |target| Metric::CrossCodeEval.best(target, Language::Python);
    /// assert_eq!(of("f(x)"), [1.0; 6]);
    /// assert_eq!(of("return)"), [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]); // no identifier
    /// ```
    pub fn best(self, target: &str, language: Language) -> Vec<f64> {
        let mut best = vec![1.0; self.values().len()];
        match self {
            Self::Repoformer | Self::RepoformerDifflib => {
                if repoformer_text::lines::strip(target).is_empty() {
                    best[1] = 0.0;
                }
            }
            Self::CrossCodeEval => {
                let code = without_comment_signs(target);
                if bare_identifiers(&without_strings(&code), language).is_empty() {
                    best[3..].fill(0.0);
                }
            }
            Self::RepoCoder | Self::RepoBench | Self::Chars => {}
        }
        best
    }
}

#[cfg(test)]
mod reference_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::kind::RecordKind;

    #[test]
    fn scores_of_each_metric_are_known_as_scores() {
        for metric in Metric::ALL {
            let record = serde_json::json!({ "task_id": "a", "pred": "", metric.name(): {} });
            let kind = RecordKind::from_record(record.as_object().unwrap());
            assert_eq!(kind, Some(RecordKind::Score), "{metric}");
        }
    }

    #[test]
    fn several_samples() {
        let samples = ["x = 1", "y = 2"];
        let of = |metric: Metric| metric.score("x = 1", &samples, Language::Python);
        assert_eq!(of(Metric::RepoCoder), [1.0, 1.0]);
        assert_eq!(of(Metric::Chars), [0.5, (1.0 + 0.6) / 2.0]);
        assert_eq!(of(Metric::Repoformer), [0.5, 0.8, 0.8]);
        for metric in Metric::ALL {
            let none = metric.score::<&str>("x", &[], Language::Python);
            assert!(none.iter().all(|value| value.to_bits() == 0), "{metric}");
        }
    }

    #[test]
    fn a_target_is_its_own_best_prediction() {
        for target in ["x = f('a', #b)", "", " \n", ")", "# a", "\"\"", "é // 2\n\n  y"] {
            for metric in Metric::ALL {
                let best = metric.best(target, Language::Python);
                let found = metric.score(target, &[target], Language::Python);
                assert_eq!(found, best, "{metric} {target:?}");
            }
        }
    }
}
