//! Where dense vectors come from.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use repoformer_store::artifact::{Identity, digest};
use repoformer_store::error::{Error, Result};
use repoformer_store::files;

/// Where dense vectors come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DenseSource {
    /// An OpenAI-compatible server.
    Endpoint {
        /// Where it answers.
        url: String,
        /// Model that embeds.
        model: String,
        /// Texts a request, at most.
        batch: usize,
        /// Requests at a time.
        concurrency: usize,
        /// Time for one request.
        timeout: Duration,
    },
    /// A file that the user computed.
    File {
        /// The vectors: JSONL or NPY.
        vectors: PathBuf,
        /// The texts that rows and ids belong to, as [`dense_texts`](super::dense_texts) were written.
        texts: Option<PathBuf>,
        /// Digests of the two files, once they were read.
        digests: OnceLock<Vec<String>>,
    },
}

impl DenseSource {
    /// Adds what tells its vectors from others.
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
