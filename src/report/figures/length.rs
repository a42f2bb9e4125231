//! The main measure by the target's length: a line a system, with the interval of each mean as a band.

use super::super::group::{Lengths, mean};
use super::super::text::grouped;
use super::super::{Mean, Report};
use super::scale::Scale;
use super::svg::Anchor::{Middle, Start};
use super::svg::{FAINT, Medium, PLAIN, Paint, Svg, Type, fit, width};
use super::{series, with_interval};

const LEFT: f64 = 34.0;
const RIGHT: f64 = 10.0;
const PLOT: f64 = 170.0;
const LEGEND_ROW: f64 = 18.0;

/// Draws the lines; nothing without a task or a system.
pub(super) fn draw(
    report: &Report,
    lengths: &Lengths,
    medium: Medium,
    name: &str,
) -> Option<String> {
    if report.tasks.is_empty() || report.systems.is_empty() {
        return None;
    }
    let legend = Legend::of(report);
    let top = legend.height + 22.0;
    let bottom = top + PLOT;
    let groups = lengths.groups();
    let means: Vec<Vec<Option<(Mean, usize)>>> = (0..report.systems.len())
        .map(|system| {
            (0..groups)
                .map(|at| group(report, lengths, system, at))
                .collect()
        })
        .collect();
    let all = means.iter().flatten().flatten().map(|(mean, _)| *mean);
    let scale = Scale::around(all, bottom, top);
    let slot = (Svg::WIDTH - LEFT - RIGHT) / groups as f64;
    let mut svg = Svg::new(medium, bottom + 50.0);
    legend.draw(report, &mut svg);
    let measure = format!("{} × 100", report.main_label());
    svg.text((0.0, top - 10.0), Start, FAINT, &measure);
    scale.grid_beside(&mut svg, LEFT, Svg::WIDTH - RIGHT, 5);
    axis(&mut svg, lengths, bottom, slot);
    for (system, means) in means.iter().enumerate() {
        let place =
            |at: usize, value: f64| (LEFT + slot * (at as f64 + 0.5), scale.at(value * 100.0));
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
                let (x, y) = (LEFT + slot * (at as f64 + 0.5), scale.at(mean.mean * 100.0));
                svg.area(x - 9.0, y - 9.0, 18.0, 18.0);
                svg.mark(x, y, form, paint);
            });
        }
    }
    let title = format!("{} by the target's length", report.main_label());
    Some(svg.finish(name, &title, &said(report, lengths, &means)))
}

/// A system's mean over the tasks of a group, and how many they are.
fn group(report: &Report, lengths: &Lengths, system: usize, at: usize) -> Option<(Mean, usize)> {
    let tasks = (0..report.tasks.len()).filter(|&task| lengths.group(task) == at);
    let values: Vec<f64> = tasks
        .filter_map(|task| report.value(system, task, report.main))
        .collect();
    Some((mean(&values)?, values.len()))
}

/// Bands and the line through the means: the line is broken where a group is empty, the band where one has no interval.
fn line(
    report: &Report,
    system: usize,
    means: &[Option<(Mean, usize)>],
    svg: &mut Svg,
    place: &impl Fn(usize, f64) -> (f64, f64),
) {
    let (paint, _) = series(report, system);
    let mean = |at: usize| Some(means[at]?.0);
    let runs = |through: &dyn Fn(usize) -> bool| -> Vec<Vec<usize>> {
        let groups: Vec<usize> = (0..means.len()).collect();
        let runs = groups.split(|&at| !through(at));
        runs.filter(|run| run.len() > 1)
            .map(<[usize]>::to_vec)
            .collect()
    };
    for run in runs(&|at| mean(at).is_some_and(|mean| mean.interval.is_some())) {
        let bound = |at: usize, upper: bool| {
            let (low, high) = mean(at)?.interval?;
            Some(place(at, if upper { high } else { low }))
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
    svg.line(
        (LEFT, bottom),
        (Svg::WIDTH - RIGHT, bottom),
        1.0,
        Paint::Ink,
    );
    for at in 0..lengths.groups() {
        let x = LEFT + slot * (at as f64 + 0.5);
        let n = (0..lengths.lengths.len())
            .filter(|&task| lengths.group(task) == at)
            .count();
        let (label, count) = (lengths.label(at), format!("n = {}", grouped(n)));
        svg.text((x, bottom + 15.0), Middle, PLAIN, &label);
        svg.text((x, bottom + 28.0), Middle, FAINT, &count);
    }
    let middle = (LEFT + Svg::WIDTH - RIGHT) / 2.0;
    let unit = format!("{} in the target", lengths.unit.name());
    svg.text((middle, bottom + 45.0), Middle, FAINT, &unit);
}

fn said(report: &Report, lengths: &Lengths, means: &[Vec<Option<(Mean, usize)>>]) -> String {
    let system = |(at, means): (usize, &Vec<Option<(Mean, usize)>>)| {
        let each = means.iter().enumerate().filter_map(|(at, found)| {
            Some(format!(
                "{} {}",
                lengths.label(at),
                with_interval(found.as_ref()?.0)
            ))
        });
        format!(
            "{}: {}.",
            report.systems[at].name,
            each.collect::<Vec<_>>().join(", ")
        )
    };
    means
        .iter()
        .enumerate()
        .map(system)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The systems' names beside their marks, in as many rows as they need.
struct Legend {
    places: Vec<(f64, f64)>,
    height: f64,
}

impl Legend {
    const MARK: f64 = 16.0;
    const ROOM: f64 = 140.0;

    fn of(report: &Report) -> Self {
        let (mut x, mut y, mut places) = (0.0, 12.0, Vec::new());
        for system in &report.systems {
            let wide = Self::MARK + width(&fit(&system.name, Self::ROOM, Type::Plain), Type::Plain);
            if x > 0.0 && x + wide > Svg::WIDTH {
                (x, y) = (0.0, y + LEGEND_ROW);
            }
            places.push((x, y));
            x += wide + 18.0;
        }
        let height = y + 4.0;
        Self { places, height }
    }

    fn draw(&self, report: &Report, svg: &mut Svg) {
        for (system, &(x, y)) in self.places.iter().enumerate() {
            let (paint, form) = series(report, system);
            let name = fit(&report.systems[system].name, Self::ROOM, Type::Plain);
            svg.mark(x + 5.0, y - 4.0, form, paint);
            svg.text((x + Self::MARK, y), Start, PLAIN, &name);
        }
    }
}
