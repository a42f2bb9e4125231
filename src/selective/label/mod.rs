//! Labelled data: when does retrieval help? Instances are drawn from repositories, completed without and with what was
//! retrieved for them, and labelled by the difference (Repoformer, section 3.3 and appendix D).
//!
//! - [`Filter`]: which repositories serve.
//! - [`draw`]: holes of varied code, each with its contexts and three fragments of other files.
//! - [`collect`]: the instances of many repositories, in parts that can be drawn apart.
//! - [`judge`]: labels from completions without and with the fragments.
//! - [`verbalize`]: labels as training sequences.
//! - [`Label`]: an instance as it is exchanged, judged or yet to be.

mod code;
mod collect;
mod draw;
mod drawn;
mod filter;
mod judge;
mod nearest;
mod record;
mod signals;
#[cfg(test)]
mod tests;
pub mod verbalize;
mod written;

pub use collect::{Collected, Collecting, Recorded, Repositories, Shard, collect, fingerprint};
pub use draw::{Drawing, Instance, InstanceKind, draw};
pub use filter::{Facts, Filter, Rejection};
pub use judge::{Judged, Judging, Lacking, OfLength, judge};
pub use record::{Label, Signals};
pub use signals::{Probabilities, probabilities, signals};
