//! Cross-file context within a prompt: rendered, cut to its budget, and found again.

use std::borrow::Cow;

use repoformer_store::error::{Error, Result};
use repoformer_text::language::Language;
use repoformer_text::lines::Lines;
use repoformer_text::tokenize::model::{TextPart, Tokenizer};

use super::template::{Piece, Presence, Slot, Template};
use crate::task::cross_file::{self, CrossFile, CrossFileFragment, FOUND_IN, HEAD};

/// Part of a cross-file context that a prompt shows.
#[derive(Debug, Default)]
pub(super) struct ShownContext<'p> {
    pub(super) parts: Vec<TextPart<'p>>,
    pub(super) tokens: usize,
    /// Number of fragments with at least some code shown.
    pub(super) fragments: usize,
    /// Shown code of the last of these fragments, if it was cut.
    pub(super) cut: Option<String>,
}

/// Returns the text as comments, after `lead`; `None` if there is nothing to show.
pub(super) fn comments<'p>(
    context: &'p CrossFile,
    language: Language,
    lead: &str,
) -> Option<Cow<'p, str>> {
    let text: Cow<'p, str> = if context.text.is_empty() {
        cross_file::text(&context.fragments, language).into()
    } else {
        context.text.as_str().into()
    };
    match (text.is_empty(), lead.is_empty()) {
        (true, _) => None,
        (false, true) => Some(text),
        (false, false) => Some([lead, &text].concat().into()),
    }
}

/// Cuts a commented text to its budget, at a token, as the reference programs do.
pub(super) fn cut_comments<'p>(
    text: &'p str,
    context: &CrossFile,
    lead: &str,
    language: Language,
    budget: Option<usize>,
    tokenizer: &Tokenizer,
) -> ShownContext<'p> {
    let (kept, tokens) = match budget {
        Some(budget) => tokenizer.start_of(text, budget),
        None => (text, tokenizer.count(text)),
    };
    if kept.trim().is_empty() {
        return ShownContext::default();
    }
    let shown = kept.get(lead.len()..).unwrap_or_default();
    let mut cut = None;
    let fragments = match Block::at_start(shown, language.comment()) {
        Some(mut block) => {
            let count = block.fragments.len();
            let whole = count.checked_sub(1).and_then(|last| context.fragments.get(last));
            let last = block.fragments.pop();
            cut = last.zip(whole).and_then(|(last, whole)| {
                let lines = Lines::new(whole.text.trim_matches('\n'));
                (!lines.iter().eq(last.text.split('\n'))).then_some(last.text)
            });
            count
        }
        // The text is not in the usual form, so only the paths in it can be found.
        None => {
            let fragments = context.fragments.iter();
            let is_named = |fragment: &&CrossFileFragment| shown.contains(fragment.path.as_str());
            fragments.filter(is_named).count()
        }
    };
    ShownContext { parts: vec![TextPart::Plain(kept)], tokens, fragments, cut }
}

/// Returns the fragments of a context; if the context is only a text, they are read from it.
///
/// # Errors
/// The text does not have the form that Repoformer's and CrossCodeEval's programs write.
pub(super) fn fragments(
    context: &CrossFile,
    language: Language,
) -> Result<Cow<'_, [CrossFileFragment]>> {
    if !context.fragments.is_empty() || context.text.is_empty() {
        return Ok(context.fragments.as_slice().into());
    }
    match Block::at_start(&context.text, language.comment()) {
        Some(block) if context.text[block.end..].trim().is_empty() => Ok(block.fragments.into()),
        _ => Err(Error::Parameter {
            name: "prompt-style",
            reason: "this style shows the cross-file context as files, but this task's context is \
                     a text without file names; use a style that shows it as comments"
                .into(),
        }),
    }
}

/// Shows fragments as files, in order, while they fit; the first that does not fit is cut at a token and is the last.
pub(super) fn files<'p>(
    fragments: &'p [CrossFileFragment],
    template: &'p Template,
    budget: Option<usize>,
    tokenizer: &Tokenizer,
) -> ShownContext<'p> {
    let budget = budget.unwrap_or(usize::MAX);
    let mut shown = ShownContext::default();
    for fragment in fragments {
        let before = shown.parts.len();
        push_file(template, fragment, &fragment.text, &mut shown.parts);
        let tokens = tokenizer.count_parts(&shown.parts);
        if tokens <= budget {
            shown.tokens = tokens;
            shown.fragments += 1;
            continue;
        }
        shown.parts.truncate(before);
        push_cut(template, fragment, budget, tokenizer, &mut shown);
        break;
    }
    shown
}

