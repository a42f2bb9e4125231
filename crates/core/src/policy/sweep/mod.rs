//! Results of a policy on judged instances at every threshold.

mod elsewhere;
mod latency;
#[cfg(test)]
mod tests;

pub use latency::check_latency;
pub use latency::{Clock, LatencyModel, RequestTimes};

use super::measure::{Bin, area, calibration_curve, expected_error};
use super::{Example, Policy, Threshold};

/// Result of a policy at one threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPoint {
    /// Threshold: the policy retrieves if the score is above this number.
    pub threshold: f64,
    /// Fraction of the instances with retrieval.
    pub rag_rate: f64,
    /// Fraction of exact completions, if known for all instances.
    pub em: Option<f64>,
    /// Mean score, 0 to 1.
    pub score: f64,
    /// Fraction of the abstentions for which retrieval would not have helped (the paper's figure 5); `None` without
    /// abstentions.
    pub abstention_precision: Option<f64>,
    /// Fraction of the abstentions that were right without retrieval; `None` without abstentions, or if not known for all
    /// instances. The rest of the precision are mistakes that retrieval would not have fixed.
    pub abstained_right: Option<f64>,
    /// Latency by each latency model; `None` if part of the latency was not measured.
    pub latencies: Vec<Option<MeanLatency>>,
}

/// Latency of requests by one latency model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanLatency {
    /// Mean milliseconds of a request.
    pub mean_ms: f64,
    /// `1 − mean / mean of always retrieving`, as in the paper's tables.
    pub speedup: f64,
}

/// Results of a policy over judged instances.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepCurve {
    /// The policy.
    pub policy: Policy,
    /// Number of instances.
    pub count: usize,
    /// Points from never retrieving to always, by decreasing threshold.
    pub points: Vec<SweepPoint>,
    /// Result with each repository at the threshold that is best for all other repositories; `None` for a single repository or
    /// for given thresholds.
    pub elsewhere: Option<SweepPoint>,
    /// Point with the least retrieval among the points that are at least as good as always retrieving.
    pub reaches_always: Option<SweepPoint>,
    /// Area under the receiver operating characteristic of the scores; 0.5 is chance.
    pub auc: f64,
    /// Reliability of scores that are probabilities.
    pub calibration: Option<Reliability>,
    /// Gains of the instances with retrieval, at the only threshold or otherwise at the best one (figure 6).
    pub gains: Vec<f64>,
}

/// Reliability of probabilities.
#[derive(Debug, Clone, PartialEq)]
pub struct Reliability {
    /// Calibration curve (figure 11).
    pub bins: Vec<Bin>,
    /// Expected calibration error.
    pub error: f64,
}

/// Number of steps of the retrieval rate.
const STEPS: usize = 40;

