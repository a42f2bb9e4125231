//! Measures of the quality of scores.

/// Returns the area under the receiver operating characteristic: the probability that a positive instance has a higher score
/// than a negative one, where equal scores count half. Returns 0.5 if all labels are equal.
///
/// ```
/// use repoformer_core::policy::measure::area;
/// assert_eq!(area(&[0.1, 0.4, 0.4, 0.9], &[false, false, true, true]), 0.875);
/// assert_eq!(area(&[0.3, 0.2], &[true, true]), 0.5);
/// ```
pub fn area(scores: &[f64], labels: &[bool]) -> f64 {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let (mut below, mut won) = (0.0, 0.0);
    for tied in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
        let positive = tied.iter().filter(|&&place| labels[place]).count() as f64;
        let negative = tied.len() as f64 - positive;
        won += positive * (below + negative / 2.0);
        below += negative;
    }
    let positive = labels.iter().filter(|label| **label).count() as f64;
    match positive * below {
        0.0 => 0.5,
        pairs => won / pairs,
    }
}

/// Bin of a calibration curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// Number of the bin: 0 for probabilities below 0.1, and so on.
    pub place: usize,
    /// Mean probability of the instances.
    pub probability: f64,
    /// Fraction of the instances that are positive.
    pub positive: f64,
    /// Number of instances.
    pub count: usize,
}

/// Returns the calibration curve: instances by probability in ten bins of equal width, without the empty bins (the paper's
/// figure 11).
pub fn calibration_curve(probabilities: &[f64], labels: &[bool]) -> Vec<Bin> {
    const BINS: usize = 10;
    let mut sums = [(0.0, 0.0, 0usize); BINS];
    for (&probability, &label) in probabilities.iter().zip(labels) {
        let bin = ((probability * BINS as f64) as usize).min(BINS - 1);
        sums[bin].0 += probability;
        sums[bin].1 += f64::from(label);
        sums[bin].2 += 1;
    }
    sums.iter()
        .enumerate()
        .filter(|(_, (.., count))| *count > 0)
        .map(|(place, &(probability, positive, count))| Bin {
            place,
            probability: probability / count as f64,
            positive: positive / count as f64,
            count,
        })
        .collect()
}

/// Returns the expected calibration error: the mean distance between probability and fraction of positives, weighted by bin
/// size.
///
/// ```
/// use repoformer_core::policy::measure::expected_error;
/// let labels = [true, false, false, false];
/// assert_eq!(expected_error(&[0.25; 4], &labels), 0.0);
/// assert_eq!(expected_error(&[0.75; 4], &labels), 0.5);
/// ```
pub fn expected_error(probabilities: &[f64], labels: &[bool]) -> f64 {
    let total = probabilities.len().max(1) as f64;
    calibration_curve(probabilities, labels)
        .iter()
        .map(|bin| (bin.probability - bin.positive).abs() * bin.count as f64 / total)
        .sum()
}
