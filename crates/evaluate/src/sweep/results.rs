//! Output of a sweep: every point for programs, a summary for readers.

use repoformer_core::label::{LIKELIHOOD, PASS};
use repoformer_core::policy::sweep::{SweepCurve, SweepPoint};
use repoformer_core::policy::{Example, Examples, Measure, Policy};
use repoformer_store::frame::ColumnType::{Integer, Number, Text};
use repoformer_text::counts::format_count;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use repoformer_text::visible::visible_in_line;
use serde_json::{Value, json};

use crate::report::PageTable;
use crate::table::{NamedColumn, Printable, Table, columns, format_fixed, or_dash, percent};

/// Results of a sweep over one set of labels.
#[derive(Debug, Clone, PartialEq)]
pub struct SetCurves {
    /// Name of the set, if it has one.
    pub name: Option<String>,
    /// Scores of never, always and the oracle, in words.
    pub finding: String,
    /// Measure of the scores.
    pub measure: Measure,
    /// Metric of the labels, if they name it.
    pub metric: Option<String>,
    /// Curve of each policy.
    pub curves: Vec<SweepCurve>,
}

impl SetCurves {
    /// Returns the name of a curve in a legend.
    pub(super) fn legend_name(&self, curve: &SweepCurve) -> String {
        let name = self.name.as_ref().map_or(String::new(), |name| format!("{name} "));
        format!("{name}{}", curve.policy)
    }
}

/// Results of all sets: as text, a summary of each policy; in other formats, every point.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepResults {
    /// Curves of each set of labels, all by one metric.
    pub sets: Vec<SetCurves>,
    /// Names of the retrievers, in the order of each point's latencies.
    pub retrievers: Vec<String>,
    /// True if a retriever's times lack the time for computing the queries' dense vectors.
    pub lacks_embedding: bool,
}

impl Printable for SweepResults {
    /// Returns every point as a row, with fractions and scores × 100.
    fn table(&self) -> Table {
        self.points()
    }

    fn text(&self) -> String {
        let part = |PageTable { title, rows }: PageTable| {
            let mut rows = rows.into_iter();
            let mut table = Table::new(rows.next().unwrap_or_default());
            rows.for_each(|row| table.row(row));
            format!("{title}\n{}\n", table.text())
        };
        let parts: String = self.parts().into_iter().map(part).collect();
        let is_known = |line: &&str| !self.retrievers.is_empty() || !line.starts_with("SU:");
        let note = NOTE.lines().filter(is_known).collect::<Vec<_>>().join("\n");
        format!("{}\n\n{parts}{note}\n", self.finding())
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.records())
    }

    fn columns(&self) -> Vec<NamedColumn> {
        let rest = [
            "latency_ms", "speedup", "abstention_precision", "abstained_right", "abstained_harmed",
            "auc", "calibration_error",
        ];
        columns(Text, ["policy", "labels", "metric"])
            .chain(columns(Number, ["threshold"]))
            .chain(columns(Integer, ["n"]))
            .chain(columns(Number, ["rag_rate", "em", "es", PASS, LIKELIHOOD]))
            .chain(columns(Text, ["retriever"]))
            .chain(columns(Number, rest))
            .collect()
    }

    /// Returns a row per point and retriever.
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        let points = self.curves().flat_map(|(_, curve)| &curve.points);
        Box::new(self.records().zip(points).flat_map(move |(mut record, point)| {
            if let Some(record) = record.as_object_mut() {
                record.shift_remove("retrievers");
            }
            let row = move |place: usize| {
                let mut row = record.clone();
                row["retriever"] = self.retrievers.get(place).cloned().into();
                let latency = point.latencies.get(place).copied().flatten();
                row["latency_ms"] = latency.map(|latency| latency.mean_ms).into();
                row["speedup"] = latency.map(|latency| latency.speedup).into();
                row
            };
            (0..self.retrievers.len().max(1)).map(row)
        }))
    }
}

