//! Compares every ranker with its plain twin, and with the values of other programs.

use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;
use repoformer_text::tokenize::each_word;
use serde::Deserialize;

use super::*;

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, |word| words.push(word.to_owned()));
    words
}

fn count<T: PartialEq>(of: &T, all: &[T]) -> usize {
    all.iter().filter(|one| *one == of).count()
}

/// The formulas as written, for texts alone; nothing is kept from query to query.
mod twin {
    use super::*;

    pub(super) fn scores(
        ranker: &Ranker,
        query: &RankQuery<'_>,
        documents: &[&str],
        language: Language,
    ) -> Vec<f64> {
        let text = query.lines.join("\n");
        match ranker {
            Ranker::Jaccard => documents.iter().map(|document| jaccard(&text, document)).collect(),
            Ranker::Bm25 => bm25(&text, documents),
            Ranker::Bm25ByLine(weights) => {
                let mut sums = vec![0.0; documents.len()];
                for (number, line) in query.lines.iter().enumerate() {
                    let distance = if number < query.hole {
                        query.hole - 1 - number
                    } else {
                        number - query.hole
                    };
                    for (sum, score) in sums.iter_mut().zip(bm25(line, documents)) {
                        *sum += score * weights.at(distance);
                    }
                }
                sums
            }
            Ranker::TfIdf => tf_idf(&text, documents),
            Ranker::WeightedNgram => {
                documents.iter().map(|document| weighted_ngram(&text, document, language)).collect()
            }
            Ranker::CodeBleu => {
                let of = |document: &&str| codebleu(&text, document, language);
                documents.iter().map(of).collect()
            }
            Ranker::Dense | Ranker::Definitions | Ranker::Fusion(_) | Ranker::Graph(_) => {
                unreachable!("not of texts alone")
            }
        }
    }

    fn jaccard(query: &str, document: &str) -> f64 {
        let set = |text| words(text).into_iter().collect::<BTreeSet<_>>();
        let (query, document) = (set(query), set(document));
        let union = query.union(&document).count();
        if union == 0 { 0.0 } else { query.intersection(&document).count() as f64 / union as f64 }
    }

    fn bm25(query: &str, documents: &[&str]) -> Vec<f64> {
        let documents: Vec<_> = documents.iter().map(|document| words(document)).collect();
        let n = documents.len() as f64;
        let mean = documents.iter().map(Vec::len).sum::<usize>() as f64 / n;
        let idf = |word: &String| {
            let frequency =
                documents.iter().filter(|document| document.contains(word)).count() as f64;
            libm::log(n - frequency + 0.5) - libm::log(frequency + 0.5)
        };
        let known: BTreeSet<&String> = documents.iter().flatten().collect();
        let floor = 0.25 * (known.iter().map(|word| idf(word)).sum::<f64>() / known.len() as f64);
        let mut scores = vec![0.0; documents.len()];
        for word in words(query).iter().filter(|word| known.contains(word)) {
            let idf = if idf(word) < 0.0 { floor } else { idf(word) };
            for (score, document) in scores.iter_mut().zip(&documents) {
                let frequency = count(word, document) as f64;
                let norm = 1.5 * (1.0 - 0.75 + 0.75 * document.len() as f64 / mean);
                *score += idf * (frequency * 2.5 / (frequency + norm));
            }
        }
        scores
    }

    fn tf_idf(query: &str, documents: &[&str]) -> Vec<f64> {
        let lower = |text: &str| words(&text.to_lowercase());
        let documents: Vec<_> = documents.iter().map(|document| lower(document)).collect();
        let known: BTreeSet<&String> = documents.iter().flatten().collect();
        let idf = |word: &String| {
            let frequency =
                documents.iter().filter(|document| document.contains(word)).count() as f64;
            libm::log((1.0 + documents.len() as f64) / (1.0 + frequency)) + 1.0
        };
        let vector = |text: &[String]| {
            known.iter().map(|word| count(*word, text) as f64 * idf(word)).collect::<Vec<_>>()
        };
        let length = |vector: &[f64]| vector.iter().map(|entry| entry * entry).sum::<f64>().sqrt();
        let query = vector(&lower(query));
        let cosine = |document: &Vec<String>| {
            let document = vector(document);
            let product: f64 = document.iter().zip(&query).map(|(a, b)| a * b).sum();
            if product == 0.0 { 0.0 } else { product / length(&document) / length(&query) }
        };
        documents.iter().map(cosine).collect()
    }

