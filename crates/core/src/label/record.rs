//! Records of Repoformer's training data, labelled or not: a hole, its contexts, and the effect of retrieval.

use std::path::Path;

use repoformer_store::error::Result;
use repoformer_store::jsonl::{Fields, Object};
use repoformer_text::language::Language;
use repoformer_text::lines::{Lines, strip};
use serde_json::{Value, json};

use super::draw::InstanceKind;
use super::fragments::FragmentGains;
use crate::completion::{Confidence, Sample};
use crate::task::cross_file::CrossFile;
use crate::task::kind::RecordKind;
use crate::task::{Format, NO_TARGET, Task, check_place, read_cross_file, write_cross_file};

/// Name of the probability of the target among the metrics of labels.
pub const LIKELIHOOD: &str = "likelihood";
/// Name of the unit-test pass rate among the metrics of labels.
pub const PASS: &str = "pass";

/// Kind of fragments of the instances that `label sample` draws, in the words of
/// [`Experiment::fragments_name`](repoformer_pipeline::Experiment::fragments_name).
const DRAWN: &str = "chunks ranked by jaccard";

/// One record: `metadata{task_id "file/start_end", filename, start_i, end_i}, prompt, groundtruth, right_context,
/// crossfile_context`. Judged records also have `es_infile, es_rg1, generation_model` (`3_generate_labelled_data.py`), and
/// fields that this toolkit adds: `label`, `threshold`, `metric`, `fragments`, `em_infile`, `em_rg1`, `pass_infile`,
/// `pass_rg1`, and [`Signals`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Label {
    /// `file/start_end`.
    pub id: String,
    /// `repository/folder/…/file.py`.
    pub filename: String,
    /// First line of the hole, numbered among the non-blank lines, or among all lines for a function of the released program.
    pub start: usize,
    /// Line after the last line of the hole.
    pub end: usize,
    /// Left context.
    pub prompt: String,
    /// Text that was in the hole.
    pub ground_truth: String,
    /// Right context.
    pub right_context: String,
    /// Retrieved fragments.
    pub cross_file: CrossFile,
    /// Edit similarity of the completion without retrieval, from 0 to 1, or from 0 to 100 in records of the released program.
    pub es_infile: Option<f64>,
    /// Edit similarity of the completion with retrieval.
    pub es_rg1: Option<f64>,
    /// Exact match of the completion without retrieval, 0 or 1.
    pub em_infile: Option<f64>,
    /// Exact match of the completion with retrieval, 0 or 1.
    pub em_rg1: Option<f64>,
    /// Unit-test pass rate of the completion without retrieval, between 0 and 1.
    pub pass_infile: Option<f64>,
    /// Unit-test pass rate of the completion with retrieval, between 0 and 1.
    pub pass_rg1: Option<f64>,
    /// Probability of the target without retrieval: the geometric mean over its characters.
    pub likelihood_infile: Option<f64>,
    /// Probability of the target with retrieval.
    pub likelihood_rg1: Option<f64>,
    /// Gains of sets of the fragments, if they were measured.
    pub gains: FragmentGains,
    /// Kind of fragments that were retrieved, such as `chunks ranked by jaccard`, if known.
    pub fragments: Option<String>,
    /// Metric of the similarities; `pass` or `likelihood` if one of these decides the label.
    pub metric: Option<String>,
    /// Signals of the model's confidence.
    pub signals: Signals,
    /// Name of the model.
    pub generation_model: Option<String>,
    /// Whether retrieval helped: the gain exceeds the threshold.
    pub label: Option<bool>,
    /// Threshold that the gain must exceed.
    pub threshold: Option<f64>,
    /// Record as it was read, including unknown fields.
    pub record: Object,
}

/// Signals of a model's confidence in a completion without retrieval, used by some policies.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Signals {
    /// `min_logprob`: natural logarithm of the probability of the least probable token of the completion; for an empty
    /// completion, the logarithm of the smallest positive number.
    pub min_logprob: Option<f64>,
    /// `entropy`: entropy of the distribution over completions, estimated from samples, in nats.
    pub entropy: Option<f64>,
    /// `cc_probability`: probability of the token that requests retrieval, after the end of the current file.
    pub cc_probability: Option<f64>,
    /// `cc_likeliest`: whether this token is the most probable next token.
    pub cc_likeliest: Option<bool>,
}

