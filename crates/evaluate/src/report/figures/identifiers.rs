//! Main measure by the retrieved share of the target's identifiers: each row compares a system with the baseline *on the same
//! tasks*.

use super::super::ReportContents;
use super::super::group::{TargetShare, mean};
use super::super::text::{format_thousands, with_interval};
use super::legend::series;
use super::scale::Scale;
use super::svg::Anchor::{End, Middle, Start};
use super::svg::{FAINT, Figure, Medium, Paint, SMALL, STRONG, Svg, Type, fit};
use crate::statistics::Estimate;

const LEFT: f64 = 120.0;
const RIGHT: f64 = 52.0;
const TOP: f64 = 24.0;
const HEAD: f64 = 22.0;
const ROW: f64 = 20.0;
const SPACE: f64 = 8.0;

struct Row {
    found: TargetShare,
    n: usize,
    mean: Estimate,
    baseline: Option<Estimate>,
}

/// Draws the rows of every system that retrieved anything; returns `None` if none did.
pub(in crate::report) fn draw(report: &ReportContents, medium: Medium) -> Option<Figure> {
    let systems = (0..report.systems.len()).map(|system| (system, rows(report, system)));
    let systems: Vec<(usize, Vec<Row>)> = systems.filter(|(_, rows)| !rows.is_empty()).collect();
    if systems.is_empty() {
        return None;
    }
    let all = || systems.iter().flat_map(|(_, rows)| rows);
    let means = all().map(|row| row.mean).chain(all().filter_map(|row| row.baseline));
    let scale = Scale::around(means, LEFT, Svg::WIDTH - RIGHT);
    let panels = systems.iter().map(|(_, rows)| HEAD + ROW * rows.len() as f64 + SPACE);
    let bottom = TOP + panels.sum::<f64>();
    let mut svg = Svg::new(medium, bottom + 36.0);
    scale.grid_below(&mut svg, TOP, bottom);
    key(report, &mut svg);
    let mut top = TOP;
    for (system, rows) in &systems {
        let who = fit(&report.systems[*system].name, LEFT - 10.0, Type::Strong);
        svg.text((0.0, top + 15.0), Start, STRONG, &who);
        for (at, row) in rows.iter().enumerate() {
            let y = top + HEAD + ROW * (at as f64 + 0.5);
            draw_row(report, *system, row, &mut svg, &scale, y);
        }
        top += HEAD + ROW * rows.len() as f64 + SPACE;
    }
    let axis = format!("{} × 100", report.main_label());
    let middle = (LEFT + Svg::WIDTH - RIGHT) / 2.0;
    svg.text((middle, bottom + 30.0), Middle, FAINT, &axis);
    let title = format!("{} by retrieved identifiers of the target", report.main_label());
    let name = format!("{}-by-identifiers", report.main_file_name());
    Some(svg.finish(&name, &title, &description(report, &systems)))
}

fn rows(report: &ReportContents, system: usize) -> Vec<Row> {
    let row = |found: TargetShare| {
        let tasks: Vec<usize> = (0..report.tasks.len())
            .filter(|&task| TargetShare::from_report(report, system, task) == found)
            .collect();
        let values = |of: usize| -> Vec<f64> {
            let values = tasks.iter().filter_map(|&task| report.value(of, task, report.main));
            values.collect()
        };
        let own = values(system);
        let baseline = report.baseline().map(|(at, _)| at).filter(|&at| at != system);
        Some(Row {
            found,
            n: own.len(),
            mean: mean(&own)?,
            baseline: baseline.and_then(|at| mean(&values(at))),
        })
    };
    TargetShare::SHOWN.into_iter().filter_map(row).collect()
}

fn key(report: &ReportContents, svg: &mut Svg) {
    let right = Svg::WIDTH - 4.0;
    svg.text((right, 12.0), End, FAINT, "tasks");
    if let Some((_, baseline)) = report.baseline() {
        svg.ring(LEFT + 5.0, 8.0, Paint::Muted);
        let name = format!("{} on the same tasks", fit(&baseline.name, 160.0, Type::Small));
        svg.text((LEFT + 14.0, 12.0), Start, FAINT, &name);
    }
}

fn draw_row(
    report: &ReportContents,
    system: usize,
    row: &Row,
    svg: &mut Svg,
    scale: &Scale,
    y: f64,
) {
    let (paint, form) = series(report, system);
    let name = &report.systems[system].name;
    let mut title = format!("{name}, {}: {}", row.found.title(), with_interval(row.mean));
    if let (Some((_, baseline)), Some(mean)) = (report.baseline(), row.baseline) {
        title += &format!("; {} {}", baseline.name, with_interval(mean));
    }
    let pick = format!("system={system}&found={}", row.found.letter());
    svg.group(&format!("{title}, n = {}", row.n), Some(&pick), |svg| {
        svg.area(0.0, y - ROW / 2.0, Svg::WIDTH, ROW);
        svg.text((LEFT - 12.0, y + 3.5), End, FAINT, row.found.title());
        let x = scale.at(row.mean.mean * 100.0);
        scale.whisker(svg, row.mean, y, paint);
        if let Some(baseline) = row.baseline {
            let from = scale.at(baseline.mean * 100.0);
            svg.line((from, y), (x, y), 1.0, Paint::Muted);
            svg.ring(from, y, Paint::Muted);
        }
        svg.mark(x, y, form, paint);
        svg.text((Svg::WIDTH - 4.0, y + 3.5), End, SMALL, &format_thousands(row.n));
    });
}

fn description(report: &ReportContents, systems: &[(usize, Vec<Row>)]) -> String {
    let system = |(at, rows): &(usize, Vec<Row>)| {
        let each = rows.iter().map(|row| {
            let baseline = row.baseline.map(|mean| format!(" against {}", with_interval(mean)));
            let baseline = baseline.unwrap_or_default();
            format!("{} {}{baseline} (n = {})", row.found.title(), with_interval(row.mean), row.n)
        });
        format!("{}: {}.", report.systems[*at].name, each.collect::<Vec<_>>().join(", "))
    };
    systems.iter().map(system).collect::<Vec<_>>().join(" ")
}