impl SweepResults {
    /// Returns the result of every set, in words.
    pub(super) fn finding(&self) -> String {
        let of = |set: &SetCurves| match &set.name {
            Some(name) => format!("{}: {}", visible_in_line(name), set.finding),
            None => set.finding.clone(),
        };
        self.sets.iter().map(of).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn measure(&self) -> Measure {
        self.sets.first().map_or(Measure::default(), |set| set.measure)
    }

    /// Returns true if the sets have names.
    fn is_named(&self) -> bool {
        self.sets.iter().any(|set| set.name.is_some())
    }

    /// Returns a warning of the first policy without a latency, if times are known.
    pub fn warning(&self) -> Option<Message> {
        let is_untimed = |curve: &SweepCurve| {
            curve.points.iter().any(|point| point.latencies.iter().any(Option::is_none))
        };
        let (_, curve) = self.curves().find(|(_, curve)| is_untimed(curve))?;
        Some(message![
            format!(
                "policy {} has no latency, because the time of its decision is unknown; pass the ",
                curve.policy
            ),
            UserChoice::DecisionTime,
            ", or the ",
            UserChoice::BaseTimes,
            " with decision_ms"
        ])
    }

    /// Iterates over every curve with its set.
    pub(super) fn curves(&self) -> impl Iterator<Item = (&SetCurves, &SweepCurve)> {
        self.sets.iter().flat_map(|set| set.curves.iter().map(move |curve| (set, curve)))
    }

    /// Returns the summary in parts, each with the names of the policies: a single table would be wider than a page or a screen.
    pub(super) fn parts(&self) -> Vec<PageTable> {
        let rows = self.summary().into_rows();
        let names = 1 + usize::from(self.is_named());
        let head = rows.first().map_or(&[][..], Vec::as_slice);
        let begins = (names..head.len()).filter(|&at| at == names || head[at].starts_with("| "));
        let begins: Vec<usize> = begins.chain([head.len()]).collect();
        let part = |columns: &[usize]| {
            let (title, first) = match head[columns[0]].trim_start_matches("| ").split_once(": ") {
                Some((title, first)) => {
                    let (initial, rest) = title.split_at(1);
                    (initial.to_uppercase() + rest, first)
                }
                None => ("Scores and budgets".to_owned(), head[columns[0]].as_str()),
            };
            let of_row = |row: &Vec<String>| [&row[..names], &row[columns[0]..columns[1]]].concat();
            let mut rows: Vec<Vec<String>> = rows.iter().map(of_row).collect();
            first.clone_into(&mut rows[0][names]);
            PageTable { title, rows }
        };
        begins.windows(2).map(part).collect()
    }

    /// Returns every point as a record.
    fn records(&self) -> impl Iterator<Item = Value> {
        let points = |(set, curve)| curve_points(set, curve);
        self.curves().flat_map(points).map(|(set, curve, point)| {
            let first = point.latencies.first().copied().flatten();
            let harmed = point.abstention_precision.map(|precision| 1.0 - precision);
            let mut record = json!({
                "policy": curve.policy.name(),
                "metric": set.metric,
                "threshold": threshold(point.threshold),
                "n": curve.count,
                "rag_rate": point.rag_rate,
                "em": point.em,
                set.measure.key(): point.score,
                "latency_ms": first.map(|latency| latency.mean_ms),
                "speedup": first.map(|latency| latency.speedup),
                "abstention_precision": point.abstention_precision,
                "abstained_right": point.abstained_right,
                "abstained_harmed": harmed,
                "auc": curve.auc,
                "calibration_error": curve.calibration.as_ref().map(|c| c.error),
            });
            if let Some(name) = &set.name {
                record["labels"] = name.as_str().into();
            }
            let names = &self.retrievers;
            if names.len() > 1 || self.lacks_embedding {
                let each = names.iter().zip(&point.latencies).map(|(name, latency)| {
                    let times = json!({
                        "latency_ms": latency.map(|one| one.mean_ms), "speedup": latency.map(|one| one.speedup),
                    });
                    (name.clone(), times)
                });
                record["retrievers"] = Value::Object(each.collect());
            }
            record
        })
    }

    fn points(&self) -> Table {
        let mut head: Vec<String> = vec!["policy".into()];
        head.extend(self.is_named().then(|| "labels".to_owned()));
        head.extend(
            ["metric", "threshold", "rag_rate", "em", self.measure().key()].map(String::from),
        );
        for name in &self.retrievers {
            head.extend([format!("latency_ms:{name}"), format!("speedup:{name}")]);
        }
        head.extend(["abstention_precision", "abstained_right"].map(String::from));
        let mut table = Table::new(head);
        let points = |(set, curve)| curve_points(set, curve);
        for (set, curve, point) in self.curves().flat_map(points) {
            let mut row = vec![curve.policy.to_string()];
            row.extend(self.is_named().then(|| set.name.clone().unwrap_or_default()));
            row.extend([
                or_dash(set.metric.clone()),
                or_dash(threshold(point.threshold).map(|t| format_fixed(t, 6))),
                share(point.rag_rate),
                or_dash(point.em.map(share)),
                share(point.score),
            ]);
            for latency in &point.latencies {
                row.push(or_dash(latency.map(|one| format!("{:.3}", one.mean_ms))));
                row.push(or_dash(latency.map(|one| share(one.speedup))));
            }
            row.push(or_dash(point.abstention_precision.map(share)));
            row.push(or_dash(point.abstained_right.map(share)));
            table.row(row);
        }
        table
    }

    /// Returns the summary of each policy: at a fifth and half of the budget, at thresholds chosen on the other repositories,
    /// at its best threshold in hindsight, and at the point at which it is as good as always retrieving.
    fn summary(&self) -> Table {
        let score = self.measure().name();
        let mut head: Vec<String> = vec!["policy".into()];
        head.extend(self.is_named().then(|| "labels".to_owned()));
        head.extend(["AUC", "ECE", &format!("{score} at 20 %"), "at 50 %"].map(String::from));
        for (part, names) in [
            ("| chosen elsewhere", &["EM", "%RAG", "abstains rightly", "already right"][..]),
            ("| best in hindsight", &["EM", "%RAG", "threshold"]),
            ("| as good as always", &[]),
        ] {
            let first = if names.is_empty() { "%RAG" } else { score };
            head.push(format!("{part}: {first}"));
            head.extend(names.iter().map(ToString::to_string));
            head.extend(self.retrievers.iter().map(|name| format!("SU {name}")));
        }
        let mut table = Table::new(head);
        for (set, curve) in self.curves() {
            let mut cells = row(curve, self.retrievers.len());
            if self.is_named() {
                cells.insert(1, set.name.clone().unwrap_or_default());
            }
            table.row(cells);
        }
        table
    }
}

/// Formats a fraction × 100 with four digits, for programs.
fn share(value: f64) -> String {
    format_fixed(100.0 * value, 4)
}

/// Returns every point of a curve.
fn curve_points<'s>(
    set: &'s SetCurves,
    curve: &'s SweepCurve,
) -> impl Iterator<Item = (&'s SetCurves, &'s SweepCurve, &'s SweepPoint)> {
    curve.points.iter().map(move |point| (set, curve, point))
}

