//! Files on disk: typed artifacts, JSONL, append-only logs and manifests, all written whole or not at all.

pub mod append_log;
pub mod artifact;
pub mod jsonl;
pub mod manifest;
