//! The page of a sweep: the table, and the paper's figures 4 to 6, 8, 9 and 11 with the trade of accuracy for latency.

use std::path::Path;

use anyhow::Result;
use repoformer_evaluate::curve_charts::Curves;
use repoformer_evaluate::report::{Chart, ChartPage};
use repoformer_study::choices::write_page;

use super::tables::{AllSwept, NOTE};

/// Writes `index.html` and its figures into a folder.
pub(super) fn write(folder: &Path, swept: &AllSwept<'_>) -> Result<()> {
    let page = ChartPage {
        title: "When to retrieve".into(),
        finding: swept.finding(),
        tables: swept.parts(),
        note: NOTE.into(),
        charts: charts(swept),
    };
    write_page(folder, &page)
}

fn charts(swept: &AllSwept<'_>) -> Vec<Chart> {
    let named = swept.curves().map(|(set, curve)| (set.named(curve), curve));
    let curves = Curves { named: named.collect(), measure: swept.measure() };
    let mut charts = vec![
        curves.budget(),
        curves.budget_em(),
        curves.abstention(),
        curves.abstentions(),
        curves.threshold(),
        curves.gains(),
        curves.calibration(),
    ];
    for (clock, name) in swept.retrievers.iter().enumerate() {
        charts.extend([curves.threshold_latency(clock, name), curves.latency(clock, name)]);
    }
    charts
}
