//! Puts a task's contexts into a style, within a budget.

use repoformer_store::error::{Error, Result};
use repoformer_text::tokenize::model::{TextPart, Tokenizer};

use super::cross_file::{self, ShownContext};
use super::template::{Piece, Presence, Slot};
use super::{Budget, Parts, Style, StyledPrompt};

impl Style {
    /// Returns the prompt of a task. The right and the cross-file context keep their start, each within its own budget; the
    /// left context keeps its end, within its own budget and the remaining total. The prompt never has more tokens than the
    /// total budget: because tokens may join at the borders of parts, the whole prompt is counted, and the left context is cut
    /// until it fits.
    ///
    /// A cross-file context of which nothing is left counts as none.
    ///
    /// # Errors
    /// [`Error::Room`]: the left context is not empty, and none of it fits. Also fails if the style shows files and the
    /// cross-file context has none.
    /// cross-file context has none.
    pub fn fill(
        &self,
        parts: &Parts<'_>,
        budget: &Budget,
        tokenizer: &Tokenizer,
    ) -> Result<StyledPrompt> {
        let right_shown = self.shows_right();
        let (right, right_tokens) = match budget.right {
            _ if !right_shown => ("", 0),
            Some(budget) => tokenizer.start_of(parts.right, budget),
            None => (parts.right, tokenizer.count(parts.right)),
        };
        let (comments, fragments);
        let mut shown = ShownContext::default();
        if self.include.cross_file && self.shows_cross_file() {
            let context = parts.cross_file;
            if let Some(template) = &self.fragment {
                fragments = cross_file::fragments(context, parts.language)?;
                shown = cross_file::files(&fragments, template, budget.cross_file, tokenizer);
            } else {
                comments = cross_file::comments(context, parts.language, &self.lead);
                if let Some(text) = &comments {
                    let (lead, language) = (&self.lead, parts.language);
                    let budget = budget.cross_file;
                    shown =
                        cross_file::cut_comments(text, context, lead, language, budget, tokenizer);
                }
            }
        }
        let presence = Presence {
            right: right_shown,
            cross_file: !shown.parts.is_empty(),
            repository: !parts.repository.is_empty(),
            path: !parts.path.is_empty(),
        };
        let frame = Frame {
            pieces: self.template.pieces(presence),
            parts,
            right,
            right_tokens,
            cross_file: &shown,
        };
        // Text that a server puts around the prompt is part of the prompt's length.
        let around = tokenizer.around();
        let total = budget.total.saturating_sub(around);
        let (text, tokens, left_tokens) =
            frame.with_most_left(&Budget { total, ..*budget }, tokenizer)?;
        let tokens = tokens + around;
        Ok(StyledPrompt {
            text,
            tokens,
            left_tokens,
            right_tokens,
            cross_file_tokens: shown.tokens,
            fragments: shown.fragments,
            cut: shown.cut,
            stop: self.stop.clone(),
        })
    }
}

impl Style {
    /// Returns the number of tokens of a prompt with every context, without the contexts themselves and the names of the
    /// repository and the file.
    pub fn own_tokens(&self, tokenizer: &Tokenizer) -> usize {
        let presence = Presence {
            right: self.shows_right(),
            cross_file: self.include.cross_file && self.shows_cross_file(),
            repository: false,
            path: false,
        };
        let own = self.template.pieces(presence).into_iter().filter_map(|piece| match piece {
            Piece::Special(text) => Some(TextPart::Special(text)),
            Piece::Plain(text) => Some(TextPart::Plain(text)),
            Piece::Slot(_) => None,
        });
        tokenizer.around() + tokenizer.count_parts(&own.collect::<Vec<_>>())
    }
}

/// Everything in a prompt except its left context.
struct Frame<'p> {
    pieces: Vec<Piece<'p>>,
    parts: &'p Parts<'p>,
    right: &'p str,
    right_tokens: usize,
    cross_file: &'p ShownContext<'p>,
}

impl Frame<'_> {
    /// Returns the text with as much left context as fits, its tokens, and the tokens of its left context.
    fn with_most_left(
        &self,
        budget: &Budget,
        tokenizer: &Tokenizer,
    ) -> Result<(String, usize, usize)> {
        let frame_tokens = tokenizer.count_known(&self.with_left("", 0));
        let room = budget.total.saturating_sub(frame_tokens);
        let mut room = budget.left.map_or(room, |left| left.min(room));
        loop {
            let (left, left_tokens) = tokenizer.end_of(self.parts.left, room);
            if left.is_empty() && !self.parts.left.is_empty() {
                return Err(self.no_room(budget, frame_tokens));
            }
            let parts = self.with_left(left, left_tokens);
            let tokens = tokenizer.count_known(&parts);
            if tokens <= budget.total {
                let text = parts.iter().map(|(part, _)| part.text()).collect();
                return Ok((text, tokens, left_tokens));
            }
            // A left context of blanks may have no tokens at all; then a shorter one has none either.
            if left_tokens == 0 {
                return Err(self.no_room(budget, frame_tokens));
            }
            room = left_tokens.saturating_sub(tokens - budget.total);
        }
    }

    /// Returns the parts in order, each with its token count if it was counted.
    fn with_left<'p>(&'p self, left: &'p str, left_tokens: usize) -> Vec<PartTokens<'p>> {
        let mut parts = Vec::with_capacity(self.pieces.len() + self.cross_file.parts.len());
        for piece in &self.pieces {
            parts.push(match *piece {
                Piece::Special(text) => (TextPart::Special(text), None),
                Piece::Plain(text) => (TextPart::Plain(text), None),
                Piece::Slot(Slot::CrossFile) => {
                    let shown = self.cross_file;
                    let alone = (shown.parts.len() == 1).then_some(shown.tokens);
                    parts.extend(shown.parts.iter().map(|part| (*part, alone)));
                    continue;
                }
                Piece::Slot(Slot::Left) => (TextPart::Plain(left), Some(left_tokens)),
                Piece::Slot(Slot::Right) => (TextPart::Plain(self.right), Some(self.right_tokens)),
                Piece::Slot(Slot::Repository) => (TextPart::Plain(self.parts.repository), None),
                Piece::Slot(Slot::Path | Slot::Text) => (TextPart::Plain(self.parts.path), None),
            });
        }
        parts
    }

    fn no_room(&self, budget: &Budget, frame_tokens: usize) -> Error {
        let (right, cross_file) = (self.right_tokens, self.cross_file.tokens);
        let of_right = format!("the right context ({right} tokens)");
        let of_cross_file = format!("the cross-file context ({cross_file} tokens)");
        let who = match (right > 0, cross_file > 0) {
            (true, true) => format!("{of_right} and {of_cross_file} leave"),
            (true, false) => format!("{of_right} leaves"),
            (false, true) => format!("{of_cross_file} leaves"),
            (false, false) => "the style's own text leaves".into(),
        };
        let total = budget.total;
        let own = match budget.left {
            Some(left) if frame_tokens < total => format!(" of up to {left} tokens"),
            _ => String::new(),
        };
        Error::Room {
            reason: format!(
                "{who} no room for the left context{own}: the rest of the prompt has \
                 {frame_tokens} tokens, and the limit is {total}"
            ),
        }
    }
}

/// A part, and its own token count if it is known.
type PartTokens<'p> = (TextPart<'p>, Option<usize>);
