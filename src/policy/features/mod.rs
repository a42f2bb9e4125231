//! What a decision is made from: numbers about a hole, and about what was retrieved for it.
//!
//! - [`Local`]: from the left and right contexts and the file's path, before any retrieval.
//! - [`Hashed`]: the words near the hole, each in one of a few hundred buckets.
//! - [`Retrieved`]: from the fragments too.
//!
//! All of it is counting over a bounded part of the contexts (the nearest 8 KiB before the hole, 3 KiB behind it, and the
//! file's first 4 KiB for its imports), so that a decision costs microseconds whatever the file's size.

mod hashed;
mod imports;
mod local;
mod retrieved;
mod tokens;

pub use hashed::{BUCKETS, Hashed};
pub use local::Local;
pub use retrieved::Retrieved;

use crate::cross_file::Fragment;
use crate::language::Language;
use tokens::{Tokens, Triples, WordSet, is_word};

/// Declares features: a struct of numbers, their names and what they mean.
macro_rules! features {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $meaning:literal])+ $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Default)]
        pub struct $name {
            $($(#[doc = $meaning])+ pub $field: f32,)*
        }

        impl $name {
            /// Name and meaning of each, in the order of [`Self::values`].
            pub const FEATURES: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), concat!($($meaning),+)),)*];

            /// The numbers, in order.
            pub fn values(&self) -> [f32; Self::FEATURES.len()] {
                [$(self.$field,)*]
            }
        }
    };
}
use features;

/// What is known when a decision is made.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The file before the hole.
    pub left: &'a str,
    /// The file behind it; empty where it is not known.
    pub right: &'a str,
    /// `repository/folder/…/file.py`; empty where it is not known.
    pub path: &'a str,
    /// What the file is written in.
    pub language: Language,
    /// What was retrieved, best first; empty before retrieval.
    pub fragments: &'a [Fragment],
}

/// Lines before the hole whose names count as near.
const NEAR_LINES: usize = 8;
/// Lines behind it that do.
const NEAR_LINES_BEHIND: usize = 3;
/// Near names that are told apart at most.
const NEAR_NAMES: usize = 64;

const LEFT_BYTES: usize = 8 << 10;
const RIGHT_BYTES: usize = 3 << 10;
const HEAD_BYTES: usize = 4 << 10;

/// A request read once, for all features.
#[derive(Debug)]
pub struct Context<'a> {
    request: Request<'a>,
    left: Tokens,
    right: Tokens,
    /// The names near the hole, each with how often the rest of the file has it.
    near: WordSet,
    elsewhere: Vec<u32>,
    /// Those of the lines behind the hole that no line before it has.
    new_behind: usize,
    imports: imports::Imports,
}

impl<'a> Context<'a> {
    /// Reads what is near the hole.
    pub fn of(request: Request<'a>) -> Self {
        let left = Tokens::of(tail(request.left, LEFT_BYTES));
        let right = Tokens::of(head(request.right, RIGHT_BYTES));
        let mut near = WordSet::with_room(NEAR_NAMES);
        let start = left.start_of_last(NEAR_LINES);
        let behind = right.first_lines(NEAR_LINES_BEHIND);
        for &token in left.all[start..].iter().chain(behind) {
            if is_word(token) && near.len() < NEAR_NAMES {
                near.insert(token);
            }
        }
        let mut elsewhere = vec![0; near.len()];
        for &token in left.all[..start].iter().chain(&right.all[behind.len()..]) {
            if is_word(token)
                && let Some(number) = near.get(token)
            {
                elsewhere[number as usize] += 1;
            }
        }
        let mut before = WordSet::with_room(left.all.len());
        for &token in &left.all {
            if is_word(token) {
                before.insert(token);
            }
        }
        let mut new_behind = WordSet::with_room(behind.len());
        for &token in behind {
            if is_word(token) && !before.contains(token) {
                new_behind.insert(token);
            }
        }
        let new_behind = new_behind.len();
        let imports = imports::read(
            head(request.left, HEAD_BYTES),
            request.path,
            request.language,
        );
        Self {
            request,
            left,
            right,
            near,
            elsewhere,
            new_behind,
            imports,
        }
    }

    /// How many of the near names some tokens hold, as a share of all.
    fn near_share(&self, tokens: &[u32]) -> f32 {
        let mut held = 0u64;
        for &token in tokens {
            if is_word(token)
                && let Some(number) = self.near.get(token)
            {
                held |= 1 << number;
            }
        }
        share(held.count_ones() as usize, self.near.len())
    }
}

/// The last bytes of a text, from the beginning of a line where there is one.
fn tail(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let from = text.ceil_char_boundary(text.len() - bytes);
    let text = &text[from..];
    match memchr::memchr(b'\n', text.as_bytes()) {
        Some(end) if end + 1 < text.len() => &text[end + 1..],
        _ => text,
    }
}

/// The first bytes of a text, up to the end of a line where there is one.
fn head(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let text = &text[..text.floor_char_boundary(bytes)];
    match memchr::memrchr(b'\n', text.as_bytes()) {
        Some(end) if end > 0 => &text[..end],
        _ => text,
    }
}

/// `part / all`, 0 of nothing.
fn share(part: usize, all: usize) -> f32 {
    match all {
        0 => 0.0,
        all => part as f32 / all as f32,
    }
}

/// `ln(1 + count)`.
fn log(count: usize) -> f32 {
    (count as f32).ln_1p()
}

fn flag(is: bool) -> f32 {
    f32::from(u8::from(is))
}
