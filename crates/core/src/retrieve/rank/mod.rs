//! Ranks documents for a query with the rankers of Repoformer and CrossCodeEval, each with the formula and constants of its
//! reference program.
//!
//! A *document* is the text of a chunk. A *candidate* is a document that a query may retrieve (usually every document outside
//! the query's own file). The reference programs recompute their statistics from the candidates of every query. A
//! [`DocumentIndex`] is built once per repository, and [`DocumentIndex::rank`] subtracts the documents that are not candidates.
//! Terms are words as in [`each_word`](repoformer_text::tokenize::each_word), or the tokens of a tokenizer ([`Vocabulary`]).
//!
//! ```
//! use repoformer_text::language::Language;
//! use repoformer_core::retrieve::rank::{DocumentIndex, RankQuery, Ranker, RankScratch, Vocabulary, Words};
//!
//! let documents = ["def area(w, h):\n    return w * h", "def side(area):\n    return area ** 0.5", "import math"];
//! let (words, rankers) = (Words::new(&documents), [Ranker::Jaccard]);
//! let index = DocumentIndex::new(words, &documents, &rankers, Language::Python, Vocabulary::Words);
//! let query = RankQuery { lines: vec!["side = area(2, 3)"], hole: 1, ..RankQuery::default() };
//! let hits = index.rank(&Ranker::Jaccard, &query, &[0, 1, 2], 2, &mut RankScratch::default());
//! // side and area of side, area, 2, 3, def, return, 0, 5; area of side, area, 2, 3, def, w, h, return.
//! assert_eq!((hits[0].document, hits[0].score), (1, 2.0 / 8.0));
//! assert_eq!((hits[1].document, hits[1].score), (0, 1.0 / 8.0));
//! ```

mod codebleu;
mod inverted;
mod ngrams;
mod okapi;
mod order;
mod ranker;
mod statistics;
#[cfg(test)]
mod tests;
mod tf_idf;
mod words;

pub use ranker::{LineWeights, Ranker};
pub use words::{Vocabulary, Words};

use std::sync::atomic::{AtomicU64, Ordering};

use codebleu::{Code, Common};
use inverted::InvertedIndex;
use ngrams::Ngrams;
use okapi::{Okapi, Parts};
use order::{Key, select};
use repoformer_text::language::Language;
use repoformer_text::tokenize::Dictionary;
use statistics::{Statistics, logarithms};
use tf_idf::TfIdf;

/// Lines with which to search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankQuery<'a> {
    /// Lines of the query, in order.
    pub lines: Vec<&'a str>,
    /// Number of lines before the hole: line i below this number has the distance `hole` − 1 − i, any other i − `hole`.
    pub hole: usize,
    /// Cosine of each document's dense vector with the query's; needed by [`Ranker::Dense`].
    pub dense: Option<Vec<f64>>,
    /// Factor for each document, at least 1; needed by [`Ranker::Graph`].
    pub prior: Option<Vec<f64>>,
    /// Documents that define names in the query, with their scores, above 0; needed by [`Ranker::Definitions`].
    pub definitions: Option<Vec<(u32, f64)>>,
}

impl RankQuery<'_> {
    fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// Returns the number of lines between a line of a query and the hole, which has `hole` lines before it.
pub(super) fn distance(line: usize, hole: usize) -> usize {
    line.checked_sub(hole).unwrap_or_else(|| hole - 1 - line)
}

/// Document returned by a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DocumentHit {
    /// Number of the document.
    pub document: u32,
    /// Score from the ranker; 0 if the document has nothing in common with the query.
    pub score: f64,
}

/// Index of the documents of one repository, for some of the rankers.
#[derive(Debug)]
pub struct DocumentIndex {
    /// Distinguishes indexes, so that a [`RankScratch`] knows whose statistics it holds.
    number: u64,
    vocabulary: Vocabulary,
    words: InvertedIndex,
    lowered: Option<InvertedIndex>,
    ngrams: Option<Ngrams>,
    code: Option<Code>,
    /// ln(n + 0.5) and ln(n + 1) for n up to the number of documents.
    logs: [Vec<f64>; 2],
}

