//! Figures, each drawn for the page and as a file.

pub(super) mod chart;
mod gain;
pub(super) mod identifiers;
mod legend;
pub(super) mod length;
pub(super) mod means;
pub(super) mod outcomes;
mod scale;
mod svg;

pub(super) use svg::{Figure, Medium};

use super::ReportContents;
use super::group::Lengths;
use super::text::file_name;

/// Draws the gain histograms: returns the index and figure of each compared system.
pub(super) fn gains(report: &ReportContents, medium: Medium) -> Vec<(usize, Figure)> {
    let names = names(report);
    let draw = |system: usize| {
        (system, gain::draw(report, system, medium, &format!("gain-{}", names[system])))
    };
    report.compared_systems().map(|(system, _)| draw(system)).collect()
}

/// Draws all figures as files.
pub(super) fn files(report: &ReportContents) -> Vec<Figure> {
    let mut figures = Vec::from_iter(means::draw(report, Medium::File));
    figures.extend(gains(report, Medium::File).into_iter().map(|(_, figure)| figure));
    figures.extend(outcomes::draw(report, Medium::File));
    figures.extend(length::draw(report, &Lengths::new(report), Medium::File));
    figures.extend(identifiers::draw(report, Medium::File));
    figures
}

/// Returns the names of the systems in file names: distinct, with only letters, digits, `.`, `_` and `-`.
fn names(report: &ReportContents) -> Vec<String> {
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

#[cfg(test)]
mod tests;
