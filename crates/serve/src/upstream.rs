//! Requests one completion from the model's server, and cancels it if the editor no longer wants it.

use std::time::Instant;

use repoformer_models::endpoint::Endpoint;
use repoformer_models::server::{StreamPart, StreamRequest, stream};
use repoformer_store::error::Error;
use tokio::sync::mpsc;

/// Request in flight, which is cancelled when the value is dropped.
#[derive(Debug)]
pub(crate) struct UpstreamRequest {
    /// Parts of the completion, or the error that ended it.
    pub(crate) parts: mpsc::Receiver<Result<StreamPart, Error>>,
    connection: Endpoint,
}

impl UpstreamRequest {
    /// Returns the connection; closing it ends the request.
    pub(crate) fn connection(&self) -> Endpoint {
        self.connection.clone()
    }
}

impl Drop for UpstreamRequest {
    fn drop(&mut self) {
        // A server stops when the connection is closed.
        self.connection.close();
    }
}

/// Maximum number of parts that wait for the editor.
const WAITING: usize = 256;

/// Requests a completion. It is always streamed, so that the server notices a closed connection at the next token. `permit` is held until
/// the work has ended, which may be some time after the request was cancelled.
pub(crate) fn complete(
    endpoint: &Endpoint,
    request: StreamRequest,
    permit: impl Send + 'static,
) -> UpstreamRequest {
    let connection = endpoint.with_own_connections();
    let (sender, parts) = mpsc::channel(WAITING);
    let asked = connection.clone();
    tokio::task::spawn_blocking(move || {
        let is_gone = &mut |part| sender.blocking_send(Ok(part)).is_err();
        if let Err(error) = stream(&asked, request, is_gone) {
            // Ignore the result: the receiver may be gone.
            let _ = sender.blocking_send(Err(error));
        }
        drop(permit);
    });
    UpstreamRequest { parts, connection }
}

/// Returns the milliseconds since a moment.
pub(crate) fn ms_since(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, mpsc};
    use std::time::Duration;

    use repoformer_core::completion::CompletionRequest;
    use repoformer_models::endpoint::ConnectionSettings;
    use serde_json::Map;

    use super::*;
    use crate::runtime::runtime;
    use crate::tests::refusing_url;

    #[test]
    fn a_permit_is_held_until_the_work_of_a_cancelled_request_has_ended() {
        let (begun, has_begun) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let ends = Mutex::new(ends);
        let settings = ConnectionSettings {
            retries: 1,
            first_delay: Duration::ZERO,
            ..ConnectionSettings::default()
        };
        // This work continues even if the connection is closed.
        let endpoint = Endpoint::new(&refusing_url(), settings).unwrap().on_notice(move |_| {
            begun.send(()).unwrap();
            let _ = ends.lock().unwrap().recv();
        });
        let (permit, runtime) = (Arc::new(()), runtime().unwrap());
        let request = StreamRequest::new(&CompletionRequest::new("m", 1), "x", &Map::new());
        let asked = {
            let _context = runtime.enter();
            complete(&endpoint, request, Arc::clone(&permit))
        };
        has_begun.recv().unwrap();
        drop(asked);
        assert_eq!(Arc::strong_count(&permit), 2);
        drop(end);
        // Dropping the runtime waits for all work.
        drop(runtime);
        assert_eq!(Arc::strong_count(&permit), 1);
    }
}
