//! Features of a decision: numbers about a hole, and about the fragments retrieved for it.
//!
//! - [`Local`]: features of the left and right contexts and of the file's path, known before retrieval.
//! - [`WordBuckets`]: words near the hole, each in one of a few hundred buckets.
//! - [`Retrieved`]: features of the fragments.
//!
//! The features are counts over a bounded part of the contexts: the nearest 5 KiB before the hole, 2 KiB after it, the file's
//! first 2 KiB for its imports, and 8 KiB of each fragment. A decision therefore takes microseconds for a file of any size.

mod hashed;
mod imports;
mod local;
mod numbers;
mod retrieved;
mod tokens;

pub use hashed::{BUCKETS, WordBuckets};
pub use local::Local;
pub use retrieved::Retrieved;

use numbers::share;
use repoformer_text::language::Language;
use tokens::{Match, Sieve, Tokens, Triples, WordSet, find_end, find_start, is_word};

use crate::task::cross_file::CrossFileFragment;

/// Declares features: a struct of numbers with their names and meanings.
macro_rules! features {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $meaning:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Default)]
        pub struct $name {
            $(#[doc = $meaning] pub $field: f32,)*
        }

        impl $name {
            /// Names and meanings, in the order of [`Self::values`].
            pub const FEATURES: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), $meaning),)*];

            /// Returns the numbers, in order.
            pub fn values(&self) -> [f32; Self::FEATURES.len()] {
                [$(self.$field,)*]
            }
        }
    };
}
use features;

/// Input of a decision.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Text before the hole.
    pub left: &'a str,
    /// Text after the hole; empty if unknown.
    pub right: &'a str,
    /// `repository/folder/…/file.py`; empty if unknown.
    pub path: &'a str,
    /// Language of the file.
    pub language: Language,
    /// Retrieved fragments, best first; empty before retrieval.
    pub fragments: &'a [CrossFileFragment],
}

/// Number of lines before the hole whose names are near names.
const NEAR_LINES: usize = 8;
/// Number of lines after the hole whose names are near names.
const NEAR_LINES_BEHIND: usize = 3;
/// Maximum number of distinct near names.
const NEAR_NAMES: usize = 64;

/// Number of lines whose token triples are searched for in the file.
const FAMILIAR_LINES: usize = 5;
/// Number of bits in the sketch that counts distinct names.
const SKETCH: usize = 8192;

const LEFT_BYTES: usize = 5 << 10;
const RIGHT_BYTES: usize = 2 << 10;
const HEAD_BYTES: usize = 2 << 10;
const FRAGMENT_BYTES: usize = 8 << 10;

/// A request, parsed once for all features.
#[derive(Debug)]
pub struct Context<'a> {
    request: Request<'a>,
    left: Tokens,
    right: Tokens,
    /// Names near the hole, and the number of occurrences of each in the rest of the file.
    near: WordSet,
    elsewhere: Vec<u32>,
    /// Near names in each line before and after the hole, one bit each.
    near_by_line: [Vec<u64>; 2],
    /// Number of names before the hole, and number of distinct names.
    words_before: usize,
    different_before: usize,
    /// Number of near names in the lines after the hole that occur in no line before it.
    new_behind: usize,
    /// Fraction of the token triples of the last lines before the hole, and of the next lines after it, that occur elsewhere in
    /// the file.
    familiar: [f32; 2],
    /// Longest suffix of the left context that occurs earlier in it.
    repeat: Match,
    /// Longest prefix of the right context that occurs in the left context.
    follow: Match,
    imports: imports::Imports,
}

impl<'a> Context<'a> {
    /// Parses the text near the hole.
    pub fn new(request: Request<'a>) -> Self {
        let left = Tokens::from_text(tail(request.left, LEFT_BYTES));
        let right = Tokens::from_text(head(request.right, RIGHT_BYTES));
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
        let mut last = Triples::new(&left.all[left.start_of_last(FAMILIAR_LINES)..]);
        last.find_in(&left.all[..left.start_of_last(FAMILIAR_LINES)]);
        let next = right.first_lines(FAMILIAR_LINES);
        last.find_in(&right.all[next.len()..]);
        let mut following = Triples::new(next);
        following.find_in(&left.all);
        following.find_in(&right.all[next.len()..]);
        let repeat = find_end(&left.all, &left.all[..left.all.len().saturating_sub(1)]);
        let follow = find_start(&right.all, &left.all, 0);
        let imports = imports::read(head(request.left, HEAD_BYTES), request.path, request.language);
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

    /// Returns the fraction of the near names that are among some tokens.
    fn near_share(&self, tokens: &[u32]) -> f32 {
        share(self.near.bits(tokens).count_ones() as usize, self.near.len())
    }
}

/// Returns the end of a text, at most this many bytes, starting at the beginning of a line if possible.
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

/// Returns the beginning of a text, at most this many bytes, stopping at the end of a line if possible.
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

/// Returns true if a path is the path of a test: below the repository, a component is `test`, `tests` or a similar name, or
/// starts or ends with one.
fn is_test(path: &str) -> bool {
    let below = path.split_once('/').map_or("", |(_, below)| below);
    below.split('/').any(is_test_name)
}

fn is_test_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name);
    let lower = stem.to_ascii_lowercase();
    matches!(lower.as_str(), "test" | "tests" | "testing" | "__tests__" | "spec")
        || lower.starts_with("test_")
        || lower.ends_with("_test")
        || lower.ends_with("_tests")
        || stem.ends_with("Test")
        || stem.ends_with("Tests")
        || name.contains(".test.")
        || name.contains(".spec.")
}
