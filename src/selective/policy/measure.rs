//! How good scores are, whatever made them.

/// Chance that of two instances, one positive and one not, the positive one has the higher score; equal scores count half
/// (the area under the receiver operating characteristic). 0.5 where all labels are alike.
///
/// ```
/// use repoformer::selective::policy::measure::area;
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

/// A bin of a calibration curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// Mean probability of its instances.
    pub probability: f64,
    /// Share of them that are positive.
    pub positive: f64,
    /// How many they are.
    pub count: usize,
}

/// The calibration curve: instances by probability in ten bins of equal width, empty ones left out (the paper's figure 11).
pub fn calibration_curve(probabilities: &[f64], labels: &[bool]) -> Vec<Bin> {
    const BINS: usize = 10;
    let mut sums = [(0.0, 0.0, 0usize); BINS];
    for (&probability, &label) in probabilities.iter().zip(labels) {
        let bin = ((probability * BINS as f64) as usize).min(BINS - 1);
        sums[bin].0 += probability;
        sums[bin].1 += f64::from(u8::from(label));
        sums[bin].2 += 1;
    }
    sums.iter()
        .filter(|(.., count)| *count > 0)
        .map(|&(probability, positive, count)| Bin {
            probability: probability / count as f64,
            positive: positive / count as f64,
            count,
        })
        .collect()
}

/// Expected calibration error: the mean distance between probability and share of positives over the bins, by their size.
///
/// ```
/// use repoformer::selective::policy::measure::expected_error;
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
