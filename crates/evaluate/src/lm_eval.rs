//! Reading of samples of lm-evaluation-harness as predictions: its log has one line per document, with the document and the
//! model's answers.
//!
//! The documents come from `repoformer_formats::convert::lm_eval`. Answers are read as the model gave them, before any filter,
//! and cut at the stop texts in the record: some servers include stop texts in answers, and chat models receive only four stop
//! texts.

use std::path::Path;

use repoformer_core::completion::AnswerCut;
use repoformer_core::task::kind::RecordKind;
use repoformer_store::error::Result;
use repoformer_store::jsonl::{Fields, Object};
use serde_json::{Value, json};

/// Instruction that marks answers to a prompt that differs from the document's.
const CHANGED: &str = "the prompt was changed by lm-evaluation-harness";

/// Filter that leaves answers unchanged.
const NO_FILTER: &str = "none";

/// Returns true if a record is a sample of lm-evaluation-harness.
pub(crate) fn is_sample(record: &Object) -> bool {
    RecordKind::from_record(record) == Some(RecordKind::LmEvalSample)
}

/// Returns true if a prediction answers a prompt that lm-evaluation-harness changed: with a chat template, a system message or
/// examples, or by taking the prompt from an older cache.
pub(crate) fn is_changed(prediction: &Object) -> bool {
    let instruction = prediction.get("asked").and_then(|asked| asked.get("instruction"));
    instruction.is_some_and(|instruction| instruction == CHANGED)
}

/// Returns a sample as a prediction in RepoCoder's format, with the parameters of its request; other records are returned
/// unchanged.
///
/// # Errors
/// A field is missing or of another type, or the sample was filtered.
pub fn as_prediction(path: &Path, line: usize, record: Object) -> Result<Object> {
    if !is_sample(&record) {
        return Ok(record);
    }
    RecordKind::LmEvalSample.check(path, line, &record)?;
    let fields = Fields::new(path, line, "", &record);
    let doc = fields.object("doc")?;
    let of_doc = fields.below("doc.", doc);
    let filter = record.get("filter").filter(|filter| !filter.is_null());
    if let Some(filter) = filter.filter(|filter| *filter != NO_FILTER) {
        return Err(
            fields.error(format!("has filter {filter}; use the samples of filter \"{NO_FILTER}\""))
        );
    }
    let text = |name: &str| of_doc.optional_string(name).map(Option::unwrap_or_default);
    let (sent, withheld) = (text("prompt")?, text("withheld")?);
    let mut metadata = match doc.get("metadata") {
        None | Some(Value::Null) => Object::new(),
        Some(_) => of_doc.object("metadata")?.clone(),
    };
    // Columns of its data sets have a value in every row, `null` if necessary.
    metadata.retain(|_, value| !value.is_null());
    metadata.insert("task_id".into(), of_doc.task_id()?.into());
    if let Some(target) = of_doc.optional_string("target")? {
        metadata.insert("ground_truth".into(), target.into());
    }
    let ending = metadata.shift_remove("prompt_end");
    let asked = request_fields(&record, sent, ending);
    let stops = asked.get("stop").and_then(Value::as_array).into_iter().flatten();
    let stops = stops.filter_map(Value::as_str).filter(|stop| !stop.is_empty());
    let stops: Vec<String> = stops.map(str::to_owned).collect();
    let cut = AnswerCut::new(&stops, withheld);
    let choice = |answer: &Value| {
        let written = answer.as_str().ok_or_else(|| fields.error(ONE_REQUEST))?;
        let text = &written[cut.span(written)];
        let mut choice = json!({ "text": text });
        if text != written {
            choice["written"] = written.into();
        }
        Ok(choice)
    };
    let choices = match fields.list("resps")? {
        [Value::Array(answers)] => answers.iter().map(choice).collect::<Result<_>>()?,
        _ => return Err(fields.error(ONE_REQUEST)),
    };
    let mut prediction = Object::new();
    prediction.insert("prompt".into(), format!("{sent}{withheld}").into());
    prediction.insert("metadata".into(), metadata.into());
    prediction.insert("choices".into(), Value::Array(choices));
    prediction.insert("asked".into(), asked.into());
    Ok(prediction)
}

const ONE_REQUEST: &str = "field 'resps' must be the texts of one request, [[\"…\"]]";

