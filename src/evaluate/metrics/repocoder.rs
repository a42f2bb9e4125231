//! RepoCoder's exact match and edit similarity.
//!
//! Formulas: `compute_EM` and `compute_ES` of the released `compute_score.py`. Target and prediction become lists of
//! stripped lines without the blank ones, and the prediction is cut to as many lines as the target has.
//! One difference: for a target without any non-blank line, both lists are empty. The program then reports an exact match and
//! divides by zero for the edit similarity; here the similarity is 1.

use super::PairScore;
use super::lines::stripped_lines;
use crate::text::distance::levenshtein;

/// Scores the samples predicted for one target: any exact match line by line, and the best edit similarity. Without a sample
/// the score is `false` and 0 (the program stops with an error for the similarity).
///
/// ```
/// use repoformer::evaluate::metrics::repocoder::score;
/// // The prediction is cut to its first line, as the target has one line.
/// let one = score("    return x\n", &["return x\nreturn y"]);
/// assert_eq!((one.em, one.es), (true, 1.0));
/// // "ab" and "cb" differ in one character of two.
/// let best = score("ab", &["zz", " cb"]);
/// assert_eq!((best.em, best.es), (false, 0.5));
/// ```
pub fn score<S: AsRef<str>>(target: &str, samples: &[S]) -> PairScore {
    let (target, count) = stripped_lines(target, usize::MAX);
    let mut best = PairScore { em: false, es: 0.0 };
    for sample in samples {
        let (prediction, _) = stripped_lines(sample.as_ref(), count);
        // No line is empty or holds a newline, so the joined texts are equal only where the lists are.
        if prediction == target {
            return PairScore { em: true, es: 1.0 };
        }
        best.es = best.es.max(levenshtein::similarity(&target, &prediction));
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(target: &str, prediction: &str) -> (bool, f64) {
        let PairScore { em, es } = score(target, &[prediction]);
        (em, es)
    }

    #[test]
    fn lines_are_stripped_and_cut() {
        assert_eq!(pair("a\n\n  b\n", "\ta \r\nb\nc"), (true, 1.0));
        assert_eq!(pair("a\nb", "a\n\n\nb"), (true, 1.0));
        assert_eq!(pair("ab\ncd", "ab"), (false, 0.4)); // "ab\ncd" / "ab": three of five
        assert_eq!(pair("ab", "a\nb"), (false, 0.5));
        assert_eq!(pair("abcd", ""), (false, 0.0));
    }

    #[test]
    fn a_target_without_lines_matches_every_prediction() {
        // The program's exact match is True for all of these (fixture kind `gt_odd`).
        for target in ["", "  ", "\n", "\u{a0}", "\u{3000}", "\x1f"] {
            for prediction in ["", "\n", "None", "x = 1\ny = 2"] {
                assert_eq!(pair(target, prediction), (true, 1.0), "{target:?} {prediction:?}");
            }
        }
    }

    #[test]
    fn samples() {
        let PairScore { em, es } = score("ab", &["xx", "ab", "ax"]);
        assert_eq!((em, es), (true, 1.0));
        let PairScore { em, es } = score("ab", &["xx".to_owned(), "ax".to_owned()]);
        assert_eq!((em, es), (false, 0.5));
        for target in ["ab", ""] {
            let PairScore { em, es } = score::<&str>(target, &[]);
            assert_eq!((em, es), (false, 0.0));
        }
    }

    #[test]
    fn lengths_are_in_characters() {
        assert_eq!(pair("ééé語", "ééé"), (false, 0.75));
    }
}