/// Adds as much of a fragment as fits, unless none of its code does.
fn push_cut<'p>(
    template: &'p Template,
    fragment: &'p CrossFileFragment,
    budget: usize,
    tokenizer: &Tokenizer,
    shown: &mut ShownContext<'p>,
) {
    let before = shown.parts.len();
    push_file(template, fragment, "", &mut shown.parts);
    let frame = tokenizer.count_parts(&shown.parts);
    let mut room = budget.saturating_sub(frame);
    loop {
        shown.parts.truncate(before);
        let (text, text_tokens) = tokenizer.start_of(&fragment.text, room);
        if text.trim().is_empty() {
            return;
        }
        push_file(template, fragment, text, &mut shown.parts);
        let tokens = tokenizer.count_parts(&shown.parts);
        if tokens <= budget {
            shown.tokens = tokens;
            shown.fragments += 1;
            shown.cut = Some(text.to_owned());
            return;
        }
        room = text_tokens.saturating_sub(tokens - budget);
    }
}

fn push_file<'p>(
    template: &'p Template,
    fragment: &'p CrossFileFragment,
    text: &'p str,
    parts: &mut Vec<TextPart<'p>>,
) {
    let presence = Presence {
        right: false,
        cross_file: false,
        repository: false,
        path: !fragment.path.is_empty(),
    };
    parts.extend(template.pieces(presence).into_iter().map(|piece| match piece {
        Piece::Special(special) => TextPart::Special(special),
        Piece::Plain(plain) => TextPart::Plain(plain),
        Piece::Slot(Slot::Path) => TextPart::Plain(&fragment.path),
        Piece::Slot(_) => TextPart::Plain(text),
    }));
}

/// The text that shows fragments as comments, found at the start of another text.
#[derive(Debug)]
pub(super) struct Block {
    /// Byte after the block.
    pub(super) end: usize,
    /// Fragments of which the text has some code.
    pub(super) fragments: Vec<CrossFileFragment>,
}

impl Block {
    /// Reads a block that begins with this comment marker. The block may have been cut short anywhere after its head.
    pub(super) fn at_start(text: &str, comment: &str) -> Option<Self> {
        let head = text.strip_prefix(comment)?.strip_prefix(HEAD)?;
        let mut rest = head;
        let mut fragments = Vec::new();
        let commented =
            |line: &str| Some(line.strip_prefix(comment)?.strip_prefix(' ')?.to_owned());
        while let Some(after) =
            rest.strip_prefix(comment).and_then(|rest| rest.strip_prefix(FOUND_IN))
        {
            let (path, mut code) = after.split_once('\n').unwrap_or((after, ""));
            let Some(path) = commented(path) else { break };
            rest = code;
            let mut lines = Vec::new();
            loop {
                let (line, next) = code.split_once('\n').unwrap_or((code, ""));
                let Some(line) = commented(line) else { break };
                lines.push(line);
                (rest, code) = (next, next);
            }
            if lines.iter().any(|line| !line.trim().is_empty()) {
                fragments.push(CrossFileFragment { path, text: lines.join("\n"), score: None });
            }
            // A fragment without lines is followed by two newlines.
            let blank = if lines.is_empty() { "\n\n" } else { "\n" };
            match rest.strip_prefix(blank) {
                Some(after) => rest = after,
                None => break,
            }
        }
        Some(Self { end: text.len() - rest.len(), fragments })
    }

    /// Returns the positions at which a block may begin, with the comment marker of any language.
    pub(super) fn heads(text: &str) -> impl Iterator<Item = usize> {
        let comments = ["#", "//"].into_iter();
        comments.flat_map(move |comment| {
            let head = format!("{comment}{HEAD}");
            let places = text.match_indices(&head).map(|(at, _)| at);
            places.collect::<Vec<_>>()
        })
    }

    /// Reads a block at the start of a text, with the comment marker of any language.
    pub(super) fn of_any_language(text: &str) -> Option<Self> {
        Self::at_start(text, "#").or_else(|| Self::at_start(text, "//"))
    }
}
