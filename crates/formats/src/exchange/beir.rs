//! BEIR's files: `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv`, as its `GenericDataLoader` reads them.
//!
//! N. Thakur et al., *BEIR: a heterogenous benchmark for zero-shot evaluation of information retrieval models*, 2021. Its
//! loader drops queries without a judgement, and fails at a judgement of an unknown query.

use std::fmt::Write;

use foldhash::HashSet;
use repoformer_store::error::{Error, Result};
use repoformer_store::jsonl::Object;
use serde::Serialize;

use super::{Ids, check_id};

/// Document, which is a fragment of a file, or query, which belongs to a task.
#[derive(Debug, Clone, Serialize)]
pub struct BeirRecord<'a> {
    /// Id, unique in its file and not empty (for queries see [`super::query_ids`]); written as described in [`super::id`].
    #[serde(rename = "_id")]
    pub id: &'a str,
    /// Path of a document's file, searched in addition to the text; may be empty. Queries have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a str>,
    /// Lines joined by `\n`.
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
    /// 0 if not relevant; the field's tools accept only whole numbers.
    pub score: u32,
}

/// Returns `corpus.jsonl` or `queries.jsonl`; `what` names the records in errors: "documents", "queries".
///
/// ```
/// use repoformer_formats::exchange::beir::{BeirRecord, records};
/// let (id, title, metadata) = ("my file.py|0", Some("my file.py"), Default::default());
/// let document = BeirRecord { id, title, text: "x = 1\ny", metadata };
/// assert_eq!(
///     records("documents", [document])?,
///     r#"{"_id":"my%20file.py|0","title":"my file.py","text":"x = 1\ny","metadata":{}}"#.to_owned() + "\n",
/// );
/// # Ok::<(), repoformer_store::error::Error>(())
/// ```
///
/// # Errors
/// An id is empty or repeated.
pub fn records<'a>(
    what: &'static str,
    records: impl IntoIterator<Item = BeirRecord<'a>>,
) -> Result<String> {
    let (mut ids, mut text) = (Ids::default(), String::new());
    for record in records {
        let id = ids.add(what, record.id)?;
        // Cannot fail: the records consist of strings and JSON values.
        let json = serde_json::to_string(&BeirRecord { id: &id, ..record });
        text += &json.map_err(|e| Error::parameter("records", e.to_string()))?;
        text.push('\n');
    }
    Ok(text)
}

/// Returns `qrels/test.tsv`: a heading, then one judgement per line.
///
/// ```
/// use repoformer_formats::exchange::beir::{Judgement, judgements};
/// let judgement = Judgement { query: "demo/0", document: "a.py|2", score: 1 };
/// assert_eq!(judgements([judgement])?, "query-id\tcorpus-id\tscore\ndemo/0\ta.py|2\t1\n");
/// # Ok::<(), repoformer_store::error::Error>(())
/// ```
///
/// # Errors
/// An id is empty, or a document is judged twice for one query.
pub fn judgements<'a>(judgements: impl IntoIterator<Item = Judgement<'a>>) -> Result<String> {
    let mut judged: HashSet<(&str, &str)> = HashSet::default();
    let mut text = "query-id\tcorpus-id\tscore\n".to_owned();
    for Judgement { query, document, score } in judgements {
        let ids = (check_id("queries", query)?, check_id("documents", document)?);
        if !judged.insert((query, document)) {
            let reason = format!("'{}' is judged twice for '{}'", ids.1, ids.0);
            return Err(Error::parameter("judgements", reason));
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}\t{}\t{score}", ids.0, ids.1);
    }
    Ok(text)
}
