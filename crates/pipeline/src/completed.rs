//! Existing predictions: whether they belong to a mode and this model, and were made with these settings.

use std::path::{Path, PathBuf};

use repoformer_core::retrieve::Mode;
use repoformer_evaluate::origin::Origin;
use repoformer_models::in_context;
use repoformer_store::artifact::{self, Identity, header_path};
use repoformer_store::error::{Error, Result};
use repoformer_text::message;
use repoformer_text::message::{StageRun, UserChoice};

use super::completion::Completion;
use super::engine::{check, check_settings};
use super::experiment::Experiment;
use super::prompt_artifact::require_prompts;
use super::stage::{PREDICTIONS_FILE, made_again, require_jsonl};

/// Checks that predictions were completed with these settings; predictions that the user brought do not name their settings.
///
/// # Errors
/// The settings differ; the error names the first difference.
pub fn check_completed_alike(
    experiment: &Experiment,
    path: &Path,
    completion: &Completion,
    mode: Mode,
) -> Result<()> {
    if !experiment.is_planned(path) && !header_path(path).exists() {
        return Ok(());
    }
    let step = StageRun::InMode("complete", mode.name());
    let header = require_jsonl(experiment, path, "predictions", &step)?;
    check_settings(path, &header, &completion.identity(), &step)
}

/// Checks that the user's predictions are fit for queries, as far as their records tell: their prompts must show fragments of
/// the same cut, and no query may have contained the target.
///
/// # Errors
/// The predictions are not fit for queries, or the file cannot be read.
pub fn check_searchable(experiment: &Experiment, path: &Path) -> Result<()> {
    let origin = Origin::read(path)?;
    origin.check_cut(experiment.layout.cut)?;
    origin.check_no_target()
}

/// Checks that the cached predictions with which the prompts of rg-rg were searched are unchanged. If these prompts are to be
/// completed, the predictions must also exist, and be from this model with these settings. Predictions that the user named may be
/// from any model.
pub(super) fn check_searched_with(
    experiment: &Experiment,
    completes: Option<&Completion>,
) -> Result<()> {
    let (paths, step) = (experiment.paths(), StageRun::Any("rg-rg"));
    for repository in &experiment.repositories {
        let queries = paths.query_windows(Mode::Prediction, repository);
        let header = match experiment.planned_header(&queries) {
            Some(header) => header,
            None if !queries.exists() => continue, // the prompts were made elsewhere
            None => artifact::read_header(&queries).map_err(|error| made_again(error, &step))?,
        };
        let Some(file) = header.identity.parameters.get(PREDICTIONS_FILE) else {
            continue;
        };
        let path = experiment.layout.cache.join(file);
        if completes.is_none() && !experiment.has(&path) {
            continue; // nothing shows that the predictions were others
        }
        let first =
            require_jsonl(experiment, &path, "predictions that rg-rg searched with", &step)?;
        if let (Some(completion), Some(model)) = (completes, first.identity.parameters.get("model"))
            && *model != completion.model
        {
            return Err(Error::Artifact {
                path: paths.prompts(Mode::Prediction),
                reason: format!(
                    "was searched with predictions of {model}, but the model is {}",
                    completion.model
                ),
                hint: message![
                    "make it with ",
                    &step,
                    " and the predictions of this model, or name their file"
                ],
            });
        }
        if let Some(completion) = completes {
            check_completed_alike(experiment, &path, completion, Mode::LeftContext)?;
        }
        check(
            &queries,
            &header,
            &Identity::new("").input(PREDICTIONS_FILE, first.checksum),
            &step,
        )?;
    }
    Ok(())
}

/// Returns whether the cache has any prediction of a mode, or would have one after a dry run.
///
/// # Errors
/// The predictions are missing or damaged.
pub fn has_predictions(
    experiment: &Experiment,
    mode: Mode,
    completion: &Completion,
) -> Result<bool> {
    let path = experiment.paths().predictions(mode, &completion.model);
    let step = StageRun::InMode("complete", mode.name());
    let header = require_jsonl(experiment, &path, "predictions", &step)?;
    Ok(header.records > 0 || experiment.is_planned(&path))
}

/// Returns the path of the model's predictions for a mode, after checking that they were made from the current prompts and
/// settings; predictions that the user put there without a header are accepted as they are. By default, `rg-rg` searches with the
/// predictions for rg1.
///
/// # Errors
/// The predictions are missing, damaged, or were made with other prompts or settings.
pub fn cached_predictions(
    experiment: &Experiment,
    mode: Mode,
    completion: &Completion,
) -> Result<PathBuf> {
    let path = experiment.paths().predictions(mode, &completion.model);
    let step = StageRun::InMode("complete", mode.name());
    if !experiment.has(&path) {
        return Err(Error::Artifact {
            path,
            reason: "the predictions are missing".into(),
            hint: message!["make them with ", &step, ", or name the ", UserChoice::PredictionsFile],
        });
    }
    if !experiment.is_planned(&path) && !header_path(&path).exists() {
        return Ok(path);
    }
    let header = require_jsonl(experiment, &path, "predictions", &step)?;
    // Models share a file if their names differ only in what paths leave out.
    let mut wanted = Identity::new("predictions")
        .parameter("max-tokens", completion.max_tokens)
        .parameter("model", &completion.model);
    if completion.is_embedded() {
        wanted = wanted.parameter("model-revision", in_context::REVISION);
    }
    if experiment.has(&experiment.paths().prompts(mode)) {
        wanted = wanted.input("prompts", require_prompts(experiment, mode)?.checksum);
    }
    check(&path, &header, &wanted, &step)?;
    if mode == Mode::Prediction {
        check_searched_with(experiment, None)?;
    }
    Ok(path)
}

/// Returns the content of a mode's artifact, to be written outside of the cache.
///
/// # Errors
/// The artifact cannot be read.
pub fn artifact_text(path: &Path) -> Result<Vec<u8>> {
    artifact::read_jsonl(path).map(|(_, text)| text)
}
