//! Search: for each query, the k best of the fragments that it may see.

use foldhash::HashMap;
use rayon::prelude::*;
use repoformer_store::artifact::{Column, Columns, Payload};
use repoformer_store::error::Result;
use repoformer_store::progress::Work;
use serde::{Deserialize, Serialize};

use super::align::FileLines;
use super::definitions::DefiningFragment;
use super::index::{TokenSetIndex as SetIndex, WindowHit as Overlap};
use super::mode::Mode;
use super::query::{Queries, Query};
use super::rank::{self, RankScratch, Ranker, Vocabulary, Words};
use super::vector::TokenSets;
use super::visibility::{HoleView, View, Visibility, VisibleFragments};
use crate::repository::fragment::RepoFragments;

/// Score by a ranker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Score {
    /// Jaccard similarity as a fraction: tokens in both sets over tokens in either.
    Jaccard {
        /// Number of tokens in both sets.
        overlap: u32,
        /// Number of tokens in either set.
        union: u32,
    },
    /// Score by any other ranker.
    Value(f64),
}

impl Score {
    /// Returns the score as a number; 0 for the similarity of two empty sets.
    pub fn value(self) -> f64 {
        match self {
            Self::Jaccard { overlap, union } => f64::from(overlap) / f64::from(union.max(1)),
            Self::Value(value) => value,
        }
    }
}

/// A retrieved fragment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// Index in the repository's fragments.
    pub fragment: u32,
    /// Fragment whose text is shown with this fragment's name; it differs from `fragment` only in the reference program's order
    /// of ties.
    pub text_of: u32,
    /// Score by the ranker.
    pub score: Score,
    /// Definition in the fragment that [`Ranker::Definitions`] retrieved; for a fusion, only if this ranker ranks the fragment
    /// before the mean of the other rankers.
    #[serde(skip)]
    pub definition: Option<FileLines>,
}

/// Fragments retrieved for one query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedFragments {
    /// Row of the task.
    pub row: u32,
    /// Number of the prediction that was used to search, among the task's predictions; 0 in the other modes.
    pub sample: u32,
    /// Number of fragments that were ranked; `None` if the search stopped counting once its results were certain.
    pub seen: Option<u32>,
    /// Hits, best first.
    pub hits: Vec<Hit>,
}

/// Retrieval results of one repository in one mode, in the order of its queries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retrieval {
    /// Name of the repository's folder.
    pub repository: String,
    /// Source of the queries.
    pub mode: Mode,
    /// Name of the ranker.
    pub ranker: String,
    /// Maximum number of fragments kept per query.
    pub top_k: u32,
    /// Number of fragments searched; the numbers of all hits are below it.
    pub fragments: u32,
    /// Results, one per query.
    pub found: Vec<RankedFragments>,
}

/// Ranker of a search, the terms that it compares, and the fragments that it may return.
#[derive(Debug, Clone)]
pub struct SearchSettings {
    /// Ranker of the fragments.
    pub ranker: Ranker,
    /// Terms that the ranker compares.
    pub vocabulary: Vocabulary,
    /// Fragments that a query may see.
    pub visibility: Visibility,
    /// Maximum number of fragments kept per query.
    pub top_k: usize,
}

impl SearchSettings {
    /// Returns true if the exact bit-sliced index does the search: Jaccard similarity, with the later of equally similar
    /// fragments first.
    pub fn by_sets(&self) -> bool {
        self.ranker == Ranker::Jaccard && matches!(self.visibility, Visibility::Guarded(_))
    }

    /// Returns true if the search uses sets of `p50k_base` tokens, which have their own artifact.
    pub fn by_p50k_sets(&self) -> bool {
        let is_p50k = matches!(&self.vocabulary, Vocabulary::Tokens(t) if t.is_p50k());
        self.by_sets() && is_p50k
    }

    /// Returns the name of the vectors that the search compares: `one-gram` (sets of `p50k_base` tokens, RepoCoder's), `words`,
    /// `words-nltk-3.8`, `p50k`, or `tokens` with the beginning of the tokenizer's digest.
    pub fn vectors_name(&self) -> String {
        match &self.vocabulary {
            _ if self.by_p50k_sets() => "one-gram".to_owned(),
            Vocabulary::Tokens(tokenizer) if tokenizer.is_p50k() => "p50k".to_owned(),
            Vocabulary::Tokens(tokenizer) => {
                let digest = tokenizer.digest();
                format!("tokens-{}", &digest[..digest.len().min(8)])
            }
            words => words.name().to_owned(),
        }
    }
}

/// Vectors of a repository's fragments.
#[derive(Debug)]
pub enum FragmentVectors {
    /// Sets of `p50k_base` tokens.
    Sets(TokenSets),
    /// Counted terms.
    Terms(Words),
}

