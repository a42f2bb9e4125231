//! Tokens as hashes, with newline tokens between lines. The lexer takes a nanosecond per byte, so decisions are fast.

use super::numbers::share;

/// Token between two lines; blank lines have no tokens.
pub(super) const NEWLINE: u32 = 0;

/// Returns true if a token is a name, a keyword or a number.
pub(super) fn is_word(token: u32) -> bool {
    token & 1 == 1
}

/// Tokens of a text, in order.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// Hashes of the tokens: odd ones are words, and [`NEWLINE`] ends a non-blank line.
    pub(super) all: Vec<u32>,
    /// Index of the first token of each non-blank line.
    pub(super) lines: Vec<u32>,
}

impl Tokens {
    /// Parses a text.
    pub(super) fn from_text(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut tokens = Self {
            all: Vec::with_capacity(bytes.len() / 3 + 8),
            lines: Vec::with_capacity(bytes.len() / 24 + 4),
        };
        let mut at = 0;
        let mut is_line_open = false;
        while at < bytes.len() {
            let byte = bytes[at];
            match CLASSES[byte as usize] {
                BLANK => {
                    at += 1;
                    if byte == b'\n' && is_line_open {
                        tokens.all.push(NEWLINE);
                        is_line_open = false;
                    }
                    continue;
                }
                _ if !is_line_open => {
                    is_line_open = true;
                    tokens.lines.push(tokens.all.len() as u32);
                }
                _ => {}
            }
            if CLASSES[byte as usize] == WORD {
                let (token, end) = read_word(bytes, at);
                tokens.all.push(token);
                at = end;
            } else {
                tokens.all.push(2 * u32::from(byte));
                at += 1;
            }
        }
        tokens
    }

    /// Returns the tokens of the last `count` lines, or all tokens if there are fewer lines.
    pub(super) fn last_lines(&self, count: usize) -> &[u32] {
        &self.all[self.start_of_last(count)..]
    }

    /// Returns the index of the first token of the last `count` lines.
    pub(super) fn start_of_last(&self, count: usize) -> usize {
        let line = self.lines.len().saturating_sub(count);
        self.lines.get(line).map_or(0, |&start| start as usize)
    }

    /// Returns the tokens of the first `count` lines, or all tokens if there are fewer lines.
    pub(super) fn first_lines(&self, count: usize) -> &[u32] {
        let end = self.lines.get(count).map_or(self.all.len(), |&at| at as usize);
        &self.all[..end]
    }
}

/// Returns the token of a name.
pub(super) fn word(text: &str) -> u32 {
    read_word(text.as_bytes(), 0).0
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the token of the word at `start`, and the word's end. Bytes are hashed eight at a time, so most names need one or
/// two multiplications.
fn read_word(bytes: &[u8], start: usize) -> (u32, usize) {
    let (mut hash, mut eight, mut at) = (SEED, 0u64, start);
    while at < bytes.len() && CLASSES[bytes[at] as usize] == WORD {
        eight = eight << 8 | u64::from(bytes[at]);
        at += 1;
        if (at - start).is_multiple_of(8) {
            hash = mix(hash ^ eight);
            eight = 0;
        }
    }
    ((mix(hash ^ eight) >> 32) as u32 | 1, at)
}

fn mix(hash: u64) -> u64 {
    let hash = hash.wrapping_mul(SEED);
    hash ^ hash >> 32
}

const BLANK: u8 = 0;
const WORD: u8 = 1;
const SIGN: u8 = 2;

/// Class of each byte; non-ASCII bytes are parts of words.
static CLASSES: [u8; 256] = {
    let mut classes = [SIGN; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if b.is_ascii_alphanumeric() || b == b'_' || b >= 128 {
            classes[byte] = WORD;
        } else if b <= b' ' {
            classes[byte] = BLANK;
        }
        byte += 1;
    }
    classes
};

/// Match of a text's suffix (or prefix) in another text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Match {
    /// Number of common tokens.
    pub(super) length: usize,
    /// Number of newlines among these tokens.
    pub(super) lines: usize,
    /// Index in the other text of the token after the first longest match (for a prefix: of the match's first token).
    pub(super) at: usize,
    /// Number of matches of this length.
    pub(super) places: usize,
}

/// Maximum number of tokens in a match.
const LONGEST: usize = 96;

/// Finds the longest suffix of `left` that occurs in `other` with a token after it.
pub(super) fn find_end(left: &[u32], other: &[u32]) -> Match {
    let length = |at: usize| {
        let pairs = left.iter().rev().zip(other[..=at].iter().rev());
        let length = pairs.take(LONGEST).take_while(|(a, b)| a == b).count();
        (length, at + 1)
    };
    let last = left.last();
    let places = (0..other.len().saturating_sub(1)).filter(|&at| Some(&other[at]) == last);
    let mut best = longest(places.map(length));
    best.lines = newlines(&left[left.len() - best.length..]);
    best
}

/// Finds the longest prefix of `right` that occurs in `other` at the beginning of a line, at token `from` or later.
pub(super) fn find_start(right: &[u32], other: &[u32], from: usize) -> Match {
    let is_line_start = |at: usize| at == 0 || other[at - 1] == NEWLINE;
    let length = |at: usize| {
        let pairs = right.iter().zip(&other[at..]);
        let length = pairs.take(LONGEST).take_while(|(a, b)| a == b).count();
        (length, at)
    };
    let first = right.first();
    let places = (from..other.len()).filter(|&at| Some(&other[at]) == first && is_line_start(at));
    let mut best = longest(places.map(length));
    best.lines = newlines(&right[..best.length]);
    best
}

