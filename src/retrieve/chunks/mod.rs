//! Retrieval among [chunks](crate::repository::chunk): queries, what a task sees, rankings, and what is shown.

mod align;
mod neighbourhood;
mod query;
mod ranking;
mod record;
mod shown;
#[cfg(test)]
mod tests;

pub use align::{Align, Piece};
pub use neighbourhood::{Limits, Neighbourhood, Order, Sight, distance};
pub use query::{Queries, Query, QueryForm, queries};
pub use ranking::{Rank, Ranked, Ranking};
pub use shown::{Shower, named_path};
