//! Probability of a given text after a prompt.
//!
//! The model itself predicts only words of its prompt, and most texts contain others. Every token and every line therefore has a second
//! source, so that each text has a probability above 0 and the probabilities of all texts sum to at most 1:
//!
//! - A token is either predicted by the model or spelled byte by byte (with probability [`SPELLED`]).
//! - A line is either an indentation followed by such tokens, or written byte by byte (with probability [`RAW`]), like blank lines, lines
//!   with white space that the model does not write, and lines after the first [`MAX_TARGET_LINES`].
//!
//! Bytes are predicted from up to four preceding bytes, by their counts in the prompt; shorter contexts are blended in as in Witten & Bell
//! (*The Zero-Frequency Problem*, 1991, method C).

use foldhash::HashMap;

use super::align::Alignment;
use super::corpus::{Corpus, MAX_INDENT, tail};
use super::history::{History, HistoryLine};
use super::indents;
use super::lexer::Piece;
use super::parameters::likelihood::{CONTEXT, END, RAW, SPELLED, UNPRINTED};
use super::parameters::{MAX_PROMPT_BYTES, MAX_TARGET_LINES};
use super::predict::Predictor;
use super::templates;

/// Returns the natural logarithm of the model's probability of a text after a prompt. The text begins at the beginning of a line; more text
/// may follow its last token.
///
/// ```
/// use repoformer_models::in_context::log_likelihood;
/// let prompt = "a = load(x)\nsave(a)\n\na = load(y)\n";
/// assert!(log_likelihood(prompt, "save(a)") > log_likelihood(prompt, "save(b)"));
/// assert!(log_likelihood(prompt, "save(b)") > log_likelihood(prompt, "b(save)"));
/// assert_eq!(log_likelihood(prompt, ""), 0.0);
/// ```
#[must_use]
pub fn log_likelihood(prompt: &str, text: &str) -> f64 {
    let (corpus, lines) = Corpus::read_with(prompt, text);
    let mut alignment = Alignment::new(&corpus);
    let mut history = History::of_prompt(&corpus);
    let mut spelling = Spelling::new(tail(prompt, MAX_PROMPT_BYTES));
    let mut sum = 0.0;
    let lines = lines.into_iter().chain(std::iter::repeat_with(Vec::new));
    let mut texts = text.split('\n').zip(lines).enumerate().peekable();
    while let Some((at, (line, pieces))) = texts.next() {
        let end = texts.peek().map(|_| "\n");
        if end.is_none() && line.is_empty() {
            break;
        }
        let raw = spelling.log_probability(line) + end.map_or(0.0, |end| spelling.after(line, end));
        let templates = if at < MAX_TARGET_LINES {
            templates::collect(&corpus, &alignment, &history)
        } else {
            Vec::new()
        };
        let indent = indent_of(&corpus, line, &pieces);
        sum += match indent {
            _ if templates.is_empty() => raw,
            None => libm::log(RAW) + raw,
            Some(indent) => {
                let share = indents::share(&corpus, &templates, &history, &pieces, indent);
                let mut predictor = Predictor::new(&corpus, &alignment, &templates);
                let ended = end.map(|_| Piece::NEWLINE);
                let tokens = pieces.iter().copied().chain(ended);
                let tokens = log_tokens(&mut predictor, &spelling, tokens);
                let (one, other) =
                    (libm::log(1.0 - RAW) + libm::log(share) + tokens, libm::log(RAW) + raw);
                log_sum(one, other)
            }
        };
        spelling.push(line);
        spelling.push("\n");
        if pieces.is_empty() {
            history.after_blank = true;
        } else {
            alignment.advance(&corpus, &pieces, usize::MAX);
            let indent = line.chars().take_while(|c| c.is_whitespace()).count().min(MAX_INDENT);
            history.push(&corpus, HistoryLine { pieces, indent });
        }
    }
    sum
}

