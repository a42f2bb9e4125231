//! The completion in a server's text: without the white space at the prompt's end, up to the first stop text.
//!
//! A request has at most four stop texts. Some servers keep stop texts in the text that they return (TGI), and others ignore
//! them. So every text is cut here at every stop text: as a whole by [`AnswerCut`], and piece by piece by [`CompletionCut`].

use std::collections::HashMap;
use std::ops::Range;

use super::{Ending, ending};

/// Maximum number of stop texts in a request: OpenAI's API, vLLM and TGI refuse more.
pub const MOST_STOPS: usize = 4;

/// Determines which stop texts could begin in the withheld white space. A server would find such a text right at the end of the
/// prompt, so it is not sent; only the cut here uses it.
pub(super) fn find_withheld(stops: &[String], removed: &str) -> Vec<bool> {
    if removed.is_empty() {
        return vec![false; stops.len()];
    }
    let machine = Machine::new(stops.iter().map(String::as_str));
    let (mut at, mut is_in) = (0, vec![false; machine.states.len()]);
    for byte in removed.bytes() {
        at = machine.step(at, byte);
        is_in[at] = true;
    }
    // If a text ends in the white space, so do its suffixes.
    let mut longest_first: Vec<usize> = (1..machine.states.len()).collect();
    longest_first.sort_unstable_by_key(|state| std::cmp::Reverse(machine.states[*state].length));
    for state in longest_first {
        is_in[machine.states[state].shorter] |= is_in[state];
    }
    let mut begins = vec![false; machine.states.len()];
    while at != 0 {
        begins[at] = true;
        at = machine.states[at].shorter;
    }
    let is_held_back = |stop: &String| {
        let (mut at, mut is_begun) = (0, false);
        for byte in stop.bytes() {
            at = machine.step(at, byte);
            is_begun |= begins[at];
        }
        is_begun || at != 0 && is_in[at]
    };
    stops.iter().map(is_held_back).collect()
}

/// Returns true if the text contains one of the stop texts.
pub(super) fn holds_any(stops: &[String], text: &str) -> bool {
    Machine::new(stops.iter().map(String::as_str)).find(&mut 0, text).is_some()
}

/// Automaton that finds the stop text that is complete first, as a server does while it writes. Each byte of the text takes one
/// step, regardless of the number and length of the stop texts (Aho–Corasick).
#[derive(Debug, Clone, Default)]
struct Machine {
    /// Next state for a state and a byte that continues a stop text.
    next: HashMap<(usize, u8), usize>,
    states: Vec<CutState>,
}

/// State of a [`Machine`]: the longest suffix of the text so far that may begin a stop text.
#[derive(Debug, Clone, Copy, Default)]
struct CutState {
    /// Length of this suffix in bytes.
    length: usize,
    /// State of the longest shorter suffix that may begin a stop text.
    shorter: usize,
    /// Length of the longest stop text that ends here; 0 if none does.
    complete: usize,
}

impl Machine {
    fn new<'s>(stops: impl IntoIterator<Item = &'s str>) -> Self {
        let mut machine = Self { next: HashMap::new(), states: vec![CutState::default()] };
        for stop in stops {
            let mut at = 0;
            for (length, byte) in (1..).zip(stop.bytes()) {
                let number = machine.states.len();
                at = *machine.next.entry((at, byte)).or_insert(number);
                if at == number {
                    machine.states.push(CutState { length, ..CutState::default() });
                }
            }
            machine.states[at].complete = stop.len();
        }
        // Shorter ones first.
        let mut edges: Vec<_> = machine.next.iter().map(|(from, to)| (*from, *to)).collect();
        edges.sort_unstable_by_key(|(_, to)| machine.states[*to].length);
        for ((from, byte), to) in edges {
            let shorter = match from {
                0 => 0,
                _ => machine.step(machine.states[from].shorter, byte),
            };
            machine.states[to].shorter = shorter;
            if machine.states[to].complete == 0 {
                machine.states[to].complete = machine.states[shorter].complete;
            }
        }
        machine
    }

    fn step(&self, mut at: usize, byte: u8) -> usize {
        loop {
            match self.next.get(&(at, byte)) {
                Some(next) => return *next,
                None if at == 0 => return 0,
                None => at = self.states[at].shorter,
            }
        }
    }

    /// Reads a text, starting in state `at`, up to the end of the first stop text. Returns the position of this end and the
    /// stop text's length.
    fn find(&self, at: &mut usize, text: &str) -> Option<(usize, usize)> {
        if self.next.is_empty() {
            return None;
        }
        for (end, byte) in (1..).zip(text.bytes()) {
            *at = self.step(*at, byte);
            let complete = self.states[*at].complete;
            if complete > 0 {
                return Some((end, complete));
            }
        }
        None
    }

    /// Returns the length of a text up to the first stop text.
    fn before_stop(&self, text: &str) -> usize {
        self.find(&mut 0, text).map_or(text.len(), |(end, length)| end - length)
    }

    /// Returns the length of the text's suffix that may begin a stop text.
    fn pending(&self, at: usize) -> usize {
        self.states.get(at).map_or(0, |state| state.length)
    }
}

