//! Data frames: named and typed columns, as pandas, polars and R read them, built from JSON records.
//!
//! - Names of nested fields are joined: `{"repocoder": {"es": 0.5}}` is column `repocoder_es`.
//! - `@` is spelled out, and so is a minus before a digit. Other characters that a variable's name cannot contain become `_`:
//!   `gt_recall@1` becomes `gt_recall_at_1`, and `-90` becomes `minus_90`.
//! - `…_interval`, a list `[low, high]`, becomes two columns: `…_low` and `…_high`.
//! - Any other list becomes text: its JSON.
//! - A value that is absent from a record, or `null`, is missing: an empty cell in CSV, a null in Parquet. It is never 0.

use std::fmt::Write;

use serde_json::Value;

/// Type of a column's values; values can be missing in any column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Text: a string in Parquet.
    Text,
    /// A whole number: an int64 in Parquet.
    Integer,
    /// A number: a double in Parquet.
    Number,
    /// True or false: a boolean in Parquet.
    Flag,
}

impl ColumnType {
    /// Returns the type of a value; `None` for a missing value.
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::Bool(_) => Some(Self::Flag),
            Value::Number(number) if number.is_i64() => Some(Self::Integer),
            Value::Number(_) => Some(Self::Number),
            Value::String(_) | Value::Array(_) | Value::Object(_) => Some(Self::Text),
        }
    }

    /// Returns the type that can hold the values of both types.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            _ if self == other => self,
            (Self::Integer, Self::Number) | (Self::Number, Self::Integer) => Self::Number,
            _ => Self::Text,
        }
    }
}

/// Column with one value for each row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) of: ColumnType,
    /// Values; `Null` for a missing one.
    pub(super) values: Vec<Value>,
}

/// Rows of named, typed columns.
///
/// ```
/// use repoformer_store::frame::{ColumnType, Frame};
/// use serde_json::json;
/// let mut frame = Frame::new([("task_id", ColumnType::Text), ("ut", ColumnType::Number)]);
/// frame.push(json!({"task_id": "a,1", "repocoder": {"es": 0.5, "es_interval": [0.25, 1.0]}}));
/// let text = "task_id,ut,repocoder_es,repocoder_es_low,repocoder_es_high\n\"a,1\",,0.5,0.25,1.0\n";
/// assert_eq!(frame.csv(), text);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frame {
    pub(super) columns: Vec<Column>,
    pub(super) rows: usize,
}

impl Frame {
    /// Creates a frame with columns that exist even if no record has a value for them. The columns are named by field; names of
    /// nested fields have dots (`repocoder.es`).
    pub fn new<N: AsRef<str>>(columns: impl IntoIterator<Item = (N, ColumnType)>) -> Self {
        let column = |(field, of): (N, _)| {
            let name = in_column(field.as_ref());
            Column { name, of, values: Vec::new() }
        };
        let mut columns: Vec<Column> = columns.into_iter().map(column).collect();
        for place in 1..columns.len() {
            let (before, rest) = columns.split_at_mut(place);
            let name = &mut rest[0].name;
            number(name, before.iter().filter(|column| column.name == *name).count());
        }
        Self { columns, rows: 0 }
    }

    /// Appends a record as a row. A value of another type widens its column, and a field without a column gets a new one.
    pub fn push(&mut self, record: Value) {
        let mut cells = Vec::new();
        flatten(String::new(), record, &mut cells);
        // Otherwise, fields such as `em` and `EM` would share a column.
        for place in 1..cells.len() {
            let (before, rest) = cells.split_at_mut(place);
            let name = &mut rest[0].0;
            number(name, before.iter().filter(|(other, _)| other == name).count());
        }
        // Records usually have their fields in the same order.
        let mut next = 0;
        for (name, value) in cells {
            let Some(of) = ColumnType::from_value(&value) else { continue };
            let is_it = |column: &Column| column.name == name;
            let place = match self.columns.get(next) {
                Some(column) if is_it(column) => Some(next),
                _ => self.columns.iter().position(is_it),
            };
            let place = place.unwrap_or_else(|| {
                self.columns.push(Column { name, of, values: Vec::new() });
                self.columns.len() - 1
            });
            next = place + 1;
            let column = &mut self.columns[place];
            column.of = column.of.and(of);
            column.values.resize(self.rows, Value::Null);
            column.values.push(value);
        }
        self.rows += 1;
        self.columns.iter_mut().for_each(|column| column.values.resize(self.rows, Value::Null));
    }

