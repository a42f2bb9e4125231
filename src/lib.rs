//! repoformer: repository-level code completion experiments, whole and exact.

#![forbid(unsafe_code)]

pub mod artifact;
pub mod corpus;
pub mod error;
pub mod jsonl;
pub mod lines;
pub mod prompt;
pub mod query;
pub mod records;
pub mod retrieve;
pub mod task;
pub mod tokenize;
pub mod vector;
pub mod window;
