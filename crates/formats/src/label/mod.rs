//! Files of instances, labels and training sequences, complete or of a shard, with their manifests.
//!
//! - [`InstanceRequest`]: sampling of instances from repositories. [`InstanceFile`]: check whether a file still contains them.
//! - [`InstanceJudgement`]: labels of a file of instances.
//! - [`sequences`]: labels as training sequences. [`verbalize_into`]: training sequences in a folder, complete or of a shard.

mod judge;
mod sample;
pub mod sequences;
mod verbalize;

pub use judge::{InstanceJudgement, InstanceLabels};
pub use sample::{InstanceDraw, InstanceFile, InstanceFileState, InstanceRequest};
pub use verbalize::verbalize_into;
