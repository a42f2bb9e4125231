//! The prompt as indexed lines of tokens, which are the model's only knowledge.

use super::layout::{self, SourceLine};
use super::lexer::{Core, Piece, Vocabulary};
use super::parameters::{MAX_LINE_TOKENS, MAX_PROMPT_BYTES, MAX_TARGET_LINES};
use super::state::{LineState, Marks};

/// A non-blank line of code.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Range in [`Corpus::pieces`].
    pub start: usize,
    pub end: usize,
    /// Characters of indentation.
    pub indent: usize,
    /// Number of the line's block; the current file has the number [`Corpus::blocks`].
    pub source: usize,
    /// Whether a blank line or the beginning of the source precedes it.
    pub after_blank: bool,
}

#[derive(Debug)]
pub(super) struct Corpus {
    pub vocabulary: Vocabulary,
    pub marks: Marks,
    pub lines: Vec<Line>,
    /// For each line, the state at its beginning.
    pub states: Vec<LineState>,
    /// State at the beginning of the next line.
    pub end_state: LineState,
    /// Whether the prompt ends in a blank line, or is one.
    pub blank_end: bool,
    /// Tokens of all lines, one line after the other.
    pub pieces: Vec<Piece>,
    /// For each token, its line.
    pub line_of: Vec<u32>,
    /// For each core, its positions, ascending.
    pub places: Vec<Vec<u32>>,
    pub blocks: usize,
    /// Whether the last line is indented by tabs.
    pub tabs: bool,
    /// For each line of the current file, the logarithm of its distance to the hole.
    own_distances: Vec<f64>,
}

/// Indentation beyond this is not distinguished.
pub(super) const MAX_INDENT: usize = 200;

impl Corpus {
    pub(super) fn read(prompt: &str) -> Self {
        Self::read_with(prompt, "").0
    }

    /// Reads a prompt, extends its vocabulary by a text that follows it, and returns the tokens of the text's first lines.
    pub(super) fn read_with(prompt: &str, text: &str) -> (Self, Vec<Vec<Piece>>) {
        let (lines, blocks) = layout::read(tail(prompt, MAX_PROMPT_BYTES));
        let mut vocabulary = Vocabulary::new();
        let marks = Marks::new(&mut vocabulary);
        let mut corpus = Self {
            vocabulary,
            marks,
            lines: Vec::new(),
            states: Vec::new(),
            end_state: LineState::default(),
            blank_end: false,
            pieces: Vec::new(),
            line_of: Vec::new(),
            places: Vec::new(),
            blocks,
            tabs: false,
            own_distances: Vec::new(),
        };
        corpus.fill(&lines);
        let vocabulary = &mut corpus.vocabulary;
        let text = text.split('\n').take(MAX_TARGET_LINES);
        let text = text.map(|line| vocabulary.tokenize(line, MAX_LINE_TOKENS)).collect();
        corpus.index();
        corpus.trace();
        let distances = (1..=corpus.lines.len() - corpus.own_lines()).rev();
        corpus.own_distances = distances.map(|distance| libm::log(distance as f64)).collect();
        (corpus, text)
    }

