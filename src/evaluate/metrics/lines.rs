//! Lines as metrics compare them: stripped as in Python, without blank ones.

use crate::text::lines::{Lines, strip};

/// Joins the first `limit` non-blank lines of a text, each stripped, by `\n`, and counts them.
pub(crate) fn stripped_lines(text: &str, limit: usize) -> (String, usize) {
    let lines = Lines::new(text);
    let (mut joined, mut count) = (String::with_capacity(text.len()), 0);
    let stripped = lines.iter().map(strip).filter(|line| !line.is_empty());
    for line in stripped.take(limit) {
        if count > 0 {
            joined.push('\n');
        }
        joined.push_str(line);
        count += 1;
    }
    (joined, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_go_and_the_rest_is_cut() {
        let text = " a \n\n\x1f\n\tb c\u{a0}\u{2028}d";
        assert_eq!(stripped_lines(text, usize::MAX), ("a\nb c\nd".into(), 3));
        assert_eq!(stripped_lines(text, 2), ("a\nb c".into(), 2));
        assert_eq!(stripped_lines(text, 0), (String::new(), 0));
    }
}
