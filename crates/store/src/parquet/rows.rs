//! Rows of a Parquet file as JSON, read one after another. For each column, one page and the values of one row are in memory.

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::column::page::PageReader;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::{ColumnDescPtr, Type, TypePtr};
use serde_json::{Map, Value};

use super::pages::MOST_ELEMENTS;
use super::{BoundedPages, DecodedBytes, MOST_TIMES, most_bytes};
use crate::error::{Error, Result};
use crate::files::File;

/// Number of bytes that a row or a value counts for, in addition to its texts.
const OF_VALUE: u64 = 8;

type Outcome<T> = Result<T, RowError>;

/// Reason why a table cannot be read.
enum RowError {
    Package(ParquetError),
    Own(String),
}

impl From<ParquetError> for RowError {
    fn from(error: ParquetError) -> Self {
        Self::Package(error)
    }
}

impl Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Package(error) => error.fmt(f),
            Self::Own(reason) => f.write_str(reason),
        }
    }
}

/// Subtracts the bytes of a row or a value from the bytes that the values of a file may still have.
fn charge(left: &mut u64, text: u64) -> Outcome<()> {
    *left = left.checked_sub(OF_VALUE + text).ok_or_else(|| {
        RowError::Own(format!(
            "its rows are more than {MOST_TIMES} times as large as the file, unlike any normal table"
        ))
    })?;
    Ok(())
}

/// Opens a file and reads its schema.
///
/// # Errors
/// The file is no complete Parquet file, or its schema takes too much memory.
pub fn open(file: File) -> Result<SerializedFileReader<std::fs::File>, ParquetError> {
    let mut file = file.into_std();
    super::footer::check(&mut file).map_err(ParquetError::General)?;
    let bytes = file.metadata().map_or(u64::MAX, |metadata| metadata.len());
    // The package panics on some damaged files.
    let opened = catch_unwind(AssertUnwindSafe(|| SerializedFileReader::new(file)));
    let opened = opened.unwrap_or_else(|_| Err(ParquetError::General("it is damaged".into())))?;
    // Columns that share bytes would be read again and again, and the package reads some pages without counting them.
    let groups = opened.metadata().row_groups().iter();
    let columns = groups.flat_map(|group| group.columns());
    let sizes = columns.map(|column| column.compressed_size().max(0) as u64);
    if sizes.fold(0, u64::saturating_add) > bytes {
        let reason = "its columns have more bytes than the file, so that some of them share bytes";
        return Err(ParquetError::General(reason.into()));
    }
    Ok(opened)
}

/// Parquet file that is read row by row.
pub struct ParquetRows {
    path: PathBuf,
    file: SerializedFileReader<std::fs::File>,
    bytes: u64,
}

impl ParquetRows {
    /// Opens a file and reads its schema.
    ///
    /// # Errors
    /// The file cannot be opened, or is not a complete Parquet file.
    pub fn open(path: &Path) -> Result<Self> {
        let cannot_open = |e| Error::reading(path, "open this file", e);
        let file = File::open(path).map_err(cannot_open)?;
        let bytes = file.metadata().map_err(cannot_open)?.len();
        let file = self::open(file).map_err(|e| unreadable(path, e))?;
        Ok(Self { path: path.to_owned(), file, bytes })
    }

    /// Returns the number of rows.
    pub fn count(&self) -> u64 {
        self.file.metadata().file_metadata().num_rows().try_into().unwrap_or(0)
    }

    /// Returns the names and types of the columns.
    pub fn columns(&self) -> Vec<(String, String)> {
        let column = |field: &TypePtr| {
            let kind = match field.is_primitive() {
                true if field.get_physical_type() == PhysicalType::BYTE_ARRAY => "text".to_owned(),
                true => field.get_physical_type().to_string().to_lowercase(),
                false => "list".to_owned(),
            };
            (field.name().to_owned(), kind)
        };
        self.fields().iter().map(column).collect()
    }

    fn fields(&self) -> &[TypePtr] {
        self.file.metadata().file_metadata().schema().get_fields()
    }

