//! Results in every format: tables as aligned text or with tabs, records as JSON, columns as CSV and Parquet; and the numbers in
//! them.

use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;
use repoformer_evaluate::statistics::Interval;
use repoformer_store::frame::{ColumnType, Frame};
use repoformer_text::visible::{visible, visible_in_line};
use serde_json::{Value, json};

use crate::output::fail;

/// Format of tables of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScoreFormat {
    /// An aligned table; scores × 100
    Text,
    /// The table with tabs; scores × 100
    Tsv,
    /// Named columns with commas, for pandas, polars and R; scores between 0 and 1
    Csv,
    /// One JSON object or list; scores between 0 and 1
    Json,
    /// One JSON object per line; scores between 0 and 1
    Jsonl,
    /// The columns of csv with their types, as a Parquet file
    Parquet,
}

impl ScoreFormat {
    /// The format that was given, else that by which the output is named, else text; checked before any work: a terminal is no
    /// place for Parquet, and a file that is named as CSV or Parquet holds it.
    pub(crate) fn of(given: Option<Self>, output: &Path) -> Result<Self> {
        let named = Self::named(output);
        let format = given.or(named).unwrap_or(Self::Text);
        if output.is_dir() {
            return fail(format!("{}: this is a folder", output.display()), "name a file in it");
        }
        if format == Self::Parquet && output == Path::new("-") && io::stdout().is_terminal() {
            return fail(
                "Parquet is not text, and standard output is a terminal",
                "send it to a file: `--format parquet > FILE`, or -o FILE",
            );
        }
        if format == Self::Parquet && is_packed(output) {
            return fail(
                format!("{}: Parquet is compressed in itself", output.display()),
                "name the file .parquet",
            );
        }
        match named {
            Some(Self::Csv) if matches!(format, Self::Csv | Self::Tsv) => Ok(format), // tabs separate, too
            Some(named @ (Self::Csv | Self::Parquet)) if format != named => fail(
                format!(
                    "{}: named as {}, but its format would be {}",
                    output.display(),
                    named.name(),
                    format.name()
                ),
                format!("choose --format {}, or name another file", named.name()),
            ),
            _ => Ok(format),
        }
    }

    /// The format by which a file is named, compressed or not.
    fn named(output: &Path) -> Option<Self> {
        let name = if is_packed(output) { Path::new(output.file_stem()?) } else { output };
        Self::from_str(name.extension()?.to_str()?, true).ok()
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Whether a file's name says that it is compressed.
fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "gz" || ending == "zst")
}

/// Format of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    Text,
    Json,
}

/// Results of a command, in the forms that the formats need.
pub(crate) trait Printable {
    /// The table as people read it.
    fn table(&self) -> Table;

    /// The text: the table, and what is said around it.
    fn text(&self) -> String {
        self.table().text()
    }

    /// The lines of JSON.
    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_>;

    /// The JSON value.
    fn json(&self) -> Value {
        self.lines().collect()
    }

    /// The columns that a data frame of these results always has, in their order.
    fn columns(&self) -> Vec<NamedColumn>;

    /// The rows of the data frame: records, whose nested fields become columns.
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        self.lines()
    }
}

/// Name and type of a column.
pub(crate) type NamedColumn = (String, ColumnType);

/// Columns of one type.
pub(crate) fn columns<N: Into<String>>(
    of: ColumnType,
    names: impl IntoIterator<Item = N>,
) -> impl Iterator<Item = NamedColumn> {
    names.into_iter().map(move |name| (name.into(), of))
}

/// The results in a format.
pub(crate) fn written(results: &dyn Printable, format: ScoreFormat) -> Result<Vec<u8>> {
    let frame = || {
        let mut frame = Frame::new(results.columns());
        results.rows().for_each(|row| frame.push(row));
        frame
    };
    Ok(match format {
        ScoreFormat::Text => visible(&results.text()).into_owned().into_bytes(),
        ScoreFormat::Tsv => results.table().tsv().into_bytes(),
        ScoreFormat::Csv => frame().csv().into_bytes(),
        ScoreFormat::Json => json_text(&results.json()).into_bytes(),
        ScoreFormat::Jsonl => json_lines(results.lines()).into_bytes(),
        ScoreFormat::Parquet => frame().parquet().context("cannot write these as Parquet")?,
    })
}

/// An interval as JSON has it.
pub(crate) fn ends(of: &Option<Interval>) -> Value {
    of.map_or(Value::Null, |interval| json!([interval.low, interval.high]))
}

/// The names, each once, sorted and with commas between.
pub(crate) fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}

/// A measured number with the one to compare it with in brackets, which keeps its digits: `37.21 (72.30)`; `-` stands for a number
/// that is not known.
pub(crate) fn beside(measured: Option<f64>, other: Option<f64>, digits: usize) -> String {
    let other = other.map(|number| {
        let own = number.to_string().split_once('.').map_or(0, |(_, digits)| digits.len());
        format!(" ({})", fixed(number, digits.max(own)))
    });
    or_dash(measured.map(|number| fixed(number, digits))) + &other.unwrap_or_default()
}

/// A JSON value, indented.
pub(crate) fn json_text(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Records, each on a line.
pub(crate) fn json_lines(records: impl IntoIterator<Item = Value>) -> String {
    records.into_iter().map(|record| format!("{record}\n")).collect()
}

/// A number with so many digits; one that rounds to 0 has no sign.
pub(crate) fn fixed(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.bytes().all(|byte| matches!(byte, b'0' | b'.')) => zero.to_owned(),
        _ => text,
    }
}

/// A number with so many digits and its sign; one that rounds to 0 has a plus.
pub(crate) fn signed(number: f64, digits: usize) -> String {
    let text = fixed(number, digits);
    if text.starts_with('-') { text } else { format!("+{text}") }
}

/// × 100, with two digits.
pub(crate) fn percent(value: f64) -> String {
    fixed(100.0 * value, 2)
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

    /// The table with aligned columns of texts.
    pub(crate) fn text_left(&self) -> String {
        self.aligned(usize::MAX)
    }

    /// The table with aligned columns.
    pub(crate) fn text(&self) -> String {
        self.aligned(1)
    }

    /// The table with so many columns aligned at the left, the others at the right; hidden characters are written out.
    fn aligned(&self, left: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |row: &Vec<String>| -> Vec<_> {
            row.iter().map(|cell| visible_in_line(cell).into_owned()).collect()
        };
        let rows: Vec<Vec<String>> = self.rows.iter().map(cells).collect();
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        rows.iter().map(line).collect()
    }
}
