//! Answer that a server is still writing.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use repoformer_core::completion::{
    AnswerError, Api, LONGEST_NAME, Sample, TextPlace, choices, error_in, samples, tokens,
};
use repoformer_store::json::{PieceDecoder, StringBytes};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::endpoint::KeyMask;

/// Function that returns whether a text is enough; the number is the length of a prefix that was not.
pub type IsEnough<'e> = dyn Fn(&str, usize) -> bool + 'e;

/// Fields of `usage` that are passed on.
const USAGE: [&str; 10] = [
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_tokens_details",
    "cached_tokens",
    "audio_tokens",
    "completion_tokens_details",
    "reasoning_tokens",
    "accepted_prediction_tokens",
    "rejected_prediction_tokens",
];
/// Fields of llama.cpp's `timings` that are passed on.
const TIMINGS: [&str; 11] = [
    "cache_n", "prompt_n", "prompt_ms", "prompt_per_token_ms", "prompt_per_second", "predicted_n",
    "predicted_ms", "predicted_per_token_ms", "predicted_per_second", "draft_n",
    "draft_n_accepted",
];

/// Returns the numeric fields with these names of an event's object, including fields of nested objects.
fn counts(event: &Value, object: &str, names: &[&str]) -> Option<Value> {
    let fields = event.get(object)?.as_object()?.iter();
    let known = fields.filter(|(name, _)| names.contains(&name.as_str()));
    let count = |(name, value): (&String, &Value)| {
        let value =
            if value.is_number() { value.clone() } else { counts(&event[object], name, names)? };
        Some((name.clone(), value))
    };
    let counts: Map<String, Value> = known.filter_map(count).collect();
    (!counts.is_empty()).then_some(counts.into())
}

/// Answer as far as a server has written it.
#[derive(Debug, Default)]
pub(super) struct PartialAnswer {
    api: Api,
    /// Number of completions requested.
    most: usize,
    /// Completions by index; a server may send several samples in any order.
    found: BTreeMap<u64, PartialSample>,
    /// Number of completions without a finish reason.
    unfinished: usize,
    /// Number of bytes of all completions.
    length: usize,
    /// Index below which all completions were enough when last checked.
    looked_at: Cell<u64>,
    /// Name of the model.
    pub(super) model: Option<String>,
    /// Token counts.
    pub(super) usage: Option<Value>,
    /// llama.cpp's timings.
    pub(super) timings: Option<Value>,
}

/// Completion as far as a server has written it.
#[derive(Debug)]
struct PartialSample {
    sample: Sample,
    /// Whether a text was received, even an empty one.
    has_text: bool,
    /// Length of the text when it was last checked and found not enough; `None` once it was enough.
    not_enough: Cell<Option<usize>>,
    stop_text: Option<String>,
    pieces: PieceDecoder,
    mask: KeyMask,
}

impl PartialSample {
    fn new(sample: Sample, has_text: bool, mask: KeyMask) -> Self {
        Self {
            sample,
            has_text,
            not_enough: Cell::new(Some(0)),
            stop_text: None,
            pieces: PieceDecoder::default(),
            mask,
        }
    }

    /// Returns whether the completion is finished or long enough.
    fn is_done(&self, is_enough: &IsEnough<'_>) -> bool {
        let Self { sample, not_enough, .. } = self;
        if sample.finish_reason.is_none()
            && let Some(before) = not_enough.get()
        {
            let is_enough = is_enough(&sample.text, before);
            not_enough.set((!is_enough).then_some(sample.text.len()));
        }
        sample.finish_reason.is_some() || not_enough.get().is_none()
    }
}

impl PartialAnswer {
    /// Creates an empty answer to a request.
    pub(super) fn new(api: Api, body: &Value) -> Self {
        let most = body.get("n").and_then(Value::as_u64).unwrap_or(1);
        Self { api, most: usize::try_from(most).unwrap_or(usize::MAX), ..Self::default() }
    }

    /// Returns the text of the first completion.
    pub(super) fn text(&self) -> &str {
        self.first().map_or("", |partial| &partial.sample.text)
    }

    /// Returns the finish reason of the first completion.
    pub(super) fn finish_reason(&self) -> Option<&str> {
        self.first().and_then(|partial| partial.sample.finish_reason.as_deref())
    }

    /// Returns the stop text that ended the first completion, if the server streams and names it.
    pub(super) fn stop_text(&self) -> Option<&str> {
        self.first().and_then(|partial| partial.stop_text.as_deref())
    }

    fn first(&self) -> Option<&PartialSample> {
        self.found.first_key_value().map(|(_, partial)| partial)
    }

    fn note(&mut self, event: &Value) -> Result<(), AnswerError> {
        self.usage = counts(event, "usage", &USAGE).or(self.usage.take());
        self.timings = counts(event, "timings", &TIMINGS).or(self.timings.take());
        if self.model.is_none()
            && let Some(model) = event.get("model").and_then(Value::as_str)
        {
            if model.len() > LONGEST_NAME {
                return Err(AnswerError::LongName);
            }
            self.model = Some(model.to_owned());
        }
        Ok(())
    }

