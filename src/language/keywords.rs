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
}