    /// Returns the frame as CSV (RFC 4180, but with lines that end in `\n`), with the names first. Numbers have as many digits
    /// as needed to read them back exactly. A missing value is an empty cell; an empty text is `""`.
    pub fn csv(&self) -> String {
        let mut text = String::new();
        for (place, column) in self.columns.iter().enumerate() {
            text.push_str(if place == 0 { "" } else { "," });
            push_text(&mut text, &column.name);
        }
        text.push('\n');
        for row in 0..self.rows {
            for (place, column) in self.columns.iter().enumerate() {
                text.push_str(if place == 0 { "" } else { "," });
                push_cell(&mut text, &column.values[row]);
            }
            text.push('\n');
        }
        text
    }
}

/// Appends a number to a name that already occurs `before` times: `em_2`.
fn number(name: &mut String, before: usize) {
    if before > 0 {
        *name += &format!("_{}", before + 1);
    }
}

/// Collects the values of a record with the names of their columns.
fn flatten(name: String, value: Value, cells: &mut Vec<(String, Value)>) {
    if let Value::Object(fields) = value {
        for (key, value) in fields {
            let separator = if name.is_empty() { "" } else { "_" };
            flatten(format!("{name}{separator}{}", in_column(&key)), value, cells);
        }
        return;
    }
    match (name.strip_suffix("_interval"), value) {
        (Some(of), Value::Array(ends)) => {
            let names = ["low", "high"].map(|end| format!("{of}_{end}"));
            cells.extend(names.into_iter().zip(ends));
        }
        (_, value) => cells.push((name, value)),
    }
}

/// Returns a field's name in the form used in a column's name.
fn in_column(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    let mut rest = key.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '@' => name.push_str("_at_"),
            '-' if rest.peek().is_some_and(char::is_ascii_digit) => name.push_str("minus_"),
            c if c.is_alphanumeric() => name.extend(c.to_lowercase()),
            _ => name.push('_'),
        }
    }
    name
}

fn push_cell(text: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::String(value) => push_text(text, value),
        Value::Array(_) | Value::Object(_) => push_text(text, &value.to_string()),
        Value::Bool(_) | Value::Number(_) => {
            let _ = write!(text, "{value}");
        }
    }
}

/// Appends a text, in quotes if it would be misread without them.
fn push_text(text: &mut String, value: &str) {
    let is_plain = !value.is_empty() && !value.contains([',', '"', '\n', '\r']);
    if is_plain {
        text.push_str(value);
    } else {
        text.push('"');
        text.push_str(&value.replace('"', "\"\""));
        text.push('"');
    }
}