impl SweepCurve {
    /// Sweeps a policy's scores over judged instances. The curve has a point at every fortieth of the retrieval rate (or just
    /// below, because instances with equal scores cannot be separated), at both ends, and at the best score. If thresholds are
    /// given, it has points only there. If `probabilities` are given, their calibration is measured.
    pub fn new(
        policy: Policy,
        examples: &[Example],
        scores: &[f64],
        probabilities: Option<&[f64]>,
        thresholds: &[Threshold],
        clocks: &[LatencyModel],
    ) -> Self {
        let labels: Vec<bool> = examples.iter().map(|example| example.label).collect();
        let mut order: Vec<usize> = (0..examples.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let sums = Sums::new(policy, examples, &order, clocks);
        let count = examples.len();
        // Returns the number of instances with retrieval at a threshold.
        let above = |threshold: f64| order.partition_point(|&place| scores[place] > threshold);
        let threshold = |cut: usize| match order.get(cut) {
            Some(&place) => scores[place],
            None => f64::NEG_INFINITY,
        };
        let is_possible = |cut: &usize| *cut == count || above(threshold(*cut)) == *cut;
        let is_swept = thresholds.is_empty() && !matches!(policy, Policy::Never | Policy::Always);
        let mut cuts: Vec<(f64, usize)> = match policy {
            Policy::Never => vec![(f64::INFINITY, 0)],
            Policy::Always => vec![(f64::NEG_INFINITY, count)],
            _ if !is_swept => {
                let values = thresholds.iter().map(|threshold| threshold.value(scores));
                values.map(|at| (at, above(at))).collect()
            }
            _ => {
                let best = (0..=count)
                    .filter(is_possible)
                    .max_by(|&a, &b| sums.score[a].total_cmp(&sums.score[b]).then(b.cmp(&a)));
                let mut wanted: Vec<usize> = (0..=STEPS)
                    .map(|step| above(threshold(step * count / STEPS)))
                    .chain(best)
                    .chain([0, count])
                    .collect();
                wanted.sort_unstable();
                wanted.dedup();
                let possible = wanted.into_iter().filter(is_possible);
                possible.map(|cut| (threshold(cut), cut)).collect()
            }
        };
        cuts.sort_by_key(|(_, cut)| *cut);
        let point = |(threshold, cut): (f64, usize)| sums.point(threshold, cut, clocks.len());
        let reaches_always = (0..=count)
            .filter(|_| is_swept)
            .find(|cut| sums.score[*cut] >= sums.score[count] - 1e-9 && is_possible(cut))
            .map(|cut| point((threshold(cut), cut)));
        let elsewhere = is_swept.then(|| elsewhere(policy, examples, scores, clocks));
        let calibration = probabilities.map(|probabilities| Reliability {
            bins: calibration_curve(probabilities, &labels),
            error: expected_error(probabilities, &labels),
        });
        let points: Vec<SweepPoint> = cuts.into_iter().map(point).collect();
        let shown = match &points[..] {
            [only] => only.rag_rate,
            points => best(points).map_or(0.0, |point| point.rag_rate),
        };
        let retrieved = (shown * count as f64).round() as usize;
        Self {
            policy,
            count,
            points,
            gains: order[..retrieved].iter().map(|&place| examples[place].gain()).collect(),
            elsewhere: elsewhere.flatten(),
            reaches_always,
            auc: area(scores, &labels),
            calibration,
        }
    }

    /// Returns the point with the best score; of equally good points, the one with the least retrieval.
    pub fn best(&self) -> Option<&SweepPoint> {
        best(&self.points)
    }

    /// Returns the point with this retrieval rate, or with one that is at most a twentieth lower.
    pub fn at_rate(&self, rate: f64) -> Option<&SweepPoint> {
        let near = |point: &&SweepPoint| (rate - 0.05..=rate + 1e-9).contains(&point.rag_rate);
        let within = self.points.iter().filter(near);
        within.max_by(|a, b| a.rag_rate.total_cmp(&b.rag_rate))
    }
}

/// Returns the point with the best score; of equally good points, the one with the least retrieval.
fn best(points: &[SweepPoint]) -> Option<&SweepPoint> {
    let better = |a: &&SweepPoint, b: &&SweepPoint| {
        let by_rate = b.rag_rate.total_cmp(&a.rag_rate);
        a.score.total_cmp(&b.score).then(by_rate)
    };
    points.iter().max_by(better)
}

/// Evaluates each repository at the threshold with the best score over all other repositories.
fn elsewhere(
    policy: Policy,
    examples: &[Example],
    scores: &[f64],
    clocks: &[LatencyModel],
) -> Option<SweepPoint> {
    let retrieves = elsewhere::decisions(examples, scores)?;
    // Order in which instances with retrieval come first, for the sums.
    let mut order: Vec<usize> = (0..examples.len()).collect();
    order.sort_by_key(|&place| !retrieves[place]);
    let cut = retrieves.iter().filter(|retrieves| **retrieves).count();
    let sums = Sums::new(policy, examples, &order, clocks);
    Some(sums.point(f64::NAN, cut, clocks.len()))
}

/// Sums over all instances, indexed by the number of instances with retrieval (the ones with the highest scores).
struct Sums {
    score: Vec<f64>,
    em: Option<Vec<f64>>,
    /// Number of instances, among those without retrieval, that retrieval would not help.
    rightly_abstained: Vec<usize>,
    /// Number of these instances that are right without retrieval, if known for all instances.
    right: Option<Vec<usize>>,
    /// Milliseconds by latency model.
    costs: Vec<Vec<f64>>,
    /// Milliseconds of always retrieving, by latency model.
    always: Vec<f64>,
}

impl Sums {
    fn new(policy: Policy, examples: &[Example], order: &[usize], clocks: &[LatencyModel]) -> Self {
        let running = |start: f64, step: &dyn Fn(&Example) -> f64| {
            let mut sum = start;
            let mut sums = vec![sum];
            for &place in order {
                sum += step(&examples[place]);
                sums.push(sum);
            }
            sums
        };
        let total = |of: &dyn Fn(&Example) -> f64| examples.iter().map(of).sum::<f64>();
        let em = |example: &Example| Some((example.em_base?, example.em_rag?));
        let knows_em = examples.iter().all(|example| em(example).is_some());
        let helpless = |example: &Example| f64::from(!example.label);
        let knows_right = examples.iter().all(|example| example.is_right.is_some());
        let right =
            |example: &Example| f64::from(!example.label && example.is_right.unwrap_or_default());
        let whole = |sums: Vec<f64>| sums.into_iter().map(|sum| sum.round() as usize).collect();
        let mut costs = Vec::new();
        let mut always = Vec::new();
        for clock in clocks {
            // A missing time makes the sum NaN, as it should.
            let time = |example: &Example, policy, retrieves| {
                clock.cost(example, policy, retrieves).unwrap_or(f64::NAN)
            };
            let cost = |example: &Example, retrieves| time(example, policy, retrieves);
            costs.push(running(total(&|e| cost(e, false)), &|e| cost(e, true) - cost(e, false)));
            always.push(total(&|e| time(e, Policy::Always, true)));
        }
        Self {
            score: running(total(&|e| e.score_base), &Example::gain),
            em: knows_em.then(|| {
                running(total(&|e| e.em_base.unwrap_or(0.0)), &|e| {
                    em(e).map_or(0.0, |(base, rag)| rag - base)
                })
            }),
            rightly_abstained: whole(running(total(&helpless), &|e| -helpless(e))),
            right: knows_right.then(|| whole(running(total(&right), &|e| -right(e)))),
            costs,
            always,
        }
    }

    fn point(&self, threshold: f64, cut: usize, clocks: usize) -> SweepPoint {
        let count = self.score.len() - 1;
        let mean = |sum: f64| sum / count as f64;
        let abstained = count - cut;
        let latency = |clock: usize| {
            let cost = self.costs[clock][cut];
            let speedup = match self.always[clock] {
                0.0 => 0.0,
                // Rounded, because the order of additions changes the last digits.
                always => (1e12 * (1.0 - cost / always)).round() / 1e12 + 0.0,
            };
            cost.is_finite().then(|| MeanLatency { mean_ms: mean(cost), speedup })
        };
        SweepPoint {
            threshold,
            rag_rate: cut as f64 / count as f64,
            em: self.em.as_ref().map(|em| mean(em[cut])),
            score: mean(self.score[cut]),
            abstention_precision: (abstained > 0)
                .then(|| self.rightly_abstained[cut] as f64 / abstained as f64),
            abstained_right: (self.right.as_ref().filter(|_| abstained > 0))
                .map(|right| right[cut] as f64 / abstained as f64),
            latencies: (0..clocks).map(latency).collect(),
        }
    }
}
