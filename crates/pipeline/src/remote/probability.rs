//! Token probabilities: each prompt's record with the probability that a given token comes next.

use std::path::{Path, PathBuf};

use repoformer_core::completion::Answer;
use repoformer_core::retrieve::Mode;
use repoformer_models::server::{Journal, JournalEntry, NextToken, Prober};
use repoformer_store::artifact::{Header, Identity, LineTotals};
use repoformer_store::error::{Error, Result};
use repoformer_store::literal;
use repoformer_text::message;
use repoformer_text::message::StageRun;
use repoformer_text::message::UserChoice;
use serde_json::json;

use super::super::completion::{AskedServer, Completion, EmitLine, Predictions, Server};
use super::super::engine::{Artifact, Cost, Engine, Flaw, Lines, Times};
use super::super::experiment::Experiment;
use super::super::prompt_artifact::require_prompts;
use super::super::stage::StageReport;
use super::Question;
use super::latency::{self, Latency};
use super::record::{OpenRecord, PromptText};

/// Token whose probability is asked for, and its position in prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenQuestion {
    /// Text of the token.
    pub text: String,
    /// Id of the token in the model's vocabulary, if it is known.
    pub id: Option<u64>,
    /// Text after which prompts are cut: after its first occurrence that the token follows, or else its last occurrence, since
    /// retrieved fragments may contain it, too. It is appended to prompts without it.
    pub after: Option<String>,
}

impl TokenQuestion {
    /// Returns a prompt up to the position of the token.
    ///
    /// ```
    /// use repoformer_pipeline::TokenQuestion;
    /// let question = TokenQuestion { text: "<cc>".into(), id: None, after: Some("<eof>".into()) };
    /// assert_eq!(question.prompt("<p>L<s>R<eof><m>"), "<p>L<s>R<eof>");
    /// assert_eq!(question.prompt("L"), "L<eof>");
    /// assert_eq!(question.prompt("<p>L<eof><cc># '<eof>'<m>"), "<p>L<eof>");
    /// ```
    pub fn prompt(&self, prompt: &str) -> String {
        let Some(after) = &self.after else {
            return prompt.to_owned();
        };
        let both = format!("{after}{}", self.text);
        match prompt.find(&both).or_else(|| prompt.rfind(after.as_str())) {
            Some(at) => prompt[..at + after.len()].to_owned(),
            None => format!("{prompt}{after}"),
        }
    }

    pub(super) fn token(&self, server: &Server, model: &str) -> Result<NextToken> {
        match (self.id, &server.asked) {
            (Some(id), _) => Ok(NextToken { text: self.text.clone(), id }),
            (None, Some(AskedServer { endpoint, .. })) => {
                endpoint.greet()?;
                NextToken::find(endpoint, model, &self.text)
            }
            (None, None) => Err(Error::Parameter {
                name: "token-id",
                reason: "must be given, since no server is asked".into(),
            }),
        }
    }
}

/// Writes the probability of a token after every prompt.
///
/// # Errors
/// The journal cannot be written, or the server returns no such probability.
pub fn probabilities(
    prompts: &PromptText,
    completion: &Completion,
    question: &TokenQuestion,
    emit: &mut EmitLine<'_>,
) -> Result<Predictions> {
    completion.check()?;
    let Some(server) = &completion.server else {
        return Err(Error::Parameter {
            name: "probability-of",
            reason: message!["needs a ", UserChoice::CompletionServer],
        });
    };
    let token = question.token(server, &completion.model)?;
    let asked = server.asked.as_ref();
    let prober = asked.map(|asked| Prober::new(&asked.endpoint, &completion.model, &token));
    let model = completion.model.as_str();
    server.each_answered(
        prompts,
        completion,
        &ProbabilityRequests { question, token: &token, model, prober },
        emit,
    )
}

/// Question about a token's probability.
struct ProbabilityRequests<'a> {
    question: &'a TokenQuestion,
    token: &'a NextToken,
    model: &'a str,
    prober: Option<Prober<'a>>,
}

impl ProbabilityRequests<'_> {
    fn key_of(&self, record: &OpenRecord) -> String {
        Prober::key(self.model, self.token, &self.question.prompt(record.prompt()))
    }
}

