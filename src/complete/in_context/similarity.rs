//! Edit similarity of two short texts, by the bit-parallel method of Myers (1999) in the
//! formulation of Hyyrö (2003) for several words.

/// A text prepared to be compared with many others.
#[derive(Debug)]
pub(super) struct Pattern {
    length: usize,
    words: usize,
    /// Distinct characters, ascending, and for each its places as bits.
    alphabet: Vec<char>,
    places: Vec<u64>,
}

impl Pattern {
    pub(super) fn new(text: &[char]) -> Self {
        let mut alphabet = text.to_vec();
        alphabet.sort_unstable();
        alphabet.dedup();
        let words = text.len().div_ceil(64);
        let mut places = vec![0_u64; words * alphabet.len()];
        for (place, c) in text.iter().enumerate() {
            if let Ok(letter) = alphabet.binary_search(c) {
                places[letter * words + place / 64] |= 1 << (place % 64);
            }
        }
        Self {
            length: text.len(),
            words,
            alphabet,
            places,
        }
    }

    /// `1 - distance / longer length`; 1 for two empty texts.
    pub(super) fn similarity(&self, other: &[char]) -> f64 {
        let longer = self.length.max(other.len());
        if longer == 0 {
            return 1.0;
        }
        1.0 - self.distance(other) as f64 / longer as f64
    }

    fn distance(&self, other: &[char]) -> usize {
        if self.length == 0 {
            return other.len();
        }
        let mut column = vec![(u64::MAX, 0_u64); self.words];
        let last = 1_u64 << ((self.length - 1) % 64);
        let mut distance = self.length;
        for c in other {
            let letter = self.alphabet.binary_search(c).ok();
            let (mut plus, mut minus) = (1_u64, 0_u64);
            for (word, cell) in column.iter_mut().enumerate() {
                let matches = letter.map_or(0, |letter| self.places[letter * self.words + word]);
                let top = if word + 1 == self.words {
                    last
                } else {
                    1 << 63
                };
                let (up, down);
                (plus, minus, up, down) = step(cell, matches, plus, minus, top);
                if word + 1 == self.words {
                    distance = distance + usize::from(up) - usize::from(down);
                }
            }
        }
        distance
    }
}

/// One word of one column: takes the horizontal differences that enter below, gives those that
/// leave above, and whether the difference at bit `top` is +1 or -1.
fn step(
    cell: &mut (u64, u64),
    matches: u64,
    plus_in: u64,
    minus_in: u64,
    top: u64,
) -> (u64, u64, bool, bool) {
    let (vertical_plus, vertical_minus) = *cell;
    let diagonal = matches | minus_in;
    let zero = ((diagonal & vertical_plus).wrapping_add(vertical_plus) ^ vertical_plus)
        | diagonal
        | vertical_minus;
    let plus = vertical_minus | !(zero | vertical_plus);
    let minus = vertical_plus & zero;
    let (up, down) = (plus & top != 0, minus & top != 0);
    let plus_shifted = plus << 1 | plus_in;
    let minus_shifted = minus << 1 | minus_in;
    *cell = (minus_shifted | !(zero | plus_shifted), plus_shifted & zero);
    (plus >> 63, minus >> 63, up, down)
}
