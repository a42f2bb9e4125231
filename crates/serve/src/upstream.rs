//! The model's server, asked for one completion, which ends if the editor no longer wants it.

use std::time::Instant;

use repoformer_models::endpoint::Endpoint;
use repoformer_models::server::{StreamPart, StreamRequest, stream};
use repoformer_store::error::Error;
use tokio::sync::mpsc;

/// A request in flight, which ends when the value is dropped.
#[derive(Debug)]
pub(crate) struct UpstreamRequest {
    /// Its parts, or why there are no more.
    pub(crate) parts: mpsc::Receiver<Result<StreamPart, Error>>,
    connection: Endpoint,
}

impl UpstreamRequest {
    /// The connection; closing it ends the request.
    pub(crate) fn connection(&self) -> Endpoint {
        self.connection.clone()
    }
}

impl Drop for UpstreamRequest {
    fn drop(&mut self) {
        // A server stops when nobody listens.
        self.connection.close();
    }
}

/// Parts that wait for the editor, at most.
const WAITING: usize = 256;

/// Asks for a completion. Always as a stream: a server notices at the next token that nobody listens.
pub(crate) fn complete(endpoint: &Endpoint, request: StreamRequest) -> UpstreamRequest {
    let connection = endpoint.with_own_connections();
    let (sender, parts) = mpsc::channel(WAITING);
    let asked = connection.clone();
    tokio::task::spawn_blocking(move || {
        let is_gone = &mut |part| sender.blocking_send(Ok(part)).is_err();
        if let Err(error) = stream(&asked, request, is_gone) {
            // The receiver may be gone.
            let _ = sender.blocking_send(Err(error));
        }
    });
    UpstreamRequest { parts, connection }
}

/// Milliseconds since a moment.
pub(crate) fn ms_since(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e3
}
