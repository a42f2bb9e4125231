//! Strings and comments, as far as a single line or a pair of triple quotes reveals them.

use std::ops::Range;

use repoformer_text::language::{BlockMarks, Language};
use repoformer_text::lines::unfinished_line;

use super::steps;
use crate::postprocess::hole::HoleContext;

/// Returns the ranges of the lines of a text, including their newlines.
pub(super) fn line_ranges(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let range = start..start + line.len();
        start = range.end;
        range
    })
}

/// Returns the marks that begin and end multi-line strings.
fn triple_quotes(language: Language) -> &'static [&'static str] {
    match language {
        Language::Python => &["\"\"\"", "'''"],
        Language::Java | Language::CSharp => &["\"\"\""],
        _ => &[],
    }
}

/// Strings, Markdown code spans and the comment of one line. An unclosed quotation mark does not begin a string.
pub(super) struct Literals {
    ranges: Vec<Range<usize>>,
    /// True if the line ends in a comment, or after a quotation mark that it does not close.
    pub(super) is_open: bool,
}

impl Literals {
    pub(super) fn new(line: &str, language: Language) -> Self {
        let is_braces = language.spec().layout == BlockMarks::Braces;
        // This is a line of a multi-line comment.
        if is_braces && line.trim_start().starts_with(['*', '/']) && line.contains('*') {
            let ranges = std::iter::once(0..line.len()).collect();
            return Self { ranges, is_open: !line.contains("*/") };
        }
        Self::read(line, Some(language.comment()))
    }

    /// Returns the literals of a line without comments, such as a line of thoughts.
    pub(super) fn of_thoughts(line: &str) -> Self {
        Self::read(line, None)
    }

    fn read(line: &str, comment: Option<&str>) -> Self {
        let last = ['"', '\'', '`'].map(|quote| (quote, line.rfind(quote)));
        let mut literals = Self { ranges: Vec::new(), is_open: false };
        let (mut open, mut escaped, mut is_behind_space) = (None, false, true);
        for (at, c) in line.char_indices() {
            match open {
                _ if escaped => escaped = false,
                Some(_) if c == '\\' => escaped = true,
                Some((quote, start)) if c == quote => {
                    literals.ranges.push(start..at + 1);
                    open = None;
                }
                Some(_) => {}
                None if last.iter().any(|(quote, _)| *quote == c)
                    && !(c == '\'' && is_apostrophe(&line[..at])) =>
                {
                    if last.contains(&(c, Some(at))) {
                        literals.is_open = true
                    } else {
                        open = Some((c, at))
                    }
                }
                None if is_behind_space
                    && comment.is_some_and(|sign| line[at..].starts_with(sign)) =>
                {
                    literals.ranges.push(at..line.len());
                    literals.is_open = true;
                    return literals;
                }
                None => {}
            }
            is_behind_space = c.is_whitespace();
        }
        literals.is_open |= open.is_some();
        literals
    }

    /// Returns true if a position in the line is inside a literal.
    pub(super) fn hold(&self, place: usize) -> bool {
        let behind = self.ranges.partition_point(|range| range.end <= place);
        self.ranges.get(behind).is_some_and(|range| range.contains(&place))
    }
}

/// Returns true if a single quote after this text is an apostrophe: it follows a word that is not a string prefix.
fn is_apostrophe(before: &str) -> bool {
    let word: String = before.chars().rev().take_while(|c| c.is_alphanumeric()).take(3).collect();
    !word.is_empty()
        && !matches!(&*word.to_lowercase(), "f" | "r" | "b" | "u" | "rb" | "br" | "fr" | "rf")
}

/// Mark that begins and ends multi-line strings, and its places in a text.
struct Mark {
    sign: &'static str,
    /// Its first place at or behind an earlier position. It stays known, so that the text is searched only once for each mark.
    next: usize,
    /// Its last place.
    last: usize,
}

impl Mark {
    /// Returns the mark if the text contains it.
    fn new(sign: &'static str, text: &str) -> Option<Self> {
        steps::add(text.len());
        Some(Self { sign, next: text.find(sign)?, last: text.rfind(sign)? })
    }

    /// Returns the mark's first place between two positions. The first position must not decrease from call to call.
    fn find(&mut self, text: &str, between: &Range<usize>) -> Option<usize> {
        let start = between.start;
        if self.next < start && start <= self.last {
            let skipped = text[start..].find(self.sign)?;
            steps::add(skipped + self.sign.len());
            self.next = start + skipped;
        }
        let is_between = self.next >= start && self.next + self.sign.len() <= between.end;
        is_between.then_some(self.next)
    }
}

/// Multi-line strings, read forwards through a text.
pub(super) struct Strings<'a> {
    text: &'a str,
    marks: Vec<Mark>,
    language: Language,
    read: usize,
    /// Start of the last line that was read.
    line: usize,
    /// First character in this line that is not white space, if it was sought.
    code: Option<usize>,
    open: Option<&'static str>,
}

impl<'a> Strings<'a> {
    pub(super) fn new(text: &'a str, language: Language) -> Self {
        Self::with_marks(text, language, triple_quotes(language))
    }

