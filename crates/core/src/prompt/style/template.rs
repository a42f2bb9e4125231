//! The template language: text with slots and optional sections.
//!
//! `{left}` stands for a slot's text. `{#right}…{/right}` appears only with a right context, `{^right}…{/right}` only without
//! one. `{{` and `}}` are literal braces.

use std::ops::Range;

use repoformer_text::names::did_you_mean;

/// Slots that a template may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    Left,
    Right,
    CrossFile,
    Repository,
    Path,
    /// Text of a fragment of another file.
    Text,
}

/// Slots of a prompt.
pub(super) const PROMPT: [Slot; 5] =
    [Slot::Left, Slot::Right, Slot::CrossFile, Slot::Repository, Slot::Path];
/// Slots of the template of a fragment.
pub(super) const FRAGMENT: [Slot; 2] = [Slot::Path, Slot::Text];

impl Slot {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
            Self::CrossFile => "cross_file",
            Self::Repository => "repository",
            Self::Path => "path",
            Self::Text => "text",
        }
    }

    /// Returns true if the slot may be absent, so that a section can depend on it.
    fn is_optional(self) -> bool {
        !matches!(self, Self::Left | Self::Text)
    }
}

/// Slots of a prompt that are present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Presence {
    pub(super) right: bool,
    pub(super) cross_file: bool,
    pub(super) repository: bool,
    pub(super) path: bool,
}

impl Presence {
    pub(super) fn has(self, slot: Slot) -> bool {
        match slot {
            Slot::Right => self.right,
            Slot::CrossFile => self.cross_file,
            Slot::Repository => self.repository,
            Slot::Path => self.path,
            Slot::Left | Slot::Text => true,
        }
    }

    /// Returns all combinations: those with the most slots first, and those with a cross-file context before those without.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..16).rev().map(|bits| Self {
            cross_file: bits & 8 != 0,
            right: bits & 4 != 0,
            repository: bits & 2 != 0,
            path: bits & 1 != 0,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Special(String),
    Plain(String),
    Slot(Slot),
    Section {
        slot: Slot,
        /// Whether the section is shown if the slot is present; otherwise it is shown if the slot is absent.
        with: bool,
        nodes: Vec<Node>,
    },
}

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Template(Vec<Node>);

/// Part of a template after its sections are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    Special(&'t str),
    Plain(&'t str),
    Slot(Slot),
}

/// An error in a template.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Byte offset in the template.
    pub(super) at: usize,
    pub(super) reason: String,
    pub(super) hint: Option<String>,
}

impl Template {
    /// Parses a template that may have these slots; `specials` are the texts in it that are special tokens.
    pub(super) fn parse(text: &str, slots: &[Slot], specials: &[String]) -> Result<Self, Fault> {
        let mut parser = Parser { text, at: 0, depth: 0, slots, specials };
        parser.nodes(None).map(Self)
    }

    /// Returns the template's pieces if these slots are present. An absent slot has no piece.
    pub(super) fn pieces(&self, presence: Presence) -> Vec<Piece<'_>> {
        let mut pieces = Vec::new();
        resolve(&self.0, presence, &mut pieces);
        pieces
    }

    /// Returns true if the slot appears in the template for any combination of other slots.
    pub(super) fn shows(&self, slot: Slot) -> bool {
        Presence::all().any(|presence| self.pieces(presence).contains(&Piece::Slot(slot)))
    }

    /// Returns true if this special token appears in the template.
    pub(super) fn has_special(&self, special: &str) -> bool {
        Presence::all().any(|presence| self.pieces(presence).contains(&Piece::Special(special)))
    }
}

fn resolve<'t>(nodes: &'t [Node], presence: Presence, pieces: &mut Vec<Piece<'t>>) {
    for node in nodes {
        match node {
            Node::Special(text) => pieces.push(Piece::Special(text)),
            Node::Plain(text) => pieces.push(Piece::Plain(text)),
            Node::Slot(slot) if presence.has(*slot) => pieces.push(Piece::Slot(*slot)),
            Node::Section { slot, with, nodes } if presence.has(*slot) == *with => {
                resolve(nodes, presence, pieces);
            }
            Node::Slot(_) | Node::Section { .. } => {}
        }
    }
}

/// Greatest number of sections around a text; there are only four slots that sections may depend on.
const MOST_NESTED: usize = 16;

struct Parser<'t> {
    text: &'t str,
    at: usize,
    /// Number of open sections.
    depth: usize,
    slots: &'t [Slot],
    specials: &'t [String],
}

/// Token of a template.
enum Token {
    Text(String),
    Slot(Slot),
    /// `{#right}` or, if `with` is false, `{^right}`.
    Open {
        slot: Slot,
        with: bool,
    },
    /// `{/right}`, and its position.
    Close(Slot, usize),
}

