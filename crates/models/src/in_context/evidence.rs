//! Evidence for and against a line of the prompt as the next line.

use std::sync::LazyLock;

use super::align::Alignment;
use super::corpus::Corpus;
use super::history::History;
use super::lexer::{Core, Piece};
use super::parameters::{MAX_LINE_TOKENS, REPEAT_WINDOW, line as w};

#[derive(Debug)]
pub(super) struct Evidence<'a> {
    corpus: &'a Corpus,
    alignment: &'a Alignment,
    history: &'a History,
    /// For each core, whether the current file contains it.
    known: Vec<bool>,
}

/// Logarithm of each number up to the greatest length of a line plus one.
static LOGARITHMS: LazyLock<[f64; MAX_LINE_TOKENS + 2]> =
    LazyLock::new(|| std::array::from_fn(|number| libm::log(number as f64)));

fn flag(value: bool) -> f64 {
    f64::from(u8::from(value))
}

fn cores(pieces: &[Piece]) -> impl DoubleEndedIterator<Item = Core> + '_ {
    pieces.iter().map(|piece| piece.core())
}

impl<'a> Evidence<'a> {
    pub(super) fn new(corpus: &'a Corpus, alignment: &'a Alignment, history: &'a History) -> Self {
        let mut known = vec![false; corpus.vocabulary.len()];
        let own = corpus.own_lines()..corpus.lines.len();
        for core in own.flat_map(|line| cores(corpus.line_pieces(line))) {
            known[core as usize] = true;
        }
        Self { corpus, alignment, history, known }
    }

    /// Returns the logarithm of a line's weight, up to a constant.
    pub(super) fn log_weight(&self, line: usize) -> f64 {
        self.weigh_place(line) + self.weigh_line(line) + self.weigh_before(line)
    }

    /// Returns the weight of a line's position and state.
    fn weigh_place(&self, index: usize) -> f64 {
        let (line, state) = (&self.corpus.lines[index], self.corpus.states[index]);
        let here = self.history.state;
        let depth = state.depth.min(3).abs_diff(here.depth.min(3));
        let mut weight = w::BLANK * flag(line.after_blank == self.history.after_blank)
            + w::TEXT_STATE * flag(state.text != here.text)
            + w::BRACKET_STATE * flag((state.depth > 0) != (here.depth > 0))
            + w::DEPTH * depth as f64;
        weight += match self.corpus.distance_to_last_block(line) {
            Some(rank) => w::RANK * rank as f64,
            None => w::OWN + w::DISTANCE * self.corpus.log_distance(index),
        };
        weight
    }

    /// Returns the weight of a line's content.
    fn weigh_line(&self, index: usize) -> f64 {
        let pieces = self.corpus.line_pieces(index);
        let mut recent = self.history.lines.iter().rev().take(REPEAT_WINDOW);
        let last = self.history.back(0).is_some_and(|last| last.pieces == pieces);
        let (mut names, mut foreign) = (0_usize, 0_usize);
        for core in cores(pieces).filter(|core| self.corpus.vocabulary.is_name(*core)) {
            names += 1;
            foreign += usize::from(!self.known[core as usize]);
        }
        w::REPEAT_LAST * flag(last)
            + w::REPEAT_NEAR * flag(recent.any(|line| line.pieces == pieces))
            + w::FOREIGN_NAMES * foreign as f64 / names.max(1) as f64
    }

    /// Returns the weight of the agreement between the lines before a candidate and the lines before the hole.
    fn weigh_before(&self, index: usize) -> f64 {
        let Some(before) = self.corpus.previous(index) else {
            return w::START_OF_SOURCE;
        };
        let Some(last) = self.history.back(0) else {
            return 0.0;
        };
        let there = self.corpus.line_pieces(before);
        let indent = self.corpus.lines[before].indent;
        let past = last.indent + self.corpus.lines[index].indent < indent;
        w::ALIGNMENT * self.alignment.scores[before]
            + w::SIMILAR_LAST * self.alignment.similarities[before]
            + w::EQUAL_LAST * flag(there == last.pieces)
            + w::SAME_INDENT * flag(indent == last.indent)
            + w::OUTDENT_PAST * flag(past)
            + self.weigh_ends(there, &last.pieces)
            + self.weigh_second(before)
    }

    /// Returns the weight of the first and last tokens that the line before the candidate shares with the last line.
    fn weigh_ends(&self, there: &[Piece], here: &[Piece]) -> f64 {
        let starts = |count| cores(there).take(count).eq(cores(here).take(count));
        let common = |same: &dyn Fn(Core, Core) -> bool| {
            let pairs = cores(there).rev().zip(cores(here).rev());
            pairs.take_while(|(a, b)| same(*a, *b)).count()
        };
        let suffix = common(&|a, b| a == b);
        let shape = common(&|a, b| self.corpus.same_shape(a, b));
        w::LAST_TOKEN * flag(suffix > 0)
            + w::FIRST_TOKEN * flag(starts(1))
            + w::FIRST_TWO_TOKENS * flag(starts(2))
            + w::SUFFIX * LOGARITHMS[1 + suffix]
            + w::SUFFIX_SHAPE * LOGARITHMS[1 + shape]
    }

    /// Returns the weight of the line two before the candidate, compared with the last line but one.
    fn weigh_second(&self, before: usize) -> f64 {
        let (Some(second), Some(last)) = (self.corpus.previous(before), self.history.back(0))
        else {
            return 0.0;
        };
        let Some(other) = self.history.back(1) else {
            return 0.0;
        };
        let lines = &self.corpus.lines;
        let step = lines[before].indent.cmp(&lines[second].indent);
        let equal = self.corpus.line_pieces(before) == last.pieces
            && self.corpus.line_pieces(second) == other.pieces;
        w::SIMILAR_SECOND * self.alignment.older_similarities[second]
            + w::EQUAL_SECOND * flag(equal)
            + w::INDENT_STEP * flag(step == last.indent.cmp(&other.indent))
    }
}
