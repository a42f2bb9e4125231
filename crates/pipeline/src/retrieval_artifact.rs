//! Artifact of `search`: the fragments that were retrieved for each query of a repository in a mode.

use std::path::PathBuf;

use repoformer_core::retrieve::{Mode, Retrieval};
use repoformer_store::artifact::{Header, Identity, Payload};
use repoformer_store::error::Result;
use repoformer_text::message::StageRun;

use super::embed::Dense;
use super::engine::{Artifact, Engine, Flaw};
use super::experiment::Experiment;
use super::fragments::Fragments;
use super::queries::ModeQueries;
use super::search_time::noted_time;
/// Retrieval of a repository in a mode.
pub(super) struct ModeRetrieval<'a> {
    pub(super) mode: Mode,
    pub(super) repository: &'a str,
    /// Inputs besides fragments and queries; `None` for the retrieval artifact that is in the cache.
    pub(super) vectors: Option<Identity>,
}

impl<'a> ModeRetrieval<'a> {
    /// Returns the retrieval artifact that is in the cache.
    pub(super) fn new(mode: Mode, repository: &'a str) -> Self {
        Self { mode, repository, vectors: None }
    }
}

impl Artifact for ModeRetrieval<'_> {
    type Content = Retrieval;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().retrieval(self.mode, self.repository)
    }

    fn making_stage(&self, _: &Experiment) -> StageRun {
        StageRun::InMode("search", self.mode.name())
    }

    fn identity(&self, engine: &mut Engine<'_>) -> Result<Identity> {
        let Self { mode, repository, .. } = *self;
        let experiment = engine.experiment;
        let (layout, paths) = (&experiment.layout, experiment.paths());
        let mut identity = experiment.cut(Identity::new(Retrieval::KIND));
        identity = experiment.visible(experiment.with_ranking(identity));
        identity = identity
            .parameter("repository", repository)
            .parameter("benchmark", &layout.benchmark)
            .parameter("mode", mode)
            .parameter("top-k", experiment.retrieval.search.top_k)
            .parameter("fragments-file", layout.within_cache(&paths.repo_windows(repository)))
            .parameter("queries-file", layout.within_cache(&paths.query_windows(mode, repository)))
            .input("fragments", engine.header(&Fragments::new(repository))?.checksum)
            .input("queries", engine.header(&ModeQueries::new(mode, repository))?.checksum);
        if experiment.reads_names() {
            identity = identity.parameter("names", NAMES);
            identity = identity.input("tasks", experiment.tasks()?.digest_of(repository));
        }
        if experiment.ranks_dense() {
            identity = Dense::inputs(engine, mode, repository, identity)?;
        }
        Ok(self
            .vectors
            .iter()
            .flat_map(|vectors| &vectors.inputs)
            .fold(identity, |identity, (name, digest)| identity.input(name, digest)))
    }

    /// Returns a flaw if the time is damaged, or belongs to another search.
    fn flaw(&self, experiment: &Experiment, header: &Header) -> Result<Option<Flaw>> {
        let path = experiment.paths().search_time(self.mode, self.repository);
        let noted = noted_time(experiment, self.mode, self.repository, header)?;
        let wrong = noted.and_then(std::result::Result::err);
        Ok(wrong.map(|reason| Flaw::Beside { path, reason: reason.to_owned() }))
    }
}

/// Revision of how names are looked up and what is recorded about them; raised with every change.
const NAMES: u32 = 2;
