//! Metrics: what a prediction is worth beside the text that stood in the hole.
//!
//! The field has at least six exact matches and four edit similarities, and the same predictions score 41 or 18 depending on
//! whose script ran. Each is one file here, with values between 0 and 1 where more is better; [`Metric`] names them, and
//! every output says which one a value is of. [`levenshtein`](crate::text::distance::levenshtein), [`indel`](crate::text::distance::indel) and [`difflib`] are the distances below them.
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
//! How predictions are cut before ([`crate::evaluate::postprocess`]) matters as much as the formulas.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::text::language::{Language, identifiers, without_comment_signs, without_strings};
use repoformer::Fuzz;

pub mod chars;
pub mod crosscodeeval;
pub mod difflib;
pub(crate) mod lines;
pub mod repobench;
pub mod repocoder;
pub mod repoformer;

/// A named bundle of values, as `--metrics` takes it and the scores print it.
///
/// ```
/// use repoformer::text::language::Language;
/// use repoformer::evaluate::metrics::Metric;
/// let metric: Metric = "repocoder".parse()?;
/// assert_eq!(metric.to_string(), "repocoder");
/// assert_eq!(metric.values(), ["em", "es"]);
/// assert_eq!(metric.score("return x", &["return y"], Language::Python), [0.0, 0.875]);
/// # Ok::<(), repoformer::error::Error>(())
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

impl Metric {
    /// Every metric, in the order tables show them.
    pub const ALL: &[Self] = &[
        Self::RepoCoder,
        Self::Repoformer,
        Self::RepoformerDifflib,
        Self::CrossCodeEval,
        Self::RepoBench,
        Self::Chars,
    ];

    /// Its name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::RepoCoder => "repocoder",
            Self::Repoformer => "repoformer",
            Self::RepoformerDifflib => "repoformer-difflib",
            Self::CrossCodeEval => "crosscodeeval",
            Self::RepoBench => "repobench",
            Self::Chars => "chars",
        }
    }

    /// The names of its values, in the order of [`score`](Self::score).
    pub fn values(self) -> &'static [&'static str] {
        match self {
            Self::RepoCoder | Self::RepoBench | Self::Chars => &["em", "es"],
            Self::Repoformer | Self::RepoformerDifflib => &["em", "es", "es_fuzz"],
            Self::CrossCodeEval => &["em", "es", "id_em", "id_precision", "id_recall", "id_f1"],
        }
    }

    /// Its values for the samples predicted for one target, each between 0 and 1; all 0 without a sample. RepoCoder's
    /// are the best sample's, as its program has them; the others, whose programs know one sample, are means.
    pub fn score<S: AsRef<str>>(self, target: &str, samples: &[S], language: Language) -> Vec<f64> {
        let one = |sample: &S| self.score_one(target, sample.as_ref(), language);
        match samples {
            [sample] => one(sample),
            samples => self.of_samples(&samples.iter().map(one).collect::<Vec<_>>()),
        }
    }

    /// A target's values from those of each of its samples.
    pub(crate) fn of_samples(self, each: &[Vec<f64>]) -> Vec<f64> {
        let of = |value: usize| {
            let values = each.iter().map(|values| values[value]);
            match self {
                Self::RepoCoder => values.fold(0.0, f64::max),
                _ => values.sum::<f64>() / each.len().max(1) as f64,
            }
        };
        (0..self.values().len()).map(of).collect()
    }

    fn score_one(self, target: &str, sample: &str, language: Language) -> Vec<f64> {
        match self {
            Self::RepoCoder => {
                let score = repocoder::score(target, &[sample]);
                vec![number(score.em), score.es]
            }
            Self::Repoformer | Self::RepoformerDifflib => {
                let fuzz = match self {
                    Self::Repoformer => Fuzz::Indel,
                    _ => Fuzz::Difflib,
                };
                let score = repoformer::score(target, sample, fuzz);
                vec![number(score.em), score.es, score.es_fuzz]
            }
            Self::CrossCodeEval => {
                let score = crosscodeeval::score(target, sample, language);
                let (em, id_em) = (number(score.em), number(score.id_em));
                let shares = [score.id_precision, score.id_recall, score.id_f1];
                [&[em, score.es, id_em][..], &shares].concat()
            }
            Self::RepoBench => {
                let score = repobench::score(target, sample);
                vec![number(score.em), score.es]
            }
            Self::Chars => {
                let score = chars::score(target, sample);
                vec![number(score.em), score.es]
            }
        }
    }

    /// The values of a target predicted as it is: 1, but where a formula gives 0 to nothing at all.
    ///
    /// ```
    /// use repoformer::text::language::Language;
    /// use repoformer::evaluate::metrics::Metric;
    /// let of = |target| Metric::CrossCodeEval.best(target, Language::Python);
    /// assert_eq!(of("f(x)"), [1.0; 6]);
    /// assert_eq!(of("return)"), [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]); // no identifier
    /// ```
    pub fn best(self, target: &str, language: Language) -> Vec<f64> {
        let mut best = vec![1.0; self.values().len()];
        match self {
            Self::Repoformer | Self::RepoformerDifflib => {
                if crate::text::lines::strip(target).is_empty() {
                    best[1] = 0.0;
                }
            }
            Self::CrossCodeEval => {
                let code = without_comment_signs(target);
                if identifiers(&without_strings(&code), language).is_empty() {
                    best[3..].fill(0.0);
                }
            }
            Self::RepoCoder | Self::RepoBench | Self::Chars => {}
        }
        best
    }
}

fn number(is: bool) -> f64 {
    f64::from(u8::from(is))
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Metric {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|metric| metric.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|metric| metric.name()).collect();
            Error::Parameter {
                name: "metrics",
                reason: format!("'{name}' is not one of {}", names.join(", ")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::kind::RecordKind;

    #[test]
    fn names_parse_and_print_alike() {
        for &metric in Metric::ALL {
            assert_eq!(metric.to_string().parse::<Metric>().unwrap(), metric);
            let values = metric.score("x", &["y"], Language::Python);
            assert_eq!(values.len(), metric.values().len());
        }
        assert_eq!(
            "bleu".parse::<Metric>().unwrap_err().to_string(),
            "metrics: 'bleu' is not one of repocoder, repoformer, repoformer-difflib, crosscodeeval, repobench, chars"
        );
    }

    #[test]
    fn scores_of_each_metric_are_known_as_scores() {
        for metric in Metric::ALL {
            let record = serde_json::json!({ "task_id": "a", "pred": "", metric.name(): {} });
            let kind = RecordKind::of(record.as_object().unwrap());
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
        for &metric in Metric::ALL {
            let none = metric.score::<&str>("x", &[], Language::Python);
            assert!(none.iter().all(|value| *value == 0.0), "{metric}");
        }
    }

    #[test]
    fn a_target_is_its_own_best_prediction() {
        for target in [
            "x = f('a', #b)",
            "",
            " \n",
            ")",
            "# a",
            "\"\"",
            "é // 2\n\n  y",
        ] {
            for &metric in Metric::ALL {
                let best = metric.best(target, Language::Python);
                let found = metric.score(target, &[target], Language::Python);
                assert_eq!(found, best, "{metric} {target:?}");
            }
        }
    }
}
