//! What the report found, in a sentence.

use super::super::text::{escape, grouped, tasks};
use super::super::{Comparison, Mean, Report, best};

/// The sentence as HTML.
pub(super) fn html(report: &Report) -> String {
    let Some(chosen) = best(report) else {
        return "No system was measured.".into();
    };
    if report.tasks.is_empty() {
        return "There are no tasks to report on.".into();
    }
    let (system, measure) = (&report.systems[chosen], escape(&report.main_label()));
    let name = format!("<b>{}</b>", escape(&system.name));
    let Some((baseline, other)) = report.baseline().filter(|(at, _)| *at != chosen) else {
        let mean = system.means.get(report.main).copied();
        let mean = mean.map_or_else(String::new, |mean| format!(": {measure} {}", value(mean)));
        return format!(
            "{name} on {} of {}{mean}.",
            grouped(system.n),
            tasks(report.tasks.len())
        );
    };
    debug_assert_ne!(baseline, chosen);
    let changes = report.changes(chosen);
    if changes.total() == 0 {
        return format!(
            "No task was completed by both {name} and <b>{}</b>.",
            escape(&other.name)
        );
    }
    let counts = format!(
        "{name} is better than <b>{}</b> on {} of {} and worse on {}",
        escape(&other.name),
        grouped(changes.better),
        tasks(changes.total()),
        grouped(changes.worse),
    );
    match system.comparison {
        Some(comparison) => format!("{counts}: {measure} {}.", difference(comparison)),
        None => format!("{counts}."),
    }
}

/// `+5.41 [4.10, 6.80]`, and whether it may be chance.
fn difference(comparison: Comparison) -> String {
    let mean = signed(comparison.mean_difference);
    match comparison.interval {
        None => mean,
        Some((low, high)) => {
            let chance = if low <= 0.0 && high >= 0.0 {
                ", which may be chance"
            } else {
                ""
            };
            format!(
                "<span class=\"nowrap\">{mean} {}</span>{chance}",
                bounds(low, high, signed)
            )
        }
    }
}

fn value(mean: Mean) -> String {
    let plain = |value: f64| format!("{:.2}", value * 100.0);
    match mean.interval {
        None => plain(mean.mean),
        Some((low, high)) => format!("{} {}", plain(mean.mean), bounds(low, high, plain)),
    }
}

/// An interval in brackets.
pub(super) fn bounds(low: f64, high: f64, show: impl Fn(f64) -> String) -> String {
    format!("[{}, {}]", show(low), show(high))
}

/// A difference × 100 with its sign.
pub(super) fn signed(difference: f64) -> String {
    let rounded = (difference * 10_000.0).round() / 100.0;
    let sign = match rounded {
        r if r > 0.0 => "+",
        r if r < 0.0 => "\u{2212}",
        _ => "",
    };
    format!("{sign}{:.2}", rounded.abs())
}
