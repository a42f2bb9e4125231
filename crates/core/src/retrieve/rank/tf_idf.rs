//! Cosine of TF-IDF vectors, as CrossCodeEval computes it with scikit-learn (`TfidfVectorizer(tokenizer=tokenize_nltk)`, fitted
//! on the candidates, with its defaults: lower case, smooth idf, l2 norm).
//!
//! With n candidates, f of them with the word, idf = ln((1 + n) / (1 + f)) + 1, and a vector's entry is count · idf. Words that
//! no candidate has are unknown, and do not count towards the query's length either.

use super::inverted::InvertedIndex;
use super::statistics::Statistics;

/// Statistics of a query's candidates.
#[derive(Debug)]
pub(super) struct TfIdf {
    statistics: Statistics,
    idf: Vec<f64>,
    /// Length of each document's vector.
    lengths: Vec<f64>,
}

impl TfIdf {
    /// Computes the idf of all words. `logs` has ln(n + 1) for all n up to the number of documents.
    pub(super) fn new(inverted: &InvertedIndex, statistics: Statistics, logs: &[f64]) -> Self {
        let all = logs[statistics.candidates];
        let mut idf = vec![0.0; statistics.frequencies.len()];
        for (idf, frequency) in idf.iter_mut().zip(&statistics.frequencies) {
            *idf = all - logs[*frequency as usize] + 1.0;
        }
        let words = &inverted.words;
        let mut lengths = vec![0.0; words.documents()];
        for (document, length) in lengths.iter_mut().enumerate() {
            let mut squares = 0.0;
            for (word, count) in words.row(document) {
                let entry = f64::from(count) * idf[word as usize];
                squares += entry * entry;
            }
            *length = f64::sqrt(squares);
        }
        Self { statistics, idf, lengths }
    }

    /// Computes the cosine of every document with a query of these words, including repeats.
    pub(super) fn score(&self, inverted: &InvertedIndex, words: &mut Vec<u32>, scores: &mut [f64]) {
        words.retain(|word| self.statistics.frequencies[*word as usize] > 0);
        words.sort_unstable();
        let mut square = 0.0;
        for run in words.chunk_by(|a, b| a == b) {
            let idf = self.idf[run[0] as usize];
            let entry = run.len() as f64 * idf;
            square += entry * entry;
            for (document, count) in inverted.postings(run[0]) {
                scores[document as usize] += f64::from(count) * idf * entry;
            }
        }
        let own = f64::sqrt(square);
        for (score, length) in scores.iter_mut().zip(&self.lengths) {
            if *score > 0.0 {
                *score /= length * own;
            }
        }
    }
}
