//! Chart of any numbers: lines, or bars next to or on top of each other.

use super::legend::Legend;
use super::scale::Scale;
use super::svg::Anchor::{Middle, Start};
use super::svg::{FAINT, Figure, Medium, Paint, Svg, Type, fit, width as width_of};
use crate::statistics::Interval;

const LEFT: f64 = 40.0;
const RIGHT: f64 = 10.0;
const PLOT: f64 = 210.0;

/// Chart.
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
    /// Lines, or series of bars.
    pub lines: Vec<Line>,
    /// Form in which they are drawn.
    pub form: ChartForm,
}

/// Form of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ChartForm {
    /// Lines through points.
    #[default]
    Lines,
    /// Lines, and the diagonal: both axes are percentages.
    Diagonal,
    /// A group of bars for each of these names, from 0 up. The x of a point is the index of its name.
    Bars(Vec<String>),
    /// One bar for each of these names, with its parts on top of each other.
    Stacks(Vec<String>),
}

/// Line through points, or series of bars.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Draws a chart; returns `None` without a point.
pub(crate) fn draw(chart: &Chart, medium: Medium) -> Option<Figure> {
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    points().next()?;
    let legend = Legend::new(chart.lines.iter().map(|line| line.name.as_str()), 200.0);
    let top = legend.height + 22.0;
    let bottom = top + PLOT;
    let (right, mut svg) = (Svg::WIDTH - RIGHT, Svg::new(medium, bottom + 34.0));
    svg.text((0.0, top - 8.0), Start, FAINT, &chart.y);
    svg.text(((LEFT + right) / 2.0, bottom + 30.0), Middle, FAINT, &chart.x);
    if let ChartForm::Bars(names) | ChartForm::Stacks(names) = &chart.form {
        let bars = Bars { chart, names, legend: &legend, top, bottom };
        bars.draw(&mut svg);
        let description = bars.description();
        return Some(svg.finish(&chart.name, &chart.title, &description));
    }
    // The diagonal needs the same range on both axes.
    let has_diagonal = chart.form == ChartForm::Diagonal;
    let range = |range: Interval| if has_diagonal { PERCENT } else { range };
    let across = Scale::new(range(span(points().map(|point| point.0))), LEFT, right);
    let up = Scale::new(range(span(points().map(|point| point.1))), bottom, top);
    up.grid_beside(&mut svg, LEFT, right);
    across.grid_below(&mut svg, top, bottom);
    if has_diagonal {
        let ends = [0.0, 100.0].map(|value| (across.at(value), up.at(value)));
        svg.path(&ends, 1.2, true, Paint::Muted);
    }
    for (number, line) in chart.lines.iter().enumerate() {
        let (paint, form) = (Paint::Series(number), number % Svg::FORMS);
        legend.draw(number, form, paint, &mut svg);
        let places: Vec<(f64, f64)> =
            (line.points.iter()).map(|&(x, y)| (across.at(x), up.at(y))).collect();
        // Lines beyond the palette repeat its colours, dashed.
        svg.path(&places, 1.8, number >= Paint::SERIES, paint);
        for at in choose_marks(places.len(), number, chart.lines.len()) {
            let ((x, y), point) = (places[at], line.points[at]);
            let title = format!("{}: {:.1}, {:.2}", line.name, point.0, point.1);
            svg.group(&title, None, |svg| svg.mark(x, y, form, paint));
        }
    }
    Some(svg.finish(&chart.name, &chart.title, &description(&chart.lines)))
}

/// Returns the points of a line that get a mark: all if there are few, otherwise points at equal steps, with a different offset
/// for each line.
fn choose_marks(count: usize, line: usize, lines: usize) -> Vec<usize> {
    const MOST: usize = 12;
    const MARKS: usize = 6;
    if count <= MOST {
        return (0..count).collect();
    }
    let shift = (line as f64 + 0.5) / lines.max(1) as f64;
    let step = (count - 1) as f64 / MARKS as f64;
    (0..MARKS).map(|mark| ((mark as f64 + shift) * step).round() as usize).collect()
}

