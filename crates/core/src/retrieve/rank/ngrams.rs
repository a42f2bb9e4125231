//! CodeBLEU's weighted n-gram match, as computed by `calc_codebleu([query], [document])` (version 0.7.0; Ren et al. 2020).
//!
//! Tokens are separated by white space. For n from 1 to 4, the match is the fraction of the query's n-grams that the document
//! has, each counted at most as often as in the query. Single tokens have weight 1 if they are keywords of the language,
//! otherwise 0.2; for n above 1, a count of zero becomes 0.1. The score is the geometric mean of the four fractions; 0 without
//! a common token.
//!
//! BLEU's penalty for short documents is meant to compare the two lengths. However, codebleu passes a pair of tokens and
//! weights, whose length is 2. So a document of one token is multiplied by e^(1 − 2/1), and no other document is.

use foldhash::{HashMap, HashSet};
use repoformer_text::language::Language;
use repoformer_text::lines::is_space;

use super::inverted::InvertedIndex;
use super::words::{Row, Words};

/// Mark after the last token of each document.
const END: u32 = u32::MAX;
/// Token of the query that no document has.
const UNKNOWN: u32 = u32::MAX - 1;
/// Weight of a token that is not a keyword.
const OTHER: f64 = 0.2;
/// CodeBLEU's first smoothing method.
const NONE: f64 = 0.1;
/// Weight of each of the four logarithms.
const UNIFORM: f64 = 0.25;

/// Tokens of documents, with the positions of each pair of tokens.
#[derive(Debug)]
pub(super) struct Ngrams {
    /// Tokens instead of words.
    inverted: InvertedIndex,
    /// Tokens of all documents, each document followed by [`END`].
    tokens: Vec<u32>,
    /// Position in `tokens` at which a pair begins, and its document; ordered by the pair's tokens, then by position.
    pairs: Vec<(u32, u32)>,
    /// Pairs that begin with token t are `first[t]..first[t + 1]`.
    first: Vec<u32>,
    keywords: HashSet<&'static str>,
}

impl Ngrams {
    pub(super) fn new<T: AsRef<str>>(texts: &[T], language: Language) -> Self {
        let (mut words, mut row) = (Words::default(), Row::default());
        let (mut tokens, mut pairs) = (Vec::new(), Vec::new());
        for (document, text) in (0..).zip(texts) {
            let start = tokens.len();
            for token in text.as_ref().split(is_space).filter(|token| !token.is_empty()) {
                let number = words.intern(token);
                row.add(number, 1);
                tokens.push(number);
            }
            let last = tokens.len().saturating_sub(1);
            pairs.extend((start..last.max(start)).map(|place| (place as u32, document)));
            tokens.push(END);
            words.push(&mut row);
        }
        let size = words.dictionary().len();
        // The sort is stable, so the second one keeps pairs with equal first tokens in the order of their second tokens.
        let (by_second, _) = sort_by(&pairs, size, |place| tokens[place + 1]);
        let (pairs, first) = sort_by(&by_second, size, |place| tokens[place]);
        Self {
            inverted: InvertedIndex::new(words),
            tokens,
            pairs,
            first,
            keywords: language.codebleu_keywords().collect(),
        }
    }

    /// Returns the pairs of these two tokens.
    fn pairs_of(&self, one: u32, two: u32) -> &[(u32, u32)] {
        let Some([start, end]) = self.first.get(one as usize..).and_then(|rest| rest.first_chunk())
        else {
            return &[];
        };
        let pairs = &self.pairs[*start as usize..*end as usize];
        let second = |pair: &(u32, u32)| self.tokens[pair.0 as usize + 1];
        let start = pairs.partition_point(|pair| second(pair) < two);
        let count = pairs[start..].partition_point(|pair| second(pair) == two);
        &pairs[start..start + count]
    }

