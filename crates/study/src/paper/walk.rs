//! Figure 1: the framework at work on two requests, one with retrieval and one without.

use std::path::Path;

use anyhow::Result;
use repoformer_core::prompt::shown::read_fragments;
use repoformer_core::retrieve::Mode;
use repoformer_evaluate::predictions;
use repoformer_evaluate::table::{NamedColumn, Printable, Table, columns, or_dash, percent};
use repoformer_pipeline::Experiment;
use repoformer_store::frame::ColumnType::{Flag, Number, Text};
use repoformer_text::message;
use serde_json::{Value, json};

use crate::fail;
use crate::judged::JudgedTasks;
use crate::settings::DECLARED;

/// Lines of a context that are shown.
const SHOWN: usize = 3;

/// The request that gains most where the policy retrieves, and of those where it does not one that is right without retrieval.
pub fn walk(experiment: &Experiment, model: &str, judged: &JudgedTasks) -> Result<TwoRequests> {
    let Some(policy) = judged.deciding() else {
        return fail(
            "figure-1 shows decisions, and no policy could decide",
            message![
                "add ",
                &DECLARED.policy,
                " learned, or self with a model that was trained to decide"
            ],
        );
    };
    let gain = |place: &usize| judged.examples[*place].gain();
    let of = |retrieves: bool| {
        (0..judged.examples.len()).filter(move |&place| policy.retrieves[place] == retrieves)
    };
    let with = of(true).max_by(|a, b| gain(a).total_cmp(&gain(b)));
    let base = |place: &usize| (judged.examples[*place].score_base, -gain(place));
    let without =
        of(false).max_by(|a, b| base(a).partial_cmp(&base(b)).unwrap_or(std::cmp::Ordering::Equal));
    let tasks = experiment.tasks()?;
    let fragments = read_fragments(&experiment.paths().prompts(judged.mode))?;
    let read = |mode: Mode| predictions::read(&experiment.paths().predictions(mode, model), tasks);
    let completions = [read(Mode::Without)?, read(judged.mode)?];
    let mut records = Vec::new();
    for place in with.into_iter().chain(without) {
        let example = &judged.examples[place];
        let Some(at) = example
            .row
            .and_then(|row| tasks.tasks().binary_search_by_key(&row, |task| task.row).ok())
        else {
            continue;
        };
        let task = &tasks.tasks()[at];
        let text = |which: usize| completions[which].predictions[at].first().cloned();
        let found = fragments.get(&task.row).map_or(&[][..], Vec::as_slice);
        let found = found.iter().take(SHOWN).map(|fragment| {
            json!({"path": &*fragment.path, "score": fragment.score, "text": head(&fragment.text)})
        });
        records.push(json!({
            "figure": "figure-1", "task_id": task.id, "file": task.path, "policy": policy.name, "score": policy.score(place),
            "threshold": policy.threshold, "retrieves": policy.retrieves[place], "left_context": tail(&task.prompt),
            "fragments": found.collect::<Vec<_>>(), "target": task.ground_truth,
            "without": {"completion": text(0), "es": example.score_base}, "with": {"completion": text(1), "es": example.score_rag},
        }));
    }
    Ok(TwoRequests { records })
}

/// Two requests, with what was decided and completed for each.
#[derive(Debug)]
pub struct TwoRequests {
    records: Vec<Value>,
}

impl Printable for TwoRequests {
    /// The requests without their texts.
    fn table(&self) -> Table {
        let head = ["task_id", "policy", "score", "threshold", "retrieves"];
        let mut table = Table::new(head.into_iter().chain(["ES without", "ES with"]));
        for record in &self.records {
            let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
            let es = |key: &str| or_dash(record[key]["es"].as_f64().map(percent));
            table.row(vec![
                text("task_id"),
                text("policy"),
                or_dash(record["score"].as_f64().map(|score| format!("{score:.3}"))),
                record["threshold"].to_string(),
                record["retrieves"].to_string(),
                es("without"),
                es("with"),
            ]);
        }
        table
    }

    fn text(&self) -> String {
        let title = "The framework at work: a request that retrieves, and one that does not";
        let parts: String = self.records.iter().map(words).collect();
        format!("{title} (Repoformer (Wu et al., ICML 2024), Figure 1)\n\n{parts}")
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.records.iter().cloned())
    }

    fn columns(&self) -> Vec<NamedColumn> {
        let texts = ["left_context", "fragments", "target"];
        columns(Text, ["figure", "task_id", "file", "policy"])
            .chain(columns(Number, ["score", "threshold"]))
            .chain(columns(Flag, ["retrieves"]))
            .chain(columns(Text, texts))
            .chain(["without", "with"].into_iter().flat_map(|with| {
                let completion = columns(Text, [format!("{with}.completion")]);
                completion.chain(columns(Number, [format!("{with}.es")]))
            }))
            .collect()
    }
}

/// A request in words.
fn words(record: &Value) -> String {
    let text = |value: &Value| indented(value.as_str().unwrap_or("(none)"));
    let decides = match record["retrieves"] == true {
        true => "above",
        false => "not above",
    };
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let mut words = format!(
        "{} in {}\n  the file ends before the hole with\n{}",
        record["task_id"].as_str().unwrap_or_default(),
        record["file"].as_str().unwrap_or_default(),
        text(&record["left_context"])
    );
    words += &format!(
        "  policy {}: {:.3}, {decides} {}: {}\n",
        record["policy"].as_str().unwrap_or_default(),
        number(&record["score"]),
        record["threshold"],
        if record["retrieves"] == true { "retrieve" } else { "complete from the file alone" },
    );
    for fragment in record["fragments"].as_array().into_iter().flatten() {
        let path = Path::new(fragment["path"].as_str().unwrap_or_default()).display();
        let is_used = if record["retrieves"] == true { "" } else { " (not used)" };
        words += &format!(
            "  retrieved{is_used}: {path}, {:.3}\n{}",
            number(&fragment["score"]),
            text(&fragment["text"])
        );
    }
    for (name, key) in [("without retrieval", "without"), ("with retrieval", "with")] {
        let one = &record[key];
        words += &format!(
            "  completion {name}, ES {:.2}\n{}",
            100.0 * number(&one["es"]),
            text(&one["completion"])
        );
    }
    format!("{words}  target\n{}\n", text(&record["target"]))
}

fn indented(text: &str) -> String {
    text.trim_matches('\n')
        .lines()
        .map(|line| format!("    {line}").trim_end().to_owned() + "\n")
        .collect()
}

fn head(text: &str) -> String {
    text.lines().take(SHOWN).collect::<Vec<_>>().join("\n")
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(SHOWN)..].join("\n")
}
