//! Output of a sweep: every point for programs, a summary for readers.

use repoformer::selective::policy::sweep::{SweepCurve, SweepPoint};
use repoformer::selective::policy::{Example, Examples, Policy};
use serde_json::{Value, json};

use crate::output::group;
use crate::table::{ScoreFormat, Table, json_lines, json_text, or_dash, percent};

/// Results of a sweep.
pub(super) struct Swept<'a> {
    /// Scores of never, always and the oracle, in words.
    pub(super) finding: String,
    pub(super) curves: &'a [SweepCurve],
    /// Names of the clocks, in the order of each point's latencies.
    pub(super) retrievers: &'a [String],
}

impl Swept<'_> {
    pub(super) fn text(&self, format: ScoreFormat) -> String {
        let (curves, retrievers) = (self.curves, self.retrievers);
        match format {
            ScoreFormat::Text => {
                let summary = summary(curves, retrievers).text();
                format!("{}\n\n{summary}\n{NOTE}\n", self.finding)
            }
            ScoreFormat::Tsv => table(curves, retrievers).tsv(),
            ScoreFormat::Json => json_text(&records(curves, retrievers).collect()),
            ScoreFormat::Jsonl => json_lines(records(curves, retrievers)),
        }
    }

    /// The rows of the summary, the head first.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let mut rows = summary(self.curves, self.retrievers).into_rows();
        // Rules between the columns of a text; a page has its own.
        let head = rows.first_mut().into_iter().flatten();
        head.for_each(|name| *name = name.trim_start_matches("| ").to_owned());
        rows
    }
}

/// Every point as a record.
fn records<'a>(
    curves: &'a [SweepCurve],
    retrievers: &'a [String],
) -> impl Iterator<Item = Value> + 'a {
    curves.iter().flat_map(move |curve| {
        curve.points.iter().map(move |point| {
            let first = point.latencies.first();
            let mut record = json!({
                "policy": curve.policy.name(),
                "threshold": threshold(point.threshold),
                "n": curve.count,
                "rag_rate": point.rag_rate,
                "em": point.em,
                "es": point.es,
                "latency_ms": first.map(|latency| latency.mean_ms),
                "speedup": first.map(|latency| latency.speedup),
                "abstention_precision": point.abstention_precision,
                "auc": curve.auc,
                "calibration_error": curve.calibration.as_ref().map(|c| c.error),
            });
            if retrievers.len() > 1 {
                let each = retrievers.iter().zip(&point.latencies).map(|(name, latency)| {
                    let times = json!({"latency_ms": latency.mean_ms, "speedup": latency.speedup});
                    (name.clone(), times)
                });
                record["retrievers"] = Value::Object(each.collect());
            }
            record
        })
    })
}

/// Threshold of a point; never and always have none.
fn threshold(threshold: f64) -> Option<f64> {
    threshold.is_finite().then_some(threshold)
}

/// Every point as a row.
fn table(curves: &[SweepCurve], retrievers: &[String]) -> Table {
    let mut head = ["policy", "threshold", "rag_rate", "em", "es"].map(String::from).to_vec();
    for name in retrievers {
        head.extend([format!("latency_ms:{name}"), format!("speedup:{name}")]);
    }
    head.push("abstention_precision".into());
    let mut table = Table::new(head);
    for curve in curves {
        for point in &curve.points {
            let mut row = vec![
                curve.policy.to_string(),
                or_dash(threshold(point.threshold).map(|t| format!("{t:.6}"))),
                format!("{:.6}", point.rag_rate),
                or_dash(point.em.map(|em| format!("{em:.6}"))),
                format!("{:.6}", point.es),
            ];
            for latency in &point.latencies {
                row.push(format!("{:.3}", latency.mean_ms));
                row.push(format!("{:.6}", latency.speedup));
            }
            row.push(or_dash(point.abstention_precision.map(|p| format!("{p:.6}"))));
            table.row(row);
        }
    }
    table
}

/// Scores of never, always and the oracle, in words.
pub(super) fn finding(examples: &Examples) -> String {
    format!(
        "{} instances of {} repositories, ES x 100: never {}, always {}, oracle {}",
        group(examples.all.len()),
        examples.repositories().len(),
        percent(mean(&examples.all, |example| example.es_base)),
        percent(mean(&examples.all, |example| example.es_rag)),
        percent(mean(&examples.all, |e| e.es_base.max(e.es_rag))),
    )
}

/// Summary of each policy: at a fifth and half of the budget, at thresholds chosen on the other repositories, at its best
/// threshold in hindsight, and where it is as good as always retrieving.
fn summary(curves: &[SweepCurve], retrievers: &[String]) -> Table {
    let mut head: Vec<String> =
        ["policy", "AUC", "ECE", "ES at 20 %", "at 50 %"].map(String::from).to_vec();
    for names in [
        &["| chosen elsewhere: ES", "EM", "%RAG", "abstains rightly"][..],
        &["| best in hindsight: ES", "EM", "%RAG", "threshold"],
        &["| as good as always: %RAG"],
    ] {
        head.extend(names.iter().map(ToString::to_string));
        head.extend(retrievers.iter().map(|name| format!("SU {name}")));
    }
    let mut table = Table::new(head);
    for curve in curves {
        table.row(row(curve, retrievers.len()));
    }
    table
}

/// Legend of the columns.
pub(super) const NOTE: &str = "Chosen elsewhere: each repository at the threshold that is best for the others. SU: saved of always retrieving's latency, in per cent.\n\
    AUC: how well scores tell instances that retrieval helps from others (0.5 is chance). ECE: expected calibration error.";

/// Cells of a point.
type Cell<'a> = &'a dyn Fn(&SweepPoint) -> Option<String>;

fn row(curve: &SweepCurve, clocks: usize) -> Vec<String> {
    let is_chosen = !matches!(curve.policy, Policy::Never | Policy::Always);
    let at = |rate: f64| {
        let point = curve.at_rate(rate).filter(|_| is_chosen);
        or_dash(point.map(|point| percent(point.es)))
    };
    let share = |point: &SweepPoint| Some(format!("{:.1}", 100.0 * point.rag_rate));
    let mut row = vec![
        curve.policy.to_string(),
        or_dash(is_chosen.then(|| format!("{:.3}", curve.auc))),
        or_dash(curve.calibration.as_ref().map(|c| format!("{:.3}", c.error))),
        at(0.2),
        at(0.5),
    ];
    let mut point = |point: Option<&SweepPoint>, values: &[Cell<'_>]| {
        row.extend(values.iter().map(|value| or_dash(point.and_then(value))));
        row.extend((0..clocks).map(|clock| {
            let latency = point.and_then(|point| point.latencies.get(clock));
            or_dash(latency.map(|latency| format!("{:.1}", 100.0 * latency.speedup)))
        }));
    };
    let es = |point: &SweepPoint| Some(percent(point.es));
    let em = |point: &SweepPoint| point.em.map(percent);
    let abstains = |point: &SweepPoint| point.abstention_precision.map(percent);
    let value = |point: &SweepPoint| threshold(point.threshold).map(|t| format!("{t:.3}"));
    point(curve.elsewhere.as_ref(), &[&es, &em, &share, &abstains]);
    point(curve.best(), &[&es, &em, &share, &value]);
    point(curve.reaches_always.as_ref(), &[&share]);
    row
}

fn mean(examples: &[Example], of: impl Fn(&Example) -> f64) -> f64 {
    examples.iter().map(of).sum::<f64>() / examples.len().max(1) as f64
}
