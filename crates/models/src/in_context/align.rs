//! Alignment of the lines before the hole with the lines before each line of the prompt.
//!
//! A local alignment of lines (Smith & Waterman 1981) that must end at the hole: lines inserted or left out on either side cost, agreeing
//! lines gain by their agreement and their information, and distant lines count less. It is a tolerant form of longest-suffix matching: a
//! renamed variable or an extra line weakens a match without ending it.

use super::corpus::Corpus;
use super::lexer::{Core, Piece};
use super::parameters::{HISTORY_LINES, alignment as p};

#[derive(Debug)]
pub(super) struct Alignment {
    /// For each core, the information in nats that an agreement on it carries.
    information: Vec<f64>,
    /// For each line, the sum of its tokens' information.
    line_information: Vec<f64>,
    /// For each line, the score of the alignment that ends with it and with the last line before the hole.
    pub scores: Vec<f64>,
    /// For each line, its similarity to the last line, between 0 and 1.
    pub similarities: Vec<f64>,
    /// For each line, its similarity to the last line but one.
    pub older_similarities: Vec<f64>,
}

impl Alignment {
    pub(super) fn new(corpus: &Corpus) -> Self {
        let total = corpus.pieces.len().max(1) as f64;
        let information: Vec<f64> = (corpus.places.iter())
            .map(|places| libm::log(1.0 + total / places.len().max(1) as f64))
            .collect();
        let lines = corpus.lines.len();
        let sum = |line| weigh(&information, corpus.line_pieces(line));
        let mut alignment = Self {
            line_information: (0..lines).map(sum).collect(),
            information,
            scores: vec![0.0; lines],
            similarities: vec![0.0; lines],
            older_similarities: vec![0.0; lines],
        };
        let first = corpus.own_lines().max(lines.saturating_sub(HISTORY_LINES));
        for line in first..lines {
            alignment.advance(corpus, corpus.line_pieces(line), line);
        }
        alignment
    }

    /// Advances by one line before the hole. Lines from `limit` on are not aligned with it, so that no line of the prompt is aligned with
    /// itself.
    pub(super) fn advance(&mut self, corpus: &Corpus, last: &[Piece], limit: usize) {
        let similarities = self.compare(corpus, last);
        self.older_similarities = std::mem::replace(&mut self.similarities, similarities);
        let mut scores = vec![0.0_f64; self.scores.len()];
        for line in 0..limit.min(scores.len()) {
            let before = corpus.previous(line);
            let both = before.map_or(0.0, |before| self.scores[before]);
            let skipped = before.map_or(0.0, |before| scores[before]) - p::SKIPPED;
            let inserted = p::DECAY * self.scores[line] - p::INSERTED;
            let paired = p::DECAY * both + self.gain(line);
            scores[line] = paired.max(inserted).max(skipped).max(0.0);
        }
        self.scores = scores;
    }

    fn gain(&self, line: usize) -> f64 {
        let similarity = self.similarities[line];
        let information = (self.line_information[line] / p::FULL_INFORMATION).min(1.0);
        // Most lines share nothing.
        let gain = if similarity == 0.0 { 0.0 } else { libm::pow(similarity, p::POWER) };
        gain * information - p::MISMATCH * (1.0 - similarity)
    }

    /// Returns, for each line, the Dice coefficient of its tokens and the tokens of `one`, as multisets weighted by information.
    fn compare(&self, corpus: &Corpus, one: &[Piece]) -> Vec<f64> {
        let mut common = vec![0.0; corpus.lines.len()];
        let mut cores: Vec<Core> = one.iter().map(|piece| piece.core()).collect();
        cores.sort_unstable();
        for run in cores.chunk_by(|a, b| a == b) {
            self.count(corpus, run[0], run.len(), &mut common);
        }
        let own = weigh(&self.information, one);
        for (common, other) in common.iter_mut().zip(&self.line_information) {
            if *common > 0.0 {
                *common = (2.0 * *common / (own + other)).min(1.0);
            }
        }
        common
    }

    /// Adds the information that a core, which one line contains `times` times, has in common with each line.
    fn count(&self, corpus: &Corpus, core: Core, times: usize, common: &mut [f64]) {
        let (mut last, mut seen) = (usize::MAX, 0);
        for &place in &corpus.places[core as usize] {
            let line = corpus.line_of[place as usize] as usize;
            seen = if line == last { seen + 1 } else { 1 };
            last = line;
            if seen <= times {
                common[line] += self.information[core as usize];
            }
        }
    }
}

fn weigh(information: &[f64], pieces: &[Piece]) -> f64 {
    pieces.iter().map(|piece| information[piece.core() as usize]).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn align(prompt: &str) -> Alignment {
        Alignment::new(&Corpus::read(prompt))
    }

    #[test]
    fn similarity_is_one_for_equal_lines_and_zero_for_strange_ones() {
        let alignment = align("a b\nc d\na c\na b\n");
        assert_eq!(alignment.similarities[0], 1.0);
        assert_eq!(alignment.similarities[1], 0.0);
        // `a` occurs three times, `b` and `c` twice, among eight tokens.
        let (a, b) = (libm::log(1.0 + 8.0 / 3.0), libm::log(1.0 + 8.0 / 2.0));
        let half = 2.0 * a / (a + b + a + b);
        assert!((alignment.similarities[2] - half).abs() < 1e-12);
    }

    #[test]
    fn longer_agreement_scores_higher_and_nothing_aligns_to_itself() {
        let alignment = align("x y\np q\n\nr s\np q\n\nx y\np q\n");
        assert!(alignment.scores[1] > alignment.scores[3]);
        assert!(alignment.scores[3] > 0.0);
        // The last line agrees with itself, which must not count.
        assert_eq!(alignment.scores[5], 0.0);
    }

    #[test]
    fn a_skipped_line_weakens_an_alignment_and_does_not_end_it() {
        let whole = align("f(a)\ng(b)\n\nother\n\nf(a)\ng(b)\n").scores[1];
        let broken = align("f(a)\nz\ng(b)\n\nother\n\nf(a)\ng(b)\n").scores[2];
        let single = align("z\ng(b)\n\nother\n\nf(a)\ng(b)\n").scores[1];
        assert!(whole > broken && broken > single);
    }
}