/// Vectors of queries, if a search needs more than their texts.
#[derive(Clone, Copy, Default)]
pub struct QueryVectors<'a> {
    /// Sets of `p50k_base` tokens, one per query.
    pub sets: Option<&'a TokenSets>,
    /// Function that returns the cosines of a query's dense vector with each fragment's, by the number of the query.
    pub cosines: Option<&'a (dyn Fn(usize) -> Vec<f64> + Sync)>,
    /// Function that returns the factors of the fragments' scores, by the number of the query.
    pub priors: Option<&'a (dyn Fn(usize) -> Vec<f64> + Sync)>,
    /// Function that returns the fragments that define a query's names, by the number of the query.
    pub definitions: Option<&'a (dyn Fn(usize) -> Vec<DefiningFragment> + Sync)>,
}

/// Fragments of a repository, indexed for one ranker.
#[derive(Debug)]
pub struct RepositoryIndex<'a> {
    fragments: &'a RepoFragments,
    settings: &'a SearchSettings,
    view: View<'a>,
    engine: Engine,
}

#[derive(Debug)]
enum Engine {
    /// Sets of tokens, and the words by which queries must be numbered alike, if any.
    Sets(Box<SetIndex>, Option<Box<Words>>),
    Terms(Box<rank::DocumentIndex>),
}

impl<'a> RepositoryIndex<'a> {
    /// Indexes a repository's fragments by their vectors.
    ///
    /// # Panics
    /// The numbers of vectors and fragments differ.
    pub fn new(
        fragments: &'a RepoFragments,
        vectors: FragmentVectors,
        settings: &'a SearchSettings,
    ) -> Self {
        let engine = match vectors {
            FragmentVectors::Sets(sets) => Engine::Sets(Box::new(SetIndex::new(&sets)), None),
            FragmentVectors::Terms(words) if settings.by_sets() => {
                Engine::Sets(Box::new(SetIndex::new(&words.sets())), Some(Box::new(words)))
            }
            FragmentVectors::Terms(words) => Engine::Terms(Box::new(rank::DocumentIndex::new(
                words,
                &fragments.texts(),
                std::slice::from_ref(&settings.ranker),
                fragments.language,
                settings.vocabulary.clone(),
            ))),
        };
        Self { fragments, settings, view: View::new(fragments, settings.visibility), engine }
    }

    /// Searches with every query. Results depend on neither the order of the work nor the number of threads.
    ///
    /// # Panics
    /// The ranker needs vectors of queries that are missing.
    pub fn search(&self, queries: &Queries, vectors: QueryVectors<'_>) -> Retrieval {
        let found = match &self.engine {
            Engine::Sets(index, words) => {
                let texts = || queries.queries.iter().map(|query| query.text.as_str());
                let made =
                    words.as_ref().map(|words| words.sets_of(texts(), &self.settings.vocabulary));
                let sets = made.as_ref().or(vectors.sets);
                self.by_sets(index, queries, sets.expect("a set of tokens a query"))
            }
            Engine::Terms(index) => self.by_terms(index, queries, vectors),
        };
        Retrieval {
            repository: queries.repository.clone(),
            mode: queries.mode,
            ranker: self.settings.ranker.to_string(),
            top_k: self.settings.top_k as u32,
            fragments: self.fragments.len() as u32,
            found,
        }
    }

    fn by_sets(
        &self,
        index: &SetIndex,
        queries: &Queries,
        sets: &TokenSets,
    ) -> Vec<RankedFragments> {
        let guard = self.settings.visibility.guard();
        let hole = |query| HoleView::of_query(query, self.fragments, guard);
        let holes: Vec<HoleView<'_>> = queries.queries.iter().map(hole).collect();
        let allowed = |query: usize, fragment| holes[query].allows(fragment);
        let hits = index.search_all(sets, self.settings.top_k, allowed);
        let hit = |hit: Overlap| Hit {
            fragment: hit.window,
            text_of: hit.window,
            score: Score::Jaccard { overlap: hit.overlap, union: hit.union },
            definition: None,
        };
        let found = |(query, hits): (&Query, Vec<Overlap>)| RankedFragments {
            row: query.row,
            sample: query.sample,
            seen: None,
            hits: hits.into_iter().map(hit).collect(),
        };
        queries.queries.iter().zip(hits).map(found).collect()
    }

