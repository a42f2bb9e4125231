//! The page of a sweep: the table, and the paper's figures 5, 8, 9 and 11 with the trade of accuracy for latency.

use std::path::Path;

use anyhow::Result;
use repoformer::report::{Chart, ChartPage, Line};
use repoformer::selective::policy::sweep::{SweepCurve, SweepPoint};
use repoformer::store::artifact::write_file;

use super::tables::{NOTE, Swept};

/// Writes `index.html` and its figures into a folder.
pub(super) fn write(folder: &Path, swept: &Swept<'_>) -> Result<()> {
    let page = ChartPage {
        title: "When to retrieve".into(),
        finding: swept.finding.clone(),
        table: swept.rows(),
        note: NOTE.into(),
        charts: charts(swept.curves, swept.retrievers),
    };
    write_file(&folder.join("index.html"), page.html().as_bytes())?;
    for (name, svg) in page.figures() {
        write_file(&folder.join(name), svg.as_bytes())?;
    }
    Ok(())
}

fn charts(curves: &[SweepCurve], retrievers: &[String]) -> Vec<Chart> {
    let lines = |value: &dyn Fn(&SweepPoint) -> Option<(f64, f64)>| -> Vec<Line> {
        let swept = curves.iter().filter(|curve| curve.points.len() > 1);
        let line = |curve: &SweepCurve| Line {
            name: curve.policy.to_string(),
            points: curve.points.iter().filter_map(value).collect(),
        };
        swept.map(line).filter(|line| !line.points.is_empty()).collect()
    };
    let rate = |point: &SweepPoint| 100.0 * point.rag_rate;
    let mut charts = vec![
        Chart {
            name: "budget-es".into(),
            title: "Edit similarity by retrieval budget".into(),
            caption: "Edit similarity over all instances where a share of them is retrieved for, those with the highest scores first.".into(),
            x: "instances retrieved for, %".into(),
            y: "edit similarity × 100".into(),
            lines: lines(&|point| Some((rate(point), 100.0 * point.es))),
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
    let calibrated = curves.iter().filter_map(|curve| {
        let bins = &curve.calibration.as_ref()?.bins;
        Some(Line {
            name: curve.policy.to_string(),
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
    for (clock, name) in retrievers.iter().enumerate() {
        charts.push(Chart {
            name: format!("latency-{}", clock + 1),
            title: format!("Edit similarity by latency ({name})"),
            caption: format!(
                "What each policy trades: edit similarity against the mean latency of a request, retriever {name}."
            ),
            x: "mean latency, ms".into(),
            y: "edit similarity × 100".into(),
            lines: lines(&|point| Some((point.latencies.get(clock)?.mean_ms, 100.0 * point.es))),
            has_diagonal: false,
        });
    }
    charts
}
