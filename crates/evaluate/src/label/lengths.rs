//! Table of labels and gains, overall and by the length of the targets.

use repoformer_store::frame::ColumnType::{Integer, Number};
use repoformer_text::counts::format_count;
use serde_json::{Map, Value, json};

use super::summary::{JudgeSummary, LengthCounts};
use crate::table::{NamedColumn, Printable, Table, columns, format_signed};

/// First number of lines of each row; long targets share one row.
const FIRST_LINES: [usize; 9] = [0, 1, 2, 3, 4, 5, 6, 11, 21];

/// Percentage of positive labels, gains by size (figure 10 of Repoformer), and both by the length of the targets.
#[derive(Debug)]
pub struct JudgeTable<'a> {
    summary: &'a JudgeSummary,
    rows: Vec<LengthRow>,
}

/// Instances whose targets have a number of lines in a range.
#[derive(Debug, PartialEq)]
struct LengthRow {
    least: usize,
    /// Greatest number of lines; `None` if there is no limit.
    most: Option<usize>,
    counts: LengthCounts,
}

impl LengthRow {
    /// Returns the range of lines: `3`, `6-10`, `21+`.
    fn lines(&self) -> String {
        let least = self.least;
        match self.most {
            None => format!("{least}+"),
            Some(most) if most == least => least.to_string(),
            Some(most) => format!("{least}-{most}"),
        }
    }
}

impl<'a> JudgeTable<'a> {
    /// Creates the table of judged instances.
    pub fn new(summary: &'a JudgeSummary) -> Self {
        let row = |(place, &least): (usize, &usize)| {
            let most = FIRST_LINES.get(place + 1).map(|next| next - 1);
            let mut counts = LengthCounts::default();
            for (_, one) in summary.lengths.range(least..=most.unwrap_or(usize::MAX)) {
                counts.count += one.count;
                counts.positive += one.positive;
                counts.gain += one.gain;
            }
            LengthRow { least, most, counts }
        };
        let rows = FIRST_LINES.iter().enumerate().map(row);
        Self { summary, rows: rows.filter(|row| row.counts.count > 0).collect() }
    }
}

impl Printable for JudgeTable<'_> {
    fn table(&self) -> Table {
        let mut table = Table::new(["lines", "instances", "%", "positive %", "mean gain × 100"]);
        for row in &self.rows {
            let LengthCounts { count, positive, gain } = row.counts;
            let instances = count as f64;
            table.row(vec![
                row.lines(),
                count.to_string(),
                format!("{:.1}", 100.0 * instances / self.summary.gains.len() as f64),
                format!("{:.1}", 100.0 * positive as f64 / instances),
                format_signed(100.0 * gain / instances, 2),
            ]);
        }
        table
    }

    fn text(&self) -> String {
        let (summary, count) = (self.summary, self.summary.gains.len());
        if count == 0 {
            return "label judge: 0 instances".into();
        }
        let fragments = summary.fragments.text().map(|text| text + "\n\n").unwrap_or_default();
        format!(
            "label judge: {} by {}, {:.2} % positive; gain × 100:\n{}\n\n{fragments}{}",
            format_count(count as u64, "instance"),
            summary.metric,
            100.0 * summary.positive as f64 / count as f64,
            summary.buckets().histogram().trim_end(),
            self.table().text(),
        )
    }

    fn json(&self) -> Value {
        let buckets = self.summary.buckets();
        let named =
            buckets.iter().map(|(bucket, count)| (bucket.label().to_string(), count.into()));
        json!({
            "metric": self.summary.metric, "instances": self.summary.gains.len(),
            "positive": self.summary.positive, "buckets": named.collect::<Map<String, Value>>(),
            "lengths": self.lines().collect::<Value>(), "fragments": self.summary.fragments.json(),
        })
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.rows.iter().map(|LengthRow { least, most, counts }| {
            json!({
                "lines": {"least": least, "most": most}, "instances": counts.count,
                "positive": counts.positive, "mean_gain": counts.gain / counts.count as f64,
            })
        }))
    }

    fn columns(&self) -> Vec<NamedColumn> {
        columns(Integer, ["lines.least", "lines.most", "instances", "positive"])
            .chain(columns(Number, ["mean_gain"]))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(count: usize, positive: usize, gain: f64) -> LengthCounts {
        LengthCounts { count, positive, gain }
    }

    /// By hand: 7 and 10 lines share a row, 11 lines do not, and the last row is 21 lines or more.
    #[test]
    fn rows_are_ranges_of_lines() {
        let summary = JudgeSummary {
            metric: "repoformer".into(),
            gains: vec![0.5, 0.25, -0.25, 0.0, 0.0],
            positive: 2,
            lengths: [
                (1, counts(1, 1, 0.5)),
                (7, counts(1, 1, 0.25)),
                (10, counts(1, 0, -0.25)),
                (11, counts(1, 0, 0.0)),
                (400, counts(1, 0, 0.0)),
            ]
            .into(),
            ..JudgeSummary::default()
        };
        let table = JudgeTable::new(&summary);
        let mut rows = table.table().into_rows();
        rows.remove(0);
        assert_eq!(
            rows,
            [
                ["1", "1", "20.0", "100.0", "+50.00"],
                ["6-10", "2", "40.0", "50.0", "+0.00"],
                ["11-20", "1", "20.0", "0.0", "+0.00"],
                ["21+", "1", "20.0", "0.0", "+0.00"],
            ]
        );
        let json = table.json();
        assert_eq!(json["lengths"][3]["lines"], json!({"least": 21, "most": null}));
        assert_eq!((&json["positive"], &json["buckets"]["50"]), (&json!(2), &json!(1)));
        let text = table.text();
        assert!(text.starts_with("label judge: 5 instances by repoformer, 40.00 % positive;"));
        assert!(text.contains("  +30       1   20.0 %"), "{text}");
    }

    #[test]
    fn no_instance_has_no_shares() {
        let summary = JudgeSummary::default();
        let table = JudgeTable::new(&summary);
        assert_eq!(table.text(), "label judge: 0 instances");
        assert_eq!(table.lines().count(), 0);
    }
}
