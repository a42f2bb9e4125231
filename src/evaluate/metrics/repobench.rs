//! RepoBench's exact match and edit similarity.
//!
//! Formulas: `exact_match_score` and `edit_similarity_score` of the released `evaluation/metrics.py`: the words between white
//! space are the same; `fuzz.ratio` of the texts as they are. That a prediction is cut to its first line that is no comment
//! comes before: [`crate::evaluate::postprocess`].

use crate::text::distance::indel;
use crate::text::lines::is_space;

/// The values of one pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Whether the texts are the same but for white space.
    pub em: bool,
    /// `fuzz.ratio`, in steps of 1/100.
    pub es: f64,
}

/// Scores one prediction.
///
/// ```
/// use repoformer::evaluate::metrics::repobench::score;
/// let one = score("    return x", "return  x");
/// assert_eq!((one.em, one.es), (true, 0.76)); // 5 insertions and deletions in 21 characters
/// ```
pub fn score(target: &str, prediction: &str) -> Score {
    let words = |text| str::split(text, is_space).filter(|word| !word.is_empty());
    Score {
        em: words(prediction).eq(words(target)),
        es: f64::from(indel::fuzz_ratio(prediction, target)) / 100.0,
    }
}
