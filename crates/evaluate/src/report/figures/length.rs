//! Main measure by the target's length: a line per system, with the interval of each mean as a band.

use super::super::ReportContents;
use super::super::group::{Lengths, mean};
use super::super::text::{format_thousands, with_interval};
use super::legend::{Legend, series};
use super::scale::Scale;
use super::svg::Anchor::{Middle, Start};
use super::svg::{FAINT, Figure, Medium, PLAIN, Paint, Svg};
use crate::statistics::Estimate;

const LEFT: f64 = 34.0;
const RIGHT: f64 = 10.0;
const PLOT: f64 = 170.0;

/// Draws the lines; returns `None` without a task or a system.
pub(in crate::report) fn draw(
    report: &ReportContents,
    lengths: &Lengths,
    medium: Medium,
) -> Option<Figure> {
    if report.tasks.is_empty() || report.systems.is_empty() {
        return None;
    }
    let names = report.systems.iter().map(|system| system.name.as_str());
    let legend = Legend::new(names, 140.0);
    let top = legend.height + 22.0;
    let bottom = top + PLOT;
    let groups = lengths.groups();
    let means: Vec<Vec<Option<(Estimate, usize)>>> = (0..report.systems.len())
        .map(|system| (0..groups).map(|at| group(report, lengths, system, at)).collect())
        .collect();
    let all = means.iter().flatten().flatten().map(|(mean, _)| *mean);
    let scale = Scale::around(all, bottom, top);
    let slot = (Svg::WIDTH - LEFT - RIGHT) / groups as f64;
    let mut svg = Svg::new(medium, bottom + 50.0);
    for system in 0..report.systems.len() {
        let (paint, form) = series(report, system);
        legend.draw(system, form, paint, &mut svg);
    }
    let measure = format!("{} × 100", report.main_label());
    svg.text((0.0, top - 10.0), Start, FAINT, &measure);
    scale.grid_beside(&mut svg, LEFT, Svg::WIDTH - RIGHT);
    axis(&mut svg, lengths, bottom, slot);
    let place = |at: usize, value: f64| (LEFT + slot * (at as f64 + 0.5), scale.at(value * 100.0));
    for (system, means) in means.iter().enumerate() {
        line(report, system, means, &mut svg, &place);
    }
    for (system, means) in means.iter().enumerate() {
        for (at, found) in means.iter().enumerate() {
            let Some((mean, n)) = *found else { continue };
            let (paint, form) = series(report, system);
            let (who, label) = (&report.systems[system].name, lengths.label(at));
            let unit = lengths.unit.name();
            let title = format!("{who}, {label} {unit}: {}, n = {n}", with_interval(mean));
            let pick = format!("length={at}");
            svg.group(&title, Some(&pick), |svg| {
                let (x, y) = place(at, mean.mean);
                svg.area(x - 9.0, y - 9.0, 18.0, 18.0);
                svg.mark(x, y, form, paint);
            });
        }
    }
    let title = format!("{} by the target's length", report.main_label());
    let name = format!("{}-by-length", report.main_file_name());
    Some(svg.finish(&name, &title, &description(report, lengths, &means)))
}

/// Returns the mean of a system over the tasks of a group, and their number.
fn group(
    report: &ReportContents,
    lengths: &Lengths,
    system: usize,
    at: usize,
) -> Option<(Estimate, usize)> {
    let tasks = (0..report.tasks.len()).filter(|&task| lengths.group(task) == at);
    let values: Vec<f64> =
        tasks.filter_map(|task| report.value(system, task, report.main)).collect();
    Some((mean(&values)?, values.len()))
}

/// Draws the bands and the line through the means. An empty group interrupts the line; a mean without an interval interrupts
/// the band.
fn line(
    report: &ReportContents,
    system: usize,
    means: &[Option<(Estimate, usize)>],
    svg: &mut Svg,
    place: &impl Fn(usize, f64) -> (f64, f64),
) {
    let (paint, _) = series(report, system);
    let mean = |at: usize| Some(means[at]?.0);
    let runs = |through: &dyn Fn(usize) -> bool| -> Vec<Vec<usize>> {
        let groups: Vec<usize> = (0..means.len()).collect();
        let runs = groups.split(|&at| !through(at));
        runs.filter(|run| run.len() > 1).map(<[usize]>::to_vec).collect()
    };
    for run in runs(&|at| mean(at).is_some_and(|mean| mean.interval.is_some())) {
        let bound = |at: usize, upper: bool| {
            let interval = mean(at)?.interval?;
            Some(place(at, if upper { interval.high } else { interval.low }))
        };
        let upper = run.iter().filter_map(|&at| bound(at, true));
        let lower = run.iter().rev().filter_map(|&at| bound(at, false));
        svg.band(&upper.chain(lower).collect::<Vec<_>>(), paint);
    }
    for run in runs(&|at| mean(at).is_some()) {
        let points = run.iter().filter_map(|&at| Some(place(at, mean(at)?.mean)));
        let is_baseline = report.baseline == Some(system);
        svg.path(&points.collect::<Vec<_>>(), 1.8, is_baseline, paint);
    }
}

fn axis(svg: &mut Svg, lengths: &Lengths, bottom: f64, slot: f64) {
    svg.line((LEFT, bottom), (Svg::WIDTH - RIGHT, bottom), 1.0, Paint::Ink);
    for at in 0..lengths.groups() {
        let x = LEFT + slot * (at as f64 + 0.5);
        let n = (0..lengths.lengths.len()).filter(|&task| lengths.group(task) == at).count();
        let (label, count) = (lengths.label(at), format!("n = {}", format_thousands(n)));
        svg.text((x, bottom + 15.0), Middle, PLAIN, &label);
        svg.text((x, bottom + 28.0), Middle, FAINT, &count);
    }
    let middle = (LEFT + Svg::WIDTH - RIGHT) / 2.0;
    let unit = format!("{} in the target", lengths.unit.name());
    svg.text((middle, bottom + 45.0), Middle, FAINT, &unit);
}

fn description(
    report: &ReportContents,
    lengths: &Lengths,
    means: &[Vec<Option<(Estimate, usize)>>],
) -> String {
    let system = |(at, means): (usize, &Vec<Option<(Estimate, usize)>>)| {
        let each = means.iter().enumerate().filter_map(|(at, found)| {
            Some(format!("{} {}", lengths.label(at), with_interval(found.as_ref()?.0)))
        });
        format!("{}: {}.", report.systems[at].name, each.collect::<Vec<_>>().join(", "))
    };
    means.iter().enumerate().map(system).collect::<Vec<_>>().join(" ")
}
