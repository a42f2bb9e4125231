//! Completion: prompt → prediction.

pub mod in_context;
