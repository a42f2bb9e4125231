//! The lines before the hole: the last lines of the prompt and the lines written so far.

use super::corpus::Corpus;
use super::lexer::Piece;
use super::parameters::HISTORY_LINES;
use super::state::LineState;

#[derive(Clone, Debug)]
pub(super) struct HistoryLine {
    pub pieces: Vec<Piece>,
    pub indent: usize,
}

#[derive(Debug)]
pub(super) struct History {
    /// Oldest first.
    pub lines: Vec<HistoryLine>,
    /// Whether the last line is blank.
    pub after_blank: bool,
    /// State at the beginning of the next line.
    pub state: LineState,
}

impl History {
    pub(super) fn of_prompt(corpus: &Corpus) -> Self {
        let first = corpus.own_lines().max(corpus.lines.len().saturating_sub(HISTORY_LINES));
        let line = |index: usize| HistoryLine {
            pieces: corpus.line_pieces(index).to_vec(),
            indent: corpus.lines[index].indent,
        };
        Self {
            lines: (first..corpus.lines.len()).map(line).collect(),
            after_blank: corpus.blank_end,
            state: corpus.end_state,
        }
    }

    pub(super) fn push(&mut self, corpus: &Corpus, line: HistoryLine) {
        self.state = corpus.marks.after(self.state, &line.pieces);
        self.after_blank = false;
        self.lines.push(line);
    }

    /// Returns the line `back` lines before the last.
    pub(super) fn back(&self, back: usize) -> Option<&HistoryLine> {
        self.lines.iter().rev().nth(back)
    }

    pub(super) fn indent(&self) -> usize {
        self.lines.last().map_or(0, |line| line.indent)
    }
}
