//! Escaping of text for HTML, SVG and file names, and formatting of counts, means and intervals.

use repoformer_text::visible::visible;

use crate::statistics::{Estimate, Interval};

/// Escapes a text for the content and the quoted attributes of HTML and SVG. Hidden characters, some of which XML forbids, are
/// [written out](visible).
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Cuts a text to `most` characters, the last of which is `…`.
pub(super) fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.into(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Turns a text into a file name with only letters, digits, `.`, `_` and `-`.
pub(super) fn file_name(name: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = name.chars().take(80).map(|c| if kept(c) { c } else { '-' }).collect();
    match name.trim_matches(['.', '-']) {
        "" => "system".into(),
        trimmed => trimmed.to_lowercase(),
    }
}

/// Formats a count with commas between thousands.
pub(super) fn format_thousands(count: usize) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a number of tasks: `1 task`, `2,000 tasks`.
pub(super) fn tasks(count: usize) -> String {
    format!("{} task{}", format_thousands(count), if count == 1 { "" } else { "s" })
}

/// Formats a value between 0 and 1 as tables show it: `36.21`.
pub(super) fn hundredths(value: f64) -> String {
    format!("{:.2}", value * 100.0)
}

/// Formats an interval: `[34.02, 38.40]`.
pub(super) fn bounds(Interval { low, high }: Interval, show: impl Fn(f64) -> String) -> String {
    format!("[{}, {}]", show(low), show(high))
}

/// Formats a mean with its interval: `36.21 [34.02, 38.40]`.
pub(super) fn with_interval(Estimate { mean, interval }: Estimate) -> String {
    let mean = hundredths(mean);
    match interval {
        None => mean,
        Some(interval) => format!("{mean} {}", bounds(interval, hundredths)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_text_and_hidden_characters_show() {
        assert_eq!(
            escape("</script><a href=\"x\" onclick='y'>&"),
            "&lt;/script&gt;&lt;a href=&quot;x&quot; onclick=&#39;y&#39;&gt;&amp;"
        );
        assert_eq!(escape("a\u{202e}b\0\r"), "a⟨U+202E⟩b⟨U+0000⟩⟨U+000D⟩");
        assert_eq!(escape("\u{2028}\u{feff}"), "⟨U+2028⟩⟨U+FEFF⟩");
        assert_eq!(escape("né\t日\n"), "né\t日\n");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(shorten("été", 3), "été");
        assert_eq!(shorten("étés", 3), "ét…");
    }

    #[test]
    fn counts_are_set_for_readers() {
        let grouped = [7, 1000, 1_234_567].map(format_thousands);
        assert_eq!(grouped, ["7", "1,000", "1,234,567"]);
        assert_eq!([tasks(1), tasks(2000)], ["1 task", "2,000 tasks"]);
    }
}
