//! Repositories: which files they have, and the fragments that each file is cut into.

pub mod chunk;
pub mod corpus;
pub mod record;
pub mod window;
