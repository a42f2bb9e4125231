//! Retrieval: queries, vectors, rankers and the exact index; visibility and presentation of fragments.
//!
//! 1. [`mode`], [`form`] and [`query`]: the text with which a task searches.
//! 2. [`vector`] and [`rank`]: sets and counts of terms; [`dense`]: vectors of an embedding model.
//!    [`definitions`]: fragments that define the names near a hole; [`graph`]: files on which a file builds.
//! 3. [`visibility`]: the fragments that a query may see, which never include the hole to be filled.
//! 4. [`search`]: the k best fragments of every query, by the exact bit-sliced [`index`] or a lexical or dense ranker.
//! 5. [`align`] and [`fragment_text`]: the lines that are shown for a retrieved fragment.

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