    /// Calls `row` with each row.
    ///
    /// # Errors
    /// A row cannot be read, or a value has a type that this program never writes to tables; the rows, with the names of their
    /// columns, have far more bytes than the file; a list has more than 4,194,304 elements; or an error of `row`.
    pub fn for_each<E: From<Error>>(
        &self,
        mut row: impl FnMut(Map<String, Value>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut left, decoded) = (most_bytes(self.bytes), DecodedBytes::of_file(self.bytes));
        let mut known = BTreeSet::new();
        if let Some(twice) = self.fields().iter().find(|field| !known.insert(field.name())) {
            let reason = format!("two columns have the name '{}'", twice.name());
            return Err(unreadable(&self.path, reason).into());
        }
        let names: u64 = self.fields().iter().map(|field| field.name().len() as u64).sum();
        for group in 0..self.file.num_row_groups() {
            let opened = catch_unwind(AssertUnwindSafe(|| self.open_columns(group, &decoded)));
            let opened = opened.unwrap_or_else(|_| Err(damage_error()));
            let mut columns = opened.map_err(|e| unreadable(&self.path, e))?;
            let rows = self.file.metadata().row_group(group).num_rows();
            for _ in 0..rows {
                let read = catch_unwind(AssertUnwindSafe(|| {
                    charge(&mut left, names)?;
                    let mut count = 0;
                    let values = columns.iter_mut().map(|column| {
                        let value = column.next(&mut left)?;
                        count += value.as_array().map_or(0, |values| values.len() as u64);
                        if count > MOST_ELEMENTS {
                            let reason =
                                format!("a row has lists of more than {MOST_ELEMENTS} elements");
                            return Err(RowError::Own(reason));
                        }
                        Ok(value)
                    });
                    values.collect::<Outcome<Vec<_>>>()
                }));
                let read = read.unwrap_or_else(|_| Err(damage_error()));
                let read = read.map_err(|e| unreadable(&self.path, e))?;
                let names = self.fields().iter().map(|field| field.name().to_owned());
                row(names.zip(read).collect())?;
            }
        }
        Ok(())
    }

    /// Opens the columns of a row group.
    fn open_columns(
        &self,
        group: usize,
        decoded: &DecodedBytes,
    ) -> Outcome<Vec<Box<dyn JsonColumn>>> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        let group = self.file.get_row_group(group)?;
        let (mut columns, mut first) = (Vec::new(), 0);
        for (number, field) in self.fields().iter().enumerate() {
            let leaves = (first..schema.num_columns())
                .take_while(|leaf| schema.get_column_root_idx(*leaf) == number);
            let last = first + leaves.count();
            let leaf = first;
            if last != leaf + 1 || !is_simple(field, &schema.column(leaf)) {
                return Err(unknown(field.name()));
            }
            let (leaf, pages) = (schema.column(leaf), group.get_column_page_reader(leaf)?);
            let pages = BoundedPages::new(pages, leaf.max_rep_level(), decoded);
            columns.push(json_column(leaf, Box::new(pages))?);
            first = last;
        }
        Ok(columns)
    }
}

const DAMAGED: &str = "it is damaged";

fn damage_error() -> RowError {
    RowError::Own(DAMAGED.into())
}

fn unknown(column: &str) -> RowError {
    RowError::Own(format!("unknown type of column '{column}'"))
}

fn unreadable(path: &Path, error: impl Display) -> Error {
    Error::Form {
        path: path.to_owned(),
        reason: format!("cannot read this Parquet table: {error}"),
        hint: "make it again, or read it with pandas or polars".into(),
    }
}

/// Returns true if a field contains values, or lists of values.
fn is_simple(field: &Type, leaf: &ColumnDescPtr) -> bool {
    let info = field.get_basic_info();
    let is_list = info.converted_type() == ConvertedType::LIST
        || info.logical_type_ref() == Some(&LogicalType::List);
    field.is_primitive() && leaf.max_rep_level() <= 1
        || is_list && leaf.max_rep_level() == 1 && leaf.path().parts().len() <= 3
}

/// Column whose values are read row by row.
trait JsonColumn {
    /// Returns the value of the next row, and subtracts its bytes from `left`.
    fn next(&mut self, left: &mut u64) -> Outcome<Value>;
}

