//! Results of the stages before `prompt`: a repository's queries and retrieval, known to belong to its fragments.

use std::path::PathBuf;

use repoformer_core::repository::fragment::RepoFragments;
use repoformer_core::retrieve::{FragmentText, Hit, Hole, Mode, Queries, Retrieval};
use repoformer_store::artifact::{Header, Identity};
use repoformer_store::error::{Error, Result};
use repoformer_text::message;
use repoformer_text::message::StageRun;

use super::embed::{Dense, DenseInputs};
use super::experiment::Experiment;
use super::fragments::OpenFragments;
use super::stage::{Unread, check_digest, check_input, check_parameters};
use super::window::open_queries;

/// Results of one repository in one mode, of which the headers are read.
pub(super) struct OnDisk {
    /// Header of the fragments.
    fragments: Header,
    queries: Unread<Queries>,
    retrieval: Unread<Retrieval>,
    path: PathBuf,
    step: StageRun,
}

/// Results of one repository in one mode.
pub(super) struct Retrieved {
    pub(super) queries: Queries,
    pub(super) retrieval: Retrieval,
}

impl OnDisk {
    /// # Errors
    /// Queries or results are missing, or were not made of these fragments.
    pub(super) fn open(
        experiment: &Experiment,
        mode: Mode,
        repository: &str,
        fragments: &Header,
    ) -> Result<Self> {
        let queries = open_queries(experiment, mode, repository, fragments)?;
        let path = experiment.layout.retrieval(mode, repository);
        let step = StageRun::InMode("search", mode.name());
        let retrieval = Unread::<Retrieval>::open(experiment, &path, &step)?;
        let header = &retrieval.header;
        check_input(&path, header, "fragments", fragments, &step)?;
        check_input(&path, header, "queries", &queries.header, &step)?;
        let wanted = experiment.visible(experiment.ranked(Identity::new("")));
        check_parameters(&path, header, &wanted, &step)?;
        if experiment.reads_names() {
            let tasks = experiment.tasks()?.digest_of(repository);
            check_digest(&path, header, "tasks", &tasks, &step)?;
        }
        if experiment.ranks_dense() {
            let made_of = DenseInputs { fragments, queries: &queries.header };
            let dense = Dense::open(experiment, mode, repository, made_of)?;
            for (input, vectors) in dense.headers() {
                check_input(&path, header, input, vectors, &step)?;
            }
        }
        Ok(Self { fragments: fragments.clone(), queries, retrieval, path, step })
    }

    /// Checksums of all that it consists of.
    pub(super) fn checksums(&self) -> [&str; 3] {
        [&self.fragments, &self.queries.header, &self.retrieval.header].map(|h| &*h.checksum)
    }

    /// Reads the results, which name fragments by their number.
    ///
    /// # Errors
    /// Something is damaged.
    pub(super) fn read(&mut self, fragments: &RepoFragments) -> Result<Retrieved> {
        let queries = self.queries.read(None)?;
        let retrieval = self.retrieval.read(Some(queries.queries.len()))?;
        let mut definitions = retrieval.found.iter().flat_map(|found| &found.hits);
        let is_outside =
            |hit: &Hit| hit.definition.is_some_and(|at| at.file as usize >= fragments.files.len());
        let reason = if retrieval.fragments as usize != fragments.len() {
            let (ours, theirs) = (retrieval.fragments, fragments.len());
            Some(format!("its results are for {ours} fragments, not {theirs}"))
        } else {
            definitions.any(is_outside).then(|| "a hit names a missing file".to_owned())
        };
        if let Some(reason) = reason {
            return Err(Error::Artifact {
                path: self.path.clone(),
                reason,
                hint: message!["make it again with ", &self.step],
            });
        }
        Ok(Retrieved { queries, retrieval })
    }

    /// Reads the results, and the fragments' texts in the files that they name.
    ///
    /// # Errors
    /// Something is damaged.
    pub(super) fn read_with_texts(
        &mut self,
        experiment: &Experiment,
        fragments: &mut OpenFragments,
    ) -> Result<Retrieved> {
        let retrieved = self.read(fragments.outline()?)?;
        let guard = experiment.retrieval.search.visibility.guard();
        fragments.read_files(|outline| {
            let pairs = retrieved.retrieval.found.iter().zip(&retrieved.queries.queries);
            let files = pairs.flat_map(|(found, query)| {
                let hole = Hole::of_query(query, outline, guard);
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

impl Retrieved {
    /// Turns its results into the fragments that prompts show.
    pub(super) fn texts<'a>(
        &self,
        experiment: &'a Experiment,
        fragments: &'a RepoFragments,
    ) -> FragmentText<'a> {
        let settings = experiment.shown(self.queries.mode);
        FragmentText::new(fragments, settings, |text| experiment.fits(text))
    }
}
