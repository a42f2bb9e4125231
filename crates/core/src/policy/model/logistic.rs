//! Regularised logistic regression, by the limited-memory BFGS method (Nocedal and Wright, *Numerical Optimization*, 7.2).

use std::collections::VecDeque;

/// Number of earlier steps that shape the next one.
const MEMORY: usize = 10;
/// Maximum number of steps.
const STEPS: usize = 1000;
/// Length of the gradient, per row, at which the weights are accepted as the best.
const TOLERANCE: f64 = 1e-6;
/// Fraction of the expected gain that a step must bring.
const LEAST_GAIN: f64 = 1e-4;

/// Rows of values, each with a label.
#[derive(Default)]
pub(super) struct Rows {
    /// Number of columns.
    pub(super) width: usize,
    /// Values of the first columns: one vector per row, all of the same length.
    pub(super) dense: Vec<Vec<f64>>,
    /// Columns and nonzero values of the remaining columns, per row.
    pub(super) sparse: Vec<Vec<(usize, f64)>>,
    /// Labels.
    pub(super) labels: Vec<bool>,
}

impl Rows {
    /// Returns the weights of the columns, followed by the intercept, with the least loss: the summed negative log-likelihood
    /// of the labels, plus half of `regularisation` times the sum of the squared weights. `None` if a value is not finite.
    pub(super) fn fit(&self, regularisation: f64) -> Option<Vec<f64>> {
        let mut at = vec![0.0; self.width + 1];
        let (mut loss, mut gradient) = self.loss(&at, regularisation);
        let mut steps: VecDeque<Step> = VecDeque::new();
        let least = TOLERANCE * self.labels.len() as f64;
        for _ in 0..STEPS {
            let length = dot(&gradient, &gradient).sqrt();
            if length <= least || !length.is_finite() {
                break;
            }
            let direction = direction(&steps, &gradient);
            let slope = dot(&direction, &gradient);
            let mut scale = if steps.is_empty() { 1.0 / length } else { 1.0 };
            let next = loop {
                let next: Vec<f64> =
                    at.iter().zip(&direction).map(|(x, d)| x + scale * d).collect();
                let (lost, slopes) = self.loss(&next, regularisation);
                if lost <= loss + LEAST_GAIN * scale * slope {
                    break Some((next, lost, slopes));
                }
                scale /= 2.0;
                // No better step exists within floating-point precision.
                if scale < 1e-12 {
                    break None;
                }
            };
            let Some((next, lost, slopes)) = next else { break };
            steps.truncate(MEMORY - 1);
            steps.push_front(Step::between((&at, &gradient), (&next, &slopes)));
            (at, loss, gradient) = (next, lost, slopes);
        }
        (loss.is_finite() && at.iter().all(|weight| weight.is_finite())).then_some(at)
    }

    /// Returns the loss and its gradient at these weights; the last weight is the intercept.
    fn loss(&self, weights: &[f64], regularisation: f64) -> (f64, Vec<f64>) {
        let (weights, intercept) = (&weights[..self.width], weights[self.width]);
        let mut loss = dot(weights, weights) * regularisation / 2.0;
        let mut gradient: Vec<f64> = weights.iter().map(|w| w * regularisation).collect();
        let mut level = 0.0;
        for ((dense, sparse), &label) in self.dense.iter().zip(&self.sparse).zip(&self.labels) {
            let rest: f64 = sparse.iter().map(|&(column, value)| value * weights[column]).sum();
            let odds = intercept + dot(dense, &weights[..dense.len()]) + rest;
            let label = f64::from(label);
            loss += odds.max(0.0) - label * odds + libm::log1p(libm::exp(-odds.abs()));
            let residual = 1.0 / (1.0 + libm::exp(-odds)) - label;
            add(&mut gradient[..dense.len()], residual, dense);
            for &(column, value) in sparse {
                gradient[column] += residual * value;
            }
            level += residual;
        }
        gradient.push(level);
        (loss, gradient)
    }
}