impl Parser<'_> {
    /// Reads up to the end of the section that was opened at a position, or of the template.
    fn nodes(&mut self, section: Option<(Slot, usize)>) -> Result<Vec<Node>, Fault> {
        let mut nodes = Vec::new();
        loop {
            let start = self.at;
            match (self.token()?, section) {
                (Some(Token::Text(text)), _) => self.push_text(&text, &mut nodes),
                (Some(Token::Slot(slot)), _) => nodes.push(Node::Slot(slot)),
                (Some(Token::Open { .. }), _) if self.depth == MOST_NESTED => {
                    let reason = format!("more than {MOST_NESTED} sections in each other");
                    return Err(fault(start, reason, None));
                }
                (Some(Token::Open { slot, with }), _) => {
                    self.depth += 1;
                    let nodes_in = self.nodes(Some((slot, start)))?;
                    self.depth -= 1;
                    nodes.push(Node::Section { slot, with, nodes: nodes_in });
                }
                (Some(Token::Close(slot, _)), Some((open, _))) if open == slot => return Ok(nodes),
                (Some(Token::Close(slot, at)), open) => return Err(crossing_fault(at, slot, open)),
                (None, Some((slot, start))) => {
                    let name = slot.name();
                    let reason = format!("the section '{name}' is not closed");
                    return Err(fault(start, reason, Some(format!("close it with {{/{name}}}"))));
                }
                (None, None) => return Ok(nodes),
            }
        }
    }

    /// Returns the next token; `None` at the end.
    fn token(&mut self) -> Result<Option<Token>, Fault> {
        let start = self.at;
        let text = self.text_to_tag();
        if !text.is_empty() {
            return Ok(Some(Token::Text(text)));
        }
        let rest = &self.text[start..];
        if rest.is_empty() {
            return Ok(None);
        }
        let tag = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let Some((tag, _)) = tag else {
            let reason = if rest.starts_with('}') {
                "a '}' without its '{'"
            } else {
                "a '{' without its '}'"
            };
            let hint = "write a literal brace twice: {{ or }}";
            return Err(fault(start, reason.into(), Some(hint.into())));
        };
        self.at = start + tag.len() + 2;
        let slot = |name| self.slot(name, start);
        Ok(Some(match tag.split_at_checked(1) {
            Some(("/", name)) => Token::Close(slot(name)?, start),
            Some((kind @ ("#" | "^"), name)) => {
                let (slot, with) = (slot(name)?, kind == "#");
                if !slot.is_optional() {
                    let reason = format!(
                        "{{{kind}{name}}}: '{name}' is never absent, so it needs no section"
                    );
                    return Err(fault(start, reason, None));
                }
                Token::Open { slot, with }
            }
            _ => Token::Slot(slot(tag)?),
        }))
    }

    /// Returns the text before the next tag or the end, with double braces as single ones; empty if a tag is next.
    fn text_to_tag(&mut self) -> String {
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let brace = rest.find(['{', '}']).unwrap_or(rest.len());
            text.push_str(&rest[..brace]);
            self.at += brace;
            let rest = &rest[brace..];
            if !rest.starts_with("{{") && !rest.starts_with("}}") {
                return text;
            }
            text.push_str(&rest[..1]);
            self.at += 2;
        }
    }

    fn slot(&self, name: &str, at: usize) -> Result<Slot, Fault> {
        let named = self.slots.iter().find(|slot| slot.name() == name);
        named.copied().ok_or_else(|| {
            let names = self.slots.iter().map(|slot| slot.name());
            let known = names.clone().collect::<Vec<_>>().join(", ");
            fault(at, format!("unknown slot '{name}'; known: {known}"), did_you_mean(name, names))
        })
    }

    /// Adds the text between slots, with its special tokens as separate nodes.
    fn push_text(&self, mut text: &str, nodes: &mut Vec<Node>) {
        while !text.is_empty() {
            let place = first_special(text, self.specials);
            let special = place.unwrap_or(text.len()..text.len());
            if special.start > 0 {
                nodes.push(Node::Plain(text[..special.start].into()));
            }
            if !special.is_empty() {
                nodes.push(Node::Special(text[special.clone()].into()));
            }
            text = &text[special.end..];
        }
    }
}

/// Returns the range of the first special token in a text; of several that start there, the longest.
pub(super) fn first_special(text: &str, specials: &[String]) -> Option<Range<usize>> {
    let places =
        specials.iter().filter_map(|special| Some((text.find(special.as_str())?, special.len())));
    let first = places.min_by_key(|&(at, length)| (at, std::cmp::Reverse(length)));
    first.map(|(at, length)| at..at + length)
}

fn crossing_fault(at: usize, slot: Slot, open: Option<(Slot, usize)>) -> Fault {
    let name = slot.name();
    let reason = format!("{{/{name}}} closes a section that is not open here");
    let hint =
        open.map(|(open, _)| format!("close the open section with {{/{}}} first", open.name()));
    fault(at, reason, hint)
}

fn fault(at: usize, reason: String, hint: Option<String>) -> Fault {
    Fault { at, reason, hint }
}
