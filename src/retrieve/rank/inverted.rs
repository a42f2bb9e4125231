//! Rows turned around: for each word the documents that have it.

use std::ops::Range;

use super::words::Words;

/// Words of documents with the lists of each word.
#[derive(Debug)]
pub(super) struct Inverted {
    pub(super) words: Words,
    /// `first[w]..first[w + 1]` are the postings of word w.
    first: Vec<u32>,
    /// Ascending in each list.
    documents: Vec<u32>,
    /// How often the document has the word.
    counts: Vec<u32>,
}

impl Inverted {
    pub(super) fn new(words: Words) -> Self {
        let size = words.dictionary().len();
        let mut first = vec![0; size + 1];
        let numbers = words.numbers();
        for number in numbers {
            first[*number as usize + 1] += 1;
        }
        for word in 0..size {
            first[word + 1] += first[word];
        }
        let mut next = first.clone();
        let (mut documents, mut counts) = (vec![0; numbers.len()], vec![0; numbers.len()]);
        for document in 0..words.documents() {
            for (number, count) in words.row(document) {
                let place = &mut next[number as usize];
                documents[*place as usize] = document as u32;
                counts[*place as usize] = count;
                *place += 1;
            }
        }
        Self { words, first, documents, counts }
    }

    fn range(&self, word: u32) -> Range<usize> {
        self.first[word as usize] as usize..self.first[word as usize + 1] as usize
    }

    /// The documents that have a word, ascending.
    pub(super) fn documents_of(&self, word: u32) -> &[u32] {
        &self.documents[self.range(word)]
    }

    /// Documents that have a word, and how often each has it.
    #[inline]
    pub(super) fn postings(&self, word: u32) -> impl ExactSizeIterator<Item = (u32, u32)> {
        let range = self.range(word);
        let counts = self.counts[range.clone()].iter().copied();
        self.documents[range].iter().copied().zip(counts)
    }

    /// How many documents have each word.
    pub(super) fn frequencies(&self) -> impl Iterator<Item = u32> {
        self.first.windows(2).map(|pair| pair[1] - pair[0])
    }
}
