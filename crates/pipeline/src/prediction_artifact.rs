//! Artifact of `complete`: the predictions of a mode.

use std::path::PathBuf;

use repoformer_core::repository::Shard;
use repoformer_core::retrieve::Mode;
use repoformer_store::artifact::{Header, Identity};
use repoformer_store::error::Result;
use repoformer_text::message::StageRun;

use super::completion::{Completion, EmitLine, Predictions, Server};
use super::embedded::EmbeddedCompleter;
use super::engine::{Artifact, Cost, Engine, Flaw, Lines, Times};
use super::experiment::Experiment;
use super::plan::Requests;
use super::prompt_artifact::{SHARD, for_each_prompts};
use super::remote::{self, PromptText};
/// The predictions of a mode.
pub(super) struct ModePredictions<'a> {
    pub(super) mode: Mode,
    pub(super) completion: &'a Completion,
    /// Header of the prompts.
    pub(super) prompts: &'a Header,
}

impl ModePredictions<'_> {
    /// Completes the prompts.
    pub(super) fn make(
        &self,
        experiment: &Experiment,
        emit: &mut EmitLine<'_>,
    ) -> Result<Predictions> {
        let Self { mode, completion, prompts } = *self;
        if let Some(server) = &completion.server {
            let prompts = PromptText::of_header(experiment, mode, prompts.clone());
            return server.complete(&prompts, completion, emit);
        }
        let (path, style) = (experiment.paths().prompts(mode), experiment.prompts.layout.style());
        let mut local = EmbeddedCompleter::new(&path, completion, style, emit);
        local.work.more(prompts.records as usize);
        for_each_prompts(&path, mode, prompts, &mut |piece| local.complete(piece))?;
        Ok(local.predictions)
    }
}

impl Artifact for ModePredictions<'_> {
    type Content = Lines;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().predictions(self.mode, &self.completion.model)
    }

    fn making_stage(&self, _: &Experiment) -> StageRun {
        StageRun::InMode("complete", self.mode.name())
    }

    fn identity(&self, engine: &mut Engine<'_>) -> Result<Identity> {
        let Self { mode, completion, prompts } = *self;
        let shard = engine.experiment.layout.shard;
        Ok(predictions_identity(engine.experiment, mode, completion, prompts, shard))
    }

    /// Returns damaged times as a flaw, or that predictions are missing which a server has answered or can be asked for.
    fn flaw(&self, experiment: &Experiment, header: &Header) -> Result<Option<Flaw>> {
        let Self { mode, completion, prompts } = *self;
        let times = experiment.paths().latency(mode, &completion.model);
        if let Some(flaw) = remote::find_damaged_latencies(&times) {
            return Ok(Some(flaw));
        }
        match &completion.server {
            Some(server) => server.incomplete(experiment, mode, (prompts, header), completion),
            None => Ok(None),
        }
    }

    fn cost(&self, experiment: &Experiment) -> Result<Cost> {
        let Self { mode, completion, prompts } = *self;
        let requests = match &completion.server {
            Some(server) => match server.requests(experiment, mode, prompts, completion)? {
                Some(number) => Requests::Known(number),
                None => Requests::Open,
            },
            None => Requests::None,
        };
        // Answers of a batch have no times, and neither may kept answers.
        let asks = |server: &Server| {
            server.asked.is_some() && requests.as_known().is_some_and(|requests| requests > 0)
        };
        let are_certain = completion.server.as_ref().is_none_or(asks);
        let path = experiment.paths().latency(mode, &completion.model);
        Ok(Cost { requests, times: Some(Times { path, kind: TIMES, are_certain }) })
    }
}

/// Returns the identity of a mode's predictions for these prompts: of all tasks, or of a shard's.
pub(super) fn predictions_identity(
    experiment: &Experiment,
    mode: Mode,
    completion: &Completion,
    prompts: &Header,
    shard: Option<Shard>,
) -> Identity {
    let identity = completion
        .identity()
        .parameter("benchmark", &experiment.layout.benchmark)
        .parameter("mode", mode)
        .input("prompts", &*prompts.checksum);
    match shard {
        Some(shard) => identity.parameter(SHARD, shard),
        None => identity,
    }
}

/// Kind of the files of times, in words.
const TIMES: &str = "times of tasks";
