//! Draft.
pub mod guard;
