//! Search for one query by several threads. Each block is searched by the first free thread, so that nobody waits for a thread
//! that has not begun.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::TokenSetIndex;
use super::best::{WindowHit, Windows};
use super::query::{Request, SearchScratch};
use crate::retrieve::vector::TokenSet;

thread_local! {
    /// Buffers of a helping thread.
    static SCRATCH: RefCell<SearchScratch> = RefCell::default();
}

/// Minimum number of blocks for which one query is worth the work of several threads.
const PARTED: usize = 8;

/// A query, the windows that it may retrieve, and the index that contains them.
pub trait Search: Windows + Send + Sync + 'static {
    /// Returns the index.
    fn index(&self) -> &TokenSetIndex;

    /// Returns the query.
    fn query(&self) -> TokenSet<'_>;

    /// Returns the number of hits wanted.
    fn k(&self) -> usize;

    /// Returns true if a window, and all windows before it, come before the windows near which the search begins. If similar
    /// windows are near one another, the best hits are found soon.
    fn is_before(&self, window: u32) -> bool;
}

/// Returns the windows most similar to a query. They are allowed and share a token with the query; keys order equally similar
/// windows. The result contains at least the `k` best, in no particular order; the caller selects them.
pub fn search_together(wanted: impl Search, scratch: &mut SearchScratch) -> Vec<WindowHit> {
    let index = wanted.index();
    let near = index.blocks.partition_point(|block| wanted.is_before(block.end() - 1)) as u32;
    let mut order: Vec<u32> = (0..index.blocks.len() as u32).collect();
    order.sort_by_key(|block| block.abs_diff(near));
    let helpers = if order.len() < PARTED { 0 } else { rayon::current_num_threads() - 1 };
    let together = SearchProgress {
        wanted,
        order,
        next: AtomicUsize::new(0),
        state: Mutex::default(),
        is_done: Condvar::new(),
    };
    if helpers == 0 {
        together.work(scratch);
        return std::mem::take(&mut together.lock().found);
    }
    let together = Arc::new(together);
    for _ in 0..helpers {
        let together = Arc::clone(&together);
        rayon::spawn(move || SCRATCH.with_borrow_mut(|scratch| together.work(scratch)));
    }
    together.work(scratch);
    let mut state = together.lock();
    while state.done < together.order.len() {
        state = together.is_done.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    std::mem::take(&mut state.found)
}

/// A search and its progress.
struct SearchProgress<S> {
    wanted: S,
    /// Blocks, in the order in which they are searched.
    order: Vec<u32>,
    next: AtomicUsize,
    state: Mutex<SearchState>,
    is_done: Condvar,
}

#[derive(Default)]
struct SearchState {
    /// Number of blocks whose hits are known.
    done: usize,
    /// The worst of `k` hits that one thread found.
    floor: Option<WindowHit>,
    found: Vec<WindowHit>,
}

impl<S: Search> SearchProgress<S> {
    fn lock(&self) -> MutexGuard<'_, SearchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Searches blocks until all have been taken.
    fn work(&self, scratch: &mut SearchScratch) {
        let (wanted, index) = (&self.wanted, self.wanted.index());
        let next = || self.order.get(self.next.fetch_add(1, Relaxed));
        let Some(mut at) = next() else { return };
        scratch.terms.clear();
        let k = wanted.k().min(index.windows);
        let mut request = Request::new(&index.terms, wanted.query(), k, scratch);
        let mut done = 0;
        loop {
            request.search(&index.blocks[*at as usize], index.level, scratch, wanted);
            done += 1;
            let worst = request.best.worst();
            let Some(block) = next() else { break };
            at = block;
            let mut state = self.lock();
            if let Some(worst) = worst
                && state.floor.is_none_or(|floor| worst.beats(&floor))
            {
                state.floor = Some(worst);
            }
            request.best.raise(state.floor);
        }
        let mut state = self.lock();
        state.found.extend(request.into_hits());
        state.done += done;
        if state.done == self.order.len() {
            self.is_done.notify_one();
        }
    }
}
