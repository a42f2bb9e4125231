//! RepoBench's exact match and edit similarity.
//!
//! The formulas are from `exact_match_score` and `edit_similarity_score` of the released `evaluation/metrics.py`. Two texts
//! match if the words between white space are the same; `fuzz.ratio` compares the texts as they are. [`crate::postprocess`]
//! first cuts a prediction to its first line that is not a comment.

use repoformer_text::distance::indel;
use repoformer_text::lines::is_space;

use super::PairScore;

/// Scores one prediction: equal up to white space, and `fuzz.ratio` in steps of 1/100.
///
/// ```
/// use repoformer_core::metrics::repobench::score;
/// let one = score("    return x", "return  x");
/// assert_eq!((one.em, one.es), (true, 0.76)); // 5 insertions and deletions in 21 characters
/// ```
pub fn score(target: &str, prediction: &str) -> PairScore {
    let words = |text| str::split(text, is_space).filter(|word| !word.is_empty());
    PairScore {
        em: words(prediction).eq(words(target)),
        es: f64::from(indel::fuzz_ratio(prediction, target)) / 100.0,
    }
}
