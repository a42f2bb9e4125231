//! BEIR's files: `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv`, as its `GenericDataLoader` reads them.
//!
//! N. Thakur et al., *BEIR: a heterogenous benchmark for zero-shot evaluation of information retrieval models*, 2021.
//! Its loader drops queries without a judgement, and stops at a judgement of an unknown query.

use rustc_hash::FxHashSet;
use serde::Serialize;

use super::{Sink, Written, checked, refused};
use crate::error::Result;
use crate::store::jsonl::Object;

/// A document: a fragment of a file.
#[derive(Debug, Clone, Serialize)]
pub struct Document<'a> {
    /// Unique in its collection, and not empty; written as described in [`super::id`].
    #[serde(rename = "_id")]
    pub id: &'a str,
    /// Path of the file, searched besides the text; may be empty.
    pub title: &'a str,
    /// Its lines joined by `\n`.
    pub text: &'a str,
    /// Other fields.
    pub metadata: Object,
}

/// A query for one task.
#[derive(Debug, Clone, Serialize)]
pub struct Query<'a> {
    /// Unique, and not empty: see [`super::query_ids`]; written as described in [`super::id`].
    #[serde(rename = "_id")]
    pub id: &'a str,
    /// Its lines joined by `\n`.
    pub text: &'a str,
    /// Other fields.
    pub metadata: Object,
}

/// Relevance of a document for a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement<'a> {
    /// Id of the query.
    pub query: &'a str,
    /// Id of the document.
    pub document: &'a str,
    /// 0 if not relevant; tools of the field accept only whole numbers.
    pub score: u32,
}

/// Writes `corpus.jsonl`.
///
/// ```
/// use repoformer::formats::exchange::{Sink, beir};
/// let mut bytes = Vec::new();
/// let mut sink = Sink { path: "corpus.jsonl".as_ref(), out: &mut bytes };
/// let metadata = Default::default();
/// let document = beir::Document { id: "my file.py|0", title: "my file.py", text: "x = 1\ny", metadata };
/// beir::write_corpus([document], &mut sink)?;
/// assert_eq!(
///     String::from_utf8(bytes).unwrap(),
///     r#"{"_id":"my%20file.py|0","title":"my file.py","text":"x = 1\ny","metadata":{}}"#.to_owned() + "\n",
/// );
/// # Ok::<(), repoformer::error::Error>(())
/// ```
///
/// # Errors
/// An id is empty or repeated, or writing fails; the records before are written.
pub fn write_corpus<'a>(
    documents: impl IntoIterator<Item = Document<'a>>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let mut written = Written::default();
    for document in documents {
        let id = written.add("documents", document.id)?;
        write_record(&Document { id: &id, ..document }, sink)?;
    }
    Ok(())
}

/// Writes `queries.jsonl`.
///
/// # Errors
/// An id is empty or repeated, or writing fails; the records before are written.
pub fn write_queries<'a>(
    queries: impl IntoIterator<Item = Query<'a>>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let mut written = Written::default();
    for query in queries {
        let id = written.add("queries", query.id)?;
        write_record(&Query { id: &id, ..query }, sink)?;
    }
    Ok(())
}

fn write_record(record: &impl Serialize, sink: &mut Sink<'_>) -> Result<()> {
    // Cannot fail: the records consist of strings and JSON values.
    let json = serde_json::to_string(record).map_err(|e| refused("records", e.to_string()))?;
    sink.line(format_args!("{json}"))
}

/// Writes `qrels/test.tsv`: a heading, then a judgement a line.
///
/// ```
/// use repoformer::formats::exchange::{Sink, beir};
/// let mut bytes = Vec::new();
/// let mut sink = Sink { path: "test.tsv".as_ref(), out: &mut bytes };
/// let judgement = beir::Judgement { query: "demo/0", document: "a.py|2", score: 1 };
/// beir::write_judgements([judgement], &mut sink)?;
/// assert_eq!(bytes, b"query-id\tcorpus-id\tscore\ndemo/0\ta.py|2\t1\n");
/// # Ok::<(), repoformer::error::Error>(())
/// ```
///
/// # Errors
/// An id is empty, a document is judged twice for one query, or writing fails.
pub fn write_judgements<'a>(
    judgements: impl IntoIterator<Item = Judgement<'a>>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    sink.line(format_args!("query-id\tcorpus-id\tscore"))?;
    each_judgement(judgements, |query, document, score| {
        sink.line(format_args!("{query}\t{document}\t{score}"))
    })
}

/// Calls `write` with the ids of each judgement, encoded for files, and its score.
pub(super) fn each_judgement<'a>(
    judgements: impl IntoIterator<Item = Judgement<'a>>,
    mut write: impl FnMut(&str, &str, u32) -> Result<()>,
) -> Result<()> {
    let mut judged: FxHashSet<(&str, &str)> = FxHashSet::default();
    for Judgement { query, document, score } in judgements {
        let ids = (checked("queries", query)?, checked("documents", document)?);
        if !judged.insert((query, document)) {
            let reason = format!("'{}' is judged twice for '{}'", ids.1, ids.0);
            return Err(refused("judgements", reason));
        }
        write(&ids.0, &ids.1, score)?;
    }
    Ok(())
}