/// Returns the threshold of a point; never and always have none.
fn threshold(threshold: f64) -> Option<f64> {
    threshold.is_finite().then_some(threshold)
}

/// Returns the scores of never, always and the oracle, in words.
pub(super) fn finding(examples: &Examples) -> String {
    let metric = examples.metric.as_deref().unwrap_or("an unnamed metric");
    format!(
        "{} of {}, {} x 100{}: never {}, always {}, oracle {}",
        format_count(examples.all.len() as u64, "instance"),
        format_count(examples.repositories().len() as u64, "repository"),
        examples.measure.name(),
        match examples.measure {
            Measure::Similarity if ![PASS, LIKELIHOOD].contains(&metric) => format!(" by {metric}"),
            _ => String::new(),
        },
        percent(mean(&examples.all, |example| example.score_base)),
        percent(mean(&examples.all, |example| example.score_rag)),
        percent(mean(&examples.all, |e| e.score_base.max(e.score_rag))),
    )
}

/// Legend of the columns.
pub(super) const NOTE: &str = "AUC: how well the scores separate instances that retrieval helps (0.5 is chance)\n\
    ECE: expected calibration error\n\
    at 20 %, at 50 %: if the policy retrieves for this percentage of instances, or the nearest lower one\n\
    chosen elsewhere: each repository at the threshold that is best for the other repositories\n\
    best in hindsight: at the threshold that is best for these instances, an upper bound\n\
    as good as always: at the lowest percentage of retrievals that scores as well as always retrieving\n\
    abstains rightly: percentage of the instances without retrieval that retrieval would not have helped\n\
    already right: percentage of the instances without retrieval that are exact matches\n\
    SU: percentage of the latency of always retrieving that is saved";

/// Cells of a point.
type Cell<'a> = &'a dyn Fn(&SweepPoint) -> Option<String>;

fn row(curve: &SweepCurve, clocks: usize) -> Vec<String> {
    let is_chosen = !matches!(curve.policy, Policy::Never | Policy::Always);
    let share_of = |rate: f64| format!("{:.1}", 100.0 * rate);
    let at = |rate: f64| {
        let point = curve.at_rate(rate).filter(|_| is_chosen);
        or_dash(point.map(|point| match share_of(point.rag_rate) {
            share if share == share_of(rate) => percent(point.score),
            share => format!("{} ({share} %)", percent(point.score)),
        }))
    };
    let share = |point: &SweepPoint| Some(share_of(point.rag_rate));
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
            let latency = point.and_then(|point| point.latencies.get(clock).copied().flatten());
            or_dash(latency.map(|latency| format_fixed(100.0 * latency.speedup, 1)))
        }));
    };
    let es = |point: &SweepPoint| Some(percent(point.score));
    let em = |point: &SweepPoint| point.em.map(percent);
    let abstains = |point: &SweepPoint| point.abstention_precision.map(percent);
    let right = |point: &SweepPoint| point.abstained_right.map(percent);
    let value = |point: &SweepPoint| threshold(point.threshold).map(|t| format_fixed(t, 3));
    point(curve.elsewhere.as_ref(), &[&es, &em, &share, &abstains, &right]);
    point(curve.best(), &[&es, &em, &share, &value]);
    point(curve.reaches_always.as_ref(), &[&share]);
    row
}

fn mean(examples: &[Example], of: impl Fn(&Example) -> f64) -> f64 {
    examples.iter().map(of).sum::<f64>() / examples.len().max(1) as f64
}