    /// Returns the tokens between white space.
    fn tokens(text: &str) -> Vec<String> {
        let tokens = text.split(repoformer_text::lines::is_space).filter(|token| !token.is_empty());
        tokens.map(str::to_owned).collect()
    }

    fn grams(tokens: &[String], n: usize) -> Vec<Vec<String>> {
        tokens.windows(n).map(<[String]>::to_vec).collect()
    }

    /// Returns the geometric mean of the fractions of the n-grams of `of` that are in `also`; 0 without a common token.
    fn shares(of: &[String], also: &[String], weight: impl Fn(&[String]) -> f64) -> f64 {
        let mut logarithms = 0.0;
        for n in 1..=4 {
            let (of, also) = (grams(of, n), grams(also, n));
            let distinct: BTreeSet<_> = of.iter().collect();
            let sum = |times: &dyn Fn(&Vec<String>) -> usize| {
                distinct.iter().map(|gram| times(gram) as f64 * weight(gram)).sum::<f64>()
            };
            let common = sum(&|gram| count(gram, &of).min(count(gram, &also)));
            if n == 1 && common == 0.0 {
                return 0.0;
            }
            let common = if common == 0.0 { 0.1 } else { common };
            logarithms += 0.25 * libm::log(common / sum(&|gram| count(gram, &of)).max(1.0));
        }
        libm::exp(logarithms)
    }

    fn weighted_ngram(query: &str, document: &str, language: Language) -> f64 {
        let (query, document) = (tokens(query), tokens(document));
        let is_keyword = |token: &String| language.codebleu_keywords().any(|one| one == token);
        let weight = |gram: &[String]| match gram {
            [token] if !is_keyword(token) => 0.2,
            _ => 1.0,
        };
        let penalty =
            if document.len() > 2 { 1.0 } else { libm::exp(1.0 - 2.0 / document.len() as f64) };
        penalty * shares(&query, &document, weight)
    }

    fn codebleu(query: &str, document: &str, language: Language) -> f64 {
        let weighted = weighted_ngram(query, document, language);
        let [syntax, flow] = codebleu::twin::shares(query, document, language);
        let (query, document) = (tokens(query), tokens(document));
        let ratio = query.len() as f64 / document.len() as f64;
        let penalty = if document.len() > query.len() { 1.0 } else { libm::exp(1.0 - ratio) };
        let bleu = shares(&document, &query, |_| 1.0);
        // If the texts have something in common, no length is zero, so nothing is divided by zero.
        let bleu = if bleu == 0.0 { 0.0 } else { penalty * bleu };
        0.25 * bleu + 0.25 * weighted + 0.25 * syntax + 0.25 * flow
    }
}

fn lexical(language: Language) -> Vec<Ranker> {
    let rankers = Ranker::NAMES.into_iter().map(|name| name.parse().unwrap());
    let is_lexical = |ranker: &Ranker| !matches!(ranker, Ranker::Dense | Ranker::Definitions);
    rankers.filter(|ranker| is_lexical(ranker) && ranker.refusal(language).is_none()).collect()
}

fn index<T: AsRef<str> + Sync>(
    texts: &[T],
    rankers: &[Ranker],
    language: Language,
) -> DocumentIndex {
    DocumentIndex::new(Words::new(texts), texts, rankers, language, Vocabulary::Words)
}

/// Returns each candidate's score, by document.
fn ranked(
    index: &DocumentIndex,
    ranker: &Ranker,
    query: &RankQuery<'_>,
    priority: &[u32],
    scratch: &mut RankScratch,
) -> HashMap<u32, f64> {
    let hits = index.rank(ranker, query, priority, usize::MAX, scratch);
    for pair in hits.windows(2) {
        let place = |hit: &DocumentHit| priority[hit.document as usize];
        assert!(
            pair[0].score > pair[1].score
                || pair[0].score == pair[1].score && place(&pair[0]) < place(&pair[1])
        );
    }
    hits.into_iter().map(|hit| (hit.document, hit.score)).collect()
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-12 * one.abs().max(other.abs()).max(1.0)
}

const DOCUMENT: &str = "([abcd] |[ab]{2} |def |if |return |self\\.|n't |Ab|É|\\n){0,14}";

