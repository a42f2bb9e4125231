//! Repoformer's exact match by code tokens and its two edit similarities.
//!
//! The formulas are from `cal_exact_match`, `cal_edit_sim_repoeval` and `cal_edit_sim` of the released `eval_metric.py`. The
//! program first cuts the prediction to the target's lines or to the function's body; here [`crate::postprocess`] does so. Two
//! empty texts score 0 in `es`, as in the program, and 1 in `es_fuzz`.

use repoformer_text::distance::indel;
use repoformer_text::distance::levenshtein;
use repoformer_text::lines::{is_space, strip};

use super::difflib;

/// Score of one pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CodeTokenScore {
    /// Whether the code tokens are the same.
    pub em: bool,
    /// `1 − lev / max` of the stripped texts; 0 if both are empty.
    pub es: f64,
    /// `fuzz.ratio` of the stripped texts, in steps of 1/100.
    pub es_fuzz: f64,
}

/// Variant of `fuzz.ratio`. The released requirements do not install `python-Levenshtein`, without which the ratio is another
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fuzz {
    /// [`indel::fuzz_ratio`], with `python-Levenshtein`.
    Indel,
    /// [`difflib::fuzz_ratio`], without `python-Levenshtein`.
    Difflib,
}

/// Scores one prediction.
///
/// ```
/// use repoformer_core::metrics::repoformer::{Fuzz, score};
/// let one = score("x = call('a')", "x=call(\"a\")", Fuzz::Indel);
/// // The same tokens; two blanks inserted, two quotes replaced: 4 edits of 13, and 6 InDel edits of 24.
/// assert!(one.em);
/// assert_eq!((one.es, one.es_fuzz), (1.0 - 4.0 / 13.0, 0.75));
/// ```
pub fn score(target: &str, prediction: &str, fuzz: Fuzz) -> CodeTokenScore {
    let em = code_tokens(prediction).eq(code_tokens(target));
    let (target, prediction) = (strip(target), strip(prediction));
    let percent = match fuzz {
        Fuzz::Indel => indel::fuzz_ratio(prediction, target),
        Fuzz::Difflib => difflib::fuzz_ratio(prediction, target),
    };
    CodeTokenScore {
        em,
        es: edit_similarity(target, prediction),
        es_fuzz: f64::from(percent) / 100.0,
    }
}

/// Returns `cal_edit_sim_repoeval`: `1 − lev / max` of the stripped texts; 0 if both are empty.
pub fn edit_similarity(target: &str, prediction: &str) -> f64 {
    let (target, prediction) = (strip(target), strip(prediction));
    if target.is_empty() && prediction.is_empty() {
        return 0.0;
    }
    levenshtein::similarity(prediction, target)
}

/// Splits a text into code tokens: runs of ASCII letters, digits and `_`, split between a lower-case and an upper-case letter,
/// and all other characters except white space, one by one. Both kinds of quotes become the token `` ` ``.
///
/// ```
/// use repoformer_core::metrics::repoformer::code_tokens;
/// let tokens: Vec<&str> = code_tokens("fooBar2(\"x_y\")\n").collect();
/// assert_eq!(tokens, ["foo", "Bar2", "(", "`", "x_y", "`", ")"]);
/// ```
pub fn code_tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(is_space);
        let first = rest.chars().next()?;
        let length = if is_word_byte(rest.as_bytes()[0]) {
            word_length(rest.as_bytes())
        } else {
            first.len_utf8()
        };
        let (token, behind) = rest.split_at(length);
        rest = behind;
        Some(if matches!(first, '"' | '\'') { "`" } else { token })
    })
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn word_length(bytes: &[u8]) -> usize {
    let ends = |pair: &[u8]| {
        !is_word_byte(pair[1]) || (pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
    };
    bytes.windows(2).position(ends).map_or(bytes.len(), |at| at + 1)
}
