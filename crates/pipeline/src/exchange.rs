//! Retrieval results in the formats of information retrieval: fragments and queries as a BEIR collection, rankings as a
//! TREC run.

use std::path::Path;

use foldhash::HashMap;
use repoformer_core::retrieve::Mode;
use repoformer_formats::exchange::{beir, query_ids, trec};
use repoformer_store::artifact::write_file;
use repoformer_store::error::Result;
use repoformer_store::jsonl::Object;
use serde_json::json;

use super::engine::Engine;
use super::experiment::Experiment;
use super::fragments::OpenFragments;
use super::retrieved::{RepositoryResults, StoredResults};
use super::stage::by_repository;

/// Returns a mode's rankings as the lines of a TREC run, tagged with the ranker's name; if a task has several samples, the
/// first counts.
///
/// # Errors
/// Rankings are missing or stale.
pub fn trec_run(experiment: &Experiment, mode: Mode, scores: trec::RunScores) -> Result<String> {
    let (mut parts, ids) = (open(experiment, mode)?, ids(experiment)?);
    let names = Names::from_parts(&mut parts)?;
    let mut rankings = Vec::new();
    for (part, names) in parts.iter().zip(&names.0) {
        for found in part.retrieved.retrieval.found.iter().filter(|found| found.sample == 0) {
            let hit = |hit: &repoformer_core::retrieve::Hit| trec::RankedDocument {
                document: &names[hit.fragment as usize],
                score: hit.score.value(),
            };
            rankings.push((found.row, found.hits.iter().map(hit).collect()));
        }
    }
    rankings.sort_by_key(|(row, _)| *row);
    let rankings =
        rankings.into_iter().map(|(row, hits)| trec::Ranking { query: &ids[&row], hits });
    let tag = experiment.retrieval.search.ranker.to_string();
    trec::run(rankings, scores, &tag)
}

/// Writes the fragments of all repositories, a mode's queries, and as judgements the fragments that the ground truth finds
/// first: `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv` in a folder.
///
/// # Errors
/// Rankings of the mode or of the ground truth are missing or stale, or a file cannot be written.
pub fn write_beir(experiment: &Experiment, mode: Mode, folder: &Path) -> Result<()> {
    let (mut parts, ids) = (open(experiment, mode)?, ids(experiment)?);
    let names = Names::from_parts(&mut parts)?;
    let mut documents = Vec::new();
    for (ModeResults { fragments, .. }, names) in parts.iter_mut().zip(&names.0) {
        let fragments = fragments.read_all()?;
        for (fragment, name) in names.iter().enumerate() {
            let (path, _) = name.rsplit_once('|').unwrap_or((name, ""));
            let mut metadata = Object::new();
            metadata.insert("repository".into(), json!(fragments.repository));
            documents.push(beir::BeirRecord {
                id: name,
                title: Some(path),
                text: fragments.text(fragment),
                metadata,
            });
        }
    }
    let corpus = beir::records("documents", documents)?;
    let mut texts = Vec::new();
    let queries = parts.iter().flat_map(|part| &part.retrieved.queries.queries);
    texts.extend(queries.filter(|q| q.sample == 0).map(|q| (q.row, q.text.clone(), &q.path)));
    texts.sort_by_key(|(row, _, _)| *row);
    let query = |(row, text, path): &'_ (u32, String, &String)| -> (String, String, Object) {
        let mut metadata = Object::new();
        metadata.insert("path".into(), json!(path));
        (ids[row].clone(), text.clone(), metadata)
    };
    let texts: Vec<(String, String, Object)> = texts.iter().map(query).collect();
    let queries = texts.iter().map(|(id, text, metadata)| beir::BeirRecord {
        id,
        title: None,
        text,
        metadata: metadata.clone(),
    });
    let queries = beir::records("queries", queries)?;
    let truth = open(experiment, Mode::GroundTruth)?;
    let mut judgements = Vec::new();
    for (part, names) in truth.iter().zip(&names.0) {
        for found in &part.retrieved.retrieval.found {
            let hits = found.hits.iter().take(experiment.prompts.most);
            judgements.extend(hits.map(|hit| (found.row, &names[hit.fragment as usize])));
        }
    }
    judgements.sort_by_key(|(row, _)| *row);
    let judgements = judgements.iter().map(|(row, document)| beir::Judgement {
        query: &ids[row],
        document,
        score: 1,
    });
    let judgements = beir::judgements(judgements)?;
    write_file(&folder.join("corpus.jsonl"), corpus.as_bytes())?;
    write_file(&folder.join("queries.jsonl"), queries.as_bytes())?;
    write_file(&folder.join("qrels").join("test.tsv"), judgements.as_bytes())
}

/// One repository's fragments, and its results in one mode.
struct ModeResults {
    fragments: OpenFragments,
    retrieved: RepositoryResults,
}

fn open(experiment: &Experiment, mode: Mode) -> Result<Vec<ModeResults>> {
    by_repository(experiment, |repository| {
        let mut engine = Engine::new(experiment);
        let mut fragments = OpenFragments::open(&mut engine, repository)?;
        let mut retrieved = StoredResults::open(&mut engine, mode, repository)?;
        let retrieved = retrieved.read(fragments.outline()?)?;
        Ok(ModeResults { fragments, retrieved })
    })
}

/// Names of fragments, by repository.
struct Names(Vec<Vec<String>>);

impl Names {
    fn from_parts(parts: &mut [ModeResults]) -> Result<Self> {
        let names = |part: &mut ModeResults| {
            let fragments = part.fragments.outline()?;
            Ok((0..fragments.len()).map(|fragment| fragments.name(fragment)).collect())
        };
        Ok(Self(parts.iter_mut().map(names).collect::<Result<_>>()?))
    }
}

/// Returns the ids of the queries, by the tasks' rows.
fn ids(experiment: &Experiment) -> Result<HashMap<u32, String>> {
    let tasks = experiment.tasks()?.tasks();
    let named: Vec<(usize, &str)> = tasks.iter().map(|t| (t.row, t.id.as_str())).collect();
    let rows = tasks.iter().map(|task| task.row as u32);
    Ok(rows.zip(query_ids(&named)).collect())
}
