//! Identifiers as CrossCodeEval's scores compare them (`scripts/eval_utils.py`), and texts without comments.

use std::borrow::Cow;

use super::Language;
use super::syntax::Syntax;
use crate::tokenize::is_word;

/// Returns the identifiers of a piece of code in order, repeats included, by CrossCodeEval's rule: runs of `\w` outside string
/// literals that begin with an ASCII letter or `_` and are not keywords. Comments are included; CrossCodeEval removes them
/// first with [`without_comment_signs`].
///
/// CrossCodeEval removes string literals before it looks for words, so it reads `a"x"b` as one word `ab`; this function returns
/// two words. [`bare_identifiers`] returns one.
///
/// ```
/// use repoformer_text::language::{Language, identifiers};
/// let found = identifiers("return self.names['x'] or True", Language::Python);
/// assert_eq!(found, ["self", "names", "True"]);
/// ```
pub fn identifiers(text: &str, language: Language) -> Vec<&str> {
    words(text, language, Some(Strings::default()))
}

/// Returns the identifiers of a text whose string literals have been removed, in order; remaining quotes have no meaning.
///
/// ```
/// use repoformer_text::language::{Language, bare_identifiers, without_strings};
/// let bare = without_strings("f(a\"x\"b, \"c\\'d'\\\n\")");
/// assert_eq!(bare_identifiers(&bare, Language::Python), ["f", "ab", "c"]);
/// ```
pub fn bare_identifiers(text: &str, language: Language) -> Vec<&str> {
    words(text, language, None)
}

/// Greatest number of names kept of a chain. Every prefix of a chain may be looked up, and no definition is nested so deeply.
const LONGEST_CHAIN: usize = 64;

/// Returns the chains of names in a line, such as `["a", "b"]` for `a.b(c)`, without keywords and strings. If a chain begins
/// after a dot, its first element is `"this"`, `"super"` or `""`. Only the first 64 names of a longer chain are kept.
pub fn chains(line: &str, language: Language) -> Vec<Vec<&str>> {
    let mut chains: Vec<Vec<&str>> = Vec::new();
    let mut end = 0;
    for name in identifiers(line, language) {
        let start = name.as_ptr().addr() - line.as_ptr().addr();
        let between = line[end..start].trim();
        match chains.last_mut() {
            Some(chain) if matches!(between, "." | "?." | "::") => {
                if chain.len() < LONGEST_CHAIN {
                    chain.push(name);
                }
            }
            _ if between.ends_with('.') => {
                let object = match between.trim_end_matches(['.', '?']) {
                    object if object.ends_with("this") => "this",
                    object if object.ends_with("super") || object.ends_with("base") => "super",
                    _ => "",
                };
                chains.push(vec![object, name]);
            }
            _ => chains.push(vec![name]),
        }
        end = start + name.len();
    }
    chains
}

/// Returns the identifiers of a text; with `strings`, only those outside string literals.
fn words(text: &str, language: Language, mut strings: Option<Strings>) -> Vec<&str> {
    if text.is_ascii() {
        return ascii_words(text, language, strings);
    }
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if let Some(end) = strings.as_mut().and_then(|strings| strings.end(text, at)) {
            at = end;
            continue;
        }
        if !is_word(first) {
            at += first.len_utf8();
            continue;
        }
        let rest = &text[at..];
        let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        at += word.len();
        let begins = first == '_' || first.is_ascii_alphabetic();
        if begins && !language.is_keyword(word) {
            found.push(word);
        }
    }
    found
}

/// Returns the identifiers of an ASCII text, byte by byte.
fn ascii_words(text: &str, language: Language, mut strings: Option<Strings>) -> Vec<&str> {
    let bytes = text.as_bytes();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = bytes.get(at) {
        if !is_part(first) {
            let end = strings.as_mut().and_then(|strings| strings.end(text, at));
            at = end.unwrap_or(at + 1);
            continue;
        }
        let length = bytes[at..].iter().position(|byte| !is_part(byte));
        let word = &text[at..at + length.unwrap_or(bytes.len() - at)];
        at += word.len();
        if !first.is_ascii_digit() && !language.is_keyword(word) {
            found.push(word);
        }
    }
    found
}

/// Returns a text without its string literals as CrossCodeEval finds them: from `"` or `'` to the next quote of the same kind,
/// across lines too, with `\` escaping any character except a newline. An unpaired quote stays, as does a prefix such as the
/// `f` in `f""`.
///
/// ```
/// use repoformer_text::language::without_strings;
/// assert_eq!(without_strings("f(\"a\\\"b\", r'c', 'd)"), "f(, r, 'd)");
/// ```
pub fn without_strings(text: &str) -> Cow<'_, str> {
    let mut strings = Strings::default();
    let mut cut = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\'', &text.as_bytes()[at..]) {
        let start = at + found;
        at = match strings.end(text, start) {
            Some(end) => {
                cut.push(start..end);
                end
            }
            None => start + 1,
        };
    }
    without(text, cut.into_iter().map(|range| (range, "")))
}

