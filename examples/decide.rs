//! Decides whether to retrieve for a cursor, with a policy that `repoformer policy train` wrote.
//!
//! ```text
//! cargo run --release --example decide -- learned.json tidewatch/cli.py 40 < data/repos/tidewatch/tidewatch/cli.py
//! ```

#![allow(clippy::print_stdout)] // an example prints

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use repoformer_core::label::Signals;
use repoformer_core::policy::features::Request;
use repoformer_core::policy::model::{LearnedPolicy, PolicyModel};
use repoformer_core::text::language::Language;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, path, line] = &arguments[..] else {
        bail!("usage: decide POLICY PATH LINE < FILE");
    };
    let policy = PolicyModel::read(Path::new(model))?;
    // A policy that scores fragments would take missing fragments for unhelpful ones.
    ensure!(policy.policy == LearnedPolicy::Learned, "{model} decides after retrieval");

    let text = std::io::read_to_string(std::io::stdin())?;
    let line: usize = line.parse()?;
    ensure!(line <= text.lines().count(), "the file has no line {line}");
    let before = text.split_inclusive('\n').take(line).map(str::len).sum();
    let (left, right) = text.split_at(before);
    let language = Language::of_path(path).context("unknown language")?;
    let probability = policy
        .decide(Request { left, right, path, language, fragments: &[] }, Signals::default())
        .context("the policy needs signals of a model")?;

    let choice = if probability >= 0.5 { "retrieve" } else { "complete without retrieval" };
    println!("{choice}: retrieval helps with probability {probability:.3}");
    Ok(())
}
