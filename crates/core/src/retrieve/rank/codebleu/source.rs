//! Text without the parts that CodeBLEU removes before it parses: comments, docstrings, blank lines.

use repoformer_text::language::Language;
use repoformer_text::lines::is_space;
use repoformer_text::tokenize::is_word;

/// Returns a text as CodeBLEU parses it.
///
/// Python is cut by the tokenizer of Python 3.11. If that tokenizer fails, for example at an unclosed bracket, nothing is
/// removed.
pub(super) fn bare(text: &str, language: Language) -> String {
    let text = text.trim_matches(is_space);
    let bare = match language {
        Language::Python => match Python::new(text).read() {
            Some(bare) => bare,
            None => return text.to_owned(),
        },
        _ => without_comments(text),
    };
    let lines = bare.split('\n').filter(|line| !line.trim_matches(is_space).is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns a text with a space for each C-style comment. Strings of one or two quotes stay, even across line ends.
fn without_comments(text: &str) -> String {
    let mut bare = String::new();
    let mut rest = text;
    let mut endless = UnclosedSigns::default();
    while let Some(at) = rest.find(['/', '\'', '"']) {
        bare.push_str(&rest[..at]);
        rest = &rest[at..];
        let comment = match rest.strip_prefix("/*") {
            Some(behind) => endless.end("/*", |_| behind.find("*/")).map(|end| end + 4),
            None if rest.starts_with("//") => Some(rest.find('\n').unwrap_or(rest.len())),
            None => None,
        };
        let length = match comment {
            Some(length) => length,
            None if rest.starts_with('/') => 1,
            None => {
                let end = |quote| end_of_string(&rest[1..], quote, true);
                endless.end(&rest[..1], end).map_or(1, |end| end + 1)
            }
        };
        bare.push_str(if comment.is_some() { " " } else { &rest[..length] });
        rest = &rest[length..];
    }
    bare + rest
}

/// Signs that begin no string or comment after some position. Text after a later sign was already searched for the earlier one,
/// in the same way: a quote after a backslash is skipped together with it.
#[derive(Default)]
struct UnclosedSigns<'t>(Vec<&'t str>);

impl<'t> UnclosedSigns<'t> {
    /// Finds the end of the string or comment that a sign begins. If it has no end, the same sign is not searched for again.
    fn end<T>(&mut self, sign: &'t str, find: impl FnOnce(&'t str) -> Option<T>) -> Option<T> {
        if self.0.contains(&sign) {
            return None;
        }
        let found = find(sign);
        self.0.extend(found.is_none().then_some(sign));
        found
    }
}

/// Returns the position at which a string ends that began earlier: after the first of these quotes without a backslash before
/// it.
fn end_of_string(text: &str, quotes: &str, may_escape_newline: bool) -> Option<usize> {
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        if text[at..].starts_with(quotes) {
            return Some(at + quotes.len());
        }
        if character == '\\' {
            let (_, escaped) = characters.next()?;
            if escaped == '\n' && !may_escape_newline {
                return None;
            }
        }
    }
    None
}

#[derive(Clone, Copy, PartialEq)]
enum Token {
    Indent,
    Newline,
    Comment,
    String,
    Other,
}

/// Number of a line, from 1, and a byte offset in it.
type Place = (usize, usize);

/// State of Python's tokenizer between two lines.
struct Python<'t> {
    text: &'t str,
    bare: String,
    /// Last token written, and its end.
    last: (Token, Place),
    /// Number of open brackets; negative if more were closed than opened.
    brackets: i32,
    indents: Vec<usize>,
    /// Whether the previous line ended in a backslash.
    continued: bool,
    /// Start of a string that continues, as a place and as a byte of the text, and its quotes.
    open: Option<(Place, usize, &'t str)>,
    /// Whether a string that continues needs a backslash at the end of each line. Not reset if a string does not need one.
    needs_backslash: bool,
}

