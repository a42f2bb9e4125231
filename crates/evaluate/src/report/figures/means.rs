//! Mean of every measure and system with its interval: one panel per measure, one row per system.

use super::super::ReportContents;
use super::super::text::hundredths;
use super::legend::series;
use super::scale::Scale;
use super::svg::Anchor::{End, Start};
use super::svg::{FAINT, Figure, Medium, PLAIN, STRONG, Svg, Type, fit};
use crate::statistics::Estimate;

const LEFT: f64 = 120.0;
const RIGHT: f64 = 56.0;
const HEAD: f64 = 26.0;
const ROW: f64 = 22.0;
/// Ticks, and the space before the next panel.
const FOOT: f64 = 36.0;

/// Draws the panels; returns `None` without a measure or a system.
pub(in crate::report) fn draw(report: &ReportContents, medium: Medium) -> Option<Figure> {
    if report.measures.is_empty() || report.systems.is_empty() {
        return None;
    }
    let panel = HEAD + ROW * report.systems.len() as f64 + FOOT;
    let height = panel * report.measures.len() as f64 - 12.0;
    let mut svg = Svg::new(medium, height);
    let mut descriptions = Vec::new();
    for (at, measure) in report.measures.iter().enumerate() {
        let top = panel * at as f64;
        let head = format!("{} × 100", fit(&measure.title, 240.0, Type::Strong));
        svg.text((LEFT, top + 14.0), Start, STRONG, &head);
        let same = report.measures.iter().filter(|other| other.title == measure.title);
        if same.count() > 1 {
            let x = Svg::WIDTH - 4.0;
            svg.text((x, top + 14.0), End, FAINT, &fit(&measure.metric, 90.0, Type::Small));
        }
        descriptions.push(rows(report, at, &mut svg, top + HEAD));
    }
    let title = format!("Means with their {}", intervals(report));
    Some(svg.finish("means", &title, &descriptions.join(" ")))
}

/// Describes the lines through the means.
pub(in crate::report) fn intervals(report: &ReportContents) -> String {
    match report.few {
        Some(few) => format!("ranges over {few} repositories"),
        None => "95 % intervals".into(),
    }
}

fn rows(report: &ReportContents, measure: usize, svg: &mut Svg, top: f64) -> String {
    let mean = |system: usize| report.systems[system].means.get(measure).copied();
    let means: Vec<Option<Estimate>> = (0..report.systems.len()).map(mean).collect();
    let scale = Scale::around(means.iter().flatten().copied(), LEFT, Svg::WIDTH - RIGHT);
    let bottom = top + ROW * means.len() as f64;
    scale.grid_below(svg, top - 2.0, bottom);
    let title = &report.measures[measure].title;
    let mut description = format!("{title}:");
    for (system, mean) in means.into_iter().enumerate() {
        let name = &report.systems[system].name;
        let y = top + ROW * system as f64 + ROW / 2.0;
        let shown = fit(name, LEFT - 14.0, Type::Plain);
        svg.text((0.0, y + 4.0), Start, PLAIN, &shown);
        let Some(mean) = mean else { continue };
        let (paint, form) = series(report, system);
        svg.group(&format!("{name}: {title} {}", report.with_interval(mean)), None, |svg| {
            svg.area(LEFT, y - ROW / 2.0, Svg::WIDTH - LEFT, ROW);
            scale.whisker(svg, mean, y, paint);
            svg.mark(scale.at(mean.mean * 100.0), y, form, paint);
            let (at, value) = ((Svg::WIDTH - 4.0, y + 4.0), hundredths(mean.mean));
            svg.text(at, End, PLAIN, &value);
        });
        description += &format!(" {name} {},", report.with_interval(mean));
    }
    description.pop();
    description.push('.');
    description
}
