//! Prompt styles: the order of a hole's contexts in a prompt, and the text between them.
//!
//! A style is data: a template, the special tokens in it, and the strings at which the model is done. The bundled
//! styles are small files in the same format as a user's own:
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
//! `{^right}…{/right}` only without one, and likewise for every slot but `left`. `{{` and `}}` are braces.
//!
//! [`Style::fill`] puts a task's contexts in, within a budget of the model's own tokens, and [`Style::split`] takes a prompt
//! apart again. Which contexts are shown is chosen with [`ContextSelection`]. If the right context is left out, the bundled
//! fill-in-the-middle styles keep their frame with an empty suffix, as the released baselines do (Repoformer's
//! `repo_eval/eval_hf.py` with `--use_fim_prompt`); `starcoder2` and `qwen2.5-coder` have a left-to-right form of their own
//! for whole repositories, and use that.

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

/// How a prompt is laid out for a model.
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
    /// Shows a fragment as a file; without one, cross-file context is shown as comments.
    fragment: Option<Template>,
    /// Text before a cross-file context shown as comments, cut with it.
    lead: String,
    stop: Vec<String>,
    include: ContextSelection,
}

/// Contexts that a prompt shows next to the left one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextSelection {
    /// The right context. A right context that is shown and empty is still shown.
    pub right: bool,
    /// The cross-file context, if any.
    pub cross_file: bool,
}

/// Both.
impl Default for ContextSelection {
    fn default() -> Self {
        Self { right: true, cross_file: true }
    }
}

/// Parts of a prompt: one task's contexts, whole.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// Name of the repository; may be empty.
    pub repository: &'a str,
    /// The file with the hole, as other files are named in the cross-file context; may be empty.
    pub path: &'a str,
    /// The file up to the hole.
    pub left: &'a str,
    /// The file after the hole.
    pub right: &'a str,
    /// Fragments of other files.
    pub cross_file: &'a CrossFile,
    /// Decides how comments begin.
    pub language: Language,
}

/// Most tokens of a prompt and its parts, by the model's tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The whole prompt, special tokens included.
    pub total: usize,
    /// The left context, whose end is kept. `None`: it gets all that the other parts leave.
    pub left: Option<usize>,
    /// The right context, whose start is kept. `None`: it is not cut.
    pub right: Option<usize>,
    /// The cross-file context, whose start is kept. `None`: it is not cut.
    pub cross_file: Option<usize>,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledPrompt {
    /// Text that the model reads.
    pub text: String,
    /// Tokens of the whole text, counted at once.
    pub tokens: usize,
    /// Tokens of the shown left context alone.
    pub left_tokens: usize,
    /// Tokens of the shown right context alone.
    pub right_tokens: usize,
    /// Tokens of the shown cross-file context alone, with what the style puts before it or between files.
    pub cross_file_tokens: usize,
    /// Fragments of which at least some code is shown.
    pub fragments: usize,
    /// Shown code of the last fragment, if it was cut.
    pub cut: Option<String>,
    /// Strings at which the completion ends, the most usual first.
    pub stop: Vec<String>,
}

/// The contexts in a prompt; contexts not shown are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slots<'t> {
    /// Name of the repository.
    pub repository: &'t str,
    /// The file with the hole.
    pub path: &'t str,
    /// The end of the left context.
    pub left: &'t str,
    /// The start of the right context.
    pub right: &'t str,
    /// The start of the cross-file context, as it is shown.
    pub cross_file: &'t str,
}

impl Style {
    /// This style, showing other contexts.
    #[must_use]
    pub fn including(self, include: ContextSelection) -> Self {
        Self { include, ..self }
    }

    /// Name among [`names`](Self::names), or its file's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Description and source, in its file's words.
    pub fn about(&self) -> &str {
        self.about.trim()
    }

    /// Contexts that it is asked to show.
    pub fn include(&self) -> ContextSelection {
        self.include
    }

    /// Whether its prompts show a right context: it has a place there, and is asked for.
    pub fn shows_right(&self) -> bool {
        self.include.right && self.template.shows(Slot::Right)
    }

    /// Whether a cross-file context has a place in it.
    pub fn shows_cross_file(&self) -> bool {
        self.template.shows(Slot::CrossFile)
    }

    /// Strings at which the completion ends: the model's end of text and the tokens that begin another file.
    pub fn stop(&self) -> &[String] {
        &self.stop
    }

    /// Digest of its file: two styles of one digest are the same, whatever they are called.
    pub fn file_digest(&self) -> &str {
        &self.digest
    }

    /// Digest for an artifact's identity: of its style file and the contexts shown.
    pub fn digest(&self) -> String {
        let ContextSelection { right, cross_file } = self.include;
        format!("{} right={right} cross-file={cross_file}", self.digest)
    }

    /// Special tokens that a tokenizer splits: a model with that tokenizer was hardly trained with the style.
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

/// Stop texts of a prompt's record: the listed ones, else those of the bundled style that it names, as a handwritten record
/// may.
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
