//! The embedded model `in-context`: completes code by what its prompt says, and by nothing else.
//!
//! It is an n-gram language model over code tokens that is fitted on the text of one prompt, for
//! one completion. It needs no file, no network and no accelerator, so that an experiment's whole
//! loop (retrieve, prompt, complete, score) can be run anywhere, in a test too, with the same
//! outcome on every run of a platform. As it knows only the prompt, what a retrieved block adds to the prompt is
//! what the model can gain from it.
//!
//! # What it does
//!
//! 1. `layout`, `lexer`, `corpus`, `state`: the prompt is read as lines of tokens. Retrieved
//!    blocks are seen through their comment prefix. Newline and indentation are tokens of their
//!    own; open brackets and strings are kept track of.
//! 2. `align`, `evidence`, `templates`: each line of the prompt is weighed as the next line, by how
//!    the lines before it agree with the lines before the hole, by where it stands and by its
//!    block's rank. Names that differ in the lines before are replaced.
//! 3. `predict`: a token's probability, from the lines that are followed so far and, by an escape,
//!    from places after the same last tokens, longer contexts and nearer text counting more.
//! 4. `choose`: of the likely lines the one with the highest expected edit similarity is written.
//!    Then the next line is treated in the same way, until the limits are reached.
//!
//! # Where the ideas come from
//!
//! Code is locally repetitive, and a cache of what stands nearby predicts it well: Tu, Su &
//! Devanbu, *On the Localness of Software* (2014); nested caches that are weighted by nearness:
//! Hellendoorn & Devanbu, *Are Deep Neural Networks the Best Choice for Modeling Source Code?*
//! (2017). Blending contexts of several lengths by an escape: Cleary & Witten, *Data Compression
//! Using Adaptive Coding and Partial String Matching* (1984). Local alignment: Smith & Waterman
//! (1981). Copying a line and replacing what differs is analogy; choosing by expected gain is
//! minimum Bayes risk decoding (Kumar & Byrne 2004).
//!
//! # What it is not
//!
//! It is not a neural model and stands in for none: its scores say how much of a target can be had
//! by copying from the prompt with adaptation, and nothing about what a trained model would make
//! of the same prompt. It writes no word that its prompt does not hold. Its probabilities are those
//! of this small mixture: useful to order its own completions by doubt, not comparable to a
//! language model's. Comment lines in the file at hand are code to it like any other line, and text
//! after the hole is not read as such.

mod align;
mod choose;
mod corpus;
mod evidence;
mod history;
mod layout;
mod lexer;
mod parameters;
mod predict;
mod state;
mod templates;
#[cfg(test)]
mod tests;

pub use parameters::{
    AlignmentParameters, ContextParameters, LineWeights, Parameters, SearchParameters,
};

use align::Alignment;
use corpus::Corpus;
use history::{History, HistoryLine};
use lexer::Piece;
use predict::Predictor;
use templates::Template;

/// Raised whenever a change of the model changes what it writes, so that cached predictions are made again.
pub const REVISION: u32 = 1;

/// Where a completion ends at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Lines to write. The model writes no blank lines, so all of them count.
    pub max_lines: usize,
    /// Tokens to write, indentations and newlines counted.
    pub max_tokens: usize,
}

/// A token as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedToken {
    /// The token with the blank space before it; a newline or an indentation is a token too.
    pub text: String,
    /// How likely the model held it to be after the tokens before it, in (0, 1]. An indentation's
    /// probability is that after its line's other tokens.
    pub probability: f64,
}

/// Why a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// All lines were written.
    Lines,
    /// The tokens were used up; the last line may be cut.
    Tokens,
    /// The prompt holds no code.
    NoCandidate,
}

/// A completion; its text is its tokens, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// The lines written, each with its newline unless it was cut.
    pub text: String,
    /// The same text by tokens.
    pub tokens: Vec<GeneratedToken>,
    /// Why it ends there.
    pub finish: Finish,
}

/// The embedded model; see the [module](self).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InContextModel {
    parameters: Parameters,
}

/// No token counts as less likely than this.
const LEAST_PROBABILITY: f64 = 1e-6;

/// A line as it was written.
struct WrittenLine {
    line: HistoryLine,
    tokens: Vec<GeneratedToken>,
}

