//! Cross-file context of a prompt: fragments of other files, and the text that shows them.

use repoformer_text::language::Language;
use repoformer_text::lines::Lines;

/// First line, after the comment marker, of the text that shows fragments as comments.
pub(crate) const HEAD: &str =
    " Here are some relevant code fragments from other files of the repo:\n\n";
/// Text before each fragment's path in this form.
pub(crate) const FOUND_IN: &str = " the below code fragment can be found in:\n";

/// A piece of another file that was retrieved for a task.
#[derive(Debug, Clone, PartialEq)]
pub struct CrossFileFragment {
    /// Path of the fragment's file, as the prompt names it.
    pub path: String,
    /// Lines of the fragment, joined by `\n`, not commented.
    pub text: String,
    /// Score by the ranker, if known.
    pub score: Option<f64>,
}

/// Cross-file context of one task, as benchmarks store it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CrossFile {
    /// Text as a prompt shows it: comment lines. Empty if nothing was retrieved.
    pub text: String,
    /// Fragments in the text, best first; empty if a benchmark has only the text.
    pub fragments: Vec<CrossFileFragment>,
}

impl CrossFile {
    /// Creates a context that shows the fragments, best first, in the text that Repoformer's and CrossCodeEval's programs
    /// write.
    pub fn new(fragments: Vec<CrossFileFragment>, language: Language) -> Self {
        Self { text: text(&fragments, language), fragments }
    }

    /// Returns true if nothing was retrieved.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// Returns the text of fragments as Repoformer's and CrossCodeEval's programs write it: a heading, then the path and the lines
/// of each fragment as comments (lines as Python's `splitlines` counts them). Empty if there are no fragments.
///
/// ```
/// use repoformer_core::task::cross_file::{CrossFileFragment, text};
/// use repoformer_text::language::Language;
/// let fragment = CrossFileFragment { path: "src/a.ts".into(), text: "let x = 1\n\nlet y".into(), score: None };
/// assert_eq!(
///     text(&[fragment], Language::TypeScript),
///     "// Here are some relevant code fragments from other files of the repo:\n\n\
///      // the below code fragment can be found in:\n// src/a.ts\n// let x = 1\n// \n// let y\n\n",
/// );
/// ```
pub fn text(fragments: &[CrossFileFragment], language: Language) -> String {
    let mut text = String::new();
    if fragments.is_empty() {
        return text;
    }
    let comment = language.comment();
    text.extend([comment, HEAD]);
    for fragment in fragments {
        text.extend([comment, FOUND_IN, comment, " ", &fragment.path, "\n"]);
        let lines = Lines::new(fragment.text.trim_matches('\n'));
        for (number, line) in lines.iter().enumerate() {
            let separator = if number == 0 { "" } else { "\n" };
            text.extend([separator, comment, " ", line]);
        }
        text.push_str("\n\n");
    }
    text
}