#[cfg(feature = "parquet")]
#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use serde_json::json;

    use super::*;

    fn frame(records: impl IntoIterator<Item = Value>) -> Frame {
        let mut frame = Frame::default();
        records.into_iter().for_each(|record| frame.push(record));
        frame
    }

    #[test]
    fn fields_of_equal_names_have_columns_of_their_own() {
        let mut frame =
            Frame::new([("mine.em", ColumnType::Number), ("mine.EM", ColumnType::Number)]);
        frame.push(json!({"mine": {"em": null, "EM": 0.9}}));
        frame.push(json!({"mine": {"em": 0.5, "EM": 0.25}}));
        assert_eq!(frame.csv(), "mine_em,mine_em_2\n,0.9\n0.5,0.25\n");
    }

    #[test]
    fn names_are_joined_and_can_stand_in_programs() {
        let record = json!({
            "a": {"b": {"c": 1}}, "gt_recall@10": {"mean": 0.5}, "buckets": {"-90": 1, "0": 2, "10": 3},
            "statuses": {"out-of-memory": 4}, "repocoder.es": {"a": 1.0}, "em_interval": [0.0, 1.0], "interval": [3, 4],
        });
        let text = frame([record]).csv();
        let names = "a_b_c,gt_recall_at_10_mean,buckets_minus_90,buckets_0,buckets_10,statuses_out_of_memory,repocoder_es_a,em_low,em_high,interval";
        assert_eq!(text, format!("{names}\n1,0.5,1,2,3,4,1.0,0.0,1.0,\"[3,4]\"\n"));
    }

    #[test]
    fn only_what_would_be_misread_is_quoted() {
        let texts =
            ["plain", "a b", "a,b", "say \"x\"", "two\nlines", "cr\r", "", " edge ", "ä|;'"];
        let text = frame(texts.map(|text| json!({"a": text, "b": null, "c": 1}))).csv();
        let wanted = [
            "plain", "a b", "\"a,b\"", "\"say \"\"x\"\"\"", "\"two\nlines\"", "\"cr\r\"", "\"\"",
            " edge ", "ä|;'",
        ];
        // A field that is always null has no column.
        let wanted: String = wanted.map(|cell| format!("{cell},1\n")).concat();
        assert_eq!(text, format!("a,c\n{wanted}"));
    }

    /// Compares numbers by their bits, including 0.1 + 0.2 and the smallest numbers.
    #[test]
    fn numbers_are_read_back_as_they_were() {
        let numbers = [0.1 + 0.2, f64::MIN_POSITIVE, 5e-324, 1.0 / 3.0, -0.0, 1e300, 17.0];
        let text = frame(numbers.map(|number| json!({"a": number}))).csv();
        let read: Vec<u64> =
            text.lines().skip(1).map(|cell| cell.parse::<f64>().unwrap().to_bits()).collect();
        assert_eq!(read, numbers.map(f64::to_bits));
    }

    /// Later rows add columns that earlier rows lack. A whole number in a column of numbers becomes a number, and a text turns
    /// the whole column into text.
    #[test]
    fn columns_widen_and_missing_values_are_null() {
        let mut frame = Frame::new([("never", ColumnType::Flag), ("n", ColumnType::Integer)]);
        frame.push(json!({"n": 1, "late": null}));
        frame.push(json!({"n": 2.5, "late": "x"}));
        frame.push(json!({"late": [1], "flag": true}));
        assert_eq!(frame.csv(), "never,n,late,flag\n,1,,\n,2.5,x,\n,,[1],true\n");
        let read = SerializedFileReader::new(file(&frame)).unwrap();
        let rows: Vec<Vec<Field>> = read
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().into_columns().into_iter().map(|(_, field)| field).collect())
            .collect();
        let text = |text: &str| Field::Str(text.into());
        assert_eq!(
            rows,
            [
                vec![Field::Null, Field::Double(1.0), Field::Null, Field::Null],
                vec![Field::Null, Field::Double(2.5), text("x"), Field::Null],
                vec![Field::Null, Field::Null, text("[1]"), Field::Bool(true)],
            ]
        );
    }

    #[test]
    fn a_frame_without_rows_has_its_columns() {
        let frame = Frame::new([("a", ColumnType::Text), ("b", ColumnType::Number)]);
        assert_eq!(frame.csv(), "a,b\n");
        let read = SerializedFileReader::new(file(&frame)).unwrap();
        let schema = read.metadata().file_metadata().schema_descr();
        let names: Vec<&str> = schema.columns().iter().map(|column| column.name()).collect();
        assert_eq!((names, read.metadata().num_row_groups()), (vec!["a", "b"], 0));
    }

    fn file(frame: &Frame) -> std::fs::File {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &frame.parquet().unwrap()).unwrap();
        file
    }
}