/// Buffers that the queries of one thread reuse, and the statistics of the last query's candidates.
#[derive(Debug, Default)]
pub struct RankScratch {
    index: u64,
    is_candidate: Vec<bool>,
    okapi: Option<Okapi>,
    tf_idf: Option<TfIdf>,
    scores: Vec<f64>,
    line: Vec<f64>,
    fused: Vec<f64>,
    overlaps: Vec<u32>,
    common: Common,
    words: Vec<u32>,
    parts: Parts,
    keys: Vec<Key>,
}

/// Constant of reciprocal rank fusion.
const FUSION: f64 = 60.0;

/// Returns the part of a fused score that a rank, counted from 1, contributes.
pub(super) fn reciprocal(rank: u32) -> f64 {
    1.0 / (FUSION + f64::from(rank))
}

impl DocumentIndex {
    /// Builds an index of documents from their terms in this vocabulary and their texts, in the same order. Data that only
    /// other rankers need are left out. The language determines which keywords [`Ranker::WeightedNgram`] counts fully, and how
    /// [`Ranker::CodeBleu`] parses.
    ///
    /// # Panics
    /// The numbers of texts and documents differ, or a ranker is not defined for the language ([`Ranker::refusal`]).
    pub fn new<T: AsRef<str>>(
        words: Words,
        texts: &[T],
        rankers: &[Ranker],
        language: Language,
        vocabulary: Vocabulary,
    ) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        assert_eq!(words.documents(), texts.len(), "a text for each document");
        let refusal = rankers.iter().find_map(|ranker| ranker.refusal(language));
        assert_eq!(refusal, None, "a ranker for this language");
        let needs = |ranker: &Ranker| rankers.iter().any(|one| one.parts().contains(ranker));
        let lowered = needs(&Ranker::TfIdf)
            .then(|| InvertedIndex::new(words.to_lowercase(texts, &vocabulary)));
        let needs_code = needs(&Ranker::CodeBleu);
        let needs_ngrams = needs_code || needs(&Ranker::WeightedNgram);
        let ngrams = needs_ngrams.then(|| Ngrams::new(texts, language));
        let code = needs_code.then(|| Code::new(texts, language));
        let logs = [0.5, 1.0].map(|offset| logarithms(offset, texts.len()));
        Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            vocabulary,
            words: InvertedIndex::new(words),
            lowered,
            ngrams,
            code,
            logs,
        }
    }

    /// Returns the words of the documents.
    pub fn words(&self) -> &Words {
        &self.words.words
    }

    /// Returns the best `top_k` candidates, by decreasing score, then by increasing priority. Candidates with score 0 are
    /// included, except for [`Ranker::Definitions`]. `priority` has a number for each document: distinct ones for candidates,
    /// and `u32::MAX` for the others.
    ///
    /// # Panics
    /// `priority` does not have one number per document, the index was not built for this ranker, or the query lacks one cosine
    /// per document ([`Ranker::Dense`]), definitions ([`Ranker::Definitions`]) or a prior ([`Ranker::Graph`]).
    pub fn rank(
        &self,
        ranker: &Ranker,
        query: &RankQuery<'_>,
        priority: &[u32],
        top_k: usize,
        scratch: &mut RankScratch,
    ) -> Vec<DocumentHit> {
        let documents = self.words().documents();
        assert_eq!(priority.len(), documents, "a priority for each document");
        scratch.prepare(self, priority);
        let (ranker, prior) = match ranker {
            Ranker::Graph(ranker) => {
                let prior = query.prior.as_ref().expect("a prior for each document");
                (&**ranker, Some(prior))
            }
            ranker => (ranker, None),
        };
        if let Ranker::Fusion(rankers) = ranker {
            zeros(&mut scratch.fused, documents);
            for ranker in rankers {
                self.score(ranker, query, scratch);
                scratch.multiply(prior);
                scratch.order(priority, documents);
                scratch.drop_unfound(ranker);
                for (rank, key) in (1_u32..).zip(&scratch.keys) {
                    scratch.fused[key.document() as usize] += reciprocal(rank);
                }
            }
            std::mem::swap(&mut scratch.fused, &mut scratch.scores);
        } else {
            self.score(ranker, query, scratch);
            scratch.multiply(prior);
        }
        scratch.order(priority, top_k);
        scratch.drop_unfound(ranker);
        let hit = |key: &Key| DocumentHit {
            document: key.document(),
            score: scratch.scores[key.document() as usize],
        };
        scratch.keys.iter().map(hit).collect()
    }

    /// Stores the score of every document in the scratch. Scores of documents that are not candidates are meaningless.
    fn score(&self, ranker: &Ranker, query: &RankQuery<'_>, scratch: &mut RankScratch) {
        zeros(&mut scratch.scores, self.words().documents());
        match ranker {
            Ranker::Jaccard => self.jaccard(query, scratch),
            Ranker::Bm25 => self.bm25(query, scratch),
            Ranker::Bm25ByLine(weights) => self.bm25_by_line(*weights, query, scratch),
            Ranker::TfIdf => self.tf_idf(query, scratch),
            Ranker::WeightedNgram => {
                let ngrams = self.ngrams.as_ref();
                let ngrams = ngrams.expect("an index that was made for the weighted n-gram match");
                ngrams.score(&query.text(), &mut scratch.common.ngrams, &mut scratch.scores);
            }
            Ranker::CodeBleu => {
                let made = self.code.as_ref().zip(self.ngrams.as_ref());
                let (code, ngrams) = made.expect("an index that was made for CodeBLEU");
                code.score(ngrams, &query.text(), &mut scratch.scores, &mut scratch.common);
            }
            Ranker::Dense => {
                let cosines = query.dense.as_ref();
                let cosines = cosines.expect("a cosine for each document");
                scratch.scores.copy_from_slice(cosines);
            }
            Ranker::Definitions => {
                let found = query.definitions.as_ref().expect("the definitions of a query");
                for (document, score) in found {
                    scratch.scores[*document as usize] = *score;
                }
            }
            Ranker::Fusion(_) | Ranker::Graph(_) => {
                unreachable!("neither a fusion nor a prior is part of a fusion")
            }
        }
    }

    fn jaccard(&self, query: &RankQuery<'_>, scratch: &mut RankScratch) {
        let (text, words) = (query.text(), &self.words.words);
        let unknown = self.known_words(&self.words, &text, &mut scratch.words);
        scratch.words.sort_unstable();
        scratch.words.dedup();
        let size = scratch.words.len() as u32 + unknown;
        zeros(&mut scratch.overlaps, words.documents());
        for word in &scratch.words {
            for document in self.words.documents_of(*word) {
                scratch.overlaps[*document as usize] += 1;
            }
        }
        let scores = scratch.scores.iter_mut().zip(&scratch.overlaps);
        for (document, (score, overlap)) in scores.enumerate() {
            if *overlap > 0 {
                let union = size + words.distinct(document) - overlap;
                *score = f64::from(*overlap) / f64::from(union);
            }
        }
    }

    /// Returns the candidates' statistics for BM25; reuses those of the previous query if its candidates were the same.
    fn okapi(&self, scratch: &mut RankScratch) -> Okapi {
        scratch.okapi.take().unwrap_or_else(|| {
            let statistics = Statistics::new(&self.words, &scratch.is_candidate);
            Okapi::new(&self.words, statistics, &self.logs[0])
        })
    }

    fn bm25(&self, query: &RankQuery<'_>, scratch: &mut RankScratch) {
        let okapi = self.okapi(scratch);
        self.known_words(&self.words, &query.text(), &mut scratch.words);
        scratch.parts.clear();
        let (words, scores) = (&scratch.words, &mut scratch.scores);
        scratch.parts.add(&okapi, &self.words, &self.logs[0], words, scores);
        scratch.okapi = Some(okapi);
    }

    fn bm25_by_line(&self, weights: LineWeights, query: &RankQuery<'_>, scratch: &mut RankScratch) {
        let okapi = self.okapi(scratch);
        scratch.parts.clear();
        for (number, line) in query.lines.iter().enumerate() {
            self.known_words(&self.words, line, &mut scratch.words);
            zeros(&mut scratch.line, scratch.scores.len());
            let (words, scores) = (&scratch.words, &mut scratch.line);
            scratch.parts.add(&okapi, &self.words, &self.logs[0], words, scores);
            let weight = weights.at(distance(number, query.hole));
            for (score, part) in scratch.scores.iter_mut().zip(&scratch.line) {
                *score += part * weight;
            }
        }
        scratch.okapi = Some(okapi);
    }

    fn tf_idf(&self, query: &RankQuery<'_>, scratch: &mut RankScratch) {
        let lowered = self.lowered.as_ref();
        let lowered = lowered.expect("an index that was made for TF-IDF");
        let tf_idf = scratch.tf_idf.take().unwrap_or_else(|| {
            let statistics = Statistics::new(lowered, &scratch.is_candidate);
            TfIdf::new(lowered, statistics, &self.logs[1])
        });
        self.known_words(lowered, &query.text().to_lowercase(), &mut scratch.words);
        tf_idf.score(lowered, &mut scratch.words, &mut scratch.scores);
        scratch.tf_idf = Some(tf_idf);
    }

    /// Collects the numbers of the text's words that occur in documents, in order and with repeats. Returns the number of other
    /// words in the text.
    fn known_words(&self, inverted: &InvertedIndex, text: &str, known: &mut Vec<u32>) -> u32 {
        let mut unknown = Dictionary::default();
        known.clear();
        self.vocabulary.each(text, |word| match inverted.words.dictionary().get(word) {
            Some(number) => known.push(number),
            None => {
                unknown.intern(word);
            }
        });
        unknown.len() as u32
    }
}

