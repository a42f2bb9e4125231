//! Dense vectors: embeddings of texts, for retrieval by cosine similarity.
//!
//! Vectors come from a server (crate `repoformer-models`), which computes each text's vector once ([`VectorStore`]), or from a
//! file that the user computed ([`import()`]) for the texts that were [written](write_texts) for that purpose. Either source
//! gives a [`Matrix`], whose [`cosines`](Matrix::cosines) with a query's vector rank the fragments of a repository.
//!
//! A text is identified by the BLAKE3 digest of its UTF-8, so a text that occurs in two files, or in a fragment and in a query,
//! has one vector. An empty text is not sent to a server, because most servers reject it; its vector is all zeros, and its
//! cosine with everything is 0.
//!
//! The vector of a query is requested alone and its time is recorded ([`EmbeddingTimes`]), because a user who searches waits
//! for it.

mod import;
mod matrix;
mod npy;
mod store;
mod text;
mod times;

pub use import::{TextVectors, import, numbers};
pub use matrix::Matrix;
pub use store::{StoredVectors, VectorStore, read_stored, store_file_name};
pub use text::{Digest, Text, digest, quote_start, read_texts, write_texts};
pub use times::EmbeddingTimes;
