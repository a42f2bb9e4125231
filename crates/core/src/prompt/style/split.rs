//! Splits a prompt into its contexts.

use super::cross_file::Block;
use super::template::{Piece, Presence, Slot};
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
        let specials = SpecialTokens::find(text, &self.specials);
        let matched = |comments| {
            Presence::all().find_map(|presence| {
                let matcher = Matcher { style: self, comments, text, specials: &specials };
                let pieces = self.template.pieces(presence);
                matcher.match_from(&pieces, 0, Slots::default())
            })
        };
        matched(Comments::Usual).or_else(|| matched(Comments::Any))
    }
}

/// Places of special tokens in a text.
struct SpecialTokens {
    /// Starts, ascending, each with the least end of the tokens that begin there or later.
    least_ends: Vec<(usize, usize)>,
}

impl SpecialTokens {
    fn find(text: &str, specials: &[String]) -> Self {
        let mut places = Vec::new();
        for special in specials.iter().filter(|special| !special.is_empty()) {
            let mut from = 0;
            while let Some(at) = text[from..].find(special.as_str()).map(|at| from + at) {
                places.push((at, at + special.len()));
                // A token may overlap itself.
                from = text.ceil_char_boundary(at + 1);
            }
        }
        places.sort_unstable();
        let mut least = usize::MAX;
        for (_, end) in places.iter_mut().rev() {
            least = least.min(*end);
            *end = least;
        }
        Self { least_ends: places }
    }

    /// Returns the end of the first token that begins at a position or later, or the greatest number.
    fn first_end(&self, from: usize) -> usize {
        let next = self.least_ends.partition_point(|(start, _)| *start < from);
        self.least_ends.get(next).map_or(usize::MAX, |(_, end)| *end)
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

struct Matcher<'s, 't> {
    style: &'s Style,
    comments: Comments,
    text: &'t str,
    specials: &'s SpecialTokens,
}

impl<'t> Matcher<'_, 't> {
    /// Matches the pieces with the text from a position to its end.
    fn match_from(&self, pieces: &[Piece<'_>], at: usize, found: Slots<'t>) -> Option<Slots<'t>> {
        let text = &self.text[at..];
        let Some((first, others)) = pieces.split_first() else {
            return text.is_empty().then_some(found);
        };
        match first {
            Piece::Special(literal) | Piece::Plain(literal) => {
                text.starts_with(literal).then_some(())?;
                self.match_from(others, at + literal.len(), found)
            }
            Piece::Slot(slot) => {
                let longest = self.longest(*slot, at);
                let ends = self.ends(*slot, others, at, longest).into_iter();
                ends.take_while(|end| *end <= longest).find_map(|end| {
                    let found = with(found, *slot, self.value(*slot, &text[..end]));
                    self.match_from(others, at + end, found)
                })
            }
        }
    }

    /// Returns the greatest length of a slot's text at a position: only a cross-file context may contain special tokens, and a name
    /// is on one line.
    fn longest(&self, slot: Slot, at: usize) -> usize {
        let text = &self.text[at..];
        let before_special = || (self.specials.first_end(at) - 1).min(self.text.len()) - at;
        match slot {
            Slot::CrossFile => text.len(),
            Slot::Repository | Slot::Path => {
                let longest = before_special();
                memchr::memchr(b'\n', &text.as_bytes()[..longest]).unwrap_or(longest)
            }
            _ => before_special(),
        }
    }

    /// Returns the lengths that the text of a slot at a position may have before `others`, ascending except for cross-file contexts.
    /// Lengths above `longest` may be missing.
    fn ends(&self, slot: Slot, others: &[Piece<'_>], at: usize, longest: usize) -> Vec<usize> {
        let text = &self.text[at..];
        let as_comments = self.style.fragment.is_none();
        if slot == Slot::CrossFile && as_comments && self.comments == Comments::Usual {
            return self.ends_of_comments(text);
        }
        match others.first() {
            None => vec![text.len()],
            Some(Piece::Special(literal) | Piece::Plain(literal)) => {
                let text = &text[..text.ceil_char_boundary(longest.saturating_add(literal.len()))];
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

    /// Returns the content of a slot with this text.
    fn value(&self, slot: Slot, text: &'t str) -> &'t str {
        if slot == Slot::CrossFile && self.style.fragment.is_none() {
            text.strip_prefix(self.style.lead.as_str()).unwrap_or(text)
        } else {
            text
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::template::first_special;
    use super::*;

    impl<'t> Matcher<'_, 't> {
        /// Matches as [`match_from`](Self::match_from) does, but tries every end of each slot.
        fn match_plainly(
            &self,
            pieces: &[Piece<'_>],
            at: usize,
            found: Slots<'t>,
        ) -> Option<Slots<'t>> {
            let text = &self.text[at..];
            let Some((first, others)) = pieces.split_first() else {
                return text.is_empty().then_some(found);
            };
            let slot = match first {
                Piece::Special(literal) | Piece::Plain(literal) => {
                    text.starts_with(literal).then_some(())?;
                    return self.match_plainly(others, at + literal.len(), found);
                }
                Piece::Slot(slot) => *slot,
            };
            self.ends(slot, others, at, text.len()).into_iter().find_map(|end| {
                let value = &text[..end];
                let is_name = matches!(slot, Slot::Repository | Slot::Path);
                let is_special = || {
                    first_special(value, &self.style.specials).is_some() && slot != Slot::CrossFile
                };
                if is_name && value.contains('\n') || is_special() {
                    return None;
                }
                self.match_plainly(others, at + end, with(found, slot, self.value(slot, value)))
            })
        }
    }

    /// Returns a style, and its template with slots of special tokens, other text that prompts have, and letters.
    fn style_and_text() -> impl Strategy<Value = (Style, String)> {
        let names: Vec<&str> = Style::names().collect();
        let style = (prop::sample::select(names), 0..16_usize);
        style.prop_flat_map(|(name, presence)| {
            let style: Style = name.parse().unwrap();
            let mut parts = style.specials.clone();
            parts.extend(["a", "é", "\n", "a.py", "# ", "\n\n", "aa"].map(str::to_owned));
            parts.push(style.lead.clone());
            let value = prop::collection::vec(prop::sample::select(parts), 0..4);
            let values = prop::collection::vec(value, 5);
            (Just(style), values).prop_map(move |(style, values)| {
                let mut values = values.iter().map(|parts| parts.concat());
                let pieces = style.template.pieces(Presence::all().nth(presence).unwrap());
                let text = pieces.iter().map(|piece| match piece {
                    Piece::Special(literal) | Piece::Plain(literal) => (*literal).to_owned(),
                    Piece::Slot(_) => values.next().unwrap_or_default(),
                });
                let text = text.collect();
                (style, text)
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn slots_end_where_every_end_is_tried((style, text) in style_and_text()) {
            let specials = SpecialTokens::find(&text, &style.specials);
            for comments in [Comments::Usual, Comments::Any] {
                for presence in Presence::all() {
                    let matcher = Matcher { style: &style, comments, text: &text, specials: &specials };
                    let pieces = style.template.pieces(presence);
                    let [fast, slow] = [
                        matcher.match_from(&pieces, 0, Slots::default()),
                        matcher.match_plainly(&pieces, 0, Slots::default()),
                    ];
                    prop_assert_eq!(fast, slow);
                }
            }
        }
    }
}
