//! Labelled instances as the subcommands of `policy` read them, `policy train` and `policy features`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use repoformer_core::policy::features::{Local, Retrieved};
use repoformer_core::policy::model::{LearnedPolicy, train};
use repoformer_core::policy::{Example, Examples, Measure, Policy};
use repoformer_store::frame::ColumnType::{Flag, Number, Text};
use repoformer_store::frame::Frame;
use serde_json::{Map, Value, json};

use super::explain::trained_on;
use super::lacking;
use crate::output::{self, check_output, fail, group, write_data};
use crate::records_output::RecordsOutput;
use crate::settings::Listed;
use crate::table::ScoreFormat;
use repoformer_evaluate::table::{NamedColumn, columns};

#[derive(Debug, Args)]
pub(crate) struct PolicyTrainArgs {
    #[command(flatten)]
    pub(crate) labels: LabelFlags,
    /// Policy to train: learned (decides before retrieval), learned-scored (decides whether to show the retrieved fragments),
    /// self-scored (the same, from the model's own probability too)
    #[arg(long, value_name = "NAME", default_value = "learned",
        value_parser = Listed::of(LearnedPolicy::ALL.map(LearnedPolicy::name)))]
    pub(crate) policy: String,
    /// Method that turns scores into probabilities
    #[arg(long, value_name = "NAME", default_value = "platt", value_parser = Listed::of(["platt", "isotonic"]))]
    pub(crate) calibration: String,
    /// File for the policy (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyFeaturesArgs {
    #[command(flatten)]
    pub(crate) labels: LabelFlags,
    /// Format of the records [default: as FILE is named, else jsonl]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<RecordFormat>,
    /// File for the records (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

/// Format of records that are no table to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordFormat {
    /// One JSON object per line
    Jsonl,
    /// Named columns with commas
    Csv,
    /// The columns of csv with their types, as a Parquet file
    Parquet,
}

