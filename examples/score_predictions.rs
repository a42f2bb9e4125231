//! Scores a file of predictions against its tasks: exact match and edit similarity, over all and by repository.
//!
//! ```text
//! cargo run --release --example score_predictions -- data/tasks/line.jsonl predictions.jsonl
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)] // an example prints

use std::path::Path;

use anyhow::{Result, bail};
use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::Postprocess;
use repoformer_core::task::TaskSet;
use repoformer_evaluate::predictions;
use repoformer_evaluate::score::{MetricMeans, MissingPredictions, score_tasks};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [tasks, predictions] = &arguments[..] else {
        bail!("usage: score_predictions TASKS PREDICTIONS");
    };
    let tasks = TaskSet::read(Path::new(tasks))?;
    let read = predictions::read(Path::new(predictions), &tasks.set)?;
    // A record that cannot be used affects only its own task.
    for problem in tasks.problems.iter().chain(&read.problems) {
        eprintln!("warning: {problem}");
    }
    let metrics = [Metric::RepoCoder];
    let scores = score_tasks(
        &tasks.set,
        &read.predictions,
        &metrics,
        &Postprocess::NONE,
        MissingPredictions::Skip,
    )?;

    let show = |name: &str, means: &MetricMeans| {
        for mean in &means.means {
            let values = mean.metric.values().iter().zip(&mean.values);
            let values: Vec<String> =
                values.map(|(name, mean)| format!("{name} {mean:.4}")).collect();
            println!("{name}: {} ({} tasks)", values.join(", "), means.n);
        }
    };
    show("all", &scores.all);
    for (repository, means) in &scores.repositories {
        show(repository, means);
    }
    if scores.missing > 0 {
        eprintln!("warning: {} tasks have no prediction and are left out", scores.missing);
    }
    Ok(())
}
