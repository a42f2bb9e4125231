//! The characters of two texts as the bit-parallel distances take them: without common ends, looked up or numbered.

/// Number of ASCII symbols.
pub(super) const ASCII: usize = 128;

/// Both texts without the characters they begin and end with alike; these cost nothing in a cheapest alignment.
pub(super) fn without_common_ends<'a>(a: &'a str, b: &'a str) -> (&'a str, &'a str) {
    // Both texts agree up to the cut, so a place between two characters in one is so in the other.
    let mut start = common_prefix(a.as_bytes(), b.as_bytes());
    while !a.is_char_boundary(start) || !b.is_char_boundary(start) {
        start -= 1;
    }
    let (a, b) = (&a[start..], &b[start..]);
    let mut end = common_suffix(a.as_bytes(), b.as_bytes());
    while !a.is_char_boundary(a.len() - end) || !b.is_char_boundary(b.len() - end) {
        end -= 1;
    }
    (&a[..a.len() - end], &b[..b.len() - end])
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    // Eight bytes a comparison, then the rest one by one.
    let words = a.chunks_exact(8).zip(b.chunks_exact(8));
    let skipped = 8 * words.take_while(|(a, b)| a == b).count();
    let rest = a[skipped..].iter().zip(&b[skipped..]);
    skipped + rest.take_while(|(a, b)| a == b).count()
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let words = a.rchunks_exact(8).zip(b.rchunks_exact(8));
    let skipped = 8 * words.take_while(|(a, b)| a == b).count();
    let rest = a[..a.len() - skipped].iter().rev();
    let rest = rest.zip(b[..b.len() - skipped].iter().rev());
    skipped + rest.take_while(|(a, b)| a == b).count()
}

/// Both texts with the pattern's characters numbered from 1 and all others 0, and the count of numbers: tables
/// are then as small as the pattern's alphabet, whatever the script.
pub(super) fn numbered(
    (pattern, length): (&str, usize),
    text: &str,
) -> (Vec<u32>, Vec<u32>, usize) {
    let mut others = vec![('\0', 0); (2 * length).next_power_of_two()];
    let mut numbers = Table {
        ascii: [0; ASCII],
        others: &mut others,
    };
    let mut count = 0;
    let pattern = pattern.chars().map(|c| {
        let number = numbers.at(c);
        if *number == 0 {
            count += 1;
            *number = count;
        }
        *number as u32
    });
    let pattern: Vec<u32> = pattern.collect();
    let text = text.chars().map(|c| numbers.get(c) as u32).collect();
    (pattern, text, count as usize + 1)
}

/// A value for each character, 0 for those that have none.
pub(super) struct Table<'a> {
    pub(super) ascii: [u64; ASCII],
    /// Open addressing, a power of two long and never more than half full.
    pub(super) others: &'a mut [(char, u64)],
}

impl Table<'_> {
    /// Where a character that is not ASCII stands, or would.
    fn slot(&self, c: char) -> usize {
        let mask = self.others.len() - 1;
        // Fibonacci hashing: neighbours in a script land far apart.
        let mut slot = (u32::from(c).wrapping_mul(0x9e37_79b9) >> 7) as usize & mask;
        while self.others[slot].1 != 0 && self.others[slot].0 != c {
            slot = (slot + 1) & mask;
        }
        slot
    }

    pub(super) fn get(&self, c: char) -> u64 {
        match self.ascii.get(c as usize) {
            Some(&value) => value,
            None => self.others[self.slot(c)].1,
        }
    }

    /// The value to set, to something other than 0.
    pub(super) fn at(&mut self, c: char) -> &mut u64 {
        if c.is_ascii() {
            return &mut self.ascii[c as usize];
        }
        let slot = self.slot(c);
        self.others[slot].0 = c;
        &mut self.others[slot].1
    }
}
