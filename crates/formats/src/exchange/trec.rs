//! TREC's runs, as read by `trec_eval` and tools based on it: lines `qid Q0 docid rank score tag`, with fields separated by
//! blanks.

use std::fmt::Write;

use foldhash::HashSet;
use repoformer_store::error::{Error, Result};
use repoformer_text::named;

use super::{Ids, check_id};

/// Document in a ranking.
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

/// Scores of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunScores {
    /// Number of documents from this one to the last, so that every program keeps the order.
    #[default]
    ByRank,
    /// Score of the ranker. Programs that sort by score reorder documents with equal scores.
    Own,
}

named! {
    RunScores, "scores of a run":
    ByRank = "by-rank",
    Own = "own",
}

/// Returns a run: one line per hit, ranks from 1, own scores in as few digits as distinguish them (`0.5`, `1e-7`).
///
/// `trec_eval` ignores the ranks: it sorts by score, in single precision, and equal scores by document id from the last to the
/// first.
///
/// ```
/// use repoformer_formats::exchange::trec::{RankedDocument, Ranking, RunScores, run};
/// let hit = |document, score| RankedDocument { document, score };
/// let hits = vec![hit("a.py|2", 0.5), hit("b c.py|0", 0.25)];
/// let ranking = Ranking { query: "demo/0", hits };
/// let own = run([ranking.clone()], RunScores::Own, "bm25")?;
/// assert_eq!(own, "demo/0 Q0 a.py|2 1 0.5 bm25\ndemo/0 Q0 b%20c.py|0 2 0.25 bm25\n");
/// let by_rank = run([ranking], RunScores::ByRank, "bm25")?;
/// assert_eq!(by_rank, "demo/0 Q0 a.py|2 1 2 bm25\ndemo/0 Q0 b%20c.py|0 2 1 bm25\n");
/// # Ok::<(), repoformer_store::error::Error>(())
/// ```
///
/// # Errors
/// An id or the tag is empty; a query is repeated, or a document in one ranking; a score is not finite or is above the one
/// before.
pub fn run<'a>(
    rankings: impl IntoIterator<Item = Ranking<'a>>,
    scores: RunScores,
    tag: &str,
) -> Result<String> {
    let (mut ids, tag, mut run) = (Ids::default(), check_id("tag", tag)?, String::new());
    for ranking in rankings {
        let query = ids.add("queries", ranking.query)?;
        check(&query, &ranking.hits)?;
        for (rank, hit) in (1..).zip(&ranking.hits) {
            let document = check_id("documents", hit.document)?;
            let score = match scores {
                RunScores::ByRank => (ranking.hits.len() + 1 - rank).to_string(),
                RunScores::Own => format!("{:?}", hit.score),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(run, "{query} Q0 {document} {rank} {score} {tag}");
        }
    }
    Ok(run)
}

/// Checks a ranking: each document occurs once, and scores are in order.
fn check(query: &str, hits: &[RankedDocument<'_>]) -> Result<()> {
    let (mut seen, mut before) = (HashSet::default(), f64::INFINITY);
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
        return Err(Error::parameter("documents", reason));
    }
    Ok(())
}
