//! A bound on the memory of one input: the process ends where more is asked for.

// An allocator is unsafe by its interface; this one counts and hands on.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Most bytes that reading one input may take.
const MOST: usize = 1 << 30;

static USED: AtomicUsize = AtomicUsize::new(0);
static BOUND: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls `read`; the process ends if it has more than [`MOST`] bytes at once.
pub(crate) fn bounded(read: impl FnOnce()) {
    BOUND.store(USED.load(Relaxed).saturating_add(MOST), Relaxed);
    read();
    BOUND.store(usize::MAX, Relaxed);
}

fn take(bytes: usize) {
    let used = USED.fetch_add(bytes, Relaxed).saturating_add(bytes);
    if used > BOUND.load(Relaxed) {
        BOUND.store(usize::MAX, Relaxed);
        panic!("one input took more than {} MiB", MOST >> 20);
    }
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        take(size);
        USED.fetch_sub(layout.size(), Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}
