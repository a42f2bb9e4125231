//! Okapi's BM25 as rank_bm25 computes it (`BM25Okapi`, version 0.2.2).
//!
//! With N candidates, f of them with the word w, c the count of w in a document of length l, and L the mean length:
//!
//! - idf(w) = ln(N − f + 0.5) − ln(f + 0.5); if this is negative, epsilon times the mean idf of all words;
//! - score = Σ idf(w) · c · (k1 + 1) / (c + k1 · (1 − b + b · l / L)), over the query's words in order, repeats included.
//!
//! The operations and their order are the same as in rank_bm25, except for the mean: rank_bm25 sums over the words in the order
//! in which the documents have them, this module in the order of their numbers.

use std::ops::Range;

use foldhash::HashMap;

use super::inverted::InvertedIndex;
use super::statistics::Statistics;

const K1: f64 = 1.5;
const B: f64 = 0.75;
const EPSILON: f64 = 0.25;

/// Statistics of a query's candidates.
#[derive(Debug)]
pub(super) struct Okapi {
    statistics: Statistics,
    /// Value that replaces a negative idf.
    floor: f64,
    /// For each document, the term that is added to the count in the denominator.
    norms: Vec<f64>,
}

impl Okapi {
    /// Creates the statistics. `logs` has ln(n + 0.5) for all n up to the number of documents.
    pub(super) fn new(inverted: &InvertedIndex, statistics: Statistics, logs: &[f64]) -> Self {
        let mean = statistics.length as f64 / statistics.candidates as f64;
        let words = &inverted.words;
        let mut norms = vec![0.0; words.documents()];
        for (document, norm) in norms.iter_mut().enumerate() {
            *norm = K1 * (1.0 - B + B * f64::from(words.length(document)) / mean);
        }
        let (mut sum, mut known) = (0.0, 0_usize);
        for frequency in &statistics.frequencies {
            let frequency = *frequency as usize;
            if frequency > 0 {
                sum += logs[statistics.candidates - frequency] - logs[frequency];
                known += 1;
            }
        }
        let floor = EPSILON * (sum / known as f64);
        Self { statistics, floor, norms }
    }

    /// Returns the idf of a word; 0 if no candidate has the word.
    fn idf(&self, word: u32, logs: &[f64]) -> f64 {
        let frequency = self.statistics.frequencies[word as usize] as usize;
        if frequency == 0 {
            return 0.0;
        }
        let idf = logs[self.statistics.candidates - frequency] - logs[frequency];
        if idf < 0.0 { self.floor } else { idf }
    }
}

/// Parts of the score that each word of one query gives to each document with the word, computed on first use.
#[derive(Debug, Default)]
pub(super) struct Parts {
    parts: Vec<f64>,
    range_of: HashMap<u32, Range<usize>>,
}

impl Parts {
    /// Forgets the previous query.
    pub(super) fn clear(&mut self) {
        self.parts.clear();
        self.range_of.clear();
    }

    /// Adds the parts of these words, in order, to the score of each document.
    pub(super) fn add(
        &mut self,
        okapi: &Okapi,
        inverted: &InvertedIndex,
        logs: &[f64],
        words: &[u32],
        scores: &mut [f64],
    ) {
        for word in words {
            let known = self.range_of.get(word).cloned();
            let range = known.unwrap_or_else(|| {
                let (start, idf) = (self.parts.len(), okapi.idf(*word, logs));
                let part = |(document, count): (u32, u32)| {
                    let count = f64::from(count);
                    idf * (count * (K1 + 1.0) / (count + okapi.norms[document as usize]))
                };
                if idf != 0.0 {
                    self.parts.extend(inverted.postings(*word).map(part));
                }
                let range = start..self.parts.len();
                self.range_of.insert(*word, range.clone());
                range
            });
            let (documents, parts) = (inverted.documents_of(*word), &self.parts[range]);
            for at in 0..parts.len() {
                scores[documents[at] as usize] += parts[at];
            }
        }
    }
}