    /// Adds the parts of an event. `exact` is the event's text if it differs from the JSON, which has replacements for half characters and
    /// for the key; `mask` masks the key in each completion as a whole.
    ///
    /// # Errors
    /// The event has neither `choices` nor token counts, reports an error in a choice, or begins more completions than requested.
    pub(super) fn add(
        &mut self,
        event: &Value,
        exact: Option<&[u8]>,
        mask: impl Fn() -> KeyMask,
    ) -> Result<(), AnswerError> {
        self.note(event)?;
        let is_count = event.get("choices").is_none()
            && ["usage", "timings"]
                .iter()
                .any(|name| event.get(name).is_some_and(Value::is_object));
        if is_count && error_in(event).is_none() {
            return Ok(());
        }
        let exact = exact.map(|text| PieceEvent::texts(text, self.api)).unwrap_or_default();
        let choices = choices(event, TextPlace::Event(self.api))?;
        let exact = exact.iter().chain(std::iter::repeat(&None));
        for (at, (choice, exact)) in choices.iter().zip(exact).enumerate() {
            if choices[..at].iter().any(|other| other.index == choice.index) {
                return Err(AnswerError::TooManyChoices { most: self.most });
            }
            let is_full = self.found.len() >= self.most;
            let partial = match self.found.entry(choice.index) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(_) if is_full => {
                    return Err(AnswerError::TooManyChoices { most: self.most });
                }
                Entry::Vacant(new) => {
                    self.unfinished += 1;
                    self.looked_at.set(self.looked_at.get().min(choice.index));
                    new.insert(PartialSample::new(Sample::new("", None), false, mask()))
                }
            };
            let sample = &mut partial.sample;
            if let Some(text) = choice.text {
                let piece = exact.as_ref().map_or(text.as_bytes(), |exact| &exact.0);
                let text = partial.mask.pass(&partial.pieces.decode(piece));
                self.length += text.len();
                sample.text += &text;
                partial.has_text = true;
            }
            sample.tokens.extend(choice.logprobs.map(tokens).transpose()?.unwrap_or_default());
            if let Some(finish) = choice.finish {
                self.unfinished -= usize::from(sample.finish_reason.is_none());
                sample.finish_reason = Some(finish.to_owned());
            }
            let stop_text = choice.stop_text.map(str::to_owned);
            partial.stop_text = stop_text.or(partial.stop_text.take());
        }
        Ok(())
    }

    /// Sets the answer of a server that does not stream.
    ///
    /// # Errors
    /// As for [`samples`].
    pub(super) fn set(&mut self, answer: &Value) -> Result<(), AnswerError> {
        self.note(answer)?;
        let samples = samples(answer, self.api)?;
        let partial =
            samples.into_iter().map(|sample| PartialSample::new(sample, true, KeyMask::default()));
        self.found = (0..).zip(partial).collect();
        let texts = self.found.values().map(|partial| &partial.sample);
        self.length = texts.clone().map(|sample| sample.text.len()).sum();
        self.unfinished = texts.filter(|sample| sample.finish_reason.is_none()).count();
        Ok(())
    }

    /// Ends the texts: half a character at the end becomes U+FFFD, and text held back because it might have begun the key is released.
    pub(super) fn finish(&mut self) {
        for partial in self.found.values_mut() {
            let last = partial.mask.pass(partial.pieces.finish());
            partial.sample.text += &(last + &partial.mask.finish());
        }
    }

    /// Returns whether `number` samples have arrived, and each is finished or long enough.
    pub(super) fn are_enough(&self, number: usize, is_enough: &IsEnough<'_>) -> bool {
        if self.found.len() < number {
            return false;
        }
        // Once a text is enough, it stays enough.
        let mut rest = self.found.range(self.looked_at.get()..);
        let open = rest.find(|(_, partial)| !partial.is_done(is_enough));
        self.looked_at.set(open.map_or(u64::MAX, |(index, _)| *index));
        open.is_none()
    }

    /// Returns the number of bytes of all completions so far.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Returns whether all completions so far are finished.
    pub(super) fn is_finished(&self) -> bool {
        !self.found.is_empty() && self.unfinished == 0
    }

    /// Returns the completions received so far, in the order of their indices.
    ///
    /// # Errors
    /// There is no completion, or one without a text, for example because the model spent all tokens on reasoning.
    pub(super) fn into_samples(self) -> Result<Vec<Sample>, AnswerError> {
        self.check()?;
        Ok(self.found.into_values().map(|partial| partial.sample).collect())
    }

    /// Checks that there are completions and that each has a text.
    ///
    /// # Errors
    /// As for [`into_samples`](Self::into_samples).
    pub(super) fn check(&self) -> Result<(), AnswerError> {
        if self.found.is_empty() {
            return Err(AnswerError::NoChoice);
        }
        match self.found.iter().find(|(_, partial)| !partial.has_text) {
            None => Ok(()),
            Some((&choice, partial)) => {
                let field = TextPlace::Event(self.api).name();
                let finish = partial.sample.finish_reason.clone();
                Err(AnswerError::NoText { choice, field, finish })
            }
        }
    }
}

/// Texts of an event's choices, as bytes.
#[derive(Deserialize)]
struct PieceEvent {
    choices: Vec<PieceChoice>,
}

#[derive(Deserialize)]
struct PieceChoice {
    text: Option<StringBytes>,
    delta: Option<PieceDelta>,
}

#[derive(Deserialize)]
struct PieceDelta {
    content: Option<StringBytes>,
}

impl PieceEvent {
    /// Reads the text of each choice; returns none if the event has another form.
    fn texts(event: &[u8], api: Api) -> Vec<Option<StringBytes>> {
        let event = serde_json::from_slice::<Self>(event).map(|event| event.choices);
        let text = |choice: PieceChoice| match api {
            Api::Completions => choice.text,
            Api::Chat => choice.delta?.content,
        };
        event.unwrap_or_default().into_iter().map(text).collect()
    }
}
