//! Completes prompts with the embedded model.

use std::borrow::Cow;
use std::path::Path;
use std::time::Instant;

use repoformer_core::prompt::style::Style;
use repoformer_core::repository::parallel;
use repoformer_models::in_context::{self, CompletionEnd, CompletionLimits, Generation};
use repoformer_store::error::{Result, keep};
use repoformer_store::jsonl::{self, Fields, Object};
use repoformer_store::progress::Work;
use serde_json::{Value, json};

use super::completion::{
    Completion, EmitLine, Predictions, parse_prompt, record_line, target_lines,
};
use super::remote::Latency;

/// Completes the prompts of a file with the embedded model, piece by piece.
pub(super) struct EmbeddedCompleter<'a> {
    path: &'a Path,
    completion: &'a Completion,
    style: Option<&'a Style>,
    emit: &'a mut EmitLine<'a>,
    pub(super) work: Work,
    /// Number of lines in the pieces before.
    lines: usize,
    pub(super) predictions: Predictions,
}

impl<'a> EmbeddedCompleter<'a> {
    pub(super) fn new(
        path: &'a Path,
        completion: &'a Completion,
        style: Option<&'a Style>,
        emit: &'a mut EmitLine<'a>,
    ) -> Self {
        let label = format!("complete {}", path.file_name().unwrap_or_default().display());
        let work = Work::begin(label, "prompts");
        Self { path, completion, style, emit, work, lines: 0, predictions: Predictions::default() }
    }

    /// Completes the prompts in a piece of whole lines.
    pub(super) fn complete(&mut self, piece: &[u8]) -> Result<()> {
        let made = parallel::map(jsonl::records(piece), |(at, bytes)| {
            let line = self.lines + at.line;
            let begin = Instant::now();
            let object = parse_prompt(self.path, line, bytes)?;
            let mut latency = Latency::of_record(self.path, line, &object)?;
            let line = complete_record(self.path, line, object, self.completion, self.style)?;
            latency.generation_ms = Some(1e3 * begin.elapsed().as_secs_f64());
            latency.at_once = Some(rayon::current_num_threads());
            self.work.advance(1);
            Ok((line, latency))
        });
        self.lines += memchr::memchr_iter(b'\n', piece).count();
        for made in made {
            match made {
                Ok((line, latency)) => {
                    (self.emit)(&line)?;
                    self.predictions.records += 1;
                    self.predictions.latencies.push(latency);
                }
                Err(error) => keep(&mut self.predictions.problems, self.path, error),
            }
        }
        Ok(())
    }
}

fn complete_record(
    path: &Path,
    line: usize,
    object: Object,
    completion: &Completion,
    style: Option<&Style>,
) -> Result<Vec<u8>> {
    let fields = Fields::new(path, line, "", &object);
    let limits = CompletionLimits {
        max_lines: match completion.max_lines {
            Some(lines) => lines,
            None => target_lines(&fields, &object)?,
        },
        max_tokens: completion.max_tokens,
    };
    let own = own_style(&object, style).map_err(|reason| fields.error(reason))?;
    let prompt = left_to_right(fields.string("prompt")?, own);
    let generation = in_context::complete(&prompt, &limits);
    Ok(prediction_line(object, &generation))
}

/// Returns a prompt for a model without special tokens. From a prompt for infilling, it takes the right context, the cross-file
/// context and the left context in this order, so that the text to complete comes last.
pub(super) fn left_to_right<'p>(prompt: &'p str, style: Option<&Style>) -> Cow<'p, str> {
    match style.and_then(|style| style.split(prompt)) {
        Some(slots) => Cow::Owned([slots.right, "\n", slots.cross_file, slots.left].concat()),
        None => Cow::Borrowed(prompt),
    }
}

/// Returns the style that a prompt's record names: `known`, or a bundled one. `None` if the record names no style.
pub(super) fn own_style<'s>(
    record: &Object,
    known: Option<&'s Style>,
) -> Result<Option<&'s Style>, String> {
    let metadata = record.get("metadata").and_then(Value::as_object);
    let said = |field: &str| metadata.and_then(|m| m.get(field)?.as_str());
    let Some(name) = said("prompt_style") else {
        return Ok(None);
    };
    let digest = said("prompt_style_digest");
    let is_it = |style: &&Style| match digest {
        Some(digest) => style.file_digest() == digest,
        // A prompt without a digest was written by hand.
        None => style.name() == name,
    };
    let bundled =
        Style::names().filter_map(|name| -> Option<&'s Style> { Style::find_bundled(name) });
    match known.into_iter().chain(bundled).find(is_it) {
        Some(style) => Ok(Some(style)),
        None if digest.is_some() && Style::find_bundled(name).is_some() => Err(format!(
            "the prompt's style '{name}' differs from the bundled one, so its contexts cannot be found; name the file of its style"
        )),
        None => Err(format!(
            "unknown prompt style '{name}', so the prompt's contexts cannot be found; name the file of its style"
        )),
    }
}

/// Returns a prediction in RepoCoder's format.
fn prediction_line(object: Object, generation: &Generation) -> Vec<u8> {
    let tokens: Vec<&str> = generation.tokens.iter().map(|token| token.text.as_str()).collect();
    let logprobs: Vec<f64> =
        generation.tokens.iter().map(|token| libm::log(token.probability)).collect();
    let finish = if generation.finish == CompletionEnd::Tokens { "length" } else { "stop" };
    let choices = json!([{
        "text": generation.text,
        "finish_reason": finish,
        "logprobs": { "tokens": tokens, "token_logprobs": logprobs },
    }]);
    record_line(object, choices)
}
