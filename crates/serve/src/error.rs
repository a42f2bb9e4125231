//! Failures of a server, except those of the crates below.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use repoformer_core::policy::Policy;
use repoformer_store::error::Error;
use thiserror::Error;

/// Failure of a server.
#[derive(Debug, Error)]
pub enum ServeError {
    /// A failure of a crate below.
    #[error(transparent)]
    Store(#[from] Error),
    /// Other machines could reach the server without a token.
    #[error("{listen}: other machines can reach this address, but no token is set")]
    OpenToAll {
        /// Address to listen on.
        listen: SocketAddr,
    },
    /// The policy asks the model, and the style of prompts has no place for its answer.
    #[error("policy {policy}: prompt style {style} has no place for the model's decision")]
    NoPlaceToDecide {
        /// The policy.
        policy: Policy,
        /// Name of the style.
        style: String,
    },
    /// A log has labels of other fragments, so no policy could be trained on it.
    #[error("{}:{line}: this label is of {found}, but this server uses {here}", path.display())]
    OtherFragments {
        /// The log.
        path: PathBuf,
        /// Number of the label's line.
        line: usize,
        /// Kind of the label's fragments.
        found: String,
        /// Kind of the fragments here.
        here: String,
    },
    /// A message of an editor that cannot be read.
    #[error("a message without its length, or too long")]
    Unbounded,
    /// A call of the operating system that failed.
    #[error("{failure}")]
    System {
        /// What failed.
        failure: String,
        /// Why.
        source: io::Error,
    },
}

/// Result of a server's work.
pub(crate) type Result<T, E = ServeError> = std::result::Result<T, E>;

impl ServeError {
    /// The failure and its causes on one line.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        text
    }

    /// Describes a failed call of the operating system.
    pub(crate) fn system<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        failure: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        let failure = failure.into();
        move |source| {
            let source = source.into();
            let source = match source.downcast::<io::Error>() {
                Ok(source) => *source,
                Err(other) => io::Error::other(other),
            };
            Self::System { failure, source }
        }
    }
}