    /// Queries that see the same fragments share their statistics.
    fn by_terms(
        &self,
        index: &rank::DocumentIndex,
        queries: &Queries,
        vectors: QueryVectors<'_>,
    ) -> Vec<RankedFragments> {
        let mut of_key: HashMap<(&str, u32), Vec<usize>> = HashMap::default();
        for (number, query) in queries.queries.iter().enumerate() {
            of_key.entry(self.view.key(query)).or_default().push(number);
        }
        let mut groups: Vec<((&str, u32), Vec<usize>)> = of_key.into_iter().collect();
        groups.sort_unstable();
        let work = Work::new("search", "queries", queries.queries.len());
        let of_group = |scratch: &mut RankScratch, (_, numbers): &((&str, u32), Vec<usize>)| {
            let seen = self.view.of_query(&queries.queries[numbers[0]]);
            let of_each = numbers.iter().map(|&number| {
                let query = &queries.queries[number];
                let defining = vectors.definitions.map(|definitions| definitions(number));
                let scores = |found: &Vec<DefiningFragment>| {
                    found.iter().map(|found| (found.fragment, found.score)).collect()
                };
                let wanted = rank::RankQuery {
                    lines: query.lines().collect(),
                    hole: query.hole as usize,
                    dense: vectors.cosines.map(|cosines| cosines(number)),
                    prior: vectors.priors.map(|priors| priors(number)),
                    definitions: defining.as_ref().map(scores),
                };
                let mut found = self.rank(index, query, &wanted, &seen, scratch);
                let defining = defining.unwrap_or_default();
                let prior = wanted.prior.as_deref().unwrap_or_default();
                self.note_definitions(&mut found.hits, defining, prior, &seen);
                work.advance(1);
                (number, found)
            });
            of_each.collect::<Vec<_>>()
        };
        let groups = groups.par_iter().map_init(RankScratch::default, of_group);
        let mut found: Vec<(usize, RankedFragments)> = groups.flatten().collect();
        found.sort_unstable_by_key(|(number, _)| *number);
        found.into_iter().map(|(_, found)| found).collect()
    }

    fn rank(
        &self,
        index: &rank::DocumentIndex,
        query: &Query,
        wanted: &rank::RankQuery<'_>,
        seen: &VisibleFragments,
        scratch: &mut RankScratch,
    ) -> RankedFragments {
        let SearchSettings { ranker, top_k, .. } = self.settings;
        let mut by = |priority: &[u32]| index.rank(ranker, wanted, priority, *top_k, scratch);
        let names = by(&seen.priority);
        // Texts that are sorted separately have the same scores, rank by rank.
        let texts = seen.text_priority.as_deref().map(&mut by);
        let texts = texts.as_ref().unwrap_or(&names);
        let hit = |(name, text): (&rank::DocumentHit, &rank::DocumentHit)| Hit {
            fragment: name.document,
            text_of: text.document,
            score: Score::Value(name.score),
            definition: None,
        };
        RankedFragments {
            row: query.row,
            sample: query.sample,
            seen: Some(seen.count as u32),
            hits: names.iter().zip(texts).map(hit).collect(),
        }
    }

    /// Stores the definitions in the hits that were retrieved for them.
    fn note_definitions(
        &self,
        hits: &mut [Hit],
        mut defining: Vec<DefiningFragment>,
        prior: &[f64],
        seen: &VisibleFragments,
    ) {
        // The hits were ranked by these scores.
        for found in &mut defining {
            found.score *= prior.get(found.fragment as usize).unwrap_or(&1.0);
        }
        let priority = |found: &DefiningFragment| seen.priority[found.fragment as usize];
        defining.retain(|found| priority(found) != u32::MAX);
        defining.sort_unstable_by(|a, b| {
            b.score.total_cmp(&a.score).then_with(|| priority(a).cmp(&priority(b)))
        });
        let ranked = (1_u32..).zip(&defining).map(|(rank, found)| (found.fragment, (rank, found)));
        let ranked: HashMap<u32, (u32, &DefiningFragment)> = ranked.collect();
        let parts = self.settings.ranker.parts().len();
        let fused = (parts > 1).then_some(parts as f64);
        for hit in hits {
            let found = ranked.get(&hit.fragment).filter(|(rank, _)| {
                fused.is_none_or(|count| count * rank::reciprocal(*rank) > hit.score.value())
            });
            hit.definition = found.map(|(_, found)| found.definition);
        }
    }
}

/// Column of the hits' definitions, if a ranker retrieves any.
const DEFINITIONS: &str = "definitions";

impl Payload for Retrieval {
    const KIND: &'static str = "retrieval results";

    fn records(&self) -> usize {
        self.found.len()
    }

    fn columns(&self) -> Result<Vec<Column<'_>>, String> {
        let mut columns = vec![Column::records("found", self)?];
        let hits = self.found.iter().flat_map(|found| &found.hits);
        let definitions: Vec<Option<FileLines>> = hits.map(|hit| hit.definition).collect();
        if definitions.iter().any(Option::is_some) {
            columns.push(Column::records(DEFINITIONS, &definitions)?);
        }
        Ok(columns)
    }

    fn from_columns(columns: &mut Columns) -> Result<Self> {
        let mut retrieval: Self = columns.records("found")?;
        if columns.has(DEFINITIONS) {
            let definitions: Vec<Option<FileLines>> = columns.records(DEFINITIONS)?;
            let hits = retrieval.found.iter_mut().flat_map(|found| &mut found.hits);
            for (hit, definition) in hits.zip(definitions) {
                hit.definition = definition;
            }
        }
        Ok(retrieval)
    }

    fn check(&self) -> Result<(), String> {
        let hits = self.found.iter().flat_map(|found| &found.hits);
        let is_outside = |hit: &Hit| hit.fragment.max(hit.text_of) >= self.fragments;
        if hits.into_iter().any(is_outside) {
            return Err("a hit names a missing fragment".into());
        }
        Ok(())
    }
}
