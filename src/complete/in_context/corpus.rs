//! The prompt as indexed lines of tokens: all that the model knows.

use super::layout;
use super::lexer::{Core, Piece, Vocabulary};
use super::parameters::Parameters;
use super::state::{Marks, State};

/// A non-blank line of code.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Range in [`Corpus::pieces`].
    pub start: usize,
    pub end: usize,
    /// Columns of indentation.
    pub indent: usize,
    /// Block number; the file at hand has [`Corpus::blocks`].
    pub source: usize,
    /// Whether a blank line or a source's start stands before it.
    pub after_blank: bool,
}

#[derive(Debug)]
pub(super) struct Corpus {
    pub vocabulary: Vocabulary,
    pub lines: Vec<Line>,
    /// Tokens of all lines, one line after the other.
    pub pieces: Vec<Piece>,
    /// For each token the line it stands in.
    pub line_of: Vec<u32>,
    /// For each core the places it stands at, ascending.
    pub places: Vec<Vec<u32>>,
    /// For each line the state before it, and the state at the end.
    pub states: Vec<State>,
    pub end_state: State,
    pub marks: Marks,
    pub blocks: usize,
    /// Whether the prompt ends in a blank line.
    pub blank_end: bool,
    pub tabs: bool,
}

impl Corpus {
    pub(super) fn read(prompt: &str, parameters: &Parameters) -> Self {
        let (lines, blocks) = layout::read(tail(prompt, parameters.max_prompt_bytes));
        let mut vocabulary = Vocabulary::new();
        let marks = Marks::new(&mut vocabulary);
        let mut corpus = Self {
            vocabulary,
            marks,
            states: Vec::new(),
            end_state: State::default(),
            lines: Vec::new(),
            pieces: Vec::new(),
            line_of: Vec::new(),
            places: Vec::new(),
            blocks,
            blank_end: false,
            tabs: false,
        };
        let mut source = usize::MAX;
        let mut blank = true;
        // What follows the last newline is the empty beginning of the line to be written.
        let count =
            lines.len() - usize::from(lines.last().is_some_and(|line| line.text.is_empty()));
        for line in &lines[..count] {
            blank |= line.source != source;
            source = line.source;
            blank = !corpus.push(line, blank, parameters);
        }
        corpus.blank_end = blank;
        corpus.index();
        corpus.trace();
        corpus
    }

    /// Takes a line in; false if it is blank.
    fn push(&mut self, line: &layout::SourceLine<'_>, after_blank: bool, p: &Parameters) -> bool {
        let code = line.text.trim_start();
        if code.is_empty() {
            return false;
        }
        let start = self.pieces.len();
        let indent = line.text.len() - code.len();
        self.tabs = line.text.starts_with('\t');
        let pieces = self.vocabulary.tokenize(code, p.max_line_tokens);
        self.line_of
            .extend(std::iter::repeat_n(self.lines.len() as u32, pieces.len()));
        self.pieces.extend(pieces);
        let end = self.pieces.len();
        self.lines.push(Line {
            start,
            end,
            indent,
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

    fn trace(&mut self) {
        let mut states = Vec::with_capacity(self.lines.len());
        let mut state = State::default();
        for line in 0..self.lines.len() {
            let source = self.lines[line].source;
            if self.previous(line).is_none() {
                let all = (line..self.lines.len()).take_while(|l| self.lines[*l].source == source);
                state = self.marks.begin(all.map(|l| self.line_pieces(l)));
            }
            states.push(state);
            state = self.marks.after(state, self.line_pieces(line));
        }
        self.end_state = match self.lines.last() {
            Some(line) if line.source == self.blocks => state,
            _ => State::default(),
        };
        self.states = states;
    }

    pub(super) fn line_pieces(&self, line: usize) -> &[Piece] {
        let line = &self.lines[line];
        &self.pieces[line.start..line.end]
    }

    /// The token after a place: the next of its line, or the newline.
    pub(super) fn follower(&self, place: usize) -> Piece {
        let line = &self.lines[self.line_of[place] as usize];
        if place + 1 < line.end {
            self.pieces[place + 1]
        } else {
            Piece::NEWLINE
        }
    }

    /// The line before, if it is of the same source.
    pub(super) fn previous(&self, line: usize) -> Option<usize> {
        let before = line.checked_sub(1)?;
        (self.lines[before].source == self.lines[line].source).then_some(before)
    }

    /// Whether two cores agree once names are left out of account.
    pub(super) fn same_shape(&self, a: Core, b: Core) -> bool {
        a == b || self.vocabulary.is_identifier(a) && self.vocabulary.is_identifier(b)
    }
}

/// The end of a text, cut at a line start where there is one.
fn tail(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let mut start = text.len() - max_bytes;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let cut = &text[start..];
    match cut.find('\n') {
        Some(newline) if newline + 1 < cut.len() => &cut[newline + 1..],
        _ => cut,
    }
}
