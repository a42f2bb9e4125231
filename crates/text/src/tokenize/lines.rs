//! Ids of any run of whole lines, from one tokenization of the text.
//!
//! No id spans two pieces. Pieces depend on the surrounding text in only one way: a run of whitespace gives its last character
//! to the following piece, unless the text ends there. A run of lines starts after a newline and ends before one, so both its
//! cuts are in whitespace (or at the text's own ends). Every piece between its first and its last non-whitespace character is
//! therefore also a piece of the whole text, and only the whitespace before and after them is tokenized again. Cutting the
//! whole text's ids at the newlines would be wrong: `\n\n` is a token, and so is `\n` with U+00A0.

use super::P50k;
use super::cache::PieceCache;
use super::classes::Class;
use super::set::IdSet;

/// Text tokenized once, from which the ids of any run of whole lines are cut.
///
/// Lines end at `\n`; any other whitespace is an ordinary character. Memory: two bytes for each id and 48 for each line.
///
/// ```
/// use repoformer_text::tokenize::{LineTokens, P50k, PieceCache};
/// let (p50k, mut cache) = (P50k, PieceCache::default());
/// let text = "if a:\n    b()\n\n    c()\n";
/// let tokens = LineTokens::new(&p50k, &mut cache, text);
///
/// // Lines 1 and 2 (from zero), without the newline that ends the last.
/// let mut ids = Vec::new();
/// tokens.slice_into(text, 6, 14, &mut cache, &mut ids);
/// assert_eq!(&text[6..14], "    b()\n");
/// assert_eq!(ids, p50k.encode("    b()\n"));
/// assert_eq!(ids, [50258, 275, 3419, 198]);
/// ```
#[derive(Debug, Clone)]
pub struct LineTokens {
    ids: Vec<u16>,
    lines: Vec<Line>,
    length: usize,
}

/// Line as the start and as the end of a run. Offsets are bytes of the text.
#[derive(Debug, Clone, Copy)]
struct Line {
    start: usize,
    /// Whitespace from `start` to here is tokenized again in a run that starts
    /// with this line; the ids from `first` on are unchanged.
    head: usize,
    first: usize,
    end: usize,
    /// Whitespace from here to `end` is tokenized again in a run that ends with
    /// this line; the ids before `last` are unchanged.
    tail: usize,
    last: usize,
}

impl LineTokens {
    /// Tokenizes `text` and records the position of each line's ids.
    pub fn new(p50k: &P50k, cache: &mut PieceCache, text: &str) -> Self {
        let mut notes = Notes::new(text);
        p50k.each_piece(text, text.len(), cache, |start, end, ids| {
            notes.piece(start, end);
            ids.push_into(&mut notes.ids);
        });
        notes.finish()
    }

    /// Appends the ids of `text[start..end]`, exactly as [`P50k::encode`] returns them for that string alone.
    ///
    /// `text` must be the text that was tokenized, `start` the start of a line, and `end` the end of a line (the offset of its
    /// `\n`, or the length of the text). Other offsets also give the right ids, but no faster than `encode`.
    ///
    /// # Panics
    ///
    /// If `text[start..end]` panics.
    pub fn slice_into(
        &self,
        text: &str,
        start: usize,
        end: usize,
        cache: &mut PieceCache,
        out: &mut Vec<u16>,
    ) {
        self.each_run(text, start, end, cache, |ids| out.extend_from_slice(ids));
    }

    /// Appends the distinct ids of `text[start..end]` in ascending order.
    /// `scratch` is empty before and after. See [`LineTokens::slice_into`].
    ///
    /// ```
    /// use repoformer_text::tokenize::{IdSet, LineTokens, P50k, PieceCache};
    /// let mut cache = PieceCache::default();
    /// let text = "a = a\nb = b";
    /// let tokens = LineTokens::new(&P50k, &mut cache, text);
    /// let mut ids = Vec::new();
    /// tokens.set_into(text, 0, 11, &mut cache, &mut IdSet::default(), &mut ids);
    /// assert_eq!(ids, [64, 65, 198, 257, 275, 796]);
    /// ```
    ///
    /// # Panics
    ///
    /// If `text[start..end]` panics.
    pub fn set_into(
        &self,
        text: &str,
        start: usize,
        end: usize,
        cache: &mut PieceCache,
        scratch: &mut IdSet,
        out: &mut Vec<u16>,
    ) {
        self.each_run(text, start, end, cache, |ids| scratch.insert_all(ids));
        scratch.drain_into(out);
    }

