//! Files of experiments, written completely or not at all, and errors that name the file and the line.
//!
//! - [`artifact`]: typed artifacts with a readable header, checksums, and digests of their inputs.
//! - [`jsonl`], [`schema`]: reading and writing records as JSON lines, and the types of their fields.
//! - [`kept_fields`]: fields that are only written again. [`frame`]: tables of records, as CSV or (feature `parquet`) Parquet.
//!   [`append_log`]: logs that survive a killed process.
//! - [`manifest`], [`seal`]: the inputs of a file, recorded next to the file.
//! - [`files`]: the only module that opens files, so that tests can let any call fail.
//! - [`progress`]: progress of long work, for callers that draw progress bars. [`program`]: starting other programs.
//! - [`error`]: the errors of all crates. [`remark`]: messages that work sends in addition to its result.
//!
//! ```
//! use std::path::Path;
//!
//! use repoformer_store::jsonl::{self, Fields};
//!
//! let path = Path::new("tasks.jsonl");
//! let record = jsonl::parse(path, 1, br#"{"task_id": "demo/0", "row": "3"}"#)?;
//! let fields = Fields::new(path, 1, "", &record);
//! assert_eq!(fields.task_id()?, "demo/0");
//! let error = fields.optional_count("row").unwrap_err();
//! assert!(error.to_string().starts_with("tasks.jsonl:1: field 'row'"));
//! # Ok::<(), repoformer_store::error::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod append_log;
pub mod artifact;
pub mod content;
pub mod error;
mod expansion;
pub mod files;
pub mod frame;
mod gunzip;
pub mod inputs;
pub mod json;
pub mod jsonl;
pub mod kept_fields;
pub mod literal;
pub mod manifest;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod program;
pub mod progress;
pub mod readings;
pub mod remark;
mod removal;
pub mod schema;
pub mod seal;
#[cfg(feature = "zstd")]
mod zstandard;
#[cfg(not(feature = "zstd"))]
#[path = "absent.rs"]
mod zstandard;
