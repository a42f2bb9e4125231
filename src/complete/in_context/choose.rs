//! Which line to write: a beam search for likely lines, and among them and the templates the one
//! that is most similar to what may come, by expectation (minimum Bayes risk).

use super::lexer::Piece;
use super::parameters::Parameters;
use super::predict::{Draft, Predictor};
use super::similarity::Pattern;

struct Candidate {
    pieces: Vec<Piece>,
    mass: f64,
}

/// The tokens of the next line, without the newline; none if nothing can be said.
pub(super) fn line(predictor: &mut Predictor<'_>, p: &Parameters) -> Option<Vec<Piece>> {
    let mut candidates = beam(predictor, p);
    normalize(&mut candidates, 1.0 / p.temperature, 1.0 - p.pool_copy);
    let mut copies = copies(predictor, p);
    normalize(&mut copies, 1.0 / p.temperature, p.pool_copy);
    candidates.append(&mut copies);
    merge(&mut candidates);
    likeliest(predictor, p, candidates)
}

fn beam(predictor: &mut Predictor<'_>, p: &Parameters) -> Vec<Candidate> {
    let mut open = vec![(0.0_f64, Draft::new(predictor.templates))];
    let mut done: Vec<Candidate> = Vec::new();
    for _ in 0..p.max_line_tokens {
        let mut next: Vec<(f64, usize, Piece)> = Vec::new();
        for (number, (score, draft)) in open.iter().enumerate() {
            let offers = predictor.next(draft);
            next.extend(
                offers
                    .iter()
                    .take(p.branch)
                    .map(|(piece, probability)| (score + probability.ln(), number, *piece)),
            );
        }
        next.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        next.truncate(p.beam);
        let mut grown = Vec::new();
        for (score, number, piece) in next {
            if piece == Piece::NEWLINE {
                done.push(Candidate {
                    pieces: open[number].1.pieces.clone(),
                    mass: score.exp(),
                });
            } else {
                grown.push((score, predictor.extend(&open[number].1, piece)));
            }
        }
        open = grown;
        if open.is_empty() || done.len() >= p.beam * 2 {
            break;
        }
    }
    done
}

/// The best templates as they would stand here.
fn copies(predictor: &Predictor<'_>, p: &Parameters) -> Vec<Candidate> {
    let mut order: Vec<usize> = (0..predictor.templates.len()).collect();
    order.sort_by(|a, b| {
        predictor.templates[*b]
            .weight
            .total_cmp(&predictor.templates[*a].weight)
            .then(b.cmp(a))
    });
    order.truncate(p.pool_lines);
    let copy = |number: usize| {
        let template = &predictor.templates[number];
        let rename = |piece: &Piece| {
            let found = template
                .renaming
                .iter()
                .find(|(from, _)| *from == piece.core());
            found.map_or(*piece, |(_, to)| piece.with_core(*to))
        };
        let pieces = predictor
            .corpus
            .line_pieces(template.line)
            .iter()
            .map(rename)
            .collect();
        Candidate {
            pieces,
            mass: template.weight,
        }
    };
    order.into_iter().map(copy).collect()
}

fn normalize(candidates: &mut [Candidate], power: f64, share: f64) {
    for candidate in candidates.iter_mut() {
        candidate.mass = candidate.mass.powf(power);
    }
    let sum: f64 = candidates.iter().map(|candidate| candidate.mass).sum();
    for candidate in candidates {
        candidate.mass *= share / sum;
    }
}

fn merge(candidates: &mut Vec<Candidate>) {
    candidates.sort_by(|a, b| a.pieces.cmp(&b.pieces));
    candidates.dedup_by(|b, a| {
        let same = a.pieces == b.pieces;
        if same {
            a.mass += b.mass;
        }
        same
    });
}

fn likeliest(
    predictor: &Predictor<'_>,
    p: &Parameters,
    candidates: Vec<Candidate>,
) -> Option<Vec<Piece>> {
    let texts: Vec<Vec<char>> = (candidates.iter())
        .map(|candidate| {
            let vocabulary = &predictor.corpus.vocabulary;
            let tokens = candidate
                .pieces
                .iter()
                .map(|piece| vocabulary.write(*piece));
            tokens
                .collect::<String>()
                .trim()
                .chars()
                .take(256)
                .collect()
        })
        .collect();
    let mut values: Vec<f64> = candidates
        .iter()
        .map(|c| c.mass * (1.0 + p.mode_bonus))
        .collect();
    for (a, text) in texts.iter().enumerate() {
        let pattern = Pattern::new(text);
        for b in 0..a {
            let similarity = pattern.similarity(&texts[b]);
            values[a] += candidates[b].mass * similarity;
            values[b] += candidates[a].mass * similarity;
        }
    }
    let best = (0..values.len()).max_by(|a, b| values[*a].total_cmp(&values[*b]).then(b.cmp(a)))?;
    candidates
        .into_iter()
        .nth(best)
        .map(|candidate| candidate.pieces)
}
