//! What speaks for and against a line of the prompt as the next line.

use super::align::Alignment;
use super::corpus::Corpus;
use super::lexer::{Core, Piece};
use super::templates::History;

/// Number of features.
pub const FEATURES: usize = 28;

/// Names of the features, in the order of their weights.
pub const FEATURE_NAMES: [&str; FEATURES] = [
    "alignment",
    "similar_last",
    "similar_second",
    "equal_last",
    "equal_second",
    "last_token",
    "last_two_tokens",
    "first_token",
    "first_two_tokens",
    "shape",
    "blank",
    "text_state",
    "bracket_state",
    "depth",
    "repeat_near",
    "repeat_last",
    "indent_step",
    "same_indent",
    "own",
    "rank",
    "distance",
    "length",
    "suffix",
    "known_names",
    "unknown_names",
    "start_of_source",
    "outdent_past",
    "suffix_shape",
];

pub(super) struct Context<'a> {
    pub corpus: &'a Corpus,
    pub alignment: &'a Alignment,
    pub history: &'a History<'a>,
    /// For each core whether the file at hand has it.
    pub own_cores: Vec<bool>,
    pub repeat_window: usize,
}

fn cores(pieces: &[Piece]) -> impl DoubleEndedIterator<Item = Core> + '_ {
    pieces.iter().map(|piece| piece.core())
}

fn flag(value: bool) -> f64 {
    f64::from(u8::from(value))
}

impl Context<'_> {
    pub(super) fn features(&self, index: usize) -> [f64; FEATURES] {
        let (corpus, history) = (self.corpus, self.history);
        let mut f = [0.0; FEATURES];
        let line = &corpus.lines[index];
        let pieces = corpus.line_pieces(index);
        let state = corpus.states[index];
        f[10] = flag(line.after_blank == history.blank_end);
        f[11] = flag(state.text != history.state.text);
        f[12] = flag((state.depth > 0) != (history.state.depth > 0));
        f[13] = (state.depth.min(3) as f64 - history.state.depth.min(3) as f64).abs();
        let recent = history.lines.iter().rev().take(self.repeat_window);
        f[14] = flag(recent.clone().any(|other| *other == pieces));
        f[15] = flag(history.lines.last().is_some_and(|last| *last == pieces));
        if line.source == corpus.blocks {
            f[18] = 1.0;
            f[20] = ((corpus.lines.len() - index) as f64).ln();
        } else {
            f[19] = (corpus.blocks - 1 - line.source) as f64;
        }
        let length: usize = cores(pieces)
            .map(|core| corpus.vocabulary.text(core).len())
            .sum();
        f[21] = ((length as f64) / 30.0).min(1.0);
        let mut names = 0.0;
        let mut unknown = 0.0;
        for core in cores(pieces).filter(|core| corpus.vocabulary.is_identifier(*core)) {
            names += 1.0;
            unknown += flag(!self.own_cores[core as usize]);
        }
        f[23] = if names > 0.0 { unknown / names } else { 0.0 };
        f[24] = flag(unknown > 0.0);
        self.compare_before(index, &mut f);
        f
    }

    fn compare_before(&self, index: usize, f: &mut [f64; FEATURES]) {
        let (corpus, history) = (self.corpus, self.history);
        let Some(before) = corpus.previous(index) else {
            f[25] = 1.0;
            return;
        };
        let Some(last) = history.lines.last() else {
            return;
        };
        let there = corpus.line_pieces(before);
        f[0] = self.alignment.scores[before];
        f[1] = self.alignment.similarities[before];
        f[3] = flag(there == *last);
        let (a, b): (Vec<Core>, Vec<Core>) = (cores(there).collect(), cores(last).collect());
        f[5] = flag(a.last() == b.last());
        f[6] = flag(a.iter().rev().take(2).eq(b.iter().rev().take(2)));
        f[7] = flag(a.first() == b.first());
        f[8] = flag(a.iter().take(2).eq(b.iter().take(2)));
        f[9] = flag(a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| corpus.same_shape(*x, *y)));
        let suffix = a
            .iter()
            .rev()
            .zip(b.iter().rev())
            .take_while(|(x, y)| x == y)
            .count();
        f[22] = (1.0 + suffix as f64).ln();
        let suffix = a
            .iter()
            .rev()
            .zip(b.iter().rev())
            .take_while(|(x, y)| corpus.same_shape(**x, **y))
            .count();
        f[27] = (1.0 + suffix as f64).ln();
        let here_indent = history.indents.last().copied().unwrap_or(0);
        let there_indent = corpus.lines[before].indent;
        f[17] = flag(here_indent == there_indent);
        f[26] = flag(here_indent + corpus.lines[index].indent < there_indent);
        let second = corpus.previous(before);
        if let (Some(second), Some(other)) = (second, history.lines.iter().rev().nth(1)) {
            f[2] = self.alignment.older_similarities[second];
            f[4] = flag(corpus.line_pieces(second) == *other) * f[3];
            let here = history.indents.iter().rev().nth(1).copied().unwrap_or(0);
            f[16] = flag(here_indent.cmp(&here) == there_indent.cmp(&corpus.lines[second].indent));
        }
    }
}
