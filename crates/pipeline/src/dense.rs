//! Sources of dense vectors.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use repoformer_store::artifact::{Identity, digest};
use repoformer_store::error::{Error, Result};
use repoformer_store::files;

/// Source of dense vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DenseSource {
    /// An OpenAI-compatible server.
    Endpoint {
        /// Address of the server.
        url: String,
        /// Name of the embedding model.
        model: String,
        /// Largest number of texts per request.
        batch: usize,
        /// Number of concurrent requests.
        concurrency: usize,
        /// Time limit of one request.
        timeout: Duration,
    },
    /// A file of vectors that the user computed.
    File {
        /// The vectors: JSONL or NPY.
        vectors: PathBuf,
        /// The texts that rows and ids refer to, as written by [`dense_texts`](super::dense_texts).
        texts: Option<PathBuf>,
        /// Digests of the two files, once the files were read.
        digests: OnceLock<Vec<String>>,
    },
}

impl DenseSource {
    /// Adds the parameters that distinguish these vectors from others.
    pub(super) fn identity(&self, identity: Identity) -> Result<Identity> {
        Ok(match self {
            Self::Endpoint { model, .. } => identity.parameter("embedding-model", model),
            Self::File { vectors, texts, digests } => {
                let files = std::iter::once(vectors).chain(texts);
                let digests = match digests.get() {
                    Some(digests) => digests,
                    None => {
                        let read = files.map(|path| digest_of(path)).collect::<Result<_>>()?;
                        digests.get_or_init(|| read)
                    }
                };
                let names = ["vectors", "vector texts"].into_iter();
                let named = names.zip(digests);
                named.fold(identity, |identity, (name, digest)| identity.input(name, &**digest))
            }
        })
    }
}

fn digest_of(path: &Path) -> Result<String> {
    let bytes = files::read(path).map_err(|e| Error::reading(path, "read this file", e))?;
    Ok(digest(&bytes))
}
