//! How well the lines before the hole agree with the lines before each line of the prompt.
//!
//! A local alignment of lines (Smith & Waterman 1981) that ends at the hole on one side: lines
//! inserted or left out on either side cost, agreeing lines gain by how much they agree and how
//! much they say, and what lies further back counts less.

use super::corpus::Corpus;
use super::lexer::{Core, Piece};
use super::parameters::Parameters;

#[derive(Debug)]
pub(super) struct Alignment {
    /// For each core how much its agreement says.
    information: Vec<f64>,
    /// For each line the sum over its tokens.
    line_information: Vec<f64>,
    /// For each line the score of the alignment that ends with it and with the last history line.
    pub scores: Vec<f64>,
    /// For each line its similarity to the last history line.
    pub similarities: Vec<f64>,
    /// For each line its similarity to the history line before the last.
    pub older_similarities: Vec<f64>,
}

impl Alignment {
    pub(super) fn new(corpus: &Corpus, parameters: &Parameters) -> Self {
        let total = corpus.pieces.len().max(1) as f64;
        let information: Vec<f64> = (corpus.places.iter())
            .map(|places| (1.0 + total / places.len().max(1) as f64).ln())
            .collect();
        let sum = |line| weigh(&information, corpus.line_pieces(line));
        let line_information = (0..corpus.lines.len()).map(sum).collect();
        let mut alignment = Self {
            information,
            line_information,
            scores: vec![0.0; corpus.lines.len()],
            similarities: vec![0.0; corpus.lines.len()],
            older_similarities: vec![0.0; corpus.lines.len()],
        };
        let own = corpus
            .lines
            .partition_point(|line| line.source < corpus.blocks);
        let first = own.max(corpus.lines.len().saturating_sub(parameters.history_lines));
        for line in first..corpus.lines.len() {
            alignment.advance(corpus, parameters, corpus.line_pieces(line), line);
        }
        alignment
    }

    /// Goes on by one history line; `limit` is the first line it must not be aligned to.
    pub(super) fn advance(
        &mut self,
        corpus: &Corpus,
        p: &Parameters,
        history: &[Piece],
        limit: usize,
    ) {
        let similarities = self.compare(corpus, history);
        self.older_similarities = std::mem::replace(&mut self.similarities, similarities);
        let mut scores = vec![0.0; self.scores.len()];
        for line in 0..limit.min(scores.len()) {
            let before = corpus.previous(line);
            let diagonal = before.map_or(0.0, |before| self.scores[before]);
            let left = before.map_or(0.0, |before| scores[before]);
            let gain = self.gain(p, line);
            let best = (p.align_decay * diagonal + gain)
                .max(self.scores[line] * p.align_decay - p.gap_history)
                .max(left - p.gap_line);
            scores[line] = best.max(0.0);
        }
        self.scores = scores;
    }

    fn gain(&self, p: &Parameters, line: usize) -> f64 {
        let similarity = self.similarities[line];
        let information = (self.line_information[line] / p.info_scale).min(1.0);
        similarity.powf(p.sim_power) * information - p.theta * (1.0 - similarity)
    }

    /// Weighted Dice coefficients of the distinct tokens of a line with all lines.
    fn compare(&self, corpus: &Corpus, history: &[Piece]) -> Vec<f64> {
        let mut common = vec![0.0; corpus.lines.len()];
        let mut cores: Vec<Core> = history.iter().map(|piece| piece.core()).collect();
        cores.sort_unstable();
        for run in cores.chunk_by(|a, b| a == b) {
            self.count(corpus, run[0], run.len(), &mut common);
        }
        let own = weigh(&self.information, history);
        for (common, line) in common.iter_mut().zip(&self.line_information) {
            *common = if *common > 0.0 {
                2.0 * *common / (own + line)
            } else {
                0.0
            };
        }
        common
    }

    /// Adds what a core that stands `times` times in the history line has in common with each line.
    fn count(&self, corpus: &Corpus, core: Core, times: usize, common: &mut [f64]) {
        let (mut last, mut seen) = (u32::MAX, 0);
        for &place in &corpus.places[core as usize] {
            let line = corpus.line_of[place as usize];
            seen = if line == last { seen + 1 } else { 1 };
            last = line;
            if seen <= times {
                common[line as usize] += self.information[core as usize];
            }
        }
    }
}

fn weigh(information: &[f64], pieces: &[Piece]) -> f64 {
    pieces
        .iter()
        .map(|piece| information[piece.core() as usize])
        .sum()
}