/// Step between two points.
struct Step {
    moved: Vec<f64>,
    /// Change of the gradient.
    turned: Vec<f64>,
    /// Product of both; positive because the loss is convex.
    product: f64,
}

impl Step {
    fn between(from: (&[f64], &[f64]), to: (&[f64], &[f64])) -> Self {
        let minus = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect();
        let (moved, turned): (Vec<f64>, Vec<f64>) = (minus(to.0, from.0), minus(to.1, from.1));
        let product = dot(&moved, &turned);
        Self { moved, turned, product }
    }
}

/// Returns the direction of the next step: downhill, corrected by the curvature that the last steps measured, latest first.
fn direction(steps: &VecDeque<Step>, gradient: &[f64]) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|slope| -slope).collect();
    let mut shares = Vec::with_capacity(steps.len());
    for step in steps {
        let share = dot(&step.moved, &direction) / step.product;
        add(&mut direction, -share, &step.turned);
        shares.push(share);
    }
    if let Some(latest) = steps.front() {
        let scale = latest.product / dot(&latest.turned, &latest.turned);
        direction.iter_mut().for_each(|value| *value *= scale);
    }
    for (step, share) in steps.iter().zip(shares).rev() {
        let other = dot(&step.turned, &direction) / step.product;
        add(&mut direction, share - other, &step.moved);
    }
    direction
}

/// Returns the product of two vectors, as eight sums that the compiler keeps in vector registers.
#[inline(never)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (mut sums, (a, rest), (b, other)) = ([0.0; 8], a.as_chunks::<8>(), b.as_chunks::<8>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + rest.iter().zip(other).map(|(a, b)| a * b).sum::<f64>()
}

/// Adds a multiple of a vector to another.
#[inline(never)]
fn add(to: &mut [f64], factor: f64, vector: &[f64]) {
    for (to, value) in to.iter_mut().zip(vector) {
        *to += factor * value;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_step_from_the_weights_lessens_the_plain_loss(
            rows in prop::collection::vec(
                (prop::collection::vec(-3.0..3.0, 11), 11..15_usize, 0.5..5.0, any::<bool>()),
                2..60,
            ),
            regularisation in 0.1..50.0,
        ) {
            let mut all = Rows { width: 15, ..Rows::default() };
            for (dense, column, value, label) in rows {
                all.dense.push(dense);
                all.sparse.push(vec![(column, value)]);
                all.labels.push(label);
            }
            // If all labels are equal, the best intercept is infinite.
            all.labels[0] = !all.labels[1];
            let plain_loss = |weights: &[f64]| {
                let squares: f64 = weights[..15].iter().map(|w| w * w).sum();
                let of_row = |row: usize| {
                    let (column, value) = all.sparse[row][0];
                    let dense: f64 = all.dense[row].iter().zip(weights).map(|(x, w)| x * w).sum();
                    let odds = weights[15] + dense + value * weights[column];
                    libm::log(1.0 + libm::exp(if all.labels[row] { -odds } else { odds }))
                };
                squares * regularisation / 2.0 + (0..all.labels.len()).map(of_row).sum::<f64>()
            };
            let weights = all.fit(regularisation).unwrap();
            for column in 0..16 {
                let moved = |by: f64| {
                    let mut weights = weights.clone();
                    weights[column] += by;
                    plain_loss(&weights)
                };
                let slope = (moved(1e-4) - moved(-1e-4)) / 2e-4;
                prop_assert!(slope.abs() < 1e-3, "column {column}: {slope}");
            }
        }
    }

    #[test]
    fn values_that_are_not_finite_are_refused() {
        let mut rows = Rows { width: 1, ..Rows::default() };
        for value in [1.0, f64::NAN, 2.0] {
            rows.dense.push(vec![value]);
            rows.sparse.push(Vec::new());
            rows.labels.push(value == 1.0);
        }
        assert_eq!(rows.fit(1.0), None);
    }
}
