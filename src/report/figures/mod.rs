//! Figures, each drawn for the page and as a file.

pub(super) mod chart;
mod gain;
mod identifiers;
mod legend;
mod length;
mod means;
mod outcomes;
mod scale;
mod series;
mod svg;

pub(super) use svg::Medium;

use super::Report;
use super::group::Lengths;

/// Name and SVG of a figure; the name is that of its file too.
pub(super) type Figure = (String, String);

/// Draws the gain histograms: index and figure of each compared system.
pub(super) fn gains(report: &Report, medium: Medium) -> Vec<(usize, Figure)> {
    let names = names(report);
    let systems = report.compared().map(|(system, _)| {
        let name = format!("gain-{}", names[system]);
        let svg = gain::draw(report, system, medium, &name);
        (system, (name, svg))
    });
    systems.collect()
}

/// Draws every mean with its interval.
pub(super) fn means(report: &Report, medium: Medium) -> Option<Figure> {
    named("means", means::draw(report, medium))
}

/// Draws the number of tasks on which each system is better and worse than the baseline.
pub(super) fn outcomes(report: &Report, medium: Medium) -> Option<Figure> {
    named("outcomes", outcomes::draw(report, medium))
}

/// Draws the main measure by the target's length.
pub(super) fn by_length(report: &Report, lengths: &Lengths, medium: Medium) -> Option<Figure> {
    let name = format!("{}-by-length", main_name(report));
    named(&name, length::draw(report, lengths, medium, &name))
}

/// Draws the main measure by retrieved identifiers of the target.
pub(super) fn by_identifiers(report: &Report, medium: Medium) -> Option<Figure> {
    let name = format!("{}-by-identifiers", main_name(report));
    named(&name, identifiers::draw(report, medium, &name))
}

/// Draws all figures as files.
pub(super) fn files(report: &Report) -> Vec<Figure> {
    let lengths = Lengths::of(report);
    let gains = gains(report, Medium::File).into_iter().map(|(_, figure)| figure);
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

/// Name of the main measure in file names.
fn main_name(report: &Report) -> String {
    let measure = report.measures.get(report.main);
    measure.map_or_else(|| "value".into(), |measure| file_name(&measure.value))
}

/// Names of the systems in file names: distinct, of letters, digits, `.`, `_` and `-` only.
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
    let name: String = name.chars().take(80).map(|c| if kept(c) { c } else { '-' }).collect();
    match name.trim_matches(['.', '-']) {
        "" => "system".into(),
        trimmed => trimmed.to_lowercase(),
    }
}

#[cfg(test)]
mod tests;