impl Signals {
    /// Reads the signals of a prediction. Computes the least log-probability from the tokens if it is not given.
    pub fn of_prediction(record: &Object) -> Self {
        let number = |value: Option<&Value>| value.and_then(Value::as_f64);
        let choice = record.get("choices").and_then(|choices| choices.get(0));
        let logprobs =
            choice.and_then(|choice| choice.get("logprobs")?.get("token_logprobs")?.as_array());
        let least = || {
            let choice = choice?;
            let text = choice.get("text").and_then(Value::as_str).unwrap_or_default();
            let sample = Sample::new(text, choice.get("logprobs"));
            let known = if sample.tokens.is_empty() {
                // Tokens without texts are assumed to be the completion's. If one is -Infinity, the least is unknown.
                let known = logprobs?.iter().filter(|logprob| !logprob.is_null());
                known.map(Value::as_f64).collect::<Option<_>>()?
            } else {
                sample.logprobs(0..text.len())
            };
            Some(Confidence::from_logprobs(&known)?.min_logprob)
        };
        let given = number(choice.and_then(|choice| choice.get("min_logprob")));
        Self {
            min_logprob: given.or_else(least),
            entropy: number(record.get("entropy")),
            cc_probability: Self::requested_probability(record),
            cc_likeliest: Self::is_likeliest(record),
        }
    }

    /// Reads the probability of a requested token.
    pub fn requested_probability(record: &Object) -> Option<f64> {
        record.get("next_token")?.get("probability")?.as_f64()
    }

    /// Reads whether a requested token is the most probable one.
    pub fn is_likeliest(record: &Object) -> Option<bool> {
        record.get("next_token")?.get("is_likeliest")?.as_bool()
    }

    /// Returns the names and values of the numeric fields.
    fn fields(&mut self) -> [(&'static str, &mut Option<f64>); 3] {
        [
            ("min_logprob", &mut self.min_logprob),
            ("entropy", &mut self.entropy),
            ("cc_probability", &mut self.cc_probability),
        ]
    }
}

/// Returns true if `label sample` drew the instance.
fn is_drawn(record: &Object) -> bool {
    record.get("metadata").is_some_and(|metadata| metadata.get("query_has_target").is_some())
}

impl Label {
    /// Converts a task of any benchmark; fields that the label format lacks stay in the metadata.
    pub fn of_task(task: &Task) -> Self {
        let end = task.line_no + Lines::new(&task.ground_truth).count();
        let right_context = task.right_context.as_deref().unwrap_or_default().to_owned();
        let cross_file = task.cross_file.clone().unwrap_or_default();
        let mut metadata = json!({
            "task_id": task.id, "filename": task.path, "start_i": task.line_no, "end_i": end,
            "row": task.row,
        });
        for (name, value) in task.metadata.to_object() {
            if metadata.get(&name).is_none() && name != "ground_truth" {
                metadata[name] = value;
            }
        }
        let mut record = Object::new();
        record.insert("metadata".into(), metadata);
        record.insert("prompt".into(), (&*task.prompt).into());
        record.insert("groundtruth".into(), task.ground_truth.clone().into());
        record.insert("right_context".into(), right_context.clone().into());
        let shown = write_cross_file(&cross_file, Format::CrossCodeEval);
        record.insert("crossfile_context".into(), shown);
        Self {
            id: task.id.clone(),
            filename: task.path.clone(),
            start: task.line_no,
            end,
            prompt: task.prompt.to_string(),
            ground_truth: task.ground_truth.clone(),
            right_context,
            cross_file,
            record,
            ..Self::default()
        }
    }

    /// Returns true if retrieval helped: the label says so or, in a record of the released program without a label, the
    /// similarity with retrieval is higher. `None` if the record is not judged.
    pub fn retrieval_helps(&self) -> Option<bool> {
        self.label.or_else(|| Some(self.es_rg1? > self.es_infile?))
    }

    /// Returns the kind of hole that the record names.
    pub fn kind(&self) -> Option<InstanceKind> {
        self.record.get("metadata")?.get("kind")?.as_str()?.parse().ok()
    }

