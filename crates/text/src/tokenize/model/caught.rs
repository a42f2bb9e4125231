//! Conversion of a library's panics to values.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread will be caught, so that its message is not shown.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Returns the result of `work`; `None` if it panics, without showing the panic's message.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let show = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                show(panic);
            }
        }));
    });
    let outer = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(outer);
    done.ok()
}