impl RecordFormat {
    /// The format that was given, else that by which the output is named, else lines of JSON.
    fn of(given: Option<Self>, output: &Path) -> Result<Self> {
        let of_tables = given.map(|given| match given {
            Self::Jsonl => ScoreFormat::Jsonl,
            Self::Csv => ScoreFormat::Csv,
            Self::Parquet => ScoreFormat::Parquet,
        });
        Ok(match ScoreFormat::of(of_tables, output)? {
            ScoreFormat::Csv => Self::Csv,
            ScoreFormat::Parquet => Self::Parquet,
            _ => Self::Jsonl,
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct LabelFlags {
    /// Labelled instances: JSONL, plain, gzip or zstd (repeatable); `policy sweep` draws the curves of each NAME=FILE apart
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) labels: Vec<PathBuf>,
    /// Keep instances whose query contained the target (half of those from `label sample`) for policies that look at the
    /// fragments, too; no query made before completing does, so their fragments give the target away
    #[arg(long)]
    pub(crate) target_queries: bool,
}

/// Reads labelled instances for some policies by a measure, or by that of the labels, and reports those that are left out.
pub(super) fn read_labels(
    flags: &LabelFlags,
    output: &Path,
    policies: &[Policy],
    measure: Option<Measure>,
) -> Result<Examples> {
    check_output(Some(output), &flags.labels)?;
    let mut examples = Examples::read(&flags.labels, measure)?;
    output::problems(&examples.problems);
    for (missing, count) in &examples.unjudged {
        let count = group(*count);
        output::failed(format!("{count} instances are left out: not labelled (no {missing})"));
    }
    for (repeats, what) in [
        (&examples.repeated, "repeat an id of their repository"),
        (&examples.contradicting, "are there again with another label"),
    ] {
        if let Some(first) = repeats.first() {
            let count = group(repeats.len());
            output::warning(format!("{count} instances {what} (first {first}); each counts"));
        }
    }
    let knowing = examples.all.iter().filter(|e| e.query_has_target).count();
    let looking: Vec<&str> =
        policies.iter().filter(|one| one.looks_at_fragments()).map(|one| one.name()).collect();
    if knowing > 0 && !looking.is_empty() {
        let (count, names) = (group(knowing), looking.join(", "));
        let done = match flags.target_queries {
            true => format!("kept, although their fragments give {names} the target away"),
            false => format!(
                "left out, as their fragments give {names} the target away (--target-queries keeps them)"
            ),
        };
        output::note(format!("{count} instances whose query contained the target are {done}"));
        match flags.target_queries {
            // They count as any other.
            true => examples.all.iter_mut().for_each(|example| example.query_has_target = false),
            false => examples.all.retain(|example| !example.query_has_target),
        }
    }
    if examples.all.is_empty() && knowing > 0 {
        return fail(
            "every labelled instance has a query that contained the target",
            "draw instances with other queries, or keep these with --target-queries",
        );
    }
    if examples.all.is_empty() {
        return fail(
            "these files hold no labelled instance",
            match measure {
                Some(Measure::Similarity) => {
                    "make labels by edit similarity with `repoformer label judge`"
                }
                _ => "make labels with `repoformer label judge`",
            },
        );
    }
    Ok(examples)
}

pub(super) fn run_train(args: &PolicyTrainArgs) -> Result<()> {
    let (kind, method): (LearnedPolicy, _) = (args.policy.parse()?, args.calibration.parse()?);
    let policies = [args.policy.parse()?];
    let mut examples = read_labels(&args.labels, &args.output, &policies, None)?;
    let all = examples.all.len();
    examples.all.retain(|example| kind.has_data(example));
    match all - examples.all.len() {
        0 => {}
        count if count == all => {
            return fail(
                format!("every instance lacks {}", lacking(policies[0])),
                "train --policy learned, which needs neither fragments nor probabilities",
            );
        }
        count => output::failed(format!(
            "{} instances are left out: they lack {}",
            group(count),
            lacking(policies[0])
        )),
    }
    let policy = train(&examples, kind, method)?;
    write_data(&args.output, policy.to_text())?;
    let training = &policy.training;
    if training.repositories.len() < 2 {
        output::warning(format!(
            "all instances are of one repository ({}), so the held-out quality is measured on it as well",
            training.repositories.join(", ")
        ));
    }
    output::note(format!("policy train: {kind}: {}", trained_on(training)));
    Ok(())
}

pub(super) fn run_features(args: &PolicyFeaturesArgs) -> Result<()> {
    let format = RecordFormat::of(args.format, &args.output)?;
    let examples = read_labels(&args.labels, &args.output, &[], Some(Measure::Similarity))?;
    let records = examples.all.iter().map(features);
    let frame = || {
        let mut frame = Frame::new(feature_columns());
        examples.all.iter().for_each(|example| frame.push(features(example)));
        frame
    };
    match format {
        RecordFormat::Jsonl => {
            let mut output = RecordsOutput::new(&args.output);
            for record in records {
                output.line(&record)?;
            }
            output.finish()?;
        }
        RecordFormat::Csv => write_data(&args.output, frame().csv())?,
        RecordFormat::Parquet => {
            let bytes = frame().parquet().context("cannot write these as Parquet")?;
            write_data(&args.output, bytes)?;
        }
    }
    let count = |kind: LearnedPolicy| kind.features().count();
    output::note(format!(
        "policy features: {} instances, {} features of contexts and {} of retrieved fragments",
        group(examples.all.len()),
        count(LearnedPolicy::Learned),
        count(LearnedPolicy::LearnedScored) - count(LearnedPolicy::Learned),
    ));
    Ok(())
}

/// The record of an instance.
fn features(example: &Example) -> Value {
    let named = |features: &[(&str, &str)], values: &[f32]| -> Map<String, Value> {
        let pairs = features.iter().zip(values);
        pairs.map(|((name, _), value)| ((*name).to_owned(), json!(value))).collect()
    };
    json!({
        "task_id": example.id,
        "repository": example.repository,
        "label": example.label,
        "query_has_target": example.query_has_target,
        "es_infile": example.score_base,
        "es_rg1": example.score_rag,
        "em_infile": example.em_base,
        "em_rg1": example.em_rag,
        "min_logprob": example.signals.min_logprob,
        "entropy": example.signals.entropy,
        "cc_probability": example.signals.cc_probability,
        "cc_likeliest": example.signals.cc_likeliest,
        "local": named(Local::FEATURES, &example.local.values()),
        "hashed": example.hashed.buckets(),
        "retrieved": named(Retrieved::FEATURES, &example.retrieved.values()),
    })
}

/// The columns of instances.
fn feature_columns() -> impl Iterator<Item = NamedColumn> {
    let scores =
        ["es_infile", "es_rg1", "em_infile", "em_rg1", "min_logprob", "entropy", "cc_probability"];
    let named = |of: &'static str, features: &'static [(&str, &str)]| {
        columns(Number, features.iter().map(move |(name, _)| format!("{of}.{name}")))
    };
    columns(Text, ["task_id", "repository"])
        .chain(columns(Flag, ["label", "query_has_target"]))
        .chain(columns(Number, scores))
        .chain(columns(Flag, ["cc_likeliest"]))
        .chain(named("local", Local::FEATURES))
        .chain(columns(Text, ["hashed"]))
        .chain(named("retrieved", Retrieved::FEATURES))
}
