//! Validation of records other than tasks, beyond the types of their fields.

use foldhash::HashSet;
use repoformer_core::label::Label;
use repoformer_core::policy::sweep::check_latency;
use repoformer_core::repository::record::{Package, RawRepository};
use repoformer_core::retrieve::dense::Text;
use repoformer_core::task::kind::RecordKind;
use repoformer_evaluate::comparison::PerTask;
use repoformer_evaluate::executed::read_outcome;
use repoformer_evaluate::predictions::{check_reference, samples};
use repoformer_evaluate::{lm_eval, pairs};
use repoformer_models::batch::Response;
use repoformer_store::error::Result;
use repoformer_store::jsonl::{Fields, Object, RecordAddress};
use repoformer_text::lines::strip;
use serde_json::Value;

use super::{Severity, Validator, reason};
use crate::convert::FunctionDescription;
use Severity::{Error, Note};

impl Validator<'_> {
    /// Checks a record that is not a task and whose fields have the right types.
    pub(super) fn other(
        &mut self,
        line: usize,
        kind: RecordKind,
        object: Object,
        id: Option<String>,
    ) {
        self.report_repeated(line, kind, &object, id.as_ref());
        if let Some(metadata) = object.get("metadata")
            && metadata.get("lineno").is_some()
        {
            let reason = "its line is 'metadata.lineno', where other files have 'line_no'";
            self.find(line, id.clone(), Note, reason);
        }
        let checked = match kind {
            RecordKind::RepoCoderPrediction | RecordKind::CrossCodeEvalPrediction => {
                self.samples(line, &object, id.clone())
            }
            RecordKind::Pair => {
                pairs::read_pair(self.path, RecordAddress { line, row: 0 }, &object)
                    .and_then(|_| self.samples(line, &object, id.clone()))
            }
            RecordKind::LmEvalSample => lm_eval::as_prediction(self.path, line, object)
                .and_then(|object| self.samples(line, &object, id.clone())),
            RecordKind::Package => Package::read(self.path, line, object).map(drop),
            RecordKind::RawRepository => self.raw(line, object),
            RecordKind::Label => self.label(line, object, id.clone()),
            RecordKind::BatchRequest => {
                self.request(line, &object);
                Ok(())
            }
            RecordKind::Score => self.score(line, &object),
            RecordKind::DevEval => FunctionDescription::read(self.path, line, &object).map(drop),
            RecordKind::BeirDocument | RecordKind::BeirQuery => {
                Text::read(self.path, line, &object).map(drop)
            }
            RecordKind::Latency => check_latency(self.path, line, &object),
            RecordKind::BatchResponse => Response::read(self.path, line, &object).map(drop),
            _ => Ok(()),
        };
        if let Err(error) = checked {
            self.find(line, id, Error, reason(error));
        }
    }

    /// Reports repeated names, which are errors if records are joined or stored by name.
    fn report_repeated(
        &mut self,
        line: usize,
        kind: RecordKind,
        object: &Object,
        id: Option<&String>,
    ) {
        let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
        let (severity, name, value) = match kind {
            RecordKind::BatchRequest | RecordKind::BatchResponse => {
                (Error, "custom_id", text("custom_id"))
            }
            RecordKind::Package => (Error, "filepath", text("filepath")),
            RecordKind::BeirDocument | RecordKind::BeirQuery => {
                (Error, "_id", object.get("_id").map(ToString::to_string))
            }
            RecordKind::RawRepository => (Error, "repo_name", text("repo_name")),
            RecordKind::Window
            | RecordKind::QueryWindow
            | RecordKind::Retrieval
            | RecordKind::Prompt
            | RecordKind::Latency
            | RecordKind::Sequence
            | RecordKind::RepoCoderPrediction
            | RecordKind::LmEvalSample => return,
            _ => (Note, "task_id", id.cloned()),
        };
        let Some(value) = value else {
            return;
        };
        if let Some(first) = self.seen_before(kind, value, line) {
            let reason = format!("its '{name}' equals that of line {first}");
            self.find(line, id.cloned(), severity, reason);
        }
    }

    fn samples(&mut self, line: usize, object: &Object, id: Option<String>) -> Result<()> {
        let samples = samples(self.path, line, object)?;
        check_reference(self.path, line, object)?;
        let empty = samples.iter().filter(|sample| strip(sample).is_empty()).count();
        if empty > 0 {
            let reason = format!("{empty} of its {} samples are empty", samples.len());
            self.find(line, id, Note, reason);
        }
        Ok(())
    }

    fn score(&self, line: usize, object: &Object) -> Result<()> {
        let fields = Fields::new(self.path, line, "", object);
        if fields.has("statuses") || fields.has("excluded") {
            read_outcome(self.path, line, object)?;
        }
        // CrossCodeEval's program writes the scores themselves.
        let is_taken = fields.has("excluded") || fields.has("em") || fields.has("es");
        if is_taken {
            Ok(())
        } else {
            PerTask::new("").add(object).map_err(|reason| fields.error(reason))
        }
    }

    fn raw(&mut self, line: usize, object: Object) -> Result<()> {
        let (raw, left_out) = RawRepository::read(self.path, line, object)?;
        for error in left_out {
            self.find(line, None, Error, reason(error));
        }
        let mut seen = HashSet::default();
        for (number, file) in raw.files.iter().enumerate() {
            if !seen.insert(&file.content.path) {
                let path = &file.content.path;
                let reason = format!("field 'files[{number}].filepath' is repeated: {path:?}");
                self.find(line, None, Error, reason);
            }
        }
        Ok(())
    }

    fn label(&mut self, line: usize, object: Object, id: Option<String>) -> Result<()> {
        let label = Label::read(self.path, line, object)?;
        self.scales.add(line, &label);
        let mut find = |severity, reason: &str| self.find(line, id.clone(), severity, reason);
        if label.prompt.is_empty() {
            find(Note, "no left context: its prompt is empty");
        }
        if label.right_context.is_empty() {
            find(Note, "no right context: 'right_context' is empty");
        }
        if label.cross_file.is_empty() {
            find(Note, "no cross-file context: 'crossfile_context' is empty");
        }
        Ok(())
    }

    fn request(&mut self, line: usize, object: &Object) {
        let body = object.get("body").and_then(Value::as_object);
        let has = |name: &str| body.is_some_and(|body| body.contains_key(name));
        if !has("prompt") && !has("messages") {
            let reason = "field 'body.prompt' or 'body.messages' is missing";
            self.find(line, None, Error, reason);
        }
        if !has("model") {
            self.find(line, None, Error, "field 'body.model' is missing");
        }
    }
}
