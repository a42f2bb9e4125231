//! Training sequences in which a model decides whether to retrieve: the layout that a style gives them (Repoformer, section
//! 3.2, figure 2).

use repoformer_store::error::{Error, Result};
use repoformer_text::language::Language;
use repoformer_text::tokenize::model::{TextPart, Tokenizer};

use super::Style;
use super::cross_file::{comments, cut_comments};
use super::template::{Piece, Presence, Slot};
use crate::task::cross_file::CrossFile;

/// Default tokens that end the current file and begin the cross-file context.
const USUAL: [&str; 2] = ["<eof>", "<cc>"];

/// Fill-in-the-middle layout with a place at which the model decides: `<fim_prefix>L<fim_suffix>R<eof>`, then `<fim_middle>`
/// alone, or `<cc>CC<fim_middle>`.
///
/// Styles that have such a place (`repoformer`, `repoformer-released`) are used as they are. So are styles in which the model
/// decides after the token that begins the completion, if a separate token ends the cross-file context:
/// `…<fim_middle>{#cross_file}<cc>{cross_file}<cc_end>{/cross_file}` (the paper's ablation A4). In other styles, the two tokens
/// are inserted before the token that begins the completion.
///
/// ```
/// use repoformer_core::prompt::style::{DecisionFrame, Style};
/// let frame = DecisionFrame::new(&"deepseek-coder".parse::<Style>()?, None, None)?;
/// assert_eq!(
///     frame.template(),
///     "<｜fim▁begin｜>{left}<｜fim▁hole｜>{right}<eof>{#cross_file}<cc>{cross_file}{/cross_file}<｜fim▁end｜>",
/// );
/// # Ok::<(), repoformer_store::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionFrame {
    /// Pieces up to the token that ends the current file.
    current_file: Vec<FramePiece>,
    eof: String,
    cc: String,
    /// Token that begins the completion, after a cross-file context or always.
    middle: String,
    /// Whether this token also appears if nothing is retrieved. Otherwise the completion follows the decision.
    is_middle_always: bool,
    /// Text that counts as cross-file context, and is cut with it.
    lead: String,
    stop: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum FramePiece {
    Special(String),
    Plain(String),
    Left,
    Right,
}

impl DecisionFrame {
    /// Creates the frame of a style; `eof` and `cc`, if given, replace the style's own tokens or the default ones.
    ///
    /// # Errors
    /// The style has no left or right context, has no token that begins the completion, or shows cross-file context as files at
    /// its own place for it; or two of the tokens are the same.
    pub fn new(style: &Style, eof: Option<&str>, cc: Option<&str>) -> Result<Self> {
        let with =
            |cross_file| Presence { right: true, cross_file, repository: false, path: false };
        let wrong = |reason: &str| Error::Parameter {
            name: "prompt-style",
            reason: format!("{} {reason}", style.name()).into(),
        };
        let (alone, retrieved) =
            (style.template.pieces(with(false)), style.template.pieces(with(true)));
        let Some((Piece::Special(middle), rest)) = alone.split_last() else {
            return Err(wrong(
                "has no special token that begins the completion, so the model has no place to \
                 decide; use a style with such a token, such as starcoder, deepseek-coder or \
                 qwen2.5-coder, or your own style file",
            ));
        };
        let (current_file, own, last) = match (rest.split_last(), &retrieved[..]) {
            (
                _,
                [
                    before @ ..,
                    Piece::Special(cc),
                    Piece::Slot(Slot::CrossFile),
                    Piece::Special(last),
                ],
            ) if *before == alone[..] => (rest, Some([*middle, *cc]), last),
            (
                Some((Piece::Special(eof), current_file)),
                [
                    before @ ..,
                    Piece::Special(cc),
                    Piece::Slot(Slot::CrossFile),
                    Piece::Special(last),
                ],
            ) if before == rest && last == middle => (current_file, Some([*eof, *cc]), last),
            _ => (rest, None, middle),
        };
        let place = |piece| retrieved.iter().position(|one| *one == piece);
        if own.is_none() && place(Piece::Slot(Slot::CrossFile)) > place(Piece::Special(middle)) {
            return Err(wrong(
                "shows cross-file context after the token that begins the completion, without \
                 tokens around it; enclose it in tokens: \
                 {#cross_file}<cc>{cross_file}<cc_end>{/cross_file}",
            ));
        }
        if own.is_some() && style.fragment.is_some() {
            return Err(wrong(
                "shows cross-file context as files; use a style that shows it as comments",
            ));
        }
        for slot in [Slot::Left, Slot::Right] {
            if !current_file.contains(&Piece::Slot(slot)) {
                return Err(wrong("lacks the left or the right context"));
            }
        }
        let current_file = current_file.iter().filter_map(|piece| match *piece {
            Piece::Special(text) => Some(FramePiece::Special(text.into())),
            Piece::Plain(text) => Some(FramePiece::Plain(text.into())),
            Piece::Slot(Slot::Left) => Some(FramePiece::Left),
            Piece::Slot(Slot::Right) => Some(FramePiece::Right),
            Piece::Slot(_) => None,
        });
        let [own_eof, own_cc] = own.unwrap_or(USUAL);
        let frame = Self {
            current_file: current_file.collect(),
            eof: eof.unwrap_or(own_eof).into(),
            cc: cc.unwrap_or(own_cc).into(),
            middle: (*last).into(),
            is_middle_always: last == middle,
            lead: own.map_or(String::new(), |_| style.lead.clone()),
            stop: style.stop.clone(),
        };
        let specials = frame.specials();
        let twice =
            |token: &&&str| token.is_empty() || specials.iter().filter(|s| s == token).count() > 1;
        match specials.iter().find(twice) {
            Some(token) => Err(wrong(&format!(
                "needs distinct special tokens, but '{token}' is empty or repeated"
            ))),
            None => Ok(frame),
        }
    }