    /// Calls `visit` with the ids of `text[start..end]`, one run of ids at a time.
    #[inline]
    fn each_run(
        &self,
        text: &str,
        start: usize,
        end: usize,
        cache: &mut PieceCache,
        mut visit: impl FnMut(&[u16]),
    ) {
        let window = &text[start..end];
        let Some((first, last)) = self.bounds(text, start, end) else {
            P50k.each_piece(window, window.len(), cache, |_, _, ids| visit(ids.as_slice()));
            return;
        };
        let mut whitespace = |from: usize, to: usize, visit: &mut dyn FnMut(&[u16])| {
            if from < to {
                visit(cache.ids_of(text.as_bytes(), from, to).as_slice());
            }
        };
        if first.head >= end {
            whitespace(start, end, &mut visit);
            return;
        }
        whitespace(start, first.head, &mut visit);
        visit(self.ids.get(first.first..last.last).unwrap_or_default());
        whitespace(last.tail, end, &mut visit);
    }

    /// Returns the lines that start and end at these offsets, if such lines exist.
    fn bounds(&self, text: &str, start: usize, end: usize) -> Option<(&Line, &Line)> {
        let first = self.lines.binary_search_by_key(&start, |line| line.start).ok()?;
        let last = self.lines.binary_search_by_key(&end, |line| line.end).ok()?;
        (text.len() == self.length).then_some((&self.lines[first], &self.lines[last]))
    }
}

/// State of the lines of a text while its pieces are processed.
struct Notes<'a> {
    text: &'a str,
    ids: Vec<u16>,
    lines: Vec<Line>,
    /// Number of lines whose `head` and `first` are already set.
    known: usize,
    /// End of the last non-whitespace piece, and the number of ids up to there.
    body: (usize, usize),
    /// Start of the last whitespace piece, and the number of ids before it.
    space: (usize, usize),
}

impl<'a> Notes<'a> {
    fn new(text: &'a str) -> Self {
        let mut lines = Vec::with_capacity(text.len() / 32 + 1);
        lines.push(Line::starting(0));
        let ids = Vec::with_capacity(text.len() / 3 + 8);
        Self { text, ids, lines, known: 0, body: (0, 0), space: (0, 0) }
    }

    /// Processes the next piece, before its ids are appended.
    #[inline(always)]
    fn piece(&mut self, start: usize, end: usize) {
        if self.is_whitespace(start, end) {
            self.whitespace(start, end);
        } else {
            if self.known < self.lines.len() {
                self.body_after_whitespace(start);
            }
            self.body.0 = end;
        }
    }

    /// Returns true if a piece is whitespace, and not a space joined to the text after it.
    #[inline(always)]
    fn is_whitespace(&self, start: usize, end: usize) -> bool {
        let space = Some(Class::Space);
        Class::at(self.text, start) == space
            && (self.text.as_bytes().get(start) != Some(&b' ')
                || end == start + 1
                || Class::at(self.text, start + 1) == space)
    }

    /// Records the lines that end and start at the newlines of this piece.
    fn whitespace(&mut self, start: usize, end: usize) {
        if start == self.body.0 {
            self.body.1 = self.ids.len();
        }
        self.space = (start, self.ids.len());
        for at in start..end {
            if self.text.as_bytes().get(at) == Some(&b'\n') {
                self.end_line(at);
                self.lines.push(Line::starting(at + 1));
            }
        }
    }

    /// Sets the end of the leading whitespace for the lines that started in the whitespace before this piece. It ends before
    /// its last character, which is part of the same piece in every run that contains it.
    fn body_after_whitespace(&mut self, start: usize) {
        let joined = self.text.as_bytes().get(start) == Some(&b' ');
        for line in self.lines.iter_mut().skip(self.known) {
            (line.head, line.first) = if !joined && line.start <= self.space.0 {
                self.space
            } else {
                (start, self.ids.len())
            };
        }
        self.known = self.lines.len();
    }

    fn end_line(&mut self, end: usize) {
        if let Some(line) = self.lines.last_mut() {
            (line.end, (line.tail, line.last)) = (end, self.body);
        }
    }

    fn finish(mut self) -> LineTokens {
        let length = self.text.len();
        if self.body.0 == length {
            self.body.1 = self.ids.len();
        }
        self.end_line(length);
        // Only whitespace follows the start of these lines.
        for line in self.lines.iter_mut().skip(self.known) {
            (line.head, line.first) = (length, self.ids.len());
        }
        LineTokens { ids: self.ids, lines: self.lines, length }
    }
}

impl Line {
    fn starting(start: usize) -> Self {
        Self { start, head: 0, first: 0, end: 0, tail: 0, last: 0 }
    }
}
