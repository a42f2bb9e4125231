//! Results of the stages before `prompt`: a repository's queries and retrieval results, checked to belong to its fragments.

use repoformer_core::repository::fragment::RepoFragments;
use repoformer_core::retrieve::{FragmentText, Hit, HoleView, Mode, Queries, Retrieval};
use repoformer_store::artifact::Header;
use repoformer_store::error::Result;

use super::engine::{Engine, LazyArtifact};
use super::experiment::Experiment;
use super::fragments::{Fragments, OpenFragments};
use super::queries::ModeQueries;
use super::retrieval_artifact::ModeRetrieval;

/// Results of one repository in one mode, of which only the headers were read.
pub(super) struct StoredResults {
    /// Header of the fragments.
    fragments: Header,
    queries: LazyArtifact<Queries>,
    retrieval: LazyArtifact<Retrieval>,
}

/// Results of one repository in one mode.
pub(super) struct RepositoryResults {
    pub(super) queries: Queries,
    pub(super) retrieval: Retrieval,
}

impl StoredResults {
    /// # Errors
    /// Queries or results are missing, or were not made of these fragments.
    pub(super) fn open(engine: &mut Engine<'_>, mode: Mode, repository: &str) -> Result<Self> {
        Ok(Self {
            fragments: engine.header(&Fragments::new(repository))?,
            queries: engine.need(&ModeQueries::new(mode, repository))?,
            retrieval: engine.need(&ModeRetrieval::new(mode, repository))?,
        })
    }

    /// Returns the checksums of the fragments, the queries and the results.
    pub(super) fn checksums(&self) -> [&str; 3] {
        [&self.fragments, &self.queries.header, &self.retrieval.header].map(|h| &*h.checksum)
    }

    /// Reads the results, which name fragments by their number.
    ///
    /// # Errors
    /// The queries or results are damaged.
    pub(super) fn read(&mut self, fragments: &RepoFragments) -> Result<RepositoryResults> {
        let queries = self.queries.read(None)?;
        let retrieval = self.retrieval.read(Some(queries.queries.len()))?;
        let mut definitions = retrieval.found.iter().flat_map(|found| &found.hits);
        let is_outside =
            |hit: &Hit| hit.definition.is_some_and(|at| at.file as usize >= fragments.files.len());
        let reason = if retrieval.fragments as usize != fragments.len() {
            let (ours, theirs) = (retrieval.fragments, fragments.len());
            Some(format!("its results refer to {ours} fragments, but there are {theirs}"))
        } else {
            definitions.any(is_outside).then(|| "a result refers to a missing file".to_owned())
        };
        if let Some(reason) = reason {
            return Err(self.retrieval.damage_error(reason));
        }
        Ok(RepositoryResults { queries, retrieval })
    }

    /// Reads the results, and the texts of the fragments in the files that the results name.
    ///
    /// # Errors
    /// The queries, results or fragments are damaged.
    pub(super) fn read_with_texts(
        &mut self,
        experiment: &Experiment,
        fragments: &mut OpenFragments,
    ) -> Result<RepositoryResults> {
        let retrieved = self.read(fragments.outline()?)?;
        let guard = experiment.retrieval.search.visibility.guard();
        fragments.read_files(|outline| {
            let pairs = retrieved.retrieval.found.iter().zip(&retrieved.queries.queries);
            let files = pairs.flat_map(|(found, query)| {
                let hole = HoleView::of_query(query, outline, guard);
                let file_of = |fragment: u32| outline.first_place(fragment as usize).file;
                found.hits.iter().flat_map(move |hit| {
                    let named = hole.first_named_place(hit.fragment).file;
                    let files = [named, file_of(hit.fragment), file_of(hit.text_of)];
                    files.into_iter().chain(hit.definition.map(|definition| definition.file))
                })
            });
            files.collect()
        })?;
        Ok(retrieved)
    }
}

impl RepositoryResults {
    /// Prepares to turn the results into the fragments that prompts show.
    pub(super) fn texts<'a>(
        &self,
        experiment: &'a Experiment,
        fragments: &'a RepoFragments,
    ) -> FragmentText<'a> {
        let settings = experiment.fragment_text_settings(self.queries.mode);
        FragmentText::new(fragments, settings, |text| experiment.fits(text))
    }
}
