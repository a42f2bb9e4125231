//! Escaping of characters that are invisible or change how others are displayed.

use std::borrow::Cow;
use std::fmt::Write;

/// Writes control characters except newline and tab, and characters that reorder or hide text, as `⟨U+202E⟩`: untrusted text
/// must neither control a terminal nor pass for another text.
///
/// ```
/// use repoformer_text::visible::visible;
/// assert_eq!(visible("né\t日\n"), "né\t日\n");
/// assert_eq!(visible("\x1b[2Ja\u{202e}b\r"), "⟨U+001B⟩[2Ja⟨U+202E⟩b⟨U+000D⟩");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    written_out(text, is_hidden)
}

/// Escapes newlines and tabs as well, for a cell of a table.
pub fn visible_in_line(text: &str) -> Cow<'_, str> {
    written_out(text, |c| matches!(c, '\n' | '\t') || is_hidden(c))
}

fn written_out(text: &str, is_hidden: fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            // Writing to a string cannot fail.
            let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out.into()
}

/// Returns true if a character is invisible, or changes how others are displayed. `report/page/script/code.js` has the same
/// ranges.
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{fffe}' | '\u{ffff}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