fn json_column(leaf: ColumnDescPtr, pages: Box<dyn PageReader>) -> Outcome<Box<dyn JsonColumn>> {
    Ok(match leaf.physical_type() {
        PhysicalType::BOOLEAN => Box::new(Cells::<BoolType>::new(leaf, pages)),
        PhysicalType::INT32 => Box::new(Cells::<Int32Type>::new(leaf, pages)),
        PhysicalType::INT64 => Box::new(Cells::<Int64Type>::new(leaf, pages)),
        PhysicalType::FLOAT => Box::new(Cells::<FloatType>::new(leaf, pages)),
        PhysicalType::DOUBLE => Box::new(Cells::<DoubleType>::new(leaf, pages)),
        PhysicalType::BYTE_ARRAY => Box::new(Cells::<ByteArrayType>::new(leaf, pages)),
        PhysicalType::FIXED_LEN_BYTE_ARRAY => {
            Box::new(Cells::<FixedLenByteArrayType>::new(leaf, pages))
        }
        PhysicalType::INT96 => return Err(unknown(&leaf.path().parts()[0])),
    })
}

/// Value of a column.
trait Cell: Clone {
    /// Returns the number of bytes of its text.
    fn length(&self) -> usize {
        0
    }

    /// Returns the value in the form that the column's type specifies.
    fn field(self, leaf: &ColumnDescPtr) -> Outcome<Field>;
}

impl Cell for bool {
    fn field(self, leaf: &ColumnDescPtr) -> Outcome<Field> {
        Ok(Field::convert_bool(leaf, self))
    }
}

impl Cell for i32 {
    fn field(self, leaf: &ColumnDescPtr) -> Outcome<Field> {
        Ok(Field::convert_int32(leaf, self))
    }
}

impl Cell for i64 {
    fn field(self, leaf: &ColumnDescPtr) -> Outcome<Field> {
        Ok(Field::convert_int64(leaf, self))
    }
}

impl Cell for f32 {
    fn field(self, leaf: &ColumnDescPtr) -> Outcome<Field> {
        Ok(Field::convert_float(leaf, self))
    }
}

impl Cell for f64 {
    fn field(self, leaf: &ColumnDescPtr) -> Outcome<Field> {
        Ok(Field::convert_double(leaf, self))
    }
}

impl Cell for ByteArray {
    fn length(&self) -> usize {
        self.len()
    }

    fn field(self, leaf: &ColumnDescPtr) -> Outcome<Field> {
        Ok(Field::convert_byte_array(leaf, self)?)
    }
}

impl Cell for FixedLenByteArray {
    fn length(&self) -> usize {
        self.len()
    }

    fn field(self, leaf: &ColumnDescPtr) -> Outcome<Field> {
        Ok(Field::convert_byte_array(leaf, self.into())?)
    }
}

/// Column of one type, and the values of the row that was read last.
struct Cells<T: DataType> {
    leaf: ColumnDescPtr,
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
    definition: Vec<i16>,
    repetition: Vec<i16>,
    /// Smallest definition level that represents an element of a list; 0 in a column without lists.
    element: i16,
}

impl<T: DataType> Cells<T> {
    fn new(leaf: ColumnDescPtr, pages: Box<dyn PageReader>) -> Self {
        let reader = ColumnReaderImpl::new(Arc::clone(&leaf), pages);
        let (values, definition, repetition) = (Vec::new(), Vec::new(), Vec::new());
        // Inside a list, an element may be missing.
        let is_optional = leaf.self_type().get_basic_info().repetition() == Repetition::OPTIONAL;
        let element = match leaf.max_rep_level() {
            0 => 0,
            _ => leaf.max_def_level() - i16::from(is_optional),
        };
        Self { leaf, reader, values, definition, repetition, element }
    }
}

