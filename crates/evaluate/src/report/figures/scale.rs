//! Scales from values to positions.

use super::svg::Anchor::{End, Middle};
use super::svg::{FAINT, Paint, Svg, ticks};
use crate::statistics::{Estimate, Interval};

/// Returns a value at a grid line, rounded to remove multiplication errors in the last digits.
fn label(value: f64) -> String {
    ((value * 1e9).round() / 1e9).to_string()
}

/// Linear scale that maps values × 100 from `low` to `high` to positions between `from` and `to`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    pub(super) fn new(Interval { low, high }: Interval, from: f64, to: f64) -> Self {
        Self { low, high, from, to }
    }

    /// Returns a scale for means with their intervals, between multiples of 5, within 0 and 100 and at least 10 wide.
    pub(super) fn around(means: impl Iterator<Item = Estimate>, from: f64, to: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for mean in means {
            let ends = mean.interval.map(|ends| [ends.low, ends.high]);
            for end in ends.into_iter().flatten().chain([mean.mean]) {
                (low, high) = (low.min(end), high.max(end));
            }
        }
        if !(low.is_finite() && high.is_finite()) {
            (low, high) = (0.0, 1.0);
        }
        let mut low = ((low * 100.0 - 0.5) / 5.0).floor() * 5.0;
        let mut high = ((high * 100.0 + 0.5) / 5.0).ceil() * 5.0;
        if high - low < 10.0 {
            (low, high) = (low - 5.0, high + 5.0);
        }
        let range = Interval { low: low.clamp(0.0, 90.0), high: high.clamp(10.0, 100.0) };
        Self::new(range, from, to)
    }

    /// Returns the position of a value × 100.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self.from + share * (self.to - self.from)
    }

    /// Draws vertical grid lines from `top` to `bottom` with their values below.
    pub(super) fn grid_below(&self, svg: &mut Svg, top: f64, bottom: f64) {
        for value in ticks(self.low, self.high, 5) {
            let x = self.at(value);
            svg.line((x, top), (x, bottom), 1.0, Paint::Rule);
            svg.text((x, bottom + 13.0), Middle, FAINT, &label(value));
        }
    }

    /// Draws horizontal grid lines from `left` to `right` with their values on the left.
    pub(super) fn grid_beside(&self, svg: &mut Svg, left: f64, right: f64) {
        for value in ticks(self.low, self.high, 5) {
            let y = self.at(value);
            svg.line((left, y), (right, y), 1.0, Paint::Rule);
            svg.text((left - 6.0, y + 3.5), End, FAINT, &label(value));
        }
    }

    /// Draws a mean's interval as a horizontal line.
    pub(super) fn whisker(&self, svg: &mut Svg, mean: Estimate, y: f64, paint: Paint) {
        if let Some(Interval { low, high }) = mean.interval {
            let (low, high) = (self.at(low * 100.0), self.at(high * 100.0));
            svg.line((low, y), (high, y), 2.0, paint);
            for end in [low, high] {
                svg.line((end, y - 3.0), (end, y + 3.0), 1.4, paint);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_holds_its_means_between_fives() {
        let mean = |mean, low, high| Estimate { mean, interval: Some(Interval { low, high }) };
        let means = [mean(0.302, 0.281, 0.323), mean(0.36, 0.34, 0.382)];
        let scale = Scale::around(means.into_iter(), 100.0, 200.0);
        assert_eq!((scale.low, scale.high), (25.0, 40.0));
        assert_eq!(scale.at(32.5), 150.0);
        let none = Scale::around([].into_iter(), 0.0, 1.0);
        assert_eq!((none.low, none.high), (0.0, 100.0));
    }
}
