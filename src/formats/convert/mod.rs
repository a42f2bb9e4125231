//! Conversion of records from one format to another.
//!
//! Records are converted one by one: one that cannot be converted is skipped and reported, without affecting the others.

mod batch;
mod fields;
mod predictions;
mod repositories;
mod stream;
mod tasks;
#[cfg(test)]
mod tests;

pub use batch::requests;
pub use predictions::predictions;
pub use repositories::{folders_to_packages, folders_to_raw, records, to_folders};
pub use stream::{Conversion, Emit, TargetFormat, labels};
pub(crate) use tasks::TaskFiles;
pub use tasks::tasks;