/// Resizes a buffer to this many zeros; the loop compiles to one call that clears memory.
fn zeros<N: Copy + Default>(buffer: &mut Vec<N>, length: usize) {
    buffer.resize(length, N::default());
    for number in buffer.iter_mut() {
        *number = N::default();
    }
}

impl RankScratch {
    /// Drops the statistics if they belong to other candidates.
    fn prepare(&mut self, index: &DocumentIndex, priority: &[u32]) {
        let mut known = self.is_candidate.iter().zip(priority);
        let is_known = self.index == index.number
            && self.is_candidate.len() == priority.len()
            && known.all(|(is, priority)| *is == (*priority != u32::MAX));
        if !is_known {
            self.is_candidate.clear();
            self.is_candidate.extend(priority.iter().map(|priority| *priority != u32::MAX));
            self.index = index.number;
            (self.okapi, self.tf_idf) = (None, None);
        }
    }

    /// Multiplies scores by a prior of at least 1; a score below 0 is divided, so that it also rises.
    fn multiply(&mut self, prior: Option<&Vec<f64>>) {
        for (score, factor) in self.scores.iter_mut().zip(prior.into_iter().flatten()) {
            *score = if *score < 0.0 { *score / factor } else { *score * factor };
        }
    }

    /// Drops the documents without a score, if the ranker retrieves only some documents.
    fn drop_unfound(&mut self, ranker: &Ranker) {
        if *ranker == Ranker::Definitions {
            self.keys.retain(|key| self.scores[key.document() as usize] > 0.0);
        }
    }

    /// Stores the keys of the best candidates in `keys`, in order.
    fn order(&mut self, priority: &[u32], top_k: usize) {
        self.keys.clear();
        // Once this many keys are held, only the best `top_k` are kept, and documents that score lower are skipped.
        let full = top_k.saturating_mul(4).max(512);
        let mut worst = f64::NEG_INFINITY;
        let all = (0..).zip(self.scores.iter().zip(priority));
        for (document, (score, priority)) in all {
            if *score < worst || *priority == u32::MAX {
                continue;
            }
            self.keys.push(Key::new(*score, *priority, document));
            if self.keys.len() == full && top_k > 0 {
                let (_, last, _) = self.keys.select_nth_unstable(top_k - 1);
                let score = self.scores[last.document() as usize];
                worst = if score.is_nan() { worst } else { score };
                self.keys.truncate(top_k);
            }
        }
        select(&mut self.keys, top_k);
    }
}