/// Splits the stop texts into those held back and those sent.
fn split_stops<'s>(stops: &'s [String], removed: &str) -> [Vec<&'s str>; 2] {
    let held_back = find_withheld(stops, removed);
    [true, false].map(|is_held_back| {
        let those = stops.iter().zip(&held_back).filter(|(_, is)| **is == is_held_back);
        those.map(|(stop, _)| stop.as_str()).collect()
    })
}

/// Cut of the completions that a server returned for one prompt.
///
/// ```
/// use repoformer_core::completion::AnswerCut;
/// let cut = AnswerCut::new(&["\ndef ".into()], "\n    ");
/// assert_eq!(cut.span("\n    return x\ndef g():"), 5..13);
/// ```
#[derive(Debug)]
pub struct AnswerCut<'r> {
    sent: Machine,
    held_back: Machine,
    withheld: ending::WithheldSpace<'r>,
}

impl<'r> AnswerCut<'r> {
    /// Creates a cut at these stop texts, for a prompt that was sent without the white space `removed` at its end.
    pub fn new(stops: &[String], removed: &'r str) -> Self {
        let [held_back, sent] = split_stops(stops, removed).map(Machine::new);
        Self { sent, held_back, withheld: ending::WithheldSpace::new(removed) }
    }

    /// Returns the range of the completion in a server's text.
    pub fn span(&self, written: &str) -> Range<usize> {
        self.span_with(written, |text| self.withheld.restore(text))
    }

    /// Returns the range of the completion, if `restore` removes the withheld white space from the beginning.
    pub(super) fn span_with<'w>(
        &self,
        written: &'w str,
        restore: impl Fn(&'w str) -> &'w str,
    ) -> Range<usize> {
        let end = self.sent.before_stop(written);
        let text = restore(&written[..end]);
        let start = end - text.len();
        start..start + self.held_back.before_stop(text)
    }
}

/// Cut of a completion that arrives in pieces.
///
/// ```
/// use repoformer_core::completion::CompletionCut;
/// let mut cut = CompletionCut::new(["\ndef ".into()], "\n    ");
/// let pieces = ["\n    ret", "urn x\nde", "f g():"].map(|piece| cut.pass(piece));
/// assert_eq!((pieces.concat(), cut.stop_text()), ("return x".into(), Some("\ndef ")));
/// ```
#[derive(Debug, Clone, Default)]
pub struct CompletionCut {
    in_text: StopTexts,
    withheld: WithheldSpace,
    in_completion: StopTexts,
}

impl CompletionCut {
    /// Creates a cut at these stop texts, for a prompt that was sent without the white space `removed` at its end.
    pub fn new(stops: impl IntoIterator<Item = String>, removed: &str) -> Self {
        let stops: Vec<String> = stops.into_iter().filter(|stop| !stop.is_empty()).collect();
        let [held_back, sent] = split_stops(&stops, removed);
        Self {
            in_text: StopTexts::new(&sent),
            withheld: WithheldSpace::new(removed),
            in_completion: StopTexts::new(&held_back),
        }
    }

    /// Reads a piece of the server's text, and returns the next piece of the completion: without text that may turn out to
    /// begin a stop text.
    pub fn pass(&mut self, piece: &str) -> String {
        let text = self.in_text.pass(piece);
        let mut restored = self.withheld.pass(&text);
        if self.in_text.found.is_some() {
            restored += &self.withheld.rest();
        }
        self.in_completion.pass(&restored)
    }

