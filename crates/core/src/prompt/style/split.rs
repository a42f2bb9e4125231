//! Splits a prompt into its contexts.

use super::cross_file::Block;
use super::template::{Piece, Presence, Slot, first_special};
use super::{Slots, Style};

/// Presence of a fragment's slots.
const WITH_PATH: Presence =
    Presence { right: false, cross_file: false, repository: false, path: true };

impl Style {
    /// Returns the contexts of a prompt that [`fill`](Style::fill) built with this style, for any selection of contexts; `None`
    /// for a text that is not such a prompt.
    ///
    /// Special tokens separate the contexts, so contexts whose code contains no special tokens are recovered exactly. If no
    /// special token separates a cross-file context from code, the context is recognized by the text that Repoformer's and
    /// CrossCodeEval's programs write; a context that was cut within a line may absorb the comment lines after it. A right
    /// context directly next to the left one (`codegen` without cross-file context) counts as left context.
    ///
    /// ```
    /// use repoformer_core::prompt::style::Style;
    /// let style: Style = "codestral".parse()?;
    /// let slots = style.split("[SUFFIX]\nz = 3\n[PREFIX]x = 1\ny =").unwrap();
    /// assert_eq!((slots.left, slots.right), ("x = 1\ny =", "\nz = 3\n"));
    /// assert_eq!(style.split("x = 1"), None);
    /// # Ok::<(), repoformer_store::error::Error>(())
    /// ```
    pub fn split<'t>(&self, text: &'t str) -> Option<Slots<'t>> {
        let matched = |comments| {
            Presence::all().find_map(|presence| {
                let matcher = Matcher { style: self, comments };
                let pieces = self.template.pieces(presence);
                matcher.match_from(&pieces, text, Slots::default())
            })
        };
        matched(Comments::Usual).or_else(|| matched(Comments::Any))
    }
}

/// How the end of a cross-file context shown as comments is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comments {
    /// By the text that the reference programs write.
    Usual,
    /// By the special token after it: the text is in another form, or was cut before it could be recognized.
    Any,
}

struct Matcher<'s> {
    style: &'s Style,
    comments: Comments,
}

impl Matcher<'_> {
    /// Matches the pieces with a whole text.
    fn match_from<'t>(
        &self,
        pieces: &[Piece<'_>],
        text: &'t str,
        found: Slots<'t>,
    ) -> Option<Slots<'t>> {
        let Some((first, others)) = pieces.split_first() else {
            return text.is_empty().then_some(found);
        };
        match first {
            Piece::Special(literal) | Piece::Plain(literal) => {
                self.match_from(others, text.strip_prefix(literal)?, found)
            }
            Piece::Slot(slot) => self.ends(*slot, others, text).into_iter().find_map(|end| {
                let value = self.value(*slot, &text[..end])?;
                let found = with(found, *slot, value);
                self.match_from(others, &text[end..], found)
            }),
        }
    }

    /// Returns the positions at which the text of a slot at the start of `text` may end, before `others`.
    fn ends(&self, slot: Slot, others: &[Piece<'_>], text: &str) -> Vec<usize> {
        let as_comments = self.style.fragment.is_none();
        if slot == Slot::CrossFile && as_comments && self.comments == Comments::Usual {
            return self.ends_of_comments(text);
        }
        match others.first() {
            None => vec![text.len()],
            Some(Piece::Special(literal) | Piece::Plain(literal)) => {
                text.match_indices(literal).map(|(at, _)| at).collect()
            }
            Some(Piece::Slot(Slot::CrossFile)) if as_comments => {
                let leads = Block::heads(text).filter_map(|at| {
                    let before = text[..at].strip_suffix(self.style.lead.as_str())?;
                    Some(before.len())
                });
                leads.collect()
            }
            Some(Piece::Slot(Slot::CrossFile)) => self.starts_of_files(text),
            // Nothing separates the two slots.
            Some(Piece::Slot(_)) => vec![0],
        }
    }

    /// Returns the positions at which the first file of a cross-file context may begin.
    fn starts_of_files(&self, text: &str) -> Vec<usize> {
        let fragment = self.style.fragment.as_ref();
        let pieces = fragment.map_or_else(Vec::new, |template| template.pieces(WITH_PATH));
        match pieces.first() {
            Some(Piece::Special(literal) | Piece::Plain(literal)) => {
                text.match_indices(literal).map(|(at, _)| at).collect()
            }
            _ => vec![0],
        }
    }

    /// Returns the ends of a block of comments: after its blank line, or before the newline of the line at which it was cut.
    fn ends_of_comments(&self, text: &str) -> Vec<usize> {
        let Some(rest) = text.strip_prefix(self.style.lead.as_str()) else {
            return Vec::new();
        };
        let Some(block) = Block::of_any_language(rest) else {
            return Vec::new();
        };
        let end = self.style.lead.len() + block.end;
        let mut ends = vec![end];
        if text[..end].ends_with('\n') {
            ends.push(end - 1);
        }
        ends
    }

    /// Returns the content of a slot; `None` if the slot cannot have this text.
    fn value<'t>(&self, slot: Slot, text: &'t str) -> Option<&'t str> {
        match slot {
            Slot::CrossFile if self.style.fragment.is_none() => {
                Some(text.strip_prefix(self.style.lead.as_str()).unwrap_or(text))
            }
            Slot::CrossFile => Some(text),
            Slot::Repository | Slot::Path if text.contains('\n') => None,
            _ => first_special(text, &self.style.specials).is_none().then_some(text),
        }
    }
}

fn with<'t>(mut slots: Slots<'t>, slot: Slot, value: &'t str) -> Slots<'t> {
    match slot {
        Slot::Left => slots.left = value,
        Slot::Right => slots.right = value,
        Slot::CrossFile => slots.cross_file = value,
        Slot::Repository => slots.repository = value,
        Slot::Path | Slot::Text => slots.path = value,
    }
    slots
}
