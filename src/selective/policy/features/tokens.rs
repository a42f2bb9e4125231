//! Code as numbers: each token its hash, lines by newline tokens. A lexer of a nanosecond a byte, for decisions that must
//! cost nothing.

/// The token between two lines; blank lines have none of their own.
pub(super) const NEWLINE: u32 = 0;

/// Whether a token is a name, a keyword or a number.
pub(super) fn is_word(token: u32) -> bool {
    token & 1 == 1
}

/// The tokens of a text in order.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// Hashes: odd ones are words, [`NEWLINE`] ends a line that is not blank.
    pub(super) all: Vec<u32>,
    /// For each line that is not blank, where its tokens begin.
    pub(super) lines: Vec<u32>,
}

impl Tokens {
    /// Reads a text.
    pub(super) fn of(text: &str) -> Self {
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

    /// The tokens of the last `count` lines, or of all.
    pub(super) fn last_lines(&self, count: usize) -> &[u32] {
        &self.all[self.start_of_last(count)..]
    }

    /// Where these begin.
    pub(super) fn start_of_last(&self, count: usize) -> usize {
        let line = self.lines.len().saturating_sub(count);
        self.lines.get(line).map_or(0, |&start| start as usize)
    }

    /// The tokens of the first `count` lines, or of all.
    pub(super) fn first_lines(&self, count: usize) -> &[u32] {
        let end = self
            .lines
            .get(count)
            .map_or(self.all.len(), |&at| at as usize);
        &self.all[..end]
    }
}

/// The token of a name.
pub(super) fn word(text: &str) -> u32 {
    read_word(text.as_bytes(), 0).0
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The token of the word that begins here, and where it ends: bytes are taken in by eights, so that most names need one or
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

/// What each byte is part of; everything beyond ASCII counts as part of a word.
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

/// Where a text's end (or beginning) is found again in another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Match {
    /// Tokens in common.
    pub(super) length: usize,
    /// Lines in common: newlines among these.
    pub(super) lines: usize,
    /// The token of the other behind (or at the beginning of) the first of the longest.
    pub(super) at: usize,
    /// How many places are as long.
    pub(super) places: usize,
}

/// No match counts more tokens than this.
const LONGEST: usize = 96;

/// The longest end of `left` that `other` holds with something behind it.
pub(super) fn find_end(left: &[u32], other: &[u32]) -> Match {
    let mut best = Match::default();
    let Some(&last) = left.last() else {
        return best;
    };
    for at in 0..other.len().saturating_sub(1) {
        if other[at] != last {
            continue;
        }
        let mut length = 1;
        let most = (at + 1).min(left.len()).min(LONGEST);
        while length < most && other[at - length] == left[left.len() - 1 - length] {
            length += 1;
        }
        if length > best.length {
            best = Match {
                length,
                at: at + 1,
                places: 1,
                lines: 0,
            };
        } else if length == best.length {
            best.places += 1;
        }
    }
    best.lines = newlines(&left[left.len() - best.length..]);
    best
}

/// The longest beginning of `right` that `other` holds at the beginning of a line, from its token `from` on.
pub(super) fn find_start(right: &[u32], other: &[u32], from: usize) -> Match {
    let mut best = Match::default();
    let Some(&first) = right.first() else {
        return best;
    };
    for at in from..other.len() {
        if other[at] != first || (at > 0 && other[at - 1] != NEWLINE) {
            continue;
        }
        let most = (other.len() - at).min(right.len()).min(LONGEST);
        let mut length = 1;
        while length < most && other[at + length] == right[length] {
            length += 1;
        }
        if length > best.length {
            best = Match {
                length,
                at,
                places: 1,
                lines: 0,
            };
        } else if length == best.length {
            best.places += 1;
        }
    }
    best.lines = newlines(&right[..best.length]);
    best
}

fn newlines(tokens: &[u32]) -> usize {
    tokens.iter().filter(|&&token| token == NEWLINE).count()
}

/// A set of tokens, numbered in the order of their first.
#[derive(Debug)]
pub(super) struct WordSet {
    slots: Vec<(u32, u32)>,
    mask: usize,
    len: usize,
}

impl WordSet {
    /// Room for so many.
    pub(super) fn with_room(count: usize) -> Self {
        let size = (2 * count + 8).next_power_of_two();
        Self {
            slots: vec![(0, 0); size],
            mask: size - 1,
            len: 0,
        }
    }

    /// Puts a token in; its number, and whether it is new. No more than there is room for.
    pub(super) fn insert(&mut self, token: u32) -> (u32, bool) {
        let mut at = self.slot(token);
        loop {
            let (held, number) = self.slots[at];
            if held == token {
                return (number, false);
            }
            if held == 0 {
                let number = self.len as u32;
                if 2 * self.len < self.mask + 1 {
                    self.slots[at] = (token, number);
                    self.len += 1;
                }
                return (number, true);
            }
            at = (at + 1) & self.mask;
        }
    }

    /// The number of a token.
    pub(super) fn get(&self, token: u32) -> Option<u32> {
        let mut at = self.slot(token);
        loop {
            let (held, number) = self.slots[at];
            if held == token {
                return Some(number);
            }
            if held == 0 {
                return None;
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Every token in it, in no order that means anything.
    pub(super) fn each(&self, mut of: impl FnMut(u32)) {
        self.slots
            .iter()
            .filter(|(token, _)| *token != 0)
            .for_each(|(token, _)| of(*token));
    }

    pub(super) fn contains(&self, token: u32) -> bool {
        self.get(token).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn slot(&self, token: u32) -> usize {
        (u64::from(token).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & self.mask
    }
}

/// Tells of most tokens that they are not among a few, without looking for them.
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

/// The triples of a few tokens, and which of them were found elsewhere.
#[derive(Debug)]
pub(super) struct Triples {
    set: WordSet,
    sieve: Sieve,
    /// How often each stands in the few tokens; 0 once it is found.
    unfound: Vec<u32>,
    count: usize,
    found: usize,
}

impl Triples {
    /// Those of these tokens.
    pub(super) fn of(tokens: &[u32]) -> Self {
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

    /// Looks for them in other tokens.
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

    /// Share of them that were found.
    pub(super) fn share(&self) -> f32 {
        super::share(self.found, self.count)
    }

    fn hash(triple: &[u32]) -> u32 {
        // Multiplied apart from one another, so that none waits for the one before.
        let [a, b, c] = [triple[0], triple[1], triple[2]];
        let mixed = a.wrapping_mul(0x9e37_79b1)
            ^ b.wrapping_mul(0x85eb_ca6b).rotate_left(9)
            ^ c.wrapping_mul(0xc2b2_ae35).rotate_left(18);
        mixed | 1
    }
}
