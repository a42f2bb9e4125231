//! Speed of each stage, one module per stage; fast paths are next to their plain twins.
//!
//! `cargo bench` runs on the sample repositories; `REPOFORMER_CORPUS=DIR cargo bench` runs on all repositories in DIR as one;
//! `cargo bench --bench stages -- search` runs one stage. Everything runs on one thread.

#![allow(clippy::unwrap_used)]

mod complete;
mod dense;
mod group;
mod policy;
mod prompt;
mod rank;
mod score;
mod search;
mod statistics;
mod style;
mod support;
mod tokenize;
mod window;

fn main() {
    support::one_thread();
    divan::main();
}
