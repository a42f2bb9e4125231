//! Completion: predictions from prompts, by the embedded model, a server, or a batch endpoint.

pub mod batch;
pub mod in_context;
pub mod server;
