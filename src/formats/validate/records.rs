//! What is to be found in records other than tasks, beyond the types of their fields.

use rustc_hash::FxHashSet;
use serde_json::Value;

use super::{Severity, Validator, reason};
use crate::complete::batch::Response;
use crate::error::Result;
use crate::evaluate::predictions::samples;
use crate::repository::record::{Package, RawRepository};
use crate::selective::label::Label;
use crate::store::jsonl::{At, Object};
use crate::task::kind::Kind;
use crate::text::lines::strip;

use Severity::{Error, Note};

impl Validator<'_> {
    /// Looks at a record that is no task; `whole` says whether its fields have their types.
    pub(super) fn other(
        &mut self,
        at: At,
        kind: Kind,
        object: Object,
        id: Option<String>,
        whole: bool,
    ) {
        if !whole {
            return;
        }
        let line = at.line;
        self.repeated(line, kind, &object, id.as_ref());
        if let Some(metadata) = object.get("metadata")
            && metadata.get("lineno").is_some()
        {
            let reason = "its line is 'metadata.lineno', where other files have 'line_no'";
            self.find(line, id.clone(), Note, reason);
        }
        let outcome = match kind {
            Kind::RepoCoderPrediction | Kind::CrossCodeEvalPrediction | Kind::Pair => {
                self.samples(line, &object, id.clone())
            }
            Kind::Package => Package::read(self.path, line, object).map(drop),
            Kind::RawRepository => self.raw(line, object),
            Kind::Label => self.label(line, object, id.clone()),
            Kind::BatchRequest => {
                self.request(line, &object);
                Ok(())
            }
            Kind::BatchResponse => Response::read(self.path, line, &object).map(drop),
            _ => Ok(()),
        };
        if let Err(error) = outcome {
            self.find(line, id, Error, reason(error));
        }
    }

    /// Tells of names that came before; an error where records are joined or kept by them.
    fn repeated(&mut self, line: usize, kind: Kind, object: &Object, id: Option<&String>) {
        let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
        let (severity, name, value) = match kind {
            Kind::BatchRequest | Kind::BatchResponse => (Error, "custom_id", text("custom_id")),
            Kind::Package => (Error, "filepath", text("filepath")),
            Kind::BeirDocument | Kind::BeirQuery => {
                (Error, "_id", object.get("_id").map(ToString::to_string))
            }
            Kind::RawRepository => (Error, "repo_name", text("repo_name")),
            Kind::Window
            | Kind::QueryWindow
            | Kind::Retrieval
            | Kind::Prompt
            | Kind::RepoCoderPrediction => return,
            _ => (Note, "task_id", id.cloned()),
        };
        let Some(value) = value else {
            return;
        };
        if let Some(first) = self.seen_before(kind, value, line) {
            let reason = format!("its '{name}' is that of line {first} too");
            self.find(line, id.cloned(), severity, reason);
        }
    }

    fn samples(&mut self, line: usize, object: &Object, id: Option<String>) -> Result<()> {
        let samples = samples(self.path, line, object)?;
        if id.is_none() {
            let reason = "field 'task_id' or 'metadata.task_id' is missing";
            self.find(line, None, Error, reason);
        }
        let empty = samples
            .iter()
            .filter(|sample| strip(sample).is_empty())
            .count();
        if empty > 0 {
            let reason = format!("{empty} of its {} samples are empty", samples.len());
            self.find(line, id, Note, reason);
        }
        Ok(())
    }

    fn raw(&mut self, line: usize, object: Object) -> Result<()> {
        let raw = RawRepository::read(self.path, line, object)?;
        let mut seen = FxHashSet::default();
        for (number, file) in raw.files.iter().enumerate() {
            if !seen.insert(&file.content.path) {
                let reason = format!(
                    "field 'files[{number}].filepath' is there before: {:?}",
                    file.content.path
                );
                self.find(line, None, Error, reason);
            }
        }
        Ok(())
    }

    fn label(&mut self, line: usize, object: Object, id: Option<String>) -> Result<()> {
        let label = Label::read(self.path, line, object)?;
        let mut find = |severity, reason: &str| self.find(line, id.clone(), severity, reason);
        if label.start >= label.end {
            find(Error, "field 'metadata.end_i' is not behind 'start_i'");
        }
        if strip(&label.ground_truth).is_empty() {
            find(
                Error,
                "its ground truth is empty: there is nothing to predict",
            );
        }
        for (name, is_empty) in [
            ("left context: its prompt", label.prompt.is_empty()),
            (
                "right context: 'right_context'",
                label.right_context.is_empty(),
            ),
            (
                "cross-file context: 'crossfile_context'",
                label.cross_file.is_empty(),
            ),
        ] {
            if is_empty {
                find(Note, &format!("no {name} is empty"));
            }
        }
        Ok(())
    }

    fn request(&mut self, line: usize, object: &Object) {
        let body = object.get("body").and_then(Value::as_object);
        let has = |name: &str| body.is_some_and(|body| body.contains_key(name));
        if !has("prompt") && !has("messages") {
            self.find(
                line,
                None,
                Error,
                "field 'body.prompt' or 'body.messages' is missing",
            );
        }
        if !has("model") {
            self.find(line, None, Error, "field 'body.model' is missing");
        }
    }
}