    /// Returns the stop text that ended the completion.
    pub fn stop_text(&self) -> Option<&str> {
        self.in_completion.found.as_deref().or(self.in_text.found.as_deref())
    }

    /// Returns the rest of the completion, once the server has written all of its text.
    pub fn finish(&mut self) -> String {
        let text = self.in_text.rest();
        let restored = self.withheld.pass(&text) + &self.withheld.rest();
        self.in_completion.pass(&restored) + &self.in_completion.rest()
    }

    /// Returns the text that is not part of the completion because it continues the line before the completion.
    pub fn dropped_text(&self) -> Option<&str> {
        self.withheld.dropped.as_deref()
    }
}

/// Search for stop texts in a text that arrives in pieces.
#[derive(Debug, Clone, Default)]
struct StopTexts {
    machine: Machine,
    /// State of the machine.
    at: usize,
    /// End of the text so far: its first `passed` bytes are passed on, and the rest may begin a stop text.
    held: String,
    passed: usize,
    /// Stop text that ended the text.
    found: Option<String>,
}

impl StopTexts {
    fn new(texts: &[&str]) -> Self {
        Self { machine: Machine::new(texts.iter().copied()), ..Self::default() }
    }

    fn pass(&mut self, piece: &str) -> String {
        if self.found.is_some() {
            return String::new();
        }
        let before = self.held.len();
        self.held.push_str(piece);
        let end = match self.machine.find(&mut self.at, piece) {
            Some((end, length)) => {
                self.held.truncate(before + end);
                let found = self.held.split_off(before + end - length);
                self.found = Some(found);
                self.held.len()
            }
            None => self.held.len() - self.machine.pending(self.at),
        };
        let passed = self.held[self.passed..end].to_owned();
        self.passed = end;
        // Not for each piece, because the held text may be long.
        if 2 * self.passed >= self.held.len() {
            self.held.drain(..std::mem::take(&mut self.passed));
        }
        passed
    }

    /// Returns the text that was held back and is not a stop text after all.
    fn rest(&mut self) -> String {
        let passed = std::mem::take(&mut self.passed);
        std::mem::take(&mut self.held).split_off(passed)
    }
}

/// Removal of withheld white space from the beginning of a text that arrives in pieces.
#[derive(Debug, Clone, Default)]
struct WithheldSpace {
    removed: String,
    /// Text so far; `None` once the white space has been removed.
    written: Option<String>,
    /// Whether the line before the completion has ended: its line end was not withheld, or the server has written it.
    is_behind_line: bool,
    dropped: Option<String>,
}

impl WithheldSpace {
    fn new(removed: &str) -> Self {
        let written = (!removed.is_empty()).then(String::new);
        let is_behind_line = !removed.contains('\n');
        Self { removed: removed.to_owned(), written, is_behind_line, dropped: None }
    }

    fn pass(&mut self, text: &str) -> String {
        let Some(written) = &mut self.written else { return text.to_owned() };
        written.push_str(text);
        self.is_behind_line |= text.contains('\n');
        // White space is recognized by the text after it. If the model continues a line, the text is decided at the end of that
        // line.
        if !self.is_behind_line || text.trim().is_empty() {
            return String::new();
        }
        let restored = Ending::BeforeWhitespace.restore(&self.removed, written);
        if restored.trim().is_empty() { String::new() } else { self.rest() }
    }

