//! Vectors from a server: texts in batches, a few requests at a time, every batch kept as soon as it is there.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use rustc_hash::FxHashSet;
use serde_json::{Value, json};

use super::{Digest, Store, digest, shown};
use crate::endpoint::Endpoint;
use crate::error::{Error, Result};

const PATH: &str = "/v1/embeddings";

/// A model on a server that turns texts into vectors.
#[derive(Debug, Clone)]
pub struct Embedder {
    endpoint: Endpoint,
    model: String,
    batch_size: usize,
    concurrency: usize,
}

/// What [`Embedder::embed`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Different texts that were wanted.
    pub texts: usize,
    /// Of these, texts whose vectors were there already.
    pub known: usize,
    /// Vectors that the server computed.
    pub computed: usize,
}

/// A text without a vector.
struct Wanted<'a> {
    digest: Digest,
    text: &'a str,
}

/// The vectors of a batch of texts, by its number, or why there are none.
type Outcome = (usize, Result<Vec<Vec<f32>>>);

impl Embedder {
    /// Of a model, by the name that the server has for it: 64 texts a request, two requests at a time.
    pub fn new(endpoint: Endpoint, model: &str) -> Self {
        let model = model.into();
        Self {
            endpoint,
            model,
            batch_size: 64,
            concurrency: 2,
        }
    }

    /// With so many texts a request; 0 is taken as 1.
    #[must_use]
    pub fn batch_size(mut self, texts: usize) -> Self {
        self.batch_size = texts.max(1);
        self
    }

