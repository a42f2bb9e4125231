//! Queries of `window` and `rg-rg`: the texts with which fragments are searched.

use std::path::PathBuf;

use foldhash::HashMap;
use repoformer_core::repository::fragment::RepoFragments;
use repoformer_core::retrieve::query::{QueryOutcome, hole_lines};
use repoformer_core::retrieve::{Mode, Queries, QueryForm, QuerySettings};
use repoformer_core::task::TaskSet;
use repoformer_evaluate::predictions::JoinedPredictions;
use repoformer_store::artifact::{Identity, Payload, header_path, jsonl_header};
use repoformer_store::error::{Error, Result};
use repoformer_text::lines::IndexedText;
use repoformer_text::message::StageRun;

use super::contexts::{RightContexts, TakenContexts, misfit, right_context};
use super::engine::{Artifact, Engine};
use super::experiment::Experiment;
use super::fragments::{Fragments, OpenFragments};
use super::stage::{PREDICTIONS_FILE, StageReport, check_read, for_each_repository};

/// Makes the queries of each mode that retrieves; rg-rg needs `predictions`.
///
/// # Errors
/// Fragments are missing, an artifact cannot be written, or rg-rg is requested without predictions.
pub fn window_queries(
    experiment: &Experiment,
    modes: &[Mode],
    predictions: Option<&JoinedPredictions>,
) -> Result<StageReport> {
    let modes: Vec<Mode> = modes.iter().copied().filter(|m| m.retrieves()).collect();
    let mut report = for_each_repository(experiment, "queries of", |repository, engine| {
        let mut sources: Option<Sources> = None;
        for &mode in &modes {
            let predictions = match (mode, predictions) {
                (Mode::Prediction, None) => {
                    let reason = "mode rg-rg needs predictions to search with; name their file";
                    return Err(Error::parameter("predictions", reason));
                }
                (Mode::Prediction, Some(joined)) => Some(joined),
                _ => None,
            };
            let queries = ModeQueries { mode, repository, predictions };
            // Making queries is cheap, and its problems must be reported even if the artifact is current.
            engine.make_and_report(&queries, |engine| {
                let sources = match &mut sources {
                    Some(sources) => sources,
                    none => none.insert(Sources::read(engine, repository)?),
                };
                sources.queries(engine, &queries)
            })?;
        }
        Ok(())
    })?;
    if let Some(empty @ 1..) = predictions.map(|joined| joined.empty) {
        report.warn(format!("the predictions include {empty} empty texts"));
    }
    Ok(report)
}

/// Sources of a repository's queries, except the predictions.
struct Sources {
    fragments: OpenFragments,
    /// `None` as long as no query shows right contexts.
    contexts: Option<RightContexts>,
}

impl Sources {
    /// Reads the fragments of the tasks' files, and reports tasks that do not match their files.
    fn read(engine: &mut Engine<'_>, repository: &str) -> Result<Self> {
        let experiment = engine.experiment;
        let tasks = experiment.tasks()?;
        let mut fragments = OpenFragments::open(engine, repository)?;
        let read = fragments.read_files(|outline| {
            let of_it = tasks.of_repository(repository);
            of_it.filter_map(|task| Some(outline.file_index(&task.path)? as u32)).collect()
        })?;
        if experiment.retrieval.form == QueryForm::Window {
            engine.report.misfits.extend(misfits(tasks, read));
        }
        Ok(Self { fragments, contexts: None })
    }

    /// Makes the queries of a mode, and reports tasks that have none.
    fn queries(&mut self, engine: &mut Engine<'_>, of: &ModeQueries<'_>) -> Result<Queries> {
        let experiment = engine.experiment;
        let settings = settings(experiment, of.mode);
        if self.contexts.is_none() && of.shows_right_contexts(experiment) {
            let contexts = engine.need(&TakenContexts::new(of.repository))?.read(None)?;
            self.contexts = Some(contexts);
        }
        let right = self.contexts.as_ref().map(RightContexts::map).unwrap_or_default();
        let right_of = |task| right_context(task, &right);
        let samples = of.predictions.map(|joined| joined.predictions.as_slice());
        let fragments = self.fragments.outline()?;
        let QueryOutcome { queries, skipped } =
            Queries::make(settings, experiment.tasks()?, fragments, right_of, samples);
        engine.report.problems.extend(skipped);
        Ok(queries)
    }
}