/// Returns the parameters of the request, with the names that a server's predictions use.
fn request_fields(record: &Object, sent: &str, ending: Option<Value>) -> Object {
    let arguments = record.get("arguments").and_then(|arguments| arguments.get("gen_args_0"));
    let argument = |name: &str| arguments.and_then(|arguments| arguments.get(name));
    let mut asked = Object::new();
    if let Some(Value::Object(sampling)) = argument("arg_1") {
        // An option of the command takes precedence over the task's own.
        let limit = sampling.get("max_tokens").or_else(|| sampling.get("max_gen_toks"));
        asked.extend(limit.map(|limit| ("max_tokens".to_owned(), limit.clone())));
        let temperature = sampling.get("temperature").cloned().unwrap_or_else(|| json!(0.0));
        asked.insert("temperature".into(), temperature);
        let stop = match sampling.get("until") {
            Some(Value::Array(texts)) if texts.is_empty() => None,
            Some(Value::String(text)) => Some(json!([text])),
            other => other.filter(|texts| !texts.is_null()).cloned(),
        };
        asked.extend(stop.map(|stop| ("stop".to_owned(), stop)));
        let known = ["max_tokens", "max_gen_toks", "temperature", "until", "do_sample"];
        let others = sampling.iter().filter(|(name, _)| !known.contains(&name.as_str()));
        asked.extend(others.map(|(name, value)| (name.clone(), value.clone())));
    }
    asked.extend(ending.map(|ending| ("prompt_end".to_owned(), ending)));
    if argument("arg_0").is_some_and(|prompt| prompt != sent) {
        asked.insert("instruction".into(), CHANGED.into());
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(record: Value) -> Result<Value> {
        let Value::Object(record) = record else { panic!() };
        as_prediction(Path::new("s.jsonl"), 3, record).map(Value::Object)
    }

    /// Returns a record as version 0.4.13 writes it, without hashes.
    fn sample() -> Value {
        json!({
            "doc_id": 0, "target": "x = 1", "filter": "none", "metrics": ["repocoder.em"], "repocoder.em": 1.0,
            "doc": {
                "prompt": "def f():", "withheld": "\n    ", "target": "x = 1", "task_id": "a/0", "metrics": ["repocoder"],
                "metadata": {"fpath_tuple": ["a", "f.py"], "line_no": 1, "row": 0, "mode": "rg1", "prompt_style": null, "prompt_end": "before-whitespace"},
            },
            "arguments": {"gen_args_0": {"arg_0": "def f():", "arg_1": {"until": ["<eos>"], "max_gen_toks": 50, "do_sample": false, "temperature": 0.0}}},
            "resps": [["\n    x = 1\n", ""]], "filtered_resps": ["\n    x = 1\n"],
        })
    }

    #[test]
    fn a_sample_is_a_prediction_with_its_task_and_settings() {
        let wanted = json!({
            "prompt": "def f():\n    ",
            "metadata": {"fpath_tuple": ["a", "f.py"], "line_no": 1, "row": 0, "mode": "rg1", "task_id": "a/0", "ground_truth": "x = 1"},
            "choices": [
                {"text": "x = 1\n", "written": "\n    x = 1\n"},
                {"text": ""},
            ],
            "asked": {"max_tokens": 50, "temperature": 0.0, "stop": ["<eos>"], "prompt_end": "before-whitespace"},
        });
        assert_eq!(read(sample()).unwrap(), wanted);
        let other = json!({"task_id": "a", "pred": "x"});
        assert_eq!(read(other.clone()).unwrap(), other);
    }

    #[test]
    fn answers_end_at_the_stop_texts_of_the_record() {
        let of = |stops: Value, answer: &str| {
            let mut sample = sample();
            sample["arguments"]["gen_args_0"]["arg_1"]["until"] = stops;
            sample["resps"] = json!([[answer]]);
            read(sample).unwrap()["choices"][0].clone()
        };
        let kept = "\n    x = 1<|file_sep|>b.py";
        let cut = json!({"text": "x = 1", "written": kept});
        assert_eq!(of(json!(["<a>", "<b>", "<c>", "<d>", "<|file_sep|>"]), kept), cut);
        assert_eq!(of(json!("<|file_sep|>"), kept), cut);
        // A stop text that could begin in the withheld white space is searched for after that white space.
        assert_eq!(of(json!(["\n"]), "\n    x = 1\n    y")["text"], "x = 1");
        assert_eq!(of(json!([""]), "\n    x = 1")["text"], "x = 1");
    }

    #[test]
    fn a_changed_prompt_shows() {
        let of = |prompt: &str| {
            let mut sample = sample();
            sample["arguments"]["gen_args_0"]["arg_0"] = prompt.into();
            is_changed(read(sample).unwrap().as_object().unwrap())
        };
        assert_eq!([of("def f():"), of("You complete code.\n\ndef f():")], [false, true]);
    }

    #[test]
    fn samples_of_other_kinds_are_refused() {
        let of = |change: &dyn Fn(&mut Value)| {
            let mut sample = sample();
            change(&mut sample);
            read(sample).unwrap_err().to_string()
        };
        for (found, wanted) in [
            (
                of(&|sample| sample["filter"] = "strict".into()),
                "has filter \"strict\"; use the samples of filter \"none\"",
            ),
            (
                of(&|sample| sample["resps"] = json!([[["-1.5", "False"]], [["-2.5", "False"]]])),
                ONE_REQUEST,
            ),
            (of(&|sample| sample["resps"] = json!([[["-1.5", "False"]]])), ONE_REQUEST),
            (
                of(&|sample| drop(sample["doc"].as_object_mut().unwrap().remove("task_id"))),
                "field 'doc.task_id' is missing",
            ),
        ] {
            assert_eq!(found, format!("s.jsonl:3: {wanted}"));
        }
    }
}
