//! What a policy makes of judged instances at every threshold.

mod latency;
#[cfg(test)]
mod tests;

pub use latency::{Clock, Times};

use super::measure::{Bin, area, calibration_curve, expected_error};
use super::{Example, Policy};

/// What a policy does at one threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Retrieves where the score is above this.
    pub threshold: f64,
    /// Share of the instances it retrieves for.
    pub rag_rate: f64,
    /// Share of exact completions, where that is known of all.
    pub em: Option<f64>,
    /// Mean edit similarity, 0 to 1.
    pub es: f64,
    /// Share of the abstentions where retrieval would not have helped (the paper's figure 5); `None` without any.
    pub abstention_precision: Option<f64>,
    /// Mean milliseconds of a request, and what share of always retrieving's is saved; one for each clock.
    pub latencies: Vec<Latency>,
}

/// What requests cost by one clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Mean milliseconds of a request.
    pub mean_ms: f64,
    /// `1 − mean / that of always retrieving`, as the paper's tables give it.
    pub speedup: f64,
}

/// A policy over judged instances.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Which.
    pub policy: Policy,
    /// How many instances.
    pub count: usize,
    /// From never retrieving to always, by threshold falling.
    pub points: Vec<Point>,
    /// Each repository at the threshold that is best for all others; `None` of one repository, and where thresholds are given.
    pub elsewhere: Option<Point>,
    /// The point that retrieves least of those as good as always retrieving.
    pub reaches_always: Option<Point>,
    /// How well the scores tell helped instances from others; 0.5 is chance.
    pub auc: f64,
    /// Where the scores are probabilities: how far they hold.
    pub calibration: Option<Calibration>,
}

/// How far probabilities hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// Figure 11.
    pub bins: Vec<Bin>,
    /// Expected calibration error.
    pub error: f64,
}

/// Steps of a curve's retrieval rate.
const STEPS: usize = 40;

