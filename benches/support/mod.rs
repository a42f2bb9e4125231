//! Code that the benches share: the corpus stage by stage, growing collections of windows, and plain twins of the fast paths.

// Each bench is a separate program. It uses only some of this code, may panic on wrong input, and prints the sizes that it leaves
// out.
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

/// Runs everything on the calling thread: the twins have only one, and waiting in a pool would change instruction counts.
pub fn one_thread() {
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build_global()
        .expect("the first to ask for threads");
}
