//! Identifiers as CrossCodeEval's scores compare them (`scripts/eval_utils.py`), and texts without their comments.

use std::borrow::Cow;

use super::Language;
use super::syntax::Syntax;
use crate::tokenize::is_word;

/// The identifiers of a piece of code in their order, repeats included, by CrossCodeEval's rule: the runs of `\w`
/// outside string literals that begin with an ASCII letter or `_` and are no keyword. Comments are not left out;
/// [`without_comment_signs`] is what CrossCodeEval does to them first.
///
/// The rule takes a string literal out before it looks for words, so that `a"x"b` is one word `ab` to it; here these
/// are two. [`bare_identifiers`] has them as one.
///
/// ```
/// use repoformer_text::language::{Language, identifiers};
/// let found = identifiers("return self.names['x'] or True", Language::Python);
/// assert_eq!(found, ["self", "names", "True"]);
/// ```
pub fn identifiers(text: &str, language: Language) -> Vec<&str> {
    words(text, language, Some(Strings::default()))
}

/// The identifiers of a text without its string literals, in their order; quotes that are left mean nothing.
///
/// ```
/// use repoformer_text::language::{Language, bare_identifiers, without_strings};
/// let bare = without_strings("f(a\"x\"b, \"c\\'d'\\\n\")");
/// assert_eq!(bare_identifiers(&bare, Language::Python), ["f", "ab", "c"]);
/// ```
pub fn bare_identifiers(text: &str, language: Language) -> Vec<&str> {
    words(text, language, None)
}

/// Most names of a chain. Each beginning of a chain may be looked up, and no definition is nested so deep.
const LONGEST_CHAIN: usize = 64;

/// Chains of names in a line, such as `["a", "b"]` of `a.b(c)`, keywords and strings left out. One that begins behind a dot
/// has `"this"`, `"super"` or else `""` before it. Of a longer chain the first 64 names are kept.
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

/// The identifiers of a text, outside its string literals where they are looked for.
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

/// Identifiers of a text of ASCII alone, byte by byte.
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

/// A text without its string literals as CrossCodeEval finds them: from `"` or `'` to the next of the same over lines
/// too, with `\` before any character but a newline. A quote without another stays, and so does a prefix as in `f""`.
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

/// A text without everything from `#` or `//` to the end of the line, in strings too, whatever the language: what
/// CrossCodeEval takes for comments.
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

/// A text without its comments, as the language's grammar finds them: docstrings and strings stay, and so do the
/// newlines within a comment, so that every line keeps its number. A text that begins or ends anywhere can be read; one whose
/// parse takes too much time or memory stays as it is.
///
/// ```
/// use repoformer_text::language::{Language, without_comments};
/// assert_eq!(without_comments("x = '#' # why\n", Language::Python), "x = '#' \n");
/// assert_eq!(without_comments("int/* a\n b */x = 7 / 2; // c", Language::Java), "int\nx = 7 / 2; ");
/// ```
pub fn without_comments(text: &str, language: Language) -> Cow<'_, str> {
    parse_without_comments(text, language).unwrap_or(text.into())
}

/// A text [`without_comments`]; `None` if it cannot be parsed within bounds.
pub fn parse_without_comments(text: &str, language: Language) -> Option<Cow<'_, str>> {
    let syntax = Syntax::parse(text, language)?;
    let mut cut = Vec::new();
    for comment in syntax.comments() {
        // The newlines stay, by cutting around them.
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

/// The text with each range, in order, replaced by another text.
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
    /// How far the last `"`, and the last `'`, that no other closed was looked for: what lies before and is escaped
    /// cannot be closed either, or odd texts would take the square of their length.
    open_until: [usize; 2],
}

impl Strings {
    /// Where the literal that begins at `at` ends; `None` where none begins.
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

    /// All beginnings of a chain are kept somewhere: of one with any length they would fill the memory.
    #[test]
    fn a_chain_has_a_bound() {
        let line = format!("{}b = x.y", "a.".repeat(10_000));
        let found = chains(&line, Language::Python);
        let lengths: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(lengths, [LONGEST_CHAIN, 2]);
    }

    /// The pattern one character at a time, from every place anew.
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

    /// Strings taken out, then words: the reference's two steps.
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
                // A sign in place of each string keeps the words beside it apart.
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

    /// Expectations by hand from CrossCodeEval's `extract_identifiers` as quirk S5 describes it.
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