    /// Returns the language of the file.
    pub(super) fn language(&self) -> Language {
        Language::of_path(&self.filename).unwrap_or_default()
    }

    /// Replaces the cross-file context, and the right context if one is given.
    pub fn show(&mut self, cross_file: CrossFile, right: Option<String>) {
        if let Some(right) = right {
            self.record.insert("right_context".into(), right.as_str().into());
            self.right_context = right;
        }
        let shown = write_cross_file(&cross_file, Format::CrossCodeEval);
        self.record.insert("crossfile_context".into(), shown);
        self.cross_file = cross_file;
    }

    /// Removes the facts about the query that an instance was drawn with, after another query retrieved the fragments shown.
    pub fn forget_query(&mut self) {
        self.fragments = None;
        if let Some(metadata) = self.record.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.shift_remove("query_has_target");
        }
    }

    /// Reads a record at a line of a file.
    ///
    /// # Errors
    /// A field is missing or of another type.
    pub fn read(path: &Path, line: usize, record: Object) -> Result<Self> {
        RecordKind::Label.check(path, line, &record)?;
        let top = Fields::new(path, line, "", &record);
        let metadata = top.below("metadata.", top.object("metadata")?);
        check_place(&metadata)?;
        if strip(top.string("groundtruth")?).is_empty() {
            return Err(top.error(NO_TARGET));
        }
        let filename = metadata.string("filename")?.to_owned();
        let language = Language::of_path(&filename).unwrap_or_default();
        let text = |name: &str| top.optional_string(name).map(|read| read.map(str::to_owned));
        let is_drawn = is_drawn(&record);
        let mut signals = Signals::default();
        for (name, value) in signals.fields() {
            *value = top.optional_number(name)?;
        }
        signals.cc_likeliest = top.optional_flag("cc_likeliest")?;
        let score = |name: &str| top.optional_number(name);
        let cross_file = match record.get("crossfile_context") {
            Some(value) => read_cross_file(value, language).map_err(|e| top.error(e))?,
            None => None,
        };
        Ok(Self {
            id: metadata.task_id()?,
            start: metadata.count(&["start_i"])?,
            end: metadata.count(&["end_i"])?,
            filename,
            prompt: top.string("prompt")?.to_owned(),
            ground_truth: top.string("groundtruth")?.to_owned(),
            right_context: top.string("right_context")?.to_owned(),
            cross_file: cross_file.unwrap_or_default(),
            es_infile: score("es_infile")?,
            es_rg1: score("es_rg1")?,
            em_infile: score("em_infile")?,
            em_rg1: score("em_rg1")?,
            pass_infile: score("pass_infile")?,
            pass_rg1: score("pass_rg1")?,
            likelihood_infile: top.optional_number("likelihood_infile")?,
            likelihood_rg1: top.optional_number("likelihood_rg1")?,
            gains: FragmentGains::read(&top, &record)?,
            // Records of `label sample` do not name their fragments, which are always of this kind.
            fragments: text("fragments")?.or_else(|| is_drawn.then(|| DRAWN.to_owned())),
            metric: text("metric")?,
            signals,
            generation_model: text("generation_model")?,
            label: top.optional_flag("label")?,
            threshold: top.optional_number("threshold")?,
            record,
        })
    }

