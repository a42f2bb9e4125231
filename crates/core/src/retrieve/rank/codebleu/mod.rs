//! CodeBLEU, as computed by `calc_codebleu([query], [document], lang)` (version 0.7.0; Ren et al. 2020).
//!
//! The query is the reference, and the document is the prediction. The score is the mean of four parts:
//!
//! - BLEU of the document's n-grams,
//! - the weighted n-gram match ([`ngrams`](super::ngrams)),
//! - the fraction of the query's subtrees that the document also has ([`syntax`]),
//! - the fraction of the query's data flow that the document also has, each item at most as often as the document has it
//!   ([`data_flow`]).
//!
//! Trees and data flow are computed from the text without its comments and docstrings ([`source`]). If a query has no data flow
//! in common with the document, this part is 1, not 0: version 0.7.0 adds `dataflow_match_score or 1`.

mod data_flow;
mod source;
mod syntax;
#[cfg(test)]
pub(super) mod twin;

use std::hash::Hash;

use foldhash::HashMap;
use repoformer_text::language::{Language, Parser};

use self::data_flow::{Flow, Rules};
use super::ngrams::Ngrams;
use crate::repository::parallel;

/// Returns true if data flow is defined for a language. JavaScript's data flow does not support types, so TypeScript has none.
pub(super) fn is_defined_for(language: Language) -> bool {
    Rules::from_language(language).is_some()
}

/// Inverted index of documents' subtrees and data flow.
#[derive(Debug)]
pub(super) struct Code {
    language: Language,
    subtrees: Postings<u64>,
    flows: Postings<Flow>,
}

impl Code {
    pub(super) fn new<T: AsRef<str>>(texts: &[T], language: Language) -> Self {
        let mut code = Self { language, subtrees: Postings::default(), flows: Postings::default() };
        let texts = texts.iter().map(AsRef::as_ref);
        let parsed = parallel::map(texts, |text: &str| parse(text, language));
        for (document, (subtrees, flows)) in (0..).zip(parsed) {
            code.subtrees.add(document, subtrees);
            code.flows.add(document, flows);
        }
        code
    }

    /// Computes the score of every document.
    pub(super) fn score(
        &self,
        ngrams: &Ngrams,
        query: &str,
        scores: &mut [f64],
        common: &mut Common,
    ) {
        let length = ngrams.score(query, &mut common.ngrams, scores);
        let (subtrees, flows) = parse(query, self.language);
        let all_subtrees = subtrees.len() as f64;
        self.subtrees.count(subtrees, |_, of_query| of_query, scores.len(), &mut common.subtrees);
        let all_flows = flows.len().max(1) as f64;
        self.flows.count(flows, u32::min, scores.len(), &mut common.flows);
        for (document, score) in scores.iter_mut().enumerate() {
            let bleu = ngrams.bleu(document, length, common.ngrams[document]);
            let syntax = f64::from(common.subtrees[document]) / all_subtrees;
            let flow = match common.flows[document] {
                0 => 1.0,
                count => f64::from(count) / all_flows,
            };
            *score = 0.25 * (bleu + *score + syntax + flow);
        }
    }
}

/// Counts of the items that the query and each document have in common.
#[derive(Debug, Default)]
pub(super) struct Common {
    pub(super) ngrams: Vec<[u32; 4]>,
    subtrees: Vec<u32>,
    flows: Vec<u32>,
}

/// Returns a text's subtrees and its data flow.
fn parse(text: &str, language: Language) -> (Vec<u64>, Vec<Flow>) {
    let text = source::bare(text, language);
    let tree = Parser::new(language).and_then(|mut parser| parser.parse(&text, "", None));
    let (Some(tree), Some(rules)) = (tree, Rules::from_language(language)) else {
        return Default::default();
    };
    (syntax::subtrees(&tree), data_flow::data_flow(&tree, &text, rules))
}

/// For each key, the documents that have it, ascending, with the number of occurrences in each.
#[derive(Debug)]
struct Postings<K>(HashMap<K, Vec<(u32, u32)>>);

impl<K> Default for Postings<K> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<K: Hash + Eq> Postings<K> {
    fn add(&mut self, document: u32, keys: Vec<K>) {
        for key in keys {
            let documents = self.0.entry(key).or_default();
            match documents.last_mut() {
                Some((last, count)) if *last == document => *count += 1,
                _ => documents.push((document, 1)),
            }
        }
    }

    /// Adds up, for each document, the common part of the document's and the query's counts of each key.
    fn count(
        &self,
        query: Vec<K>,
        common: fn(u32, u32) -> u32,
        documents: usize,
        counts: &mut Vec<u32>,
    ) {
        counts.clear();
        counts.resize(documents, 0);
        let mut distinct: HashMap<K, u32> = HashMap::default();
        query.into_iter().for_each(|key| *distinct.entry(key).or_default() += 1);
        for (key, of_query) in distinct {
            for (document, of_document) in self.0.get(&key).into_iter().flatten() {
                counts[*document as usize] += common(*of_document, of_query);
            }
        }
    }
}