/// Queries of a repository in a mode.
pub(super) struct ModeQueries<'a> {
    pub(super) mode: Mode,
    pub(super) repository: &'a str,
    /// Predictions from which queries of rg-rg are made; `None` for the queries that are in the cache.
    pub(super) predictions: Option<&'a JoinedPredictions>,
}

impl<'a> ModeQueries<'a> {
    /// Returns the queries that are in the cache.
    pub(super) fn new(mode: Mode, repository: &'a str) -> Self {
        Self { mode, repository, predictions: None }
    }

    /// True if the queries contain right contexts that are taken from the tasks' files.
    fn shows_right_contexts(&self, experiment: &Experiment) -> bool {
        experiment.takes_right_contexts() && experiment.form(self.mode).uses_right_context()
    }
}

impl Artifact for ModeQueries<'_> {
    type Content = Queries;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().query_windows(self.mode, self.repository)
    }

    fn making_stage(&self, _: &Experiment) -> StageRun {
        match self.mode {
            Mode::Prediction => StageRun::Any("rg-rg"),
            mode => StageRun::InMode("window", mode.name()),
        }
    }

    fn identity(&self, engine: &mut Engine<'_>) -> Result<Identity> {
        let Self { mode, repository, predictions } = *self;
        let experiment = engine.experiment;
        let (tasks, settings) = (experiment.tasks()?, settings(experiment, mode));
        let mut identity = experiment
            .cut(Identity::new(Queries::KIND))
            .parameter("mode", mode)
            .parameter("query", settings.form)
            .parameter("repository", repository)
            .parameter("benchmark", &experiment.layout.benchmark)
            .input("fragments", engine.header(&Fragments::new(repository))?.checksum);
        identity = match settings.form {
            // Windows depend only on the holes, other queries on the tasks' texts as well.
            QueryForm::Window => identity.input("tasks", tasks.hole_digest(repository)),
            _ => identity
                .input("tasks", tasks.digest_of(repository))
                .parameter("query-lines", settings.length),
        };
        if self.shows_right_contexts(experiment) {
            let contexts = engine.header(&TakenContexts::new(repository))?;
            identity = identity.input("right contexts", contexts.checksum);
        }
        let Some(joined) = predictions else { return Ok(identity) };
        identity = of_artifact(experiment, joined, identity)?;
        if let Some(revision) = joined.cut.revision() {
            identity =
                identity.parameter("cut", &joined.cut).parameter("rule of answers", revision);
        }
        let planned = joined.cached.as_deref().and_then(|path| experiment.planned_header(path));
        let digest = planned.map(|header| header.checksum);
        let digest = digest.unwrap_or_else(|| joined.digest(tasks, repository));
        Ok(identity.input("predictions", digest))
    }
}

fn settings(experiment: &Experiment, mode: Mode) -> QuerySettings {
    QuerySettings { mode, form: experiment.form(mode), length: experiment.retrieval.query_lines }
}

/// Adds the cached predictions from which queries are made; predictions that the user brought are no artifact.
fn of_artifact(
    experiment: &Experiment,
    joined: &JoinedPredictions,
    identity: Identity,
) -> Result<Identity> {
    let Some(path) = &joined.cached else {
        return Ok(identity);
    };
    let header = match experiment.planned_header(path) {
        Some(header) => header,
        None if header_path(path).exists() => {
            let header = jsonl_header(path)?;
            check_read(path, &header)?;
            header
        }
        None => return Ok(identity),
    };
    let within = experiment.layout.within_cache(path);
    Ok(identity.parameter(PREDICTIONS_FILE, within).input(PREDICTIONS_FILE, header.checksum))
}

/// Returns an error if tasks do not match their files.
fn misfits(tasks: &TaskSet, windows: &RepoFragments) -> Option<Error> {
    let of_it = tasks.of_repository(&windows.repository);
    let mut files: HashMap<&str, IndexedText<'_>> = HashMap::default();
    let misfits = of_it.filter_map(|task| {
        let lines = hole_lines(task, windows).ok()?;
        let file = files.entry(&task.path).or_insert_with(|| IndexedText::new(lines.text()));
        Some((task, task.hole_in(file).err()?))
    });
    let harm = "fragments retrieved for such tasks may contain their targets";
    misfit(tasks, &windows.repository, misfits.collect(), harm)
}
