//! Positions of a Python file's import statements, found without a syntax tree: a walk over its bytes recognises only strings,
//! comments, brackets and continued lines.

/// State of the walk at its next byte.
struct Walk<'t> {
    text: &'t str,
    at: usize,
    /// Number of open brackets.
    depth: usize,
}

/// Returns the import statements of a file in order, each from its keyword to its end, anywhere in the file. Returns `None` if
/// a bracket or a string is not closed, or if a bracket that is not open is closed: then only a parser can recognise
/// statements.
pub(super) fn import_statements(text: &str) -> Option<Vec<&str>> {
    // Some editors begin a file with a byte-order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut walk = Walk { text, at: 0, depth: 0 };
    let (mut found, mut is_start, mut import) = (Vec::new(), true, None);
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(walk.at) {
        if is_start && (byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()) {
            is_start = false;
            let word = walk.word();
            if matches!(word, "import" | "from") {
                import = Some(walk.at - word.len());
            }
            continue;
        }
        let ends = match byte {
            b'\n' | b';' => walk.depth == 0,
            b':' => walk.depth == 0 && import.is_none(),
            _ => false,
        };
        if ends {
            let statement = import.take().map(|start: usize| &text[start..walk.at]);
            found.extend(statement);
            is_start = true;
            walk.at += 1;
            continue;
        }
        // Blanks and line continuations precede a statement; everything else is part of one.
        is_start &= matches!(byte, b' ' | b'\t' | b'\x0c' | b'\r' | b'\\' | b'#' | b'\n');
        walk.step(byte)?;
    }
    found.extend(import.map(|start| &text[start..]));
    (walk.depth == 0).then_some(found)
}

impl<'t> Walk<'t> {
    /// Returns the name that begins here.
    fn word(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let is_name = |c: char| c == '_' || c.is_alphanumeric();
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        // A character that is not part of a name is still skipped.
        let end = end.max(rest.chars().next().map_or(0, char::len_utf8));
        self.at += end;
        &rest[..end]
    }

    /// Skips a byte that does not end a statement, or the string, comment or escape that it begins.
    fn step(&mut self, byte: u8) -> Option<()> {
        let bytes = self.text.as_bytes();
        match byte {
            b'#' => {
                let rest = &bytes[self.at..];
                self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            }
            b'\'' | b'"' => self.string(byte)?,
            b'(' | b'[' | b'{' => {
                self.depth += 1;
                self.at += 1;
            }
            b')' | b']' | b'}' => {
                self.depth = self.depth.checked_sub(1)?;
                self.at += 1;
            }
            b'\\' => self.at += 2,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'0'..=b'9' => {
                let rest = &bytes[self.at..];
                let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                self.at += rest.iter().position(|byte| !is_name(byte)).unwrap_or(rest.len());
            }
            _ => self.at += 1,
        }
        Some(())
    }

    /// Skips a string; `None` if it is not closed.
    fn string(&mut self, quote: u8) -> Option<()> {
        let bytes = self.text.as_bytes();
        let is_long = bytes[self.at..].starts_with(&[quote; 3]);
        let close = &[quote; 3][..if is_long { 3 } else { 1 }];
        self.at += close.len();
        loop {
            let rest = bytes.get(self.at..)?;
            self.at += memchr::memchr3(quote, b'\\', b'\n', rest)?;
            match bytes[self.at] {
                b'\\' => self.at += 2,
                b'\n' if !is_long => return None,
                _ if bytes[self.at..].starts_with(close) => {
                    self.at += close.len();
                    return Some(());
                }
                _ => self.at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_wherever_they_stand() {
        let text = "\
'''import a
from b import c'''
import d, e as f  # import g
x = [
    'import h', from_i,
]
if x: import j; from k import (l,
    m)  # n
else:from . import o
\tfrom p import q \\
    , r
important = s; fromage = t
raise u from v
y = {'z': \"\\\"import aa\"}
é = 1; import bb";
        let found = import_statements(text).unwrap();
        assert_eq!(
            found,
            [
                "import d, e as f  # import g",
                "import j",
                "from k import (l,\n    m)  # n",
                "from . import o",
                "from p import q \\\n    , r",
                "import bb",
            ]
        );
    }

    #[test]
    fn what_is_not_closed_is_left_to_a_parser() {
        for text in ["x = (\nimport a\n", "x = )\n", "'''\nimport a", "'a\n", "x = 'a\\"] {
            assert_eq!(import_statements(text), None, "{text:?}");
        }
        assert_eq!(import_statements("\u{feff}import a").unwrap(), ["import a"]);
        for text in ["", "\\", "é", "\u{a0}import a", "#"] {
            assert_eq!(import_statements(text), Some(Vec::new()), "{text:?}");
        }
    }
}