/// Returns the indentation of a line, if the model would write the line in this form.
fn indent_of(corpus: &Corpus, line: &str, pieces: &[Piece]) -> Option<usize> {
    let code = line.trim_start();
    let margin = &line[..line.len() - code.len()];
    let unit = if corpus.tabs { '\t' } else { ' ' };
    let written: String = pieces.iter().map(|piece| corpus.vocabulary.write(*piece)).collect();
    let is_written = !pieces.is_empty() && written == code && margin.chars().all(|c| c == unit);
    (is_written && margin.len() <= MAX_INDENT).then_some(margin.len())
}

/// Returns the sum of the log-probabilities of a line's tokens.
fn log_tokens(
    predictor: &mut Predictor<'_>,
    spelling: &Spelling,
    tokens: impl Iterator<Item = Piece>,
) -> f64 {
    // The indentation is predicted from the tokens, so the tokens are predicted without it.
    let mut written = String::new();
    let mut draft = predictor.draft();
    let mut sum = 0.0;
    for piece in tokens {
        let next = predictor.next(&draft);
        let spelled_share = if next.is_empty() { 1.0 } else { SPELLED };
        let found = next.iter().find(|(other, _)| *other == piece);
        let predicted = found.map_or(0.0, |(_, probability)| *probability);
        let text = predictor.corpus.vocabulary.write(piece);
        let letters = text.len() as f64;
        let length = libm::log(END) + (letters - 1.0) * libm::log(1.0 - END);
        let spelled = libm::exp(spelling.after(&written, &text) + length);
        sum += libm::log((1.0 - spelled_share) * predicted + spelled_share * spelled);
        written.push_str(&text);
        draft = predictor.extend(&draft, piece);
    }
    sum
}

/// Returns the logarithm of the sum of two numbers, given their logarithms.
fn log_sum(one: f64, other: f64) -> f64 {
    let (most, least) = (one.max(other), one.min(other));
    most + libm::log1p(libm::exp(least - most))
}

/// Probabilities of bytes after preceding bytes.
struct Spelling {
    /// For each context, the bytes that follow it and their counts.
    followers: HashMap<Context, Followers>,
    /// Last bytes before the line.
    before: Vec<u8>,
}

/// Number of bytes, and the bytes themselves.
type Context = (usize, u32);

#[derive(Default)]
struct Followers {
    counts: Vec<(u8, u32)>,
    total: u32,
}

impl Spelling {
    fn new(prompt: &str) -> Self {
        let bytes = prompt.as_bytes();
        let mut followers: HashMap<Context, Followers> = HashMap::default();
        for (at, &byte) in bytes.iter().enumerate() {
            for context in contexts(&bytes[..at]) {
                let found = followers.entry(context).or_default();
                found.total += 1;
                match found.counts.iter_mut().find(|(other, _)| *other == byte) {
                    Some((_, count)) => *count += 1,
                    None => found.counts.push((byte, 1)),
                }
            }
        }
        let mut spelling = Self { followers, before: Vec::new() };
        spelling.push(prompt);
        spelling
    }

    /// Appends a text to the bytes before the line.
    fn push(&mut self, text: &str) {
        self.before.extend_from_slice(text.as_bytes());
        let from = self.before.len().saturating_sub(CONTEXT);
        self.before.drain(..from);
    }

    /// Returns the log-probability of a text at the beginning of the line.
    fn log_probability(&self, text: &str) -> f64 {
        self.after("", text)
    }

    /// Returns the log-probability of a text after the part of the line written so far.
    fn after(&self, written: &str, text: &str) -> f64 {
        let from = written.len().saturating_sub(CONTEXT);
        let mut before = self.before.clone();
        before.extend_from_slice(&written.as_bytes()[from..]);
        let mut sum = 0.0;
        for &byte in text.as_bytes() {
            sum += libm::log(self.probability(&before, byte));
            before.push(byte);
        }
        sum
    }

