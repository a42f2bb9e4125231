//! Judged instances as policies see them: features, what the model said, and what retrieval did.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::features::{Context, Hashed, Local, Request, Retrieved};
use crate::error::{Error, Result};
use crate::repository::parallel;
use crate::selective::label::{Label, Signals};
use crate::store::jsonl::{self, At, Object};
use crate::text::language::Language;

/// One judged instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Id of the task.
    pub id: String,
    /// First part of the file's path.
    pub repository: String,
    /// Index of the file it was read from.
    pub file: usize,
    /// Edit similarity without retrieval, 0 to 1.
    pub es_base: f64,
    /// Edit similarity with retrieval, 0 to 1.
    pub es_rag: f64,
    /// Exact match without retrieval, if known.
    pub em_base: Option<f64>,
    /// Exact match with retrieval, if known.
    pub em_rag: Option<f64>,
    /// Whether retrieval helped.
    pub label: bool,
    /// Whether the query of its fragments has the target, as for half of the drawn instances.
    pub query_has_target: bool,
    /// Score of the best fragment: negative infinity if nothing was retrieved, `None` if unknown.
    pub top_score: Option<f64>,
    /// Signals of the model's confidence.
    pub signals: Signals,
    /// Features of the contexts.
    pub local: Local,
    /// Features of the fragments.
    pub retrieved: Retrieved,
    /// Words near the hole.
    pub hashed: Hashed,
}

impl Example {
    /// Gain of retrieval in edit similarity.
    pub fn gain(&self) -> f64 {
        self.es_rag - self.es_base
    }

    /// File and repository.
    pub(super) fn group(&self) -> (usize, &str) {
        (self.file, &self.repository)
    }

    /// Returns the example of a request with the scores of its completions.
    pub fn new(
        id: &str,
        request: Request<'_>,
        outcome: CompletionScores,
        signals: Signals,
    ) -> Self {
        let context = Context::of(request);
        let repository = request.path.split('/').next().unwrap_or("");
        let [es_base, es_rag] = outcome.es;
        let [em_base, em_rag] = outcome.em;
        Self {
            id: id.to_owned(),
            repository: repository.to_owned(),
            file: 0,
            es_base,
            es_rag,
            em_base,
            em_rag,
            label: outcome.label.unwrap_or(es_rag > es_base),
            query_has_target: false,
            top_score: match request.fragments.first() {
                Some(best) => best.score.filter(|score| !score.is_nan()),
                None => Some(f64::NEG_INFINITY),
            },
            signals,
            local: Local::of(&context),
            hashed: Hashed::of(&context),
            retrieved: Retrieved::of(&context),
        }
    }

    /// Converts an instance, or returns the missing field if it is not judged. Without `label`, the similarities decide.
    fn of(label: &Label) -> Result<Self, &'static str> {
        let request = Request {
            left: &label.prompt,
            right: &label.right_context,
            path: &label.filename,
            language: Language::of_path(&label.filename).unwrap_or_default(),
            fragments: &label.cross_file.fragments,
        };
        let outcome = CompletionScores {
            es: [label.es_infile.ok_or("es_infile")?, label.es_rg1.ok_or("es_rg1")?],
            em: [label.em_infile, label.em_rg1],
            label: label.helped(),
        };
        let has_target = label.record.get("metadata");
        let has_target = has_target.and_then(|metadata| metadata.get("query_has_target"));
        Ok(Self {
            query_has_target: has_target.and_then(Value::as_bool) == Some(true),
            ..Self::new(&label.id, request, outcome, label.signals)
        })
    }
}

/// Scores of the completions without and with retrieval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompletionScores {
    /// Edit similarities, 0 to 1.
    pub es: [f64; 2],
    /// Exact matches, 0 or 1, if known.
    pub em: [Option<f64>; 2],
    /// Whether retrieval helped, if it is not decided by the similarities.
    pub label: Option<bool>,
}

/// Judged instances of some files.
#[derive(Debug, Default)]
pub struct Examples {
    /// Instances in the order of the files.
    pub all: Vec<Example>,
    /// Model whose completions were judged.
    pub model: Option<String>,
    /// Number of instances that lack a similarity, by field name.
    pub unjudged: BTreeMap<&'static str, usize>,
    /// Number of instances with the id and repository of an earlier one in their file.
    pub repeated: usize,
    /// Records that cannot be used.
    pub problems: Vec<Error>,
}

/// Line of a record, its model, and the example or the missing field.
type Read = (usize, Option<String>, Result<Example, &'static str>);

/// Number of records processed at once.
const BATCH: usize = 512;

impl Examples {
    /// Reads labels (`.jsonl`, gzip, zstd, or `-`). Edit similarities may be from 0 to 1 or from 0 to 100.
    ///
    /// # Errors
    /// A file cannot be read, the files are of different models, or nothing in them is judged.
    pub fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut examples = Self::default();
        let mut models: BTreeMap<String, (PathBuf, usize)> = BTreeMap::new();
        for (number, path) in paths.iter().enumerate() {
            let first = examples.all.len();
            let mut batch: Vec<(At, Object)> = Vec::with_capacity(BATCH);
            let mut problems = jsonl::for_each(path, |at, object| {
                batch.push((at, object));
                if batch.len() == BATCH {
                    examples.take(path, &mut batch, &mut models);
                }
                Ok(())
            })?;
            examples.take(path, &mut batch, &mut models);
            examples.problems.append(&mut problems);
            // The released program writes percentages.
            let of_file = &mut examples.all[first..];
            of_file.iter_mut().for_each(|example| example.file = number);
            if of_file.iter().any(|e| e.es_base > 1.0 || e.es_rag > 1.0) {
                for example in of_file {
                    let scores = [&mut example.es_base, &mut example.es_rag];
                    let exact = [&mut example.em_base, &mut example.em_rag];
                    let all = scores.into_iter().chain(exact.into_iter().flatten());
                    all.for_each(|score| *score /= 100.0);
                }
            }
        }
        let mut models = models.into_iter();
        examples.model = match (models.next(), models.next()) {
            (Some((one, _)), Some((other, (path, line)))) => {
                let reason = format!("line {line} is judged by model {other}, and others by {one}");
                let hint = "what helps one model need not help another: give the labels of one";
                return Err(Error::artifact(&path, reason, hint));
            }
            (one, _) => one.map(|(name, _)| name),
        };
        Ok(examples)
    }

    fn take(
        &mut self,
        path: &Path,
        batch: &mut Vec<(At, Object)>,
        models: &mut BTreeMap<String, (PathBuf, usize)>,
    ) {
        let read = parallel::map(batch.drain(..), |(at, object)| -> Result<Read> {
            let label = Label::read(path, at.line, object)?;
            let example = Example::of(&label);
            Ok((at.line, label.generation_model, example))
        });
        for read in read {
            match read {
                Ok((line, model, Ok(example))) => {
                    if let Some(model) = model {
                        models.entry(model).or_insert_with(|| (path.to_owned(), line));
                    }
                    self.all.push(example);
                }
                Ok((_, _, Err(missing))) => *self.unjudged.entry(missing).or_default() += 1,
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    /// Numbers the files after those of `other`, so that repositories of the same name are told apart.
    pub fn behind(mut self, other: &Self) -> Self {
        let first = other.all.iter().map(|example| example.file + 1).max();
        for example in &mut self.all {
            example.file += first.unwrap_or(0);
        }
        self
    }

    /// Returns the distinct repositories.
    pub fn repositories(&self) -> BTreeSet<&str> {
        self.all.iter().map(|e| e.repository.as_str()).collect()
    }
}
