//! Indentation of a line, once its tokens are known.
//!
//! Each template votes for its change of indentation from the line before it, with more weight if it shares the beginning of the line.

use super::corpus::{Corpus, MAX_INDENT};
use super::history::History;
use super::lexer::Piece;
use super::parameters::likelihood::ANY_INDENT;
use super::templates::Template;

/// Returns the likeliest indentation of a line and its probability.
pub(super) fn likeliest(
    corpus: &Corpus,
    templates: &[Template],
    history: &History,
    pieces: &[Piece],
) -> (usize, f64) {
    let mut votes = votes(corpus, templates, history, pieces);
    votes.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let sum: f64 = votes.iter().map(|(_, weight)| weight).sum();
    let first = votes.first();
    first.map_or((history.indent(), 1.0), |(indent, weight)| (*indent, weight / sum))
}

/// Returns the probability of an indentation, which is above 0 for every indentation that the model distinguishes.
pub(super) fn share(
    corpus: &Corpus,
    templates: &[Template],
    history: &History,
    pieces: &[Piece],
    indent: usize,
) -> f64 {
    let votes = votes(corpus, templates, history, pieces);
    let sum: f64 = votes.iter().map(|(_, weight)| weight).sum();
    let found = votes.iter().find(|(other, _)| *other == indent).map_or(0.0, |(_, weight)| *weight);
    (1.0 - ANY_INDENT) * found / sum + ANY_INDENT / (MAX_INDENT + 1) as f64
}

fn votes(
    corpus: &Corpus,
    templates: &[Template],
    history: &History,
    pieces: &[Piece],
) -> Vec<(usize, f64)> {
    let mut votes: Vec<(usize, f64)> = Vec::new();
    for template in templates {
        let there = corpus.line_pieces(template.line).iter().zip(pieces);
        let same = there.take_while(|(a, b)| a.core() == b.core()).count();
        let before = corpus.previous(template.line).map_or(0, |line| corpus.lines[line].indent);
        let indent = history.indent() + corpus.lines[template.line].indent;
        let indent = indent.saturating_sub(before).min(MAX_INDENT);
        let weight = template.weight * (1 + same) as f64;
        match votes.iter_mut().find(|(other, _)| *other == indent) {
            Some(vote) => vote.1 += weight,
            None => votes.push((indent, weight)),
        }
    }
    votes
}
