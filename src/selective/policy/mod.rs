//! When to retrieve: policies behind one interface, for any generator.
//!
//! - [`features`]: what a decision is made from, counted in microseconds.
//! - [`Examples`]: judged instances as policies see them.
//! - [`model`]: the learned policies: trained, calibrated, kept in a file.
//! - [`Policy`]: all policies, each a score and a threshold.
//! - [`sweep`]: what each makes of judged instances at every threshold.
//! - [`measure`]: how good scores are.

mod examples;
pub mod features;
pub mod measure;
pub mod model;
mod rule;
pub mod sweep;

pub use examples::{Example, Examples, Outcome};
pub use rule::{Policy, Waits};