proptest! {
    #[test]
    fn rankers_give_what_their_twins_give(
        documents in prop::collection::vec((DOCUMENT, 0_u32..5), 1..9),
        queries in prop::collection::vec((DOCUMENT, 0_usize..4, any::<bool>()), 1..4),
        language in prop::sample::select(&Language::ALL[..]),
    ) {
        let (texts, classes): (Vec<String>, Vec<u32>) = documents.into_iter().unzip();
        let index = index(&texts, &lexical(language), language);
        let mut scratch = RankScratch::default();
        for (number, (text, hole, few)) in queries.iter().enumerate() {
            // Candidates are most or few of the documents, with priorities in a different order.
            let is_candidate = |class: &u32| if *few { *class == 0 } else { *class as usize != number };
            let place = |(d, class): (usize, &u32)| if is_candidate(class) { (d as u32 * 7 + 3) % 11 } else { u32::MAX };
            let priority: Vec<u32> = classes.iter().enumerate().map(place).collect();
            let kept: Vec<usize> = (0..texts.len()).filter(|d| priority[*d] != u32::MAX).collect();
            let alone: Vec<&str> = kept.iter().map(|d| texts[*d].as_str()).collect();
            let query = RankQuery { lines: text.split('\n').collect(), hole: *hole, ..RankQuery::default() };
            for ranker in lexical(language) {
                let found = ranked(&index, &ranker, &query, &priority, &mut scratch);
                prop_assert_eq!(found.len(), kept.len());
                let wanted = twin::scores(&ranker, &query, &alone, language);
                for (document, wanted) in kept.iter().zip(wanted) {
                    let found = found[&(*document as u32)];
                    let same = if ranker == Ranker::Jaccard { found == wanted } else { near(found, wanted) };
                    prop_assert!(same, "{}: {} and {}", ranker, found, wanted);
                }
            }
        }
    }

    #[test]
    fn a_fusion_adds_reciprocal_ranks(
        texts in prop::collection::vec(DOCUMENT, 1..9), dense in prop::collection::vec(-1.0..1.0, 9), text in DOCUMENT, k in 0_usize..10,
    ) {
        let index = index(&texts, &lexical(Language::Python), Language::Python);
        let priority: Vec<u32> = (0..texts.len() as u32).map(|d| if d == 2 { u32::MAX } else { 100 - d }).collect();
        let query = RankQuery { lines: text.split('\n').collect(), hole: 1, dense: Some(dense[..texts.len()].to_vec()), ..RankQuery::default() };
        let mut scratch = RankScratch::default();
        let fusion: Ranker = "rrf:bm25,dense,tf-idf".parse().unwrap();
        let mut sums: HashMap<u32, f64> = HashMap::new();
        for ranker in fusion.parts() {
            let hits = index.rank(ranker, &query, &priority, usize::MAX, &mut scratch);
            for (rank, hit) in hits.iter().enumerate() {
                *sums.entry(hit.document).or_default() += 1.0 / (61.0 + rank as f64);
            }
        }
        let mut wanted: Vec<_> = sums.into_iter().map(|(document, score)| DocumentHit { document, score }).collect();
        wanted.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.document.cmp(&a.document)));
        wanted.truncate(k);
        prop_assert_eq!(index.rank(&fusion, &query, &priority, k, &mut scratch), wanted);
    }
}

#[derive(Deserialize)]
struct RankCase {
    documents: Vec<String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    lines: Vec<String>,
    hole: usize,
    candidates: Vec<usize>,
    scores: HashMap<String, Vec<f64>>,
}