    /// Returns the special tokens. The ones that a model is to learn, `<cc>` and `<eof>`, come first, in the order in which the
    /// released program adds them.
    pub fn specials(&self) -> Vec<&str> {
        let mut specials = vec![self.cc.as_str(), &self.eof];
        specials.extend(self.current_file.iter().filter_map(|piece| match piece {
            FramePiece::Special(text) => Some(text.as_str()),
            _ => None,
        }));
        specials.push(&self.middle);
        specials
    }

    /// Returns the token that ends the current file.
    pub fn eof(&self) -> &str {
        &self.eof
    }

    /// Returns the token that begins the cross-file context.
    pub fn cc(&self) -> &str {
        &self.cc
    }

    /// Returns the token that begins the completion, with or without a cross-file context before it; `None` if the completion
    /// follows the decision.
    pub fn middle(&self, has_cross_file: bool) -> Option<&str> {
        (has_cross_file || self.is_middle_always).then_some(&self.middle)
    }

    /// Returns all parts up to the end of the current file, with these contexts.
    pub fn current_file<'p>(&'p self, left: &'p str, right: &'p str) -> Vec<TextPart<'p>> {
        let pieces = self.current_file.iter().map(|piece| match piece {
            FramePiece::Special(text) => TextPart::Special(text),
            FramePiece::Plain(text) => TextPart::Plain(text),
            FramePiece::Left => TextPart::Plain(left),
            FramePiece::Right => TextPart::Plain(right),
        });
        pieces.chain([TextPart::Special(&self.eof)]).collect()
    }

    /// Returns the number of special tokens up to the end of the current file, including the token that ends it.
    pub fn specials_of_current_file(&self) -> usize {
        let is_special = |piece: &&FramePiece| matches!(piece, FramePiece::Special(_));
        self.current_file.iter().filter(is_special).count() + 1
    }

    /// Returns the start of a cross-file context, as comments, with at most this many tokens; empty if nothing is to be shown.
    /// The context is cut as in [`Style::fill`].
    pub fn cross_file(
        &self,
        context: &CrossFile,
        language: Language,
        tokens: usize,
        tokenizer: &Tokenizer,
    ) -> (String, bool) {
        let Some(text) = comments(context, language, &self.lead) else {
            return (String::new(), false);
        };
        let shown = cut_comments(&text, context, &self.lead, language, Some(tokens), tokenizer);
        let kept: String = shown.parts.iter().map(TextPart::text).collect();
        let is_cut = kept.len() < text.len();
        (kept, is_cut)
    }

    /// Returns the template, in the template language of prompt styles.
    pub fn template(&self) -> String {
        let escaped = |text: &str| text.replace('{', "{{").replace('}', "}}");
        let pieces = self.current_file.iter().map(|piece| match piece {
            FramePiece::Special(text) | FramePiece::Plain(text) => escaped(text),
            FramePiece::Left => "{left}".into(),
            FramePiece::Right => "{right}".into(),
        });
        let current_file: String = pieces.collect();
        let [eof, cc, middle] = [&self.eof, &self.cc, &self.middle].map(|text| escaped(text));
        let shown = format!("{cc}{{cross_file}}");
        if self.is_middle_always {
            format!("{current_file}{eof}{{#cross_file}}{shown}{{/cross_file}}{middle}")
        } else {
            format!("{current_file}{eof}{{#cross_file}}{shown}{middle}{{/cross_file}}")
        }
    }

    /// Returns the file of a prompt style for models that learned such sequences.
    pub fn to_style_file(&self) -> String {
        let list = |texts: &[&str]| toml::Value::from(texts.to_vec()).to_string();
        let stop: Vec<&str> = self.stop.iter().map(String::as_str).collect();
        let mut text = format!(
            "about = \"Prompts for a model trained on the sequences beside this file.\"\nspecials = {}\ntemplate = {}\n",
            list(&self.specials()),
            toml::Value::from(self.template()),
        );
        if !self.lead.is_empty() {
            text += &format!("cross-file-lead = {}\n", toml::Value::from(self.lead.as_str()));
        }
        if !stop.is_empty() {
            text += &format!("stop = {}\n", list(&stop));
        }
        text
    }
}
