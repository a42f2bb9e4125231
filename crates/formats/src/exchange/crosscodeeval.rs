//! CrossCodeEval's result files, as its `scripts/eval_metric.py` and Repoformer's `eval_metric_cceval.py` write them:
//! `results.json` (means × 100, rounded to two digits), `detailed_results.json` (one line per task, similarities × 100),
//! `prediction_truncated.jsonl` (the compared texts) and `exact_match_idx.jsonl` (the ids of exact matches, one per line). The
//! programs write tasks as their processes finish; here they are in the order of the task file.

use repoformer_core::metrics::Metric;
use repoformer_core::metrics::crosscodeeval::{Detail, detail};
use repoformer_core::postprocess::{HoleContext, Postprocess};
use repoformer_core::task::TaskSet;
use serde_json::{Value, json};

/// Names and contents of the four files.
pub type ScoreFiles = Vec<(&'static str, String)>;

/// Values of one task.
struct Line<'a> {
    task_id: &'a str,
    /// Values; without a prediction, this is the default, in which all values are 0.
    detail: Detail,
}

/// Returns the files for the first sample of each task. `samples[i]` are the samples of the i-th task. A task without samples
/// is left out, or counts as 0 if `count_missing` is set.
///
/// ```
/// use repoformer_formats::exchange::crosscodeeval::files;
/// use repoformer_core::postprocess::Postprocess;
/// use repoformer_core::task::{Task, TaskSet};
/// let task = Task::new("a/0".into(), "a/x.py", 0, 1, "x = f(y)", "");
/// let tasks = TaskSet::new("t.jsonl".into(), vec![task]);
/// let own = Postprocess::own(false);
/// let files = files(&tasks, &[vec!["x = f(y)\nz = 1\n".into()]], &own, false);
/// assert_eq!(files[3], ("exact_match_idx.jsonl", "a/0\n".into()));
/// assert!(files[0].1.contains("\"em\": 100.0"));
/// ```
pub fn files(
    tasks: &TaskSet,
    samples: &[Vec<String>],
    postprocess: &Postprocess,
    count_missing: bool,
) -> ScoreFiles {
    let recipe = postprocess.recipe(Metric::CrossCodeEval);
    let mut lines = Vec::new();
    for (task, samples) in tasks.tasks().iter().zip(samples) {
        let hole = HoleContext::new(task);
        let detail = match samples.first() {
            Some(sample) => {
                let cut = recipe.apply(hole, sample);
                detail(&cut.target, &cut.prediction, hole.language)
            }
            None if count_missing => Detail::default(),
            None => continue,
        };
        lines.push(Line { task_id: &task.id, detail });
    }
    let matches = lines.iter().filter(|line| line.detail.score.em);
    vec![
        ("results.json", results(&lines)),
        ("detailed_results.json", jsonl(&lines, detailed_record)),
        ("prediction_truncated.jsonl", jsonl(&lines, truncated_record)),
        ("exact_match_idx.jsonl", matches.map(|line| format!("{}\n", line.task_id)).collect()),
    ]
}

fn jsonl(lines: &[Line<'_>], record: impl Fn(&Line<'_>) -> Value) -> String {
    lines.iter().map(|line| format!("{}\n", record(line))).collect()
}

fn detailed_record(Line { task_id, detail }: &Line<'_>) -> Value {
    let score = &detail.score;
    json!({
        "task_id": task_id,
        "em": u8::from(score.em),
        // The whole percentage of `fuzz.ratio`, recovered from its hundredth.
        "es": (score.es * 100.0).round(),
        "es_repoeval": detail.es_repoeval * 100.0,
        "id_em": u8::from(score.id_em),
        "id_precision": score.id_precision,
        "id_recall": score.id_recall,
        "id_f1": score.id_f1,
    })
}

fn truncated_record(Line { task_id, detail }: &Line<'_>) -> Value {
    json!({
        "task_id": task_id,
        "pred": detail.prediction,
        "target": detail.target,
        "pred_ids": detail.prediction_ids,
        "target_ids": detail.target_ids,
    })
}

fn results(lines: &[Line<'_>]) -> String {
    let details: Vec<Value> = lines.iter().map(detailed_record).collect();
    let count = lines.len().max(1) as f64;
    let mean = |name: &str| {
        let values = details.iter().filter_map(|detail| detail[name].as_f64());
        // The sum of no `f64` is -0.
        values.fold(0.0, |sum, value| sum + value) / count
    };
    let record = json!({
        "em": round(mean("em") * 100.0),
        "es": round(mean("es")),
        "es_repoeval": round(mean("es_repoeval")),
        "id_em": round(mean("id_em") * 100.0),
        "id_precision": round(mean("id_precision") * 100.0),
        "id_recall": round(mean("id_recall") * 100.0),
        "id_f1": round(mean("id_f1") * 100.0),
        "total": lines.len(),
    });
    serde_json::to_string_pretty(&record).unwrap_or_default()
}

/// Rounds like Python's `round(value, 2)`: to the nearest decimal of the exact value.
fn round(value: f64) -> f64 {
    format!("{value:.2}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use repoformer_core::task::Task;

    use super::*;

    #[test]
    fn four_files() {
        let task = |row: usize, target| Task {
            row,
            ..Task::new(format!("a/{row}"), "a/x.py", 0, 1, target, "")
        };
        let tasks = TaskSet::new(
            "t.jsonl".into(),
            vec![task(0, "x = f(y)"), task(1, "x = g(z)"), task(2, "w")],
        );
        let samples = [
            vec!["x = f(y)  # two\ny\n".into()],
            vec!["x = g(y)".into(), "x = g(z)".into()],
            vec![],
        ];
        let own = Postprocess::own(false);
        let of = |count_missing| files(&tasks, &samples, &own, count_missing);
        let [(_, results), (_, details), (_, cut), (_, matches)] = &of(false)[..] else { panic!() };
        let results: Value = serde_json::from_str(results).unwrap();
        // "x = g(z)" and "x = g(y)": 2 of 16 by InDel is 87.5, rounded to even 88; 1 of 8 by Levenshtein. Identifiers x g z, x
        // g y: 2 of 3 each.
        assert_eq!(
            results,
            json!({"em": 50.0, "es": 94.0, "es_repoeval": 93.75, "id_em": 50.0, "id_precision": 83.33,
                "id_recall": 83.33, "id_f1": 83.33, "total": 2})
        );
        let detail: Value = serde_json::from_str(details.lines().nth(1).unwrap()).unwrap();
        assert_eq!(
            (&detail["em"], &detail["es"], &detail["es_repoeval"]),
            (&json!(0), &json!(88.0), &json!(87.5))
        );
        let cut: Value = serde_json::from_str(cut.lines().next().unwrap()).unwrap();
        assert_eq!(
            cut,
            json!({"task_id": "a/0", "pred": "x = f(y)  ", "target": "x = f(y)",
            "pred_ids": ["x", "f", "y"], "target_ids": ["x", "f", "y"]})
        );
        assert_eq!(matches, "a/0\n");
        let counted: Value = serde_json::from_str(&of(true)[0].1).unwrap();
        assert_eq!((&counted["total"], &counted["em"]), (&json!(3), &json!(33.33)));
    }
}
