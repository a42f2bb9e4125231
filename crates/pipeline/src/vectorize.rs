//! `vectorize`: fragments and queries → vectors.

use repoformer_core::retrieve::dense::{Matrix, Text};
use repoformer_core::retrieve::rank::Words;
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{Mode, Queries, Vectors};
use repoformer_store::artifact::{Header, Identity, Payload};
use repoformer_store::error::Result;
use repoformer_text::message::StageRun;
use repoformer_text::tokenize::P50k;

use super::embed::{Source, query_name};
use super::experiment::Experiment;
use super::fragments::OpenFragments;
use super::stage::{StageReport, Unread, check_input, for_each_repository};
use super::window::open_queries;

/// Vectors of each repository's fragments: sets or counts of terms, and dense ones where a ranker needs them.
///
/// # Errors
/// Fragments are missing, an artifact cannot be written, or dense vectors cannot be had.
pub fn vectorize_repositories(experiment: &Experiment) -> Result<StageReport> {
    let search = &experiment.retrieval.search;
    let mut report = for_each_repository(experiment, "vectorize", |repository, report| {
        let mut fragments = OpenFragments::open(experiment, repository)?;
        let of = |kind| {
            let identity = experiment.vocabulary(experiment.cut(Identity::new(kind)));
            let identity = identity.parameter("repository", repository);
            identity.input("fragments", &*fragments.header.checksum)
        };
        let path = experiment.layout.repo_vectors(repository);
        if search.by_p50k_sets() {
            let identity = of(TokenSets::KIND);
            report.ensure(path, &identity, |_| {
                Ok(TokenSets::of_fragments(fragments.read_all()?, &P50k))
            })?;
        } else {
            let identity = of(Words::KIND);
            report.ensure(path, &identity, |_| {
                let fragments = fragments.read_all()?;
                Ok(Words::of_terms(&fragments.texts(), &search.vocabulary))
            })?;
        }
        Ok(())
    })?;
    if let Some(mut source) = Source::new(experiment, &[])? {
        for repository in &experiment.repositories {
            dense_fragments(experiment, &mut source, repository, &mut report)?;
        }
    }
    Ok(report)
}

/// Vectors of a repository's fragments as this stage left them.
pub(super) enum UnreadVectors {
    Sets(Unread<TokenSets>),
    Terms(Unread<Words>),
}

impl UnreadVectors {
    pub(super) fn open(
        experiment: &Experiment,
        repository: &str,
        fragments: &Header,
    ) -> Result<Self> {
        let path = experiment.layout.repo_vectors(repository);
        let vectors = if experiment.retrieval.search.by_p50k_sets() {
            Self::Sets(Unread::open(experiment, &path, &StageRun::Any("vectorize"))?)
        } else {
            Self::Terms(Unread::open(experiment, &path, &StageRun::Any("vectorize"))?)
        };
        check_input(&path, vectors.header(), "fragments", fragments, &StageRun::Any("vectorize"))?;
        Ok(vectors)
    }

    pub(super) fn header(&self) -> &Header {
        match self {
            Self::Sets(unread) => &unread.header,
            Self::Terms(unread) => &unread.header,
        }
    }

    /// Reads them, one for each of `count` fragments.
    pub(super) fn read(&mut self, count: usize) -> Result<Vectors> {
        Ok(match self {
            Self::Sets(unread) => Vectors::Sets(unread.read(Some(count))?),
            Self::Terms(unread) => Vectors::Terms(unread.read(Some(count))?),
        })
    }
}

/// Vectors of the queries of each mode that retrieves: sets of `p50k_base` tokens and dense ones. Other terms are looked up
/// when they are searched with.
///
/// # Errors
/// Queries are missing, an artifact cannot be written, or dense vectors cannot be had.
pub fn vectorize_queries(experiment: &Experiment, modes: &[Mode]) -> Result<StageReport> {
    let modes: Vec<Mode> = modes.iter().copied().filter(|m| m.retrieves()).collect();
    if experiment.retrieval.search.by_p50k_sets() {
        return for_each_repository(experiment, "vectorize queries of", |repository, report| {
            let fragments = OpenFragments::open(experiment, repository)?;
            for &mode in &modes {
                let mut queries = open_queries(experiment, mode, repository, &fragments.header)?;
                let identity =
                    experiment.vocabulary(experiment.cut(Identity::new(TokenSets::KIND)));
                let identity = identity
                    .parameter("repository", repository)
                    .parameter("mode", mode)
                    .input("queries", &*queries.header.checksum);
                let path = experiment.layout.query_vectors(mode, repository);
                report.ensure(path, &identity, |_| {
                    Ok(TokenSets::of_queries(&queries.read(None)?, &P50k))
                })?;
            }
            Ok(())
        });
    }
    let mut report = StageReport::of(experiment);
    if let Some(mut source) = Source::new(experiment, &modes)? {
        for &mode in &modes {
            for repository in &experiment.repositories {
                dense_queries(experiment, &mut source, mode, repository, &mut report)?;
            }
        }
    }
    Ok(report)
}

fn dense_fragments(
    experiment: &Experiment,
    source: &mut Source,
    repository: &str,
    report: &mut StageReport,
) -> Result<()> {
    let mut fragments = OpenFragments::open(experiment, repository)?;
    let identity = experiment
        .cut(Identity::new(Matrix::KIND))
        .parameter("repository", repository)
        .input("fragments", &*fragments.header.checksum);
    let identity = source.identity(identity)?;
    let layout = experiment.layout.with_dense_vectors();
    report.ensure(layout.repo_vectors(repository), &identity, |report| {
        let fragments = fragments.read_all()?;
        let named = (0..).zip(fragments.texts());
        let texts = named
            .map(|(fragment, text)| Text { id: fragments.name(fragment), text: text.to_owned() });
        source.matrix(experiment, texts.collect(), false, report)
    })?;
    Ok(())
}

fn dense_queries(
    experiment: &Experiment,
    source: &mut Source,
    mode: Mode,
    repository: &str,
    report: &mut StageReport,
) -> Result<()> {
    let fragments = OpenFragments::open(experiment, repository)?;
    let mut queries = open_queries(experiment, mode, repository, &fragments.header)?;
    let identity = experiment
        .cut(Identity::new(Matrix::KIND))
        .parameter("repository", repository)
        .parameter("mode", mode)
        .input("queries", &*queries.header.checksum);
    let identity = source.identity(identity)?;
    let layout = experiment.layout.with_dense_vectors();
    report.ensure(layout.query_vectors(mode, repository), &identity, |report| {
        let queries = queries.read(None)?;
        source.matrix(experiment, texts_of_queries(&queries).collect(), true, report)
    })?;
    Ok(())
}

fn texts_of_queries(queries: &Queries) -> impl Iterator<Item = Text> + '_ {
    queries
        .queries
        .iter()
        .map(|query| Text { id: query_name(queries.mode, query), text: query.text.clone() })
}
