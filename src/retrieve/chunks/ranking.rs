//! Retrieval among chunks: for each query the k best of the chunks that its task sees.

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{Neighbourhood, Queries, Query, Sight};
use crate::error::Result;
use crate::retrieve::query::Mode;
use crate::retrieve::rank::{self, Candidates, Index, Ranker, Scratch};
use crate::store::artifact::{Column, Columns, Payload};

/// A chunk that was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rank {
    /// Index in the repository's chunks.
    pub chunk: u32,
    /// The chunk whose text stands beside its name: another one only in the reference's order of ties.
    pub text_of: u32,
    /// What the ranker gave it.
    pub score: f64,
}

/// The chunks found for one query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranked {
    /// The task's row.
    pub row: u32,
    /// Which of the task's predictions was searched with; 0 in the other modes.
    pub sample: u32,
    /// How many chunks were ranked.
    pub seen: u32,
    /// Best first.
    pub hits: Vec<Rank>,
}

/// The retrieval results of one repository in one mode, in the order of its queries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// The repository's folder name.
    pub repository: String,
    /// Where the queries came from.
    pub mode: Mode,
    /// Name of the ranker.
    pub ranker: String,
    /// How many chunks were kept a query, at most.
    pub top_k: u32,
    /// Number of chunks searched: every hit is below it.
    pub chunks: u32,
    /// A result a query.
    pub found: Vec<Ranked>,
}

/// A cosine for each chunk, by the number of the query.
pub(crate) type Cosines<'a> = dyn Fn(usize) -> Vec<f64> + Sync + 'a;

impl Ranking {
    /// Ranks the chunks that each query's task sees. Queries of one file share what they see and its statistics.
    pub(crate) fn search(
        index: &Index,
        neighbourhood: &Neighbourhood<'_>,
        queries: &Queries,
        (ranker, top_k): (&Ranker, usize),
        cosines: Option<&Cosines<'_>>,
    ) -> Self {
        let mut of_file: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
        for (number, query) in queries.queries.iter().enumerate() {
            of_file.entry(&query.path).or_default().push(number);
        }
        let mut groups: Vec<(&str, Vec<usize>)> = of_file.into_iter().collect();
        groups.sort_unstable();
        let of_group = |scratch: &mut Scratch, (path, numbers): &(&str, Vec<usize>)| {
            let sight = neighbourhood.sight(path);
            let of_each = numbers.iter().map(|&number| {
                let dense = cosines.map(|cosines| cosines(number));
                let query = &queries.queries[number];
                let needle = rank::Query {
                    lines: query.lines.iter().map(String::as_str).collect(),
                    hole: query.hole as usize,
                    dense,
                };
                (
                    number,
                    ranked(index, query, &needle, &sight, (ranker, top_k), scratch),
                )
            });
            of_each.collect::<Vec<_>>()
        };
        let groups = groups.par_iter().map_init(Scratch::default, of_group);
        let mut found: Vec<(usize, Ranked)> = groups.flatten().collect();
        found.sort_unstable_by_key(|(number, _)| *number);
        Self {
            repository: queries.repository.clone(),
            mode: queries.mode,
            ranker: ranker.to_string(),
            top_k: top_k as u32,
            chunks: index.words().documents() as u32,
            found: found.into_iter().map(|(_, ranked)| ranked).collect(),
        }
    }
}

fn ranked(
    index: &Index,
    query: &Query,
    needle: &rank::Query<'_>,
    sight: &Sight,
    (ranker, top_k): (&Ranker, usize),
    scratch: &mut Scratch,
) -> Ranked {
    let mut by = |priority: &[u32]| {
        let candidates = Candidates { priority };
        index.rank(ranker, needle, &candidates, top_k, scratch)
    };
    let names = by(&sight.priority);
    // Texts that are sorted on their own have the same scores, place by place.
    let texts = sight.text_priority.as_deref().map(&mut by);
    let texts = texts.as_ref().unwrap_or(&names);
    let pairs = names.iter().zip(texts);
    let hit = |(name, text): (&rank::Hit, &rank::Hit)| Rank {
        chunk: name.document,
        text_of: text.document,
        score: name.score,
    };
    Ranked {
        row: query.row,
        sample: query.sample,
        seen: sight.seen as u32,
        hits: pairs.map(hit).collect(),
    }
}

impl Payload for Ranking {
    const KIND: &'static str = "rankings";

    fn records(&self) -> usize {
        self.found.len()
    }

    fn columns(&self) -> Result<Vec<Column<'_>>, String> {
        Ok(vec![Column::records("found", self)?])
    }

    fn from_columns(columns: &mut Columns) -> Result<Self> {
        columns.records("found")
    }

    fn check(&self) -> Result<(), String> {
        let hits = self.found.iter().flat_map(|found| &found.hits);
        let is_outside = |hit: &Rank| hit.chunk.max(hit.text_of) >= self.chunks;
        match hits.into_iter().any(is_outside) {
            true => Err("a hit names a chunk that is not there".into()),
            false => Ok(()),
        }
    }
}