    /// With so many requests at a time; 0 is taken as 1.
    #[must_use]
    pub fn concurrency(mut self, requests: usize) -> Self {
        self.concurrency = requests.max(1);
        self
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Has the vectors computed that the store does not hold, and puts them into it batch by batch. `progress` is told,
    /// after each, how many of the missing ones are there, and how many were missing.
    ///
    /// # Errors
    /// The store is another model's or cannot be written, or the server fails, or answers with something else than one
    /// vector a text, all of one size, of finite numbers that are not all zero. Requests under way are waited for; what
    /// they and all before them brought is in the store, so that the next call asks for the rest alone.
    pub fn embed<'a>(
        &self,
        texts: impl IntoIterator<Item = &'a str>,
        store: &mut Store,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Report> {
        if store.model() != self.model {
            let reason = format!(
                "the vectors of {} are those of '{}'",
                store.path().display(),
                store.model()
            );
            return Err(Error::Parameter {
                name: "model",
                reason,
            });
        }
        let (wanted, mut report) = missing(texts, store);
        let outcome = self.compute(&wanted, store, &mut |count| {
            report.computed += count;
            progress(report.computed, wanted.len());
        });
        match outcome {
            Ok(()) => Ok(report),
            Err(error) => Err(with_rest(error, report.computed, wanted.len(), store)),
        }
    }

    /// Asks for all batches; of several failures, the first batch's is returned.
    fn compute(
        &self,
        wanted: &[Wanted<'_>],
        store: &mut Store,
        done: &mut dyn FnMut(usize),
    ) -> Result<()> {
        let batches: Vec<&[Wanted<'_>]> = wanted.chunks(self.batch_size).collect();
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let mut failed: Option<(usize, Error)> = None;
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel::<Outcome>();
            for _ in 0..self.concurrency.min(batches.len()) {
                let (sender, next, stop, batches) = (sender.clone(), &next, &stop, &batches);
                scope.spawn(move || {
                    while !stop.load(Ordering::SeqCst) {
                        let number = next.fetch_add(1, Ordering::SeqCst);
                        let Some(batch) = batches.get(number) else {
                            return;
                        };
                        let outcome = self.ask(batch);
                        if outcome.is_err() {
                            stop.store(true, Ordering::SeqCst);
                        }
                        if sender.send((number, outcome)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            for (number, outcome) in receiver {
                let kept = outcome.and_then(|vectors| self.keep(batches[number], &vectors, store));
                match kept {
                    Ok(()) => done(batches[number].len()),
                    Err(error) => {
                        stop.store(true, Ordering::SeqCst);
                        if failed.as_ref().is_none_or(|(before, _)| number < *before) {
                            failed = Some((number, error));
                        }
                    }
                }
            }
        });
        failed.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// One request: the vectors of some texts, in their order.
    fn ask(&self, batch: &[Wanted<'_>]) -> Result<Vec<Vec<f32>>> {
        let input: Vec<&str> = batch.iter().map(|wanted| wanted.text).collect();
        let body = json!({"model": self.model, "input": input, "encoding_format": "float"});
        let answer = self.endpoint.post_json(PATH, &body)?;
        vectors(&answer, &input).map_err(|reason| self.wrong(reason))
    }

    /// Puts the vectors of a batch into the store.
    fn keep(&self, batch: &[Wanted<'_>], vectors: &[Vec<f32>], store: &mut Store) -> Result<()> {
        let found = vectors.first().map(Vec::len);
        if let (Some(dim), Some(found)) = (store.dim(), found)
            && dim != found
        {
            let path = store.path().display();
            return Err(self.wrong(format!(
                "vectors of {found} numbers came where those of {path} have {dim}"
            )));
        }
        let records: Vec<(Digest, &[f32])> = batch
            .iter()
            .zip(vectors)
            .map(|(wanted, vector)| (wanted.digest, vector.as_slice()))
            .collect();
        store.append(&records)
    }

    fn wrong(&self, reason: String) -> Error {
        let hint = format!(
            "is '{}' an embedding model, and the one whose vectors are there already?",
            self.model
        );
        self.endpoint.error(PATH, reason, hint)
    }
}

/// The different texts whose vectors the store does not hold, in the order of their first place.
fn missing<'a>(
    texts: impl IntoIterator<Item = &'a str>,
    store: &Store,
) -> (Vec<Wanted<'a>>, Report) {
    let (mut seen, mut wanted, mut report) = (FxHashSet::default(), Vec::new(), Report::default());
    for text in texts {
        let digest = digest(text);
        if text.is_empty() || !seen.insert(digest) {
            continue;
        }
        report.texts += 1;
        match store.contains(&digest) {
            true => report.known += 1,
            false => wanted.push(Wanted { digest, text }),
        }
    }
    (wanted, report)
}

/// A failure, and what remains of the work before it.
fn with_rest(error: Error, computed: usize, wanted: usize, store: &Store) -> Error {
    match error {
        Error::Endpoint {
            url,
            reason,
            hint,
            status,
        } => {
            let path = store.path().display();
            let reason = format!(
                "{reason}; {computed} of {wanted} missing vectors were computed and are kept in {path}"
            );
            let hint = format!("{hint}; then run this again: the others alone are asked for");
            Error::Endpoint {
                url,
                reason,
                hint,
                status,
            }
        }
        other => other,
    }
}

/// The vectors of an answer in the order of the texts, or what is wrong with it.
fn vectors(answer: &Value, texts: &[&str]) -> Result<Vec<Vec<f32>>, String> {
    let Some(data) = answer.get("data").and_then(Value::as_array) else {
        let text = crate::endpoint::excerpt(answer.to_string().as_bytes());
        return Err(format!("the answer has no list 'data': {text}"));
    };
    if data.len() != texts.len() {
        return Err(format!(
            "{} vectors came for {} texts",
            data.len(),
            texts.len()
        ));
    }
    let mut vectors: Vec<Vec<f32>> = vec![Vec::new(); texts.len()];
    for (place, entry) in data.iter().enumerate() {
        // A server without 'index' can only mean the order of the texts.
        let index = match entry.get("index") {
            None | Some(Value::Null) => Some(place),
            Some(index) => index.as_u64().and_then(|index| usize::try_from(index).ok()),
        };
        let slot = index.and_then(|index| Some((index, vectors.get_mut(index)?)));
        let Some((index, slot)) = slot.filter(|(_, slot)| slot.is_empty()) else {
            return Err(format!(
                "an 'index' of the answer is wrong or there twice: {}",
                entry["index"]
            ));
        };
        let of = |reason: String| {
            format!(
                "the vector of text {} is wrong: {reason}",
                shown(texts[index])
            )
        };
        *slot = numbers(entry.get("embedding").unwrap_or(&Value::Null)).map_err(of)?;
        if slot.iter().all(|number| *number == 0.0) {
            return Err(of("all its numbers are 0".into()));
        }
    }
    let sizes = vectors.iter().map(Vec::len);
    match sizes.zip(texts).find(|(size, _)| *size != vectors[0].len()) {
        Some((size, text)) => Err(format!(
            "the vector of text {} has {size} numbers, that of text {} has {}",
            shown(text),
            shown(texts[0]),
            vectors[0].len()
        )),
        None => Ok(vectors),
    }
}

/// A vector from JSON, its numbers rounded to `f32`, or what is wrong with it.
pub(super) fn numbers(value: &Value) -> Result<Vec<f32>, String> {
    let Value::Array(list) = value else {
        let kind = crate::store::jsonl::kind(value);
        return Err(format!("a list of numbers is expected, not {kind}"));
    };
    if list.first().is_some_and(Value::is_array) {
        return Err(
            "a list of lists came, a vector for each token: have the server pool them into one"
                .into(),
        );
    }
    if list.is_empty() {
        return Err("it has no numbers".into());
    }
    let number = |(at, value): (usize, &Value)| {
        let number = value
            .as_f64()
            .ok_or_else(|| format!("number {} is {value}", at + 1))?;
        let narrow = number as f32;
        if narrow.is_finite() {
            Ok(narrow)
        } else {
            Err(format!(
                "number {} is {value}, too large for 32 bits",
                at + 1
            ))
        }
    };
    list.iter().enumerate().map(number).collect()
}

#[cfg(test)]
mod tests;
