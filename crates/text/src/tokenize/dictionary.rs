//! Numbers of distinct words, which represent the words in token sets, statistics and policies.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;

/// Distinct words, numbered in the order of their first occurrence.
///
/// ```
/// use repoformer_text::tokenize::Dictionary;
/// let mut dictionary = Dictionary::default();
/// assert_eq!(["a", "b", "a"].map(|word| dictionary.intern(word)), [0, 1, 0]);
/// assert_eq!((dictionary.get("b"), dictionary.get("c"), dictionary.word(1)), (Some(1), None, "b"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Dictionary {
    /// All words, concatenated.
    text: String,
    /// End of each word.
    ends: Vec<u32>,
    /// Open addressing table; its length is a power of two, and it is at most half full.
    slots: Vec<Slot>,
    /// Seed of the hashes, so that nobody can choose words whose hashes collide.
    seed: RandomState,
}

/// Slot of a word in the table, with the data needed to recognise the word.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Upper half of its hash.
    tag: u32,
    /// Number plus one; 0 for an empty slot.
    next: u32,
    start: u32,
    end: u32,
}

impl PartialEq for Dictionary {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, &self.ends) == (&other.text, &other.ends)
    }
}

impl Eq for Dictionary {}

impl Dictionary {
    /// Rebuilds a dictionary from the result of [`Dictionary::parts`].
    ///
    /// # Errors
    /// The ends are invalid, or a word is repeated.
    pub fn from_parts(text: String, ends: Vec<u32>) -> Result<Self, String> {
        let mut known = Self::default();
        let mut start = 0;
        for end in ends {
            let word = text.get(start..end as usize);
            let before = known.len();
            known.intern(word.ok_or("its words' ends are out of order")?);
            if known.len() == before {
                return Err("it contains a word twice".into());
            }
            start = end as usize;
        }
        if start != text.len() {
            return Err("its words' ends are out of order".into());
        }
        Ok(known)
    }

    /// Returns all words concatenated, and the end of each word.
    pub fn parts(&self) -> (&String, &[u32]) {
        (&self.text, &self.ends)
    }

    /// Returns the number of words.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are no words.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns a word by its number.
    ///
    /// # Panics
    /// There is no word with this number.
    pub fn word(&self, number: u32) -> &str {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[number] as usize]
    }

    /// Iterates over all words in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|number| self.word(number))
    }

    /// Returns the number of a known word.
    pub fn get(&self, word: &str) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.find(word, self.hash(word)).ok()
    }

    /// Returns the number of a word, adding it if it is unknown.
    ///
    /// # Panics
    /// All words together have more than 4,294,967,295 bytes.
    #[inline]
    pub fn intern(&mut self, word: &str) -> u32 {
        if 2 * self.len() >= self.slots.len() {
            self.grow();
        }
        let hash = self.hash(word);
        match self.find(word, hash) {
            Ok(number) => number,
            Err(slot) => self.add(word, hash, slot),
        }
    }

    #[inline]
    fn hash(&self, word: &str) -> u64 {
        let mut hasher = self.seed.build_hasher();
        hasher.write(word.as_bytes());
        hasher.finish()
    }

    #[inline(never)]
    fn add(&mut self, word: &str, hash: u64, slot: usize) -> u32 {
        let start = self.text.len() as u32;
        self.text.push_str(word);
        let end = u32::try_from(self.text.len());
        let end = end.expect("distinct words of more than 4,294,967,295 bytes");
        self.ends.push(end);
        self.slots[slot] = Slot { tag: tag(hash), next: self.ends.len() as u32, start, end };
        self.ends.len() as u32 - 1
    }

    /// Returns the number of a word, or a free slot for it; the table must have one.
    #[inline]
    fn find(&self, word: &str, hash: u64) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let known = self.slots[slot];
            if known.next == 0 {
                return Err(slot);
            }
            let text = known.start as usize..known.end as usize;
            if known.tag == tag(hash) && self.text.as_bytes()[text] == *word.as_bytes() {
                return Ok(known.next - 1);
            }
            slot = (slot + 1) & mask;
        }
    }

    #[inline(never)]
    fn grow(&mut self) {
        let size = (2 * self.slots.len()).max(64);
        let before = std::mem::replace(&mut self.slots, vec![Slot::default(); size]);
        for known in before.into_iter().filter(|slot| slot.next != 0) {
            let hash = self.hash(self.word(known.next - 1));
            let mut slot = hash as usize & (size - 1);
            while self.slots[slot].next != 0 {
                slot = (slot + 1) & (size - 1);
            }
            self.slots[slot] = known;
        }
    }
}

#[inline]
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_those_of_a_map(texts in prop::collection::vec("[a-c]{1,3}|[é漢]{1,2}", 0..300)) {
            let (mut dictionary, mut known) = (Dictionary::default(), HashMap::new());
            for text in &texts {
                prop_assert_eq!(dictionary.get(text), known.get(text).copied());
                let next = known.len() as u32;
                prop_assert_eq!(dictionary.intern(text), *known.entry(text).or_insert(next));
            }
            prop_assert!(dictionary.iter().enumerate().all(|(n, word)| known[&word.to_owned()] == n as u32));
            let (text, ends) = dictionary.parts();
            prop_assert_eq!(Dictionary::from_parts(text.clone(), ends.to_vec()).unwrap(), dictionary);
        }
    }

    #[test]
    fn words_that_collide_in_one_dictionary_are_spread_in_another() {
        let slot = |dictionary: &Dictionary, word: &str| dictionary.hash(word) % 1_024;
        let [one, other] = [Dictionary::default(), Dictionary::default()];
        let words = (0..400_000).map(|number| format!("word{number}"));
        let same: Vec<String> = words.filter(|word| slot(&one, word) == 0).collect();
        let slots: HashSet<u64> = same.iter().map(|word| slot(&other, word)).collect();
        assert!(same.len() > 200 && 2 * slots.len() > same.len(), "{} {}", slots.len(), same.len());
    }

    #[test]
    fn damaged_dictionaries_are_refused() {
        for (text, ends) in [
            ("ab", vec![1]),
            ("ab", vec![1, 3]),
            ("ab", vec![2, 1]),
            ("é", vec![1, 2]),
            ("aa", vec![1, 2]),
            ("a", vec![]),
        ] {
            assert!(Dictionary::from_parts(text.into(), ends.clone()).is_err(), "{text} {ends:?}");
        }
    }
}
