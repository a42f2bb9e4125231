//! Choice of the line to write.
//!
//! The candidates are the drafts of a beam search and the likeliest lines of the prompt, with their names replaced. The candidate with the
//! highest expected similarity to all of them is chosen (minimum Bayes risk, with edit similarity as the gain). A line similar to many
//! probable ones is therefore preferred to a slightly more probable line that resembles no other.

use repoformer_text::distance::levenshtein;

use super::lexer::Piece;
use super::parameters::{MAX_LINE_TOKENS, search};
use super::predict::{Draft, Predictor};

#[derive(Debug)]
struct Candidate {
    pieces: Vec<Piece>,
    mass: f64,
}

/// Maximum number of characters of a line that are compared.
const COMPARED: usize = 256;

/// Returns the tokens of the next line, without the newline; `None` if there are no candidates.
pub(super) fn line(predictor: &mut Predictor<'_>) -> Option<Vec<Piece>> {
    let mut candidates = beam(predictor);
    normalize(&mut candidates, search::TEMPERATURE, 1.0 - search::LINES_SHARE);
    let mut copies = copies(predictor);
    normalize(&mut copies, search::TEMPERATURE, search::LINES_SHARE);
    candidates.append(&mut copies);
    merge(&mut candidates);
    best(predictor, candidates)
}

/// Returns the finished drafts of a beam search.
fn beam(predictor: &mut Predictor<'_>) -> Vec<Candidate> {
    let mut open = vec![(0.0_f64, predictor.draft())];
    let mut done = Vec::new();
    for _ in 0..=MAX_LINE_TOKENS {
        let mut grown: Vec<(f64, Draft)> = Vec::new();
        for (score, number, piece) in continuations(predictor, &open) {
            let draft = &open[number].1;
            if piece == Piece::NEWLINE {
                done.push(Candidate { pieces: draft.pieces.clone(), mass: libm::exp(score) });
            } else {
                grown.push((score, predictor.extend(draft, piece)));
            }
        }
        open = grown;
        if open.is_empty() || done.len() >= 2 * search::BEAM {
            break;
        }
    }
    done
}

/// Returns the best continuations of all drafts: score, index of the draft, token.
fn continuations(predictor: &mut Predictor<'_>, open: &[(f64, Draft)]) -> Vec<(f64, usize, Piece)> {
    let mut all: Vec<(f64, usize, Piece)> = Vec::new();
    for (number, (score, draft)) in open.iter().enumerate() {
        let tokens = predictor.next(draft);
        let scored = tokens.iter().take(search::BRANCH);
        all.extend(scored.map(|(piece, share)| (score + libm::log(*share), number, *piece)));
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    all.truncate(search::BEAM);
    all
}

/// Returns the best templates, with their names replaced.
fn copies(predictor: &Predictor<'_>) -> Vec<Candidate> {
    let templates = predictor.templates;
    let mut order: Vec<usize> = (0..templates.len()).collect();
    order.sort_by(|a, b| templates[*b].weight.total_cmp(&templates[*a].weight).then(b.cmp(a)));
    order.truncate(search::LINES);
    let copy = |number: usize| {
        let template = &templates[number];
        let rename = |piece: &Piece| {
            let renamed = template.renaming.get(piece.core());
            renamed.map_or(*piece, |core| piece.with_core(core))
        };
        let pieces = predictor.corpus.line_pieces(template.line).iter().map(rename).collect();
        Candidate { pieces, mass: template.weight }
    };
    order.into_iter().map(copy).collect()
}

/// Scales the masses of the candidates to sum to `share`.
fn normalize(candidates: &mut [Candidate], temperature: f64, share: f64) {
    let power = 1.0 / temperature;
    for candidate in candidates.iter_mut() {
        candidate.mass = libm::pow(candidate.mass, power);
    }
    let sum: f64 = candidates.iter().map(|candidate| candidate.mass).sum();
    for candidate in candidates {
        candidate.mass = if sum > 0.0 { candidate.mass * share / sum } else { 0.0 };
    }
}

/// Merges equal candidates and adds up their masses.
fn merge(candidates: &mut Vec<Candidate>) {
    candidates.sort_by(|a, b| a.pieces.cmp(&b.pieces));
    candidates.dedup_by(|later, first| {
        let same = later.pieces == first.pieces;
        first.mass += if same { later.mass } else { 0.0 };
        same
    });
}

/// Returns the candidate with the highest expected similarity.
fn best(predictor: &Predictor<'_>, candidates: Vec<Candidate>) -> Option<Vec<Piece>> {
    let vocabulary = &predictor.corpus.vocabulary;
    let text = |candidate: &Candidate| {
        let line: String = candidate.pieces.iter().map(|piece| vocabulary.write(*piece)).collect();
        let text: String = line.chars().take(COMPARED).collect();
        (text.chars().count(), text)
    };
    let texts: Vec<(usize, String)> = candidates.iter().map(text).collect();
    let gain = |candidate: &Candidate| candidate.mass * (1.0 + search::EXACT_BONUS);
    let mut gains: Vec<f64> = candidates.iter().map(gain).collect();
    for (a, (length, text)) in texts.iter().enumerate() {
        for (b, (other_length, other)) in texts[..a].iter().enumerate() {
            let longest = (*length).max(*other_length).max(1);
            let similarity = 1.0 - levenshtein::distance(text, other) as f64 / longest as f64;
            gains[a] += candidates[b].mass * similarity;
            gains[b] += candidates[a].mass * similarity;
        }
    }
    let best = (0..gains.len()).max_by(|a, b| gains[*a].total_cmp(&gains[*b]).then(b.cmp(a)))?;
    candidates.into_iter().nth(best).map(|candidate| candidate.pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_context::lexer::Gap;

    fn candidate(core: u32, mass: f64) -> Candidate {
        Candidate { pieces: vec![Piece::new(core, Gap::None)], mass }
    }

    #[test]
    fn masses_are_scaled_and_equal_candidates_merged() {
        let mut candidates = vec![candidate(2, 1.0), candidate(1, 2.0), candidate(2, 1.0)];
        normalize(&mut candidates, 1.0, 0.5);
        merge(&mut candidates);
        let masses: Vec<_> = candidates.iter().map(|c| (c.pieces[0].core(), c.mass)).collect();
        assert_eq!(masses, [(1, 0.25), (2, 0.25)]);
    }

    #[test]
    fn a_temperature_above_one_flattens() {
        let mut candidates = vec![candidate(1, 0.64), candidate(2, 0.04)];
        normalize(&mut candidates, 2.0, 1.0);
        assert!((candidates[0].mass - 0.8).abs() < 1e-12);
    }
}