    fn with_marks(text: &'a str, language: Language, marks: &'static [&'static str]) -> Self {
        let marks = marks.iter().filter_map(|sign| Mark::new(sign, text)).collect();
        Self { text, marks, language, read: 0, line: 0, code: None, open: None }
    }

    /// Continues at a later position, inside the string that a mark began.
    pub(super) fn restart(&mut self, place: usize, open: Option<&'static str>) {
        debug_assert!(place >= self.read);
        (self.read, self.open) = (place, open);
        self.begin_line(place);
    }

    /// Returns true if a position is inside a string that is closed later. Positions must be asked for in ascending order.
    pub(super) fn hold(&mut self, place: usize) -> bool {
        self.read_to(place);
        let last = |sign| self.marks.iter().find(|mark| mark.sign == sign).map(|mark| mark.last);
        self.open.and_then(last).is_some_and(|last| last >= place)
    }

    fn read_to(&mut self, place: usize) {
        while self.read < place && !self.marks.is_empty() {
            let mark = self.next_mark(place);
            let end = mark.map_or(place, |(at, _)| at);
            if let Some(newline) = self.text[self.read..end].rfind('\n') {
                self.begin_line(self.read + newline + 1);
            }
            self.read = end;
            let Some((at, sign)) = mark else { break };
            self.read += sign.len();
            let begins = self.open.is_none() && !self.is_quoted(at, sign);
            self.open = begins.then_some(sign);
        }
    }

    /// Returns the next mark before a position that begins or ends a string.
    fn next_mark(&mut self, place: usize) -> Option<(usize, &'static str)> {
        let (open, between) = (self.open, self.read..place);
        let marks = self.marks.iter_mut().filter(|mark| open.is_none_or(|sign| sign == mark.sign));
        marks.filter_map(|mark| Some((mark.find(self.text, &between)?, mark.sign))).min()
    }

    fn begin_line(&mut self, start: usize) {
        (self.line, self.code) = (start, None);
    }

    /// Returns true if a mark in the last line that was read is text of another string, or of a comment.
    fn is_quoted(&mut self, at: usize, sign: &str) -> bool {
        // A mark is not white space, so the line's code begins at the mark at the latest, and never behind an earlier mark.
        let code = *self.code.get_or_insert_with(|| {
            steps::add(at - self.line);
            at - self.text[self.line..at].trim_start().len()
        });
        let before = &self.text[code..at];
        let other = if sign.starts_with('"') { '\'' } else { '"' };
        before.starts_with(self.language.comment())
            || before.ends_with(other) && self.text[at + sign.len()..].starts_with(other)
    }
}

/// Multi-line strings between backticks, as in JavaScript and Go.
pub(super) struct Templates(Vec<Range<usize>>);

impl Templates {
    pub(super) fn new(text: &str, language: Language) -> Self {
        let (mut ranges, mut open) = (Vec::new(), None);
        let has_templates = triple_quotes(language).is_empty();
        for line in line_ranges(text).filter(|_| has_templates) {
            let content = &text[line.clone()];
            // The marks of a line come in pairs, unless a multi-line string begins or ends there.
            if content.contains("```") || content.matches('`').count().is_multiple_of(2) {
                continue;
            }
            match open.take() {
                Some(start) => ranges.push(start..line.start + content.find('`').unwrap_or(0)),
                None => open = content.rfind('`').map(|at| line.start + at),
            }
        }
        Self(ranges)
    }

    /// Returns true if a position is inside such a string.
    pub(super) fn hold(&self, place: usize) -> bool {
        let behind = self.0.partition_point(|range| range.end <= place);
        self.0.get(behind).is_some_and(|range| range.contains(&place))
    }
}

/// Returns the mark of the multi-line string in which a left context ends.
pub(super) fn string_at_end(left: &str, language: Language) -> Option<&'static str> {
    // In an answer, a backtick may be Markdown, so there it is not a mark.
    let marks = match triple_quotes(language) {
        [] => &["`"],
        marks => marks,
    };
    let mut strings = Strings::with_marks(left, language, marks);
    strings.read_to(left.len());
    let open = strings.open?;
    // If a left context begins within a string, strings and code are swapped. Code after the mark reveals that.
    let inside = left.rfind(open).map_or("", |at| &left[at..]);
    let is_code = |line: &str| {
        let first = line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        line.contains(" = ")
            || line.starts_with('@')
            || language.is_keyword(first) && (line.ends_with(':') || line.contains('('))
    };
    let is_text = !inside.lines().skip(1).map(str::trim).any(is_code);
    is_text.then_some(open)
}

/// Returns the mark of the multi-line string in which a left context ends, unless that string is a docstring.
pub(super) fn template_at_end(left: &str, language: Language) -> Option<&'static str> {
    let mark = string_at_end(left, language)?;
    let before = &left[..left.rfind(mark)?];
    let begins_line = unfinished_line(before).trim().is_empty();
    let code = before.trim_end();
    let is_docstring = begins_line && (code.is_empty() || code.ends_with(':'));
    (!is_docstring).then_some(mark)
}

/// Returns true if the hole is inside a string or a comment, so that its text may be sentences.
pub(super) fn is_text_hole(hole: &HoleContext<'_>) -> bool {
    let left = hole.known_left();
    is_text(left, hole.language) || Literals::new(unfinished_line(left), hole.language).is_open
}

/// Returns true if code ends in a multi-line string or comment.
pub(super) fn is_text(code: &str, language: Language) -> bool {
    let is_comment = language.spec().layout == BlockMarks::Braces
        && code.rfind("/*").is_some_and(|start| !code[start..].contains("*/"));
    is_comment || string_at_end(code, language).is_some()
}
