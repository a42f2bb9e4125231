//! Likelihoods: the probability that a model gives each prompt's target.

use std::f64::consts::LN_2;

use repoformer_core::prompt::style::Style;
use repoformer_core::repository::parallel;
use repoformer_evaluate::score::target_digest;
use repoformer_models::in_context;
use repoformer_store::error::{Result, keep};
use repoformer_store::jsonl::{self, Fields, Object};
use repoformer_store::literal;
use repoformer_store::progress::Work;
use serde_json::{Value, json};

use super::completion::{Completion, EmitLine, Predictions, parse_prompt, target};
use super::embedded::{left_to_right, own_style};
use super::remote::{self, Latency, PromptText};

/// Writes the probability of the target after every prompt. The embedded model needs the style of prompts if the style is not
/// bundled.
///
/// # Errors
/// The prompts cannot be read, the journal cannot be written, the server returns no such probability, or `emit` returns an
/// error.
pub fn likelihoods(
    prompts: &PromptText,
    completion: &Completion,
    style: Option<&Style>,
    emit: &mut EmitLine<'_>,
) -> Result<Predictions> {
    completion.check()?;
    if let Some(server) = &completion.server {
        return remote::likelihoods(server, prompts, completion, emit);
    }
    let path = prompts.path();
    let label = format!("likelihood {}", path.file_name().unwrap_or_default().display());
    let work = Work::begin(label, "prompts");
    let (mut found, mut lines) = (Predictions::default(), 0);
    prompts.for_each_piece(&mut |piece| {
        work.more(jsonl::records(piece).count());
        let made = parallel::map(jsonl::records(piece), |(at, bytes)| {
            let object = parse_prompt(path, lines + at.line, bytes)?;
            let fields = Fields::new(path, lines + at.line, "", &object);
            let own = own_style(&object, style).map_err(|reason| fields.error(reason))?;
            let prompt = left_to_right(fields.string("prompt")?, own);
            if !prompt.is_empty() && !prompt.ends_with('\n') {
                return Err(fields.error(
                    "the prompt ends within a line, but the embedded model gives probabilities of whole lines only; use a model on a server",
                ));
            }
            let target = find_target(&object).map_err(|reason| fields.error(reason))?;
            let log_probability = in_context::log_likelihood(&prompt, target);
            let likelihood = Likelihood { log_probability, text: target, tokens: None };
            work.advance(1);
            let latency = Latency::of_record(path, lines + at.line, &object)?;
            Ok((latency, likelihood.line(&object, &completion.model)))
        });
        lines += memchr::memchr_iter(b'\n', piece).count();
        for made in made {
            match made {
                Ok((latency, line)) => {
                    emit(&line)?;
                    found.records += 1;
                    found.latencies.push(latency);
                }
                Err(problem) => keep(&mut found.problems, path, problem),
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// Returns the target in a prompt's record, or the reason why it gets no probability.
pub(super) fn find_target(object: &Object) -> Result<&str, &'static str> {
    let id = object.get("metadata").and_then(|metadata| metadata.get("task_id"));
    if id.is_none_or(Value::is_null) {
        return Err(
            "field 'metadata.task_id' is missing, so the target's task is not known; set it",
        );
    }
    match target(object) {
        None => Err("field 'metadata.ground_truth' is missing, so there is no target; set it"),
        Some("") => Err("the target is empty"),
        Some(target) => Ok(target),
    }
}

/// Probability of a text.
pub(super) struct Likelihood<'a> {
    /// Natural logarithm of the probability.
    pub(super) log_probability: f64,
    /// The text.
    pub(super) text: &'a str,
    /// Number of the text's tokens, if they are the model's own.
    pub(super) tokens: Option<usize>,
}

impl Likelihood<'_> {
    /// Returns the line of a task, which is a line of scores: `likelihood.per_character` is between 0 and 1.
    pub(super) fn line(&self, record: &Object, model: &str) -> Vec<u8> {
        let metadata = record.get("metadata").and_then(Value::as_object);
        let of_task = |name: &str| metadata.and_then(|metadata| metadata.get(name)).cloned();
        let characters = self.text.chars().count();
        let per_character = self.log_probability / characters as f64;
        let mut line = Object::new();
        line.insert("task_id".into(), of_task("task_id").unwrap_or_default());
        if let Some(row) = of_task("row") {
            line.insert("row".into(), row);
        }
        let first =
            of_task("fpath_tuple").and_then(|path| path.get(0)?.as_str().map(str::to_owned));
        let folder = of_task("filename")
            .and_then(|path| path.as_str()?.split_once('/').map(|(folder, _)| folder.to_owned()));
        let named = of_task("repository").and_then(|name| name.as_str().map(str::to_owned));
        if let Some(repository) = first.or(folder).or(named) {
            line.insert("repository".into(), repository.into());
        }
        line.insert("likelihood".into(), json!({"per_character": libm::exp(per_character)}));
        // Adding 0 removes the sign of a zero.
        line.insert("log_probability".into(), (self.log_probability + 0.0).into());
        line.insert("bits_per_character".into(), (-per_character / LN_2 + 0.0).into());
        line.insert("characters".into(), characters.into());
        line.insert("tokens".into(), self.tokens.into());
        line.insert("target_digest".into(), format!("{:016x}", target_digest(self.text)).into());
        let said = ["mode", "prompt_style", "prompt_style_digest"];
        let said = said.into_iter().filter_map(|name| Some((name, of_task(name)?)));
        let said: Object = said.map(|(name, value)| (name.to_owned(), value)).collect();
        line.insert("metadata".into(), said.into());
        line.insert("asked".into(), json!({"model": model}));
        literal::line(&line.into())
    }
}
