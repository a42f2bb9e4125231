//! Labelled data on when retrieval helps: instances are drawn from repositories, completed with and without retrieved
//! fragments, and labelled by the difference (Repoformer, section 3.3 and appendix D).
//!
//! - [`Filter`]: selects repositories.
//! - [`draw`]: draws holes of varied code, each with its contexts and three fragments of other files.
//! - [`collect`]: draws instances from many repositories, in shards that can be drawn separately.
//! - [`Label`]: an instance in the exchange format, judged or not.
//! - [`FragmentGains`]: gains of an instance's fragments, alone and together.

mod code;
mod collect;
mod draw;
mod filter;
mod fragments;
mod journal;
mod nearest;
mod record;
mod settings;
#[cfg(test)]
mod tests;
mod written;

pub use collect::{
    CollectSettings, CollectSummary, RAW_FOLDER, Repositories, collect, drawn_language,
    fingerprint, grouped_language,
};
pub use draw::{CHUNK_LINES, Draw, Drawing, Instance, InstanceKind, draw};
pub use filter::{Facts, Filter, Rejection};
pub use fragments::{FragmentGains, FragmentSet, GreedySet, Trial};
pub use journal::{journal_beside, remove_journal};
pub use record::{LIKELIHOOD, Label, PASS, Signals};
pub use settings::{DrawingDifference, FilterLimits, parse_function_lines};
pub use written::RecordFormat;

pub use crate::repository::Shard;
pub use crate::task::sample::CountedLines;
