//! Retrieval: queries, vectors, rankers and the exact index; which fragments a query may see, and what is shown of them.
//!
//! 1. [`mode`], [`form`] and [`query`]: what is searched for on behalf of a task.
//! 2. [`vector`] and [`rank`]: sets and counts of terms; [`dense`]: vectors of an embedding model.
//!    [`definitions`]: fragments that define what the names near a hole mean; [`graph`]: files that a file builds on.
//! 3. [`visibility`]: which fragments a query may see, never the hole that it is to fill.
//! 4. [`search`]: the k best fragments of every query, by the exact bit-sliced [`index`] or a lexical or dense ranker.
//! 5. [`align`] and [`fragment_text`]: the lines that are shown for a fragment that was found.

pub mod align;
pub mod definitions;
pub mod dense;
pub mod form;
pub mod fragment_text;
pub mod graph;
pub mod index;
pub mod live;
pub mod mode;
pub mod query;
pub mod rank;
pub mod records;
pub mod search;
pub mod vector;
pub mod visibility;

#[cfg(test)]
mod tests;

pub use align::{Align, FileLines};
pub use form::QueryForm;
pub use fragment_text::{FragmentText, FragmentTextSettings};
pub use index::{Level, SearchScratch, TokenSetIndex};
pub use mode::{Mode, REPOCODER_MODES};
pub use query::{Queries, Query, QuerySettings};
pub use search::{
    FragmentVectors, Hit, QueryVectors, RankedFragments, RepositoryIndex, Retrieval, Score,
    SearchSettings,
};
pub use visibility::{HoleGuard, HoleView, RankLimits, Ties, View, Visibility, distance};