    fn fill(&mut self, lines: &[SourceLine<'_>]) {
        let mut source = usize::MAX;
        let mut blank = true;
        for line in lines {
            blank |= line.source != source;
            source = line.source;
            blank = !self.push(line, blank);
        }
        self.blank_end = blank;
    }

    /// Adds a line; returns false if it is blank.
    fn push(&mut self, line: &SourceLine<'_>, after_blank: bool) -> bool {
        let code = line.text.trim_start();
        let pieces = self.vocabulary.tokenize(code, MAX_LINE_TOKENS);
        if pieces.is_empty() {
            return false;
        }
        let margin = &line.text[..line.text.len() - code.len()];
        let start = self.pieces.len();
        self.tabs = margin.starts_with('\t');
        self.line_of.extend(std::iter::repeat_n(self.lines.len() as u32, pieces.len()));
        self.pieces.extend(pieces);
        self.lines.push(Line {
            start,
            end: self.pieces.len(),
            indent: margin.chars().count().min(MAX_INDENT),
            source: line.source,
            after_blank,
        });
        true
    }

    fn index(&mut self) {
        self.places = vec![Vec::new(); self.vocabulary.len()];
        for (place, piece) in self.pieces.iter().enumerate() {
            self.places[piece.core() as usize].push(place as u32);
        }
    }

    /// Computes the state at the beginning of each line.
    fn trace(&mut self) {
        let mut state = LineState::default();
        let mut states = Vec::with_capacity(self.lines.len());
        for (index, line) in self.lines.iter().enumerate() {
            if self.previous(index).is_none() {
                let rest = (index..self.lines.len())
                    .take_while(|other| self.lines[*other].source == line.source);
                state = self.marks.begin(rest.map(|other| self.line_pieces(other)));
            }
            states.push(state);
            state = self.marks.after(state, self.line_pieces(index));
        }
        let own = self.own_lines() < self.lines.len();
        self.end_state = if own { state } else { LineState::default() };
        self.states = states;
    }

    pub(super) fn line_pieces(&self, line: usize) -> &[Piece] {
        let line = &self.lines[line];
        &self.pieces[line.start..line.end]
    }

    /// Returns the index of the first line of the current file.
    pub(super) fn own_lines(&self) -> usize {
        self.lines.partition_point(|line| line.source < self.blocks)
    }

    /// Returns the number of blocks between a line's block and the last one; `None` for a line of the current file.
    pub(super) fn distance_to_last_block(&self, line: &Line) -> Option<usize> {
        self.blocks.checked_sub(line.source + 1)
    }

    /// Returns the logarithm of the distance of a line of the current file to the hole.
    pub(super) fn log_distance(&self, line: usize) -> f64 {
        self.own_distances[line + self.own_distances.len() - self.lines.len()]
    }

    /// Returns the token after a position: the next token of the line, or the newline.
    pub(super) fn follower(&self, place: usize) -> Piece {
        let line = &self.lines[self.line_of[place] as usize];
        if place + 1 < line.end { self.pieces[place + 1] } else { Piece::NEWLINE }
    }

    /// Returns the preceding line, if it is from the same source.
    pub(super) fn previous(&self, line: usize) -> Option<usize> {
        let before = line.checked_sub(1)?;
        (self.lines[before].source == self.lines[line].source).then_some(before)
    }

    /// Returns whether two cores are equal or both names.
    pub(super) fn same_shape(&self, a: Core, b: Core) -> bool {
        a == b || self.vocabulary.is_name(a) && self.vocabulary.is_name(b)
    }
}

/// Returns the end of a text, from the beginning of a line if possible.
pub(super) fn tail(text: &str, max_bytes: usize) -> &str {
    let Some(mut start) = text.len().checked_sub(max_bytes) else {
        return text;
    };
    if start == 0 {
        return text;
    }
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let cut = &text[start..];
    match cut.find('\n') {
        Some(newline) if newline + 1 < cut.len() => &cut[newline + 1..],
        _ => cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_know_indentation_and_blank_lines() {
        let corpus = Corpus::read("a = 1\n\n    b = 2\n");
        let indents: Vec<_> = corpus.lines.iter().map(|l| (l.indent, l.after_blank)).collect();
        assert_eq!(indents, [(0, true), (4, true)]);
        assert!(!corpus.blank_end);
        assert!(Corpus::read("a = 1\n\n").blank_end);
        assert!(Corpus::read("").lines.is_empty());
    }

    #[test]
    fn the_follower_of_a_last_token_is_the_newline() {
        let corpus = Corpus::read("a b\nc\n");
        assert_eq!(corpus.follower(0), corpus.pieces[1]);
        assert_eq!(corpus.follower(1), Piece::NEWLINE);
    }

    #[test]
    fn a_long_prompt_is_cut_at_a_line_start() {
        assert_eq!(tail("abc\ndef\n", 6), "def\n");
        assert_eq!(tail("abcdef", 3), "def");
        assert_eq!(tail("ééé", 3), "é");
        assert_eq!(tail("abc", 3), "abc");
    }

    #[test]
    fn a_source_may_begin_within_a_string() {
        let corpus = Corpus::read("the end.\n\"\"\"\nx = f(\n    1,\n)\n");
        let states: Vec<_> = corpus.states.iter().map(|s| (s.text, s.depth)).collect();
        assert_eq!(states, [(true, 0), (true, 0), (false, 0), (false, 1), (false, 1)]);
        assert_eq!(corpus.end_state, LineState::default());
        let corpus = Corpus::read("def f():\n    \"\"\"\n    Text (\n");
        assert_eq!(corpus.end_state, LineState { text: true, depth: 0 });
    }
}
