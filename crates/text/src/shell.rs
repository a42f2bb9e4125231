//! Words of shell commands.

/// Returns true for a character that has no special meaning to the shell in any position.
pub fn is_harmless(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-./:,=+@%".contains(c)
}

/// Quotes a word for the shell.
///
/// ```
/// use repoformer_text::shell::quote;
/// assert_eq!((&*quote("a.jsonl"), &*quote("it's; x")), ("a.jsonl", r"'it'\''s; x'"));
/// ```
pub fn quote(word: &str) -> String {
    if !word.is_empty() && word.chars().all(is_harmless) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
