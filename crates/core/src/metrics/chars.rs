//! Scores of the texts as they are. Nothing is stripped, cut or rounded, which shows how lenient the other metrics are.

use repoformer_text::distance::levenshtein;

use super::PairScore;

/// Scores one prediction: exact match of the texts, and edit similarity `1 − lev / max` (1 if both are empty).
///
/// ```
/// use repoformer_core::metrics::chars::score;
/// let one = score("  x", "x");
/// assert_eq!((one.em, one.es), (false, 1.0 - 2.0 / 3.0));
/// ```
pub fn score(target: &str, prediction: &str) -> PairScore {
    PairScore { em: target == prediction, es: levenshtein::similarity(target, prediction) }
}
