//! Conversion of prompts to a task of lm-evaluation-harness: its documents, its description, and the functions that score its
//! answers.
//!
//! The harness requests a completion of each prompt and scores it with `utils.py`, whose values and means are bit-for-bit equal to
//! the values of [`repoformer_evaluate::score`]. Only metrics that need no parser are written, since lm-evaluation-harness runs
//! elsewhere. [`repoformer_evaluate::predictions`] reads the log of its answers.

use std::collections::BTreeSet;
use std::path::Path;

use repoformer_core::completion::{CompletionRequest, Ending};
use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::FunctionBodies;
use repoformer_core::prompt::style::stops_of;
use repoformer_core::task::TaskSet;
use repoformer_core::task::kind::RecordKind;
use repoformer_evaluate::predictions::{TaskIndex, TaskMatch, warning};
use repoformer_store::error::{Error, Result, keep};
use repoformer_store::jsonl::{self, Fields, Object};
use repoformer_text::counts::format_count;
use serde_json::{Value, json};

use super::stream::{Conversion, TargetFormat, other_kind};

/// Functions that are the same for every task: they read the documents and score answers. A file of this name that begins with
/// the same first line is an older version of these functions.
pub const UTILS: &str = include_str!("utils.py");

/// Name of the file of the functions.
pub const UTILS_NAME: &str = "utils.py";

/// Metrics that `utils.py` computes.
pub const METRICS: [Metric; 3] = [Metric::RepoCoder, Metric::Repoformer, Metric::Chars];

/// Settings of a task of lm-evaluation-harness, in addition to the prompts.
#[derive(Debug, Clone, Copy)]
pub struct LmEvalSettings<'a> {
    /// Tasks of the prompts.
    pub tasks: &'a TaskSet,
    /// Whether the tasks' holes are function bodies, which Repoformer's metric cuts with a parser.
    pub bodies: FunctionBodies,
    /// Metrics, at least one.
    pub metrics: &'a [Metric],
    /// Name of the task; by default, a combination of the tasks' file, the mode and the prompts' style.
    pub name: Option<&'a str>,
    /// Greatest number of tokens of an answer.
    pub max_tokens: usize,
    /// Stop texts in addition to the style's.
    pub stop: &'a [String],
    /// Treatment of white space at the end of a prompt.
    pub ending: Ending,
}

/// Task of lm-evaluation-harness.
#[derive(Debug)]
pub struct LmEvalTask {
    /// Name of the task.
    pub name: String,
    /// Names and contents of its files.
    pub files: Vec<(String, String)>,
    /// Number of its documents, and problems of the conversion.
    pub conversion: Conversion,
}

/// Converts a file of prompts to a task. Its documents are in the order of the tasks, so that sums are computed in the same
/// order as in our scores.
///
/// # Errors
/// The file cannot be read, a metric cannot be computed there, a task has several prompts, or the prompts differ in the texts
/// that end an answer.
pub fn lm_eval(path: &Path, settings: &LmEvalSettings<'_>) -> Result<LmEvalTask> {
    check_metrics(settings)?;
    let text = jsonl::read(path)?;
    let mut documents = Documents {
        path,
        settings,
        index: TaskIndex::new(settings.tasks),
        asking: None,
        of_task: vec![None; settings.tasks.tasks().len()],
        modes: BTreeSet::new(),
        styles: BTreeSet::new(),
    };
    let mut conversion = Conversion::default();
    for (at, bytes) in jsonl::records(&text) {
        match jsonl::parse(path, at.line, bytes) {
            Ok(object) => documents.add(at.line, &object, &mut conversion.problems)?,
            Err(problem) => keep(&mut conversion.problems, path, problem),
        }
    }
    let numbered = warning(path, &documents.index.finish(path)?);
    conversion.warnings.extend(numbered.map(Into::into));
    let found: Vec<&Value> =
        documents.of_task.iter().flatten().map(|(_, document)| document).collect();
    conversion.records = found.len();
    let missing = documents.of_task.len() - found.len();
    if missing > 0 && !found.is_empty() {
        let tasks = settings.tasks.path.display();
        conversion.warnings.push(
            format!(
                "{} of {tasks} {} no prompt; means are over the other {}",
                format_count(missing as u64, "task"),
                if missing == 1 { "has" } else { "have" },
                found.len()
            )
            .into(),
        );
    }
    let name = match settings.name {
        Some(name) => checked_name(name)?,
        None => documents.name(),
    };
    let lines: String = found.iter().map(|document| format!("{document}\n")).collect();
    let description = documents.description(&name, &blake3::hash(&text).to_hex());
    let files = vec![
        (format!("{name}.jsonl"), lines),
        (UTILS_NAME.to_owned(), UTILS.to_owned()),
        (format!("{name}.yaml"), description),
    ];
    Ok(LmEvalTask { name, files, conversion })
}

