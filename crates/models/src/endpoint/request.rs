//! The request that a thread is working on, which the user may cancel.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// Flag that is set when the request's connections are closed.
    static IS_CLOSED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Guard for this thread's work on a request, until it is dropped.
pub(super) struct RequestWork {
    before: Option<Arc<AtomicBool>>,
}

impl RequestWork {
    pub(super) fn begin(is_closed: &Arc<AtomicBool>) -> Self {
        Self { before: IS_CLOSED.replace(Some(Arc::clone(is_closed))) }
    }
}

impl Drop for RequestWork {
    fn drop(&mut self) {
        IS_CLOSED.set(self.before.take());
    }
}

/// Returns whether the request that this thread is working on was cancelled.
pub(super) fn is_given_up() -> bool {
    IS_CLOSED.with_borrow(|is_closed| {
        is_closed.as_ref().is_some_and(|is_closed| is_closed.load(Ordering::Relaxed))
    })
}
