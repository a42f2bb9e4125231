//! Legend: names of systems or lines next to their marks, in as many rows as needed, and the marks of systems.

use super::super::ReportContents;
use super::svg::Anchor::Start;
use super::svg::{PLAIN, Paint, Svg, Type, fit, width};

const ROW: f64 = 18.0;
const MARK: f64 = 16.0;
/// Greatest factor by which a page enlarges letters (`page.css`).
const LARGEST: f64 = 14.0 / 12.0;

/// Legend.
pub(super) struct Legend {
    /// Name and position of each entry.
    entries: Vec<(String, f64, f64)>,
    pub(super) height: f64,
}

impl Legend {
    /// Positions names, each cut to `room` pixels.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>, room: f64) -> Self {
        let (mut x, mut y, mut entries) = (0.0, 12.0, Vec::new());
        for name in names {
            let name = fit(name, room, Type::Plain);
            // Narrow pages show larger letters.
            let wide = MARK + LARGEST * width(&name, Type::Plain);
            if x > 0.0 && x + wide > Svg::WIDTH {
                (x, y) = (0.0, y + ROW);
            }
            entries.push((name, x, y));
            x += wide + 14.0;
        }
        let height = y + 4.0;
        Self { entries, height }
    }

    /// Draws an entry.
    pub(super) fn draw(&self, number: usize, form: usize, paint: Paint, svg: &mut Svg) {
        let (name, x, y) = &self.entries[number];
        svg.mark(x + 5.0, y - 4.0, form, paint);
        svg.text((x + MARK, *y), Start, PLAIN, name);
    }
}

/// Returns the colour and form of a system. The baseline is muted, and dashed as a line; the others follow in order.
pub(super) fn series(report: &ReportContents, system: usize) -> (Paint, usize) {
    match report.baseline() {
        Some((baseline, _)) if baseline == system => (Paint::Muted, 0),
        Some((baseline, _)) if baseline < system => (Paint::Series(system - 1), system),
        _ => (Paint::Series(system), system + 1),
    }
}
