//! `vectorize`: computes vectors of fragments and queries.

use repoformer_core::retrieve::dense::{Matrix, Text};
use repoformer_core::retrieve::rank::Words;
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{Mode, Queries};
use repoformer_store::error::Result;
use repoformer_text::tokenize::P50k;

use super::embed::{DenseVectors, VectorSource, query_name};
use super::engine::Engine;
use super::experiment::Experiment;
use super::fragments::OpenFragments;
use super::queries::ModeQueries;
use super::stage::{StageReport, for_each_repository};
use super::vectors::{FragmentSets, FragmentTerms, QuerySets};

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
    if let Some(mut source) = VectorSource::new(experiment, &[])? {
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
    if let Some(mut source) = VectorSource::new(experiment, &modes)? {
        for &mode in &modes {
            for repository in &experiment.repositories {
                dense_queries(&mut engine, &mut source, mode, repository)?;
            }
        }
    }
    Ok(engine.report)
}

fn dense_fragments(
    engine: &mut Engine<'_>,
    source: &mut VectorSource,
    repository: &str,
) -> Result<()> {
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
    source: &mut VectorSource,
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
