//! Languages of the field's benchmarks (CrossCodeEval's four), Go and JavaScript, one file each. [`syntax`] finds the
//! functions, scopes and imports of a file.
//!
//! To add a language, add a file with a `LanguageSpec`, its `mod` line, its line in the list below, and the crate of its
//! grammar.

mod csharp;
mod go;
mod grammar;
mod import;
mod java;
mod javascript;
mod lexical;
mod parser;
mod python;
mod spec;
mod stack_nodes;
mod typescript;
mod walk;

pub use grammar::Grammar;
pub use javascript::WHOLE;
pub use lexical::{
    bare_identifiers, identifiers, without_comment_signs, without_comments, without_strings,
};
pub use lexical::{chains, parse_without_comments};
pub use parser::Parser;
pub use spec::{
    BlockMarks, Call, LanguageSpec, NameScope, NameVisibility, NodeRole, NodeStep, Prose,
    Resolution, Steps, TypeRules, Variable, VariableType, find,
};

pub mod syntax;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::parse_by_name;

/// Defines [`Language`] from a list of names and specs.
macro_rules! languages {
    ($($(#[$meta:meta])* $name:ident = $spec:path,)+) => {
        /// Language whose repositories can be searched and completed. Artifacts store its position in the list.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
        )]
        #[serde(rename_all = "lowercase")]
        pub enum Language {
            $($(#[$meta])* $name,)+
        }

        impl Language {
            /// All languages, starting with CrossCodeEval's in its order.
            pub const ALL: [Self; [$(stringify!($name)),+].len()] = [$(Self::$name),+];

            /// Returns the data that defines the language.
            pub const fn spec(self) -> &'static LanguageSpec {
                match self {
                    $(Self::$name => &$spec,)+
                }
            }
        }
    };
}

// Add new languages at the end: artifacts store a language by its position.
languages! {
    /// `.py`
    #[default]
    Python = python::PYTHON,
    /// `.java`
    Java = java::JAVA,
    /// `.cs`
    CSharp = csharp::CSHARP,
    /// `.ts`, `.tsx`, `.mts` and `.cts`, declarations (`.d.ts`) too
    TypeScript = typescript::TYPESCRIPT,
    /// `.go`
    Go = go::GO,
    /// `.js`, `.jsx`, `.mjs` and `.cjs`
    JavaScript = javascript::JAVASCRIPT,
}

impl Language {
    /// Returns the name in settings and files, which is CrossCodeEval's.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// Returns the name in sentences, which is The Stack's.
    pub fn title(self) -> &'static str {
        self.spec().title
    }

    /// Returns the extensions of its source files, with the dot; case-sensitive.
    pub fn extensions(self) -> &'static [&'static str] {
        self.spec().extensions
    }

    /// Returns the sign that begins a line comment.
    pub fn comment(self) -> &'static str {
        self.spec().comment
    }

    /// Returns true if a word is a keyword, so that CrossCodeEval's scores do not compare it as an identifier. CrossCodeEval's
    /// lists lack most literals, such as `True`, and contextual keywords, such as `record`.
    ///
    /// ```
    /// use repoformer_text::language::Language;
    /// assert!(Language::Python.is_keyword("None") && !Language::Python.is_keyword("True"));
    /// assert!(Language::CSharp.is_keyword("null") && !Language::Java.is_keyword("null"));
    /// ```
    pub fn is_keyword(self, word: &str) -> bool {
        self.spec().keywords.has(word)
    }

    /// Returns the keywords that have full weight in CodeBLEU's weighted n-gram match.
    pub fn codebleu_keywords(self) -> impl Iterator<Item = &'static str> {
        self.spec().codebleu_keywords.split_ascii_whitespace()
    }

    /// Returns the language of a file by its extension.
    ///
    /// ```
    /// use repoformer_text::language::Language;
    /// assert_eq!(Language::of_path("src/app.tsx"), Some(Language::TypeScript));
    /// assert_eq!(Language::of_path("README.md"), None);
    /// ```
    pub fn of_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.holds(path))
    }

    /// Returns true if a file with this name is a source file of the language.
    pub fn holds(self, name: &str) -> bool {
        self.extensions().iter().any(|end| name.ends_with(end))
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

parse_by_name!(Language, "language");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        for language in Language::ALL {
            assert!(language.spec().keywords.words().is_sorted(), "{language}");
        }
    }

    #[test]
    fn lengths_of_keywords_leave_none_out() {
        let words = Language::ALL.into_iter().flat_map(|l| l.spec().keywords.words());
        let words = words.copied().chain(["", "é", "print", "i", "classes", "as_"]);
        for word in words {
            for language in Language::ALL {
                let listed = language.spec().keywords.words().contains(&word);
                assert_eq!(language.is_keyword(word), listed, "{language} {word:?}");
            }
        }
    }

    /// A kind or field that the grammar lacks would never match.
    #[test]
    fn tables_name_kinds_of_the_grammars() {
        for language in Language::ALL {
            let spec = language.spec();
            let grammars: Vec<_> = spec.grammars.iter().map(|grammar| grammar()).collect();
            assert_eq!(grammars.len(), spec.extensions.len(), "{language}");
            let mut kinds = Vec::new();
            kinds.extend(spec.definitions.iter().map(|definition| definition.kind));
            kinds.extend(spec.calls.iter().map(|(kind, _)| *kind));
            kinds.extend(spec.expressions.iter().map(|(kind, _)| *kind));
            kinds.extend(spec.types.iter().map(|(kind, _)| *kind));
            kinds.extend(spec.imports.iter().map(|(kind, _)| *kind));
            kinds.extend(spec.blocks.iter().chain(spec.bodies));
            if let Resolution::Types(rules) = spec.resolution {
                kinds.extend(rules.namespaces.iter().map(|namespace| namespace.kind));
                kinds.extend(rules.variables.iter().map(|variable| variable.kind));
                let lists = [rules.types, rules.supers, rules.scopes];
                kinds.extend(lists.into_iter().flatten());
            }
            // Some grammars have `this` as an unnamed token.
            let knows = |grammar: &tree_sitter::Language, kind: &str| {
                [true, false].map(|named| grammar.id_for_node_kind(kind, named)) != [0, 0]
            };
            kinds.retain(|kind| !grammars.iter().any(|grammar| knows(grammar, kind)));
            assert_eq!(kinds, [""; 0], "{language}");
        }
    }
}
