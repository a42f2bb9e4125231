//! One query that several threads work on: each block is searched by whoever comes first, so that nobody waits for a thread that
//! has not begun.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::TokenSetIndex;
use super::best::{WindowHit, Windows};
use super::query::{Request, SearchScratch};
use crate::retrieve::vector::TokenSet;

thread_local! {
    /// Buffers of a thread that helps.
    static SCRATCH: RefCell<SearchScratch> = RefCell::default();
}

/// Blocks from which on one query is worth the work of several threads.
const PARTED: usize = 8;

/// A query, the windows that it may find, and the index that has them.
pub trait Search: Windows + Send + Sync + 'static {
    /// The index.
    fn index(&self) -> &TokenSetIndex;

    /// The query.
    fn query(&self) -> TokenSet<'_>;

    /// Number of hits that are wanted.
    fn k(&self) -> usize;

    /// Whether a window, as all before it, comes before those near which the search begins: the best are found soon if similar
    /// windows are near one another.
    fn is_before(&self, window: u32) -> bool;
}

/// The windows most similar to a query among those that are allowed and have a token of it, in the order of their keys where they
/// are equally similar: the `k` best at least, in no order, of which the caller takes these.
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

/// A search, and how far it is.
struct SearchProgress<S> {
    wanted: S,
    /// The blocks in the order in which they are searched.
    order: Vec<u32>,
    next: AtomicUsize,
    state: Mutex<SearchState>,
    is_done: Condvar,
}

#[derive(Default)]
struct SearchState {
    /// Blocks of which the hits are known.
    done: usize,
    /// The worst of `k` hits of one thread's.
    floor: Option<WindowHit>,
    found: Vec<WindowHit>,
}

impl<S: Search> SearchProgress<S> {
    fn lock(&self) -> MutexGuard<'_, SearchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Searches blocks until all are taken.
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
