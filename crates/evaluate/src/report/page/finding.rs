//! Main result of the report, in a sentence.

use super::super::text::{bounds, escape, format_thousands, tasks};
use super::super::{BaselineComparison, ReportContents};
use crate::statistics::Interval;

/// Returns the sentence as HTML.
pub(super) fn html(report: &ReportContents) -> String {
    let Some(chosen) = report.best() else {
        return "No system was measured.".into();
    };
    if report.tasks.is_empty() {
        return "No tasks were evaluated.".into();
    }
    let (system, measure) = (&report.systems[chosen], escape(&report.main_label()));
    let name = format!("<b>{}</b>", escape(&system.name));
    let Some((_, other)) = report.baseline().filter(|(at, _)| *at != chosen) else {
        let mean = system.means.get(report.main).copied();
        let mean = mean
            .map_or_else(String::new, |mean| format!(": {measure} {}", report.with_interval(mean)));
        return format!(
            "{name} on {} of {}{mean}.",
            format_thousands(system.n),
            tasks(report.tasks.len())
        );
    };
    let changes = report.changes(chosen);
    if changes.total() == 0 {
        return format!("No task was completed by both {name} and <b>{}</b>.", escape(&other.name));
    }
    let counts = format!(
        "{name} is better than <b>{}</b> on {} of {} and worse on {}",
        escape(&other.name),
        format_thousands(changes.better),
        tasks(changes.total()),
        format_thousands(changes.worse),
    );
    match system.comparison {
        Some(comparison) => {
            format!("{counts}: {measure} {}.", difference(comparison, report.few))
        }
        None => format!("{counts}."),
    }
}

/// Formats `+5.41 [4.10, 6.80]`, followed by a remark if the difference may be due to chance.
fn difference(comparison: BaselineComparison, few: Option<usize>) -> String {
    let mean = format_signed(comparison.mean_difference);
    match (comparison.interval, few) {
        (None, _) => mean,
        (Some(range), Some(few)) => format!(
            "<span class=\"nowrap\">{mean}, range {}</span> over {few} repositories, too few to tell it from chance",
            bounds(range, format_signed)
        ),
        (Some(interval @ Interval { low, high }), None) => {
            let chance = if low <= 0.0 && high >= 0.0 { ", which may be chance" } else { "" };
            format!(
                "<span class=\"nowrap\">{mean} {}</span>{chance}",
                bounds(interval, format_signed)
            )
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
