//! Prompt styles: the order of a hole's contexts in a prompt, and the text between them.
//!
//! A style is data: a template, the special tokens in it, and the strings at which a completion ends. The bundled styles are
//! small files in the same format as a user's own:
//!
//! ```toml
//! specials = ["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>"]
//! template = "<fim_prefix>{left}<fim_suffix>{right}<fim_middle>{#cross_file}# related:\n{cross_file}{/cross_file}"
//! stop = ["<|endoftext|>"]
//! cross-file-lead = "\n\n"             # text before the cross-file context that counts and is cut with it
//! fragment = "<file_sep>{path}\n{text}"  # shows cross-file context as files; without it, as comments
//! about = "where this comes from"
//! ```
//!
//! The slots are `left`, `right`, `cross_file`, `repository` and `path`. `{#right}…{/right}` appears only with a right context,
//! `{^right}…{/right}` only without one, and likewise for every slot except `left`. `{{` and `}}` are literal braces.
//!
//! [`Style::fill`] inserts a task's contexts, within a budget of the model's own tokens, and [`Style::split`] takes a prompt
//! apart again. [`ContextSelection`] chooses the contexts to show. If the right context is left out, the bundled
//! fill-in-the-middle styles keep their frame with an empty suffix, as the released baselines do (Repoformer's
//! `repo_eval/eval_hf.py` with `--use_fim_prompt`). `starcoder2` and `qwen2.5-coder` have a separate left-to-right form for
//! whole repositories, and use it.

mod cross_file;
mod decision;
mod file;
mod fill;
mod split;
mod template;

use repoformer_store::jsonl::Object;
use repoformer_text::language::Language;
use repoformer_text::tokenize::model::Tokenizer;
use serde_json::Value;

use crate::task::cross_file::CrossFile;
pub use decision::DecisionFrame;
use template::{Slot, Template};

/// Layout of a prompt for a model.
///
/// ```
/// use repoformer_core::task::cross_file::CrossFile;
/// use repoformer_core::prompt::style::{Budget, ContextSelection, Parts, Style};
/// use repoformer_text::tokenize::model::Tokenizer;
/// let style: Style = "starcoder".parse()?;
/// let context = CrossFile { text: "# b = 2\n".into(), fragments: vec![] };
/// let parts = Parts {
///     repository: "demo", path: "a.py", left: "x = 1\ny =", right: "\nz = 3\n", cross_file: &context,
///     language: Default::default(),
/// };
/// let budget = Budget { total: 17, left: None, right: Some(2), cross_file: Some(16) };
/// let words = Tokenizer::words();
/// // 3 tokens for each of StarCoder's three, which `words` does not know.
/// let filled = style.fill(&parts, &budget, &words)?;
/// assert_eq!(filled.text, "<fim_prefix>\ny =<fim_suffix>\nz = \n\n# b = 2\n<fim_middle>");
/// assert_eq!((filled.tokens, filled.left_tokens, filled.right_tokens, filled.cross_file_tokens), (17, 2, 2, 4));
/// assert_eq!(style.split(&filled.text).unwrap().left, "\ny =");
///
/// let left_only = style.including(ContextSelection { right: false, cross_file: false });
/// let filled = left_only.fill(&parts, &budget, &words)?;
/// assert_eq!(filled.text, "<fim_prefix>x = 1\ny =<fim_suffix><fim_middle>");
/// # Ok::<(), repoformer_store::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Style {
    name: String,
    about: String,
    digest: String,
    /// Special tokens, as the file lists them.
    specials: Vec<String>,
    template: Template,
    /// Template that shows a fragment as a file; without one, cross-file context is shown as comments.
    fragment: Option<Template>,
    /// Text before a cross-file context shown as comments; it is cut together with the context.
    lead: String,
    stop: Vec<String>,
    include: ContextSelection,
}

/// Contexts that a prompt shows in addition to the left context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextSelection {
    /// Whether to show the right context. An empty right context is shown, too.
    pub right: bool,
    /// Whether to show the cross-file context, if there is one.
    pub cross_file: bool,
}

/// Shows both contexts.
impl Default for ContextSelection {
    fn default() -> Self {
        Self { right: true, cross_file: true }
    }
}

/// Parts of a prompt: the contexts of one task, uncut.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// Name of the repository; may be empty.
    pub repository: &'a str,
    /// Path of the file with the hole, in the form in which the cross-file context names other files; may be empty.
    pub path: &'a str,
    /// Text of the file before the hole.
    pub left: &'a str,
    /// Text of the file after the hole.
    pub right: &'a str,
    /// Fragments of other files.
    pub cross_file: &'a CrossFile,
    /// Language of the file, which determines the comment marker.
    pub language: Language,
}

