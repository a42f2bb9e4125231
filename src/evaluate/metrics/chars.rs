//! Plain characters: nothing stripped, cut or rounded, to see what the other metrics forgive.

use crate::text::distance::levenshtein;

/// The values of one pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Whether the texts are the same.
    pub em: bool,
    /// `1 − lev / max`; 1 where both are empty.
    pub es: f64,
}

/// Scores one prediction.
///
/// ```
/// use repoformer::evaluate::metrics::chars::score;
/// let one = score("  x", "x");
/// assert_eq!((one.em, one.es), (false, 1.0 - 2.0 / 3.0));
/// ```
pub fn score(target: &str, prediction: &str) -> Score {
    Score {
        em: target == prediction,
        es: levenshtein::similarity(target, prediction),
    }
}
