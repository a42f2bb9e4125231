//! Files of instances, labels and training sequences, whole or of a shard, with the manifests beside them.
//!
//! - [`InstanceRequest`]: instances drawn from repositories. [`InstanceFile`]: whether a file still has those.
//! - [`InstanceJudgement`]: labels of a file of instances.
//! - [`sequences`]: labels as training sequences. [`verbalize_into`]: these in a folder, whole or of a shard.

mod judge;
mod sample;
pub mod sequences;
mod verbalize;

pub use judge::{InstanceJudgement, InstanceLabels};
pub use sample::{InstanceDraw, InstanceFile, InstanceFileState, InstanceRequest};
pub use verbalize::verbalize_into;
