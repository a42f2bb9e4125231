//! Charts of policies' curves, as the Repoformer paper draws them.

use crate::report::{Chart, ChartForm, Line};
use crate::statistics::{Bucket, Buckets};
use repoformer_core::policy::Measure;
use repoformer_core::policy::sweep::{SweepCurve, SweepPoint};

/// Curves with their names in the legend.
#[derive(Debug)]
pub struct Curves<'a> {
    /// Curves with their names.
    pub named: Vec<(String, &'a SweepCurve)>,
    /// Measure of the scores.
    pub measure: Measure,
}

/// Name and unit of the axis of retrievals.
const BUDGET: &str = "instances with retrieval, %";

/// Kinds of instances for which a policy does not retrieve, as in figure 5.
pub const ABSTENTIONS: [&str; 3] =
    ["already right", "retrieval does not help", "retrieval would help"];

impl Curves<'_> {
    /// Returns the measure in words, for the start of a sentence and for the middle.
    fn words(&self) -> [&'static str; 2] {
        match self.measure {
            Measure::Similarity => ["Edit similarity", "edit similarity"],
            Measure::Pass => ["Unit-test pass rate", "unit-test pass rate"],
            Measure::Likelihood => ["Probability of a character", "probability of a character"],
        }
    }

    /// Returns a line for each curve of several points.
    fn lines(&self, value: impl Fn(&SweepPoint) -> Option<(f64, f64)>) -> Vec<Line> {
        let curves = self.named.iter().filter(|(_, curve)| curve.points.len() > 1);
        let line = |(name, curve): &(String, &SweepCurve)| Line {
            name: name.clone(),
            points: curve.points.iter().filter_map(&value).collect(),
        };
        curves.map(line).filter(|line| !line.points.is_empty()).collect()
    }

    /// Returns a line by threshold for each curve of probabilities, which share one scale; every other kind of score has its
    /// own scale.
    fn by_threshold(&self, value: impl Fn(&SweepPoint) -> Option<f64>) -> Vec<Line> {
        let curves = self.named.iter().filter(|(_, curve)| curve.calibration.is_some());
        let line = |(name, curve): &(String, &SweepCurve)| {
            let points = curve.points.iter().filter(|point| point.threshold.is_finite());
            let mut points: Vec<(f64, f64)> =
                points.filter_map(|point| Some((point.threshold, value(point)?))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Line { name: name.clone(), points }
        };
        curves.map(line).filter(|line| line.points.len() > 1).collect()
    }

    /// Returns a chart of the score by the percentage of instances with retrieval (figures 8 and 9).
    pub fn budget(&self) -> Chart {
        let [title, score] = self.words();
        Chart {
            name: "budget-es".into(),
            title: format!("{title} by retrieval budget"),
            caption: format!(
                "{title} over all instances when the policy retrieves for a percentage of them, \
                 highest scores first."
            ),
            x: BUDGET.into(),
            y: format!("{score} × 100"),
            lines: self.lines(|point| Some((rate(point), 100.0 * point.score))),
            form: ChartForm::Lines,
        }
    }

    /// Returns a chart of exact match by the same percentage.
    pub fn budget_em(&self) -> Chart {
        Chart {
            name: "budget-em".into(),
            title: "Exact match by retrieval budget".into(),
            caption: "Exact match at the same budgets.".into(),
            x: BUDGET.into(),
            y: "exact match × 100".into(),
            lines: self.lines(|point| Some((rate(point), 100.0 * point.em?))),
            form: ChartForm::Lines,
        }
    }

    /// Returns a chart of the precision of abstention by the same percentage.
    pub fn abstention(&self) -> Chart {
        Chart {
            name: "abstention".into(),
            title: "Precision of abstention".into(),
            caption: "Percentage of the instances without retrieval that retrieval would not have \
                      helped."
                .into(),
            x: BUDGET.into(),
            y: "rightly abstained, %".into(),
            lines: self.lines(|point| Some((rate(point), 100.0 * point.abstention_precision?))),
            form: ChartForm::Lines,
        }
    }

    /// Returns a chart of the score by threshold (figure 4).
    pub fn threshold(&self) -> Chart {
        let [title, score] = self.words();
        Chart {
            name: "threshold".into(),
            title: format!("{title} by threshold"),
            caption: format!(
                "{title} when the policy retrieves for instances whose probability is above a threshold."
            ),
            x: "threshold".into(),
            y: format!("{score} × 100"),
            lines: self.by_threshold(|point| Some(100.0 * point.score)),
            form: ChartForm::Lines,
        }
    }

    /// Returns a chart of the latency by threshold (figure 4), according to one of the latency models.
    pub fn threshold_latency(&self, clock: usize, retriever: &str) -> Chart {
        Chart {
            name: format!("threshold-latency-{}", clock + 1),
            title: format!("Latency by threshold ({retriever})"),
            caption: format!(
                "Mean latency of a request at the same thresholds, retriever {retriever}."
            ),
            x: "threshold".into(),
            y: "mean latency, ms".into(),
            lines: self.by_threshold(|point| Some(point.latencies.get(clock)?.as_ref()?.mean_ms)),
            form: ChartForm::Lines,
        }
    }

    /// Returns a chart of the score by latency (figures 12 to 15), according to one of the latency models.
    pub fn latency(&self, clock: usize, retriever: &str) -> Chart {
        let [title, score] = self.words();
        let value = |point: &SweepPoint| {
            Some((point.latencies.get(clock)?.as_ref()?.mean_ms, 100.0 * point.score))
        };
        Chart {
            name: format!("latency-{}", clock + 1),
            title: format!("{title} by latency ({retriever})"),
            caption: format!(
                "Trade-off of each policy: {score} against the mean latency of a request, \
                 retriever {retriever}."
            ),
            x: "mean latency, ms".into(),
            y: format!("{score} × 100"),
            lines: self.lines(value),
            form: ChartForm::Lines,
        }
    }

    /// Returns a chart of the kinds of instances for which a policy does not retrieve (figure 5), at its only threshold or else
    /// the best one.
    pub fn abstentions(&self) -> Chart {
        let shown = |curve: &SweepCurve| match &curve.points[..] {
            [only] => abstention_parts(only),
            _ => abstention_parts(curve.best()?),
        };
        let bars = self.named.iter().filter_map(|(name, curve)| Some((name, shown(curve)?)));
        let bars: Vec<(&String, [f64; 3])> = bars.collect();
        let part = |(part, name): (usize, &&str)| {
            let shares = bars.iter().enumerate();
            let points = shares.map(|(at, (_, shares))| (at as f64, shares[part]));
            Line { name: (*name).to_owned(), points: points.collect() }
        };
        Chart {
            name: "abstentions".into(),
            title: "Instances without retrieval".into(),
            caption:
                "Instances for which a policy does not retrieve. The two lower parts together \
                      are the precision of abstention."
                    .into(),
            x: String::new(),
            y: "abstentions, %".into(),
            lines: ABSTENTIONS.iter().enumerate().map(part).collect(),
            form: ChartForm::Stacks(bars.iter().map(|(name, _)| (*name).clone()).collect()),
        }
    }

    /// Returns a chart of the gains of the instances for which a policy retrieves (figure 6), at its only threshold or else the
    /// best one.
    pub fn gains(&self) -> Chart {
        let gained = self.named.iter().filter(|(_, curve)| !curve.gains.is_empty());
        let each = gained.map(|(name, curve)| (name.clone(), &curve.gains[..])).collect::<Vec<_>>();
        gains(&each, self.measure)
    }

    /// Returns a chart of the calibration of probabilities (figure 11).
    pub fn calibration(&self) -> Chart {
        let calibrated = self.named.iter().filter_map(|(name, curve)| {
            let bins = &curve.calibration.as_ref()?.bins;
            let points = bins.iter().map(|b| (100.0 * b.probability, 100.0 * b.positive));
            Some(Line { name: name.clone(), points: points.collect() })
        });
        Chart {
            name: "calibration".into(),
            title: "Calibration".into(),
            caption: "Instances by the probability that a policy assigns to retrieval, and the \
                      percentage that retrieval helped. Calibrated probabilities are on the \
                      diagonal."
                .into(),
            x: "probability that retrieval helps, %".into(),
            y: "helped, %".into(),
            lines: calibrated.collect(),
            form: ChartForm::Diagonal,
        }
    }
}

