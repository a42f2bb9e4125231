//! Results as tables, records and columns, and the numbers in them.

use repoformer_store::frame::ColumnType;
use repoformer_text::message::Message;
use repoformer_text::visible::visible_in_line;
use serde_json::{Value, json};

use crate::statistics::Interval;

/// Results of a command, in the forms that the output formats need.
pub trait Printable {
    /// Returns the table for people.
    fn table(&self) -> Table;

    /// Returns the text: the table, and any text around it.
    fn text(&self) -> String {
        self.table().text()
    }

    /// Returns advice on gaps in the results, which follows the text.
    fn notes(&self) -> Vec<Message> {
        Vec::new()
    }

    /// Returns the lines of JSON.
    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_>;

    /// Returns the JSON value.
    fn json(&self) -> Value {
        self.lines().collect()
    }

    /// Returns the columns that a data frame of these results always has, in order.
    fn columns(&self) -> Vec<NamedColumn>;

    /// Returns the rows of the data frame: records, whose nested fields become columns.
    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        self.lines()
    }
}

/// Name and type of a column.
pub type NamedColumn = (String, ColumnType);

/// Returns columns of one type.
pub fn columns<N: Into<String>>(
    of: ColumnType,
    names: impl IntoIterator<Item = N>,
) -> impl Iterator<Item = NamedColumn> {
    names.into_iter().map(move |name| (name.into(), of))
}

/// Returns the first columns of a task's row.
pub fn task_columns() -> impl Iterator<Item = NamedColumn> {
    columns(ColumnType::Text, ["predictions", "task_id"])
        .chain(columns(ColumnType::Integer, ["row"]))
        .chain(columns(ColumnType::Text, ["repository"]))
}

/// Returns the only record, or a list of all records.
pub fn one_or_all(mut records: Vec<Value>) -> Value {
    if records.len() == 1 { records.remove(0) } else { records.into() }
}

/// Returns the record of a task, with the name of its predictions if there are several.
pub fn of_predictions(mut task: Value, name: &str, count: usize) -> Value {
    if count > 1 {
        task["predictions"] = name.into();
    }
    task
}

/// Returns an interval as JSON.
pub fn ends(of: &Option<Interval>) -> Value {
    of.map_or(Value::Null, |interval| json!([interval.low, interval.high]))
}

/// Returns the distinct names, sorted and separated by commas.
pub fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
}

/// Formats a measured number with the number to compare it with in parentheses, which keeps its digits: `37.21 (72.30)`. An
/// unknown number is written as `-`.
pub fn beside(measured: Option<f64>, other: Option<f64>, digits: usize) -> String {
    let other = other.map(|number| {
        let own = number.to_string().split_once('.').map_or(0, |(_, digits)| digits.len());
        format!(" ({})", format_fixed(number, digits.max(own)))
    });
    or_dash(measured.map(|number| format_fixed(number, digits))) + &other.unwrap_or_default()
}

/// Formats a number with this many digits; a number that rounds to 0 has no sign.
pub fn format_fixed(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.bytes().all(|byte| matches!(byte, b'0' | b'.')) => zero.to_owned(),
        _ => text,
    }
}

/// Formats a number with this many digits and its sign; a number that rounds to 0 has a plus.
pub fn format_signed(number: f64, digits: usize) -> String {
    let text = format_fixed(number, digits);
    if text.starts_with('-') { text } else { format!("+{text}") }
}

/// Formats a number × 100, with two digits.
pub fn percent(value: f64) -> String {
    format_fixed(100.0 * value, 2)
}

/// Formats an interval: `[34.10, 38.00]`.
pub fn interval(of: &Option<Interval>) -> String {
    let text = |of: &Interval| format!("[{}, {}]", percent(of.low), percent(of.high));
    of.as_ref().map(text).unwrap_or_default()
}

/// Returns the text, or a dash if it is absent.
pub fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".into())
}

/// Marks a time of retrieval, or the name of such times, if it may lack the time for computing the query's dense vector.
pub fn with_embedding(time: String, is_lacking: bool) -> String {
    if is_lacking { time + " + embedding" } else { time }
}

/// Greatest width to which the cells of a column are padded. A longer cell moves only the rest of its own row.
const WIDEST: usize = 200;

/// Rows of cells. The first row is the heading; the first column is text, the others are numbers.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Returns a table with this heading row.
    pub fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { rows: vec![head.into_iter().map(Into::into).collect()] }
    }

    /// Returns a table of columns of the same length, each with its heading.
    pub fn of_columns(columns: &[Vec<String>]) -> Self {
        let count = columns.first().map_or(0, Vec::len);
        let row = |place: usize| columns.iter().map(|column| column[place].clone()).collect();
        Self { rows: (0..count).map(row).collect() }
    }

    /// Adds a row with as many cells as the heading has.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Returns the table with tabs between cells.
    pub fn tsv(&self) -> String {
        self.rows.iter().map(|row| row.join("\t") + "\n").collect()
    }

    /// Returns the rows, starting with the heading.
    pub fn into_rows(self) -> Vec<Vec<String>> {
        self.rows
    }

    /// Returns the table with left-aligned columns.
    pub fn text_left(&self) -> String {
        self.align(usize::MAX)
    }

    /// Returns the table with aligned columns: the first at the left, the others at the right.
    pub fn text(&self) -> String {
        self.align(1)
    }

    /// Returns the table with this many columns aligned at the left and the others at the right; hidden characters are written
    /// out.
    fn align(&self, left: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |row: &Vec<String>| -> Vec<_> {
            row.iter().map(|cell| visible_in_line(cell).into_owned()).collect()
        };
        let rows: Vec<Vec<String>> = self.rows.iter().map(cells).collect();
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let widths = cells.map(|cell| cell.chars().count());
            widths.filter(|&width| width <= WIDEST).max().unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn a_long_cell_moves_only_its_own_row() {
        let mut table = Table::new(["id", "n"]);
        let long = "n".repeat(70_000);
        for id in ["a", &long, "bcd"] {
            table.row(vec![id.into(), "1".into()]);
        }
        assert_eq!(table.text(), format!("id   n\na    1\n{long}  1\nbcd  1\n"));
    }
}
