//! Histogram of gains, as in Repoformer's figures 3, 6 and 10.

use super::super::ReportContents;
use super::super::gain::range;
use super::super::text::{format_thousands, tasks};
use super::svg::Anchor::{End, Middle, Start};
use super::svg::{FAINT, Figure, Medium, Paint, Svg, Type, fit, ticks};
use crate::statistics::{Bucket, Buckets, Changes};

const HEIGHT: f64 = 250.0;
const LEFT: f64 = 44.0;
const TOP: f64 = 42.0;
const BOTTOM: f64 = 204.0;
const SLOT: f64 = 37.0;
/// Space on both sides of the central column.
const APART: f64 = 8.0;

/// Draws a system's histogram.
pub(super) fn draw(report: &ReportContents, system: usize, medium: Medium, name: &str) -> Figure {
    let Buckets { counts } = report.histogram(system);
    let changes = report.changes(system);
    let (who, than) = names(report, system);
    let measure = report.main_label();
    let columns = Columns::from_counts(&counts);
    let mut svg = Svg::new(medium, HEIGHT);
    heads(&mut svg, changes);
    columns.grid(&mut svg);
    for bucket in Bucket::all() {
        columns.column(&mut svg, bucket, changes.total(), system);
    }
    svg.line((LEFT, BOTTOM), (Svg::WIDTH - 4.0, BOTTOM), 1.0, Paint::Ink);
    let axis = format!("gain of {who} over {than} in {measure} × 100");
    let middle = columns.x(5) + SLOT / 2.0;
    let axis = fit(&axis, 380.0, Type::Small);
    svg.text((middle, BOTTOM + 36.0), Middle, FAINT, &axis);
    let Changes { better, same, worse } = changes;
    let what = format!("Better on {}, the same on {same}, worse on {worse}.", tasks(better));
    svg.finish(name, &format!("Gain of {who} over {than} in {measure}"), &what)
}

fn names<'a>(report: &'a ReportContents<'_>, system: usize) -> (&'a str, &'a str) {
    let name = |at: usize| report.systems.get(at).map_or("", |system| system.name.as_str());
    (name(system), report.baseline.map_or("", name))
}

fn heads(svg: &mut Svg, changes: Changes) {
    let of = |count: usize| match changes.total() {
        0 => String::new(),
        all => format!(" · {:.1} %", 100.0 * count as f64 / all as f64),
    };
    let worse = format!("▼ worse {}{}", format_thousands(changes.worse), of(changes.worse));
    let better = format!("{}{} better ▲", format_thousands(changes.better), of(changes.better));
    svg.text((LEFT, 14.0), Start, (Type::Strong, Paint::Worse), &worse);
    svg.text((Svg::WIDTH - 4.0, 14.0), End, (Type::Strong, Paint::Better), &better);
}

/// Heights of the columns. The central column is often ten times as high as the others; it is then cut, so that the others
/// remain visible.
struct Columns<'a> {
    counts: &'a [usize; Bucket::COUNT],
    /// Count at full height.
    top: f64,
    cut: bool,
}

impl<'a> Columns<'a> {
    fn from_counts(counts: &'a [usize; Bucket::COUNT]) -> Self {
        let zero = counts[Bucket::COUNT / 2];
        let others = counts.iter().enumerate().filter(|(at, _)| *at != Bucket::COUNT / 2);
        let most = others.map(|(_, &count)| count).max().unwrap_or(0);
        let cut = most > 0 && zero * 2 > most * 3;
        let highest = if cut { most as f64 * 1.3 } else { most.max(zero) as f64 * 1.1 };
        Self { counts, top: highest.max(1.0), cut }
    }

    fn x(&self, index: usize) -> f64 {
        let apart = match index {
            0..5 => 0.0,
            5 => APART,
            _ => 2.0 * APART,
        };
        LEFT + 4.0 + SLOT * index as f64 + apart
    }

    fn y(&self, count: f64) -> f64 {
        BOTTOM - (count / self.top).min(1.0) * (BOTTOM - TOP)
    }

    fn grid(&self, svg: &mut Svg) {
        svg.text((LEFT - 8.0, TOP - 12.0), End, FAINT, "tasks");
        for count in ticks(0.0, self.top, 4).into_iter().filter(|count| count.fract() == 0.0) {
            let y = self.y(count);
            svg.line((LEFT, y), (Svg::WIDTH - 4.0, y), 1.0, Paint::Rule);
            svg.text((LEFT - 8.0, y + 3.5), End, FAINT, &format_thousands(count as usize));
        }
    }

    fn column(&self, svg: &mut Svg, bucket: Bucket, all: usize, system: usize) {
        let index = bucket.index();
        let (count, x) = (self.counts[index], self.x(index));
        let label = bucket.label();
        let (paint, sign) = match label.signum() {
            0 => (Paint::Same, ""),
            1 => (Paint::Better, "+"),
            _ => (Paint::Worse, "\u{2212}"),
        };
        let share = 100.0 * count as f64 / all.max(1) as f64;
        let title = format!("gain {}: {}, {share:.1} %", range(bucket), tasks(count));
        let pick = format!("system={system}&bucket={}", char::from(b'a' + index as u8));
        let pick = (count > 0).then_some(pick.as_str());
        svg.group(&title, pick, |svg| {
            svg.area(x, TOP - 14.0, SLOT, BOTTOM - TOP + 14.0);
            let y = self.y(count as f64);
            // A single task among thousands remains visible.
            let y = if count > 0 { y.min(BOTTOM - 1.5) } else { y };
            svg.rect(x + 3.0, y, SLOT - 6.0, BOTTOM - y, paint);
            if self.cut && label == 0 {
                self.break_sign(svg, x);
            }
            let ink = if count == 0 { Paint::Muted } else { Paint::Ink };
            let value = (x + SLOT / 2.0, y - 5.0);
            svg.text(value, Middle, (Type::Small, ink), &format_thousands(count));
        });
        let tick = format!("{sign}{}", label.abs());
        svg.text((x + SLOT / 2.0, BOTTOM + 15.0), Middle, FAINT, &tick);
    }

    /// Draws two strokes across the central column, which mark it as cut.
    fn break_sign(&self, svg: &mut Svg, x: f64) {
        for y in [TOP + 22.0, TOP + 28.0] {
            let points = [(x - 1.0, y + 4.0), (x + SLOT + 1.0, y - 4.0)];
            svg.path(&points, 2.6, false, Paint::Paper);
        }
    }
}
