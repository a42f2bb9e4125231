//! Parquet files: data frames, and columns of other tables, compressed with Snappy, which every reader supports; and their
//! rows as JSON.

use std::fmt::Display;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::Field;
use parquet::schema::types::{Type, TypePtr};
use serde_json::{Map, Value};

use super::frame::{Column, ColumnType, Frame};
use crate::error::{Error, Result};
use crate::files::File;

/// Starts a file of this schema.
pub fn writer<W: Write + Send>(
    sink: W,
    schema: TypePtr,
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    SerializedFileWriter::new(sink, schema, Arc::new(properties))
}

/// Writes the next column of a row group: the values that are there, for an optional one the level of each row, and for lists
/// where each of them begins.
pub fn column<D: DataType>(
    writer: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[D::T],
    present: Option<&[i16]>,
    repetition: Option<&[i16]>,
) -> Result<(), ParquetError> {
    if let Some(mut column) = writer.next_column()? {
        column.typed::<D>().write_batch(values, present, repetition)?;
        column.close()?;
    }
    Ok(())
}

impl Frame {
    /// The frame as a Parquet file, compressed with Snappy; every column is optional.
    ///
    /// # Errors
    /// The columns cannot be written.
    pub fn parquet(&self) -> io::Result<Vec<u8>> {
        self.written().map_err(io::Error::other)
    }

    fn written(&self) -> Result<Vec<u8>, ParquetError> {
        let fields = self.columns.iter().map(Column::schema).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder("table").with_fields(fields).build()?;
        let mut writer = writer(Vec::new(), Arc::new(schema))?;
        if self.rows > 0 {
            let mut group = writer.next_row_group()?;
            for column in &self.columns {
                column.write(&mut group)?;
            }
            group.close()?;
        }
        writer.into_inner()
    }
}

impl Column {
    fn schema(&self) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self.of {
            ColumnType::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnType::Integer => (PhysicalType::INT64, None),
            ColumnType::Number => (PhysicalType::DOUBLE, None),
            ColumnType::Flag => (PhysicalType::BOOLEAN, None),
        };
        let builder = Type::primitive_type_builder(&self.name, physical);
        let builder = builder.with_repetition(Repetition::OPTIONAL).with_logical_type(logical);
        Ok(Arc::new(builder.build()?))
    }

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, Vec<u8>>) -> Result<(), ParquetError> {
        let known = || self.values.iter().filter(|value| !value.is_null());
        let present: Vec<i16> =
            self.values.iter().map(|value| i16::from(!value.is_null())).collect();
        let present = Some(&present[..]);
        match self.of {
            ColumnType::Text => {
                let texts: Vec<ByteArray> = known().map(|value| text(value).into()).collect();
                column::<ByteArrayType>(group, &texts, present, None)
            }
            ColumnType::Integer => {
                let numbers: Vec<i64> = known().filter_map(Value::as_i64).collect();
                column::<Int64Type>(group, &numbers, present, None)
            }
            ColumnType::Number => {
                let numbers: Vec<f64> = known().filter_map(Value::as_f64).collect();
                column::<DoubleType>(group, &numbers, present, None)
            }
            ColumnType::Flag => {
                let flags: Vec<bool> = known().filter_map(Value::as_bool).collect();
                column::<BoolType>(group, &flags, present, None)
            }
        }
    }
}

/// A value as text: a list as JSON.
fn text(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    }
}

/// A Parquet file that is read row by row.
pub struct ParquetRows {
    path: PathBuf,
    file: SerializedFileReader<std::fs::File>,
}

impl ParquetRows {
    /// Opens a file and reads its schema.
    ///
    /// # Errors
    /// The file cannot be opened, or it is not a whole Parquet file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::reading(path, "open this file", e))?;
        let file = SerializedFileReader::new(file.into_std()).map_err(|e| unreadable(path, e))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Number of rows.
    pub fn count(&self) -> u64 {
        self.file.metadata().file_metadata().num_rows().try_into().unwrap_or(0)
    }

    /// Names and types of the columns.
    pub fn columns(&self) -> Vec<(String, String)> {
        let schema = self.file.metadata().file_metadata().schema();
        let column = |field: &TypePtr| {
            let kind = match field.is_primitive() {
                true if field.get_physical_type() == PhysicalType::BYTE_ARRAY => "text".to_owned(),
                true => field.get_physical_type().to_string().to_lowercase(),
                false => "list".to_owned(),
            };
            (field.name().to_owned(), kind)
        };
        schema.get_fields().iter().map(column).collect()
    }

    /// Calls `row` with each row.
    ///
    /// # Errors
    /// A row cannot be read, or its values are of a type that this program writes to no table.
    pub fn for_each(&self, mut row: impl FnMut(Map<String, Value>)) -> Result<()> {
        let damaged = |_| unreadable(&self.path, "it is damaged");
        // The reader panics on some damaged files.
        let rows = catch_unwind(AssertUnwindSafe(|| self.file.get_row_iter(None)));
        let mut rows = rows.map_err(damaged)?.map_err(|e| unreadable(&self.path, e))?;
        while let Some(read) = catch_unwind(AssertUnwindSafe(|| rows.next())).map_err(damaged)? {
            let read = read.map_err(|e| unreadable(&self.path, e))?;
            let columns = read.get_column_iter().map(|(name, field)| {
                let value = json(field).ok_or_else(|| {
                    unreadable(&self.path, format!("unknown type of column '{name}'"))
                })?;
                Ok((name.clone(), value))
            });
            row(columns.collect::<Result<_>>()?);
        }
        Ok(())
    }
}

fn unreadable(path: &Path, error: impl Display) -> Error {
    Error::Form {
        path: path.to_owned(),
        reason: format!("cannot read this Parquet table: {error}"),
        hint: "make it again, or read it with pandas or polars".into(),
    }
}

/// A field as JSON; `None` for types that no table of this program has.
fn json(field: &Field) -> Option<Value> {
    Some(match field {
        Field::Null => Value::Null,
        Field::Bool(flag) => (*flag).into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        // The shortest text of the number, not that of the double that equals it.
        Field::Float(number) => number.to_string().parse::<f64>().ok()?.into(),
        Field::Double(number) => (*number).into(),
        Field::Str(text) => text.as_str().into(),
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into(),
        Field::ListInternal(list) => list.elements().iter().map(json).collect::<Option<_>>()?,
        _ => return None,
    })
}
