//! Tables as aligned text or with tabs, records as JSON, and the numbers in them.

use clap::ValueEnum;
use repoformer::evaluate::statistics::Interval;
use serde_json::Value;

/// Format of tables of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScoreFormat {
    /// An aligned table; scores × 100
    Text,
    /// The table with tabs; scores × 100
    Tsv,
    /// One JSON object or list; scores between 0 and 1
    Json,
    /// One JSON object per line; scores between 0 and 1
    Jsonl,
}

/// Format of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    Text,
    Json,
}

/// The table or the records, in the requested format.
pub(crate) fn written(
    format: ScoreFormat,
    table: impl FnOnce() -> Table,
    records: impl Iterator<Item = Value>,
) -> String {
    match format {
        ScoreFormat::Text => table().text(),
        ScoreFormat::Tsv => table().tsv(),
        ScoreFormat::Json => json_text(&records.collect()),
        ScoreFormat::Jsonl => json_lines(records),
    }
}

/// The names, each once, sorted and with commas between.
pub(crate) fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}

/// A measured number with the one to compare it with in brackets: `37.21 (72.30)`; `-` stands for a number that is not known.
pub(crate) fn beside(measured: Option<f64>, other: Option<f64>, digits: usize) -> String {
    let text = |number: f64| format!("{number:.digits$}");
    let other = other.map(|number| format!(" ({})", text(number)));
    or_dash(measured.map(text)) + &other.unwrap_or_default()
}

/// A JSON value, indented.
pub(crate) fn json_text(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Records, each on a line.
pub(crate) fn json_lines(records: impl IntoIterator<Item = Value>) -> String {
    records.into_iter().map(|record| format!("{record}\n")).collect()
}

/// × 100, with two digits.
pub(crate) fn percent(value: f64) -> String {
    format!("{:.2}", 100.0 * value)
}

/// `[34.10, 38.00]`
pub(crate) fn interval(of: &Option<Interval>) -> String {
    let text = |of: &Interval| format!("[{}, {}]", percent(of.low), percent(of.high));
    of.as_ref().map(text).unwrap_or_default()
}

pub(crate) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".into())
}

/// Behind a time of retrieval that lacks the time for the query's dense vector.
pub(crate) const EMBEDDING: &str = " + embedding";

/// A time of retrieval, or the name of such times.
pub(crate) fn with_embedding(time: String, is_lacking: bool) -> String {
    if is_lacking { time + EMBEDDING } else { time }
}

/// Rows of cells. The first row is the head; the first column is text, the others are numbers.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { rows: vec![head.into_iter().map(Into::into).collect()] }
    }

    /// Columns of the same length, each with its head.
    pub(crate) fn of_columns(columns: &[Vec<String>]) -> Self {
        let count = columns.first().map_or(0, Vec::len);
        let row = |place: usize| columns.iter().map(|column| column[place].clone()).collect();
        Self { rows: (0..count).map(row).collect() }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table with tabs between cells.
    pub(crate) fn tsv(&self) -> String {
        self.rows.iter().map(|row| row.join("\t") + "\n").collect()
    }

    /// The rows, the head first.
    pub(crate) fn into_rows(self) -> Vec<Vec<String>> {
        self.rows
    }

    /// The table with aligned columns.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        self.rows.iter().map(line).collect()
    }
}