/// Returns a text without everything from `#` or `//` to the end of the line, even in strings and in any language: this is how
/// CrossCodeEval removes comments.
///
/// ```
/// use repoformer_text::language::without_comment_signs;
/// assert_eq!(without_comment_signs("a = b // c # d\ne = '#'\n"), "a = b \ne = '\n");
/// ```
pub fn without_comment_signs(text: &str) -> Cow<'_, str> {
    if memchr::memchr2(b'#', b'/', text.as_bytes()).is_none() {
        return text.into();
    }
    let mut cut = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.strip_suffix('\n').unwrap_or(line);
        let sign = content.find('#').into_iter().chain(content.find("//"));
        if let Some(sign) = sign.min() {
            cut.push((start + sign..start + content.len(), ""));
        }
        start += line.len();
    }
    without(text, cut.into_iter())
}

/// Returns a text without its comments, which are found by the language's grammar. Docstrings and strings stay, and so do the
/// newlines in a comment, so that line numbers do not change. The text may begin and end anywhere in a file. If its parse takes
/// too much time or memory, the text is returned unchanged.
///
/// ```
/// use repoformer_text::language::{Language, without_comments};
/// assert_eq!(without_comments("x = '#' # why\n", Language::Python), "x = '#' \n");
/// assert_eq!(without_comments("int/* a\n b */x = 7 / 2; // c", Language::Java), "int\nx = 7 / 2; ");
/// ```
pub fn without_comments(text: &str, language: Language) -> Cow<'_, str> {
    parse_without_comments(text, language).unwrap_or(text.into())
}

/// Returns a text [`without_comments`], or `None` if it cannot be parsed within the limits.
pub fn parse_without_comments(text: &str, language: Language) -> Option<Cow<'_, str>> {
    let syntax = Syntax::parse(text, language)?;
    let mut cut = Vec::new();
    for comment in syntax.comments() {
        // Keep the newlines by cutting around them.
        let mut start = comment.start;
        for line in text[comment.clone()].split_inclusive('\n') {
            let content = line.strip_suffix('\n').unwrap_or(line);
            cut.push((start..start + content.len(), ""));
            start += line.len();
        }
        // `return/**/x` is two words.
        let before = text[..comment.start].chars().next_back();
        let behind = text[comment.end..].chars().next();
        let joins = !text[comment.clone()].contains('\n')
            && before.is_some_and(is_word)
            && behind.is_some_and(is_word);
        if let (true, Some((_, instead))) = (joins, cut.last_mut()) {
            *instead = " ";
        }
    }
    Some(without(text, cut.into_iter()))
}

/// Replaces each range, in order, by another text.
fn without<'a>(
    text: &'a str,
    cut: impl Iterator<Item = (std::ops::Range<usize>, &'static str)>,
) -> Cow<'a, str> {
    let mut kept = String::new();
    let mut from = 0;
    for (range, instead) in cut.filter(|(range, _)| !range.is_empty()) {
        kept.push_str(&text[from..range.start]);
        kept.push_str(instead);
        from = range.end;
    }
    if from == 0 {
        return text.into();
    }
    kept.push_str(&text[from..]);
    kept.into()
}

/// String literals by CrossCodeEval's pattern `"([^"\\]*(\\.[^"\\]*)*)"|'([^'\\]*(\\.[^'\\]*)*)'`, found from left to
/// right.
#[derive(Default)]
struct Strings {
    /// Positions up to which the last unmatched `"` and the last unmatched `'` have already searched for a closing quote.
    /// Escaped quotes before these positions cannot be closed either. Without this memory, odd texts would take quadratic time.
    open_until: [usize; 2],
}