impl<'t> Python<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            bare: String::new(),
            last: (Token::Indent, (0, 0)),
            brackets: 0,
            indents: vec![0],
            continued: false,
            open: None,
            needs_backslash: false,
        }
    }

    /// Returns the text without comments and docstrings; `None` if the tokenizer fails.
    fn read(mut self) -> Option<String> {
        let mut before = 0;
        for (number, line) in (1..).zip(self.text.split_inclusive('\n')) {
            let at = self.begin(before, number, line)?;
            self.tokens(before, (number, at), line);
            before += line.len();
        }
        (self.open.is_none() && self.brackets == 0 && !self.continued).then_some(self.bare)
    }

    /// Reads the part of a line before its tokens. Returns the position at which the tokens begin: the end of the line if it
    /// has none.
    fn begin(&mut self, before: usize, number: usize, line: &str) -> Option<usize> {
        if let Some((start, from, quotes)) = self.open.take() {
            let end = end_of_string(line, quotes, false);
            let is_lost =
                self.needs_backslash && !line.ends_with("\\\n") && !line.ends_with("\\\r\n");
            if end.is_none() && !is_lost {
                self.open = Some((start, from, quotes));
                return Some(line.len());
            }
            self.needs_backslash &= end.is_none();
            let token = if end.is_some() { Token::String } else { Token::Other };
            let end = end.unwrap_or(line.len());
            self.put(token, &self.text[from..before + end], start, (number, end));
            return Some(end);
        }
        let continued = std::mem::take(&mut self.continued);
        if continued || self.brackets != 0 {
            return Some(0);
        }
        let rest = line.trim_start_matches(BLANKS);
        let at = line.len() - rest.len();
        if rest.starts_with(['#', '\r', '\n']) {
            let newline = if rest.starts_with('#') {
                at + rest.trim_end_matches(['\r', '\n']).len()
            } else {
                at
            };
            self.put(Token::Comment, &line[at..newline], (number, at), (number, newline));
            self.put(Token::Other, &line[newline..], (number, newline), (number, line.len()));
            return Some(line.len());
        }
        let column = line[..at].chars().fold(0, |column, blank| match blank {
            '\t' => (column / 8 + 1) * 8,
            '\x0c' => 0,
            _ => column + 1,
        });
        if column > *self.indents.last()? {
            self.indents.push(column);
            self.put(Token::Indent, &line[..at], (number, 0), (number, at));
        }
        while column < *self.indents.last()? {
            if !self.indents.contains(&column) {
                return None;
            }
            self.indents.pop();
            self.put(Token::Other, "", (number, at), (number, at));
        }
        Some(at)
    }

    /// Reads the tokens of a line, from a byte on.
    fn tokens(&mut self, before: usize, (number, mut at): Place, line: &'t str) {
        let mut endless = UnclosedSigns::default();
        loop {
            let rest = line[at..].trim_start_matches(BLANKS);
            let start = line.len() - rest.len();
            let Some(first) = rest.chars().next() else {
                return;
            };
            let quote = quote(rest);
            let quotes = quote.map(|quote| &rest[quote..]);
            let (token, length) = if matches!(rest, "\\\n" | "\\\r\n") {
                self.continued = true;
                return;
            } else if first == '#' {
                (Token::Comment, rest.find(['\r', '\n']).unwrap_or(rest.len()))
            } else if matches!(rest, "\n" | "\r\n") {
                (if self.brackets > 0 { Token::Other } else { Token::Newline }, rest.len())
            } else if let (Some(quote), Some(quotes)) = (quote, quotes.filter(|q| is_triple(q))) {
                let Some(end) = end_of_string(&quotes[3..], &quotes[..3], false) else {
                    self.open = Some(((number, start), before + start, &quotes[..3]));
                    return;
                };
                (Token::String, quote + 3 + end)
            } else if let (Some(quote), Some(quotes)) = (
                quote,
                quotes.filter(|q| endless.end(&q[..1], |_| is_closed(q).then_some(())).is_some()),
            ) {
                let Some(end) = end_of_string(&quotes[1..], &quotes[..1], false) else {
                    self.open = Some(((number, start), before + start, &quotes[..1]));
                    self.needs_backslash = true;
                    return;
                };
                (Token::String, quote + 1 + end)
            } else if is_word(first) {
                (Token::Other, rest.find(|c| !is_word(c)).unwrap_or(rest.len()))
            } else if OPERATORS.contains(first) || rest.starts_with("!=") {
                self.brackets += match first {
                    '(' | '[' | '{' => 1,
                    ')' | ']' | '}' => -1,
                    _ => 0,
                };
                (Token::Other, 1)
            } else {
                // No token begins here, so the blanks before this character are not a token either.
                let end = start + first.len_utf8();
                self.put(Token::Other, &line[at..end], (number, at), (number, end));
                at = end;
                continue;
            };
            at = start + length;
            self.put(token, &line[start..at], (number, start), (number, at));
        }
    }

    /// Writes a token, after spaces for the text before it in its line, unless it is a comment or a docstring.
    fn put(&mut self, token: Token, text: &str, start: Place, end: Place) {
        let (last, (line, column)) = self.last;
        let from = if start.0 > line { 0 } else { column };
        self.bare.extend(std::iter::repeat_n(' ', start.1.saturating_sub(from)));
        let is_left_out = match token {
            Token::Comment => true,
            Token::String => matches!(last, Token::Indent | Token::Newline) || start.1 == 0,
            _ => false,
        };
        if !is_left_out {
            self.bare.push_str(text);
        }
        self.last = (token, end);
    }
}

const BLANKS: [char; 3] = [' ', '\t', '\x0c'];
/// Characters that are operators, or of which longer operators consist.
const OPERATORS: &str = "%&()*+,-./:;<=>@[]^{|}~";

/// Returns the position of the quotes of a string that begins here, after its prefix.
fn quote(text: &str) -> Option<usize> {
    let at = text.bytes().take(3).position(|byte| matches!(byte, b'\'' | b'"'))?;
    let prefix = text[..at].to_ascii_lowercase();
    matches!(&*prefix, "" | "b" | "r" | "u" | "f" | "br" | "rb" | "fr" | "rf").then_some(at)
}

fn is_triple(quotes: &str) -> bool {
    quotes.starts_with("'''") || quotes.starts_with("\"\"\"")
}

/// Returns true if a string with single quotes ends in its line, or if a backslash at the end of the line continues it.
fn is_closed(quotes: &str) -> bool {
    let line = quotes.strip_suffix('\n').unwrap_or(quotes);
    end_of_string(&line[1..], &quotes[..1], false).is_some()
        || (line.len() < quotes.len() && ends_escaped(line.strip_suffix('\r').unwrap_or(line)))
}

/// Returns true if a text ends in a backslash that is not itself escaped.
fn ends_escaped(text: &str) -> bool {
    let backslashes = text.len() - text.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No quote begins a string, and no blank is followed by a token.
    #[test]
    fn what_does_not_end_is_looked_for_once() {
        for (language, unit, end) in [
            (Language::Java, "\\'", ""),
            (Language::Java, "/*a", ""),
            (Language::Python, "\\'", "\n1"),
            (Language::Python, " ", "$\n1"),
        ] {
            let text = format!("'{}{end}", unit.repeat(200_000));
            assert!(bare(&text, language) == text, "{language} {unit}");
        }
    }
}
