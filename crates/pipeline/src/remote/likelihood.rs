//! Likelihoods of targets by a model on a server.

use std::path::Path;

use repoformer_core::completion::Answer;
use repoformer_models::server::{Journal, JournalEntry, TextProber};
use repoformer_store::error::Result;

use super::super::completion::{Completion, EmitLine, Predictions, Server};
use super::super::likelihood::{Likelihood, find_target};
use super::Question;
use super::latency::Latency;
use super::record::{OpenRecord, PromptText};

/// Writes the probability of the target after every prompt.
///
/// # Errors
/// The journal cannot be written, or the server returns no such probability.
pub(crate) fn likelihoods(
    server: &Server,
    prompts: &PromptText,
    completion: &Completion,
    emit: &mut EmitLine<'_>,
) -> Result<Predictions> {
    let asked = server.asked.as_ref();
    let prober = asked.map(|asked| TextProber::new(&asked.endpoint, &completion.model));
    server.each_answered(
        prompts,
        completion,
        &LikelihoodRequests { model: &completion.model, prober },
        emit,
    )
}

/// Question about a target's probability.
struct LikelihoodRequests<'a> {
    model: &'a str,
    prober: Option<TextProber<'a>>,
}

impl LikelihoodRequests<'_> {
    fn key_of(&self, record: &OpenRecord) -> String {
        TextProber::key(
            self.model,
            record.prompt(),
            find_target(&record.object).unwrap_or_default(),
        )
    }
}

impl Question for LikelihoodRequests<'_> {
    const VERB: &'static str = "likelihoods";

    fn key(&self, record: &OpenRecord, _: &Journal) -> String {
        self.key_of(record)
    }

    fn is_key(&self, key: &str, record: &OpenRecord) -> bool {
        self.key_of(record) == key
    }

    fn ask(&self, record: OpenRecord) -> Result<Answer> {
        match (&self.prober, find_target(&record.object)) {
            (Some(prober), Ok(target)) => prober.ask(record.prompt(), target),
            _ => Ok(Answer::default()),
        }
    }

    fn answer_record(
        &self,
        record: OpenRecord,
        entry: &JournalEntry,
        path: &Path,
    ) -> Result<(Latency, Vec<u8>)> {
        let target =
            find_target(&record.object).map_err(|reason| record.failure_error(path, reason))?;
        let sample = entry.samples.first().filter(|sample| !sample.tokens.is_empty());
        let Some(sample) = sample else {
            return Err(record.failure_error(path, "the answer holds no log-probabilities"));
        };
        let likelihood = Likelihood {
            log_probability: sample.tokens.iter().map(|token| token.logprob).sum(),
            text: target,
            tokens: Some(sample.tokens.len()),
        };
        Ok((record.latency(entry), likelihood.line(&record.object, self.model)))
    }
}
