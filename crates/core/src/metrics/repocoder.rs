//! RepoCoder's exact match and edit similarity.
//!
//! The formulas are from `compute_EM` and `compute_ES` of the released `compute_score.py`. Target and prediction become lists
//! of stripped non-blank lines, and the prediction is cut to as many lines as the target has.
//!
//! One result differs: if a target has no non-blank line, both lists are empty. The program then reports an exact match and
//! divides by zero for the edit similarity; here the similarity is 1.

use repoformer_text::distance::levenshtein;
use repoformer_text::lines::{is_separator, strip};

use super::PairScore;

/// Scores one prediction: an exact match line by line, and the edit similarity of the joined lines.
///
/// ```
/// use repoformer_core::metrics::repocoder::score;
/// // The prediction is cut to its first line, as the target has one line.
/// let one = score("    return x\n", "return x\nreturn y");
/// assert_eq!((one.em, one.es), (true, 1.0));
/// // "ab" and "cb" differ in one character of two.
/// assert_eq!(score("ab", " cb").es, 0.5);
/// // A target without lines matches every prediction.
/// assert_eq!(score("\n", "x = 1").es, 1.0);
/// ```
pub fn score(target: &str, prediction: &str) -> PairScore {
    let (target, count) = stripped_lines(target, usize::MAX);
    let (prediction, _) = stripped_lines(prediction, count);
    // No line is empty or contains a newline, so the joined texts are equal only if the lists are.
    if prediction == target {
        return PairScore { em: true, es: 1.0 };
    }
    PairScore { em: false, es: levenshtein::similarity(&target, &prediction) }
}

/// Joins the first `limit` non-blank lines of a text with `\n`, each stripped as in Python. Returns the text and the number of
/// lines.
pub fn stripped_lines(text: &str, limit: usize) -> (String, usize) {
    let (mut joined, mut count) = (String::with_capacity(text.len()), 0);
    for line in text.split(is_separator) {
        let line = strip(line);
        if line.is_empty() {
            continue;
        }
        if count == limit {
            break;
        }
        if count > 0 {
            joined.push('\n');
        }
        joined.push_str(line);
        count += 1;
    }
    (joined, count)
}
