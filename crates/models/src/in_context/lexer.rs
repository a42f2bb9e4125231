//! Tokenization of code.
//!
//! A token is a word, a number, an operator or a run of quotes or dashes, together with the preceding blank space. The space matters only
//! for writing (`a = b` and `a=b` are different texts); contexts are compared without it. Newlines and indentation are not tokens here:
//! lines are a separate unit above tokens, each with its own indentation.

use foldhash::HashMap;

/// Number of a distinct token text, without the blank space before it.
pub(super) type Core = u32;

/// Core of the newline token.
pub(super) const NEWLINE: Core = 0;

/// Blank space before a token, to the extent that the model distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    None,
    One,
    /// Two columns or more; written as two spaces, as before a trailing comment.
    Wide,
}

/// A token as it is written: its core and the gap before it, packed as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece(u32);

impl Piece {
    pub(super) const NEWLINE: Self = Self::new(NEWLINE, Gap::None);

    pub(super) const fn new(core: Core, gap: Gap) -> Self {
        Self(core * 3 + gap as u32)
    }

    pub(super) const fn core(self) -> Core {
        self.0 / 3
    }

    pub(super) const fn gap(self) -> Gap {
        match self.0 % 3 {
            0 => Gap::None,
            1 => Gap::One,
            _ => Gap::Wide,
        }
    }

    pub(super) const fn with_core(self, core: Core) -> Self {
        Self::new(core, self.gap())
    }

    /// Returns the number of possible pieces for a number of cores.
    pub(super) const fn count(cores: usize) -> usize {
        cores * 3
    }

    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Distinct token texts of one prompt.
#[derive(Debug)]
pub(super) struct Vocabulary {
    numbers: HashMap<String, Core>,
    texts: Vec<String>,
    names: Vec<bool>,
}

impl Vocabulary {
    pub(super) fn new() -> Self {
        let mut vocabulary =
            Self { numbers: HashMap::default(), texts: Vec::new(), names: Vec::new() };
        vocabulary.intern("\n");
        vocabulary
    }

    pub(super) fn intern(&mut self, text: &str) -> Core {
        if let Some(&core) = self.numbers.get(text) {
            return core;
        }
        let core = self.texts.len() as Core;
        self.numbers.insert(text.to_owned(), core);
        self.texts.push(text.to_owned());
        self.names.push(is_name(text));
        core
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(super) fn text(&self, core: Core) -> &str {
        &self.texts[core as usize]
    }

    /// Returns whether the core is a name, which may be replaced by another name.
    pub(super) fn is_name(&self, core: Core) -> bool {
        self.names[core as usize]
    }

    /// Returns the token as it appears in a text.
    pub(super) fn write(&self, piece: Piece) -> String {
        let gap = match piece.gap() {
            Gap::None => "",
            Gap::One => " ",
            Gap::Wide => "  ",
        };
        format!("{gap}{}", self.text(piece.core()))
    }

    /// Tokenizes a line without its indentation; returns at most `limit` tokens.
    pub(super) fn tokenize(&mut self, line: &str, limit: usize) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut rest = line;
        while pieces.len() < limit {
            let token = rest.trim_start_matches(is_blank);
            if token.is_empty() {
                break;
            }
            let gap = match rest.len() - token.len() {
                0 => Gap::None,
                1 => Gap::One,
                _ => Gap::Wide,
            };
            let gap = if pieces.is_empty() { Gap::None } else { gap };
            let length = token_length(token);
            pieces.push(Piece::new(self.intern(&token[..length]), gap));
            rest = &token[length..];
        }
        pieces
    }
}

/// Words that belong to a statement's shape and are never replaced.
const KEYWORDS: [&str; 36] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield", "self",
];

fn is_name(text: &str) -> bool {
    let starts_like_name = text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    starts_like_name && !KEYWORDS.contains(&text)
}

/// Operators of more than one character; longer ones precede their prefixes.
const OPERATORS: [&str; 27] = [
    "\"\"\"", "'''", "...", "**=", "//=", ">>=", "<<=", "===", "!==", "->", "=>", "==", "!=", "<=",
    ">=", "+=", "-=", "*=", "/=", "|=", "&=", "**", "//", "::", "&&", "||", ":=",
];

/// Returns the length in bytes of the token at the beginning of a non-empty text.
fn token_length(text: &str) -> usize {
    let run = |keep: &dyn Fn(char) -> bool| text.find(|c| !keep(c)).unwrap_or(text.len());
    let Some(first) = text.chars().next() else {
        return 0;
    };
    if is_word(first) {
        return run(&is_word);
    }
    // A run of one character, such as a separator line, is one token.
    if matches!(first, '-' | '=' | '#' | '~' | '_') {
        let length = run(&|c| c == first);
        if length > 2 {
            return length;
        }
    }
    let begins =
        |with: &&&str| with.as_bytes()[0] == text.as_bytes()[0] && text.starts_with(**with);
    let operator = OPERATORS.iter().find(begins);
    operator.map_or(first.len_utf8(), |operator| operator.len())
}

/// Returns whether a character counts as blank. Control characters do: other readers may take them as line ends, so they are never written.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(line: &str) -> Vec<String> {
        let mut vocabulary = Vocabulary::new();
        let pieces = vocabulary.tokenize(line, 100);
        pieces.into_iter().map(|piece| vocabulary.write(piece)).collect()
    }

    #[test]
    fn tokens_carry_the_space_before_them() {
        for (line, wanted) in [
            ("self.a_1 += f(x)[0]  # é!", "self|.|a_1| +=| f|(|x|)|[|0|]|  #| é|!"),
            ("r\"\"\"x", "r|\"\"\"|x"),
            ("------ a -> --b", "------| a| ->| -|-|b"),
            ("a**b//c", "a|**|b|//|c"),
            // Wide gaps and control characters are blank.
            ("a \t  b\u{1c}c  ", "a|  b| c"),
            (" \u{b}\u{2028} ", ""),
        ] {
            assert_eq!(tokens(line).join("|"), wanted);
        }
    }

    #[test]
    fn the_first_token_has_no_gap_and_the_limit_holds() {
        let mut vocabulary = Vocabulary::new();
        let pieces = vocabulary.tokenize("  a b c", 2);
        let written: Vec<_> = pieces.iter().map(|piece| vocabulary.write(*piece)).collect();
        assert_eq!(written, ["a", " b"]);
    }

    #[test]
    fn keywords_and_numbers_are_no_names() {
        let mut vocabulary = Vocabulary::new();
        let mut is_name = |text| {
            let core = vocabulary.intern(text);
            vocabulary.is_name(core)
        };
        assert!(["value", "_x"].into_iter().all(&mut is_name));
        assert!(!["return", "self", "12", "(", "\n"].into_iter().any(is_name));
        assert_eq!(vocabulary.intern("\n"), NEWLINE);
    }
}
