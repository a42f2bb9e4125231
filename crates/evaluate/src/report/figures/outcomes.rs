//! Number of tasks on which each system is better and worse than the baseline: bars on both sides of a line.

use super::super::ReportContents;
use super::super::text::{format_thousands, tasks};
use super::svg::Anchor::{End, Middle, Start};
use super::svg::{FAINT, Figure, Medium, PLAIN, Paint, STRONG, Svg, Type, fit};
use crate::statistics::Changes;

const LEFT: f64 = 120.0;
const RIGHT: f64 = 64.0;
const TOP: f64 = 40.0;
const ROW: f64 = 30.0;
/// Space for the count at the end of a bar.
const COUNT: f64 = 40.0;

/// Draws the bars; returns `None` without a system to compare.
pub(in crate::report) fn draw(report: &ReportContents, medium: Medium) -> Option<Figure> {
    let rows: Vec<(usize, &str, Changes)> = report
        .compared_systems()
        .map(|(at, system)| (at, system.name.as_str(), report.changes(at)))
        .collect();
    let (_, baseline) = report.baseline().filter(|_| !rows.is_empty())?;
    let most =
        |count: fn(&Changes) -> usize| rows.iter().map(|row| count(&row.2)).max().unwrap_or(0);
    let (worse, better) = (most(|row| row.worse) as f64, most(|row| row.better) as f64);
    let room = Svg::WIDTH - LEFT - RIGHT - 2.0 * COUNT;
    let scale = room / (worse + better).max(1.0);
    let middle = LEFT + COUNT + worse * scale;
    let bottom = TOP + ROW * rows.len() as f64;
    let mut svg = Svg::new(medium, bottom + 26.0);
    heads(&mut svg, middle);
    let bars = Bars { middle, scale };
    for (at, (system, name, changes)) in rows.iter().enumerate() {
        let y = TOP + ROW * at as f64;
        let shown = fit(name, LEFT - 10.0, Type::Strong);
        svg.text((0.0, y + ROW / 2.0 + 4.0), Start, STRONG, &shown);
        bars.row(&mut svg, *system, name, *changes, y);
    }
    svg.line((middle, TOP - 4.0), (middle, bottom + 4.0), 1.0, Paint::Ink);
    let foot = format!("tasks, compared with {} by {}", baseline.name, report.main_label());
    let foot = fit(&foot, 300.0, Type::Small);
    svg.text((middle, bottom + 20.0), Middle, FAINT, &foot);
    let what: Vec<String> = rows
        .iter()
        .map(|(_, name, v)| {
            format!("{name}: {} better, {} same, {} worse.", v.better, v.same, v.worse)
        })
        .collect();
    let title = format!("Tasks better and worse than {}", baseline.name);
    Some(svg.finish("outcomes", &title, &what.join(" ")))
}

fn heads(svg: &mut Svg, middle: f64) {
    let y = TOP - 16.0;
    svg.text((middle - 8.0, y), End, (Type::Strong, Paint::Worse), "▼ worse");
    svg.text((middle + 8.0, y), Start, (Type::Strong, Paint::Better), "better ▲");
    svg.text((Svg::WIDTH - 4.0, y), End, FAINT, "the same");
}

/// Bars on both sides of a line.
struct Bars {
    middle: f64,
    /// Pixels per task.
    scale: f64,
}

impl Bars {
    fn row(&self, svg: &mut Svg, system: usize, name: &str, changes: Changes, y: f64) {
        let Self { middle, scale } = *self;
        let all = changes.total().max(1) as f64;
        let mut part = |outcome: &str, words: &str, count: usize, draw: &dyn Fn(&mut Svg, f64)| {
            let share = 100.0 * count as f64 / all;
            let title = format!("{name} {words}: {}, {share:.1} %", tasks(count));
            let pick = format!("system={system}&outcome={outcome}");
            svg.group(&title, Some(&pick), |svg| draw(svg, count as f64 * scale));
        };
        let (base, height) = (y + ROW / 2.0 + 4.0, ROW - 10.0);
        part("worse", "worse", changes.worse, &|svg, width| {
            svg.area(middle - width - COUNT, y, width + COUNT, ROW);
            svg.rect(middle - width, y + 5.0, width, height, Paint::Worse);
            svg.text((middle - width - 6.0, base), End, PLAIN, &format_thousands(changes.worse));
        });
        part("better", "better", changes.better, &|svg, width| {
            svg.area(middle, y, width + COUNT, ROW);
            svg.rect(middle, y + 5.0, width, height, Paint::Better);
            svg.text((middle + width + 6.0, base), Start, PLAIN, &format_thousands(changes.better));
        });
        part("same", "the same", changes.same, &|svg, _| {
            svg.area(Svg::WIDTH - RIGHT, y, RIGHT, ROW);
            svg.text(
                (Svg::WIDTH - 4.0, base),
                End,
                (Type::Plain, Paint::Muted),
                &format_thousands(changes.same),
            );
        });
    }
}