impl InContextModel {
    /// A model with these numbers; the defaults are those of [`Parameters`].
    #[must_use]
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters }
    }

    /// Writes the lines after a prompt. A prompt that does not end in a newline is read as if it
    /// did. The same prompt gives the same completion.
    #[must_use]
    pub fn complete(&self, prompt: &str, limits: &Limits) -> Generation {
        let p = &self.parameters;
        let corpus = Corpus::read(prompt, p);
        let mut alignment = Alignment::new(&corpus, p);
        let mut history = History::of_prompt(&corpus, p.history_lines);
        let mut tokens: Vec<GeneratedToken> = Vec::new();
        let mut finish = Finish::Lines;
        for _ in 0..limits.max_lines {
            let room = limits.max_tokens - tokens.len();
            if room == 0 {
                finish = Finish::Tokens;
                break;
            }
            let Some(WrittenLine { line, tokens: new }) = self.line(&corpus, &alignment, &history)
            else {
                finish = Finish::NoCandidate;
                break;
            };
            let cut = new.len() > room;
            tokens.extend(new.into_iter().take(room));
            if cut {
                finish = Finish::Tokens;
                break;
            }
            alignment.advance(&corpus, &p.alignment, &line.pieces, usize::MAX);
            history.push(&corpus, line);
        }
        let text = tokens.iter().map(|token| token.text.as_str()).collect();
        Generation {
            text,
            tokens,
            finish,
        }
    }

    /// The line after the history.
    fn line(
        &self,
        corpus: &Corpus,
        alignment: &Alignment,
        history: &History,
    ) -> Option<WrittenLine> {
        let p = &self.parameters;
        let templates = templates::collect(corpus, alignment, history, p);
        let mut predictor = Predictor::new(corpus, alignment, p, &templates);
        let pieces = choose::line(&mut predictor, &p.search, p.max_line_tokens)?;
        let (indent, probability) = indent(corpus, &templates, history, &pieces);
        let mut tokens = Vec::with_capacity(pieces.len() + 2);
        if indent > 0 {
            let unit = if corpus.tabs { "\t" } else { " " };
            tokens.push(GeneratedToken {
                text: unit.repeat(indent),
                probability,
            });
        }
        write(&mut predictor, &pieces, &mut tokens);
        Some(WrittenLine {
            line: HistoryLine { pieces, indent },
            tokens,
        })
    }
}

/// Adds the tokens of a line and its newline, with their probabilities.
fn write(predictor: &mut Predictor<'_>, pieces: &[Piece], tokens: &mut Vec<GeneratedToken>) {
    let mut draft = predictor.draft();
    for piece in pieces.iter().chain([&Piece::NEWLINE]) {
        let next = predictor.next(&draft);
        let found = next.iter().find(|(other, _)| other == piece);
        let probability = found.map_or(0.0, |(_, probability)| *probability);
        let text = predictor.corpus.vocabulary.write(*piece);
        tokens.push(GeneratedToken {
            text,
            probability: limit(probability),
        });
        draft = predictor.extend(&draft, *piece);
    }
}

fn limit(probability: f64) -> f64 {
    if probability.is_nan() {
        LEAST_PROBABILITY
    } else {
        probability.clamp(LEAST_PROBABILITY, 1.0)
    }
}

/// The indentation of a line, as the templates step from the line before them, those that share
/// the beginning of the line counting more.
fn indent(
    corpus: &Corpus,
    templates: &[Template],
    history: &History,
    pieces: &[Piece],
) -> (usize, f64) {
    let mut votes: Vec<(usize, f64)> = Vec::new();
    for template in templates {
        let there = corpus.line_pieces(template.line).iter().zip(pieces);
        let same = there.take_while(|(a, b)| a.core() == b.core()).count();
        let before = corpus
            .previous(template.line)
            .map_or(0, |line| corpus.lines[line].indent);
        let indent = history.indent() + corpus.lines[template.line].indent;
        let indent = indent.saturating_sub(before).min(corpus::MAX_INDENT);
        let weight = template.weight * (1 + same) as f64;
        match votes.iter_mut().find(|(other, _)| *other == indent) {
            Some(vote) => vote.1 += weight,
            None => votes.push((indent, weight)),
        }
    }
    votes.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let sum: f64 = votes.iter().map(|(_, weight)| weight).sum();
    votes
        .first()
        .map_or((history.indent(), 1.0), |(indent, weight)| {
            (*indent, limit(weight / sum))
        })
}