    fn rest(&mut self) -> String {
        let Some(written) = self.written.take() else { return String::new() };
        let restored = Ending::BeforeWhitespace.restore(&self.removed, &written);
        let dropped = written[..written.len() - restored.len()].trim();
        self.dropped = (!dropped.is_empty()).then(|| dropped.to_owned());
        restored.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn in_pieces(cut: &mut CompletionCut, pieces: &[&str]) -> String {
        let passed: String = pieces.iter().map(|piece| cut.pass(piece)).collect();
        passed + &cut.finish()
    }

    #[test]
    fn a_stream_ends_at_every_stop_text() {
        let all = ["<a>", "<b>", "<c>", "<d>", "<end>", "é="].map(String::from);
        let cut = CompletionCut::new(all, "");
        let written = |pieces: &[&str]| {
            let mut cut = cut.clone();
            (in_pieces(&mut cut, pieces), cut.stop_text().map(str::to_owned))
        };
        let ended = |text: &str, stop: &str| (text.to_owned(), Some(stop.to_owned()));
        assert_eq!(written(&["x = 1", "<e", "nd>y", "z"]), ended("x = 1", "<end>"));
        // A stop text of the request, which the server keeps in its text.
        assert_eq!(written(&["x = 1<", "a", ">"]), ended("x = 1", "<a>"));
        assert_eq!(written(&["x <", "e", "nd", "ed"]), ("x <ended".into(), None));
        assert_eq!(written(&["<<end", ">"]), ended("<", "<end>"));
        assert_eq!(written(&["a é", "= é"]), ended("a ", "é="));
        assert_eq!(written(&["a é"]), ("a é".into(), None));
    }

    #[test]
    fn what_may_begin_a_stop_text_is_held_back() {
        let mut cut = CompletionCut::new(["\n\n".into(), "<|file_sep|>".into()], "");
        assert_eq!(cut.pass("x = 1\n"), "x = 1");
        assert_eq!(cut.pass("y <|fi"), "\ny ");
        assert_eq!(cut.pass("m|>"), "<|fim|>");
        assert_eq!(cut.pass("<|file_sep|>z"), "");
        assert_eq!(cut.stop_text(), Some("<|file_sep|>"));
        assert_eq!((cut.pass("more"), cut.finish()), (String::new(), String::new()));
    }

    #[test]
    fn a_stream_has_the_text_of_the_whole_as_soon_as_it_is_known() {
        let texts = [
            "\n    return x\n", " # c\n    return x", "x = 1", "  x", "\n\n  y\n", "\n    \n x",
            "a b\nc\n", "", " ", "\n",
        ];
        for removed in ["\n    ", "\n", " ", "\n\n", "\n\n    "] {
            for text in texts {
                let whole = Ending::BeforeWhitespace.restore(removed, text);
                let mut cut = CompletionCut::new([], removed);
                let mut passed = String::new();
                for c in text.chars() {
                    passed += &cut.pass(&c.to_string());
                    assert!(whole.starts_with(&passed), "{removed:?} {text:?}: {passed:?}");
                }
                assert_eq!(passed + &cut.finish(), whole, "{removed:?} {text:?}");
            }
        }
        let mut cut = CompletionCut::new([], " ");
        assert_eq!(cut.pass("w0 "), "w0 ");
        let mut cut = CompletionCut::new([], "\n    ");
        assert_eq!(cut.pass("return total"), "");
        assert_eq!((&*cut.finish(), cut.dropped_text()), ("", Some("return total")));
    }

    proptest! {
        #[test]
        fn pieces_make_the_whole(
            stops in proptest::collection::vec("[ab\n ]{1,3}", 0..4),
            removed in "[\n ]{0,3}",
            pieces in proptest::collection::vec("[ab\n ]{0,3}", 0..9),
        ) {
            let written = pieces.concat();
            let whole = &written[AnswerCut::new(&stops, &removed).span(&written)];
            let mut cut = CompletionCut::new(stops.clone(), &removed);
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            prop_assert_eq!(in_pieces(&mut cut, &pieces), whole);
            // No stop text of the request remains, nor one that begins after the white space.
            prop_assert!(!split_stops(&stops, &removed)[1].iter().any(|stop| whole.contains(stop)));
            prop_assert!(!stops.iter().any(|stop| whole.contains(stop.as_str())));
        }

        #[test]
        fn what_could_begin_in_white_space_is_held_back(
            stops in proptest::collection::vec("[ \n]{0,4}x?", 0..6), removed in "[ \n]{0,6}",
        ) {
            let begins = |stop: &String| {
                let mut lengths = 1..stop.len() + 1;
                lengths.any(|length| removed.ends_with(&stop[..length]))
            };
            let is_in = |stop: &String| !stop.is_empty() && removed.contains(stop.as_str());
            let slow: Vec<bool> = stops.iter().map(|stop| begins(stop) || is_in(stop)).collect();
            prop_assert_eq!(find_withheld(&stops, &removed), slow);
            prop_assert_eq!(holds_any(&stops, &removed), stops.iter().any(is_in));
        }
    }
}
