//! A chart of lines over one another, of any two numbers.

use super::super::chart::{Chart, Line};
use super::scale::Scale;
use super::svg::Anchor::{Middle, Start};
use super::svg::{FAINT, Medium, PLAIN, Paint, Svg, Type, fit, width};

const LEFT: f64 = 40.0;
const RIGHT: f64 = 10.0;
const PLOT: f64 = 210.0;
const LEGEND_ROW: f64 = 18.0;
const MARK: f64 = 16.0;

/// Draws it; nothing without a point.
pub(in super::super) fn draw(chart: &Chart, medium: Medium) -> Option<String> {
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    points().next()?;
    let mut places = Vec::new();
    let (mut x, mut y) = (0.0, 12.0);
    for line in &chart.lines {
        let wide = MARK + width(&fit(&line.name, 150.0, Type::Plain), Type::Plain);
        if x > 0.0 && x + wide > Svg::WIDTH {
            (x, y) = (0.0, y + LEGEND_ROW);
        }
        places.push((x, y));
        x += wide + 18.0;
    }
    let top = y + 26.0;
    let bottom = top + PLOT;
    let (right, mut svg) = (Svg::WIDTH - RIGHT, Svg::new(medium, bottom + 34.0));
    // Only where both have one range does the diagonal say that they are equal.
    let ranges = match chart.has_diagonal {
        true => [(0.0, 100.0); 2],
        false => [
            range(points().map(|point| point.0)),
            range(points().map(|point| point.1)),
        ],
    };
    let across = Scale::new(ranges[0], LEFT, right);
    let up = Scale::new(ranges[1], bottom, top);
    svg.text((0.0, top - 8.0), Start, FAINT, &chart.y);
    up.grid_beside(&mut svg, LEFT, right, 5);
    across.grid_below(&mut svg, top, bottom);
    svg.text(
        ((LEFT + right) / 2.0, bottom + 30.0),
        Middle,
        FAINT,
        &chart.x,
    );
    if chart.has_diagonal {
        let ends = [0.0, 100.0].map(|value| (across.at(value), up.at(value)));
        svg.path(&ends, 1.2, true, Paint::Muted);
    }
    for (number, (line, &(x, y))) in chart.lines.iter().zip(&places).enumerate() {
        let (paint, form) = (paint(number), number % 6);
        svg.mark(x + 5.0, y - 4.0, form, paint);
        svg.text(
            (x + MARK, y),
            Start,
            PLAIN,
            &fit(&line.name, 150.0, Type::Plain),
        );
        let places: Vec<(f64, f64)> = (line.points.iter())
            .map(|&(x, y)| (across.at(x), up.at(y)))
            .collect();
        // Beyond the palette lines repeat its colours, dashed.
        svg.path(&places, 1.8, number >= Paint::SERIES, paint);
        if places.len() <= 12 {
            for (&(x, y), point) in places.iter().zip(&line.points) {
                let title = format!("{}: {:.1}, {:.2}", line.name, point.0, point.1);
                svg.group(&title, None, |svg| svg.mark(x, y, form, paint));
            }
        }
    }
    Some(svg.finish(&chart.name, &chart.title, &said(&chart.lines)))
}

fn paint(number: usize) -> Paint {
    Paint::Series(number)
}

/// From the least to the greatest, a little wider where they are one.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let ends = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    match ends.1 - ends.0 {
        wide if wide > 1e-9 => ends,
        _ => (ends.0 - 1.0, ends.1 + 1.0),
    }
}

/// Each line's ends in words.
fn said(lines: &[Line]) -> String {
    let each = lines.iter().filter_map(|line| {
        let (first, last) = (line.points.first()?, line.points.last()?);
        Some(format!(
            "{}: from {:.2} at {:.1} to {:.2} at {:.1}.",
            line.name, first.1, first.0, last.1, last.0
        ))
    });
    each.collect::<Vec<_>>().join(" ")
}
