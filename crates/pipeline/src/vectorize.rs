//! `vectorize`: computes vectors of fragments and queries.

use std::path::PathBuf;

use repoformer_core::retrieve::dense::{Matrix, Text};
use repoformer_core::retrieve::rank::Words;
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{FragmentVectors, Mode, Queries};
use repoformer_store::artifact::{Identity, Payload};
use repoformer_store::error::Result;
use repoformer_text::message::StageRun;
use repoformer_text::tokenize::P50k;

use super::embed::{DenseVectors, Source, query_name};
use super::engine::{Artifact, Engine, Unread};
use super::experiment::Experiment;
use super::fragments::{Fragments, OpenFragments};
use super::stage::{StageReport, for_each_repository};
use super::window::ModeQueries;

/// Computes vectors of each repository's fragments: sets or counts of terms, and dense vectors if a ranker needs them.
///
/// # Errors
/// Fragments are missing, an artifact cannot be written, or dense vectors cannot be obtained.
pub fn vectorize_repositories(experiment: &Experiment) -> Result<StageReport> {
    let search = &experiment.retrieval.search;
    let mut report = for_each_repository(experiment, "vectorize", |repository, engine| {
        let fragments = |engine: &mut Engine<'_>| OpenFragments::open(engine, repository);
        if search.by_p50k_sets() {
            let make = |engine: &mut Engine<'_>| {
                Ok(TokenSets::of_fragments(fragments(engine)?.read_all()?, &P50k))
            };
            engine.make(&FragmentSets(repository), make)?;
        } else {
            let make = |engine: &mut Engine<'_>| {
                let mut fragments = fragments(engine)?;
                Ok(Words::of_terms(&fragments.read_all()?.texts(), &search.vocabulary))
            };
            engine.make(&FragmentTerms(repository), make)?;
        }
        Ok(())
    })?;
    if let Some(mut source) = Source::new(experiment, &[])? {
        let mut engine = Engine::new(experiment);
        for repository in &experiment.repositories {
            dense_fragments(&mut engine, &mut source, repository)?;
        }
        report.merge(engine.report);
    }
    Ok(report)
}

/// Computes vectors of the queries of each mode that retrieves: sets of `p50k_base` tokens, and dense vectors. Other terms are
/// looked up during the search.
///
/// # Errors
/// Queries are missing, an artifact cannot be written, or dense vectors cannot be obtained.
pub fn vectorize_queries(experiment: &Experiment, modes: &[Mode]) -> Result<StageReport> {
    let modes: Vec<Mode> = modes.iter().copied().filter(|m| m.retrieves()).collect();
    if experiment.retrieval.search.by_p50k_sets() {
        return for_each_repository(experiment, "vectorize queries of", |repository, engine| {
            for &mode in &modes {
                engine.make(&QuerySets { mode, repository }, |engine| {
                    let queries = engine.need(&ModeQueries::new(mode, repository))?.read(None)?;
                    Ok(TokenSets::of_queries(&queries, &P50k))
                })?;
            }
            Ok(())
        });
    }
    let mut engine = Engine::new(experiment);
    if let Some(mut source) = Source::new(experiment, &modes)? {
        for &mode in &modes {
            for repository in &experiment.repositories {
                dense_queries(&mut engine, &mut source, mode, repository)?;
            }
        }
    }
    Ok(engine.report)
}

fn dense_fragments(engine: &mut Engine<'_>, source: &mut Source, repository: &str) -> Result<()> {
    let vectors = DenseVectors { repository, mode: None };
    engine.make(&vectors, |engine| {
        let mut fragments = OpenFragments::open(engine, repository)?;
        let fragments = fragments.read_all()?;
        let named = (0..).zip(fragments.texts());
        let texts = named
            .map(|(fragment, text)| Text { id: fragments.name(fragment), text: text.to_owned() });
        source.matrix(engine, texts.collect(), false)
    })?;
    Ok(())
}

fn dense_queries(
    engine: &mut Engine<'_>,
    source: &mut Source,
    mode: Mode,
    repository: &str,
) -> Result<()> {
    let vectors = DenseVectors { repository, mode: Some(mode) };
    engine.make(&vectors, |engine| -> Result<Matrix> {
        let queries = engine.need(&ModeQueries::new(mode, repository))?.read(None)?;
        source.matrix(engine, texts_of_queries(&queries).collect(), true)
    })?;
    Ok(())
}

fn texts_of_queries(queries: &Queries) -> impl Iterator<Item = Text> + '_ {
    queries
        .queries
        .iter()
        .map(|query| Text { id: query_name(queries.mode, query), text: query.text.clone() })
}

/// Returns the identity of an artifact made from a repository's fragments.
fn of_fragments(engine: &mut Engine<'_>, kind: &str, repository: &str) -> Result<Identity> {
    let experiment = engine.experiment;
    let identity = experiment.vocabulary(experiment.cut(Identity::new(kind)));
    let fragments = engine.header(&Fragments::new(repository))?;
    Ok(identity.parameter("repository", repository).input("fragments", fragments.checksum))
}

/// Sets of the tokens of a repository's fragments.
struct FragmentSets<'a>(&'a str);

impl Artifact for FragmentSets<'_> {
    type Content = TokenSets;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().repo_vectors(self.0)
    }

    fn made_by(&self, _: &Experiment) -> StageRun {
        StageRun::Any("vectorize")
    }

    fn identity(&self, engine: &mut Engine<'_>) -> Result<Identity> {
        of_fragments(engine, TokenSets::KIND, self.0)
    }
}

/// Counts of the terms of a repository's fragments.
struct FragmentTerms<'a>(&'a str);

impl Artifact for FragmentTerms<'_> {
    type Content = Words;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().repo_vectors(self.0)
    }

    fn made_by(&self, _: &Experiment) -> StageRun {
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

    fn made_by(&self, _: &Experiment) -> StageRun {
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
    Sets(Unread<TokenSets>),
    Terms(Unread<Words>),
}

impl UnreadVectors {
    pub(super) fn open(engine: &mut Engine<'_>, repository: &str) -> Result<Self> {
        Ok(match engine.experiment.retrieval.search.by_p50k_sets() {
            true => Self::Sets(engine.need(&FragmentSets(repository))?),
            false => Self::Terms(engine.need(&FragmentTerms(repository))?),
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
