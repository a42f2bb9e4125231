//! Shared by the benches: the corpus stage by stage, growing collections of windows, and plain twins of the fast paths.

// Each bench is a program of its own, which uses its part, may stop where its input is wrong, and says what it leaves out.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::print_stderr)]

pub mod chunks;
pub mod corpus;
pub mod figure;
pub mod growth;
pub mod memory;
pub mod sets;
pub mod term_at_a_time;
pub mod twins;
pub mod work;

/// Everything on the calling thread: the twins have one, and instruction counts repeat only without a pool's waiting.
pub fn one_thread() {
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build_global()
        .expect("the first to ask for threads");
}
