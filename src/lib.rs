//! repoformer: repository-level code completion experiments, whole and exact.

#![forbid(unsafe_code)]

pub mod artifact;
pub mod complete;
pub mod corpus;
pub mod error;
pub mod jsonl;
pub mod lines;
pub mod metrics;
pub mod pairs;
pub mod pipeline;
pub mod predictions;
pub mod prompt;
pub mod query;
pub mod records;
pub mod retrieve;
pub mod sample;
pub mod score;
pub mod task;
pub mod tokenize;
pub mod vector;
pub mod window;