impl<T: DataType> JsonColumn for Cells<T>
where
    T::T: Cell,
{
    fn next(&mut self, left: &mut u64) -> Outcome<Value> {
        self.values.clear();
        self.definition.clear();
        self.repetition.clear();
        let levels = (Some(&mut self.definition), Some(&mut self.repetition));
        let (rows, _, _) = self.reader.read_records(1, levels.0, levels.1, &mut self.values)?;
        if rows != 1 {
            return Err(RowError::Own("a column ends early".into()));
        }
        let present = self.leaf.max_def_level();
        let mut values = self.values.drain(..);
        let mut value = |level: i16| {
            let cell = if level == present { values.next() } else { None };
            charge(left, cell.as_ref().map_or(0, |cell| cell.length() as u64))?;
            match cell {
                Some(cell) => {
                    let field = cell.field(&self.leaf)?;
                    json(&field).ok_or_else(|| unknown(&self.leaf.path().parts()[0]))
                }
                None => Ok(Value::Null),
            }
        };
        match self.definition.first().copied() {
            _ if self.element == 0 => value(self.definition.first().copied().unwrap_or(0)),
            // A list that is missing or empty.
            Some(level) if level + 1 < self.element => value(level),
            Some(level) if level < self.element => {
                charge(left, 0)?;
                Ok(Value::Array(Vec::new()))
            }
            _ => self.definition.iter().map(|level| value(*level)).collect(),
        }
    }
}

