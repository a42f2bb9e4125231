//! Artifacts of `vectorize`: vectors of fragments and queries.

use std::path::PathBuf;

use repoformer_core::retrieve::rank::Words;
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{FragmentVectors, Mode};
use repoformer_store::artifact::{Identity, Payload};
use repoformer_store::error::Result;
use repoformer_text::message::StageRun;

use super::engine::{Artifact, Engine, LazyArtifact};
use super::experiment::Experiment;
use super::fragments::Fragments;
use super::queries::ModeQueries;

/// Returns the identity of an artifact made from a repository's fragments.
fn of_fragments(engine: &mut Engine<'_>, kind: &str, repository: &str) -> Result<Identity> {
    let experiment = engine.experiment;
    let identity = experiment.vocabulary(experiment.cut(Identity::new(kind)));
    let fragments = engine.header(&Fragments::new(repository))?;
    Ok(identity.parameter("repository", repository).input("fragments", fragments.checksum))
}

/// Sets of the tokens of a repository's fragments.
pub(super) struct FragmentSets<'a>(pub(super) &'a str);

impl Artifact for FragmentSets<'_> {
    type Content = TokenSets;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().repo_vectors(self.0)
    }

    fn making_stage(&self, _: &Experiment) -> StageRun {
        StageRun::Any("vectorize")
    }

    fn identity(&self, engine: &mut Engine<'_>) -> Result<Identity> {
        of_fragments(engine, TokenSets::KIND, self.0)
    }
}

/// Counts of the terms of a repository's fragments.
pub(super) struct FragmentTerms<'a>(pub(super) &'a str);

impl Artifact for FragmentTerms<'_> {
    type Content = Words;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().repo_vectors(self.0)
    }

    fn making_stage(&self, _: &Experiment) -> StageRun {
        StageRun::Any("vectorize")
    }

    fn identity(&self, engine: &mut Engine<'_>) -> Result<Identity> {
        of_fragments(engine, Words::KIND, self.0)
    }
}

/// Sets of the tokens of a repository's queries.
pub(super) struct QuerySets<'a> {
    pub(super) mode: Mode,
    pub(super) repository: &'a str,
}

impl Artifact for QuerySets<'_> {
    type Content = TokenSets;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().query_vectors(self.mode, self.repository)
    }

    fn making_stage(&self, _: &Experiment) -> StageRun {
        StageRun::InMode("vectorize", self.mode.name())
    }

    fn identity(&self, engine: &mut Engine<'_>) -> Result<Identity> {
        let Self { mode, repository } = *self;
        let experiment = engine.experiment;
        let queries = engine.header(&ModeQueries::new(mode, repository))?;
        Ok(experiment
            .vocabulary(experiment.cut(Identity::new(TokenSets::KIND)))
            .parameter("repository", repository)
            .parameter("mode", mode)
            .input("queries", queries.checksum))
    }
}

/// Vectors of a repository's fragments as this stage wrote them, not read yet.
pub(super) enum UnreadVectors {
    Sets(LazyArtifact<TokenSets>),
    Terms(LazyArtifact<Words>),
}

impl UnreadVectors {
    pub(super) fn open(engine: &mut Engine<'_>, repository: &str) -> Result<Self> {
        Ok(if engine.experiment.retrieval.search.by_p50k_sets() {
            Self::Sets(engine.need(&FragmentSets(repository))?)
        } else {
            Self::Terms(engine.need(&FragmentTerms(repository))?)
        })
    }

    /// Returns the checksum of the artifact.
    pub(super) fn checksum(&self) -> &str {
        match self {
            Self::Sets(unread) => &unread.header.checksum,
            Self::Terms(unread) => &unread.header.checksum,
        }
    }

    /// Reads the vectors, one for each of `count` fragments.
    pub(super) fn read(&mut self, count: usize) -> Result<FragmentVectors> {
        Ok(match self {
            Self::Sets(unread) => FragmentVectors::Sets(unread.read(Some(count))?),
            Self::Terms(unread) => FragmentVectors::Terms(unread.read(Some(count))?),
        })
    }
}
