//! TREC's files, as read by `trec_eval` and tools built on it: runs (`qid Q0 docid rank score tag`) and judgements
//! (`qid 0 docid relevance`), with fields separated by blanks.

use rustc_hash::FxHashSet;

use super::beir::{Judgement, each_judgement};
use super::{Sink, Written, checked, refused};
use crate::error::Result;

/// A document in a ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedDocument<'a> {
    /// Id, written as described in [`super::id`].
    pub document: &'a str,
    /// Score of the ranker; more is better.
    pub score: f64,
}

/// Ranking of one query.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking<'a> {
    /// Id of the query, written as described in [`super::id`].
    pub query: &'a str,
    /// Best first; if empty, no line is written.
    pub hits: Vec<RankedDocument<'a>>,
}

/// Scores written to a run.
///
/// `trec_eval` ignores the ranks: it sorts by score, in single precision, and equal scores by document id from the last to the
/// first. If scores tie, only [`ByRank`](Self::ByRank) keeps the order of the hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScoreColumn {
    /// The ranker's own scores, in as few digits as distinguish them: `0.5`, `1e-7`.
    #[default]
    Own,
    /// The number of hits from this one to the last: n for the best of n, then n − 1, to 1.
    ByRank,
}

/// Writes a run: a line a hit, ranks from 1.
///
/// ```
/// use repoformer::formats::exchange::{Sink, trec};
/// use repoformer::formats::exchange::trec::{RankedDocument, Ranking, ScoreColumn};
/// let mut bytes = Vec::new();
/// let mut sink = Sink { path: "run.txt".as_ref(), out: &mut bytes };
/// let hit = |document, score| RankedDocument { document, score };
/// let hits = vec![hit("a.py|2", 0.5), hit("b c.py|0", 0.25)];
/// trec::write_run([Ranking { query: "demo/0", hits }], "bm25", ScoreColumn::Own, &mut sink)?;
/// assert_eq!(bytes, b"demo/0 Q0 a.py|2 1 0.5 bm25\ndemo/0 Q0 b%20c.py|0 2 0.25 bm25\n");
/// # Ok::<(), repoformer::error::Error>(())
/// ```
///
/// # Errors
/// An id or the tag is empty; a query is repeated, or a document in one ranking; a score is not finite or is above the one
/// before; writing fails. The rankings before are written.
pub fn write_run<'a>(
    rankings: impl IntoIterator<Item = Ranking<'a>>,
    tag: &str,
    scores: ScoreColumn,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let (mut written, tag) = (Written::default(), checked("tag", tag)?);
    for ranking in rankings {
        let query = written.add("queries", ranking.query)?;
        check(&query, &ranking.hits)?;
        for (place, hit) in ranking.hits.iter().enumerate() {
            let (document, rank) = (checked("documents", hit.document)?, place + 1);
            let score = match scores {
                ScoreColumn::Own => hit.score,
                ScoreColumn::ByRank => (ranking.hits.len() - place) as f64,
            };
            sink.line(format_args!("{query} Q0 {document} {rank} {score:?} {tag}"))?;
        }
    }
    Ok(())
}

/// Checks a ranking: each document once, scores in order.
fn check(query: &str, hits: &[RankedDocument<'_>]) -> Result<()> {
    let (mut seen, mut before) = (FxHashSet::default(), f64::INFINITY);
    for RankedDocument { document, score } in hits {
        let wrong = if !score.is_finite() {
            "has no finite score".to_owned()
        } else if *score > before {
            format!("scores {score}, above the {before} of the one before it")
        } else if !seen.insert(*document) {
            "is repeated".to_owned()
        } else {
            before = *score;
            continue;
        };
        let reason = format!("'{document}' {wrong} in the ranking of '{query}'");
        return Err(refused("documents", reason));
    }
    Ok(())
}

/// Writes judgements (*qrels*) in TREC's form.
///
/// ```
/// use repoformer::formats::exchange::{Sink, beir::Judgement, trec};
/// let mut bytes = Vec::new();
/// let mut sink = Sink { path: "qrels.txt".as_ref(), out: &mut bytes };
/// trec::write_judgements([Judgement { query: "demo/0", document: "a.py|2", score: 1 }], &mut sink)?;
/// assert_eq!(bytes, b"demo/0 0 a.py|2 1\n");
/// # Ok::<(), repoformer::error::Error>(())
/// ```
///
/// # Errors
/// An id is empty, a document is judged twice for one query, or writing fails.
pub fn write_judgements<'a>(
    judgements: impl IntoIterator<Item = Judgement<'a>>,
    sink: &mut Sink<'_>,
) -> Result<()> {
    each_judgement(judgements, |query, document, score| {
        sink.line(format_args!("{query} 0 {document} {score}"))
    })
}
