//! Completion: prompt → prediction.

pub mod batch;
pub mod in_context;
pub mod server;
