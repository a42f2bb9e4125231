use proptest::prelude::*;
use serde_json::Value;
use twox_hash::XxHash64;

use super::permutations::PERMUTATIONS;
use super::signature::{BUCKETS, PRIME, ROWS};
use super::signer::{NGRAM, least_value};
use super::*;

/// Returns the words and signatures that datatrove computed for texts and files; see `record.py` there.
fn recorded() -> Value {
    let recorded = include_str!("../../../../../tests/fixtures/min_hash/recorded.json");
    serde_json::from_str(recorded).unwrap()
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

#[test]
fn the_permutations_are_numpys() {
    let recorded = recorded();
    for (name, ours) in ["factors", "summands"].iter().zip(&PERMUTATIONS) {
        assert_eq!(numbers(&recorded[name]), ours, "{name}");
    }
}

#[test]
fn words_and_signatures_are_datatroves() {
    for case in recorded()["texts"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let mut words = Vec::new();
        simplify::each_word(text, |word| words.push(String::from_utf8(word.to_owned()).unwrap()));
        assert_eq!(words.join(" "), case["words"].as_str().unwrap(), "{text:?}");
        let mut signer = Signer::default();
        signer.add(text);
        let ours = signer.least().map_or(Vec::new(), Vec::from);
        assert_eq!(ours, numbers(&case["signature"]), "{text:?}");
    }
}

/// Each document consists of files of `data/repos`, one after another; some are edited copies of others.
#[test]
fn signatures_and_clusters_of_files_are_datatroves() {
    let recorded = recorded();
    let mut signatures = Vec::new();
    for document in recorded["documents"].as_array().unwrap() {
        let mut signer = Signer::default();
        let [from, to] = ["from", "to"].map(|name| document[name].as_str().unwrap());
        for file in document["files"].as_array().unwrap() {
            let path = format!("{}/../../{}", env!("CARGO_MANIFEST_DIR"), file.as_str().unwrap());
            signer.add(&std::fs::read_to_string(path).unwrap().replace(from, to));
        }
        let least = signer.least().unwrap();
        if let Some(expected) = document.get("signature") {
            assert_eq!(numbers(expected), least, "{document}");
        }
        signatures.push(Signature::of_least(&least));
    }
    let ours = clusters(&signatures);
    assert!(!ours.is_empty());
    assert_eq!(serde_json::json!(ours), recorded["clusters"]);
}

/// Computes [`least_value`] the plain way.
fn plain_least_value(hashes: &[u64], factor: u64, summand: u64, least: u64) -> u64 {
    let values = hashes.iter().map(|hash| hash.wrapping_mul(factor).wrapping_add(summand) % PRIME);
    values.min().unwrap_or(u64::MAX).min(least)
}

/// Sums with a remainder next to the prime and next to 0, alone among seven large ones, with every possible minimum.
#[test]
fn values_next_to_the_prime_are_exact() {
    let near = || (0..20).chain(PRIME - 20..=PRIME);
    for hash in (0..8_u64).flat_map(|top| near().map(move |low| top << 61 | low)) {
        let mut hashes = [PRIME / 2; 8];
        hashes[(hash % 8) as usize] = hash;
        for least in near().chain([u64::MAX]) {
            let expected = (hash % PRIME).min(PRIME / 2).min(least);
            assert_eq!(least_value(&hashes, 1, 0, least), expected, "{hash}, {least}");
        }
    }
}

proptest! {
    #[test]
    fn the_short_way_is_the_long_one(
        hashes in prop::collection::vec(any::<u64>(), 1..40), factor in 1..PRIME, summand in 0..PRIME, least in any::<u64>(),
    ) {
        let least = least >> (least % 64);
        let expected = plain_least_value(&hashes, factor, summand, least);
        prop_assert_eq!(least_value(&hashes, factor, summand, least), expected);
    }

    /// Plain twin: all words in a list, every n-gram, every permutation.
    #[test]
    fn texts_that_come_one_by_one_are_as_one(
        texts in prop::collection::vec("[a-c \n]{0,99}|[a-zé]{3000}", 0..9),
    ) {
        let joined = texts.join("\n").replace('é', "e");
        let words: Vec<&str> = joined.split_whitespace().collect();
        let ngrams = words.windows(NGRAM).map(|ngram| ngram.join(" "));
        let hashes: Vec<u64> =
            ngrams.map(|ngram| XxHash64::oneshot(0, ngram.as_bytes())).collect();
        let [factors, summands] = &PERMUTATIONS;
        let value = |at| plain_least_value(&hashes, factors[at], summands[at], u64::MAX);
        let count = if hashes.is_empty() { 0 } else { BUCKETS * ROWS };
        let expected: Vec<u64> = (0..count).map(value).collect();
        let mut signer = Signer::default();
        texts.iter().for_each(|text| signer.add(text));
        prop_assert_eq!(signer.least().map_or(Vec::new(), Vec::from), expected);
    }
}
