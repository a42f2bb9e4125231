//! Finds near duplicates among the texts of a JSONL file, `{"text": "…"}` per line, as datatrove finds them.
//!
//! `cargo run --release --example near_duplicates -- texts.jsonl` prints the clusters as line numbers from 0, and on standard error
//! the speed at which one thread computed the signatures.
#![allow(clippy::print_stdout, clippy::print_stderr)] // an example prints

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use cpu_time::ThreadTime;
use repoformer_formats::group::min_hash::{Signature, clusters};
use repoformer_store::jsonl::{self, Fields};

fn main() -> Result<()> {
    let path = std::env::args().nth(1).context("usage: near_duplicates TEXTS.jsonl")?;
    let (mut lines, mut signatures, mut line) = (Vec::new(), Vec::new(), 0);
    let (mut bytes, mut taken) = (0, Duration::ZERO);
    let problems = jsonl::for_each(Path::new(&path), |at, object| {
        let text = Fields::new(Path::new(&path), at.line, "", &object).string("text")?.to_owned();
        bytes += text.len();
        let start = ThreadTime::now();
        if let Some(signature) = Signature::from_text(&text) {
            lines.push(line);
            signatures.push(signature);
        }
        taken += start.elapsed();
        line += 1;
        Ok(())
    })?;
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem.into());
    }
    for cluster in clusters(&signatures) {
        let numbers: Vec<String> = cluster.iter().map(|&place| lines[place].to_string()).collect();
        println!("[{}]", numbers.join(", "));
    }
    let (megabytes, seconds) = (bytes as f64 / 1e6, taken.as_secs_f64());
    eprintln!("{megabytes:.1} MB in {seconds:.2} s, {:.1} MB/s", megabytes / seconds);
    Ok(())
}
