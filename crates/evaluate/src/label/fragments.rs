//! Counts of the gains of single fragments, and of the sets that greedy addition finds.

use repoformer_core::label::{FragmentSet, Label};
use repoformer_text::counts::format_count;
use serde_json::{Value, json};

/// Counts and sums over the instances for which the gain of at least one set of fragments is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FragmentSummary {
    /// Number of instances.
    pub instances: usize,
    /// Number of sets with a known gain.
    pub sets: usize,
    /// Number of tasks without a prediction or probability.
    pub unanswered: usize,
    /// Number of instances whose greedy set may still grow.
    pub open: usize,
    /// Number of single fragments that help, change nothing, and hurt.
    pub alone: [usize; 3],
    /// Sum of the gains of all fragments together.
    all: f64,
    /// Sum of the gains of each instance's best single fragment, or of none.
    best: f64,
    /// Sum of the gains of the greedy sets.
    greedy: f64,
    /// Number of fragments in the greedy sets.
    chosen: usize,
    /// For each set of several fragments, the sum of their gains alone, and the gain of the set.
    pairs: Moments,
}

impl FragmentSummary {
    /// Adds a label, with the gain of all its fragments.
    pub(super) fn add(&mut self, label: &Label, gain: f64) {
        let (gains, count) = (&label.gains, label.cross_file.fragments.len());
        if gains.is_empty() {
            return;
        }
        self.instances += 1;
        self.all += gain;
        let mut best = 0.0f64;
        for alone in (0..count.min(FragmentSet::MOST)).filter_map(|index| gains.alone(index)) {
            let place = if alone > 0.0 {
                0
            } else if alone == 0.0 {
                1
            } else {
                2
            };
            self.alone[place] += 1;
            best = best.max(alone);
        }
        self.best += best;
        let greedy = gains.greedy(count);
        self.greedy += greedy.gain;
        self.chosen += greedy.set.len();
        self.open += usize::from(!greedy.is_final);
        for (set, gain) in gains.iter() {
            self.sets += 1;
            let alone = set.indices().map(|index| gains.alone(index)).sum::<Option<f64>>();
            if let Some(alone) = alone.filter(|_| set.len() > 1) {
                self.pairs.add(alone, gain);
            }
        }
    }

    /// Returns the mean gains of all fragments, of the best single one, and of the greedy set.
    pub fn mean_gains(&self) -> [f64; 3] {
        [self.all, self.best, self.greedy].map(|sum| sum / self.instances as f64)
    }

    /// Describes the gains in a few lines; `None` if no gain of a fragment is known.
    pub(super) fn text(&self) -> Option<String> {
        if self.instances == 0 {
            return None;
        }
        let count = self.instances as f64;
        let fragments: usize = self.alone.iter().sum();
        let [helps, same, hurts] = self.alone.map(|of| 100.0 * of as f64 / fragments as f64);
        let [all, best, greedy] = self.mean_gains().map(|gain| 100.0 * gain);
        let mut text = format!(
            "fragments of {}, {:.1} completions each: alone {helps:.1} % help, {same:.1} % change nothing, {hurts:.1} % hurt\n\
             mean gain × 100: all fragments {all:+.2}, best one or none {best:+.2}, greedy set {greedy:+.2} ({:.2} fragments)",
            format_count(self.instances as u64, "instance"),
            self.sets as f64 / count,
            self.chosen as f64 / count,
        );
        if let Some(correlation) = self.pairs.correlation() {
            text += &format!(
                "\ncorrelation of a set's gain with the sum of its fragments' gains: {correlation:.2} ({})",
                format_count(self.pairs.count as u64, "set")
            );
        }
        if self.open > 0 {
            text += &format!(
                "\nthe greedy sets of {} may still grow",
                format_count(self.open as u64, "instance")
            );
        }
        Some(text)
    }

    /// Returns the counts; null if no gain of a fragment is known.
    pub(super) fn json(&self) -> Value {
        if self.instances == 0 {
            return Value::Null;
        }
        let [helps, same, hurts] = self.alone;
        let [all, best, greedy] = self.mean_gains();
        json!({
            "instances": self.instances, "sets": self.sets, "unanswered": self.unanswered,
            "open": self.open, "alone": {"helps": helps, "same": same, "hurts": hurts},
            "mean_gain": {"all": all, "best": best, "greedy": greedy},
            "mean_greedy_fragments": self.chosen as f64 / self.instances as f64,
            "correlation": self.pairs.correlation(), "correlated_sets": self.pairs.count,
        })
    }
}

/// Sums from which the correlation of two variables is computed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Moments {
    count: usize,
    sums: [f64; 2],
    squares: [f64; 2],
    products: f64,
}

impl Moments {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1;
        for (place, value) in [x, y].into_iter().enumerate() {
            self.sums[place] += value;
            self.squares[place] += value * value;
        }
        self.products += x * y;
    }

    /// Returns Pearson's correlation; `None` if a variable is constant.
    fn correlation(&self) -> Option<f64> {
        let count = self.count as f64;
        let [x, y] = self.sums.map(|sum| sum / count);
        let [xx, yy] = [0, 1].map(|at| self.squares[at] / count - [x, y][at] * [x, y][at]);
        let both = xx * yy;
        (self.count > 1 && both > 1e-18)
            .then(|| ((self.products / count - x * y) / both.sqrt()).clamp(-1.0, 1.0))
    }
}
