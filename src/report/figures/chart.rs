//! A line chart of any two numbers.

use super::legend::Legend;
use super::scale::Scale;
use super::svg::Anchor::{Middle, Start};
use super::svg::{FAINT, Figure, Medium, Paint, Svg};
use crate::evaluate::statistics::Interval;

const LEFT: f64 = 40.0;
const RIGHT: f64 = 10.0;
const PLOT: f64 = 210.0;

/// A line chart.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chart {
    /// Name of the file, without extension.
    pub name: String,
    /// Title.
    pub title: String,
    /// Caption.
    pub caption: String,
    /// Name and unit of the horizontal axis.
    pub x: String,
    /// Name and unit of the vertical axis.
    pub y: String,
    /// Lines.
    pub lines: Vec<Line>,
    /// Whether both axes are percentages and the diagonal is drawn.
    pub has_diagonal: bool,
}

/// A line through points.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Draws a chart; nothing without a point.
pub(crate) fn draw(chart: &Chart, medium: Medium) -> Option<Figure> {
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    points().next()?;
    let legend = Legend::of(chart.lines.iter().map(|line| line.name.as_str()), 150.0);
    let top = legend.height + 22.0;
    let bottom = top + PLOT;
    let (right, mut svg) = (Svg::WIDTH - RIGHT, Svg::new(medium, bottom + 34.0));
    // The diagonal needs the same range on both axes.
    let range = |range: Interval| if chart.has_diagonal { PERCENT } else { range };
    let across = Scale::new(range(span(points().map(|point| point.0))), LEFT, right);
    let up = Scale::new(range(span(points().map(|point| point.1))), bottom, top);
    svg.text((0.0, top - 8.0), Start, FAINT, &chart.y);
    up.grid_beside(&mut svg, LEFT, right);
    across.grid_below(&mut svg, top, bottom);
    svg.text(((LEFT + right) / 2.0, bottom + 30.0), Middle, FAINT, &chart.x);
    if chart.has_diagonal {
        let ends = [0.0, 100.0].map(|value| (across.at(value), up.at(value)));
        svg.path(&ends, 1.2, true, Paint::Muted);
    }
    for (number, line) in chart.lines.iter().enumerate() {
        let (paint, form) = (Paint::Series(number), number % 6);
        legend.draw(number, form, paint, &mut svg);
        let places: Vec<(f64, f64)> =
            (line.points.iter()).map(|&(x, y)| (across.at(x), up.at(y))).collect();
        // Lines beyond the palette repeat its colours, dashed.
        svg.path(&places, 1.8, number >= Paint::SERIES, paint);
        if places.len() <= 12 {
            for (&(x, y), point) in places.iter().zip(&line.points) {
                let title = format!("{}: {:.1}, {:.2}", line.name, point.0, point.1);
                svg.group(&title, None, |svg| svg.mark(x, y, form, paint));
            }
        }
    }
    Some(svg.finish(&chart.name, &chart.title, &description(&chart.lines)))
}

const PERCENT: Interval = Interval { low: 0.0, high: 100.0 };

/// Range of values, a little wider if they are all equal.
fn span(values: impl Iterator<Item = f64> + Clone) -> Interval {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    let margin = if high - low > 1e-9 { 0.0 } else { 1.0 };
    Interval { low: low - margin, high: high + margin }
}

/// Describes the ends of each line.
fn description(lines: &[Line]) -> String {
    let each = lines.iter().filter_map(|line| {
        let (first, last) = (line.points.first()?, line.points.last()?);
        Some(format!(
            "{}: from {:.2} at {:.1} to {:.2} at {:.1}.",
            line.name, first.1, first.0, last.1, last.0
        ))
    });
    each.collect::<Vec<_>>().join(" ")
}
