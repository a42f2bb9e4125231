//! How long each stage takes, a module a stage, the fast path beside its plain twin where there is one.
//!
//! `cargo bench` runs on the sample repositories, `REPOFORMER_CORPUS=DIR cargo bench` on every repository below DIR as
//! one; `cargo bench --bench stages -- search` runs one stage. Everything is on one thread.

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
