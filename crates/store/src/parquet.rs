//! Parquet files: writes data frames and the columns of other tables, compressed with Snappy, which every reader supports, and
//! reads rows as JSON.

mod footer;
mod pages;
mod rows;

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use serde_json::Value;

pub use pages::{BoundedPages, DecodedBytes};
pub use rows::{ParquetRows, open};

use super::expansion;
use super::frame::{Column, ColumnType, Frame};

/// Greatest ratio of the total size of a file's values to the size of the file.
pub const MOST_TIMES: u64 = expansion::MOST_TIMES;

/// Returns the greatest total size of the values in a file of this size.
pub fn most_bytes(of_file: u64) -> u64 {
    expansion::ALWAYS.max(of_file.saturating_mul(MOST_TIMES))
}

/// Starts a file with this schema.
pub fn writer<W: Write + Send>(
    sink: W,
    schema: TypePtr,
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    SerializedFileWriter::new(sink, schema, Arc::new(properties))
}

/// Writes the next column of a row group: the values that are present; for an optional column, the level of each row; for
/// lists, the repetition levels that mark the start of each list.
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
    /// Returns the frame as a Parquet file, compressed with Snappy; every column is optional.
    ///
    /// # Errors
    /// The columns cannot be written.
    pub fn parquet(&self) -> io::Result<Vec<u8>> {
        self.to_bytes().map_err(io::Error::other)
    }

    fn to_bytes(&self) -> Result<Vec<u8>, ParquetError> {
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

/// Returns a value as text; a list is written as JSON.
fn text(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    }
}
