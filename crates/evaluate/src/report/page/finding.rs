//! Main result of the report, in a sentence.

use serde::{Deserialize, Serialize};

use super::super::text::{bounds, escape, format_thousands, tasks};
use super::super::{BaselineComparison, ReportContents};
use crate::statistics::Interval;

/// Main result of a report, in a sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReportFinding(Vec<FindingPart>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FindingPart {
    Text(String),
    /// Name of a system.
    System(String),
    /// Numbers that stay on one line.
    Numbers(String),
}

use FindingPart::{Numbers, System, Text};

impl ReportFinding {
    /// Returns the main result of a report.
    pub(in crate::report) fn new(report: &ReportContents) -> Self {
        Self(parts(report))
    }

    /// Returns the sentence as HTML.
    ///
    /// ```
    /// use repoformer_evaluate::report::ReportFinding;
    /// let finding: ReportFinding =
    ///     serde_json::from_str(r#"[{"system": "rg1"}, {"text": " wins < 3 times."}]"#)?;
    /// assert_eq!(finding.html(), "<b>rg1</b> wins &lt; 3 times.");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn html(&self) -> String {
        let html = |part: &FindingPart| match part {
            Text(text) => escape(text),
            System(name) => format!("<b>{}</b>", escape(name)),
            Numbers(text) => format!("<span class=\"nowrap\">{}</span>", escape(text)),
        };
        self.0.iter().map(html).collect()
    }
}

fn text(text: impl Into<String>) -> FindingPart {
    Text(text.into())
}

fn parts(report: &ReportContents) -> Vec<FindingPart> {
    let Some(chosen) = report.best() else {
        return vec![text("No system was measured.")];
    };
    if report.tasks.is_empty() {
        return vec![text("No tasks were evaluated.")];
    }
    let (system, measure) = (&report.systems[chosen], report.main_label());
    let name = System(system.name.clone());
    let Some((_, other)) = report.baseline().filter(|(at, _)| *at != chosen) else {
        let mean = system.means.get(report.main).copied();
        let mean = mean
            .map_or_else(String::new, |mean| format!(": {measure} {}", report.with_interval(mean)));
        let (count, all) = (format_thousands(system.n), tasks(report.tasks.len()));
        return vec![name, text(format!(" on {count} of {all}{mean}."))];
    };
    let (other, changes) = (System(other.name.clone()), report.changes(chosen));
    if changes.total() == 0 {
        return vec![text("No task was completed by both "), name, text(" and "), other, text(".")];
    }
    let counts = format!(
        " on {} of {} and worse on {}",
        format_thousands(changes.better),
        tasks(changes.total()),
        format_thousands(changes.worse),
    );
    let mut parts = vec![name, text(" is better than "), other, text(counts)];
    if let Some(comparison) = system.comparison {
        parts.push(text(format!(": {measure} ")));
        parts.extend(difference(comparison, report.few));
    }
    parts.push(text("."));
    parts
}

/// Returns `+5.41 [4.10, 6.80]`, followed by a remark if the difference may be due to chance.
fn difference(comparison: BaselineComparison, few: Option<usize>) -> Vec<FindingPart> {
    let mean = format_signed(comparison.mean_difference);
    match (comparison.interval, few) {
        (None, _) => vec![text(mean)],
        (Some(range), Some(few)) => vec![
            Numbers(format!("{mean}, range {}", bounds(range, format_signed))),
            text(format!(" over {few} repositories, too few to tell it from chance")),
        ],
        (Some(interval @ Interval { low, high }), None) => {
            let chance = if low <= 0.0 && high >= 0.0 { ", which may be chance" } else { "" };
            vec![Numbers(format!("{mean} {}", bounds(interval, format_signed))), text(chance)]
        }
    }
}

/// Formats a difference × 100 with its sign.
pub(super) fn format_signed(difference: f64) -> String {
    let rounded = (difference * 10_000.0).round() / 100.0;
    let sign = match rounded {
        r if r > 0.0 => "+",
        r if r < 0.0 => "\u{2212}",
        _ => "",
    };
    format!("{sign}{:.2}", rounded.abs())
}
