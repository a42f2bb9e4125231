//! What the stages leave on disk: typed artifacts with a readable header, written whole or not at all.

mod header;
mod layout;
pub(crate) mod packed;
mod store;

pub use header::{Header, Identity, JsonLines};
pub use layout::Layout;
pub use store::{
    State, digest, header_path, read, read_header, read_jsonl_header, state, state_jsonl, write,
    write_file, write_jsonl,
};

use serde::{Serialize, de::DeserializeOwned};

/// What can be the content of an artifact.
pub trait Payload: Serialize + DeserializeOwned {
    /// What it is, as its header and messages name it.
    const KIND: &'static str;

    /// How many records it holds.
    fn records(&self) -> usize;

    /// Whether its parts fit together; asked after decoding, so that no reader can be led out of bounds.
    ///
    /// # Errors
    /// What does not fit.
    fn check(&self) -> Result<(), String>;
}
