//! Results in every format: tables as aligned text or with tabs, records as JSON, columns as CSV and Parquet.

use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;
use repoformer_evaluate::table::Printable;
use repoformer_store::frame::Frame;
use repoformer_text::visible::visible;
use serde_json::Value;

use crate::choices::in_flags;
use crate::output::fail;

/// Format of tables of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScoreFormat {
    /// An aligned table; scores × 100
    Text,
    /// The table with tabs; scores × 100
    Tsv,
    /// Named columns with commas, for pandas, polars and R; scores between 0 and 1
    Csv,
    /// One JSON object or list; scores between 0 and 1
    Json,
    /// One JSON object per line; scores between 0 and 1
    Jsonl,
    /// The columns of csv with their types, as a Parquet file
    Parquet,
}

impl ScoreFormat {
    /// Returns the given format, or else the format of the output's extension, or else text. The choice is checked before any work:
    /// Parquet cannot be printed on a terminal, and the extensions of CSV and Parquet must match the format.
    pub(crate) fn choose(given: Option<Self>, output: &Path) -> Result<Self> {
        let named = Self::from_name(output);
        let format = given.or(named).unwrap_or(Self::Text);
        if output.is_dir() {
            return fail(format!("{}: this is a folder", output.display()), "name a file in it");
        }
        if format == Self::Parquet && output == Path::new("-") && io::stdout().is_terminal() {
            return fail(
                "Parquet cannot be printed on a terminal",
                "write it to a file with -o FILE, or with `--format parquet > FILE`",
            );
        }
        if format == Self::Parquet && is_packed(output) {
            return fail(
                format!("{}: Parquet files are not compressed a second time", output.display()),
                "use the extension .parquet",
            );
        }
        let ending = output.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if given.is_none() && UNKNOWN_ENDINGS.contains(&ending.to_lowercase().as_str()) {
            return fail(
                format!("{}: cannot be written as {ending}", output.display()),
                "name the file .txt, .tsv, .csv, .json, .jsonl or .parquet, or choose one of these with --format",
            );
        }
        match named {
            Some(Self::Csv) if matches!(format, Self::Csv | Self::Tsv) => Ok(format), // tabs separate, too
            Some(named @ (Self::Csv | Self::Parquet)) if format != named => fail(
                format!(
                    "{}: has the extension of {}, but the format is {}",
                    output.display(),
                    named.name(),
                    format.name()
                ),
                format!("choose --format {}, or name another file", named.name()),
            ),
            _ => Ok(format),
        }
    }

    /// Returns the format of a file's extension, before the extension of a compression.
    fn from_name(output: &Path) -> Option<Self> {
        let name = if is_packed(output) { Path::new(output.file_stem()?) } else { output };
        Self::from_str(name.extension()?.to_str()?, true).ok()
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Extensions of other formats, which must not be used for a text table.
const UNKNOWN_ENDINGS: [&str; 12] =
    ["xlsx", "xls", "ods", "html", "htm", "tex", "yaml", "yml", "xml", "feather", "arrow", "npy"];

/// True if the extension marks a compressed file.
fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "gz" || ending == "zst")
}

/// Format of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    Text,
    Json,
}

/// Formats results.
pub(crate) fn format_results(results: &dyn Printable, format: ScoreFormat) -> Result<Vec<u8>> {
    let frame = || {
        let mut frame = Frame::new(results.columns());
        results.rows().for_each(|row| frame.push(row));
        frame
    };
    Ok(match format {
        ScoreFormat::Text => {
            let notes = results.notes();
            let notes: String =
                notes.iter().map(|note| format!("\n{}\n", in_flags(note))).collect();
            visible(&(results.text() + &notes)).into_owned().into_bytes()
        }
        ScoreFormat::Tsv => results.table().tsv().into_bytes(),
        ScoreFormat::Csv => frame().csv().into_bytes(),
        ScoreFormat::Json => json_text(&results.json()).into_bytes(),
        ScoreFormat::Jsonl => json_lines(results.lines()).into_bytes(),
        ScoreFormat::Parquet => frame().parquet().context("cannot write these as Parquet")?,
    })
}

/// Formats a JSON value with indentation.
pub(crate) fn json_text(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Formats records as one line each.
pub(crate) fn json_lines(records: impl IntoIterator<Item = Value>) -> String {
    records.into_iter().map(|record| format!("{record}\n")).collect()
}
