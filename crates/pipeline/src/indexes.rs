//! Indexes in which a repository's fragments are searched.

use repoformer_core::repository::fragment::RepoFragments;
use repoformer_core::retrieve::definitions::{DefinitionIndex, FileNames};
use repoformer_core::retrieve::graph::FileGraph;
use repoformer_core::retrieve::{
    FragmentVectors, Queries, QueryVectors, RepositoryIndex, Retrieval,
};
use repoformer_core::task::TaskSet;
use repoformer_store::error::Result;

use super::embed::cosines;
use super::experiment::Experiment;
use super::search::ReadSearch;

/// Indexes in which a repository's fragments are searched.
pub(super) struct Indexes<'a> {
    fragments: RepositoryIndex<'a>,
    definitions: Option<DefinitionIndex<'a>>,
    ranks_definitions: bool,
    graph: Option<FileGraph<'a>>,
    tasks: &'a TaskSet,
}

impl<'a> Indexes<'a> {
    pub(super) fn new(
        experiment: &'a Experiment,
        fragments: &'a RepoFragments,
        vectors: FragmentVectors,
        names: Option<&'a FileNames<'a>>,
    ) -> Result<Self> {
        let search = &experiment.retrieval.search;
        let definitions = names.map(FileNames::index);
        let graph = definitions.as_ref().filter(|_| search.ranker.has_prior());
        Ok(Self {
            fragments: RepositoryIndex::new(fragments, vectors, search),
            graph: graph.map(|definitions| FileGraph::new(definitions, fragments)),
            definitions,
            ranks_definitions: search.ranker.finds_definitions(),
            tasks: experiment.tasks()?,
        })
    }

    pub(super) fn search(&self, read: &ReadSearch) -> Retrieval {
        let cosines = read.dense.as_ref().map(|(fragments, queries)| cosines(fragments, queries));
        let vectors = QueryVectors {
            sets: read.sets.as_ref(),
            cosines: cosines.as_ref().map(|cosines| cosines as _),
            ..QueryVectors::default()
        };
        self.search_with(&read.queries, vectors)
    }

    /// Searches with queries whose vectors are given, except those computed from the names in their tasks' files.
    pub(super) fn search_with(&self, queries: &Queries, vectors: QueryVectors<'_>) -> Retrieval {
        let task = |number: usize| self.tasks.of_row(queries.queries[number].row as usize);
        let definitions = self.definitions.as_ref();
        let of_names = definitions.filter(|_| self.ranks_definitions).map(|definitions| {
            move |number: usize| {
                let query = &queries.queries[number];
                task(number).map_or_else(Vec::new, |task| definitions.search(query, task))
            }
        });
        let priors = self.graph.as_ref().zip(definitions).map(|(graph, definitions)| {
            move |number: usize| {
                let query = &queries.queries[number];
                task(number).map_or_else(Vec::new, |task| graph.prior(definitions, query, task))
            }
        });
        let vectors = QueryVectors {
            definitions: of_names.as_ref().map(|found| found as _),
            priors: priors.as_ref().map(|prior| prior as _),
            ..vectors
        };
        self.fragments.search(queries, vectors)
    }
}
