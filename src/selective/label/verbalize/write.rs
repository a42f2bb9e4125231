//! A split's sequences as JSON lines and as Parquet, with the columns that Hugging Face `datasets` and trainers know.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Sequence;
use super::parquet::Table;
use crate::error::{Error, Result};
use crate::store::artifact::OutputFile;

/// The columns of a sequence. Which are for what, `docs/training.md` says; none is called `label`, which Hugging Face's collators
/// would take for `labels`.
#[derive(Debug, Serialize)]
pub(super) struct Row<'s> {
    pub(super) input_ids: &'s [u32],
    pub(super) attention_mask: Vec<u8>,
    /// The id where a token is supervised, −100 elsewhere.
    pub(super) labels: Vec<i64>,
    pub(super) eval_mask: Vec<u8>,
    pub(super) gen_mask: Vec<u8>,
    pub(super) loss_weights: Vec<f32>,
    pub(super) positive: bool,
    pub(super) es_infile: Option<f64>,
    pub(super) es_rg1: Option<f64>,
    pub(super) task_id: &'s str,
    pub(super) repository: &'s str,
    pub(super) text: &'s str,
}

impl<'s> Row<'s> {
    pub(super) fn of(sequence: &'s Sequence, lambda: f32) -> Self {
        let count = sequence.ids.len();
        let mask = |is: &dyn Fn(usize) -> bool| (0..count).map(|at| u8::from(is(at))).collect();
        let supervised = |at| sequence.is_decision(at) || sequence.is_completion(at);
        let labels = sequence.ids.iter().enumerate();
        Self {
            input_ids: &sequence.ids,
            attention_mask: vec![1; count],
            labels: labels
                .map(|(at, id)| if supervised(at) { i64::from(*id) } else { -100 })
                .collect(),
            eval_mask: mask(&|at| sequence.is_decision(at)),
            gen_mask: mask(&|at| sequence.is_completion(at)),
            loss_weights: sequence.weights(lambda),
            positive: sequence.positive,
            es_infile: sequence.es_infile,
            es_rg1: sequence.es_rg1,
            task_id: &sequence.task_id,
            repository: &sequence.repository,
            text: &sequence.text,
        }
    }

    /// Its line of JSON.
    pub(super) fn to_line(&self, path: &Path) -> Result<String> {
        let line = serde_json::to_string(self);
        line.map(|line| line + "\n")
            .map_err(|e| Error::writing(path, "write this file", io::Error::other(e)))
    }
}

fn places(folder: &Path, name: &str) -> [PathBuf; 2] {
    ["jsonl", "parquet"].map(|ending| folder.join(format!("{name}.{ending}")))
}

/// Removes the files of a split, where there are any.
pub(super) fn remove(folder: &Path, name: &str) -> Result<()> {
    for path in places(folder, name) {
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Error::writing(&path, "remove this file", e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The two files of a split while they are written.
pub(super) struct SplitFiles {
    lines: OutputFile,
    table: Table,
}

impl SplitFiles {
    /// Begins them in a folder.
    pub(super) fn create(folder: &Path, name: &str) -> Result<Self> {
        let [lines, table] = places(folder, name);
        Ok(Self {
            lines: OutputFile::create(&lines)?,
            table: Table::create(&table)?,
        })
    }

    /// Adds a sequence and its line.
    pub(super) fn push(&mut self, sequence: &Sequence, lambda: f32, line: &str) -> Result<()> {
        self.lines.write(line.as_bytes())?;
        self.table.push(&Row::of(sequence, lambda))
    }

    /// Puts both in their places.
    pub(super) fn finish(self) -> Result<()> {
        self.lines.finish()?;
        self.table.finish()
    }
}
