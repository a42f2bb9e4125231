//! Parallel work on many items: files, repositories, tasks.

use std::mem;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// Item that is replaced by its result.
enum Slot<T, R> {
    Waiting(T),
    Taken,
    Done(R),
}

/// Returns the result of each item in the items' order, computed by the threads of the current pool.
///
/// The scheduler is compiled once for all callers, at the cost of a lock for each item. Loops over small items, or with a
/// scratch buffer for each thread, call `rayon` directly.
///
/// ```
/// use repoformer_repository::parallel;
///
/// assert_eq!(parallel::map(["a", "bc"], str::len), [1, 2]);
/// ```
pub fn map<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    of: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let slots: Vec<Mutex<Slot<T, R>>> =
        items.into_iter().map(|item| Mutex::new(Slot::Waiting(item))).collect();
    each(slots.len(), &|place| {
        let mut slot = slots[place].lock().unwrap_or_else(PoisonError::into_inner);
        if let Slot::Waiting(item) = mem::replace(&mut *slot, Slot::Taken) {
            *slot = Slot::Done(of(item));
        }
    });
    let done = slots.into_iter().filter_map(|slot| match slot.into_inner() {
        Ok(Slot::Done(result)) => Some(result),
        _ => None,
    });
    done.collect()
}

fn each(count: usize, of: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(of);
}
