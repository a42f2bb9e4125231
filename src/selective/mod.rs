//! When to retrieve: labels from completions with and without retrieved context, and policies that decide.

pub mod cluster;
pub mod label;
pub mod policy;
