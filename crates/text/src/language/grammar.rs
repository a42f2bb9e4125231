//! The grammar that reads a file.

use super::Language;

/// Tree-sitter grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grammar {
    language: Language,
    /// Index of the file extension in the language's list.
    ending: usize,
}

impl Grammar {
    /// Returns the grammar for a file of a language by its extension; the language's first grammar if it does not have the
    /// extension.
    ///
    /// ```
    /// use repoformer_text::language::{Grammar, Language};
    /// let of = |path| Grammar::for_path(Language::TypeScript, path);
    /// assert_ne!(of("src/app.tsx"), of("src/app.ts"));
    /// assert_eq!(of("src/app.d.ts"), Grammar::from(Language::TypeScript));
    /// ```
    pub fn for_path(language: Language, path: &str) -> Self {
        let mut endings = language.extensions().iter();
        let ending = endings.position(|end| path.ends_with(end)).unwrap_or(0);
        Self { language, ending }
    }

    /// Returns the language of the grammar.
    pub fn language(self) -> Language {
        self.language
    }

    pub(crate) fn tables(self) -> tree_sitter::Language {
        self.language.spec().grammars[self.ending]()
    }
}

impl From<Language> for Grammar {
    /// Returns the first grammar of a language.
    fn from(language: Language) -> Self {
        Self::for_path(language, "")
    }
}
