//! Writes sequences as a Parquet table, with Parquet's three-level lists, compressed with Snappy, which every reader supports.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::row::Row;
use crate::error::{Error, Result};
use crate::store::artifact::OutputFile;

/// Number of sequences in a row group, which is held in memory: some 40 MB for sequences of 2,048 tokens.
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

/// A table during writing.
pub(super) struct Table {
    path: PathBuf,
    writer: SerializedFileWriter<Sink>,
    group: Group,
}

/// Writes to a file that is moved into place when it is complete.
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
        let schema = parse_message_type(SCHEMA).map_err(|e| failed(path, e))?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let sink = Sink(OutputFile::create(path)?);
        let writer = SerializedFileWriter::new(sink, Arc::new(schema), Arc::new(properties));
        Ok(Self {
            path: path.to_owned(),
            writer: writer.map_err(|e| failed(path, e))?,
            group: Group::default(),
        })
    }

    /// Appends a sequence.
    pub(super) fn push(&mut self, row: &Row<'_>) -> Result<()> {
        self.group.push(row);
        if self.group.positive.len() == GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<()> {
        let group = std::mem::take(&mut self.group);
        let written = self.writer.next_row_group().and_then(|mut writer| {
            group.write(&mut writer)?;
            writer.close().map(|_| ())
        });
        written.map_err(|e| failed(&self.path, e))
    }

    /// Moves the file into place.
    pub(super) fn finish(mut self) -> Result<()> {
        if !self.group.positive.is_empty() {
            self.write_group()?;
        }
        let Self { path, writer, .. } = self;
        let sink = writer.into_inner().map_err(|e| failed(&path, e))?;
        sink.0.finish()
    }
}

/// Columns of a row group.
#[derive(Debug, Default)]
struct Group {
    input_ids: List<i32>,
    attention_mask: List<i32>,
    labels: List<i32>,
    eval_mask: List<i32>,
    gen_mask: List<i32>,
    loss_weights: List<f32>,
    positive: Vec<bool>,
    es_infile: Vec<Option<f64>>,
    es_rg1: Vec<Option<f64>>,
    texts: [Vec<ByteArray>; 3],
}

impl Group {
    fn push(&mut self, row: &Row<'_>) {
        self.input_ids.push(row.input_ids.iter().map(|id| *id as i32));
        self.attention_mask.push(row.attention_mask.iter().map(|bit| i32::from(*bit)));
        self.labels.push(row.labels.iter().map(|id| *id as i32));
        self.eval_mask.push(row.eval_mask.iter().map(|bit| i32::from(*bit)));
        self.gen_mask.push(row.gen_mask.iter().map(|bit| i32::from(*bit)));
        self.loss_weights.push(row.loss_weights.iter().copied());
        self.positive.push(row.positive);
        self.es_infile.push(row.es_infile);
        self.es_rg1.push(row.es_rg1);
        for (column, text) in self.texts.iter_mut().zip([row.task_id, row.repository, row.text]) {
            column.push(text.into());
        }
    }

    /// Writes the columns, in the order of the schema.
    fn write(&self, writer: &mut Writer<'_>) -> Result<(), ParquetError> {
        self.input_ids.write::<Int32Type>(writer)?;
        self.attention_mask.write::<Int32Type>(writer)?;
        self.labels.write::<Int32Type>(writer)?;
        self.eval_mask.write::<Int32Type>(writer)?;
        self.gen_mask.write::<Int32Type>(writer)?;
        self.loss_weights.write::<FloatType>(writer)?;
        column::<BoolType>(writer, &self.positive, None, None)?;
        for numbers in [&self.es_infile, &self.es_rg1] {
            let known: Vec<f64> = numbers.iter().copied().flatten().collect();
            let levels: Vec<i16> = numbers.iter().map(|n| i16::from(n.is_some())).collect();
            column::<DoubleType>(writer, &known, Some(&levels), None)?;
        }
        for texts in &self.texts {
            column::<ByteArrayType>(writer, texts, None, None)?;
        }
        Ok(())
    }
}

type Writer<'w> = SerializedRowGroupWriter<'w, Sink>;

/// Consecutive lists, none of them empty: a list starts where the repetition level is 0.
#[derive(Debug, Default)]
struct List<T> {
    values: Vec<T>,
    repetition: Vec<i16>,
}

impl<T> List<T> {
    fn push(&mut self, values: impl Iterator<Item = T>) {
        let begin = self.values.len();
        self.values.extend(values);
        let levels = (begin..self.values.len()).map(|at| i16::from(at > begin));
        self.repetition.extend(levels);
    }

    fn write<D: DataType<T = T>>(&self, writer: &mut Writer<'_>) -> Result<(), ParquetError> {
        let present = vec![1; self.values.len()];
        column::<D>(writer, &self.values, Some(&present), Some(&self.repetition))
    }
}

fn column<D: DataType>(
    writer: &mut Writer<'_>,
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

fn failed(path: &Path, error: ParquetError) -> Error {
    let reason = match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(reason) => *reason,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    };
    Error::writing(path, "write this file", reason)
}