    fn probability(&self, before: &[u8], byte: u8) -> f64 {
        let is_printed = byte == b'\n' || byte == b' ' || byte.is_ascii_graphic();
        let prior = if is_printed { (1.0 - UNPRINTED) / 96.0 } else { UNPRINTED / 160.0 };
        contexts(before).fold(prior, |shorter, context| {
            let Some(Followers { counts, total }) = self.followers.get(&context) else {
                return shorter;
            };
            let count = counts.iter().find(|(other, _)| *other == byte).map_or(0, |(_, n)| *n);
            let kinds = counts.len() as f64;
            (f64::from(count) + kinds * shorter) / (f64::from(*total) + kinds)
        })
    }
}

/// Returns the contexts at the end of a text, from the empty one to the longest.
fn contexts(before: &[u8]) -> impl Iterator<Item = Context> {
    let longest = before.len().min(CONTEXT);
    let mut last = before.iter().rev();
    let mut packed = 0;
    (0..=longest).map(move |length| {
        if length > 0 {
            packed = packed << 8 | u32::from(last.next().copied().unwrap_or_default());
        }
        (length, packed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "def load(path):\n    with open(path) as file:\n        return read(file)\n\ndef save(path):\n";

    #[test]
    fn bytes_sum_to_one() {
        let spelling = Spelling::new(PROMPT);
        for before in ["", "d", "with open(", "é\0"] {
            let sum: f64 =
                (0..=255).map(|byte| spelling.probability(before.as_bytes(), byte)).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{before:?}: {sum}");
        }
    }

    /// Lines of a few words, one of which the prompt makes likely: their probabilities sum to almost 1, and not more.
    #[test]
    fn lines_sum_to_less_than_one() {
        let prompt = "x\n".repeat(8);
        let words = ["", " ", "    ", "x", "(", "y", "\t"];
        let mut lines = vec![String::new()];
        for _ in 0..4 {
            let longer = |text: &String| words.map(|word| format!("{text}{word}"));
            lines = lines.iter().flat_map(longer).collect();
            lines.sort_unstable();
            lines.dedup();
        }
        let of = |line: &String| libm::exp(log_likelihood(&prompt, &format!("{line}\n")));
        let sum: f64 = lines.iter().map(of).sum();
        assert!(sum > 0.6 && sum < 1.0, "{sum}");
    }

    #[test]
    fn what_the_prompt_suggests_is_likelier() {
        let of = |text: &str| log_likelihood(PROMPT, text);
        let likely = "    with open(path) as file:";
        assert!(of(likely) > -3.0, "{}", of(likely));
        for other in [
            "    with open(path) as disk:",
            "        with open(path) as file:",
            "\twith open(path) as file:",
            "    with open( path ) as file:",
            "    with open(path) as file: ",
            "    π = 3.14159",
        ] {
            assert!(of(likely) > of(other) + 1.0, "{other}");
            assert!(of(other).is_finite(), "{other}");
        }
        // A name that the text itself introduces is known from then on.
        let first = "    with open(path) as handle:\n";
        let twice = of(&format!("{first}        return read(handle)"));
        assert!(
            twice - of(first)
                > of(&format!("{first}        return read(strange)")) - of(first) + 2.0
        );
    }

    #[test]
    fn lines_behind_the_first_are_spelled() {
        let line = "return foo(bar)\n";
        let prompt = line.repeat(4_000);
        let first = line.repeat(MAX_TARGET_LINES);
        let mut spelling = Spelling::new(&prompt);
        spelling.push(&first);
        let mut wanted = log_likelihood(&prompt, &first);
        for _ in MAX_TARGET_LINES..4_000 {
            wanted += spelling.log_probability(line);
            spelling.push(line);
        }
        let found = log_likelihood(&prompt, &line.repeat(4_000));
        assert!((found / wanted - 1.0).abs() < 1e-9, "{found} is not {wanted}");
    }

    #[test]
    fn any_prompt_will_do() {
        for prompt in ["", "\n", "é", "\u{0}"] {
            for text in ["x", "\n", "\n\n", "a\nb\n", "\u{0}", "é = 1", &"word ".repeat(200)] {
                let found = log_likelihood(prompt, text);
                assert!(found.is_finite() && found < 0.0, "{prompt:?} {text:?} {found}");
            }
        }
    }
}
