//! repoformer: repository-level code completion experiments, whole and exact.

#![forbid(unsafe_code)]

pub mod corpus;
pub mod error;
pub mod jsonl;
pub mod lines;
pub mod task;
