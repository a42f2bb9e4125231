use proptest::prelude::*;

use super::beir::{Document, Judgement, Query};
use super::trec::{RankedDocument, Ranking, ScoreColumn};
use super::*;
use crate::store::jsonl::{self, Fields, Object};

fn written(write: impl FnOnce(&mut Sink<'_>) -> Result<()>) -> Result<String> {
    let mut bytes = Vec::new();
    let path = Path::new("out");
    write(&mut Sink { path, out: &mut bytes })?;
    Ok(String::from_utf8(bytes).unwrap())
}

fn run(rankings: &[Ranking<'_>], tag: &str, scores: ScoreColumn) -> Result<String> {
    written(|sink| trec::write_run(rankings.iter().cloned(), tag, scores, sink))
}

fn ranking<'a>(query: &'a str, hits: &[(&'a str, f64)]) -> Ranking<'a> {
    let hit = |&(document, score)| RankedDocument { document, score };
    let hits = hits.iter().map(hit).collect();
    Ranking { query, hits }
}

/// What was encoded, by RFC 3986.
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
fn tasks_that_share_an_id_are_told_apart_by_their_rows() {
    let ids = |tasks: &[(usize, &str)]| query_ids(tasks);
    assert_eq!(ids(&[]), [""; 0]);
    assert_eq!(ids(&[(0, "a"), (1, "b")]), ["a", "b"]);
    assert_eq!(ids(&[(3, "a"), (9, "a"), (10, "")]), ["a#3", "a#9", "#10"]);
    // The third's own id is the first's numbered one, and the fourth's is then the third's.
    let tasks = [(0, "a"), (1, "a"), (2, "a#0"), (3, "a#0#2"), (4, "b")];
    assert_eq!(ids(&tasks), ["a#0", "a#1", "a#0#2", "a#0#2#3", "b"]);
}

#[test]
fn a_ranking_must_be_one() {
    let one = |hits: &[(&str, f64)]| run(&[ranking("q", hits)], "t", ScoreColumn::Own);
    let error = |hits: &[(&str, f64)]| one(hits).unwrap_err().to_string();
    assert_eq!(one(&[]).unwrap(), "");
    // Equal scores are in order; so are scores below zero.
    let ties = one(&[("a", 1.0), ("b", 1.0), ("c", -1e-7)]).unwrap();
    assert_eq!(ties, "q Q0 a 1 1.0 t\nq Q0 b 2 1.0 t\nq Q0 c 3 -1e-7 t\n");
    assert_eq!(
        error(&[("a", 1.0), ("b", 1.5)]),
        "documents: 'b' scores 1.5, above the 1 of the one before it in the ranking of 'q'"
    );
    for score in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let wanted = "documents: 'a' has no finite score in the ranking of 'q'";
        assert_eq!(error(&[("a", score)]), wanted);
    }
    let twice = error(&[("a", 1.0), ("a", 1.0)]);
    assert_eq!(twice, "documents: 'a' is repeated in the ranking of 'q'");
    assert_eq!(error(&[("", 1.0)]), "documents: an id is empty");
    let rankings = [ranking("q", &[]), ranking("q", &[])];
    let twice = run(&rankings, "t", ScoreColumn::Own).unwrap_err().to_string();
    assert_eq!(twice, "queries: the id 'q' is repeated");
    let no_tag = run(&rankings, "", ScoreColumn::Own).unwrap_err().to_string();
    assert_eq!(no_tag, "tag: an id is empty");
}

#[test]
fn scores_by_rank_have_no_ties() {
    let ranking = ranking("q", &[("a", 0.5), ("b", 0.5), ("c", 0.5)]);
    let text = run(&[ranking], "rg1 gt", ScoreColumn::ByRank).unwrap();
    let wanted = "q Q0 a 1 3.0 rg1%20gt\nq Q0 b 2 2.0 rg1%20gt\nq Q0 c 3 1.0 rg1%20gt\n";
    assert_eq!(text, wanted);
}

#[test]
fn ids_must_be_unique_and_not_empty() {
    let document = |id| Document { id, title: "", text: "", metadata: Object::new() };
    let query = |id| Query { id, text: "", metadata: Object::new() };
    let judgement = |query, document| Judgement { query, document, score: 1 };
    let error = |outcome: Result<String>| outcome.unwrap_err().to_string();
    let corpus = written(|sink| beir::write_corpus(["a b", "a b"].map(document), sink));
    assert_eq!(error(corpus), "documents: the id 'a%20b' is repeated");
    // One is what the other is written as; they stay two.
    let corpus = written(|sink| beir::write_corpus(["a b", "a%20b"].map(document), sink));
    assert!(corpus.unwrap().contains(r#""a%2520b""#));
    let queries = written(|sink| beir::write_queries(["a", "", "b"].map(query), sink));
    assert_eq!(error(queries), "queries: an id is empty");
    let twice = [judgement("a", "x"), judgement("b", "x"), judgement("a", "x")];
    let wanted = "judgements: 'x' is judged twice for 'a'";
    assert_eq!(error(written(|sink| beir::write_judgements(twice, sink))), wanted);
    assert_eq!(error(written(|sink| trec::write_judgements(twice, sink))), wanted);
}

#[test]
fn a_stream_that_takes_nothing_more_is_named() {
    let mut full: &mut [u8] = &mut [0; 8];
    let path = Path::new("run.txt");
    let mut sink = Sink { path, out: &mut full };
    let ranking = ranking("q", &[("document", 1.0)]);
    let error = trec::write_run([ranking], "t", ScoreColumn::Own, &mut sink).unwrap_err();
    assert!(error.to_string().starts_with("run.txt: cannot write this file: "));
}

/// As Python's `str.split()` cuts a line.
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
        let tasks: Vec<(usize, &String)> = ids.iter().enumerate().collect();
        let query_ids = query_ids(&tasks);
        let distinct: FxHashSet<&String> = query_ids.iter().collect();
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
        let rankings: Vec<Ranking<'_>> = queries.iter().map(|query| ranking(query, &hits)).collect();
        let text = run(&rankings, "a tag", ScoreColumn::Own).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(fields).collect();
        let mut wanted = Vec::new();
        for query in &queries {
            for (rank, (document, score)) in (1..).zip(&hits) {
                wanted.push((query.clone(), (*document).to_owned(), rank, *score));
            }
        }
        let read = |line: &Vec<&str>| {
            assert_eq!((line.len(), line[1], line[5]), (6, "Q0", "a%20tag"));
            (decoded(line[0]), decoded(line[2]), line[3].parse::<i32>().unwrap(), line[4].parse::<f64>().unwrap())
        };
        prop_assert_eq!(lines.iter().map(read).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn collections_are_read_back(ids in texts(), text in any::<String>(), score in any::<u32>()) {
        let metadata: Object = [("line_no".to_owned(), 3.into())].into_iter().collect();
        let document = |id| Document { id, title: "a \"b\"", text: &text, metadata: metadata.clone() };
        let query = |id| Query { id, text: &text, metadata: metadata.clone() };
        let names = || ids.iter().map(String::as_str);
        let corpus = written(|sink| beir::write_corpus(names().map(document), sink)).unwrap();
        let queries = written(|sink| beir::write_queries(names().map(query), sink)).unwrap();
        for (file, has_title) in [(&corpus, true), (&queries, false)] {
            let mut read = Vec::new();
            for (at, line) in jsonl::records(file.as_bytes()) {
                let object = jsonl::parse(Path::new("x"), at.line, line).unwrap();
                let fields = Fields::new(Path::new("x"), at.line, "", &object);
                assert_eq!(fields.string("text").unwrap(), text);
                assert_eq!(fields.string("title").ok(), has_title.then_some("a \"b\""));
                assert_eq!(fields.object("metadata").unwrap(), &metadata);
                read.push(decoded(fields.string("_id").unwrap()));
            }
            prop_assert_eq!(&read, &ids);
        }
        let judgement = |document| Judgement { query: "q", document, score };
        let judgements = written(|sink| beir::write_judgements(names().map(judgement), sink)).unwrap();
        let mut lines = judgements.split_terminator('\n');
        prop_assert_eq!(lines.next(), Some("query-id\tcorpus-id\tscore"));
        let read: Vec<Vec<&str>> = lines.map(|line| line.split('\t').collect()).collect();
        let trec = written(|sink| trec::write_judgements(names().map(judgement), sink)).unwrap();
        let trec: Vec<Vec<&str>> = trec.lines().map(fields).collect();
        for ((tsv, trec), id) in read.iter().zip(&trec).zip(&ids) {
            let score = score.to_string();
            assert_eq!((tsv[0], decoded(tsv[1]), tsv[2], tsv.len()), ("q", id.clone(), &*score, 3));
            assert_eq!((trec[0], trec[1], decoded(trec[2]), trec[3], trec.len()), ("q", "0", id.clone(), &*score, 4));
        }
        prop_assert_eq!((read.len(), trec.len()), (ids.len(), ids.len()));
    }
}
