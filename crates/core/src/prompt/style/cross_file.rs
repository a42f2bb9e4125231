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

/// Shows fragments as files, in order, while they fit; the first that does not fit is cut at a token and is the last. Files are
/// counted together, because tokens may join at their borders, and few numbers of files are tried: another file is taken to
/// add tokens.
pub(super) fn files<'p>(
    fragments: &'p [CrossFileFragment],
    template: &'p Template,
    budget: Option<usize>,
    tokenizer: &Tokenizer,
) -> ShownContext<'p> {
    let budget = budget.unwrap_or(usize::MAX);
    let mut shown = ShownContext::default();
    // Number of parts of the first fragments, by their number.
    let mut ends = vec![0];
    for fragment in fragments {
        push_file(template, fragment, &fragment.text, &mut shown.parts);
        ends.push(shown.parts.len());
    }
    shown.fragments = most_that_fit(fragments.len(), |count| {
        let tokens = tokenizer.count_parts(&shown.parts[..ends[count]]);
        let fits = tokens <= budget;
        if fits {
            shown.tokens = tokens;
        }
        fits
    });
    shown.parts.truncate(ends[shown.fragments]);
    if let Some(fragment) = fragments.get(shown.fragments) {
        push_cut(template, fragment, budget, tokenizer, &mut shown);
    }
    shown
}

/// Returns the greatest count up to `most` that fits, where every smaller count fits as well. No count more than twice as great
/// is tried, and few counts are. The last count that `fits` accepts is the result; 0 is never tried.
fn most_that_fit(most: usize, mut fits: impl FnMut(usize) -> bool) -> usize {
    let (mut fitting, mut over) = (0, None);
    while fitting < over.map_or(most, |over: usize| over - 1) {
        let tried = match over {
            None => (2 * fitting).clamp(1, most),
            Some(over) => fitting.midpoint(over),
        };
        if fits(tried) {
            fitting = tried;
        } else {
            over = Some(tried);
        }
    }
    fitting
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

#[cfg(feature = "tokenizers")]
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Style;
    use super::super::tests::{any_code, tokenizers};
    use super::*;

    /// Shows files as [`files`] does, and counts all of them again for each.
    fn slow_files<'p>(
        fragments: &'p [CrossFileFragment],
        template: &'p Template,
        budget: usize,
        tokenizer: &Tokenizer,
    ) -> ShownContext<'p> {
        let mut shown = ShownContext::default();
        for fragment in fragments {
            let before = shown.parts.len();
            push_file(template, fragment, &fragment.text, &mut shown.parts);
            let tokens = tokenizer.count_parts(&shown.parts);
            if tokens > budget {
                shown.parts.truncate(before);
                push_cut(template, fragment, budget, tokenizer, &mut shown);
                break;
            }
            shown.tokens = tokens;
            shown.fragments += 1;
        }
        shown
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn as_many_files_are_shown_as_if_each_was_added_alone(
            name in prop::sample::select(vec!["starcoder2", "qwen2.5-coder"]),
            files in prop::collection::vec(("[a-z]{0,3}", any_code()), 0..12),
            budget in prop::option::of(0_usize..400),
        ) {
            let fragment = |(path, text)| CrossFileFragment { path, text, score: None };
            let fragments: Vec<_> = files.into_iter().map(fragment).collect();
            let template = Style::find_bundled(name).and_then(|style| style.fragment.as_ref()).unwrap();
            for (tokenizer, _) in tokenizers() {
                let fast = super::files(&fragments, template, budget, tokenizer);
                let slow = slow_files(&fragments, template, budget.unwrap_or(usize::MAX), tokenizer);
                prop_assert_eq!(format!("{fast:?}"), format!("{slow:?}"), "{}", tokenizer);
            }
        }
    }

    #[test]
    fn few_numbers_of_files_are_tried() {
        for most in 0..70 {
            for limit in 0..=most {
                let (mut tried, mut last) = (Vec::new(), 0);
                let found = most_that_fit(most, |count| {
                    tried.push(count);
                    last = if count <= limit { count } else { last };
                    count <= limit
                });
                assert_eq!((found, last), (limit, limit));
                assert!(tried.iter().all(|count| (1..=most.min(2 * limit.max(1))).contains(count)));
                assert!(tried.len() as u32 <= 2 * (limit + 2).ilog2() + 2, "{most} {tried:?}");
            }
        }
        let mut sum = 0;
        most_that_fit(20_000, |count| {
            sum += count;
            true
        });
        assert!(sum < 3 * 20_000, "{sum} files counted");
    }
}
