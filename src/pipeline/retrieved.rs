//! Results of the stages before `prompt`: a repository's fragments, queries and retrieval, known to belong together.

use std::path::PathBuf;

use super::embed::Dense;
use super::experiment::Experiment;
use super::fragments::OpenFragments;
use super::stage::{Unread, check_input, check_parameter};
use super::window::open_queries;
use crate::error::{Error, Result};
use crate::repository::fragment::RepoFragments;
use crate::retrieve::{FragmentText, Hole, Mode, Queries, Retrieval};
use crate::store::artifact::{Header, Identity};

/// Results of one repository in one mode, of which the headers are read.
pub(super) struct OnDisk {
    fragments: Option<OpenFragments>,
    header: Header,
    queries: Unread<Queries>,
    retrieval: Unread<Retrieval>,
    repository: String,
    path: PathBuf,
    command: String,
}

/// Results of one repository in one mode.
pub(super) struct Retrieved {
    pub(super) fragments: RepoFragments,
    pub(super) queries: Queries,
    pub(super) retrieval: Retrieval,
}

impl OnDisk {
    /// # Errors
    /// Fragments, queries or results are missing or do not belong together.
    pub(super) fn open(experiment: &Experiment, mode: Mode, repository: &str) -> Result<Self> {
        let fragments = OpenFragments::open(experiment, repository)?;
        let queries = open_queries(experiment, mode, repository, &fragments.header)?;
        let path = experiment.layout.retrieval(mode, repository);
        let command = format!("search --mode {mode}");
        let retrieval = Unread::<Retrieval>::open(&path, &command)?;
        let header = &retrieval.header;
        check_input(&path, header, "fragments", &fragments.header, &command)?;
        check_input(&path, header, "queries", &queries.header, &command)?;
        let wanted = experiment.visible(experiment.ranked(Identity::new("")));
        for (name, value) in &wanted.parameters {
            check_parameter(&path, header, (name, value), &command)?;
        }
        if experiment.ranks_dense() {
            let headers = (&fragments.header, &queries.header);
            let dense = Dense::open(experiment, mode, repository, headers)?;
            for (input, vectors) in dense.headers() {
                check_input(&path, header, input, vectors, &command)?;
            }
        }
        Ok(Self {
            header: fragments.header.clone(),
            fragments: Some(fragments),
            queries,
            retrieval,
            repository: repository.to_owned(),
            path,
            command,
        })
    }

    /// Checksums of all that it consists of.
    pub(super) fn checksums(&self) -> [&str; 3] {
        [&self.header, &self.queries.header, &self.retrieval.header].map(|h| &*h.checksum)
    }

    /// Reads the results, with the texts of all files.
    ///
    /// # Errors
    /// Something is damaged.
    pub(super) fn read_all(&mut self, experiment: &Experiment) -> Result<Retrieved> {
        if let Some(fragments) = &mut self.fragments {
            fragments.read_all()?;
        }
        self.read(experiment)
    }

    /// Reads the results, with the texts of the files that they name.
    ///
    /// # Errors
    /// Something is damaged.
    pub(super) fn read(&mut self, experiment: &Experiment) -> Result<Retrieved> {
        let mut fragments = match self.fragments.take() {
            Some(fragments) => fragments,
            None => OpenFragments::open(experiment, &self.repository)?,
        };
        let queries = self.queries.read(None)?;
        let retrieval = self.retrieval.read(Some(queries.queries.len()))?;
        let outline = fragments.outline();
        if retrieval.fragments as usize != outline.len() {
            let reason = format!(
                "its results are for {} fragments, not {}",
                retrieval.fragments,
                outline.len()
            );
            return Err(Error::Artifact {
                path: self.path.clone(),
                reason,
                hint: format!("make it again with `repoformer {}`", self.command),
            });
        }
        let guard = experiment.retrieval.search.visibility.guard();
        let pairs = retrieval.found.iter().zip(&queries.queries);
        let files = pairs.flat_map(|(found, query)| {
            let hole = Hole::of_query(query, outline, guard);
            found.hits.iter().flat_map(move |hit| {
                let named = hole.first_named_place(hit.fragment);
                let [own, text] =
                    [hit.fragment, hit.text_of].map(|f| outline.first_place(f as usize));
                [named.file, own.file, text.file]
            })
        });
        let files = files.collect();
        fragments.read_files(files)?;
        Ok(Retrieved { fragments: fragments.into_fragments(), queries, retrieval })
    }
}

impl Retrieved {
    /// Turns its results into the fragments that prompts show.
    pub(super) fn texts<'a>(&'a self, experiment: &'a Experiment) -> FragmentText<'a> {
        let settings = experiment.shown(self.queries.mode);
        FragmentText::new(&self.fragments, settings, |text| experiment.fits(text))
    }
}