/// Rejects metrics whose values would differ from our scores.
fn check_metrics(settings: &LmEvalSettings<'_>) -> Result<()> {
    let refused = |reason: String| Err(Error::parameter("metrics", reason));
    for metric in settings.metrics {
        if !METRICS.contains(metric) {
            let known = METRICS.map(Metric::name).join(", ");
            return refused(format!(
                "lm-evaluation-harness cannot compute {metric} like `eval`; use {known}"
            ));
        }
    }
    let FunctionBodies { looked_at, found, unknown } = settings.bodies;
    if settings.metrics.contains(&Metric::Repoformer)
        && (settings.bodies.are_all() || settings.bodies.are_unsure())
    {
        return refused(format!(
            "repoformer cuts function bodies with a parser, which lm-evaluation-harness lacks, and \
             {found} of the first {looked_at} holes are function bodies ({unknown} unknown)"
        ));
    }
    Ok(())
}

/// Rejects names that cannot be used for files or in lists of tasks.
fn checked_name(name: &str) -> Result<String> {
    if !name.is_empty() && name.chars().all(is_of_name) {
        return Ok(name.to_owned());
    }
    let reason = format!("'{name}' may contain only letters, digits, '_', '-' and '.'");
    Err(Error::parameter("name", reason))
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Documents during the conversion.
struct Documents<'a> {
    path: &'a Path,
    settings: &'a LmEvalSettings<'a>,
    index: TaskIndex<'a>,
    /// Line of the first prompt, and its request settings.
    asking: Option<(usize, CompletionRequest)>,
    /// Line and document of each task.
    of_task: Vec<Option<(usize, Value)>>,
    /// Modes and styles of the prompts.
    modes: BTreeSet<String>,
    styles: BTreeSet<String>,
}

impl<'a> Documents<'a> {
    /// Adds the document of a record, or the reason why it has none; an error ends the conversion.
    fn add(&mut self, line: usize, object: &Object, problems: &mut Vec<Error>) -> Result<()> {
        let (place, prompt) = match self.prompt(line, object) {
            Ok(found) => found,
            Err(problem) => {
                keep(problems, self.path, problem);
                return Ok(());
            }
        };
        let task = &self.settings.tasks.tasks()[place];
        if let Some((other, _)) = &self.of_task[place] {
            return Err(self.wrong(
                format!(
                    "lines {other} and {line} are prompts of the same task, {}, but \
                     lm-evaluation-harness needs one per task",
                    task.id
                ),
                "pass the prompts of one mode and one sample",
            ));
        }
        let asking = self.asking(line, object)?;
        let (sent, withheld) = asking.ending.split(prompt);
        if let Some(stop) = asking.withheld_stop(prompt) {
            return Err(self.wrong(
                format!(
                    "line {line}: stop text {stop:?} can match the white space removed from the \
                     end of the prompt, and would end the answer at once"
                ),
                "keep the white space at the end of prompts, or omit that stop text",
            ));
        }
        let metadata = object.get("metadata").and_then(Value::as_object);
        let said = |name: &str| metadata.and_then(|metadata| metadata.get(name)?.as_str());
        for (name, known) in [("mode", &mut self.modes), ("prompt_style", &mut self.styles)] {
            if let Some(value) = said(name).filter(|value| !known.contains(*value)) {
                known.insert(value.to_owned());
            }
        }
        let folders: Vec<&str> = task.path.split('/').collect();
        let metrics: Vec<&str> = self.settings.metrics.iter().map(|metric| metric.name()).collect();
        // Every document has the same fields, the columns of a table.
        let document = json!({
            "prompt": sent, "withheld": withheld, "target": task.ground_truth, "task_id": task.id, "metrics": metrics,
            "metadata": {
                "fpath_tuple": folders, "line_no": task.line_no, "row": task.row, "mode": said("mode"),
                "prompt_style": said("prompt_style"), "prompt_style_digest": said("prompt_style_digest"),
                "prompt_end": asking.ending.name(),
            },
        });
        self.of_task[place] = Some((line, document));
        Ok(())
    }

