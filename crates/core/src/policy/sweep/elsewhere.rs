//! Decisions by thresholds that were chosen on other repositories.

use std::cmp::Ordering;

use crate::policy::Example;

/// Minimum difference, in [`units`], by which one sum is better than another.
const BETTER: i128 = units(1e-12);

/// Decides for each example at the threshold with the best total gain over all other repositories; of equally good thresholds,
/// the one with the least retrieval. Returns true for the examples with retrieval; `None` for a single repository.
pub(super) fn decisions(examples: &[Example], scores: &[f64]) -> Option<Vec<bool>> {
    let by_score = sort_examples(examples, |&a, &b| scores[b].total_cmp(&scores[a]));
    let steps: Vec<&[usize]> = by_score
        .chunk_by(|&a, &b| scores[b].partial_cmp(&scores[a]) != Some(Ordering::Less))
        .collect();
    let mut step_of = vec![0; examples.len()];
    let mut counts: Vec<usize> = steps.iter().map(|places| places.len()).collect();
    let mut gains = PrefixSums::new(steps.len());
    for (step, places) in steps.iter().enumerate() {
        for &place in *places {
            step_of[place] = step;
            gains.add(step, units(examples[place].gain()));
        }
    }
    let repository = |place: usize| &examples[place].repository;
    let by_repository = sort_examples(examples, |&a, &b| repository(a).cmp(repository(b)));
    let mut retrieves = vec![false; examples.len()];
    for own in by_repository.chunk_by(|&a, &b| repository(a) == repository(b)) {
        if own.len() == examples.len() {
            return None;
        }
        for &place in own {
            counts[step_of[place]] -= 1;
            gains.add(step_of[place], -units(examples[place].gain()));
        }
        let threshold = match gains.first_best() {
            Some(last) => (last + 1..steps.len())
                .find(|&step| counts[step] > 0)
                .map_or(f64::NEG_INFINITY, |step| scores[steps[step][0]]),
            None => f64::INFINITY,
        };
        for &place in own {
            retrieves[place] = scores[place] > threshold;
            counts[step_of[place]] += 1;
            gains.add(step_of[place], units(examples[place].gain()));
        }
    }
    Some(retrieves)
}

/// Returns the examples' indices in an order; equal examples keep their order.
fn sort_examples(
    examples: &[Example],
    order: impl FnMut(&usize, &usize) -> Ordering,
) -> Vec<usize> {
    let mut places: Vec<usize> = (0..examples.len()).collect();
    places.sort_by(order);
    places
}

/// Converts a gain to units of 2⁻⁶⁴, so that a sum does not depend on the order of additions.
const fn units(gain: f64) -> i128 {
    (gain * (1_u128 << 64) as f64) as i128
}

/// Prefix sums of the steps' gains, in a tree: changing a gain takes logarithmic time.
struct PrefixSums {
    /// Sum of each node, and the greatest sum of its first steps (at least one). Node `n` has the children `2n` and `2n + 1`;
    /// the second half of the nodes are the steps.
    nodes: Vec<(i128, i128)>,
}

impl PrefixSums {
    fn new(steps: usize) -> Self {
        Self { nodes: vec![(0, 0); 2 * steps.next_power_of_two()] }
    }

    fn add(&mut self, step: usize, gain: i128) {
        let mut node = self.nodes.len() / 2 + step;
        let sum = self.nodes[node].0 + gain;
        self.nodes[node] = (sum, sum);
        while node > 1 {
            node /= 2;
            let [left, right] = [self.nodes[2 * node], self.nodes[2 * node + 1]];
            self.nodes[node] = (left.0 + right.0, left.1.max(left.0 + right.1));
        }
    }

    /// Returns the last step of the prefix with the best sum; of equally good prefixes, the shortest. `None` if no prefix is
    /// better than no step at all.
    fn first_best(&self) -> Option<usize> {
        let best = self.nodes[1].1;
        let (mut node, mut before) = (1, 0);
        while node < self.nodes.len() / 2 {
            let left = self.nodes[2 * node];
            node *= 2;
            if before + left.1 < best - BETTER {
                before += left.0;
                node += 1;
            }
        }
        (best > BETTER).then(|| node - self.nodes.len() / 2)
    }
}
