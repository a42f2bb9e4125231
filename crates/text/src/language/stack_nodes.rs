//! Memory that tree-sitter's C library holds while a thread parses: one of the two modules of the crate with unsafe code.
//!
//! The library does not report the height of its parse stack. If a text ends while a high stack is ambiguous, the library takes
//! memory that grows with the square of the height. Therefore a custom allocator counts the blocks that are held, and how many
//! of them are stack nodes, which it recognises by their size.
//!
//! Soundness: each function passes its arguments to the C library function with the same contract, which is also tree-sitter's
//! default, and returns the result. Blocks that were allocated before counting began, or by another user of the library, are
//! therefore freed by the right function. Only addresses are kept, and none is dereferenced.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::Once;

use foldhash::HashSet;

/// Layout of the library's stack node (`src/stack.c`), needed for its size.
#[repr(C)]
struct StackNode {
    state: u16,
    position: [u32; 3],
    links: [StackLink; 8],
    link_count: u16,
    reference_count: u32,
    error_cost: u32,
    node_count: u32,
    dynamic_precedence: i32,
}

#[repr(C)]
struct StackLink {
    node: *const c_void,
    subtree: [usize; 8 / size_of::<usize>()],
    is_pending: bool,
}

thread_local! {
    static IS_COUNTING: Cell<bool> = const { Cell::new(false) };
    static BLOCKS: Cell<i64> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static STACK: RefCell<HashSet<usize>> = RefCell::default();
}

/// Counts for the current parse of this thread, valid while this value exists.
#[derive(Debug)]
pub(super) struct Counts(());

impl Counts {
    pub(super) fn start() -> Self {
        static INSTALL: Once = Once::new();
        INSTALL.call_once(|| {
            let (malloc, calloc, realloc, free) = (malloc, calloc, realloc, free);
            let allocator = tree_sitter::Allocator { malloc, calloc, realloc, free };
            // SAFETY: see above; every parse of the crate begins here, after this call.
            unsafe { tree_sitter::set_allocator(Some(allocator)) };
        });
        IS_COUNTING.set(true);
        BLOCKS.set(0);
        ALLOCATIONS.set(0);
        Self(())
    }

    /// Returns the number of blocks allocated since the start and not yet freed.
    pub(super) fn blocks(&self) -> u64 {
        BLOCKS.get().try_into().unwrap_or(0)
    }

    /// Returns the number of blocks allocated since the start.
    pub(super) fn allocations(&self) -> u64 {
        ALLOCATIONS.get()
    }

    /// Returns the number of nodes on the stack, over all readings of the text.
    pub(super) fn stack_nodes(&self) -> u64 {
        STACK.with_borrow(|nodes| nodes.len() as u64)
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        IS_COUNTING.set(false);
        STACK.with_borrow_mut(HashSet::clear);
    }
}

/// Counts a new block.
fn add(block: *mut c_void, size: usize) -> *mut c_void {
    if block.is_null() && size > 0 {
        std::process::abort(); // as the library does: it cannot continue without memory
    }
    if IS_COUNTING.get() {
        BLOCKS.set(BLOCKS.get() + 1);
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        if size == size_of::<StackNode>() {
            STACK.with_borrow_mut(|nodes| nodes.insert(block.addr()));
        }
    }
    block
}

/// Counts a freed block.
fn remove(block: *mut c_void) {
    if IS_COUNTING.get() && !block.is_null() {
        BLOCKS.set(BLOCKS.get() - 1);
        STACK.with_borrow_mut(|nodes| nodes.remove(&block.addr()));
    }
}

mod c {
    use std::ffi::c_void;

    unsafe extern "C" {
        pub(super) fn malloc(size: usize) -> *mut c_void;
        pub(super) fn calloc(count: usize, size: usize) -> *mut c_void;
        pub(super) fn realloc(block: *mut c_void, size: usize) -> *mut c_void;
        pub(super) fn free(block: *mut c_void);
    }
}

unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    add(unsafe { c::malloc(size) }, size)
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    add(unsafe { c::calloc(count, size) }, count.saturating_mul(size))
}

unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    remove(block);
    add(unsafe { c::realloc(block, size) }, size)
}

unsafe extern "C" fn free(block: *mut c_void) {
    remove(block);
    unsafe { c::free(block) }
}
