//! The built-in model `in-context`, which completes code using only the text of its prompt.
//!
//! It is an n-gram language model over code tokens, fitted to the text of one prompt for one completion. It needs no file, no network and
//! no accelerator, so the whole loop of an experiment (retrieve, prompt, complete, score) can run anywhere, even in a test, and gives the
//! same result in every run on a platform. Because it knows only the prompt, any gain from retrieval is due to the retrieved blocks in the
//! prompt.
//!
//! # Steps
//!
//! 1. `layout`, `lexer`, `corpus`, `state`: read the prompt as lines of tokens. Retrieved blocks are read without their
//!    comment prefix. Newlines and indentation are treated separately; open brackets and strings are tracked.
//! 2. `align`, `evidence`, `templates`: weigh each line of the prompt as the next line, by the agreement between the lines before it and
//!    the lines before the hole, by its position and by its block's rank. Names that differ between the two are replaced.
//! 3. `predict`: compute a token's probability from the lines followed so far and, by an escape, from positions after the
//!    same last tokens; longer contexts and nearer text count more.
//! 4. `choose`: write the probable line with the highest expected edit similarity, then the next, until the limits are
//!    reached.
//!
//! # Origin of the ideas
//!
//! Code is locally repetitive, and a cache of nearby text predicts it well: Tu, Su & Devanbu, *On the Localness of Software* (2014); nested
//! caches weighted by distance: Hellendoorn & Devanbu, *Are Deep Neural Networks the Best Choice for Modeling Source Code?* (2017).
//! Blending contexts of several lengths by an escape: Cleary & Witten, *Data Compression Using Adaptive Coding and Partial String Matching*
//! (1984). Local alignment: Smith & Waterman (1981). Choosing by expected gain is minimum Bayes risk decoding (Kumar & Byrne 2004).
//!
//! # Limits of the model
//!
//! It is not a neural model and does not replace one: its scores measure how much of a target can be adapted from the prompt, and do not
//! predict how a trained model completes the same prompt. It writes only words of its prompt. Its probabilities come from this small
//! mixture: use them to rank its own completions by confidence, not to compare it with a language model. It treats comment lines of the
//! current file as code, and ignores that text follows the hole.

mod align;
mod choose;
mod corpus;
mod evidence;
mod history;
mod indents;
mod layout;
mod lexer;
mod likelihood;
mod parameters;
mod predict;
mod state;
mod templates;
#[cfg(test)]
mod tests;

use align::Alignment;
use corpus::Corpus;
use history::{History, HistoryLine};
use lexer::Piece;
pub use likelihood::log_likelihood;
use predict::Predictor;

/// Revision of the model, increased with every change of its completions so that cached predictions are recomputed.
pub const REVISION: u32 = 1;

/// Limits of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionLimits {
    /// Largest number of lines. The model writes no blank lines, so all of them count.
    pub max_lines: usize,
    /// Largest number of tokens, including indentations and newlines.
    pub max_tokens: usize,
}

/// A generated token.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedToken {
    /// Text of the token with the preceding blank space; a newline or an indentation is a token too.
    pub text: String,
    /// The model's probability of the token after the tokens before it, in (0, 1]. For an indentation, the probability after the other
    /// tokens of its line.
    pub probability: f64,
}

/// Reason why a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionEnd {
    /// All lines were written.
    Lines,
    /// The token limit was reached; the last line may be incomplete.
    Tokens,
    /// The prompt contains no code.
    NoCandidate,
}

/// A completion; its text is the concatenation of its tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// The lines written, each with its newline unless it is incomplete.
    pub text: String,
    /// The tokens of the text.
    pub tokens: Vec<GeneratedToken>,
    /// Reason why the completion ended.
    pub finish: CompletionEnd,
}

/// Lower bound of a token's probability.
const LEAST_PROBABILITY: f64 = 1e-6;

/// Line that the model has written.
struct WrittenLine {
    line: HistoryLine,
    tokens: Vec<GeneratedToken>,
}

/// Writes the lines after a prompt. A prompt without a final newline is read as if it had one. Equal prompts give equal
/// completions.
#[must_use]
pub fn complete(prompt: &str, limits: &CompletionLimits) -> Generation {
    let corpus = Corpus::read(prompt);
    let mut alignment = Alignment::new(&corpus);
    let mut history = History::of_prompt(&corpus);
    let mut tokens: Vec<GeneratedToken> = Vec::new();
    let mut finish = CompletionEnd::Lines;
    for _ in 0..limits.max_lines {
        let room = limits.max_tokens - tokens.len();
        if room == 0 {
            finish = CompletionEnd::Tokens;
            break;
        }
        let Some(WrittenLine { line, tokens: new }) = next_line(&corpus, &alignment, &history)
        else {
            finish = CompletionEnd::NoCandidate;
            break;
        };
        let cut = new.len() > room;
        tokens.extend(new.into_iter().take(room));
        if cut {
            finish = CompletionEnd::Tokens;
            break;
        }
        alignment.advance(&corpus, &line.pieces, usize::MAX);
        history.push(&corpus, line);
    }
    let text = tokens.iter().map(|token| token.text.as_str()).collect();
    Generation { text, tokens, finish }
}

/// Writes the line after the history.
fn next_line(corpus: &Corpus, alignment: &Alignment, history: &History) -> Option<WrittenLine> {
    let templates = templates::collect(corpus, alignment, history);
    let mut predictor = Predictor::new(corpus, alignment, &templates);
    let pieces = choose::line(&mut predictor)?;
    let (indent, probability) = indents::likeliest(corpus, &templates, history, &pieces);
    let mut tokens = Vec::with_capacity(pieces.len() + 2);
    if indent > 0 {
        let unit = if corpus.tabs { "\t" } else { " " };
        tokens.push(GeneratedToken { text: unit.repeat(indent), probability: limit(probability) });
    }
    write(&mut predictor, &pieces, &mut tokens);
    Some(WrittenLine { line: HistoryLine { pieces, indent }, tokens })
}

/// Appends the tokens of a line and its newline, with their probabilities.
fn write(predictor: &mut Predictor<'_>, pieces: &[Piece], tokens: &mut Vec<GeneratedToken>) {
    let mut draft = predictor.draft();
    for piece in pieces.iter().chain([&Piece::NEWLINE]) {
        let next = predictor.next(&draft);
        let found = next.iter().find(|(other, _)| other == piece);
        let probability = found.map_or(0.0, |(_, probability)| *probability);
        let text = predictor.corpus.vocabulary.write(*piece);
        tokens.push(GeneratedToken { text, probability: limit(probability) });
        draft = predictor.extend(&draft, *piece);
    }
}

fn limit(probability: f64) -> f64 {
    if probability.is_nan() { LEAST_PROBABILITY } else { probability.clamp(LEAST_PROBABILITY, 1.0) }
}
