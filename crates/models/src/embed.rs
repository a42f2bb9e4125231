//! Vectors from an embedding server: texts are sent in batches, several requests at a time, and each batch is stored as soon as it arrives.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use foldhash::HashSet;
use repoformer_core::retrieve::dense::{
    Digest, EmbeddingTimes, VectorStore, digest, numbers, quote_start,
};
use repoformer_store::error::{Error, Result};
use repoformer_store::progress::Work;
use serde_json::{Value, json};

use crate::endpoint::{Endpoint, MASK};

const PATH: &str = "/v1/embeddings";

/// Error for a vector that spells the API key; such a vector is not stored.
const OF_KEY: &str = "the server's answer contains the API key";

/// An embedding model on a server.
#[derive(Debug, Clone)]
pub struct Embedder {
    endpoint: Endpoint,
    model: String,
    batch_size: usize,
    concurrency: usize,
}

/// Counts of [`Embedder::embed`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbeddingCounts {
    /// Number of different texts.
    pub texts: usize,
    /// Number of texts whose vectors were already stored.
    pub known: usize,
    /// Number of vectors computed by the server.
    pub computed: usize,
}

/// A text without a vector.
struct MissingText<'a> {
    digest: Digest,
    text: &'a str,
}

/// The vectors of a batch of texts, and how long the server took.
type Answer = Result<(Vec<Vec<f32>>, Duration)>;

impl Embedder {
    /// Creates an embedder that sends 64 texts per request and two requests at a time.
    pub fn new(endpoint: Endpoint, model: &str) -> Self {
        let model = model.into();
        Self { endpoint, model, batch_size: 64, concurrency: 2 }
    }

    /// Returns the URL of its requests for messages, with keys masked.
    pub fn url(&self) -> String {
        self.endpoint.url(PATH)
    }

    /// Sets the number of texts per request; 0 counts as 1.
    #[must_use]
    pub fn batch_size(mut self, texts: usize) -> Self {
        self.batch_size = texts.max(1);
        self
    }

    /// Sets the number of concurrent requests; 0 counts as 1.
    #[must_use]
    pub fn concurrency(mut self, requests: usize) -> Self {
        self.concurrency = requests.max(1);
        self
    }

