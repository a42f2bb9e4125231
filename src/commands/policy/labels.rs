//! Labelled instances as the subcommands of `policy` read them, `policy train` and `policy features`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use repoformer_core::policy::model::LearnedPolicy;
use repoformer_core::policy::{Examples, Measure, Policy};
use repoformer_evaluate::sweep::{feature_columns, feature_record, read_labels, train_on};
use repoformer_store::frame::Frame;

use crate::output::{self, check_output, format_count, write_data};
use crate::records_output::RecordsOutput;
use crate::settings::ValueList;
use crate::table::ScoreFormat;

#[derive(Debug, Args)]
pub(crate) struct PolicyTrainArgs {
    #[command(flatten)]
    pub(crate) labels: LabelFlags,
    /// Policy to train: learned (decides before retrieval), learned-scored (decides after retrieval, from the fragments too),
    /// self-scored (as learned-scored, from the model's own probability too)
    #[arg(long, value_name = "NAME", default_value = "learned",
        value_parser = ValueList::new(LearnedPolicy::ALL.map(LearnedPolicy::name)))]
    pub(crate) policy: String,
    /// Method that calibrates scores as probabilities
    #[arg(long, value_name = "NAME", default_value = "platt", value_parser = ValueList::new(["platt", "isotonic"]))]
    pub(crate) calibration: String,
    /// File for the policy (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyFeaturesArgs {
    #[command(flatten)]
    pub(crate) labels: LabelFlags,
    /// Format of the records [default: from the extension of FILE, else jsonl]
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
    /// Returns the given format, or else the format of the output's extension, or else JSON lines.
    fn choose(given: Option<Self>, output: &Path) -> Result<Self> {
        let of_tables = given.map(|given| match given {
            Self::Jsonl => ScoreFormat::Jsonl,
            Self::Csv => ScoreFormat::Csv,
            Self::Parquet => ScoreFormat::Parquet,
        });
        Ok(match ScoreFormat::choose(of_tables, output)? {
            ScoreFormat::Csv => Self::Csv,
            ScoreFormat::Parquet => Self::Parquet,
            _ => Self::Jsonl,
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct LabelFlags {
    /// Labelled instances: JSONL, plain, gzip or zstd (repeatable); `policy sweep` draws separate curves for each NAME=FILE
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) labels: Vec<PathBuf>,
    /// Keep instances whose query contained the target (half of those from `label sample`) for policies that look at fragments,
    /// although such fragments give the target away
    #[arg(long)]
    pub(crate) target_queries: bool,
}

impl LabelFlags {
    /// Reads the instances for some policies by a measure, or by the measure of the labels.
    fn read(
        &self,
        output: &Path,
        policies: &[Policy],
        measure: Option<Measure>,
    ) -> Result<Examples> {
        check_output(Some(output), &self.labels)?;
        Ok(read_labels(&self.labels, policies, measure, self.target_queries, &output::tell)?)
    }
}

pub(super) fn run_train(args: &PolicyTrainArgs) -> Result<()> {
    let (kind, method): (LearnedPolicy, _) = (args.policy.parse()?, args.calibration.parse()?);
    let examples = args.labels.read(&args.output, &[kind.into()], None)?;
    let policy = train_on(examples, kind, method, &output::tell)?;
    write_data(&args.output, policy.to_text())?;
    output::note(format!("policy train: {kind}: {}", policy.training.summary()));
    Ok(())
}

pub(super) fn run_features(args: &PolicyFeaturesArgs) -> Result<()> {
    let format = RecordFormat::choose(args.format, &args.output)?;
    let examples = args.labels.read(&args.output, &[], Some(Measure::Similarity))?;
    let records = examples.all.iter().map(feature_record);
    let frame = || {
        let mut frame = Frame::new(feature_columns());
        examples.all.iter().for_each(|example| frame.push(feature_record(example)));
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
        "policy features: {}, each with {} features of its contexts and {} of its retrieved fragments",
        format_count(examples.all.len() as u64, "instance"),
        count(LearnedPolicy::Learned),
        count(LearnedPolicy::LearnedScored) - count(LearnedPolicy::Learned),
    ));
    Ok(())
}
