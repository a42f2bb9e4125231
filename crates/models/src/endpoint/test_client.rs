//! Clients of the test server.

use std::time::Duration;

use repoformer_testing::TestServer;

use super::{ConnectionSettings, Endpoint};

/// Returns a client whose retries cost no time.
pub(crate) fn client(server: &TestServer) -> Endpoint {
    Endpoint::new(&server.url(), quick()).unwrap()
}

/// Returns settings with delays of milliseconds. Their key variable is not set.
pub(crate) fn quick() -> ConnectionSettings {
    ConnectionSettings {
        timeout: Duration::from_secs(20),
        retries: 3,
        first_delay: Duration::from_millis(2),
        longest_delay: Duration::from_millis(8),
        ..ConnectionSettings::default()
    }
}
