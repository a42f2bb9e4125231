//! Colours and forms of systems.

use super::super::Report;
use super::svg::Paint;

/// Returns the colour and form of a system: the baseline is muted, and dashed as a line; the others follow in their order.
pub(super) fn series(report: &Report, system: usize) -> (Paint, usize) {
    match report.baseline() {
        Some((baseline, _)) if baseline == system => (Paint::Muted, 0),
        Some((baseline, _)) if baseline < system => (Paint::Series(system - 1), system),
        _ => (Paint::Series(system), system + 1),
    }
}
