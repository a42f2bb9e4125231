//! Errors of this crate.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use repoformer_core::policy::Policy;
use repoformer_store::error::Error;
use thiserror::Error;

/// Error of a server.
#[derive(Debug, Error)]
pub enum ServeError {
    /// An error of a crate that this one uses.
    #[error(transparent)]
    Store(#[from] Error),
    /// Other machines could reach the server without a token.
    #[error("{listen}: other machines can reach this address, but no token is set")]
    OpenToAll {
        /// Address to listen on.
        listen: SocketAddr,
    },
    /// The policy asks the model, but the prompt style has no place for its answer.
    #[error("policy {policy}: prompt style {style} has no place for the model's decision")]
    NoPlaceToDecide {
        /// The policy.
        policy: Policy,
        /// Name of the style.
        style: String,
    },
    /// A log has labels for a different kind of fragments, so no policy could be trained on it.
    #[error("{}:{line}: this label is of {found}, but this server uses {here}", path.display())]
    OtherFragments {
        /// The log.
        path: PathBuf,
        /// Line number of the label.
        line: usize,
        /// Kind of fragments in the log.
        found: String,
        /// Kind of fragments in this server.
        here: String,
    },
    /// A message of an editor cannot be read.
    #[error("a message without its length")]
    Unbounded,
    /// A call of the operating system failed.
    #[error("{failure}")]
    System {
        /// Description of the failure.
        failure: String,
        /// Cause.
        source: io::Error,
    },
}

/// Result of a server's work.
pub(crate) type Result<T, E = ServeError> = std::result::Result<T, E>;

impl ServeError {
    /// Returns the error and its causes on one line.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        text
    }

    /// Returns a function that wraps the error of a failed call of the operating system.
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