/// Returns a value as JSON; `None` for types that no table of this program has.
fn json(field: &Field) -> Option<Value> {
    Some(match field {
        Field::Null => Value::Null,
        Field::Bool(flag) => (*flag).into(),
        Field::Byte(number) => (*number).into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        // Use the shortest text of the single-precision number, not the digits of its conversion to double precision.
        Field::Float(number) => number.to_string().parse::<f64>().ok()?.into(),
        Field::Double(number) => (*number).into(),
        Field::Str(text) => text.as_str().into(),
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use parquet::schema::parser::parse_message_type;
    use serde_json::json;

    use super::*;
    use crate::parquet::{column, writer};

    fn rows(path: &Path) -> Result<Vec<Value>> {
        let mut rows = Vec::new();
        ParquetRows::open(path)?.for_each(|row| {
            rows.push(Value::Object(row));
            Ok::<_, Error>(())
        })?;
        Ok(rows)
    }

    /// Returns the number of rows that are read before an error, and the error.
    fn count_until_error(path: &Path) -> (u64, String) {
        let mut count = 0;
        let read = ParquetRows::open(path).unwrap().for_each(|_| {
            count += 1;
            Ok::<_, Error>(())
        });
        (count, read.unwrap_err().to_string())
    }

    #[test]
    fn values_and_lists_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.parquet");
        let schema = "message table { optional binary t (UTF8); required int32 n (INTEGER(8,true)); \
             optional group l (LIST) { repeated group list { optional double element; } } }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let mut file = writer(std::fs::File::create(&path).unwrap(), schema).unwrap();
        for _ in 0..2 {
            let mut group = file.next_row_group().unwrap();
            let texts = [ByteArray::from("a"), ByteArray::from("b")];
            column::<ByteArrayType>(&mut group, &texts, Some(&[1, 0, 1, 0]), None).unwrap();
            column::<Int32Type>(&mut group, &[1, 2, 3, 4], None, None).unwrap();
            let (present, repetition) = ([3, 2, 1, 0, 2], [0, 1, 0, 0, 0]);
            column::<DoubleType>(&mut group, &[0.5], Some(&present), Some(&repetition)).unwrap();
            group.close().unwrap();
        }
        file.close().unwrap();
        let group = [
            json!({"t": "a", "n": 1, "l": [0.5, null]}),
            json!({"t": null, "n": 2, "l": []}),
            json!({"t": "b", "n": 3, "l": null}),
            json!({"t": null, "n": 4, "l": [null]}),
        ];
        assert_eq!(rows(&path).unwrap(), [group.clone(), group].concat());
    }

    /// 100 MB of a single text, which the file stores once.
    #[test]
    fn values_out_of_proportion_to_the_file_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.parquet");
        let schema = Arc::new(parse_message_type("message table { required binary t; }").unwrap());
        let mut file = writer(std::fs::File::create(&path).unwrap(), schema).unwrap();
        let mut group = file.next_row_group().unwrap();
        let texts = vec![ByteArray::from("x".repeat(1000).into_bytes()); 100_000];
        column::<ByteArrayType>(&mut group, &texts, None, None).unwrap();
        group.close().unwrap();
        file.close().unwrap();
        let (count, error) = count_until_error(&path);
        assert!(error.contains("x.parquet: cannot read this Parquet table: its rows"), "{error}");
        assert!(
            error.contains("more than 500 times as large as the file")
                // A row, the name of its column, and a value.
                && count == most_bytes(0) / (8 + 1 + 1008),
            "{error}: {count}"
        );
    }

    /// Writes a table with this schema, a column of lists without elements, and counts the rows that are read.
    fn rows_before_the_error(schema: &str, rows: usize) -> u64 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.parquet");
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let mut file = writer(std::fs::File::create(&path).unwrap(), Arc::clone(&schema)).unwrap();
        let mut group = file.next_row_group().unwrap();
        let empty = vec![0; rows];
        column::<DoubleType>(&mut group, &[], Some(&empty), Some(&empty)).unwrap();
        group.close().unwrap();
        file.close().unwrap();
        let (count, error) = count_until_error(&path);
        assert!(error.contains("its rows"), "{error}");
        count
    }

    #[test]
    fn the_lists_of_a_row_are_bounded_together() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.parquet");
        let list = |name| format!("optional group {name} (LIST) {{ repeated double item; }} ");
        let schema = format!("message t {{ {} {} }}", list("a"), list("b"));
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        for (count, is_read) in [(2, true), (2_500_000, false)] {
            let file = std::fs::File::create(&path).unwrap();
            let mut file = writer(file, Arc::clone(&schema)).unwrap();
            let mut group = file.next_row_group().unwrap();
            let (levels, mut repetition) = (vec![2; count], vec![1; count]);
            repetition[0] = 0;
            for _ in 0..2 {
                let values = vec![0.5; count];
                column::<DoubleType>(&mut group, &values, Some(&levels), Some(&repetition))
                    .unwrap();
            }
            group.close().unwrap();
            file.close().unwrap();
            let read = rows(&path).map(|rows| rows[0]["b"].as_array().unwrap().len());
            match read {
                Ok(read) => assert!(is_read && read == count),
                Err(error) => {
                    let reason = "a row has lists of more than 4194304 elements";
                    assert!(!is_read && error.to_string().contains(reason), "{error}");
                }
            }
        }
    }

    /// The package skips pages of indexes without a limit, so row groups that share them would take their product.
    #[test]
    fn row_groups_that_share_bytes_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.parquet");
        let schema = Arc::new(parse_message_type("message t { required int64 n; }").unwrap());
        let mut file = writer(std::fs::File::create(&path).unwrap(), schema).unwrap();
        for _ in 0..2 {
            let mut group = file.next_row_group().unwrap();
            column::<Int64Type>(&mut group, &(0..1000).collect::<Vec<_>>(), None, None).unwrap();
            group.close().unwrap();
        }
        file.close().unwrap();
        assert_eq!(rows(&path).unwrap().len(), 2000);
        // Without the bytes of the first group, each column claims more than its part.
        let bytes = std::fs::read(&path).unwrap();
        let footer = bytes.len() - 8 - {
            let [length @ .., _, _, _, _] = &bytes[bytes.len() - 8..] else { panic!() };
            u32::from_le_bytes(length.try_into().unwrap()) as usize
        };
        std::fs::write(&path, [b"PAR1", &bytes[footer - 100..]].concat()).unwrap();
        let error = rows(&path).unwrap_err().to_string();
        assert!(error.contains("some of them share bytes"), "{error}");
    }

    #[test]
    fn columns_of_one_name_are_refused() {
        let twice = "message t { required double a; required double a; }";
        let twice = Arc::new(parse_message_type(twice).unwrap());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.parquet");
        writer(std::fs::File::create(&path).unwrap(), twice).unwrap().close().unwrap();
        let error = rows(&path).unwrap_err().to_string();
        assert!(error.contains("two columns have the name 'a'"), "{error}");
    }

    #[test]
    fn names_and_empty_lists_count() {
        let name = "n".repeat(10_000);
        let long =
            format!("message t {{ required group {name} (LIST) {{ repeated double item; }} }}");
        assert_eq!(rows_before_the_error(&long, 10_000), most_bytes(0) / 10_016);
        let short = "message t { required group l (LIST) { repeated double item; } }";
        assert_eq!(rows_before_the_error(short, 6_000_000), most_bytes(0) / 17);
    }
}
