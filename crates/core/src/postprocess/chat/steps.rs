//! Number of bytes that the rule reads or writes, which tests bound: an answer and a left context may come from strangers.

#[cfg(test)]
thread_local! {
    static BYTES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Adds to the number of bytes that this thread has read or written. Does nothing outside tests.
#[cfg_attr(not(test), expect(unused_variables))]
pub(super) fn add(bytes: usize) {
    #[cfg(test)]
    BYTES.set(BYTES.get() + bytes);
}

/// Returns the number of bytes that this thread reads or writes for some work.
#[cfg(test)]
pub(super) fn count(work: impl FnOnce()) -> usize {
    let before = BYTES.get();
    work();
    BYTES.get() - before
}