    /// Returns the record with the current judgement; all other fields are as they were read.
    pub fn to_record(&self) -> Value {
        let mut record = self.record.clone();
        let mut signals = self.signals;
        let said = signals.fields().map(|(name, value)| (name, value.map(Value::from)));
        // Drawn records are recognized by their metadata, so they need not name their fragments.
        let fragments = self.fragments.clone().filter(|_| !is_drawn(&record));
        let judgement: [(&str, Option<Value>); 15] = [
            ("es_infile", self.es_infile.map(Into::into)),
            ("es_rg1", self.es_rg1.map(Into::into)),
            ("em_infile", self.em_infile.map(Into::into)),
            ("em_rg1", self.em_rg1.map(Into::into)),
            ("pass_infile", self.pass_infile.map(Into::into)),
            ("pass_rg1", self.pass_rg1.map(Into::into)),
            ("likelihood_infile", self.likelihood_infile.map(Into::into)),
            ("likelihood_rg1", self.likelihood_rg1.map(Into::into)),
            (FragmentGains::FIELD, self.gains.to_value()),
            ("fragments", fragments.map(Into::into)),
            ("metric", self.metric.clone().map(Into::into)),
            ("cc_likeliest", signals.cc_likeliest.map(Into::into)),
            ("generation_model", self.generation_model.clone().map(Into::into)),
            ("label", self.label.map(Into::into)),
            ("threshold", self.threshold.map(Into::into)),
        ];
        for (name, value) in judgement.into_iter().chain(said) {
            let same = record.get(name).is_some_and(|old| {
                Some(old) == value.as_ref()
                    || old.is_null() && value.is_none()
                    || old.as_f64().is_some()
                        && old.as_f64() == value.as_ref().and_then(Value::as_f64)
            });
            match value {
                Some(value) if !same => {
                    record.insert(name.into(), value);
                }
                // The value belongs to an earlier completion.
                None if !same => {
                    record.shift_remove(name);
                }
                _ => {}
            }
        }
        Value::Object(record)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(record: Value) -> Result<Label> {
        let Value::Object(record) = record else { panic!() };
        Label::read(Path::new("l.jsonl"), 3, record)
    }

    /// vLLM also lists the token of the text that ended a completion.
    #[test]
    fn a_completion_is_as_doubtful_as_its_own_tokens() {
        let logprobs = json!({
            "tokens": ["\n    x", " =", " 16", "\n"], "token_logprobs": [-0.1, -0.2, -0.3, -7.0],
        });
        let least = |text: &str, logprobs: &Value| {
            let record = json!({"choices": [{"text": text, "logprobs": logprobs}]});
            Signals::of_prediction(record.as_object().unwrap()).min_logprob
        };
        assert_eq!(least("\n    x = 16", &logprobs), Some(-0.3));
        assert_eq!(least("", &logprobs), None);
        // Texts that do not spell the completion: it is unknown which tokens belong to it.
        assert_eq!(least("y", &logprobs), None);
        assert_eq!(least("y", &json!({"token_logprobs": [-0.5]})), Some(-0.5));
    }

    #[test]
    fn unknown_fields_are_kept_and_the_judgement_is_written() {
        let record = json!({
            "metadata": {"task_id": "o/r/a.py/3_5", "filename": "o/r/a.py", "start_i": 3, "end_i": 5, "more": 1},
            "prompt": "p", "groundtruth": "g", "right_context": "r", "crossfile_context": "# c",
            "es_infile": 1, "mine": [1],
        });
        let mut label = read(record.clone()).unwrap();
        assert_eq!((label.start, label.end, label.es_infile), (3, 5, Some(1.0)));
        assert_eq!(label.to_record().to_string(), record.to_string(), "1 stays 1");
        // A new judgement removes earlier signals.
        let mut earlier = record.clone();
        (earlier["min_logprob"], earlier["entropy"]) = (json!(-1.5), Value::Null);
        let mut again = read(earlier).unwrap();
        assert_eq!(again.to_record()["min_logprob"], -1.5);
        again.signals.min_logprob = None;
        let again = again.to_record();
        assert!(again.get("min_logprob").is_none() && again["entropy"].is_null());
        (label.es_rg1, label.label) = (Some(0.5), Some(false));
        let written = label.to_record();
        assert_eq!((&written["label"], &written["es_rg1"]), (&json!(false), &json!(0.5)));
        for (name, value, wanted) in [
            ("label", json!("yes"), "field 'label' must be a boolean, not a string"),
            ("es_rg1", json!("x"), "field 'es_rg1' must be a number, not a string"),
            ("crossfile_context", json!(3), "must be a string or an object, not a number"),
            ("cc_probability", json!(1.7), "must be between 0 and 1, not 1.7"),
            ("metadata", json!({"task_id": "a", "filename": "b", "start_i": 1}), "is missing"),
        ] {
            let mut bad = record.clone();
            bad[name] = value;
            let error = read(bad).unwrap_err().to_string();
            assert!(error.starts_with("l.jsonl:3: field '") && error.ends_with(wanted), "{error}");
        }
    }
}
