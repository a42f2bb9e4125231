//! What a decision is made from: numbers about a hole, and about what was retrieved for it.
//!
//! - [`Local`]: from the left and right contexts and the file's path, before any retrieval.
//! - [`Hashed`]: the words near the hole, each in one of a few hundred buckets.
//! - [`Retrieved`]: from the fragments too.
//!
//! All of it is counting over a bounded part of the contexts (the nearest 5 KiB before the hole, 2 KiB behind it, and the
//! file's first 2 KiB for its imports, 8 KiB of each fragment), so that a decision costs microseconds whatever the file's size.

mod hashed;
mod imports;
mod local;
mod retrieved;
mod tokens;

pub use hashed::{BUCKETS, Hashed};
pub use local::Local;
pub use retrieved::Retrieved;

use crate::task::cross_file::Fragment;
use crate::text::language::Language;
use tokens::{Match, Sieve, Tokens, Triples, WordSet, find_end, find_start, is_word};

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

/// Lines whose triples of tokens are looked for.
const FAMILIAR_LINES: usize = 5;
/// Bits of the sketch that different names are counted with.
const SKETCH: usize = 8192;

const LEFT_BYTES: usize = 5 << 10;
const RIGHT_BYTES: usize = 2 << 10;
const HEAD_BYTES: usize = 2 << 10;
const FRAGMENT_BYTES: usize = 8 << 10;

/// A request read once, for all features.
#[derive(Debug)]
pub struct Context<'a> {
    request: Request<'a>,
    left: Tokens,
    right: Tokens,
    /// The names near the hole, each with how often the rest of the file has it.
    near: WordSet,
    elsewhere: Vec<u32>,
    /// The near names that each line before and behind the hole has, a bit each.
    near_by_line: [Vec<u64>; 2],
    /// Names before the hole, and how many different ones these are.
    words_before: usize,
    different_before: usize,
    /// Those of the lines behind the hole that no line before it has.
    new_behind: usize,
    /// Share of the triples of tokens of the last lines that the file has elsewhere, and of those of the next lines.
    familiar: [f32; 2],
    /// The longest end of the left context that stands before in it.
    repeat: Match,
    /// The longest beginning of what follows that stands before.
    follow: Match,
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
        let mut sieve = Sieve::default();
        near.each(|token| sieve.add(token));
        let by_line = |tokens: &Tokens, far: std::ops::Range<usize>, counts: &mut Vec<u32>| {
            let mut lines = vec![0u64; tokens.lines.len()];
            let mut line = 0;
            for (at, &token) in tokens.all.iter().enumerate() {
                if token == tokens::NEWLINE {
                    line += 1;
                } else if sieve.may_hold(token)
                    && is_word(token)
                    && let Some(number) = near.get(token)
                {
                    lines[line] |= 1 << number;
                    counts[number as usize] += u32::from(far.contains(&at));
                }
            }
            lines
        };
        let near_by_line = [
            by_line(&left, 0..start, &mut elsewhere),
            by_line(&right, behind.len()..right.all.len(), &mut elsewhere),
        ];
        let (mut words_before, mut seen) = (0, vec![0u64; SKETCH / 64]);
        for &token in left.all.iter().filter(|token| is_word(**token)) {
            words_before += 1;
            let bit = token as usize >> 1 & (SKETCH - 1);
            seen[bit / 64] |= 1 << (bit % 64);
        }
        let different_before = seen.iter().map(|bits| bits.count_ones() as usize).sum();
        let held = |lines: &[u64]| lines.iter().fold(0, |names, line| names | line);
        let first = &near_by_line[1][..NEAR_LINES_BEHIND.min(right.lines.len())];
        let new_behind = (held(first) & !held(&near_by_line[0])).count_ones() as usize;
        let mut last = Triples::of(&left.all[left.start_of_last(FAMILIAR_LINES)..]);
        last.find_in(&left.all[..left.start_of_last(FAMILIAR_LINES)]);
        let next = right.first_lines(FAMILIAR_LINES);
        last.find_in(&right.all[next.len()..]);
        let mut following = Triples::of(next);
        following.find_in(&left.all);
        following.find_in(&right.all[next.len()..]);
        let repeat = find_end(&left.all, &left.all[..left.all.len().saturating_sub(1)]);
        let follow = find_start(&right.all, &left.all, 0);
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
            near_by_line,
            words_before,
            different_before,
            new_behind,
            familiar: [last.share(), following.share()],
            repeat,
            follow,
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

/// Whether a path below its repository is that of a test: a name on it is `test`, `tests`, or begins or ends so.
fn is_test(path: &str) -> bool {
    let below = path.split_once('/').map_or("", |(_, below)| below);
    below.split('/').any(is_test_name)
}

fn is_test_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    let lower = stem.to_ascii_lowercase();
    matches!(
        lower.as_str(),
        "test" | "tests" | "testing" | "__tests__" | "spec"
    ) || lower.starts_with("test_")
        || lower.ends_with("_test")
        || lower.ends_with("_tests")
        || stem.ends_with("Test")
        || stem.ends_with("Tests")
        || name.contains(".test.")
        || name.contains(".spec.")
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
