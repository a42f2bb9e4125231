//! Rows of files, grouped into repositories, in shards of raw records.
//!
//! Corpora such as The Stack have a row per file, unordered. Grouping goes through the disk, within bounded memory:
//!
//! 1. `rows` reads each input as a stream. `spill` writes its files to disk, sorted by shard, repository and path, as many at a
//!    time as memory holds.
//! 2. Each shard's sorted sections are merged, and `repositories` puts one repository after another together: once to find
//!    `duplicates`, once to `write` the shards.
//!
//! Finished work stays in a hidden folder of the output (`work`) until all is done, and interrupted work goes on from there.

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
