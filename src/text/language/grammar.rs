//! Which grammar reads a file: TypeScript has two.

use super::Language;

/// A grammar of tree-sitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Grammar {
    /// Python 3, and what of Python 2 it has in common.
    Python,
    /// Java.
    Java,
    /// C#.
    CSharp,
    /// TypeScript without JSX, where `<T>x` is a type assertion.
    TypeScript,
    /// TypeScript with JSX, where `<T>` begins an element.
    Tsx,
}

impl Grammar {
    /// Every grammar.
    pub const ALL: [Self; 5] = [
        Self::Python,
        Self::Java,
        Self::CSharp,
        Self::TypeScript,
        Self::Tsx,
    ];

    /// The grammar of a file of a language, by the ending of its name.
    ///
    /// ```
    /// use repoformer::text::language::{Grammar, Language};
    /// assert_eq!(Grammar::of(Language::TypeScript, "src/app.tsx"), Grammar::Tsx);
    /// assert_eq!(Grammar::of(Language::TypeScript, "src/app.d.ts"), Grammar::TypeScript);
    /// ```
    pub fn of(language: Language, path: &str) -> Self {
        match language {
            Language::Python => Self::Python,
            Language::Java => Self::Java,
            Language::CSharp => Self::CSharp,
            Language::TypeScript if path.ends_with(".tsx") => Self::Tsx,
            Language::TypeScript => Self::TypeScript,
        }
    }

    /// The language that it reads.
    pub fn language(self) -> Language {
        match self {
            Self::Python => Language::Python,
            Self::Java => Language::Java,
            Self::CSharp => Language::CSharp,
            Self::TypeScript | Self::Tsx => Language::TypeScript,
        }
    }

    pub(crate) fn tables(self) -> tree_sitter::Language {
        match self {
            Self::Python => tree_sitter_python::LANGUAGE,
            Self::Java => tree_sitter_java::LANGUAGE,
            Self::CSharp => tree_sitter_c_sharp::LANGUAGE,
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX,
        }
        .into()
    }
}
