//! Word tokens, which Repoformer's and CrossCodeEval's rankers compare.
//!
//! Both programs call NLTK's `word_tokenize` and use every `\w+` run of each token (`tokenize_nltk`). These runs are the runs
//! of the text itself, except if NLTK inserts a blank inside a run: before `n't` at a word's end, and inside `cannot`, `gimme`,
//! `gonna`, `gotta`, `lemme` and `wanna`. [`each_word`] finds the runs and checks only these places.
//!
//! `\w` is Python's: the categories L and N, and the underscore. A combining mark therefore ends a run, as does any connector
//! other than `_`. White space is Python's too: Unicode's White_Space and U+001C to U+001F.
//!
//! NLTK's rules have changed ([`Nltk`]). Until 3.8.1, `n't` is split off only before a space; since 3.9, it is split off before
//! any white space, and therefore also at the end of a line. Two later changes are not implemented: since 3.9.3, `n't` is also
//! split off before U+2012 to U+2015, and since 3.10.1, an opening quote is split from the next word first, so that `'tis` and
//! `'twas` stay whole.
//!
//! Only the preceding sentence split (Punkt, a trained model) is omitted: the period that ends a sentence inside the text is
//! treated as an ordinary one. That matters only for `n't` directly before such a period.

use std::ops::Range;

use super::classes::{Class, is_word};
use crate::lines::is_space;

/// Version of NLTK whose rules split words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Nltk {
    /// Until 3.8.1, as the papers' programs ran: only a space is a blank for `n't`, other clitics and `'tis`.
    Until38,
    /// 3.9 to 3.9.2: any white space is a blank.
    #[default]
    From39,
}

impl Nltk {
    /// Returns true if white space at the start of `text` counts as a blank; at the end of the whole text it always does.
    fn blanks(self, text: &str) -> bool {
        self == Self::From39 || text.starts_with(' ') || text.chars().all(is_space)
    }
}

/// Calls `visit` with every word token of `text`, in order, repeats included, as NLTK 3.9.2 splits them.
///
/// ```
/// use repoformer_text::tokenize::each_word;
/// let mut words = Vec::new();
/// each_word("x_1 = don't(cannot)", |word| words.push(word));
/// assert_eq!(words, ["x_1", "do", "n", "t", "can", "not"]);
/// ```
pub fn each_word<'a>(text: &'a str, visit: impl FnMut(&'a str)) {
    cut(text, Nltk::From39, visit);
}

/// Calls `visit` with every word token. Returns true if the lowercased text would give the same words in lower case. Returns
/// false if a character is beyond ASCII, or if lower case creates an `n't`.
#[inline]
pub fn cut<'a>(text: &'a str, nltk: Nltk, mut visit: impl FnMut(&'a str)) -> bool {
    let bytes = text.as_bytes();
    let (mut at, mut plain) = (0, true);
    while let Some(byte) = bytes.get(at) {
        match BYTES[usize::from(*byte)] {
            Byte::Other => at += 1,
            Byte::Word => {
                let (end, ascii) = end_of_run(text, at + 1);
                plain &= ascii;
                plain &= cut_run(text, at..end, nltk, &mut visit);
                at = end;
            }
            Byte::Wide => {
                plain = false;
                let (is_word, next) = wide(text, at);
                if !is_word {
                    at = next;
                    continue;
                }
                let (end, _) = end_of_run(text, next);
                cut_run(text, at..end, nltk, &mut visit);
                at = end;
            }
        }
    }
    plain
}

/// Class of the character that a byte is or begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Byte {
    Other,
    Word,
    Wide,
}

static BYTES: [Byte; 256] = {
    let mut classes = [Byte::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => Byte::Word,
            128.. => Byte::Wide,
            _ => Byte::Other,
        };
        byte += 1;
    }
    classes
};

