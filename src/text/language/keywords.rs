//! What CrossCodeEval takes for keywords when it looks for identifiers (its `scripts/keywords`, after dpu-utils).

use super::Language;

/// The keywords of a language, sorted.
pub(super) fn of(language: Language) -> &'static [&'static str] {
    match language {
        Language::Python => &PYTHON,
        Language::Java => &JAVA,
        Language::CSharp => &CSHARP,
        Language::TypeScript => &TYPESCRIPT,
    }
}

/// Whether a word is one of the language's keywords. Nearly no word has the first letter and the length of one, which
/// is looked at first.
pub(super) fn has(language: Language, word: &str) -> bool {
    let lengths = match language {
        Language::Python => &LENGTHS[0],
        Language::Java => &LENGTHS[1],
        Language::CSharp => &LENGTHS[2],
        Language::TypeScript => &LENGTHS[3],
    };
    let first = word.as_bytes().first().copied().unwrap_or_default();
    let possible = lengths.get(usize::from(first)).copied().unwrap_or_default();
    word.len() < 32 && possible >> word.len() & 1 == 1 && of(language).binary_search(&word).is_ok()
}

/// For each language and first letter a bit a length.
static LENGTHS: [[u32; 128]; 4] = [
    lengths(&PYTHON),
    lengths(&JAVA),
    lengths(&CSHARP),
    lengths(&TYPESCRIPT),
];

const fn lengths(words: &[&str]) -> [u32; 128] {
    let mut lengths = [0; 128];
    let mut at = 0;
    while at < words.len() {
        let word = words[at].as_bytes();
        lengths[word[0] as usize] |= 1 << word.len();
        at += 1;
    }
    lengths
}

/// `keyword.kwlist` of Python 3.7 to 3.13 without `True` and `False`.
#[rustfmt::skip]
const PYTHON: [&str; 33] = [
    "None", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or",
    "pass", "raise", "return", "try", "while", "with", "yield",
];

/// The language's reserved words and `var`; neither `true` nor `null`.
#[rustfmt::skip]
const JAVA: [&str; 51] = [
    "abstract", "assert", "boolean", "break", "byte", "case", "catch", "char", "class", "const", "continue",
    "default", "do", "double", "else", "enum", "extends", "final", "finally", "float", "for", "goto", "if",
    "implements", "import", "instanceof", "int", "interface", "long", "native", "new", "package", "private",
    "protected", "public", "return", "short", "static", "strictfp", "super", "switch", "synchronized", "this",
    "throw", "throws", "transient", "try", "var", "void", "volatile", "while",
];

/// The language's reserved words without `true` and `false`.
#[rustfmt::skip]
const CSHARP: [&str; 75] = [
    "abstract", "as", "base", "bool", "break", "byte", "case", "catch", "char", "checked", "class", "const",
    "continue", "decimal", "default", "delegate", "do", "double", "else", "enum", "event", "explicit", "extern",
    "finally", "fixed", "float", "for", "foreach", "goto", "if", "implicit", "in", "int", "interface",
    "internal", "is", "lock", "long", "namespace", "new", "null", "object", "operator", "out", "override",
    "params", "private", "protected", "public", "readonly", "ref", "return", "sbyte", "sealed", "short",
    "sizeof", "stackalloc", "static", "string", "struct", "switch", "this", "throw", "try", "typeof", "uint",
    "ulong", "unchecked", "unsafe", "ushort", "using", "virtual", "void", "volatile", "while",
];

/// ECMAScript's reserved words, those of strict mode too; neither `true` nor `null`, nor what TypeScript adds.
#[rustfmt::skip]
const TYPESCRIPT: [&str; 42] = [
    "break", "case", "catch", "class", "const", "continue", "debugger", "default", "delete", "do", "else",
    "enum", "export", "extends", "finally", "for", "function", "if", "implements", "import", "in", "instanceof",
    "interface", "let", "new", "package", "private", "protected", "public", "return", "static", "super",
    "switch", "this", "throw", "try", "typeof", "var", "void", "while", "with", "yield",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_can_be_searched() {
        for language in Language::ALL {
            assert!(of(language).is_sorted(), "{language}");
        }
    }

    #[test]
    fn what_is_looked_at_first_leaves_no_keyword_out() {
        let words = Language::ALL.into_iter().flat_map(of);
        let words = words
            .copied()
            .chain(["", "é", "print", "i", "classes", "as_"]);
        for word in words {
            for language in Language::ALL {
                let listed = of(language).contains(&word);
                assert_eq!(has(language, word), listed, "{language} {word:?}");
            }
        }
    }
}
