//! What a line stands in: a bracket or a string of several lines that is still open.

use super::lexer::{Core, Piece, Vocabulary};

/// State between two lines of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Within a string of several lines.
    pub text: bool,
    /// Open brackets.
    pub depth: usize,
}

/// The cores that open and close.
#[derive(Debug)]
pub(super) struct Marks {
    triple: [Core; 2],
    quotes: [Core; 2],
    open: [Core; 3],
    close: [Core; 3],
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
            colon: vocabulary.intern(":"),
            hash: vocabulary.intern("#"),
        }
    }

    /// The state a source begins in, as far as its first triple quote tells: a source may begin
    /// within a documentation string.
    pub(super) fn begin<'a>(&self, lines: impl Iterator<Item = &'a [Piece]>) -> State {
        let mut before: Option<&[Piece]> = None;
        for line in lines {
            if let Some(at) = line
                .iter()
                .position(|piece| self.triple.contains(&piece.core()))
            {
                let alone = line.len() == 1;
                let opened = before
                    .is_some_and(|before| before.last().map(|p| p.core()) == Some(self.colon));
                // A closing mark ends its line; an opening one mostly begins it or is named (`r"""`).
                let text = if alone {
                    !opened && before.is_some()
                } else {
                    at + 1 == line.len()
                        && at > 1
                        && !line[..at]
                            .iter()
                            .any(|p| p.gap() == super::lexer::Gap::One && false)
                };
                return State { text, depth: 0 };
            }
            before = Some(line);
        }
        State::default()
    }

    /// The state after a line.
    pub(super) fn after(&self, mut state: State, line: &[Piece]) -> State {
        let mut quote: Option<Core> = None;
        for piece in line {
            let core = piece.core();
            if self.triple.contains(&core) {
                state.text = !state.text;
            } else if state.text {
                continue;
            } else if let Some(open) = quote {
                if core == open {
                    quote = None;
                }
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