    /// Returns a record's prompt and the index of its task.
    fn prompt<'o>(&self, line: usize, object: &'o Object) -> Result<(usize, &'o str)>
    where
        'a: 'o,
    {
        let fields = Fields::new(self.path, line, "", object);
        if RecordKind::from_record(object) != Some(RecordKind::Prompt) {
            return Err(other_kind(self.path, line, object, TargetFormat::LmEval));
        }
        RecordKind::Prompt.check(self.path, line, object)?;
        let prompt = fields.string("prompt")?;
        let TaskMatch::Task(place) = self.index.find(self.path, line, object)? else {
            return Err(fields.error("several tasks have this id; add metadata.row"));
        };
        let task = &self.settings.tasks.tasks()[place];
        let problem = |reason: &str| Error::Task {
            path: self.path.to_owned(),
            line,
            task_id: task.id.clone(),
            reason: reason.into(),
        };
        if prompt.is_empty() {
            return Err(problem("its prompt is empty, which lm-evaluation-harness cannot send"));
        }
        if said_target(object).is_some_and(|said| said != task.ground_truth) {
            let file = self.settings.tasks.path.display();
            return Err(problem(&format!("its target differs from the one in {file}")));
        }
        Ok((place, prompt))
    }

    /// Returns the request settings of a prompt, which must be the same for all.
    fn asking(&mut self, line: usize, object: &Object) -> Result<CompletionRequest> {
        let mut asking = CompletionRequest {
            stop: self.settings.stop.to_vec(),
            ending: self.settings.ending,
            ..CompletionRequest::new("", self.settings.max_tokens)
        };
        asking.add_stops(stops_of(object));
        match &self.asking {
            None => self.asking = Some((line, asking.clone())),
            Some((first, other)) if other.stop != asking.stop => {
                return Err(self.wrong(
                    format!(
                        "lines {first} and {line} have different stop texts, {:?} and {:?}, but a \
                         harness task has only one list",
                        other.stop, asking.stop
                    ),
                    "pass the prompts of one style",
                ));
            }
            Some(_) => {}
        }
        Ok(asking)
    }

    fn wrong(&self, reason: String, hint: &str) -> Error {
        Error::artifact(self.path, reason, hint)
    }

    /// Returns the task's name: `repoformer_line_rg1`, and the style if it is not RepoCoder's.
    fn name(&self) -> String {
        let tasks = &self.settings.tasks.path;
        let file = tasks.file_name().unwrap_or_default().to_string_lossy();
        let stem = file.split_once(".json").map_or(&*file, |(stem, _)| stem);
        let one_of = |names: &BTreeSet<String>| match names.len() {
            0 | 1 => names.first().cloned(),
            _ => Some("mixed".to_owned()),
        };
        let parts = [Some(stem.to_owned()), one_of(&self.modes), one_of(&self.styles)];
        let name = parts
            .into_iter()
            .flatten()
            .fold("repoformer".to_owned(), |name, part| format!("{name}_{part}"));
        name.chars().map(|c| if is_of_name(c) { c } else { '_' }).collect()
    }

    /// Returns the task's YAML file.
    fn description(&self, name: &str, digest: &str) -> String {
        let stops = self.asking.iter().flat_map(|(_, asking)| &asking.stop);
        let stops: Vec<String> = stops.map(|stop| yaml(stop)).collect();
        let metrics = self.settings.metrics.iter().flat_map(|metric| {
            metric.values().iter().map(move |value| (format!("{metric}.{value}"), true))
        });
        let metrics = metrics.chain([("empty".to_owned(), false)]).map(|(name, is_better)| {
            format!(
                "  - metric: {name}\n    aggregation: !function utils.mean\n    higher_is_better: {is_better}\n"
            )
        });
        let list = |names: &BTreeSet<String>| {
            names.iter().map(|name| yaml(name)).collect::<Vec<_>>().join(", ")
        };
        format!(
            "# Made by repoformer; needs lm-eval 0.4.10 or newer.
task: {quoted}
custom_dataset: !function utils.documents
dataset_kwargs:
  documents_file: {file}
test_split: test
output_type: generate_until
doc_to_text: prompt
doc_to_target: target
# A prompt is sent as it is: nothing before it, nothing behind it.
description: \"\"
target_delimiter: \"\"
fewshot_delimiter: \"\"
num_fewshot: 0
generation_kwargs:
  until: [{stops}]
  max_gen_toks: {max_tokens}
  do_sample: false
  temperature: 0.0
repeats: 1
process_results: !function utils.score
metric_list:
{metrics}should_decontaminate: false
metadata:
  version: 1
  made_by: repoformer {version}
  prompts_digest: {digest}
  modes: [{modes}]
  prompt_styles: [{styles}]
  prompt_end: {ending}
",
            quoted = yaml(name),
            file = yaml(&format!("{name}.jsonl")),
            stops = stops.join(", "),
            max_tokens = self.settings.max_tokens,
            metrics = metrics.collect::<String>(),
            version = env!("CARGO_PKG_VERSION"),
            modes = list(&self.modes),
            styles = list(&self.styles),
            ending = self.settings.ending,
        )
    }
}

/// Returns the target that a prompt names.
fn said_target(object: &Object) -> Option<&str> {
    let of_metadata = object.get("metadata").and_then(|metadata| metadata.get("ground_truth"));
    object.get("groundtruth").or(of_metadata)?.as_str()
}

/// Returns a text in quotation marks for YAML, in ASCII: YAML rejects some characters that JSON allows.
fn yaml(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            ' '..='~' => quoted.push(c),
            c => quoted += &format!("\\U{:08x}", u32::from(c)),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests;