/// Returns the first of the longest matches, given the length and the position of each.
fn longest(matches: impl Iterator<Item = (usize, usize)>) -> Match {
    let mut best = Match::default();
    for (length, at) in matches {
        if length > best.length {
            best = Match { length, at, places: 1, lines: 0 };
        } else if length == best.length {
            best.places += 1;
        }
    }
    best
}

fn newlines(tokens: &[u32]) -> usize {
    tokens.iter().filter(|&&token| token == NEWLINE).count()
}

/// Set of tokens, numbered in the order of insertion.
#[derive(Debug)]
pub(super) struct WordSet {
    slots: Vec<(u32, u32)>,
    mask: usize,
    len: usize,
}

impl WordSet {
    /// Returns an empty set with room for `count` tokens.
    pub(super) fn with_room(count: usize) -> Self {
        let size = (2 * count + 8).next_power_of_two();
        Self { slots: vec![(0, 0); size], mask: size - 1, len: 0 }
    }

    /// Inserts a token, if there is room. Returns the token's number, and whether the token is new.
    pub(super) fn insert(&mut self, token: u32) -> (u32, bool) {
        let at = self.slot(token);
        let (held, number) = self.slots[at];
        if held == token {
            return (number, false);
        }
        let number = self.len as u32;
        if 2 * self.len < self.mask + 1 {
            self.slots[at] = (token, number);
            self.len += 1;
        }
        (number, true)
    }

    /// Returns the number of a token; `None` if the set does not contain it.
    pub(super) fn get(&self, token: u32) -> Option<u32> {
        let (held, number) = self.slots[self.slot(token)];
        (held == token).then_some(number)
    }

    /// Returns the words of the set that occur among some tokens, as a bit mask by number; for at most 64 words.
    pub(super) fn bits<'t>(&self, tokens: impl IntoIterator<Item = &'t u32>) -> u64 {
        let words = tokens.into_iter().filter(|token| is_word(**token));
        let numbers = words.filter_map(|token| self.get(*token));
        numbers.fold(0, |bits, number| bits | 1 << number)
    }

    /// Calls a function with every token, in arbitrary order.
    pub(super) fn each(&self, mut of: impl FnMut(u32)) {
        self.slots.iter().filter(|(token, _)| *token != 0).for_each(|(token, _)| of(*token));
    }

    pub(super) fn contains(&self, token: u32) -> bool {
        self.get(token).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the index of the slot that contains a token, or of the empty slot for it.
    fn slot(&self, token: u32) -> usize {
        let hash = u64::from(token).wrapping_mul(SEED) >> 32;
        let mut at = hash as usize & self.mask;
        while self.slots[at].0 != token && self.slots[at].0 != 0 {
            at = (at + 1) & self.mask;
        }
        at
    }
}

/// Filter that excludes most tokens that are not in a small set.
#[derive(Debug, Default)]
pub(super) struct Sieve([u64; 16]);

impl Sieve {
    pub(super) fn add(&mut self, token: u32) {
        let bit = token as usize >> 3 & 1023;
        self.0[bit / 64] |= 1 << (bit % 64);
    }

    pub(super) fn may_hold(&self, token: u32) -> bool {
        let bit = token as usize >> 3 & 1023;
        self.0[bit / 64] >> (bit % 64) & 1 == 1
    }
}

/// Triples of consecutive tokens, and which of them were found elsewhere.
#[derive(Debug)]
pub(super) struct Triples {
    set: WordSet,
    sieve: Sieve,
    /// Number of occurrences of each triple; 0 once it is found.
    unfound: Vec<u32>,
    count: usize,
    found: usize,
}

impl Triples {
    /// Collects the triples of tokens.
    pub(super) fn new(tokens: &[u32]) -> Self {
        let mut triples = Self {
            set: WordSet::with_room(tokens.len()),
            sieve: Sieve::default(),
            unfound: Vec::with_capacity(tokens.len()),
            count: 0,
            found: 0,
        };
        for triple in tokens.windows(3) {
            let hash = Self::hash(triple);
            let (number, is_new) = triples.set.insert(hash);
            triples.sieve.add(hash);
            if is_new {
                triples.unfound.push(0);
            }
            triples.unfound[number as usize] += 1;
            triples.count += 1;
        }
        triples
    }

    /// Searches for the triples in other tokens.
    pub(super) fn find_in(&mut self, tokens: &[u32]) {
        for triple in tokens.windows(3) {
            let hash = Self::hash(triple);
            if self.sieve.may_hold(hash)
                && let Some(number) = self.set.get(hash)
            {
                self.found += std::mem::take(&mut self.unfound[number as usize]) as usize;
            }
        }
    }

    /// Returns the fraction of the triples that were found.
    pub(super) fn share(&self) -> f32 {
        share(self.found, self.count)
    }

    fn hash(triple: &[u32]) -> u32 {
        // Independent multiplications, which the processor can overlap.
        let [a, b, c] = [triple[0], triple[1], triple[2]];
        let mixed = a.wrapping_mul(0x9e37_79b1)
            ^ b.wrapping_mul(0x85eb_ca6b).rotate_left(9)
            ^ c.wrapping_mul(0xc2b2_ae35).rotate_left(18);
        mixed | 1
    }
}
