//! Files on disk: typed artifacts, JSONL, append-only logs, manifests and data frames, all written whole or not at all; and
//! the progress of reading them and of other long work; the start of other programs.

pub mod append_log;
pub mod artifact;
pub mod content;
mod expansion;
pub mod files;
pub mod frame;
mod gunzip;
pub mod json;
pub mod jsonl;
pub mod literal;
pub mod manifest;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod program;
pub mod progress;
pub(crate) mod readings;
pub(crate) mod schema;
pub mod seal;