/// Maximum numbers of tokens in a prompt and its parts, by the model's tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Maximum for the whole prompt, including special tokens.
    pub total: usize,
    /// Maximum for the left context, whose end is kept. `None`: all that the other parts leave.
    pub left: Option<usize>,
    /// Maximum for the right context, whose start is kept. `None`: it is not cut.
    pub right: Option<usize>,
    /// Maximum for the cross-file context, whose start is kept. `None`: it is not cut.
    pub cross_file: Option<usize>,
}

/// A prompt in a style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledPrompt {
    /// Text that the model reads.
    pub text: String,
    /// Number of tokens of the whole text, counted together.
    pub tokens: usize,
    /// Number of tokens of the shown left context alone.
    pub left_tokens: usize,
    /// Number of tokens of the shown right context alone.
    pub right_tokens: usize,
    /// Number of tokens of the shown cross-file context alone, including the style's text before it or between files.
    pub cross_file_tokens: usize,
    /// Number of fragments with at least some code shown.
    pub fragments: usize,
    /// Shown code of the last fragment, if it was cut.
    pub cut: Option<String>,
    /// Strings at which the completion ends, most common first.
    pub stop: Vec<String>,
}

/// Contexts of a prompt; contexts that are not shown are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slots<'t> {
    /// Name of the repository.
    pub repository: &'t str,
    /// Path of the file with the hole.
    pub path: &'t str,
    /// End of the left context.
    pub left: &'t str,
    /// Start of the right context.
    pub right: &'t str,
    /// Start of the cross-file context, as it is shown.
    pub cross_file: &'t str,
}

impl Style {
    /// Returns this style with another selection of contexts.
    #[must_use]
    pub fn including(self, include: ContextSelection) -> Self {
        Self { include, ..self }
    }

    /// Returns the style's name: one of [`names`](Self::names), or the name of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description and source, as the style's file states them.
    pub fn about(&self) -> &str {
        self.about.trim()
    }

    /// Returns the contexts that the style is set to show.
    pub fn include(&self) -> ContextSelection {
        self.include
    }

    /// Returns true if prompts show a right context: the template has a slot for it, and the selection includes it.
    pub fn shows_right(&self) -> bool {
        self.include.right && self.template.shows(Slot::Right)
    }

    /// Returns true if the template has a slot for a cross-file context.
    pub fn shows_cross_file(&self) -> bool {
        self.template.shows(Slot::CrossFile)
    }

    /// Returns the strings at which the completion ends: the model's end of text, and the tokens that begin another file.
    pub fn stop(&self) -> &[String] {
        &self.stop
    }

    /// Returns the digest of the style's file. Styles with the same digest are the same, whatever their names.
    pub fn file_digest(&self) -> &str {
        &self.digest
    }

    /// Returns the digest for an artifact's identity, which covers the style's file and the contexts shown.
    pub fn digest(&self) -> String {
        let ContextSelection { right, cross_file } = self.include;
        format!("{} right={right} cross-file={cross_file}", self.digest)
    }

    /// Returns the special tokens that a tokenizer splits: a model with that tokenizer was probably not trained with the style.
    ///
    /// ```
    /// use repoformer_core::prompt::style::Style;
    /// use repoformer_text::tokenize::model::Tokenizer;
    /// let style: Style = "codestral".parse()?;
    /// assert_eq!(style.unknown_specials(&Tokenizer::words()), ["[SUFFIX]", "[PREFIX]"]);
    /// # Ok::<(), repoformer_store::error::Error>(())
    /// ```
    pub fn unknown_specials(&self, tokenizer: &Tokenizer) -> Vec<String> {
        let unknown = |special: &&String| tokenizer.special(special).is_none();
        self.specials.iter().filter(unknown).cloned().collect()
    }
}

/// Returns the stop texts of a prompt's record: the listed ones, otherwise the stop texts of the bundled style that the record
/// names, because a handwritten record may list none.
pub fn stops_of(prompt: &Object) -> Vec<String> {
    let metadata = prompt.get("metadata").and_then(Value::as_object);
    let said = |name: &str| metadata.and_then(|metadata| metadata.get(name));
    match said("stop").and_then(Value::as_array) {
        Some(stops) => stops.iter().filter_map(|stop| Some(stop.as_str()?.to_owned())).collect(),
        None => {
            let style = said("prompt_style").and_then(Value::as_str).and_then(Style::find_bundled);
            style.map_or_else(Vec::new, |style| style.stop().to_vec())
        }
    }
}

#[cfg(feature = "tokenizers")]
#[cfg(test)]
mod tests;
