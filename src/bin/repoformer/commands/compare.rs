//! `compare`

use std::path::Path;

use anyhow::Result;
use repoformer::comparison::{self, Comparison, PerTask, Settings, Side};
use repoformer::statistics::{Resampling, SignFlips, Unit};
use serde_json::Value;

use super::comparison_text::{self, listed};
use crate::args::{CompareArgs, ResampledUnit, ScoreFormat};
use crate::output::{Printer, check_output, hinted, write_data};

pub(crate) fn run(args: &CompareArgs, printer: &mut Printer) -> Result<()> {
    let (a_path, b_path) = (comparison::split(&args.a).0, comparison::split(&args.b).0);
    check_output(Some(&args.output), &[a_path, b_path])?;
    if a_path == Path::new("-") && b_path == Path::new("-") {
        return Err(hinted(
            anyhow::anyhow!("A and B cannot both be standard input, which is read once"),
            "name a file for one of them",
        ));
    }
    let (a, b) = (load(&args.a, printer)?, load(&args.b, printer)?);
    let comparison = Comparison::of(&a, &b, &settings(args))?;
    printer.problems(&comparison.problems);
    warn(&comparison, printer);
    write_data(&args.output, written(&comparison, args)?.as_bytes())
}

/// Each task's scores of what stands on the command line as A or B.
fn load(given: &str, printer: &mut Printer) -> Result<PerTask> {
    let reading = comparison::read(given)?;
    printer.problems(&reading.problems);
    Ok(reading.scores)
}

fn settings(args: &CompareArgs) -> Settings {
    Settings {
        measures: args.measure.clone(),
        unit: args.unit.map(|unit| match unit {
            ResampledUnit::Repository => Unit::Repositories,
            ResampledUnit::Task => Unit::Tasks,
        }),
        resampling: Resampling {
            resamples: args.resamples,
            seed: args.seed,
            ..Resampling::default()
        },
        flips: SignFlips {
            seed: args.seed,
            ..SignFlips::default()
        },
        by_repository: args.by_repository,
    }
}

/// Tells what the comparison is not about.
fn warn(comparison: &Comparison, printer: &Printer) {
    for (Side { name, alone, .. }, other) in [
        (&comparison.a, &comparison.b),
        (&comparison.b, &comparison.a),
    ] {
        if !alone.is_empty() {
            printer.warning(format!(
                "left out: {} in {name} alone, and not in {}",
                listed(alone),
                other.name
            ));
        }
    }
    if comparison.moved > 0 {
        printer.warning(format!(
            "{} ids are in both at other rows: were both scored with the same task file?",
            comparison.moved
        ));
    }
    for (measure, reason) in &comparison.left_out {
        printer.note(format!("left out: {measure} {reason}"));
    }
}

fn written(comparison: &Comparison, args: &CompareArgs) -> Result<String> {
    let lines = |records: Vec<Value>| records.iter().map(|r| r.to_string() + "\n").collect();
    Ok(match (args.format, args.per_task) {
        (ScoreFormat::Text, per_task) => comparison_text::text(comparison, per_task),
        (ScoreFormat::Tsv, true) => comparison_text::task_table(comparison).tsv(),
        (ScoreFormat::Tsv, false) => comparison_text::columns(comparison).tsv(),
        (ScoreFormat::Json, per_task) => {
            serde_json::to_string_pretty(&comparison.to_record(per_task))? + "\n"
        }
        (ScoreFormat::Jsonl, true) => lines(comparison.task_records()),
        (ScoreFormat::Jsonl, false) => lines(comparison.measure_records()),
    })
}
