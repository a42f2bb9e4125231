//! Inverted index: for each word, the documents that have it.

use std::ops::Range;

use super::words::Words;

/// Words of documents, with a list of documents for each word.
#[derive(Debug)]
pub(super) struct InvertedIndex {
    pub(super) words: Words,
    /// `first[w]..first[w + 1]` are the postings of word w.
    first: Vec<u32>,
    /// Documents, ascending in each list.
    documents: Vec<u32>,
    /// Number of times that the document has the word.
    counts: Vec<u32>,
}

impl InvertedIndex {
    pub(super) fn new(words: Words) -> Self {
        let numbers = words.numbers();
        let mut first = vec![0; words.dictionary().len() + 1];
        count(numbers, &mut first[1..]);
        let mut next = first.clone();
        let (mut documents, mut counts) = (vec![0; numbers.len()], vec![0; numbers.len()]);
        fill(&words, &mut next, &mut documents, &mut counts);
        Self { words, first, documents, counts }
    }

    #[inline]
    fn range(&self, word: u32) -> Range<usize> {
        self.first[word as usize] as usize..self.first[word as usize + 1] as usize
    }

    /// Returns the documents that have a word, ascending.
    #[inline]
    pub(super) fn documents_of(&self, word: u32) -> &[u32] {
        &self.documents[self.range(word)]
    }

    /// Returns the documents that have a word, with the word's count in each.
    #[inline]
    pub(super) fn postings(&self, word: u32) -> impl ExactSizeIterator<Item = (u32, u32)> {
        let range = self.range(word);
        let (documents, counts) = (&self.documents[range.clone()], &self.counts[range]);
        (0..documents.len()).map(move |at| (documents[at], counts[at]))
    }

    /// Returns the number of documents that have each word.
    pub(super) fn frequencies(&self) -> Vec<u32> {
        let mut frequencies = self.first[1..].to_vec();
        for word in 0..frequencies.len() {
            frequencies[word] -= self.first[word];
        }
        frequencies
    }
}

/// Sets each word's entry in `ends` to the number of postings of this word and of all words before it.
fn count(numbers: &[u32], ends: &mut [u32]) {
    for number in numbers {
        ends[*number as usize] += 1;
    }
    let mut end = 0;
    for count in ends {
        end += *count;
        *count = end;
    }
}

/// Writes the documents and counts of each word from the position in `next` on, and moves this position to the word's end.
fn fill(words: &Words, next: &mut [u32], documents: &mut [u32], counts: &mut [u32]) {
    for document in 0..words.documents() {
        for (number, count) in words.row(document) {
            let next = &mut next[number as usize];
            let place = *next as usize;
            *next += 1;
            (documents[place], counts[place]) = (document as u32, count);
        }
    }
}
