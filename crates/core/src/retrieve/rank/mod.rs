//! Ranking documents by a query: Repoformer's and CrossCodeEval's rankers, each with its reference's formula and constants.
//!
//! A *document* is a chunk's text, a *candidate* one that may be found for this query (mostly: all that are not of the
//! query's own file). The references build their statistics anew from the candidates of every query; a [`DocumentIndex`] is built
//! once a repository, and [`DocumentIndex::rank`] subtracts what is not a candidate. Words are those of
//! [`each_word`](repoformer_text::tokenize::each_word), or the tokens of a tokenizer ([`Vocabulary`]).
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
use inverted::Inverted;
use ngrams::Ngrams;
use okapi::{Okapi, Parts};
use order::{Key, select};
use repoformer_text::language::Language;
use repoformer_text::tokenize::Dictionary;
use statistics::{Statistics, logarithms};
use tf_idf::TfIdf;

/// Lines to search for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RankQuery<'a> {
    /// Its lines, in order.
    pub lines: Vec<&'a str>,
    /// How many of them are before the hole: line i below it has the distance `hole` − 1 − i, any other i − `hole`.
    pub hole: usize,
    /// For each document the cosine of its dense vector with the query's; [`Ranker::Dense`] needs them.
    pub dense: Option<Vec<f64>>,
    /// A factor for each document, at least 1; [`Ranker::Graph`] needs it.
    pub prior: Option<Vec<f64>>,
    /// Documents that define what its names mean, with their scores, above 0; [`Ranker::Definitions`] needs them.
    pub definitions: Option<Vec<(u32, f64)>>,
}

impl RankQuery<'_> {
    fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// How many lines lie between a line of a query and the hole, before which `hole` of them stand.
pub(super) fn distance(line: usize, hole: usize) -> usize {
    line.checked_sub(hole).unwrap_or_else(|| hole - 1 - line)
}

/// A document that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DocumentHit {
    /// Its number.
    pub document: u32,
    /// The ranker's score; 0 where nothing is in common.
    pub score: f64,
}

/// The documents of one repository, ready for some rankers.
#[derive(Debug)]
pub struct DocumentIndex {
    /// Tells indexes apart, for what a [`RankScratch`] keeps.
    number: u64,
    vocabulary: Vocabulary,
    words: Inverted,
    lowered: Option<Inverted>,
    ngrams: Option<Ngrams>,
    code: Option<Code>,
    /// ln(n + 0.5) and ln(n + 1) for n up to the number of documents.
    logs: [Vec<f64>; 2],
}

/// Buffers that queries of one thread use again, and the statistics of the last query's candidates.
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

/// The constant of reciprocal rank fusion.
const FUSION: f64 = 60.0;

/// Part of a fused score that a rank gives, from 1.
pub(super) fn reciprocal(rank: u32) -> f64 {
    1.0 / (FUSION + f64::from(rank))
}

impl DocumentIndex {
    /// An index of documents: their terms, those of this vocabulary, and their texts in the same order. What only other
    /// rankers than these need is left out; the language says which keywords [`Ranker::WeightedNgram`] counts fully, and how
    /// [`Ranker::CodeBleu`] parses.
    ///
    /// # Panics
    /// Where there are not as many texts as documents, or a ranker is not defined for the language ([`Ranker::refusal`]).
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
        let lowered =
            needs(&Ranker::TfIdf).then(|| Inverted::new(words.lowered(texts, &vocabulary)));
        let needs_code = needs(&Ranker::CodeBleu);
        let needs_ngrams = needs_code || needs(&Ranker::WeightedNgram);
        let ngrams = needs_ngrams.then(|| Ngrams::new(texts, language));
        let code = needs_code.then(|| Code::new(texts, language));
        let logs = [0.5, 1.0].map(|offset| logarithms(offset, texts.len()));
        Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            vocabulary,
            words: Inverted::new(words),
            lowered,
            ngrams,
            code,
            logs,
        }
    }

    /// The words of the documents.
    pub fn words(&self) -> &Words {
        &self.words.words
    }

    /// The best `top_k` candidates, by falling score, then by rising priority; those without any score are among them, but for
    /// [`Ranker::Definitions`]. `priority` has a place for each document, distinct among candidates, and `u32::MAX` for what
    /// is none.
    ///
    /// # Panics
    /// Where there is not one priority a document, the index was not made for this ranker, there is not one cosine a
    /// document for [`Ranker::Dense`], or there are no definitions for [`Ranker::Definitions`] or no prior for
    /// [`Ranker::Graph`].
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

    /// Leaves the score of every document in the scratch; those of documents that are no candidates mean nothing.
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

    /// Statistics that BM25 needs of the candidates, from the query before where they are the same.
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

    /// The numbers of the text's words that some document has, in order, repeats included; how many distinct others it has.
    fn known_words(&self, inverted: &Inverted, text: &str, known: &mut Vec<u32>) -> u32 {
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

/// Makes a buffer so many zeros: a loop over what is there is one call to clear memory.
fn zeros<N: Copy + Default>(buffer: &mut Vec<N>, length: usize) {
    buffer.resize(length, N::default());
    for number in buffer.iter_mut() {
        *number = N::default();
    }
}

impl RankScratch {
    /// Forgets the statistics of other candidates.
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

    /// Multiplies scores by a prior, at least 1; a score below 0 rises by it, too.
    fn multiply(&mut self, prior: Option<&Vec<f64>>) {
        for (score, factor) in self.scores.iter_mut().zip(prior.into_iter().flatten()) {
            *score = if *score < 0.0 { *score / factor } else { *score * factor };
        }
    }

    /// Drops the documents that a ranker has not found, if it is one that finds some alone.
    fn drop_unfound(&mut self, ranker: &Ranker) {
        if *ranker == Ranker::Definitions {
            self.keys.retain(|key| self.scores[key.document() as usize] > 0.0);
        }
    }

    /// Leaves the keys of the best candidates, in order.
    fn order(&mut self, priority: &[u32], top_k: usize) {
        self.keys.clear();
        // Once so many are there, all but the best are dropped, and what scores below these is not looked at any more.
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
