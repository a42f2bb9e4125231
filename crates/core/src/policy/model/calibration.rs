//! Calibration of log-odds to probabilities: of all requests with probability 0.3, three in ten gain from retrieval.

use repoformer_text::named;
use serde::{Deserialize, Serialize};

/// Method of calibration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CalibrationMethod {
    /// A logistic curve (Platt 1999): two parameters, for any amount of data.
    #[default]
    Platt,
    /// Any increasing curve (Zadrozny & Elkan 2002), for thousands of labels.
    Isotonic,
}

named! {
    CalibrationMethod, "calibration":
    Platt = "platt",
    Isotonic = "isotonic",
}

/// Increasing map from log-odds to probabilities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "lowercase")]
pub enum Calibration {
    /// `1 / (1 + exp(-(slope · log-odds + offset)))`.
    Platt {
        /// Slope.
        slope: f64,
        /// Offset.
        offset: f64,
    },
    /// Linear interpolation between points of log-odds and probability, both increasing; constant outside the points.
    Isotonic {
        /// Points.
        points: Vec<(f64, f64)>,
    },
}

impl Calibration {
    /// Fits a calibration to the labels of instances and the scores from a model that was not trained on them.
    pub fn fit(method: CalibrationMethod, scores: &[f64], labels: &[bool]) -> Self {
        match method {
            CalibrationMethod::Platt => platt(scores, labels),
            CalibrationMethod::Isotonic => isotonic(scores, labels),
        }
    }

    /// Returns the probability that retrieval helps.
    pub fn probability(&self, log_odds: f64) -> f64 {
        match self {
            Self::Platt { slope, offset } => sigmoid(slope * log_odds + offset),
            Self::Isotonic { points } => {
                let after = points.partition_point(|(at, _)| *at <= log_odds);
                let left = after.checked_sub(1).map(|place| points[place]);
                match (left, points.get(after)) {
                    (Some((x, y)), Some((next_x, next_y))) => {
                        y + (next_y - y) * (log_odds - x) / (next_x - x)
                    }
                    (Some((_, y)), None) => y,
                    (None, Some((_, y))) => *y,
                    (None, None) => 0.5,
                }
            }
        }
    }
}

/// Rounds a trained number to eight decimals, because further digits differ between processors.
pub(super) fn round_trained(value: f64) -> f64 {
    (value * 1e8).round() / 1e8
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

/// Fits by Newton's method to Platt's targets, which are moved towards even odds so that no score is certain.
fn platt(scores: &[f64], labels: &[bool]) -> Calibration {
    let positive = labels.iter().filter(|label| **label).count() as f64;
    let negative = labels.len() as f64 - positive;
    let (high, low) = ((positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0));
    let (mut slope, mut offset) = (1.0, libm::log((positive + 1.0) / (negative + 1.0)));
    let loss = |slope: f64, offset: f64| -> f64 {
        (scores.iter().zip(labels))
            .map(|(score, &label)| {
                let z = slope * score + offset;
                let target = if label { high } else { low };
                // ln(1 + e^z) − target · z, without overflow.
                z.max(0.0) + libm::log1p(libm::exp(-z.abs())) - target * z
            })
            .sum()
    };
    let mut now = loss(slope, offset);
    for _ in 0..100 {
        let (mut ga, mut gb, mut haa, mut hab, mut hbb) = (0.0, 0.0, 1e-9, 0.0, 1e-9);
        for (&score, &label) in scores.iter().zip(labels) {
            let p = sigmoid(slope * score + offset);
            let (error, weight) = (p - if label { high } else { low }, p * (1.0 - p));
            ga += error * score;
            gb += error;
            haa += weight * score * score;
            hab += weight * score;
            hbb += weight;
        }
        let determinant = haa * hbb - hab * hab;
        let (da, db) = ((hbb * ga - hab * gb) / determinant, (haa * gb - hab * ga) / determinant);
        let mut step = 1.0;
        let next = loop {
            let next = loss(slope - step * da, offset - step * db);
            if next <= now || step < 1e-8 {
                break next;
            }
            step /= 2.0;
        };
        slope -= step * da;
        offset -= step * db;
        if now - next < 1e-10 {
            break;
        }
        now = next;
    }
    Calibration::Platt {
        // A decreasing map would reverse the order; the scores then carry no information.
        slope: round_trained(slope.max(1e-6)),
        offset: round_trained(offset),
    }
}

/// Fits by pooling adjacent violators; each pool is a point at its mean score.
fn isotonic(scores: &[f64], labels: &[bool]) -> Calibration {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    // Sum of scores, positives, count.
    let mut pools: Vec<(f64, f64, f64)> = Vec::new();
    for place in order {
        let mut pool = (scores[place], f64::from(labels[place]), 1.0);
        while let Some(&(score, positive, count)) = pools.last() {
            let is_rising = positive / count < pool.1 / pool.2 && score / count < pool.0 / pool.2;
            if is_rising {
                break;
            }
            pool = (pool.0 + score, pool.1 + positive, pool.2 + count);
            pools.pop();
        }
        pools.push(pool);
    }
    let points = pools.iter().map(|(score, positive, count)| {
        (round_trained(score / count), round_trained(positive / count))
    });
    let mut points: Vec<(f64, f64)> = points.collect();
    points.dedup_by(|later, first| later.0 <= first.0);
    Calibration::Isotonic { points }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns scores at several levels, each with a given number of positives in a hundred.
    fn levels(shares: &[(f64, usize)]) -> (Vec<f64>, Vec<bool>) {
        let each =
            shares.iter().flat_map(|&(score, share)| (0..100).map(move |n| (score, n < share)));
        each.unzip()
    }

    #[test]
    fn platt_finds_the_curve_that_made_the_labels() {
        let shares: Vec<(f64, usize)> = (-20..=20)
            .map(|tenth| {
                let score = f64::from(tenth) / 5.0;
                (score, (100.0 * sigmoid(0.5 * score - 1.0)).round() as usize)
            })
            .collect();
        let (scores, labels) = levels(&shares);
        let Calibration::Platt { slope, offset } = platt(&scores, &labels) else { panic!() };
        assert!((slope - 0.5).abs() < 0.02 && (offset + 1.0).abs() < 0.02, "{slope} {offset}");
    }

    #[test]
    fn isotonic_pools_what_falls_and_keeps_what_rises() {
        let (scores, labels) = levels(&[(0.0, 10), (1.0, 40), (2.0, 20), (3.0, 90)]);
        let map = isotonic(&scores, &labels);
        let at = |x| (map.probability(x) * 100.0).round();
        assert_eq!((at(-5.0), at(0.0), at(1.5), at(3.0), at(9.0)), (10.0, 10.0, 30.0, 90.0, 90.0));
        assert_eq!(at(0.75), 20.0, "half way");
    }

    #[test]
    fn what_says_nothing_stays_at_the_base_rate() {
        let (scores, labels) = levels(&[(0.0, 30), (1.0, 30)]);
        for map in [platt(&scores, &labels), isotonic(&scores, &labels)] {
            assert!((map.probability(0.5) - 0.3).abs() < 0.01, "{map:?}");
        }
        let (scores, labels) = levels(&[(0.0, 90), (1.0, 10)]);
        let map = platt(&scores, &labels);
        assert!(map.probability(1.0) >= map.probability(0.0), "never turns the order round");
    }
}
