//! CrossCodeEval's exact match, edit similarity and identifier match.
//!
//! The formulas are from `process_examples` and `compute_metric_stmt` of the released `scripts/eval_metric.py` with its
//! `eval_utils.py`.
//! Comments, and anything that looks like a comment, are removed from both texts ([`without_comment_signs`]).
//! [`crate::postprocess`] first cuts a Python prediction to its first statement, and predictions in other languages to their
//! first bracket.

use repoformer_text::distance::indel;
use repoformer_text::language::{
    Language, bare_identifiers, without_comment_signs, without_strings,
};
use repoformer_text::lines::strip;

use super::repoformer::edit_similarity;

/// The texts and identifiers that were compared, and the score.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Detail {
    /// The prediction without comments.
    pub prediction: String,
    /// The target without comments.
    pub target: String,
    /// The prediction's identifiers in order.
    pub prediction_ids: Vec<String>,
    /// The target's identifiers in order.
    pub target_ids: Vec<String>,
    /// The score.
    pub score: StatementScore,
    /// Additional value of Repoformer: `1 − lev / max` of the two texts.
    pub es_repoeval: f64,
}

/// Score of one pair, each value between 0 and 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StatementScore {
    /// Whether the stripped non-blank lines are the same.
    pub em: bool,
    /// `fuzz.ratio` of the stripped texts, in steps of 1/100.
    pub es: f64,
    /// Whether the identifiers are the same, in order.
    pub id_em: bool,
    /// Fraction of the prediction's identifiers that the target contains; 0 if the prediction has none.
    pub id_precision: f64,
    /// Fraction of the target's identifiers that the prediction contains; 0 if the target has none.
    pub id_recall: f64,
    /// Harmonic mean of precision and recall; 0 if there are no identifiers.
    pub id_f1: f64,
}

/// Scores one prediction.
///
/// ```
/// use repoformer_text::language::Language;
/// use repoformer_core::metrics::crosscodeeval::score;
/// let one = score("return add(a, b)  # sum", "return add(a, c)", Language::Python);
/// assert_eq!((one.em, one.es, one.id_em), (false, 0.94, false));
/// // add and a of {add, a, c}, and of {add, a, b}.
/// assert_eq!((one.id_precision, one.id_f1), (2.0 / 3.0, 4.0 / 6.0));
/// ```
pub fn score(target: &str, prediction: &str, language: Language) -> StatementScore {
    with_identifiers(target, prediction, language, compare)
}

/// Scores one prediction, and also returns the texts and identifiers that were compared.
pub fn detail(target: &str, prediction: &str, language: Language) -> Detail {
    let owned = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect();
    with_identifiers(
        target,
        prediction,
        language,
        |target, prediction, target_ids, prediction_ids| Detail {
            score: compare(target, prediction, target_ids, prediction_ids),
            es_repoeval: edit_similarity(target, prediction),
            prediction_ids: owned(prediction_ids),
            target_ids: owned(target_ids),
            prediction: prediction.to_owned(),
            target: target.to_owned(),
        },
    )
}

/// Calls `use_them` with the target and the prediction, both without comments, and with the identifiers of each.
fn with_identifiers<T>(
    target: &str,
    prediction: &str,
    language: Language,
    use_them: impl FnOnce(&str, &str, &[&str], &[&str]) -> T,
) -> T {
    let [target, prediction] = [target, prediction].map(without_comment_signs);
    let bare = [&target, &prediction].map(|text| without_strings(text));
    let [target_ids, prediction_ids] =
        [&bare[0], &bare[1]].map(|text| bare_identifiers(text, language));
    use_them(&target, &prediction, &target_ids, &prediction_ids)
}

fn compare(
    target: &str,
    prediction: &str,
    target_ids: &[&str],
    prediction_ids: &[&str],
) -> StatementScore {
    let lines = |text| str::split(text, '\n').map(strip).filter(|line| !line.is_empty());
    let (wanted, found) = (unique(target_ids), unique(prediction_ids));
    let is_wanted = |id: &&&str| wanted.binary_search(id).is_ok();
    let common = found.iter().filter(is_wanted).count() as f64;
    let share = |of: usize| if of == 0 { 0.0 } else { common / of as f64 };
    let both = wanted.len() + found.len();
    StatementScore {
        em: lines(prediction).eq(lines(target)),
        es: f64::from(indel::fuzz_ratio(strip(prediction), strip(target))) / 100.0,
        id_em: prediction_ids == target_ids,
        id_precision: share(found.len()),
        id_recall: share(wanted.len()),
        id_f1: if both == 0 { 0.0 } else { 2.0 * common / both as f64 },
    }
}

fn unique<'a>(ids: &[&'a str]) -> Vec<&'a str> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids
}
