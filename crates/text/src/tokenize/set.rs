//! Set of ids that is filled, read in order and emptied repeatedly.

use super::vocabulary::SIZE;

const WORDS: usize = SIZE.div_ceil(64);
const GROUPS: usize = WORDS.div_ceil(64);

/// Reusable scratch for the distinct ids of a window: one bit for each id of the vocabulary and, above them, one bit for each
/// word that is not zero.
///
/// It takes 6.5 kB, which stay in the first-level cache. Reading the bits gives the ids in ascending order, so that nothing
/// needs sorting.
///
/// ```
/// use repoformer_text::tokenize::IdSet;
/// let (mut set, mut ids) = (IdSet::default(), Vec::new());
/// set.insert_all(&[198, 7, 50_280, 7]);
/// set.drain_into(&mut ids);
/// assert_eq!(ids, [7, 198, 50_280]);
/// ```
#[derive(Debug, Clone)]
pub struct IdSet {
    bits: Box<[u64; WORDS]>,
    words: [u64; GROUPS],
}

impl Default for IdSet {
    fn default() -> Self {
        Self { bits: Box::new([0; WORDS]), words: [0; GROUPS] }
    }
}

impl IdSet {
    /// Adds ids; numbers outside the vocabulary are ignored.
    pub fn insert_all(&mut self, ids: &[u16]) {
        for &id in ids {
            let word = usize::from(id >> 6);
            if let (Some(bits), Some(words)) =
                (self.bits.get_mut(word), self.words.get_mut(word >> 6))
            {
                *bits |= 1 << (id & 63);
                *words |= 1 << (word & 63);
            }
        }
    }

    /// Appends the ids to `out` in ascending order and empties the set.
    pub fn drain_into(&mut self, out: &mut Vec<u16>) {
        for (group, words) in self.words.iter_mut().enumerate() {
            for word in ones(std::mem::take(words)) {
                let word = group << 6 | word;
                let Some(bits) = self.bits.get_mut(word) else {
                    continue;
                };
                for bit in ones(std::mem::take(bits)) {
                    out.push((word << 6 | bit) as u16);
                }
            }
        }
    }
}

/// Iterates over the positions of the set bits, lowest first.
fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (word != 0).then(|| word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        place
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_sorted_set_and_empty_after_a_reading(runs in proptest::collection::vec(proptest::collection::vec(0..SIZE as u16, 0..300), 1..4)) {
            let mut set = IdSet::default();
            for ids in runs {
                let mut read = Vec::new();
                set.insert_all(&ids);
                set.drain_into(&mut read);
                prop_assert_eq!(read, ids.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn numbers_beyond_the_vocabulary_are_left_out() {
        let (mut set, mut read) = (IdSet::default(), Vec::new());
        set.insert_all(&[u16::MAX, 0, 50_368]);
        set.drain_into(&mut read);
        assert_eq!(read, [0]);
    }
}
