//! Servers of models, which answer until the program of the tests ends.

use repoformer_testing::{ReceivedRequests, TestServer};

pub(crate) use repoformer_testing::{
    ReceivedRequest as Request, answer, events, next_token, ok, refusal, token_completion,
};

/// Bytes of an answer.
pub(crate) type Answer = Vec<u8>;

/// A server that lists no models: its address, and the requests with a body that it receives.
pub(crate) fn server(
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> (String, ReceivedRequests) {
    TestServer::start_without_models(answer).leak()
}

/// Such a server that answers `models` to requests without a body.
pub(crate) fn server_listing(
    models: Answer,
    answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> (String, ReceivedRequests) {
    TestServer::start_with_models(models, answer).leak()
}