impl Question for ProbabilityRequests<'_> {
    const VERB: &'static str = "probabilities";

    fn key(&self, record: &OpenRecord, _: &Journal) -> String {
        self.key_of(record)
    }

    fn is_key(&self, key: &str, record: &OpenRecord) -> bool {
        self.key_of(record) == key
    }

    fn ask(&self, record: OpenRecord) -> Result<Answer> {
        match &self.prober {
            Some(prober) => prober.ask(&self.question.prompt(record.prompt())),
            None => Ok(Answer::default()),
        }
    }

    fn answer_record(
        &self,
        record: OpenRecord,
        entry: &JournalEntry,
        path: &Path,
    ) -> Result<(Latency, Vec<u8>)> {
        let tokens = entry.samples.first().map_or(&[][..], |sample| &sample.tokens);
        let [found, others @ ..] = tokens else {
            return Err(record.failure_error(path, "the answer holds no probability"));
        };
        let decision_ms = entry.seconds.map(|seconds| 1e3 * seconds);
        let latency = Latency { decision_ms, ..record.latency(entry) };
        let is_likeliest = others.first().map(|likeliest| self.token.is(likeliest));
        Ok((latency, probability_line(record, self.token, found.logprob, is_likeliest)))
    }
}

/// Computes the probabilities after the cached prompts of a mode as an artifact, and returns its path. If the artifact is current,
/// no server is asked.
///
/// # Errors
/// The same as for [`probabilities`]; or the prompts are missing.
pub fn cached_probabilities(
    experiment: &Experiment,
    mode: Mode,
    completion: &Completion,
    question: &TokenQuestion,
) -> Result<(PathBuf, StageReport)> {
    let prompts = require_prompts(experiment, mode)?;
    let mut engine = Engine::new(experiment);
    let asked = ModeProbabilities { mode, completion, question, prompts: &prompts };
    engine.make_lines(&asked, |engine, sink| {
        let prompts = PromptText::of_header(experiment, mode, prompts.clone());
        let found = probabilities(&prompts, completion, question, &mut |line| sink.write(line))?;
        latency::keep_decisions(experiment, mode, &completion.model, &found.latencies)?;
        engine.report.problems.extend(found.problems);
        engine.report.warnings.extend(found.warnings);
        Ok(LineTotals { records: found.records, ..LineTotals::default() })
    })?;
    Ok((asked.path(experiment), engine.report))
}

/// Probabilities after the prompts of a mode.
struct ModeProbabilities<'a> {
    mode: Mode,
    completion: &'a Completion,
    question: &'a TokenQuestion,
    /// Header of the prompts.
    prompts: &'a Header,
}

impl ModeProbabilities<'_> {
    fn times(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().decision_latency(self.mode, &self.completion.model)
    }
}

impl Artifact for ModeProbabilities<'_> {
    type Content = Lines;

    fn path(&self, experiment: &Experiment) -> PathBuf {
        experiment.paths().probabilities(self.mode, &self.completion.model)
    }

    fn making_stage(&self, _: &Experiment) -> StageRun {
        StageRun::Any("complete")
    }

    fn identity(&self, engine: &mut Engine<'_>) -> Result<Identity> {
        let Self { mode, completion, question, prompts } = *self;
        let identity = Identity::new("probabilities")
            .parameter("benchmark", &engine.experiment.layout.benchmark)
            .parameter("mode", mode)
            .parameter("model", &completion.model)
            .parameter("token", &question.text)
            .parameter("after", question.after.as_deref().unwrap_or_default())
            .input("prompts", &*prompts.checksum);
        Ok(match &completion.server {
            Some(server) => identity.parameter("journal", server.journal_name()),
            None => identity,
        })
    }

    /// Returns damaged times or missing records as a flaw: failed requests are sent again, and the journal has the other answers.
    fn flaw(&self, experiment: &Experiment, header: &Header) -> Result<Option<Flaw>> {
        let (there, wanted) = (header.records, self.prompts.records);
        let lacks = (there < wanted).then_some(Flaw::Incomplete { there, wanted });
        Ok(latency::find_damage(&self.times(experiment)).or(lacks))
    }

    fn cost(&self, experiment: &Experiment) -> Result<Cost> {
        let times =
            Times { path: self.times(experiment), kind: "times of decisions", are_certain: true };
        Ok(Cost { times: Some(times), ..Cost::default() })
    }
}

/// Returns a line `{"prompt", "metadata", "next_token": {"text", "id", "logprob", "probability", "is_likeliest"}, …}`.
fn probability_line(
    record: OpenRecord,
    token: &NextToken,
    logprob: f64,
    is_likeliest: Option<bool>,
) -> Vec<u8> {
    let mut object = record.object;
    object.remove("choices");
    let next = json!({"text": token.text, "id": token.id, "logprob": logprob, "probability": libm::exp(logprob), "is_likeliest": is_likeliest});
    object.insert("next_token".into(), next);
    literal::line(&object.into())
}
