//! The figures, each drawn once for the page and once as a file.

pub(super) mod chart;
mod gain;
mod identifiers;
mod length;
mod means;
mod outcomes;
mod scale;
mod svg;

pub(super) use svg::Medium;

use super::Report;
use super::group::Lengths;

/// A figure's name, which is also its file's, and its SVG.
pub(super) type Figure = (String, String);

/// The gain histograms: each compared system's index and its figure.
pub(super) fn gains(report: &Report, medium: Medium) -> Vec<(usize, Figure)> {
    let names = names(report);
    let systems = report.compared().map(|(system, _)| {
        let name = format!("gain-{}", names[system]);
        let svg = gain::draw(report, system, medium, &name);
        (system, (name, svg))
    });
    systems.collect()
}

/// Every mean with its interval.
pub(super) fn means(report: &Report, medium: Medium) -> Option<Figure> {
    named("means", means::draw(report, medium))
}

/// How often each system is better and worse than the baseline.
pub(super) fn outcomes(report: &Report, medium: Medium) -> Option<Figure> {
    named("outcomes", outcomes::draw(report, medium))
}

/// The main measure by the target's length.
pub(super) fn by_length(report: &Report, lengths: &Lengths, medium: Medium) -> Option<Figure> {
    let name = format!("{}-by-length", main_name(report));
    named(&name, length::draw(report, lengths, medium, &name))
}

/// The main measure by what was retrieved of the target's identifiers.
pub(super) fn by_identifiers(report: &Report, medium: Medium) -> Option<Figure> {
    let name = format!("{}-by-identifiers", main_name(report));
    named(&name, identifiers::draw(report, medium, &name))
}

/// All of them, as files.
pub(super) fn files(report: &Report) -> Vec<Figure> {
    let lengths = Lengths::of(report);
    let gains = gains(report, Medium::File)
        .into_iter()
        .map(|(_, figure)| figure);
    let others = [
        outcomes(report, Medium::File),
        by_length(report, &lengths, Medium::File),
        by_identifiers(report, Medium::File),
    ];
    means(report, Medium::File)
        .into_iter()
        .chain(gains)
        .chain(others.into_iter().flatten())
        .collect()
}

fn named(name: &str, svg: Option<String>) -> Option<Figure> {
    Some((name.to_owned(), svg?))
}

/// The main measure's name within a file's.
fn main_name(report: &Report) -> String {
    let measure = report.measures.get(report.main);
    measure.map_or_else(|| "value".into(), |measure| file_name(&measure.value))
}

/// The systems' names within files' names: distinct, and nothing but letters, digits, `.`, `_` and `-`.
fn names(report: &Report) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for system in &report.systems {
        let name = file_name(&system.name);
        let mut distinct = name.clone();
        let mut number = 2;
        while names.contains(&distinct) {
            distinct = format!("{name}-{number}");
            number += 1;
        }
        names.push(distinct);
    }
    names
}

fn file_name(name: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = name
        .chars()
        .take(80)
        .map(|c| if kept(c) { c } else { '-' })
        .collect();
    match name.trim_matches(['.', '-']) {
        "" => "system".into(),
        trimmed => trimmed.to_lowercase(),
    }
}

/// The colour and form of a system: the baseline is ink, dashed where it is a line; the others follow in their order.
fn series(report: &Report, system: usize) -> (svg::Paint, usize) {
    match report.baseline() {
        Some((baseline, _)) if baseline == system => (svg::Paint::Muted, 0),
        Some((baseline, _)) if baseline < system => (svg::Paint::Series(system - 1), system),
        _ => (svg::Paint::Series(system), system + 1),
    }
}

/// A value between 0 and 1 as tables show it: `36.21`.
fn hundredths(value: f64) -> String {
    format!("{:.2}", value * 100.0)
}

/// `36.21 [34.02, 38.40]`
fn with_interval(mean: super::Mean) -> String {
    let value = hundredths(mean.mean);
    match mean.interval {
        None => value,
        Some((low, high)) => format!("{value} [{}, {}]", hundredths(low), hundredths(high)),
    }
}

#[cfg(test)]
mod tests;
