//! Predictions beside their tasks: scores, their statistics, and comparisons of systems.

pub mod comparison;
pub mod conditions;
pub mod executed;
pub(crate) mod lm_eval;
pub mod metrics;
pub(crate) mod origin;
pub mod pairs;
pub mod postprocess;
pub mod predictions;
pub mod quality;
pub mod score;
pub mod statistics;
pub mod uses;