/// Returns whether the non-ASCII character at `at` belongs to a word, and the position of the next character.
#[inline(never)]
fn wide(text: &str, at: usize) -> (bool, usize) {
    let character = text.get(at..).and_then(|rest| rest.chars().next());
    let Some(character) = character else {
        return (false, text.len());
    };
    let is_word = matches!(Class::from_character(character), Class::Letter | Class::Number);
    (is_word, at + character.len_utf8())
}

/// Returns the end of the run that continues at `at`, and whether the run is ASCII.
#[inline]
fn end_of_run(text: &str, mut at: usize) -> (usize, bool) {
    let bytes = text.as_bytes();
    let mut ascii = true;
    while let Some(byte) = bytes.get(at) {
        match BYTES[usize::from(*byte)] {
            Byte::Word => at += 1,
            Byte::Other => break,
            Byte::Wide => {
                let (is_word, next) = wide(text, at);
                if !is_word {
                    break;
                }
                (at, ascii) = (next, false);
            }
        }
    }
    (at, ascii)
}

/// Visits the words of a run; returns true if lower case would leave their positions unchanged.
#[inline]
fn cut_run<'a>(
    text: &'a str,
    Range { start, end }: Range<usize>,
    nltk: Nltk,
    visit: &mut impl FnMut(&'a str),
) -> bool {
    let bytes = text.as_bytes();
    let mut plain = true;
    let mut rest = end;
    if bytes.get(end) == Some(&b'\'')
        && let (last @ (b'n' | b'N'), Some(next @ (b't' | b'T'))) =
            (bytes[end - 1], bytes.get(end + 1))
    {
        let same_case = last.is_ascii_lowercase() == next.is_ascii_lowercase();
        plain = same_case;
        if same_case && end - 1 > start && blank_after_clitic(text, end + 2, nltk) {
            rest = end - 1;
        }
    }
    match contraction(&bytes[start..rest]) {
        Some((length, needs_blank))
            if !needs_blank || rest < end || blank_after_word(text, end, nltk) =>
        {
            visit(&text[start..start + length]);
            visit(&text[start + length..rest]);
        }
        None if is_tis(&bytes[start..rest]) && opens(text, start, nltk) => {
            visit(&text[start..=start]);
            visit(&text[start + 1..rest]);
        }
        _ => visit(&text[start..rest]),
    }
    if rest < end {
        visit(&text[rest..end]);
    }
    plain
}

/// Recognises NLTK's contractions that are a single run. Returns the length of the first half, and whether white space must
/// follow.
#[inline]
fn contraction(run: &[u8]) -> Option<(usize, bool)> {
    if !matches!(run.len(), 5 | 6) {
        return None;
    }
    let is = |word: &str| run.eq_ignore_ascii_case(word.as_bytes());
    match run[0] | 0x20 {
        b'c' => is("cannot").then_some((3, false)),
        b'g' if is("gimme") || is("gonna") || is("gotta") => Some((3, false)),
        // Python's (?i) treats both Turkish i's as an i.
        b'g' => {
            let turkish = ["İ", "ı"].iter().any(|i| run[1..].starts_with(i.as_bytes()));
            (turkish && run[3..].eq_ignore_ascii_case(b"mme")).then_some((4, false))
        }
        b'l' => is("lemme").then_some((3, false)),
        b'w' => is("wanna").then_some((3, true)),
        _ => None,
    }
}

#[inline]
fn is_tis(run: &[u8]) -> bool {
    run[0] | 0x20 == b't' && (run.eq_ignore_ascii_case(b"tis") || run.eq_ignore_ascii_case(b"twas"))
}

/// Returns true if a single quote with a blank before it precedes `start`. Two quotes are one token.
#[inline(never)]
fn opens(text: &str, start: usize, nltk: Nltk) -> bool {
    let before = text[..start].trim_end_matches('\'');
    match start - before.len() {
        1 => match before.chars().next_back() {
            None | Some(',' | ':') => true,
            Some(character) if is_space(character) => nltk == Nltk::From39 || character == ' ',
            Some(character) => {
                pads(character) || ["--", ".."].iter().any(|end| before.ends_with(end))
            }
        },
        quotes => quotes % 2 == 1,
    }
}

