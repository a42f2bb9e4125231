//! Grouping of rows of files into repositories, in shards of raw records.
//!
//! Corpora such as The Stack have one row per file, unordered. Grouping uses the disk, so that memory is bounded:
//!
//! 1. `rows` reads each input as a stream. `spill` writes its files to disk, sorted by shard, repository and path, as many at a
//!    time as fit in memory.
//! 2. Each shard's sorted sections are merged, and `repositories` assembles one repository after another: once to find
//!    `duplicates`, once to `write` the shards.
//!
//! Finished work stays in a hidden folder of the output (`work`) until everything is done; interrupted work resumes from there.

pub mod decontaminate;
mod duplicates;
mod inputs;
pub mod min_hash;
mod repositories;
pub mod rows;
mod run;
mod spill;
mod work;
mod write;

pub use duplicates::Dedup;
pub use run::{GroupSummary, Grouping, group};
pub use write::{Counts, GroupRecord, ShardRecord};
