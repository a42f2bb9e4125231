//! Writing of sequences as a Parquet table, with Parquet's three-level lists.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type,
};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use repoformer_store::artifact::OutputFile;
use repoformer_store::error::{Error, Result};
use repoformer_store::parquet::{column, writer};

use super::row::Row;

/// Number of sequences in a row group, which are held in memory: about 40 MB for sequences of 2,048 tokens.
const GROUP: usize = 512;

const SCHEMA: &str = "
message sequences {
  required group input_ids (LIST) { repeated group list { required int32 element; } }
  required group attention_mask (LIST) { repeated group list { required int32 element (INTEGER(8,true)); } }
  required group labels (LIST) { repeated group list { required int32 element; } }
  required group eval_mask (LIST) { repeated group list { required int32 element (INTEGER(8,true)); } }
  required group gen_mask (LIST) { repeated group list { required int32 element (INTEGER(8,true)); } }
  required group loss_weights (LIST) { repeated group list { required float element; } }
  required boolean positive;
  optional double es_infile;
  optional double es_rg1;
  required binary task_id (STRING);
  required binary repository (STRING);
  required binary text (STRING);
}";

/// Table that is being written.
pub(super) struct Table {
    path: PathBuf,
    writer: SerializedFileWriter<Sink>,
    /// Sequences of the row group that is not yet written.
    group: Vec<Row>,
}

/// Writer to a file that is moved into place when it is complete.
struct Sink(OutputFile);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(|error| match error {
            Error::Io { reason, .. } => reason,
            other => io::Error::other(other),
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Table {
    /// Starts a table.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let schema = parse_message_type(SCHEMA).map_err(|e| write_error(path, e))?;
        let sink = Sink(OutputFile::create(path)?);
        let writer = writer(sink, Arc::new(schema)).map_err(|e| write_error(path, e))?;
        Ok(Self { path: path.to_owned(), writer, group: Vec::new() })
    }

    /// Appends a sequence.
    pub(super) fn push(&mut self, row: Row) -> Result<()> {
        self.group.push(row);
        if self.group.len() == GROUP { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.group);
        let written = self.writer.next_row_group().and_then(|mut writer| {
            write_rows(&mut writer, &rows)?;
            writer.close().map(|_| ())
        });
        written.map_err(|e| write_error(&self.path, e))
    }

    /// Moves the file into place.
    pub(super) fn finish(mut self) -> Result<()> {
        if !self.group.is_empty() {
            self.write_group()?;
        }
        let Self { path, writer, .. } = self;
        let sink = writer.into_inner().map_err(|e| write_error(&path, e))?;
        sink.0.finish()
    }
}

type Writer<'w> = SerializedRowGroupWriter<'w, Sink>;

/// Writes the columns of a row group, in the order of the schema.
fn write_rows(writer: &mut Writer<'_>, rows: &[Row]) -> Result<(), ParquetError> {
    let small = |bits: &[u8]| bits.iter().map(|bit| i32::from(*bit)).collect();
    lists::<Int32Type>(writer, rows, |row| row.input_ids.iter().map(|id| *id as i32).collect())?;
    lists::<Int32Type>(writer, rows, |row| small(&row.attention_mask))?;
    lists::<Int32Type>(writer, rows, |row| row.labels.iter().map(|id| *id as i32).collect())?;
    lists::<Int32Type>(writer, rows, |row| small(&row.eval_mask))?;
    lists::<Int32Type>(writer, rows, |row| small(&row.gen_mask))?;
    lists::<FloatType>(writer, rows, |row| row.loss_weights.clone())?;
    let positive: Vec<bool> = rows.iter().map(|row| row.positive).collect();
    column::<BoolType>(writer, &positive, None, None)?;
    for number in [|row: &Row| row.es_infile, |row: &Row| row.es_rg1] {
        let known: Vec<f64> = rows.iter().filter_map(number).collect();
        let levels: Vec<i16> = rows.iter().map(|row| i16::from(number(row).is_some())).collect();
        column::<DoubleType>(writer, &known, Some(&levels), None)?;
    }
    for place in 0..3 {
        let text = |row: &Row| [&row.task_id, &row.repository, &row.text][place].as_str().into();
        let texts: Vec<ByteArray> = rows.iter().map(text).collect();
        column::<ByteArrayType>(writer, &texts, None, None)?;
    }
    Ok(())
}

/// Writes a column of lists, none of them empty: a list starts at each repetition level of 0.
fn lists<D: DataType>(
    writer: &mut Writer<'_>,
    rows: &[Row],
    list: impl Fn(&Row) -> Vec<D::T>,
) -> Result<(), ParquetError> {
    let (mut values, mut repetition) = (Vec::new(), Vec::new());
    for row in rows {
        let begin = values.len();
        values.extend(list(row));
        repetition.extend((begin..values.len()).map(|at| i16::from(at > begin)));
    }
    let present = vec![1; values.len()];
    column::<D>(writer, &values, Some(&present), Some(&repetition))
}

fn write_error(path: &Path, error: ParquetError) -> Error {
    let reason = match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(reason) => *reason,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    };
    Error::writing(path, "write this file", reason)
}
