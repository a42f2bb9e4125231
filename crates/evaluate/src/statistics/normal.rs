//! Interval of the mean of many values by the normal approximation, corrected for skewness.

use super::interval::Interval;

/// Least number of values for which the approximation is more accurate than 10,000 resamples.
const MANY: usize = 2_000;
/// Greatest skewness of the mean for which the approximation is used.
const SKEWED: f64 = 0.1;

/// Returns the limit of the percentile bootstrap of a mean: the normal interval with the first term for skewness (Cornish and
/// Fisher, 1938; Hall, *The Bootstrap and Edgeworth Expansion*, 1992, §3.5). Its error is smaller than the random error of
/// 10,000 resamples. Returns `None` if `values` are too few or too skewed.
pub(super) fn interval(values: &[f64], level: f64) -> Option<Interval> {
    if values.len() < MANY {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let (mut squares, mut cubes) = (0.0, 0.0);
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for &value in values {
        let from_mean = value - mean;
        squares += from_mean * from_mean;
        cubes += from_mean * from_mean * from_mean;
        (least, most) = (value.min(least), value.max(most));
    }
    let deviation = (squares / n).sqrt();
    // Equal values have no spread, and no skewness.
    let skewness = if deviation > 0.0 { cubes / n / deviation.powi(3) / n.sqrt() } else { 0.0 };
    if skewness.abs() > SKEWED {
        return None;
    }
    let end = |p: f64| {
        let z = quantile(p);
        let moved = z + skewness * (z * z - 1.0) / 6.0;
        (mean + moved * deviation / n.sqrt()).clamp(least, most)
    };
    let tail = (1.0 - level) / 2.0;
    Some(Interval { low: end(tail), high: end(1.0 - tail) })
}

/// Returns the quantile of the standard normal distribution, with a relative error of at most 1.2 · 10⁻⁹ (Acklam's rational
/// approximation).
fn quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1, 2.209460984245205e2, -2.759285104469687e2, 1.38357751867269e2,
        -3.066479806614716e1, 2.506628277459239,
    ];
    const B: [f64; 6] = [
        -5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1,
        -1.328068155288572e1, 1.0,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-3, -3.223964580411365e-1, -2.400758277161838, -2.549732539343734,
        4.374664141464968, 2.938163982698783,
    ];
    const D: [f64; 5] =
        [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1.0];
    let polynomial = |of: &[f64], x: f64| of.iter().fold(0.0, |sum, factor| sum * x + factor);
    let tail = |p: f64| {
        let x = (-2.0 * libm::log(p)).sqrt();
        polynomial(&C, x) / polynomial(&D, x)
    };
    match p {
        p if p < 0.02425 => tail(p),
        p if p > 1.0 - 0.02425 => -tail(1.0 - p),
        p => {
            let x = p - 0.5;
            x * polynomial(&A, x * x) / polynomial(&B, x * x)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy.stats.norm.ppf, scipy 1.17.1.
    #[test]
    fn quantiles_are_scipys() {
        for (p, wanted) in [
            (0.001, -3.090232306167813),
            (0.025, -1.9599639845400545),
            (0.1, -1.2815515655446004),
            (0.5, 0.0),
            (0.975, 1.959963984540054),
            (0.995, 2.5758293035489004),
        ] {
            assert!((quantile(p) - wanted).abs() < 4e-9, "{p}");
        }
    }

    #[test]
    fn few_or_skewed_values_are_left_to_resamples() {
        let of = |n: usize, ones: usize| {
            let values: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i < ones))).collect();
            interval(&values, 0.95)
        };
        assert_eq!(of(1_999, 1_000), None);
        assert_eq!(of(10_000, 3), None);
        // By hand: 1/2 ± 1.959964 · 0.5 / 100.
        let Interval { low, high } = of(10_000, 5_000).unwrap();
        assert!((low - 0.49020018).abs() < 1e-8 && (high - 0.50979982).abs() < 1e-8);
        let Interval { low, high } = of(5_000, 0).unwrap();
        assert_eq!((low, high), (0.0, 0.0));
    }
}
