//! `policy sweep`: scores of policies, and their curves.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use repoformer_core::policy::sweep::{Clock, RequestTimes};
use repoformer_core::policy::{Measure, Policy, Threshold};
use repoformer_evaluate::policy_scores::TrainedPolicies;
use repoformer_evaluate::sweep::{LabelSet, RetrieverTimes, Sweep, TimeSources};
use repoformer_store::files;
use repoformer_study::choices::{page_in, seed, warn_of_some_departures, write_page};

use super::labels::LabelFlags;
use crate::output::{self, check_output, fail, screen, write_data};
use crate::settings::{DECLARED, Settings, ValueList};
use crate::table::{ScoreFormat, format_results};

#[derive(Debug, Args)]
pub(crate) struct PolicySweepArgs {
    #[command(flatten)]
    labels: LabelFlags,
    /// Policy to evaluate (repeatable, or separated by commas) [default: all that the labels have the data for]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = ValueList::new(Policy::ALL))]
    policy: Vec<String>,
    /// Metric of the labels: es (edit similarity), pass (unit-test pass rate) or likelihood (probability of the target)
    /// [default: the metric that the labels were judged by]
    #[arg(long, value_name = "NAME", value_parser = ValueList::new(Measure::ALL.map(Measure::key)))]
    metric: Option<String>,
    /// Trained policy, or `bundled` (repeatable) [default: trained here, for each repository on the other repositories]
    #[arg(long, value_name = "FILE")]
    model: Vec<PathBuf>,
    /// More labelled instances for policies trained here, except instances of the scored repository (repeatable)
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    train_labels: Vec<PathBuf>,
    /// Method that calibrates scores of policies trained here as probabilities
    #[arg(long, value_name = "NAME", default_value = "platt", value_parser = ValueList::new(["platt", "isotonic"]))]
    calibration: String,
    /// Threshold: a score above which to retrieve, or a percentage of the instances, as in 30% (repeatable, or separated by
    /// commas) [default: every 2.5 % of the instances]
    #[arg(long, value_name = "T", value_delimiter = ',', allow_negative_numbers = true)]
    threshold: Vec<Threshold>,
    /// File of measured times: JSONL with task_id, retrieval_ms, generation_ms; NAME is a retriever (repeatable)
    #[arg(long, value_name = "[NAME=]FILE")]
    latency: Vec<String>,
    /// File of measured times of completions without retrieval, in the same format [default: the times in --latency]
    #[arg(long, value_name = "FILE")]
    base_latency: Option<PathBuf>,
    /// Time of a retrieval in milliseconds; NAME is a retriever (repeatable)
    #[arg(long, value_name = "[NAME=]MS")]
    retrieval_ms: Vec<String>,
    /// Time of a generation in milliseconds
    #[arg(long, value_name = "MS")]
    generation_ms: Option<f64>,
    /// Time of a model's own decision in milliseconds, for policy self [default: from --base-latency]
    #[arg(long, value_name = "MS")]
    decision_ms: Option<f64>,
    /// How latency adds up the parts of a request: parallel (they run at the same time, as in the paper) or serial (one after
    /// another) [default: parallel]
    #[arg(long, value_name = "NAME", value_parser = ValueList::new(Clock::ALL))]
    clock: Option<String>,
    /// Seed of policy random [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Format; text prints a summary of each policy, the other formats every point [default: from the extension of FILE, else text]
    #[arg(long, value_name = "FORMAT")]
    format: Option<ScoreFormat>,
    /// Also write a page with the curves to this folder: index.html and its figures
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// File for the summary or the points (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

pub(super) fn run(args: &PolicySweepArgs) -> Result<()> {
    let settings = Settings::without_flags(screen())?;
    let departures = settings.departures_with(&[(&DECLARED.clock, args.clock.as_deref())]);
    warn_of_some_departures(&settings, &departures);
    let format = ScoreFormat::choose(args.format, &args.output)?;
    let sources = args.time_sources(&settings)?;
    let times = RetrieverTimes::read(&sources, &output::tell)?;
    let is_untimed = times.names.is_empty();
    let sets = LabelSet::list(&args.labels.labels);
    args.check_output(&sources, &sets)?;
    let sweep = Sweep {
        policies: args.policy.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
        measure: args.metric.as_deref().map(str::parse).transpose()?,
        method: args.calibration.parse()?,
        trained: TrainedPolicies::read(&args.model)?,
        training_labels: args.train_labels.clone(),
        keeps_targets: args.labels.target_queries,
        seed: args.seed.map_or_else(|| seed(&settings), Ok)?,
        thresholds: args.threshold.clone(),
        times,
    };
    let swept = sweep.run(sets, &output::tell)?;
    swept.warning().into_iter().for_each(output::warning);
    write_data(&args.output, format_results(&swept, format)?)?;
    if let Some(folder) = &args.report {
        write_page(folder, &swept.page())?;
        output::note(format!("report: {}", page_in(folder).display()));
    }
    if is_untimed {
        output::note(
            "policy sweep: latencies are not known; give --latency FILE, or --retrieval-ms MS and --generation-ms MS",
        );
    }
    Ok(())
}

impl PolicySweepArgs {
    /// Checks that the output overwrites no input.
    fn check_output(&self, sources: &TimeSources, sets: &[LabelSet]) -> Result<()> {
        let labels = sets.iter().flat_map(|set| &set.files);
        let files = labels.chain(&self.train_labels).chain(&self.model).chain(&sources.base);
        let times = sources.measured.iter().map(|(_, file)| file);
        check_output(Some(&self.output), files.chain(times))
    }

    /// Returns the times of requests; rejects incomplete times.
    fn time_sources(&self, settings: &Settings) -> Result<TimeSources> {
        if self.latency.is_empty() && self.base_latency.is_some() {
            return fail(
                "--base-latency has only the times without retrieval; the times with retrieval are missing",
                "add --latency FILE",
            );
        }
        if self.latency.is_empty() && self.retrieval_ms.is_empty() && self.generation_ms.is_some() {
            return fail(
                "--generation-ms is set, but the time of a retrieval is missing",
                "add --retrieval-ms MS, or --latency FILE",
            );
        }
        for time in self.generation_ms.into_iter().chain(self.decision_ms) {
            milliseconds("a time", &time.to_string())?;
        }
        let measured = self.latency.iter().map(|text| {
            let (name, file) = files::split_name(text);
            (name.unwrap_or("measured").to_owned(), file)
        });
        let given = |text: &String| {
            let (name, number) = text.split_once('=').unwrap_or(("retrieval", text));
            let retrieval = milliseconds("--retrieval-ms", number)?;
            let Some(generation) = self.generation_ms else {
                return fail(
                    "--retrieval-ms is set, but the time of a generation is missing",
                    "add --generation-ms MS",
                );
            };
            Ok((name.to_owned(), RequestTimes::new(retrieval, generation)))
        };
        Ok(TimeSources {
            measured: measured.map(|(name, file)| (name, file.into())).collect(),
            base: self.base_latency.clone(),
            generation_ms: self.generation_ms,
            given: self.retrieval_ms.iter().map(given).collect::<Result<_>>()?,
            decision_ms: self.decision_ms,
            clock: match &self.clock {
                Some(clock) => clock.parse()?,
                None => *settings.clock,
            },
        })
    }
}

fn milliseconds(flag: &str, text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => fail(
            format!("invalid {flag} '{text}': expected a number of milliseconds"),
            "give a number of at least 0, such as 12.5",
        ),
    }
}
