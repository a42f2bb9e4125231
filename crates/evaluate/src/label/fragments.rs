//! Counts of the gains of single fragments, and of the sets that greedy addition finds.

use repoformer_core::label::{FragmentSet, Label};
use repoformer_text::counts::{format_count, subject};
use serde_json::{Value, json};

/// Counts and sums over the instances for which the gain of at least one set of fragments is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FragmentSummary {
    /// Number of instances.
    pub instances: usize,
    /// Number of sets that were tried.
    pub sets: usize,
    /// Number of sets that do not fit into their prompts.
    pub too_long: usize,
    /// Number of tasks without a prediction or probability.
    pub unanswered: usize,
    /// Number of tasks whose prompts show only a part of a fragment.
    pub cut: usize,
    /// Number of tasks whose answers do not contain the prompt, which may show only a part of the fragments.
    pub unseen: usize,
    /// Number of instances for which the gain of each single fragment is known.
    pub whole: usize,
    /// Number of instances whose greedy set may still grow.
    pub open: usize,
    /// Number of single fragments that help, change nothing, and hurt.
    pub alone: [usize; 3],
    /// Sum of the gains of all fragments together, over the `whole` instances like the sums below.
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
        let singles: Vec<_> =
            (0..count.min(FragmentSet::MOST)).map(|index| gains.alone(index)).collect();
        for alone in singles.iter().flatten() {
            let of = [*alone > 0.0, *alone == 0.0, *alone < 0.0];
            self.alone.iter_mut().zip(of).for_each(|(count, is)| *count += usize::from(is));
        }
        let greedy = gains.greedy(count);
        self.open += usize::from(!greedy.is_final);
        if let Some(known) = singles.into_iter().collect::<Option<Vec<f64>>>() {
            self.whole += 1;
            self.all += gain;
            self.best += known.into_iter().fold(0.0, f64::max);
            self.greedy += greedy.gain;
            self.chosen += greedy.set.len();
        }
        for (set, gain) in gains.iter() {
            self.sets += 1;
            let Some(gain) = gain else {
                self.too_long += 1;
                continue;
            };
            let alone = set.indices().map(|index| gains.alone(index)).sum::<Option<f64>>();
            if let Some(alone) = alone.filter(|_| set.len() > 1) {
                self.pairs.add(alone, gain);
            }
        }
    }

    /// Returns the mean gains of all fragments, of the best single one or none, and of the greedy set; `None` if no instance has
    /// the gains of all its single fragments.
    pub fn mean_gains(&self) -> Option<[f64; 3]> {
        let means = [self.all, self.best, self.greedy].map(|sum| sum / self.whole as f64);
        (self.whole > 0).then_some(means)
    }

    /// Describes the gains in a few lines; `None` if no gain of a fragment is known.
    pub(super) fn text(&self) -> Option<String> {
        if self.instances == 0 {
            return None;
        }
        let mut text = format!(
            "fragments of {}: {:.1} sets each",
            format_count(self.instances as u64, "instance"),
            self.sets as f64 / self.instances as f64,
        );
        let fragments: usize = self.alone.iter().sum();
        if fragments > 0 {
            let [helps, same, hurts] = self.alone.map(|of| 100.0 * of as f64 / fragments as f64);
            text += &format!(
                "; alone, {helps:.1} % help, {same:.1} % change nothing, {hurts:.1} % hurt"
            );
        }
        if let Some(gains) = self.mean_gains() {
            let [all, best, greedy] = gains.map(|gain| 100.0 * gain);
            text += &format!(
                "\nmean gain × 100: all fragments {all:+.2}, best one or none {best:+.2}, greedy set {greedy:+.2} ({:.2} fragments)",
                self.chosen as f64 / self.whole as f64,
            );
            if self.whole < self.instances {
                let whole = format_count(self.whole as u64, "instance");
                text += &format!(", over {whole} whose fragments were all tried");
            }
        }
        if let Some(correlation) = self.pairs.correlation() {
            text += &format!(
                "\ncorrelation of a set's gain with the sum of its fragments' gains: {correlation:.2} ({})",
                format_count(self.pairs.count as u64, "set")
            );
        }
        if self.too_long > 0 {
            text += &format!(
                "\n{} not fit into the prompts, which take no more tokens of fragments",
                subject(self.too_long, "set", ["does", "do"])
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
        let mean_gain = self
            .mean_gains()
            .map(|[all, best, greedy]| json!({"all": all, "best": best, "greedy": greedy}));
        let chosen = (self.whole > 0).then(|| self.chosen as f64 / self.whole as f64);
        json!({
            "instances": self.instances, "sets": self.sets, "unanswered": self.unanswered,
            "too_long": self.too_long, "cut": self.cut, "unseen": self.unseen, "whole": self.whole, "open": self.open, "alone": {"helps": helps, "same": same, "hurts": hurts},
            "mean_gain": mean_gain, "mean_greedy_fragments": chosen,
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
        // Rounding leaves a little of a constant's variance.
        let varies = |at: usize, variance: f64| variance > 1e-12 * self.squares[at] / count;
        (self.count > 1 && varies(0, xx) && varies(1, yy))
            .then(|| ((self.products / count - x * y) / (xx * yy).sqrt()).clamp(-1.0, 1.0))
    }
}
