//! Figure 1: the framework at work on two requests, one with retrieval and one without.

use anyhow::Result;
use repoformer_core::prompt::shown::read_fragments;
use repoformer_core::retrieve::Mode;
use repoformer_evaluate::predictions;
use repoformer_evaluate::table::{NamedColumn, Printable, Table, columns, or_dash, percent};
use repoformer_pipeline::Experiment;
use repoformer_store::frame::ColumnType::{Flag, Number, Text};
use repoformer_text::message;
use serde::Serialize;
use serde_json::{Value, json};

use crate::fail;
use crate::judged::JudgedTasks;
use crate::settings::DECLARED;

/// Number of lines of a context that are shown.
const SHOWN: usize = 3;

/// Selects two requests: of those for which the policy retrieves, the one that gains most; of the others, one that is right
/// without retrieval.
pub fn walk(experiment: &Experiment, model: &str, judged: &JudgedTasks) -> Result<TwoRequests> {
    let Some(policy) = judged.deciding() else {
        return fail(
            "figure-1 shows decisions, but no policy could decide",
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
    let mut requests = Vec::new();
    for place in with.into_iter().chain(without) {
        let example = &judged.examples[place];
        let Some(at) = example
            .row
            .and_then(|row| tasks.tasks().binary_search_by_key(&row, |task| task.row).ok())
        else {
            continue;
        };
        let task = &tasks.tasks()[at];
        let completion = |which: usize, es: f64| Completion {
            completion: completions[which].predictions[at].first().cloned(),
            es,
        };
        let found = fragments.get(&task.row).map_or(&[][..], Vec::as_slice);
        let fragments = found.iter().take(SHOWN).map(|fragment| Fragment {
            path: fragment.path.to_string(),
            score: fragment.score,
            text: head(&fragment.text),
        });
        requests.push(Request {
            figure: "figure-1",
            task_id: task.id.clone(),
            file: task.path.clone(),
            policy: policy.name.clone(),
            score: policy.score(place),
            threshold: policy.printed_threshold(),
            retrieves: policy.retrieves[place],
            left_context: tail(&task.prompt),
            fragments: fragments.collect(),
            target: task.ground_truth.clone(),
            without: completion(0, example.score_base),
            with: completion(1, example.score_rag),
        });
    }
    Ok(TwoRequests { requests })
}

/// Request, with its decision and its two completions.
#[derive(Debug, Serialize)]
struct Request {
    figure: &'static str,
    task_id: String,
    file: String,
    policy: String,
    score: f64,
    /// Threshold; `None` if the policy has none.
    threshold: Option<f64>,
    retrieves: bool,
    /// Last lines of the left context.
    left_context: String,
    fragments: Vec<Fragment>,
    target: String,
    without: Completion,
    with: Completion,
}

/// Path, score and first lines of a retrieved fragment.
#[derive(Debug, Serialize)]
struct Fragment {
    path: String,
    score: Option<f64>,
    text: String,
}

/// Text of a completion; `None` if the file has none for the task.
#[derive(Debug, Serialize)]
struct Completion {
    completion: Option<String>,
    es: f64,
}

/// Two requests, each with the policy's decision and the completions.
#[derive(Debug)]
pub struct TwoRequests {
    requests: Vec<Request>,
}

impl Printable for TwoRequests {
    /// Returns the requests without their texts.
    fn table(&self) -> Table {
        let head = ["task_id", "policy", "score", "threshold", "retrieves"];
        let mut table = Table::new(head.into_iter().chain(["ES without", "ES with"]));
        for request in &self.requests {
            table.row(vec![
                request.task_id.clone(),
                request.policy.clone(),
                or_dash(
                    Some(request.score)
                        .filter(|score| score.is_finite())
                        .map(|score| format!("{score:.3}")),
                ),
                or_dash(request.threshold.map(|threshold| format!("{threshold:?}"))),
                request.retrieves.to_string(),
                percent(request.without.es),
                percent(request.with.es),
            ]);
        }
        table
    }

    fn text(&self) -> String {
        let title = "The framework at work: a request with retrieval, and one without";
        let parts: String = self.requests.iter().map(words).collect();
        format!("{title} (Repoformer (Wu et al., ICML 2024), Figure 1)\n\n{parts}")
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.requests.iter().map(|request| json!(request)))
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

/// Describes a request in words.
fn words(request: &Request) -> String {
    let Request { task_id, file, policy, score, threshold, retrieves, .. } = request;
    let threshold = or_dash(threshold.map(|threshold| format!("{threshold:?}")));
    let (decides, decision, is_used) = if *retrieves {
        ("above", "retrieve", "")
    } else {
        ("not above", "complete from the file alone", " (not used)")
    };
    let mut words = format!(
        "{task_id} in {file}\n  the file ends before the hole with\n{}  policy {policy}: {score:.3}, {decides} {threshold}: {decision}\n",
        indent(&request.left_context)
    );
    for Fragment { path, score, text } in &request.fragments {
        let score = or_dash(score.map(|score| format!("{score:.3}")));
        words += &format!("  retrieved{is_used}: {path}, {score}\n{}", indent(text));
    }
    for (name, Completion { completion, es }) in
        [("without retrieval", &request.without), ("with retrieval", &request.with)]
    {
        let text = indent(completion.as_deref().unwrap_or("(none)"));
        words += &format!("  completion {name}, ES {:.2}\n{text}", 100.0 * es);
    }
    format!("{words}  target\n{}\n", indent(&request.target))
}

fn indent(text: &str) -> String {
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
