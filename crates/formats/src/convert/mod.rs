//! Conversion of records from one format to another.
//!
//! Records are converted one by one: a record that cannot be converted is skipped and reported, without affecting the others.

mod archive;
mod batch;
mod deveval;
mod gold;
pub mod lm_eval;
mod predictions;
mod repoexec;
mod repositories;
mod stream;
mod tasks;
#[cfg(test)]
mod tests;

pub(super) use archive::{recognise as recognise_archive, to_folders as archive_to_folders};
pub use batch::requests;
pub(super) use deveval::FunctionDescription;
pub use predictions::predictions;
pub use repositories::{from_folders, records, to_folders};
pub use stream::{Conversion, Emit, TargetFormat, labels};
pub use tasks::tasks;