/// Returns true if there is a blank at `at`, the end of `n't`, when NLTK looks for one, after its earlier insertions.
#[inline(never)]
fn blank_after_clitic(text: &str, at: usize, nltk: Nltk) -> bool {
    // `'` and `'s` are split off in the preceding step if a blank follows them.
    let after_quote = match text.as_bytes().get(at..) {
        Some([b'\'', b's' | b'S' | b'm' | b'M' | b'd' | b'D', ..])
            if blank(text, at + 2, nltk) || opens_again(text, at + 2, nltk) =>
        {
            true
        }
        Some([b'\'', ..]) => blank(text, at + 1, nltk) || is_letter_alone(&text[at + 1..]),
        _ => false,
    };
    after_quote || blank(text, at, nltk)
}

/// Returns true if a quote at `at` gets blanks before NLTK looks for clitics.
fn opens_again(text: &str, at: usize, nltk: Nltk) -> bool {
    let rest = text.get(at..).and_then(|rest| rest.strip_prefix('\''));
    // Characters that are padded before quotes are.
    let early = |c| {
        matches!(
            c,
            ' ' | '`' | '«' | '“' | '„' | '‘' | ';' | '@' | '#' | '$' | '%' | '&' | '?' | '!'
        )
    };
    rest.is_some_and(|rest| {
        let point = rest.starts_with([',', ':', '.']) && blank(text, at + 1, nltk);
        point || rest.starts_with(early) || is_letter_alone(rest)
    })
}

/// Returns true if a quote before `rest` is split off as an opening quote: exactly one word character follows, and it is not a
/// clitic.
fn is_letter_alone(rest: &str) -> bool {
    let mut characters = rest.chars();
    let clitic = |c: char| matches!(c.to_ascii_lowercase(), 'm' | 't' | 's' | 'd' | 'n');
    characters.next().is_some_and(|c| is_word(c) && !clitic(c))
        && !characters.next().is_some_and(is_word)
}

/// Returns true if there is a blank at the end of `wanna` when NLTK looks for one; unlike for `n't`, the longer clitics have
/// been split off before.
#[inline(never)]
fn blank_after_word(text: &str, at: usize, nltk: Nltk) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let longer = match rest.get(..3) {
        Some("'ll" | "'LL" | "'re" | "'RE" | "'ve" | "'VE") => {
            blank_after_clitic(text, at + 3, nltk)
        }
        _ => false,
    };
    longer || rest.starts_with(is_space) || blank_after_clitic(text, at, nltk)
}

/// Returns true if there is a blank at `at` after NLTK has padded punctuation, or if the text ends there.
fn blank(text: &str, at: usize, nltk: Nltk) -> bool {
    let Some(rest) = text.get(at..) else {
        return false;
    };
    let mut characters = rest.chars();
    match characters.next() {
        None => true,
        Some(character) if is_space(character) => nltk.blanks(rest),
        Some(character) if pads(character) => true,
        Some(',' | ':') => !characters.next().is_some_and(is_digit),
        Some('-') => rest.starts_with("--"),
        Some('\'') => rest.starts_with("''"),
        Some('.') => rest.starts_with("..") || is_end_of_text(&rest[1..]),
        _ => false,
    }
}

/// Returns true if a character gets a blank on both sides in any context.
fn pads(character: char) -> bool {
    matches!(
        character,
        '`' | '"'
            | '«'
            | '»'
            | '“'
            | '”'
            | '„'
            | '‘'
            | '’'
            | ';'
            | '@'
            | '#'
            | '$'
            | '%'
            | '&'
            | '?'
            | '!'
            | '*'
            | '['
            | ']'
            | '('
            | ')'
            | '{'
            | '}'
            | '<'
            | '>'
    )
}

/// Zeros of Python's `\d` beyond ASCII; the nine characters after each are also digits (the category Nd by `unicodedata` 14.0;
/// `unicodedata.decimal` is 0 for these zeros).
const ZEROS: [u32; 65] = [
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6,
    0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50,
    0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10,
    0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650,
    0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50,
    0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0,
];

