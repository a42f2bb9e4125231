//! The languages of the field's benchmarks (CrossCodeEval's four) and what differs between them: files, comments,
//! keywords, and with [`syntax`] the functions, calls, scopes and imports of a file.

mod grammar;
mod identifiers;
mod keywords;

pub use grammar::Grammar;
pub use identifiers::{identifiers, without_comment_signs, without_comments, without_strings};

pub mod syntax;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A language whose repositories can be searched and completed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// `.py`
    #[default]
    Python,
    /// `.java`
    Java,
    /// `.cs`
    CSharp,
    /// `.ts` (`.d.ts` too) and `.tsx`
    TypeScript,
}

impl Language {
    /// Every language, in CrossCodeEval's order.
    pub const ALL: [Self; 4] = [Self::Python, Self::Java, Self::CSharp, Self::TypeScript];

    /// The name that [`FromStr`] reads, CrossCodeEval's.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Java => "java",
            Self::CSharp => "csharp",
            Self::TypeScript => "typescript",
        }
    }

    /// The name in a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::Java => "Java",
            Self::CSharp => "C#",
            Self::TypeScript => "TypeScript",
        }
    }

    /// The endings of its source files, with their dot; case-sensitive.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Python => &[".py"],
            Self::Java => &[".java"],
            Self::CSharp => &[".cs"],
            Self::TypeScript => &[".ts", ".tsx"],
        }
    }

    /// What begins a line comment.
    pub fn comment(self) -> &'static str {
        match self {
            Self::Python => "#",
            Self::Java | Self::CSharp | Self::TypeScript => "//",
        }
    }

    /// Whether a word is a keyword, and so none of the identifiers that CrossCodeEval's scores compare. Its lists leave
    /// out most literals, such as `True`, and contextual keywords, such as `record`.
    ///
    /// ```
    /// use repoformer::text::language::Language;
    /// assert!(Language::Python.is_keyword("None") && !Language::Python.is_keyword("True"));
    /// assert!(Language::CSharp.is_keyword("null") && !Language::Java.is_keyword("null"));
    /// ```
    pub fn is_keyword(self, word: &str) -> bool {
        keywords::has(self, word)
    }

    /// The language of a file, by its ending.
    ///
    /// ```
    /// use repoformer::text::language::Language;
    /// assert_eq!(Language::of_path("src/app.tsx"), Some(Language::TypeScript));
    /// assert_eq!(Language::of_path("README.md"), None);
    /// ```
    pub fn of_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.holds(path))
    }

    /// Whether a file of this name is one of its source files.
    pub fn holds(self, name: &str) -> bool {
        self.extensions().iter().any(|end| name.ends_with(end))
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Language {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let named = Self::ALL
            .into_iter()
            .find(|language| language.name() == name);
        named.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("'{name}' is not supported; the languages are {names}")
        })
    }
}
