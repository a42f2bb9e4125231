//! Data frames read back: Parquet by its crate, CSV by the rules of RFC 4180, which must agree.

use std::collections::BTreeMap;
use std::fs::File;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use super::Place;

/// A row: its values by the names of their columns, `null` where they are missing.
pub(crate) type Row = BTreeMap<String, Value>;

/// Whether two values are the same: numbers that are not whole, to the bit.
pub(crate) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
            a.as_f64().unwrap().to_bits() == b.as_f64().unwrap().to_bits()
        }
        _ => one == other,
    }
}

/// The cells of CSV: `None` for one that is empty without quotes.
pub(crate) fn csv_cells(text: &str) -> Vec<Vec<Option<String>>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), None::<String>);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            ',' => row.push(cell.take()),
            '\n' => {
                row.push(cell.take());
                rows.push(std::mem::take(&mut row));
            }
            '"' => {
                assert!(cell.is_none(), "a quote within a plain cell");
                let mut quoted = String::new();
                loop {
                    match rest.next().expect("quotes that end") {
                        '"' if rest.peek() == Some(&'"') => quoted.extend(rest.next()),
                        '"' => break,
                        c => quoted.push(c),
                    }
                }
                assert!(matches!(rest.peek(), Some(',' | '\n')), "text behind quotes");
                cell = Some(quoted);
            }
            c => cell.get_or_insert_default().push(c),
        }
    }
    assert!(row.is_empty() && cell.is_none(), "a line without its end");
    rows
}

fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(flag) => (*flag).into(),
        Field::Long(number) => (*number).into(),
        Field::Double(number) => (*number).into(),
        Field::Str(text) => text.as_str().into(),
        other => panic!("{other:?}"),
    }
}

/// The names and rows of the table that a command writes, as Parquet and as CSV.
pub(crate) fn frame(place: &Place, command: &[&str]) -> (Vec<String>, Vec<Row>) {
    let written = |format: &str, file: &str| {
        place.run(&[command, &["--format", format, "-o", file]].concat()).done();
    };
    written("parquet", "frame.parquet");
    written("csv", "frame.csv");
    let file = SerializedFileReader::new(File::open(place.path("frame.parquet")).unwrap()).unwrap();
    let schema = file.metadata().file_metadata().schema_descr();
    let names: Vec<String> = schema.columns().iter().map(|one| one.name().to_owned()).collect();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    assert!(names.iter().all(|name| name.chars().all(plain)), "{names:?}");
    let rows: Vec<Row> = file
        .get_row_iter(None)
        .unwrap()
        .map(|row| {
            let row = row.unwrap();
            row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()
        })
        .collect();
    let mut cells = csv_cells(&place.read("frame.csv"));
    let head: Vec<String> = cells.remove(0).into_iter().flatten().collect();
    assert_eq!(head, names);
    assert_eq!(cells.len(), rows.len());
    for (cells, row) in cells.iter().zip(&rows) {
        assert_eq!(cells.len(), names.len());
        for (cell, name) in cells.iter().zip(&names) {
            let read = match (&row[name], cell) {
                (Value::Null, None) => Value::Null,
                (Value::Number(of), Some(text)) if of.is_f64() => {
                    text.parse::<f64>().unwrap().into()
                }
                (Value::Number(_) | Value::Bool(_), Some(text)) => {
                    serde_json::from_str(text).unwrap()
                }
                (_, Some(text)) => text.as_str().into(),
                (_, None) => panic!("{name}: {:?} is empty in CSV", row[name]),
            };
            assert!(is_same(&read, &row[name]), "{name}: {read} is {}", row[name]);
        }
    }
    (names, rows)
}

/// Fields of a record that are neither objects nor null, by the names of their columns.
fn leaves(name: &str, value: &Value, found: &mut Row) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = match key.strip_prefix('-') {
                    Some(number) => format!("minus_{number}"),
                    None => key.replace('@', "_at_").replace(['.', '-'], "_"),
                };
                let name = if name.is_empty() { key } else { format!("{name}_{key}") };
                leaves(&name, value, found);
            }
        }
        Value::Array(ends) if name.ends_with("_interval") => {
            for (end, value) in ["low", "high"].iter().zip(ends) {
                found.insert(name.replace("_interval", &format!("_{end}")), value.clone());
            }
        }
        Value::Array(_) => {
            found.insert(name.to_owned(), value.to_string().into());
        }
        value => {
            found.insert(name.to_owned(), value.clone());
        }
    }
}

/// Checks that rows hold the values of records, to the bit, and nothing else.
pub(crate) fn assert_hold(rows: &[Row], records: &[Value]) {
    assert_eq!(rows.len(), records.len(), "{records:?}");
    for (row, record) in rows.iter().zip(records) {
        let mut wanted = Row::new();
        leaves("", record, &mut wanted);
        for (name, value) in row {
            let wanted = wanted.remove(name).unwrap_or_default();
            assert!(is_same(value, &wanted), "{name}: {value} instead of {wanted}");
        }
        assert!(wanted.is_empty(), "no columns for {wanted:?}");
    }
}