    /// Computes the vectors that the store does not contain and stores them batch by batch.
    ///
    /// # Errors
    /// The store belongs to another model or cannot be written, or the server fails, or its answer is not one vector per text, all of one
    /// size, with finite numbers that are not all zero. Requests in progress are awaited and their vectors stored, so that the next call
    /// requests only the rest.
    pub fn embed<'a>(
        &self,
        texts: impl IntoIterator<Item = &'a str>,
        store: &mut VectorStore,
    ) -> Result<EmbeddingCounts> {
        self.run(texts, store, None)
    }

    /// Computes the vectors like [`embed`](Self::embed), but with one text per request and one request at a time, and stores how long each
    /// text took. Texts whose time is unknown are requested too.
    ///
    /// # Errors
    /// As for [`embed`](Self::embed), or the times cannot be written.
    pub fn embed_timed<'a>(
        &self,
        texts: impl IntoIterator<Item = &'a str>,
        store: &mut VectorStore,
        times: &mut EmbeddingTimes,
    ) -> Result<EmbeddingCounts> {
        let alone = self.clone().batch_size(1).concurrency(1);
        alone.run(texts, store, Some(times))
    }

    fn run<'a>(
        &self,
        texts: impl IntoIterator<Item = &'a str>,
        store: &mut VectorStore,
        times: Option<&mut EmbeddingTimes>,
    ) -> Result<EmbeddingCounts> {
        if store.model != self.model {
            let (path, other) = (store.path.display(), &store.model);
            let reason = format!("the vectors in {path} are from model '{other}'");
            return Err(Error::parameter("model", reason));
        }
        let (wanted, mut counts) = missing(texts, store, times.as_deref());
        let work = Work::new(format!("embed with {}", self.model), "texts", wanted.len());
        let result = self.compute(&wanted, store, times, &mut |count| {
            counts.computed += count;
            work.advance(count);
        });
        result.map(|()| counts).map_err(|mut error| {
            if let Error::Endpoint { reason, hint, .. } | Error::FailedAnswer { reason, hint, .. } =
                &mut error
            {
                *reason += &format!(
                    "; {} of {} missing vectors were computed and are kept in {}",
                    counts.computed,
                    wanted.len(),
                    store.path.display()
                );
                hint.push("; then run the command again: only the missing vectors are requested");
            }
            error
        })
    }

    /// Requests all batches; if several fail, returns the error of the first one in order.
    fn compute(
        &self,
        wanted: &[MissingText<'_>],
        store: &mut VectorStore,
        mut times: Option<&mut EmbeddingTimes>,
        done: &mut dyn FnMut(usize),
    ) -> Result<()> {
        let batches: Vec<&[MissingText<'_>]> = wanted.chunks(self.batch_size).collect();
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let mut failed: Option<(usize, Error)> = None;
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel::<(usize, Answer)>();
            for _ in 0..self.concurrency.min(batches.len()) {
                let (sender, next, stop, batches) = (sender.clone(), &next, &stop, &batches);
                scope.spawn(move || {
                    while !stop.load(Ordering::SeqCst) {
                        let number = next.fetch_add(1, Ordering::SeqCst);
                        let Some(batch) = batches.get(number) else {
                            return;
                        };
                        let answer = self.request(batch);
                        if answer.is_err() {
                            stop.store(true, Ordering::SeqCst);
                        }
                        if sender.send((number, answer)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            for (number, answer) in receiver {
                let kept = answer.and_then(|(vectors, took)| {
                    self.keep(batches[number], &vectors, store)?;
                    match (&mut times, batches[number]) {
                        (Some(times), [alone]) => times.keep(alone.digest, took.as_secs_f64()),
                        _ => Ok(()),
                    }
                });
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

    /// Requests the vectors of a batch of texts, in the order of the texts.
    fn request(&self, batch: &[MissingText<'_>]) -> Answer {
        let input: Vec<&str> = batch.iter().map(|wanted| wanted.text).collect();
        let body = json!({"model": self.model, "input": input, "encoding_format": "float"});
        let (answer, took) = self.endpoint.post_json_timed(PATH, &body)?;
        let vectors = vectors(&answer, &input).map_err(|reason| self.wrong(reason))?;
        let bytes: Vec<u8> =
            vectors.iter().flatten().flat_map(|number| number.abs().to_le_bytes()).collect();
        if self.endpoint.has_key_in(&bytes) {
            return Err(self.wrong(OF_KEY.into()));
        }
        Ok((vectors, took))
    }

    /// Stores the vectors of a batch.
    fn keep(
        &self,
        batch: &[MissingText<'_>],
        vectors: &[Vec<f32>],
        store: &mut VectorStore,
    ) -> Result<()> {
        let found = vectors.first().map(Vec::len);
        if let (Some(dim), Some(found)) = (store.dim(), found)
            && dim != found
        {
            let path = store.path.display();
            return Err(self.wrong(format!(
                "the new vectors have {found} numbers, but the vectors in {path} have {dim}"
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
            "check that '{}' is an embedding model and the model of the stored vectors",
            self.model
        );
        self.endpoint.error(PATH, reason, hint)
    }
}

/// Returns the distinct texts whose vectors the store does not contain, or whose times are needed and unknown, in the order of their first
/// occurrence.
fn missing<'a>(
    texts: impl IntoIterator<Item = &'a str>,
    store: &VectorStore,
    times: Option<&EmbeddingTimes>,
) -> (Vec<MissingText<'a>>, EmbeddingCounts) {
    let (mut seen, mut wanted) = (HashSet::default(), Vec::new());
    let mut counts = EmbeddingCounts::default();
    for text in texts {
        let digest = digest(text);
        if text.is_empty() || !seen.insert(digest) {
            continue;
        }
        counts.texts += 1;
        if store.contains(&digest) && times.is_none_or(|times| times.contains(&digest)) {
            counts.known += 1;
        } else {
            wanted.push(MissingText { digest, text });
        }
    }
    (wanted, counts)
}

/// Returns the vectors of an answer in the order of the texts; the error describes the problem.
fn vectors(answer: &Value, texts: &[&str]) -> Result<Vec<Vec<f32>>, String> {
    let Some(data) = answer.get("data").and_then(Value::as_array) else {
        let text = repoformer_core::completion::excerpt(answer.to_string().as_bytes());
        return Err(format!("the answer has no list 'data': {text}"));
    };
    if data.len() != texts.len() {
        let (found, wanted) = (data.len(), texts.len());
        return Err(format!("the answer has {found} vectors for {wanted} texts"));
    }
    let mut vectors: Vec<Vec<f32>> = vec![Vec::new(); texts.len()];
    for (place, entry) in data.iter().enumerate() {
        // Without an `index`, the vectors must be in the order of the texts.
        let index = match entry.get("index") {
            None | Some(Value::Null) => Some(place),
            Some(index) => index.as_u64().and_then(|index| usize::try_from(index).ok()),
        };
        let slot = index.and_then(|index| Some((index, vectors.get_mut(index)?)));
        let Some((index, slot)) = slot.filter(|(_, slot)| slot.is_empty()) else {
            let index = &entry["index"];
            return Err(format!("the answer has a wrong or repeated 'index': {index}"));
        };
        let of = |reason: String| {
            format!("the vector of text {} is wrong: {reason}", quote_start(texts[index]))
        };
        if entry.get("embedding").is_some_and(|vector| *vector == MASK) {
            return Err(of(OF_KEY.into()));
        }
        *slot = numbers(entry.get("embedding").unwrap_or(&Value::Null)).map_err(of)?;
        if slot.iter().all(|number| *number == 0.0) {
            return Err(of("all its numbers are 0".into()));
        }
    }
    let sizes = vectors.iter().map(Vec::len);
    match sizes.zip(texts).find(|(size, _)| *size != vectors[0].len()) {
        Some((size, text)) => Err(format!(
            "the vector of text {} has {size} numbers, but the vector of text {} has {}",
            quote_start(text),
            quote_start(texts[0]),
            vectors[0].len()
        )),
        None => Ok(vectors),
    }
}

#[cfg(test)]
mod tests;
