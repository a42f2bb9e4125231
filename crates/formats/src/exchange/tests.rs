use std::path::Path;

use proptest::prelude::*;
use repoformer_store::jsonl::{self, Fields, Object};

use super::beir::{BeirRecord, Judgement, judgements, records};
use super::trec::{RankedDocument, Ranking, RunScores, run};
use super::*;

fn ranking<'a>(query: &'a str, hits: &[(&'a str, f64)]) -> Ranking<'a> {
    let hit = |&(document, score)| RankedDocument { document, score };
    let hits = hits.iter().map(hit).collect();
    Ranking { query, hits }
}

/// Decodes the percent-encoding of RFC 3986.
fn decoded(id: &str) -> String {
    let mut bytes = id.bytes();
    let mut text = Vec::new();
    while let Some(byte) = bytes.next() {
        text.push(match byte {
            b'%' => {
                let digits = [bytes.next().unwrap(), bytes.next().unwrap()];
                u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => other,
        });
    }
    String::from_utf8(text).unwrap()
}

#[test]
fn a_ranking_must_be_one() {
    let one = |hits: &[(&str, f64)]| run([ranking("q", hits)], RunScores::Own, "t");
    assert_eq!(one(&[]).unwrap(), "");
    // Equal scores are in order, and so are scores below zero.
    let ties = one(&[("a", 1.0), ("b", 1.0), ("c", -1e-7)]).unwrap();
    assert_eq!(ties, "q Q0 a 1 1.0 t\nq Q0 b 2 1.0 t\nq Q0 c 3 -1e-7 t\n");
    let not_finite = "documents: 'a' has no finite score in the ranking of 'q'";
    let above = "documents: 'b' scores 1.5, above the 1 of the one before it in the ranking of 'q'";
    for (hits, wanted) in [
        (&[("a", 1.0), ("b", 1.5)][..], above),
        (&[("a", f64::NAN)], not_finite),
        (&[("a", f64::INFINITY)], not_finite),
        (&[("a", 1.0), ("a", 1.0)], "documents: 'a' is repeated in the ranking of 'q'"),
        (&[("", 1.0)], "documents: an id is empty"),
    ] {
        assert_eq!(one(hits).unwrap_err().to_string(), wanted);
    }
    let twice =
        run([ranking("q", &[]), ranking("q", &[])], RunScores::Own, "t").unwrap_err().to_string();
    assert_eq!(twice, "queries: the id 'q' is repeated");
    assert_eq!(run([], RunScores::Own, "").unwrap_err().to_string(), "tag: an id is empty");
}

#[test]
fn ids_must_be_unique_and_not_empty() {
    let record = |id| BeirRecord { id, title: None, text: "", metadata: Object::new() };
    let judgement = |query, document| Judgement { query, document, score: 1 };
    let twice = records("documents", ["a b", "a b"].map(record)).unwrap_err();
    assert_eq!(twice.to_string(), "documents: the id 'a%20b' is repeated");
    // One id equals the encoded form of the other; they stay different.
    let two = records("documents", ["a b", "a%20b"].map(record));
    assert!(two.unwrap().contains(r#""a%2520b""#));
    let empty = records("queries", ["a", "", "b"].map(record)).unwrap_err();
    assert_eq!(empty.to_string(), "queries: an id is empty");
    let twice = [judgement("a", "x"), judgement("b", "x"), judgement("a", "x")];
    let twice = judgements(twice).unwrap_err();
    assert_eq!(twice.to_string(), "judgements: 'x' is judged twice for 'a'");
}

/// Splits a line as Python's `str.split()` does.
fn fields(line: &str) -> Vec<&str> {
    let is_space = |c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c);
    line.split(is_space).filter(|field| !field.is_empty()).collect()
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    let id = "[ab %\"\t\n\r\x1c\u{85}\u{2028}\u{a0}é/#|]{1,6}";
    prop::collection::btree_set(id, 1..6).prop_map(|ids| ids.into_iter().collect())
}

proptest! {
    #[test]
    fn ids_are_fields_that_can_be_decoded(text in any::<String>()) {
        let id = id(&text);
        prop_assert_eq!(decoded(&id), text.clone());
        prop_assert!(text.is_empty() || fields(&id) == [&*id]);
        prop_assert!(!id.contains('"'));
    }

    #[test]
    fn query_ids_are_unique(ids in prop::collection::vec("a(#[0-3]){0,3}|", 0..8)) {
        let tasks: Vec<(usize, &str)> = ids.iter().map(String::as_str).enumerate().collect();
        let query_ids = query_ids(&tasks);
        let distinct: HashSet<&String> = query_ids.iter().collect();
        prop_assert_eq!(distinct.len(), ids.len());
        for ((row, id), query) in tasks.iter().zip(&query_ids) {
            let numbered = format!("{id}#{row}");
            prop_assert!(query == *id || *query == numbered);
        }
    }

    #[test]
    fn runs_are_read_back(queries in texts(), documents in texts(), scores in prop::collection::vec(any::<f64>(), 5)) {
        let mut scores: Vec<f64> = scores.into_iter().filter(|score| score.is_finite()).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        let hits: Vec<(&str, f64)> = documents.iter().map(String::as_str).zip(scores).collect();
        let text = run(queries.iter().map(|query| ranking(query, &hits)), RunScores::Own, "a tag").unwrap();
        let mut wanted = Vec::new();
        for query in &queries {
            for (rank, (document, score)) in (1..).zip(&hits) {
                wanted.push((query.clone(), (*document).to_owned(), rank, *score));
            }
        }
        let read = |line: &str| {
            let line = fields(line);
            assert_eq!((line.len(), line[1], line[5]), (6, "Q0", "a%20tag"));
            (decoded(line[0]), decoded(line[2]), line[3].parse::<i32>().unwrap(), line[4].parse::<f64>().unwrap())
        };
        prop_assert_eq!(text.lines().map(read).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn collections_are_read_back(ids in texts(), text in any::<String>(), score in any::<u32>()) {
        let metadata: Object = [("line_no".to_owned(), 3.into())].into_iter().collect();
        let names = || ids.iter().map(String::as_str);
        for title in [Some("a \"b\""), None] {
            let record = |id| BeirRecord { id, title, text: &text, metadata: metadata.clone() };
            let file = records("documents", names().map(record)).unwrap();
            let mut read = Vec::new();
            for (at, line) in jsonl::records(file.as_bytes()) {
                let object = jsonl::parse(Path::new("x"), at.line, line).unwrap();
                let fields = Fields::new(Path::new("x"), at.line, "", &object);
                assert_eq!(fields.string("text").unwrap(), text);
                assert_eq!(fields.string("title").ok(), title);
                assert_eq!(fields.object("metadata").unwrap(), &metadata);
                read.push(decoded(fields.string("_id").unwrap()));
            }
            prop_assert_eq!(&read, &ids);
        }
        let judgement = |document| Judgement { query: "q", document, score };
        let judged = judgements(names().map(judgement)).unwrap();
        let mut lines = judged.split_terminator('\n');
        prop_assert_eq!(lines.next(), Some("query-id\tcorpus-id\tscore"));
        let read: Vec<Vec<&str>> = lines.map(|line| line.split('\t').collect()).collect();
        prop_assert_eq!(read.len(), ids.len());
        for (line, id) in read.iter().zip(&ids) {
            let score = score.to_string();
            assert_eq!((line[0], decoded(line[1]), line[2], line.len()), ("q", id.clone(), &*score, 3));
        }
    }
}
