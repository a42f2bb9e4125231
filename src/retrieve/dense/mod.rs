//! Dense vectors: what an embedding model makes of a text, for retrieval by cosine.
//!
//! Vectors come from a server ([`Embedder`]), each text's once and for all ([`Store`]), or from a file that the user
//! computed ([`import()`]) for the texts that were [written](write_texts) for her. Either gives a [`Matrix`], whose
//! [`cosines`](Matrix::cosines) with a query's vector rank the windows of a repository.
//!
//! A text is known by the BLAKE3 digest of its UTF-8, so that one that stands in two files, or in a window and in a query,
//! has one vector. An empty text is asked of no server, for most refuse it: it has the vector of zeros, whose cosine with
//! everything is 0.

mod embed;
mod import;
mod matrix;
mod npy;
mod store;
mod text;

pub use embed::{Embedder, Report};
pub use import::{Vectors, import};
pub use matrix::Matrix;
pub use store::{Store, store_file_name};
pub use text::{Text, digest, read_texts, write_texts};

/// BLAKE3 of a text.
pub type Digest = blake3::Hash;

/// How a text begins, quoted, for messages.
fn shown(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