/// Scores by rank_bm25, scikit-learn and codebleu; see tests/fixtures/rank/record.py.
#[test]
fn scores_are_those_of_other_programs() {
    let recorded = include_str!("../../../../../tests/fixtures/rank/scores.json");
    let RankCase { documents, cases } = serde_json::from_str(recorded).unwrap();
    let mut scratch = RankScratch::default();
    let mut compared = 0;
    for language in Language::ALL {
        let index = index(&documents, &lexical(language), language);
        for (number, case) in cases.iter().enumerate() {
            let priority = |d| {
                case.candidates.iter().position(|c| *c == d).map_or(u32::MAX, |place| place as u32)
            };
            let priority: Vec<u32> = (0..documents.len()).map(priority).collect();
            let lines = case.lines.iter().map(String::as_str).collect();
            let query = RankQuery { lines, hole: case.hole, ..RankQuery::default() };
            for (name, wanted) in &case.scores {
                let (name, of) = name.split_once(' ').unwrap_or((name, language.name()));
                if of != language.name() {
                    continue;
                }
                let found = ranked(&index, &name.parse().unwrap(), &query, &priority, &mut scratch);
                assert_eq!(found.len(), wanted.len());
                for (document, wanted) in case.candidates.iter().zip(wanted) {
                    let found = found[&(*document as u32)];
                    assert!(
                        near(found, *wanted),
                        "query {number}, {name} {language}: {found} is not {wanted}"
                    );
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 5_000);
}

#[test]
fn all_candidates_are_ranked_and_nothing_else() {
    let texts = ["a", "b", "a b", ""];
    let mut rankers = lexical(Language::Python);
    // CodeBLEU's scores differ, because any two texts have something in common.
    rankers.retain(|ranker| *ranker != Ranker::CodeBleu);
    let index = index(&texts, &rankers, Language::Python);
    let query = RankQuery {
        lines: vec!["zz"],
        hole: 1,
        dense: Some(vec![0.0, -0.0, f64::NAN, -1.0]),
        ..RankQuery::default()
    };
    let mut scratch = RankScratch::default();
    let mut documents = |ranker: &Ranker, priority: &[u32]| -> Vec<u32> {
        let hits = index.rank(ranker, &query, priority, 9, &mut scratch);
        hits.iter().map(|hit| hit.document).collect()
    };
    for ranker in &rankers {
        assert_eq!(documents(ranker, &[7, 3, 0, 5]), [2, 1, 3, 0], "{ranker}: by priority");
        assert_eq!(documents(ranker, &[u32::MAX, 3, u32::MAX, 5]), [1, 3]);
        assert!(documents(ranker, &[u32::MAX; 4]).is_empty());
    }
    // Zeros are equal, and NaN ranks last.
    assert_eq!(documents(&Ranker::Dense, &[7, 3, 0, 5]), [1, 0, 3, 2]);
}

#[test]
fn statistics_of_another_index_or_other_candidates_are_not_used() {
    let (one, two) = (["a b", "b c", "c d d"], ["a a", "a b", "q"]);
    let [one, two] =
        [one, two].map(|texts| index(&texts, &lexical(Language::Python), Language::Python));
    let query = RankQuery { lines: vec!["a b d q"], hole: 0, ..RankQuery::default() };
    let mut scratch = RankScratch::default();
    for ranker in lexical(Language::Python) {
        let (all, some) = ([0, 1, 2], [0, u32::MAX, 2]);
        for (index, priority) in [(&one, all), (&two, all), (&two, some), (&one, some)] {
            let again = ranked(index, &ranker, &query, &priority, &mut scratch);
            let alone = ranked(index, &ranker, &query, &priority, &mut RankScratch::default());
            assert_eq!(again, alone, "{ranker}");
        }
    }
}

/// So many candidates that the worst are dropped during the search.
#[test]
fn the_best_of_many_are_the_first_of_all() {
    let texts = vec![""; 3_000];
    let index = index(&texts, &[Ranker::Dense], Language::Python);
    let dense = |d: u64| match d * d % 97 {
        0 => f64::NAN,
        rest => (rest % 13) as f64 - 6.0,
    };
    let query = RankQuery {
        lines: Vec::new(),
        hole: 0,
        dense: Some((0..3_000).map(dense).collect()),
        ..RankQuery::default()
    };
    let place = |d: u32| {
        if d.is_multiple_of(5) { u32::MAX } else { d * 7 % 3_001 }
    };
    let priority: Vec<u32> = (0..3_000).map(place).collect();
    let documents = |top_k| -> Vec<u32> {
        let hits =
            index.rank(&Ranker::Dense, &query, &priority, top_k, &mut RankScratch::default());
        hits.iter().map(|hit| hit.document).collect()
    };
    let all = documents(usize::MAX);
    assert_eq!(all.len(), 2_400);
    for top_k in [0, 1, 10, 127, 128, 129, 600, 2_399, 2_400] {
        assert_eq!(documents(top_k), all[..top_k], "top {top_k}");
    }
}

#[derive(Deserialize)]
struct CodeBleuCase {
    language: Language,
    texts: Vec<String>,
    /// Scores with each text as the query and each text as the document.
    scores: Vec<Vec<f64>>,
}

/// Scores by codebleu; see tests/fixtures/rank/record.py.
#[test]
fn the_whole_of_codebleu_is_what_its_package_gives() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/rank/codebleu.json");
    let recorded = std::fs::read_to_string(file).unwrap();
    let recorded: Vec<CodeBleuCase> = serde_json::from_str(&recorded).unwrap();
    let mut compared = 0;
    for CodeBleuCase { language, texts, scores } in recorded {
        let index = index(&texts, &[Ranker::CodeBleu], language);
        let priority: Vec<u32> = (0..texts.len() as u32).collect();
        let mut scratch = RankScratch::default();
        for (number, (text, wanted)) in texts.iter().zip(scores).enumerate() {
            let query =
                RankQuery { lines: text.split('\n').collect(), hole: 0, ..RankQuery::default() };
            let found = ranked(&index, &Ranker::CodeBleu, &query, &priority, &mut scratch);
            for (document, wanted) in (0..).zip(wanted) {
                let found = found[&document];
                assert!(
                    near(found, wanted),
                    "{language}, {number} and {document}: {found} is not {wanted}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 1_500);
}

/// If Python's stack overflows, codebleu continues without data flow. The scores are codebleu's.
#[test]
fn a_deep_tree_has_no_data_flow() {
    let query = RankQuery { lines: vec!["y = x", "z = y, x"], hole: 0, ..RankQuery::default() };
    for (terms, wanted) in [(500, 0.280_020_355_044_855), (2_000, 0.379_833_439_295_502_95)] {
        let texts = [format!("y = x\nx = {}", vec!["x"; terms].join(" + "))];
        let index = index(&texts, &[Ranker::CodeBleu], Language::Python);
        let found = ranked(&index, &Ranker::CodeBleu, &query, &[0], &mut RankScratch::default());
        assert!(near(found[&0], wanted), "{terms}: {} is not {wanted}", found[&0]);
    }
}

#[test]
fn a_prior_multiplies_the_scores_of_each_ranker() {
    let texts = ["a", "a b", "c"];
    let rankers = ["graph:jaccard", "graph:rrf:jaccard,dense"].map(|name| name.parse().unwrap());
    let index = index(&texts, &rankers, Language::Python);
    let (prior, dense) = (Some(vec![1.0, 2.5, 2.0]), Some(vec![0.0, -0.4, -0.2]));
    let query = RankQuery { lines: vec!["a"], prior, dense, ..RankQuery::default() };
    let hits = |ranker| {
        let hits = index.rank(ranker, &query, &[0, 1, 2], 9, &mut RankScratch::default());
        hits.iter().map(|hit| (hit.document, hit.score)).collect::<Vec<_>>()
    };
    assert_eq!(hits(&rankers[0]), [(1, 0.5 * 2.5), (0, 1.0), (2, 0.0)]);
    // Jaccard as above; the cosines are 0, −0.4 / 2.5 and −0.2 / 2.
    let at = |rank: f64| 1.0 / (60.0 + rank);
    let mut wanted = [(1, at(1.0) + at(3.0)), (0, at(2.0) + at(1.0)), (2, at(3.0) + at(2.0))];
    wanted.sort_by(|a, b| b.1.total_cmp(&a.1));
    assert_eq!(hits(&rankers[1]), wanted);
}

#[test]
fn definitions_are_found_or_take_no_rank() {
    let texts = ["a", "b", "a b", "c"];
    let fusion: Ranker = "rrf:definitions,jaccard".parse().unwrap();
    let rankers = [Ranker::Definitions, fusion.clone()];
    let index = index(&texts, &rankers, Language::Python);
    let definitions = Some(vec![(1, 0.5), (3, 2.0)]);
    let query = RankQuery { lines: vec!["a"], definitions, ..RankQuery::default() };
    let hits = |ranker, priority: &[u32]| {
        let hits = index.rank(ranker, &query, priority, 9, &mut RankScratch::default());
        hits.iter().map(|hit| (hit.document, hit.score)).collect::<Vec<_>>()
    };
    assert_eq!(hits(&Ranker::Definitions, &[0, 1, 2, 3]), [(3, 2.0), (1, 0.5)]);
    assert_eq!(hits(&Ranker::Definitions, &[0, 1, 2, u32::MAX]), [(1, 0.5)]);
    // Jaccard: 0, 2, and by priority 1, 3. Definitions: 3, 1.
    let at = |rank: f64| 1.0 / (60.0 + rank);
    let wanted = [(3, at(1.0) + at(4.0)), (1, at(2.0) + at(3.0)), (0, at(1.0)), (2, at(2.0))];
    assert_eq!(hits(&fusion, &[0, 1, 2, 3]), wanted);
}
