//! Threads that process requests.

use tokio::runtime::{Builder, Runtime};

use crate::error::{Result, ServeError};

/// Starts the threads.
pub(crate) fn runtime() -> Result<Runtime> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(ServeError::system("cannot start the server's threads"))
}
