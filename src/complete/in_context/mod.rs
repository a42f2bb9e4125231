//! The embedded model `in-context`.

mod align;
mod choose;
mod corpus;
mod features;
mod layout;
mod lexer;
mod parameters;
mod predict;
mod similarity;
mod state;
mod successors;
mod templates;

pub use features::{FEATURE_NAMES, FEATURES};
pub use parameters::Parameters;

use align::Alignment;
use corpus::Corpus;
use lexer::Piece;
use predict::{Draft, Predictor};
use templates::History;

/// Where a completion must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Lines to write; those of the task's target.
    pub max_lines: usize,
    pub max_tokens: usize,
}

/// A token as it was written, and how likely the model held it to be.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedToken {
    pub text: String,
    pub probability: f64,
}

/// Why a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    Lines,
    Tokens,
    /// The prompt holds nothing to go by.
    NoCandidate,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    pub text: String,
    pub tokens: Vec<GeneratedToken>,
    pub finish: Finish,
}

#[derive(Clone, Debug, Default)]
pub struct InContextModel {
    parameters: Parameters,
}

impl InContextModel {
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters }
    }

    pub fn complete(&self, prompt: &str, limits: &Limits) -> Generation {
        let corpus = Corpus::read(prompt, &self.parameters);
        let mut alignment = Alignment::new(&corpus, &self.parameters);
        let mut written: Vec<Written> = Vec::new();
        let mut tokens: Vec<GeneratedToken> = Vec::new();
        let mut finish = Finish::Lines;
        for _ in 0..limits.max_lines {
            let Some(line) = self.next_line(&corpus, &alignment, &written) else {
                finish = Finish::NoCandidate;
                break;
            };
            let room = limits.max_tokens - tokens.len();
            tokens.extend(line.tokens.iter().take(room).cloned());
            if line.tokens.len() > room {
                finish = Finish::Tokens;
                break;
            }
            alignment.advance(&corpus, &self.parameters, &line.pieces, usize::MAX);
            written.push(line);
        }
        let text = tokens.iter().map(|token| token.text.as_str()).collect();
        Generation {
            text,
            tokens,
            finish,
        }
    }

    #[doc(hidden)]
    pub fn dump(&self, prompt: &str) -> Vec<(String, [f64; FEATURES])> {
        let corpus = Corpus::read(prompt, &self.parameters);
        let alignment = Alignment::new(&corpus, &self.parameters);
        let history = history(&corpus, &[], &self.parameters);
        templates::dump(&corpus, &alignment, &history, &self.parameters)
    }

    fn next_line(
        &self,
        corpus: &Corpus,
        alignment: &Alignment,
        written: &[Written],
    ) -> Option<Written> {
        let p = &self.parameters;
        let history = history(corpus, written, p);
        let mut templates = templates::collect(corpus, alignment, &history, p);
        if written.is_empty() {
            successors::add(corpus, &mut templates, p);
        }
        let factors = (corpus.lines.iter().enumerate())
            .map(|(index, line)| {
                let near =
                    corpus.previous(index).map_or(0.0, |b| alignment.scores[b]) * p.ngram_align;
                if line.source == corpus.blocks {
                    (p.ngram_own + near
                        - p.ngram_recency * ((corpus.lines.len() - index) as f64).ln())
                    .exp()
                } else {
                    (near - p.rank_bonus * (corpus.blocks - 1 - line.source) as f64).exp()
                }
            })
            .collect();
        let mut predictor = Predictor::new(corpus, p, &templates, factors);
        let pieces = choose::line(&mut predictor, p)?;
        let mut draft = Draft::new(&templates);
        let mut tokens = Vec::new();
        let last = history.indents.last().copied().unwrap_or(0);
        let indent = indent(corpus, &templates, &pieces, last);
        if indent.0 > 0 {
            let unit = if corpus.tabs { "\t" } else { " " };
            tokens.push(GeneratedToken {
                text: unit.repeat(indent.0),
                probability: indent.1,
            });
        }
        for piece in pieces.iter().chain([&Piece::NEWLINE]) {
            let offers = predictor.next(&draft);
            let probability = offers
                .iter()
                .find(|(other, _)| other == piece)
                .map_or(1e-6, |(_, p)| *p);
            tokens.push(GeneratedToken {
                text: corpus.vocabulary.write(*piece),
                probability: probability.clamp(1e-6, 1.0),
            });
            draft = predictor.extend(&draft, *piece);
        }
        Some(Written {
            pieces,
            indent: indent.0,
            tokens,
        })
    }
}

/// A line the model wrote.
#[derive(Debug)]
struct Written {
    pieces: Vec<Piece>,
    indent: usize,
    tokens: Vec<GeneratedToken>,
}

fn history<'a>(corpus: &'a Corpus, written: &'a [Written], p: &Parameters) -> History<'a> {
    let own = corpus
        .lines
        .partition_point(|line| line.source < corpus.blocks);
    let first = own.max(corpus.lines.len().saturating_sub(p.history_lines));
    let mut lines: Vec<&[Piece]> = (first..corpus.lines.len())
        .map(|l| corpus.line_pieces(l))
        .collect();
    let mut indents: Vec<usize> = corpus.lines[first..]
        .iter()
        .map(|line| line.indent)
        .collect();
    lines.extend(written.iter().map(|line| line.pieces.as_slice()));
    indents.extend(written.iter().map(|line| line.indent));
    let blank_end = corpus.blank_end && written.is_empty();
    let state = written.iter().fold(corpus.end_state, |state, line| {
        corpus.marks.after(state, &line.pieces)
    });
    History {
        state,
        lines,
        indents,
        blank_end,
        written: written.len(),
    }
}

/// The likeliest indentation of a line by the templates that begin as it does.
fn indent(
    corpus: &Corpus,
    templates: &[templates::Template],
    pieces: &[Piece],
    last: usize,
) -> (usize, f64) {
    let mut votes: Vec<(usize, f64)> = Vec::new();
    for template in templates {
        let there = corpus.line_pieces(template.line);
        let same = there
            .iter()
            .zip(pieces)
            .take_while(|(a, b)| a.core() == b.core())
            .count();
        let before = corpus
            .previous(template.line)
            .map_or(0, |line| corpus.lines[line].indent);
        let columns = (last + corpus.lines[template.line].indent).saturating_sub(before);
        let weight = template.weight * (1.0 + same as f64);
        match votes.iter_mut().find(|(other, _)| *other == columns) {
            Some(vote) => vote.1 += weight,
            None => votes.push((columns, weight)),
        }
    }
    let sum: f64 = votes.iter().map(|vote| vote.1).sum();
    votes.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    votes.first().map_or((last, 1.0), |vote| {
        (vote.0, (vote.1 / sum).clamp(1e-6, 1.0))
    })
}