    /// Computes the score of every document, and the number of n-grams that it has in common with the query. Returns the number
    /// of the query's tokens.
    pub(super) fn score(
        &self,
        query: &str,
        counts: &mut Vec<[u32; 4]>,
        scores: &mut [f64],
    ) -> usize {
        let mut query = Query::new(self, query);
        counts.clear();
        counts.resize(scores.len(), [0; 4]);
        let total = query.unigrams(self, counts, scores);
        query.longer(self, counts);
        let length = query.tokens.len();
        let shares = [2, 3, 4].map(|n| shares(length, n));
        let penalty = libm::exp(1.0 - 2.0);
        for (document, (score, counts)) in scores.iter_mut().zip(counts).enumerate() {
            if *score > 0.0 {
                let share = |n: usize| shares[n][counts[n + 1] as usize];
                let one = UNIFORM * libm::log(*score / total);
                let sum = exact_sum([one, share(0), share(1), share(2)]);
                let is_short = self.inverted.words.length(document) == 1;
                *score = if is_short { penalty } else { 1.0 } * libm::exp(sum);
            }
        }
        length
    }

    /// Returns the BLEU of a document as the translation of a query with this many tokens, given the number of common n-grams.
    pub(super) fn bleu(&self, document: usize, query: usize, common: [u32; 4]) -> f64 {
        if common[0] == 0 {
            return 0.0;
        }
        let length = self.inverted.words.length(document) as usize;
        let share = |n: usize| {
            let count = if common[n] == 0 { NONE } else { f64::from(common[n]) };
            count / length.saturating_sub(n).max(1) as f64
        };
        let is_short = length <= query;
        let penalty = if is_short { libm::exp(1.0 - query as f64 / length as f64) } else { 1.0 };
        penalty * (share(0) * share(1) * share(2) * share(3)).sqrt().sqrt()
    }
}

/// Sorts pairs by one of their tokens, of which there are `size`; also returns the position at which each token's pairs begin.
fn sort_by(
    pairs: &[(u32, u32)],
    size: usize,
    token: impl Fn(usize) -> u32,
) -> (Vec<(u32, u32)>, Vec<u32>) {
    let mut first = vec![0_u32; size + 1];
    for (place, _) in pairs {
        first[token(*place as usize) as usize + 1] += 1;
    }
    for number in 0..size {
        first[number + 1] += first[number];
    }
    let (mut next, mut sorted) = (first.clone(), vec![(0, 0); pairs.len()]);
    for pair in pairs {
        let next = &mut next[token(pair.0 as usize) as usize];
        let place = *next;
        *next = place + 1;
        sorted[place as usize] = *pair;
    }
    (sorted, first)
}

/// Returns the weighted, smoothed logarithms of the fractions of the query's n-grams, for each number of common n-grams.
fn shares(length: usize, n: usize) -> Vec<f64> {
    let all = (length + 1).saturating_sub(n);
    let share = |count: usize| if count == 0 { NONE } else { count as f64 } / all.max(1) as f64;
    (0..=all).map(|count| UNIFORM * libm::log(share(count))).collect()
}

/// Returns the sum of four numbers as if rounded once (Python's `math.fsum`), except for cases that two-term compensation
/// cannot distinguish.
fn exact_sum(numbers: [f64; 4]) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0);
    for number in numbers {
        let next = sum + number;
        let (large, small) = if sum.abs() >= number.abs() { (sum, number) } else { (number, sum) };
        lost += (large - next) + small;
        sum = next;
    }
    sum + lost
}

/// A pair of the query's tokens, or a further token after another node.
struct Node {
    token: u32,
    /// Number of times that the query has the n-gram.
    count: u32,
    child: Option<u32>,
    sibling: Option<u32>,
    /// Last document seen, and the number of its n-grams that were counted.
    seen: (u32, u32),
}

struct Query<'a> {
    texts: Vec<&'a str>,
    tokens: Vec<u32>,
    nodes: Vec<Node>,
    /// Nodes of pairs, with the first token of each.
    pairs: Vec<(u32, u32)>,
}

