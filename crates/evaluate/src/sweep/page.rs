//! Page of a sweep: the table, and the paper's figures 4 to 6, 8, 9 and 11 with the trade-off of accuracy and latency.

use super::results::{NOTE, SweepResults};
use crate::curve_charts::Curves;
use crate::report::{Chart, ChartPage};

impl SweepResults {
    /// Returns the page: the summary in parts, and a chart of each figure.
    pub fn page(&self) -> ChartPage {
        ChartPage {
            title: "When to retrieve".into(),
            finding: self.finding(),
            tables: self.parts(),
            note: NOTE.into(),
            charts: self.charts(),
        }
    }

    fn charts(&self) -> Vec<Chart> {
        let named = self.curves().map(|(set, curve)| (set.legend_name(curve), curve));
        let curves = Curves { named: named.collect(), measure: self.measure() };
        let mut charts = vec![
            curves.budget(),
            curves.budget_em(),
            curves.abstention(),
            curves.abstentions(),
            curves.threshold(),
            curves.gains(),
            curves.calibration(),
        ];
        for (clock, name) in self.retrievers.iter().enumerate() {
            charts.extend([curves.threshold_latency(clock, name), curves.latency(clock, name)]);
        }
        charts
    }
}