const PERCENT: Interval = Interval { low: 0.0, high: 100.0 };

/// Returns the range of values, a little wider if they are all equal.
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

/// Returns a name in two rows, split at its last blank, or else after its first `-` or `@`.
fn halves(name: &str) -> (&str, &str) {
    let sign = || name.find(['-', '@']).map(|at| name.split_at(at + 1));
    name.rsplit_once(' ').or_else(sign).unwrap_or((name, ""))
}

/// Bars of a chart.
struct Bars<'a> {
    chart: &'a Chart,
    names: &'a [String],
    legend: &'a Legend,
    top: f64,
    bottom: f64,
}

impl Bars<'_> {
    fn draw(&self, svg: &mut Svg) {
        let Self { chart, names, legend, top, bottom } = self;
        let is_stack = matches!(chart.form, ChartForm::Stacks(_));
        let right = Svg::WIDTH - RIGHT;
        let heights = (0..names.len()).map(|name| {
            let all = self.values(name).map(|(_, value)| value);
            if is_stack { all.sum() } else { all.fold(0.0, f64::max) }
        });
        let most = heights.fold(0.0, f64::max).max(1e-9);
        let most = if is_stack { most } else { 1.05 * most };
        let up = Scale::new(Interval { low: 0.0, high: most }, *bottom, *top);
        up.grid_beside(svg, LEFT, right);
        let slot = (right - LEFT) / names.len().max(1) as f64;
        let room = (slot * 0.84).min(120.0);
        let count = if is_stack { 1 } else { chart.lines.len().max(1) };
        let width = room / count as f64;
        for number in 0..chart.lines.len() {
            legend.draw(number, number % Svg::FORMS, Paint::Series(number), svg);
        }
        for (name, text) in names.iter().enumerate() {
            let start = LEFT + slot * name as f64 + (slot - room) / 2.0;
            let mut below = 0.0;
            for (series, value) in self.values(name) {
                let (x, base) =
                    if is_stack { (start, below) } else { (start + width * series as f64, 0.0) };
                below += value;
                let (y, foot) = (up.at(base + value), up.at(base));
                let title = format!("{}, {text}: {value:.2}", chart.lines[series].name);
                let bar = (width - 1.0).max(0.5);
                svg.group(&title, None, |svg| svg.rect(x, y, bar, foot - y, Paint::Series(series)));
            }
            let middle = LEFT + slot * (name as f64 + 0.5);
            let is_long = width_of(text, Type::Small) > slot - 2.0 && chart.x.is_empty();
            let (first, second) = if is_long { halves(text) } else { (text.as_str(), "") };
            for (part, below) in [(first, 14.0), (second, 26.0)] {
                svg.text(
                    (middle, bottom + below),
                    Middle,
                    FAINT,
                    &fit(part, slot - 2.0, Type::Small),
                );
            }
        }
        svg.line((LEFT, *bottom), (right, *bottom), 1.0, Paint::Ink);
    }

    /// Returns the series and values of a name.
    fn values(&self, name: usize) -> impl Iterator<Item = (usize, f64)> {
        let is_it = move |point: &&(f64, f64)| point.0 == name as f64;
        let of = move |line: &Line| line.points.iter().find(is_it).map(|point| point.1);
        self.chart.lines.iter().enumerate().filter_map(move |(at, line)| Some((at, of(line)?)))
    }

    fn description(&self) -> String {
        let of = |(name, text): (usize, &String)| {
            let values = self.values(name);
            let values =
                values.map(|(at, value)| format!("{} {value:.2}", self.chart.lines[at].name));
            format!("{text}: {}.", values.collect::<Vec<_>>().join(", "))
        };
        self.names.iter().enumerate().map(of).collect::<Vec<_>>().join(" ")
    }
}
