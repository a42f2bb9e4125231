//! The grammar that reads a file.

use super::Language;

/// A grammar of tree-sitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grammar {
    language: Language,
    /// Index of the file's ending among those of the language.
    ending: usize,
}

impl Grammar {
    /// The grammar of a file of a language, by the ending of its name; the first of those that the language has where it
    /// is another.
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

    /// The language that it reads.
    pub fn language(self) -> Language {
        self.language
    }

    pub(crate) fn tables(self) -> tree_sitter::Language {
        self.language.spec().grammars[self.ending]()
    }
}

impl From<Language> for Grammar {
    /// The first grammar of a language.
    fn from(language: Language) -> Self {
        Self::for_path(language, "")
    }
}
