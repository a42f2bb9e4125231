//! Parquet columns, compressed with Snappy, which every reader supports.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::TypePtr;

/// Starts a file of this schema.
pub(crate) fn writer<W: Write + Send>(
    sink: W,
    schema: TypePtr,
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    SerializedFileWriter::new(sink, schema, Arc::new(properties))
}

/// Writes the next column of a row group: the values that are there, for an optional one the level of each row, and for lists
/// where each of them begins.
pub(crate) fn column<D: DataType>(
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