/// Returns true for Python's `\d`.
fn is_digit(character: char) -> bool {
    let code = u32::from(character);
    character.is_ascii_digit() || ZEROS.iter().any(|zero| (*zero..zero + 10).contains(&code))
}

/// Returns true if the text after a period consists of closing brackets and quotes followed by white space, so that the period
/// is the last one.
fn is_end_of_text(rest: &str) -> bool {
    let rest = rest.trim_end_matches(is_space);
    let closes = |c| matches!(c, ']' | ')' | '}' | '>' | '"' | '\'' | '»' | '”' | '’' | ' ');
    // A quote after a blank counts as an opening quote.
    rest.chars().all(closes) && !rest.contains(" \"") && !rest.contains(" ''")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WORDS: &str = include_str!("../../../../tests/fixtures/rank/words.json");

    fn words(text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word));
        words
    }

    fn recorded(json: &str) -> Vec<(String, Vec<String>)> {
        serde_json::from_str(json).unwrap()
    }

    /// Tokens by NLTKWordTokenizer of 3.9.2; see tests/fixtures/rank/record.py. To test more texts: `record.py words N SEED >
    /// FILE`, REPOFORMER_NLTK_WORDS=FILE.
    #[test]
    fn words_are_those_that_nltk_gives() {
        let recorded = match std::env::var_os("REPOFORMER_NLTK_WORDS") {
            Some(file) => recorded(&std::fs::read_to_string(file).unwrap()),
            None => recorded(WORDS),
        };
        for (text, wanted) in &recorded {
            assert_eq!(words(text), *wanted, "{text:?}");
        }
        assert!(recorded.len() > 500);
    }

    /// Words by version 3.8.1 that differ from 3.9.2. To test more texts, write a file with `record.py words` under that
    /// version: REPOFORMER_NLTK_38_WORDS=FILE.
    #[test]
    fn words_are_those_that_nltk_gave_before() {
        let mut wanted = match std::env::var_os("REPOFORMER_NLTK_38_WORDS") {
            Some(file) => recorded(&std::fs::read_to_string(file).unwrap()),
            None => recorded(WORDS),
        };
        let others = recorded(include_str!("../../../../tests/fixtures/rank/words-nltk-3.8.json"));
        for (text, other) in &others {
            for (_, words) in wanted.iter_mut().filter(|known| known.0 == *text) {
                words.clone_from(other);
            }
        }
        for (text, wanted) in &wanted {
            let mut words = Vec::new();
            cut(text, Nltk::Until38, |word| words.push(word));
            assert_eq!(words, *wanted, "{text:?}");
        }
    }

    /// Finds words by their definition without NLTK: runs of characters for which Python's isalnum is true, or underscores.
    fn runs(text: &str) -> Vec<&str> {
        text.split(|c| !is_word(c)).filter(|run| !run.is_empty()).collect()
    }

    proptest! {
        #[test]
        fn without_a_trigger_words_are_runs(text in "[a-mo-zA-MO-Z0-9_ \\n.,'é\u{301}½ß漢‿\u{1c}]{0,60}") {
            prop_assume!(!text.to_lowercase().contains("lemme"));
            prop_assert_eq!(words(&text), runs(&text));
        }

        #[test]
        fn words_are_the_text_without_the_rest(text in "([a-z' .,N]|n't|wanna|cannot|GİMME|lemme){0,30}") {
            prop_assert_eq!(words(&text).concat(), runs(&text).concat());
        }

        #[test]
        fn where_a_text_is_plain_lower_case_can_come_before_or_after(text in "([a-zNT' .,]|n't|N't|CANNOT|É){0,30}") {
            let mut after = Vec::new();
            if cut(&text, Nltk::From39, |word| after.push(word.to_ascii_lowercase())) {
                let lower = text.to_lowercase();
                prop_assert_eq!(words(&lower), after);
            }
        }
    }
}
