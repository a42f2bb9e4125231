//! Results of the stages before `prompt`: a repository's fragments, queries and retrieval, known to belong together.

use std::path::PathBuf;

use super::embed::Dense;
use super::experiment::Experiment;
use super::stage::{Unread, check_input, check_parameter};
use super::window::{open_fragments, open_queries};
use crate::error::{Error, Result};
use crate::repository::fragment::RepoFragments;
use crate::retrieve::{FragmentText, Mode, Queries, Retrieval};
use crate::store::artifact::Identity;

/// Results of one repository in one mode, of which the headers are read.
pub(super) struct OnDisk {
    fragments: Unread<RepoFragments>,
    queries: Unread<Queries>,
    retrieval: Unread<Retrieval>,
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
        let fragments = open_fragments(experiment, repository)?;
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
            fragments,
            queries,
            retrieval,
            path,
            command,
        })
    }

    /// Checksums of all that it consists of.
    pub(super) fn checksums(&self) -> [&str; 3] {
        [
            &self.fragments.header,
            &self.queries.header,
            &self.retrieval.header,
        ]
        .map(|h| &*h.checksum)
    }

    /// # Errors
    /// Something is damaged.
    pub(super) fn read(&mut self) -> Result<Retrieved> {
        let (fragments, queries) = (self.fragments.read(None)?, self.queries.read(None)?);
        let retrieval = self.retrieval.read(Some(queries.queries.len()))?;
        if retrieval.fragments as usize != fragments.len() {
            let reason = format!(
                "its results are for {} fragments, not {}",
                retrieval.fragments,
                fragments.len()
            );
            return Err(Error::Artifact {
                path: self.path.clone(),
                reason,
                hint: format!("make it again with `repoformer {}`", self.command),
            });
        }
        Ok(Retrieved {
            fragments,
            queries,
            retrieval,
        })
    }
}

impl Retrieved {
    /// Turns its results into the fragments that prompts show.
    pub(super) fn texts<'a>(&'a self, experiment: &'a Experiment) -> FragmentText<'a> {
        let settings = experiment.shown(self.queries.mode);
        FragmentText::new(&self.fragments, settings, |text| experiment.fits(text))
    }
}