impl<'a> Query<'a> {
    fn new(ngrams: &Ngrams, query: &'a str) -> Self {
        let texts: Vec<&str> = query.split(is_space).filter(|token| !token.is_empty()).collect();
        let number = |text: &&str| ngrams.inverted.words.dictionary().get(text).unwrap_or(UNKNOWN);
        let mut query = Self {
            tokens: texts.iter().map(number).collect(),
            texts,
            nodes: Vec::new(),
            pairs: Vec::new(),
        };
        query.plant();
        query
    }

    /// Builds the nodes of all n-grams of known tokens.
    fn plant(&mut self) {
        let mut node_of: HashMap<(bool, u32, u32), u32> = HashMap::default();
        for place in 0..self.tokens.len() {
            let run = &self.tokens[place..self.tokens.len().min(place + 4)];
            let known = run.iter().take_while(|token| **token != UNKNOWN).count();
            let mut parent = None;
            for token in run[..known].iter().skip(1).copied() {
                let key = parent.map_or((true, run[0], token), |parent| (false, parent, token));
                let new = self.nodes.len() as u32;
                let node = *node_of.entry(key).or_insert(new);
                if node == new {
                    let sibling = match parent {
                        Some(parent) => self.nodes[parent as usize].child.replace(new),
                        None => {
                            self.pairs.push((run[0], new));
                            None
                        }
                    };
                    self.nodes.push(Node {
                        token,
                        count: 0,
                        child: None,
                        sibling,
                        seen: (u32::MAX, 0),
                    });
                }
                self.nodes[node as usize].count += 1;
                parent = Some(node);
            }
        }
    }

    /// Counts the common tokens of each document, and adds their weights to its score. Returns the total weight of the query's
    /// tokens, at least 1.
    fn unigrams(&self, ngrams: &Ngrams, counts: &mut [[u32; 4]], scores: &mut [f64]) -> f64 {
        let mut place_of: HashMap<&str, usize> = HashMap::default();
        let mut distinct: Vec<(&str, u32, u32)> = Vec::new();
        for (text, token) in self.texts.iter().zip(&self.tokens) {
            let place = *place_of.entry(text).or_insert(distinct.len());
            if place == distinct.len() {
                distinct.push((text, *token, 0));
            }
            distinct[place].2 += 1;
        }
        let mut total: f64 = 0.0;
        for (text, token, wanted) in distinct {
            let weight = if ngrams.keywords.contains(text) { 1.0 } else { OTHER };
            total += f64::from(wanted) * weight;
            if token != UNKNOWN {
                for (document, count) in ngrams.inverted.postings(token) {
                    let common = count.min(wanted);
                    counts[document as usize][0] += common;
                    scores[document as usize] += f64::from(common) * weight;
                }
            }
        }
        total.max(1.0)
    }

    /// Counts the common runs of two, three and four tokens of each document.
    fn longer(&mut self, ngrams: &Ngrams, counts: &mut [[u32; 4]]) {
        for (one, node) in std::mem::take(&mut self.pairs) {
            let two = self.nodes[node as usize].token;
            for (place, document) in ngrams.pairs_of(one, two) {
                let counts = &mut counts[*document as usize];
                self.count(node, *document, &mut counts[1]);
                let mut parent = node;
                let behind = &ngrams.tokens[*place as usize + 2..];
                for (token, count) in behind.iter().zip(&mut counts[2..]) {
                    let Some(node) = self.child(parent, *token) else {
                        break;
                    };
                    self.count(node, *document, count);
                    parent = node;
                }
            }
        }
    }

    /// Counts one n-gram of a document, unless it was already counted as often as the query has it. The documents must come in
    /// ascending order.
    fn count(&mut self, node: u32, document: u32, count: &mut u32) {
        let node = &mut self.nodes[node as usize];
        if node.seen.0 != document {
            node.seen = (document, 0);
        }
        if node.seen.1 < node.count {
            node.seen.1 += 1;
            *count += 1;
        }
    }

    fn child(&self, node: u32, token: u32) -> Option<u32> {
        let mut next = self.nodes[node as usize].child;
        while let Some(node) = next {
            if self.nodes[node as usize].token == token {
                return next;
            }
            next = self.nodes[node as usize].sibling;
        }
        None
    }
}