impl Curve {
    /// Sweeps a policy's scores over judged instances: a point at every fortieth of the retrieval rate, as far as equal scores
    /// allow, both ends, and the one with the best edit similarity; or points at these thresholds alone. `probabilities` are
    /// those whose calibration is measured.
    pub fn of(
        policy: Policy,
        examples: &[Example],
        scores: &[f64],
        probabilities: Option<&[f64]>,
        (thresholds, clocks): (&[f64], &[Clock]),
    ) -> Self {
        let labels: Vec<bool> = examples.iter().map(|example| example.label).collect();
        let mut order: Vec<usize> = (0..examples.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let sums = Sums::of(policy, examples, &order, clocks);
        let count = examples.len();
        // How many are retrieved for at a threshold.
        let above = |threshold: f64| order.partition_point(|&place| scores[place] > threshold);
        let threshold = |cut: usize| match order.get(cut) {
            Some(&place) => scores[place],
            None => f64::NEG_INFINITY,
        };
        let mut cuts: Vec<(f64, usize)> = Vec::new();
        if policy == Policy::Never {
            cuts.push((f64::INFINITY, 0));
        } else if policy == Policy::Always {
            cuts.push((f64::NEG_INFINITY, count));
        } else if !thresholds.is_empty() {
            cuts.extend(
                thresholds
                    .iter()
                    .map(|&threshold| (threshold, above(threshold))),
            );
            cuts.sort_by_key(|(_, cut)| *cut);
        } else {
            let is_possible = |cut: &usize| *cut == count || above(threshold(*cut)) == *cut;
            let best = (0..=count)
                .filter(is_possible)
                .max_by(|&a, &b| sums.es[a].total_cmp(&sums.es[b]).then(b.cmp(&a)));
            let mut wanted: Vec<usize> = (0..=STEPS)
                .map(|step| above(threshold((step * count).div_ceil(STEPS).min(count))))
                .map(|cut| if cut > count { count } else { cut })
                .chain(best)
                .chain([0, count])
                .collect();
            wanted.sort_unstable();
            wanted.dedup();
            cuts.extend(
                wanted
                    .into_iter()
                    .filter(is_possible)
                    .map(|cut| (threshold(cut), cut)),
            );
        }
        let always = sums.es[count];
        let reaches = (0..=count).find(|cut| {
            sums.es[*cut] >= always - 1e-9 && (*cut == count || above(threshold(*cut)) == *cut)
        });
        let is_swept = thresholds.is_empty() && !matches!(policy, Policy::Never | Policy::Always);
        let reaches_always = reaches
            .filter(|_| is_swept)
            .map(|cut| sums.point(threshold(cut), cut, clocks.len()));
        let elsewhere = match is_swept {
            true => elsewhere(policy, examples, scores, clocks),
            false => None,
        };
        let points = cuts
            .into_iter()
            .map(|(threshold, cut)| sums.point(threshold, cut, clocks.len()))
            .collect();
        let calibration = probabilities.map(|probabilities| Calibration {
            bins: calibration_curve(probabilities, &labels),
            error: expected_error(probabilities, &labels),
        });
        Self {
            policy,
            count,
            points,
            elsewhere,
            reaches_always,
            auc: area(scores, &labels),
            calibration,
        }
    }

    /// The point with the best edit similarity; of equal ones that which retrieves least.
    pub fn best(&self) -> Option<&Point> {
        let better = |a: &&Point, b: &&Point| {
            let by_rate = b.rag_rate.total_cmp(&a.rag_rate);
            a.es.total_cmp(&b.es).then(by_rate)
        };
        self.points.iter().max_by(better)
    }

    /// The point that retrieves for this share, or for up to a twentieth less.
    pub fn at_rate(&self, rate: f64) -> Option<&Point> {
        let near = |point: &&Point| (rate - 0.05..=rate + 1e-9).contains(&point.rag_rate);
        let within = self.points.iter().filter(near);
        within.max_by(|a, b| a.rag_rate.total_cmp(&b.rag_rate))
    }
}

/// Each repository at the threshold with the best edit similarity over all others.
fn elsewhere(
    policy: Policy,
    examples: &[Example],
    scores: &[f64],
    clocks: &[Clock],
) -> Option<Point> {
    let mut repositories: Vec<&str> = examples.iter().map(|e| e.repository.as_str()).collect();
    repositories.sort_unstable();
    repositories.dedup();
    if repositories.len() < 2 {
        return None;
    }
    let mut retrieves = vec![false; examples.len()];
    for repository in repositories {
        let mut others: Vec<usize> = (0..examples.len())
            .filter(|&place| examples[place].repository != repository)
            .collect();
        others.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let threshold = best_threshold(examples, scores, &others);
        for (place, example) in examples.iter().enumerate() {
            if example.repository == repository {
                retrieves[place] = scores[place] > threshold;
            }
        }
    }
    // Sums over an order in which those retrieved for come first.
    let mut order: Vec<usize> = (0..examples.len()).collect();
    order.sort_by_key(|&place| !retrieves[place]);
    let cut = retrieves.iter().filter(|retrieves| **retrieves).count();
    let sums = Sums::of(policy, examples, &order, clocks);
    Some(sums.point(f64::NAN, cut, clocks.len()))
}

/// The threshold with the best sum of gains over instances by falling score; of equal ones that which retrieves least.
fn best_threshold(examples: &[Example], scores: &[f64], order: &[usize]) -> f64 {
    let (mut sum, mut best) = (0.0, 0.0);
    let mut threshold = order.first().map_or(0.0, |&place| scores[place]);
    for (at, &place) in order.iter().enumerate() {
        sum += examples[place].gain();
        let next = order
            .get(at + 1)
            .map_or(f64::NEG_INFINITY, |&next| scores[next]);
        if next < scores[place] && sum > best + 1e-12 {
            (best, threshold) = (sum, next);
        }
    }
    threshold
}

/// For each number of instances retrieved for, those with the highest scores, what is summed up over all.
struct Sums {
    es: Vec<f64>,
    em: Option<Vec<f64>>,
    /// Instances that retrieval would not help, among those not retrieved for.
    rightly_abstained: Vec<usize>,
    /// By clock: milliseconds.
    costs: Vec<Vec<f64>>,
    /// By clock: those of always retrieving.
    always: Vec<f64>,
}

impl Sums {
    fn of(policy: Policy, examples: &[Example], order: &[usize], clocks: &[Clock]) -> Self {
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
        let helpless = |example: &Example| f64::from(u8::from(!example.label));
        let mut costs = Vec::new();
        let mut always = Vec::new();
        for clock in clocks {
            let cost = |example: &Example, retrieves| clock.of(&example.id).cost(policy, retrieves);
            costs.push(running(total(&|e| cost(e, false)), &|e| {
                cost(e, true) - cost(e, false)
            }));
            always.push(total(&|e| clock.of(&e.id).cost(Policy::Always, true)));
        }
        Self {
            es: running(total(&|e| e.es_base), &Example::gain),
            em: knows_em.then(|| {
                running(total(&|e| e.em_base.unwrap_or(0.0)), &|e| {
                    em(e).map_or(0.0, |(base, rag)| rag - base)
                })
            }),
            rightly_abstained: running(total(&helpless), &|e| -helpless(e))
                .into_iter()
                .map(|sum| sum.round() as usize)
                .collect(),
            costs,
            always,
        }
    }

    fn point(&self, threshold: f64, cut: usize, clocks: usize) -> Point {
        let count = self.es.len() - 1;
        let mean = |sum: f64| sum / count as f64;
        let abstained = count - cut;
        let latency = |clock: usize| Latency {
            mean_ms: mean(self.costs[clock][cut]),
            speedup: match self.always[clock] {
                0.0 => 0.0,
                // Sums in another order differ in their last digits.
                always => (1e12 * (1.0 - self.costs[clock][cut] / always)).round() / 1e12 + 0.0,
            },
        };
        Point {
            threshold,
            rag_rate: cut as f64 / count as f64,
            em: self.em.as_ref().map(|em| mean(em[cut])),
            es: mean(self.es[cut]),
            abstention_precision: (abstained > 0)
                .then(|| self.rightly_abstained[cut] as f64 / abstained as f64),
            latencies: (0..clocks).map(latency).collect(),
        }
    }
}