impl Strings {
    /// Returns the end of the literal that begins at `at`; `None` if no literal begins there.
    fn end(&mut self, text: &str, at: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let quote = bytes[at];
        let open_until = match quote {
            b'"' => &mut self.open_until[0],
            b'\'' => &mut self.open_until[1],
            _ => return None,
        };
        if at < *open_until {
            return None;
        }
        let mut next = at + 1;
        loop {
            next += memchr::memchr2(quote, b'\\', &bytes[next..]).unwrap_or(bytes.len() - next);
            match bytes.get(next) {
                Some(&byte) if byte == quote => return Some(next + 1),
                Some(_) if bytes.get(next + 1).is_some_and(|&byte| byte != b'\n') => next += 2,
                _ => {
                    *open_until = next;
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every prefix of a chain is stored in some index: prefixes of a chain of any length would fill the memory.
    #[test]
    fn a_chain_has_a_bound() {
        let line = format!("{}b = x.y", "a.".repeat(10_000));
        let found = chains(&line, Language::Python);
        let lengths: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(lengths, [LONGEST_CHAIN, 2]);
    }

    /// Matches the pattern one character at a time, from every position independently.
    fn naive_string_end(text: &[char], at: usize) -> Option<usize> {
        let quote = *text.get(at).filter(|c| matches!(c, '"' | '\''))?;
        let mut next = at + 1;
        loop {
            match *text.get(next)? {
                '\\' => match *text.get(next + 1)? {
                    '\n' => return None,
                    _ => next += 2,
                },
                c if c == quote => return Some(next + 1),
                _ => next += 1,
            }
        }
    }

    /// Removes strings, then finds words: the reference's two steps.
    fn naive_without_strings(text: &str) -> String {
        let text: Vec<char> = text.chars().collect();
        let (mut kept, mut at) = (String::new(), 0);
        while at < text.len() {
            match naive_string_end(&text, at) {
                Some(end) => at = end,
                None => {
                    kept.push(text[at]);
                    at += 1;
                }
            }
        }
        kept
    }

    fn naive_identifiers(text: &str, language: Language) -> Vec<String> {
        let is_separator = |c: char| !(c == '_' || Some(c).is_some_and(is_word));
        let words = text.split(is_separator).filter(|word| {
            word.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
                && !language.is_keyword(word)
        });
        words.map(str::to_owned).collect()
    }

    proptest! {
        #[test]
        fn strings_and_identifiers_equal_the_definition(text in r#"[a1_é" '\\\n#]{0,40}"#) {
            let stripped = naive_without_strings(&text);
            prop_assert_eq!(without_strings(&text), stripped.as_str());
            for language in Language::ALL {
                // A marker in place of each string keeps the surrounding words apart.
                let mut strings = Strings::default();
                let (mut marked, mut at) = (String::new(), 0);
                while let Some(c) = text[at..].chars().next() {
                    if let Some(end) = strings.end(&text, at) {
                        marked.push(';');
                        at = end;
                    } else {
                        marked.push(c);
                        at += c.len_utf8();
                    }
                }
                prop_assert_eq!(identifiers(&text, language), naive_identifiers(&marked, language));
                prop_assert_eq!(bare_identifiers(&stripped, language), naive_identifiers(&stripped, language));
            }
        }

        #[test]
        fn comments_leave_every_line_its_number(text in r#"[a /*\n#"'`\\{}]{0,60}"#) {
            for language in Language::ALL {
                let left = without_comments(&text, language);
                prop_assert_eq!(left.matches('\n').count(), text.matches('\n').count());
                prop_assert!(left.len() <= text.len());
            }
        }
    }

    /// Expected values derived by hand from CrossCodeEval's `extract_identifiers`, as quirk S5 describes it.
    #[test]
    fn identifiers_are_words_that_begin_well_and_are_no_keyword() {
        let of = |text| identifiers(text, Language::Python);
        assert_eq!(of("for x in 1a, naïve, éa, _9: None"), ["x", "naïve", "_9"]);
        assert_eq!(of("f'{a}' + \"b\nc\" + d"), ["f", "d"]);
        assert_eq!(of("it's # isn't"), ["it", "t"]);
        assert_eq!(of("don't stop"), ["don", "t", "stop"]);
        assert_eq!(of("'a\\\nb' c"), ["a", "b", "c"]);
        assert_eq!(identifiers("a\"x\"b", Language::Java), ["a", "b"]);
        assert_eq!(bare_identifiers(&without_strings("a\"x\"b"), Language::Java), ["ab"]);
        let text = "await foo.map((x: number) => x as string)";
        assert_eq!(
            identifiers(text, Language::TypeScript),
            ["await", "foo", "map", "x", "number", "x", "as", "string"]
        );
    }

    #[test]
    fn open_quotes_take_no_square_of_time() {
        let text = format!("\"{}", "\\\"".repeat(1 << 19));
        assert_eq!(without_strings(&text).len(), text.len());
        assert!(identifiers(&text, Language::CSharp).is_empty());
    }

    #[test]
    fn comments_go_and_what_looks_like_them_stays() {
        let java = "/** Doc. */\nString s = \"// no\"; // yes\nreturn/**/x; /* a\n b */ y();\n";
        let left = "\nString s = \"// no\"; \nreturn x; \n y();\n";
        assert_eq!(without_comments(java, Language::Java), left);
        let typescript = "const r = /[/*]/; const t = `// ${a /* b */}`; // c\n";
        let left = "const r = /[/*]/; const t = `// ${a }`; \n";
        assert_eq!(without_comments(typescript, Language::TypeScript), left);
        let csharp = "var p = @\"C:\\\"; // d\n#region R // e\n";
        assert_eq!(
            without_comments(csharp, Language::CSharp),
            "var p = @\"C:\\\"; \n#region R // e\n"
        );
        let python = "def f(:\n    '''# doc'''  # a\n    x = f\"#{y}\"  # b";
        let left = "def f(:\n    '''# doc'''  \n    x = f\"#{y}\"  ";
        assert_eq!(without_comments(python, Language::Python), left);
        assert!(matches!(without_comments("x", Language::Python), Cow::Borrowed("x")));
    }
}
