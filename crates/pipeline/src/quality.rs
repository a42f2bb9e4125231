//! Retrieval quality: how close the retrieved fragments come to the targets.

use foldhash::HashMap;
use repoformer_core::repository::fragment::{Cut, RepoFragments};
use repoformer_core::repository::parallel;
use repoformer_core::retrieve::{FileLines, Mode, QueryForm};
use repoformer_core::task::TargetDefinition;
use repoformer_evaluate::quality::{RetrievalQuality, RetrievalTarget, Share, TaskQuality};
use repoformer_store::error::Result;
use repoformer_text::language::{Language, identifiers};

use super::contexts::{RightContexts, open_needed_contexts, right_context};
use super::engine::Engine;
use super::experiment::Experiment;
use super::fragments::OpenFragments;
use super::retrieved::StoredResults;
use super::stage::by_repository;

/// Compares the fragments that a mode's prompts would show with the targets and, if the ground truth was searched for too, the
/// results with the ground truth's results. If a task has several samples, the first counts.
///
/// # Errors
/// Rankings are missing or stale.
pub fn retrieval_quality(experiment: &Experiment, mode: Mode) -> Result<RetrievalQuality> {
    let parts = by_repository(experiment, |repository| measure(experiment, mode, repository))?;
    let mut tasks: Vec<TaskQuality> = parts.into_iter().flatten().collect();
    tasks.sort_by_key(|task| task.row);
    Ok(RetrievalQuality::new(tasks))
}

fn measure(experiment: &Experiment, mode: Mode, repository: &str) -> Result<Vec<TaskQuality>> {
    let mut engine = Engine::new(experiment);
    let mut fragments = OpenFragments::open(&mut engine, repository)?;
    let mut retrieved = StoredResults::open(&mut engine, mode, repository)?;
    let retrieved = retrieved.read_with_texts(experiment, &mut fragments)?;
    let fragments = fragments.outline()?;
    let by_truth =
        matches!(experiment.form(Mode::GroundTruth), QueryForm::GroundTruth | QueryForm::Window);
    let there = experiment.paths().retrieval(Mode::GroundTruth, repository);
    let truth = if by_truth && there.exists() {
        let mut truth = StoredResults::open(&mut engine, Mode::GroundTruth, repository)?;
        Some(truth.read(fragments)?)
    } else {
        // Another query that contains the target takes the place of the ground truth, and would be compared with itself.
        None
    };
    let truth: HashMap<u32, Vec<u32>> = truth
        .iter()
        .flat_map(|truth| &truth.retrieval.found)
        .map(|found| (found.row, found.hits.iter().map(|hit| hit.fragment).collect()))
        .collect();
    let contexts = open_needed_contexts(&mut engine, repository)?;
    let contexts = contexts.map(|mut contexts| contexts.read(None)).transpose()?;
    let contexts = contexts.as_ref().map(RightContexts::map).unwrap_or_default();
    let texts = retrieved.texts(experiment, fragments);
    let tasks = experiment.tasks()?;
    let all = retrieved.retrieval.found.iter().zip(&retrieved.queries.queries);
    let first = all.filter(|(found, _)| found.sample == 0);
    let of_task = parallel::map(first, |(found, query)| {
        let task = tasks.of_row(found.row as usize)?;
        let right = right_context(task, &contexts);
        let language = Language::of_path(&task.path).unwrap_or(experiment.layout.language);
        let in_file = [task.prompt.as_str(), right.unwrap_or_default()];
        let wanted = RetrievalTarget::new(&task.ground_truth, &in_file, |text: &str| {
            identifiers(text, language)
        });
        let shown = texts.collect_with_places(query, found);
        let (pieces, shown): (Vec<FileLines>, Vec<&str>) =
            shown.iter().map(|(piece, fragment)| (*piece, fragment.text.as_str())).unzip();
        let mut measures = wanted.measure(&shown);
        let wanted = task.definitions().map_err(|reason| tasks.error(task, reason));
        let wanted = match wanted {
            Ok(wanted) => wanted.unwrap_or_default(),
            Err(error) => return Some(Err(error)),
        };
        measures.definitions = definitions_in(&pieces, fragments, &wanted);
        if let Some(truth) = truth.get(&found.row) {
            let hits: Vec<u32> = found.hits.iter().map(|hit| hit.fragment).collect();
            measures = measures.beside(&hits, truth);
        }
        Some(Ok(TaskQuality {
            row: task.row,
            task_id: task.id.clone(),
            repository: Some(repository.to_owned()),
            measures,
        }))
    });
    of_task.into_iter().flatten().collect()
}

/// Counts the definitions of names that a task's target calls, and how many of them begin in a piece.
fn definitions_in(
    pieces: &[FileLines],
    fragments: &RepoFragments,
    wanted: &[TargetDefinition],
) -> Share {
    let is_shown = |wanted: &&TargetDefinition| {
        let row = match fragments.cut {
            Cut::Windows(_) => wanted.line,
            Cut::Chunks(_) => wanted.code_line,
        };
        let file = fragments.file_index(&wanted.path);
        let has = |piece: &FileLines| (piece.start as usize..piece.end as usize).contains(&row);
        pieces.iter().any(|piece| Some(piece.file as usize) == file && has(piece))
    };
    Share { found: wanted.iter().filter(is_shown).count(), of: wanted.len() }
}
