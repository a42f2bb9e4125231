//! The page of a sweep: the table, and the paper's figures 5, 8, 9 and 11 with the trade of accuracy for latency.

use std::path::Path;

use anyhow::Result;
use repoformer::evaluate::statistics::Buckets;
use repoformer::report::{Chart, ChartPage, Line};
use repoformer::selective::policy::Measure;
use repoformer::selective::policy::sweep::{SweepCurve, SweepPoint};
use repoformer::store::artifact::write_file;

use super::tables::{AllSwept, NOTE, Swept};

/// Writes `index.html` and its figures into a folder.
pub(super) fn write(folder: &Path, swept: &AllSwept<'_>) -> Result<()> {
    let page = ChartPage {
        title: "When to retrieve".into(),
        finding: swept.finding(),
        table: swept.rows(),
        note: NOTE.into(),
        charts: charts(swept),
    };
    write_file(&folder.join("index.html"), page.html().as_bytes())?;
    for (name, svg) in page.figures() {
        write_file(&folder.join(name), svg.as_bytes())?;
    }
    Ok(())
}

fn charts(swept: &AllSwept<'_>) -> Vec<Chart> {
    let measure = swept.measure();
    let score = match measure {
        Measure::Similarity => "edit similarity",
        Measure::Pass => "unit-test pass rate",
    };
    let titled = match measure {
        Measure::Similarity => "Edit similarity",
        Measure::Pass => "Unit-test pass rate",
    };
    let lines = |value: &dyn Fn(&SweepPoint) -> Option<(f64, f64)>| -> Vec<Line> {
        let curves = swept.curves().filter(|(_, curve)| curve.points.len() > 1);
        let line = |(set, curve): (&Swept, &SweepCurve)| Line {
            name: set.named(curve),
            points: curve.points.iter().filter_map(value).collect(),
        };
        curves.map(line).filter(|line| !line.points.is_empty()).collect()
    };
    // Thresholds of probabilities have one scale; other scores have each their own.
    let by_threshold = |value: &dyn Fn(&SweepPoint) -> Option<f64>| -> Vec<Line> {
        let curves = swept.curves().filter(|(_, curve)| curve.calibration.is_some());
        let line = |(set, curve): (&Swept, &SweepCurve)| {
            let points = curve.points.iter().filter(|point| point.threshold.is_finite());
            let mut points: Vec<(f64, f64)> =
                points.filter_map(|point| Some((point.threshold, value(point)?))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Line { name: set.named(curve), points }
        };
        curves.map(line).filter(|line| line.points.len() > 1).collect()
    };
    let rate = |point: &SweepPoint| 100.0 * point.rag_rate;
    let mut charts = vec![
        Chart {
            name: "budget-es".into(),
            title: format!("{titled} by retrieval budget"),
            caption: format!("{titled} over all instances where a share of them is retrieved for, those with the highest scores first."),
            x: "instances retrieved for, %".into(),
            y: format!("{score} × 100"),
            lines: lines(&|point| Some((rate(point), 100.0 * point.score))),
            has_diagonal: false,
        },
        Chart {
            name: "budget-em".into(),
            title: "Exact match by retrieval budget".into(),
            caption: "Exact match by the same budgets.".into(),
            x: "instances retrieved for, %".into(),
            y: "exact match × 100".into(),
            lines: lines(&|point| Some((rate(point), 100.0 * point.em?))),
            has_diagonal: false,
        },
        Chart {
            name: "abstention".into(),
            title: "Precision of abstention".into(),
            caption: "Of the instances that are not retrieved for, the share that retrieval would not have helped.".into(),
            x: "instances retrieved for, %".into(),
            y: "rightly abstained, %".into(),
            lines: lines(&|point| Some((rate(point), 100.0 * point.abstention_precision?))),
            has_diagonal: false,
        },
    ];
    charts.push(Chart {
        name: "threshold".into(),
        title: format!("{titled} by threshold"),
        caption: format!(
            "{titled} where instances are retrieved for whose probability is above a threshold."
        ),
        x: "threshold".into(),
        y: format!("{score} × 100"),
        lines: by_threshold(&|point| Some(100.0 * point.score)),
        has_diagonal: false,
    });
    charts.push(Chart {
        name: "abstention-right".into(),
        title: "Right without retrieval".into(),
        caption: "Of the instances that are not retrieved for, the share that is already right. Between this and the precision of \
                  abstention are mistakes that retrieval would not have mended; above it those that it would have."
            .into(),
        x: "instances retrieved for, %".into(),
        y: "already right, %".into(),
        lines: lines(&|point| Some((rate(point), 100.0 * point.abstained_right?))),
        has_diagonal: false,
    });
    let gained = swept.curves().filter(|(_, curve)| !curve.gains.is_empty());
    charts.push(Chart {
        name: "gains".into(),
        title: "Gains where a policy retrieves".into(),
        caption: "How many of the instances retrieved for, at the only threshold or else the best one, gain or lose how much; a point stands \
                  for gains around it."
            .into(),
        x: format!("gain in {score} × 100"),
        y: "instances, %".into(),
        lines: gained
            .map(|(set, curve)| {
                let buckets = Buckets::of(curve.gains.iter().copied());
                let count = buckets.total().max(1) as f64;
                let points = buckets
                    .iter()
                    .map(|(bucket, found)| (f64::from(bucket.label()), 100.0 * found as f64 / count));
                Line { name: set.named(curve), points: points.collect() }
            })
            .collect(),
        has_diagonal: false,
    });
    let calibrated = swept.curves().filter_map(|(set, curve)| {
        let bins = &curve.calibration.as_ref()?.bins;
        Some(Line {
            name: set.named(curve),
            points: bins.iter().map(|b| (100.0 * b.probability, 100.0 * b.positive)).collect(),
        })
    });
    charts.push(Chart {
        name: "calibration".into(),
        title: "Calibration".into(),
        caption: "Instances by the probability that a policy gives retrieval, and how many of them it helped. On the diagonal probabilities hold.".into(),
        x: "probability that retrieval helps, %".into(),
        y: "helped, %".into(),
        lines: calibrated.collect(),
        has_diagonal: true,
    });
    for (clock, name) in swept.retrievers.iter().enumerate() {
        charts.push(Chart {
            name: format!("threshold-latency-{}", clock + 1),
            title: format!("Latency by threshold ({name})"),
            caption: format!("Mean latency of a request at the same thresholds, retriever {name}."),
            x: "threshold".into(),
            y: "mean latency, ms".into(),
            lines: by_threshold(&|point| Some(point.latencies.get(clock)?.as_ref()?.mean_ms)),
            has_diagonal: false,
        });
        charts.push(Chart {
            name: format!("latency-{}", clock + 1),
            title: format!("{titled} by latency ({name})"),
            caption: format!(
                "What each policy trades: {score} against the mean latency of a request, retriever {name}."
            ),
            x: "mean latency, ms".into(),
            y: format!("{score} × 100"),
            lines: lines(&|point| Some((point.latencies.get(clock)?.as_ref()?.mean_ms, 100.0 * point.score))),
            has_diagonal: false,
        });
    }
    charts
}
