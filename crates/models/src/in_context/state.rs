//! State at the beginning of a line: open brackets or an open string of several lines.

use super::lexer::{Core, Piece, Vocabulary};

/// State between two lines of the same source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineState {
    /// Whether the line is within a string of several lines.
    pub text: bool,
    /// Number of open brackets.
    pub depth: usize,
}

/// Cores that change the state.
#[derive(Debug)]
pub(super) struct Marks {
    triple: [Core; 2],
    quotes: [Core; 2],
    open: [Core; 3],
    close: [Core; 3],
    /// A triple quote at a line's end begins a string after one of these.
    lead: [Core; 3],
    colon: Core,
    hash: Core,
}

impl Marks {
    pub(super) fn new(vocabulary: &mut Vocabulary) -> Self {
        Self {
            triple: ["\"\"\"", "'''"].map(|text| vocabulary.intern(text)),
            quotes: ["\"", "'"].map(|text| vocabulary.intern(text)),
            open: ["(", "[", "{"].map(|text| vocabulary.intern(text)),
            close: [")", "]", "}"].map(|text| vocabulary.intern(text)),
            lead: ["=", "(", ","].map(|text| vocabulary.intern(text)),
            colon: vocabulary.intern(":"),
            hash: vocabulary.intern("#"),
        }
    }

    /// Returns the state at the beginning of a source, derived from its first triple quote: a source is usually part of a file and may
    /// begin within a documentation string.
    pub(super) fn begin<'a>(&self, lines: impl Iterator<Item = &'a [Piece]>) -> LineState {
        let mut before: Option<&[Piece]> = None;
        for line in lines {
            let quote = line.iter().position(|piece| self.triple.contains(&piece.core()));
            if let Some(at) = quote {
                return LineState { text: self.closes(before, line, at), depth: 0 };
            }
            before = Some(line);
        }
        LineState::default()
    }

    /// Returns whether the first triple quote of a source ends a string.
    fn closes(&self, before: Option<&[Piece]>, line: &[Piece], at: usize) -> bool {
        let last = |line: &[Piece]| line.last().map(|piece| piece.core());
        if line.len() == 1 {
            return before.is_some_and(|before| last(before) != Some(self.colon));
        }
        // A prefix (`r"""`) is one token; the end of a sentence is more.
        at > 1 && at + 1 == line.len() && !self.lead.contains(&line[at - 1].core())
    }

    /// Returns the state after a line.
    pub(super) fn after(&self, mut state: LineState, line: &[Piece]) -> LineState {
        let mut quote: Option<Core> = None;
        for core in line.iter().map(|piece| piece.core()) {
            if self.triple.contains(&core) {
                state.text = !state.text;
            } else if state.text {
                continue;
            } else if let Some(open) = quote {
                quote = (core != open).then_some(open);
            } else if self.quotes.contains(&core) {
                quote = Some(core);
            } else if core == self.hash {
                break;
            } else if self.open.contains(&core) {
                state.depth += 1;
            } else if self.close.contains(&core) {
                state.depth = state.depth.saturating_sub(1);
            }
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Marks, Vec<Vec<Piece>>) {
        let mut vocabulary = Vocabulary::new();
        let marks = Marks::new(&mut vocabulary);
        (marks, text.lines().map(|line| vocabulary.tokenize(line, 100)).collect())
    }

    fn begins_in_text(text: &str) -> bool {
        let (marks, lines) = read(text);
        marks.begin(lines.iter().map(Vec::as_slice)).text
    }

    fn after(text: &str) -> (bool, usize) {
        let (marks, lines) = read(text);
        let state = lines.iter().fold(LineState::default(), |state, line| marks.after(state, line));
        (state.text, state.depth)
    }

    #[test]
    fn strings_and_brackets_open_and_close() {
        for (source, state) in [
            ("f(a, [b", (false, 2)),
            ("f(a, [b\n])", (false, 0)),
            // Brackets within strings and comments do not count.
            ("f(\"(\", '[')  # (", (false, 0)),
            (")", (false, 0)),
            ("\"\"\"Text (", (true, 0)),
            ("\"\"\"Text (\"\"\"", (false, 0)),
            ("\"\"\"Text\nmore\n\"\"\"\nf(", (false, 1)),
        ] {
            assert_eq!(after(source), state, "{source}");
        }
    }

    #[test]
    fn the_first_triple_quote_tells_how_a_source_begins() {
        for (source, in_text) in [
            ("the end.\n\"\"\"\n", true),
            ("the end.\"\"\"\n", true),
            ("def f():\n\"\"\"\n", false),
            ("\"\"\"\nText\n", false),
            ("r\"\"\"\n", false),
            ("x = \"\"\"\n", false),
            ("\"\"\"Text\n", false),
            ("x = 1\n", false),
        ] {
            assert_eq!(begins_in_text(source), in_text, "{source}");
        }
    }
}