/// Returns the percentage of instances with retrieval.
fn rate(point: &SweepPoint) -> f64 {
    100.0 * point.rag_rate
}

/// Returns the percentages of the abstentions, in the order of [`ABSTENTIONS`]. Returns `None` if there are no abstentions, or
/// if it is unknown which completions are right.
pub fn abstention_parts(point: &SweepPoint) -> Option<[f64; 3]> {
    let (right, precision) = (point.abstained_right?, point.abstention_precision?);
    Some([right, precision - right, 1.0 - precision].map(|share| 100.0 * share))
}

/// Returns a chart of figures 3, 6 and 10: the number of instances by gain, for each name.
pub fn gains(each: &[(String, &[f64])], measure: Measure) -> Chart {
    let name = measure.name();
    let line = |(name, gains): &(String, &[f64])| {
        let buckets = Buckets::new(gains.iter().copied());
        let count = buckets.total().max(1) as f64;
        let share = |(bucket, found): (Bucket, usize)| {
            (bucket.index() as f64, 100.0 * found as f64 / count)
        };
        Line { name: name.clone(), points: buckets.iter().map(share).collect() }
    };
    Chart {
        name: "gains".into(),
        title: "Gains by retrieval".into(),
        caption: "Instances by their gain or loss from retrieval. Each label stands for gains of \
                  up to 10 points from it; 0 means no change."
            .into(),
        x: format!("gain in {name} × 100"),
        y: "instances, %".into(),
        lines: each.iter().map(line).collect(),
        form: ChartForm::Bars(bucket_names()),
    }
}

/// Returns the labels of the buckets of gains.
pub fn bucket_names() -> Vec<String> {
    Bucket::all().map(|bucket| format!("{:+}", bucket.label()).replace("+0", "0")).collect()
}
