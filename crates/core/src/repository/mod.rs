//! Repositories: which files they have, and the fragments that each file is cut into.

pub mod corpus;
pub mod definitions;
pub mod fragment;
pub mod history;
pub mod parallel;
pub mod record;
mod shard;
pub mod unparsed;

pub use shard::Shard;
