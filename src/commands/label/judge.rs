//! `label judge`: whether retrieval helps a model with an instance.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use repoformer_core::label::{LIKELIHOOD, PASS};
use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::Postprocess;
use repoformer_core::repository::Shard;
use repoformer_evaluate::conditions::{are_chat_answers, common};
use repoformer_evaluate::label::{JudgeSettings, JudgeSummary, JudgedBy, LengthCounts, judge};
use repoformer_evaluate::score::Scoring;
use repoformer_evaluate::table::{NamedColumn, Printable, Table, columns, signed};
use repoformer_formats::merge::{LACKING, Positions, ShardFile};
use repoformer_store::error::{Error, LabelInput};
use repoformer_store::frame::ColumnType::{Integer, Number};
use repoformer_store::manifest::Manifest;
use repoformer_study::choices::warn_of_some_departures;
use repoformer_study::scoring::warn_of_ends;
use serde_json::{Map, Value, json};

use crate::commands::comparison_text::histogram;
use crate::commands::parts;
use crate::output::{
    self, Screen, check_output, check_rereadable, fail, group, hinted, screen, write_data,
    write_manifest_beside, write_shard_beside,
};
use crate::records_output::RecordsOutput;
use crate::settings::{DECLARED, Listed, MetricName, SettingValue, Settings};
use crate::table::{ScoreFormat, written};

#[derive(Debug, Args)]
pub(crate) struct LabelJudgeArgs {
    /// Instances from `label sample`
    #[arg(long, value_name = "FILE")]
    pub(crate) instances: PathBuf,
    /// Predictions of a model without retrieval (mode none)
    #[arg(long, value_name = "FILE")]
    pub(crate) base: PathBuf,
    /// Predictions of the same model with retrieval (mode given)
    #[arg(long, value_name = "FILE")]
    pub(crate) rag: PathBuf,
    /// Prompts of --rag, for instances that do not carry their retrieved fragments: tasks of a benchmark
    #[arg(long, value_name = "FILE")]
    pub(crate) prompts: Option<PathBuf>,
    /// Probabilities of the token that asks for retrieval, for policy self, from `complete --probability-of`
    #[arg(long, value_name = "FILE")]
    pub(crate) probabilities: Option<PathBuf>,
    /// Samples of completions without retrieval, for policy entropy, from `complete --mode none --samples 20 --temperature 1`
    #[arg(long, value_name = "FILE")]
    pub(crate) samples_from: Option<PathBuf>,
    /// Metric that decides whether retrieval helps: one of `eval`, by its edit similarity; pass, the unit-test pass rate; or
    /// likelihood, the probability of the target, which --base and --rag then hold (`complete --likelihood`) [default: that of the settings or the profile; otherwise repocoder for lines and calls, repoformer for chunks and functions]
    #[arg(long, value_name = "NAME", value_parser = Listed::of(Metric::ALL).and(PASS).and(LIKELIHOOD))]
    pub(crate) metric: Option<String>,
    /// How predictions are cut before they are scored, as in `eval` [default: own; for answers of the chat API chat,own]
    #[arg(long, value_name = "STEPS")]
    pub(crate) postprocess: Option<String>,
    /// Unit-test results of --base, from `eval --exec --per-task --format jsonl`, for --metric pass; NAME is that of its
    /// predictions there [default: none]
    #[arg(long, value_name = "[NAME=]FILE", requires = "rag_exec")]
    pub(crate) base_exec: Option<String>,
    /// Unit-test results of --rag, likewise [default: rg1]
    #[arg(long, value_name = "[NAME=]FILE", requires = "base_exec")]
    pub(crate) rag_exec: Option<String>,
    /// Name of the model [default: the predictions' own]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Part of the instances, by their repositories: 2/8 is the second of eight; `merge` puts the labels together [default: all,
    /// or the part that the instances are]
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<String>,
    /// Retrieval helps where it raises the metric (0 to 1) by more than this
    #[arg(long, value_name = "T", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) threshold: f64,
    /// File for the labels (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Also write the summary to this file: labels and gains by the length of the targets (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) summary: Option<PathBuf>,
    /// Format of the summary [default: as its file is named, else text]
    #[arg(long, value_name = "FORMAT", requires = "summary")]
    pub(crate) format: Option<ScoreFormat>,
}

/// Metric that labels go by, as the flag or the settings name it.
enum AskedMetric {
    Usual,
    Similarity(Metric),
    Pass,
    Likelihood,
}

pub(super) fn run(args: &LabelJudgeArgs) -> Result<()> {
    run_with(args, &Settings::of_shard(args.shard.as_deref(), screen())?)
}

/// Judges with the metric and the cuts of these settings, where the flags name none.
pub(super) fn run_with(args: &LabelJudgeArgs, settings: &Settings) -> Result<()> {
    let mut inputs: Vec<&Path> = vec![&args.instances, &args.base, &args.rag];
    inputs.extend(args.prompts.as_deref());
    inputs.extend(args.probabilities.as_deref());
    inputs.extend(args.samples_from.as_deref());
    let exec = [(&args.base_exec, "none"), (&args.rag_exec, "rg1")];
    let exec = exec.map(|(given, name)| given.as_deref().map(|given| named(given, name)));
    inputs.extend(exec.iter().flatten().map(|(path, _)| *path));
    check_rereadable(&inputs, "label judge")?;
    check_output(Some(&args.output), &inputs)?;
    if let Some(summary) = &args.summary {
        ScoreFormat::of(args.format, summary)?;
        if check_output(Some(summary), &inputs).is_err() {
            let summary = summary.display();
            return fail(
                format!("--summary would overwrite {summary}, an input"),
                "name another file",
            );
        }
        if *summary == args.output {
            return fail(
                "the labels and their summary cannot both go to one place",
                "name another file with -o or --summary",
            );
        }
    }
    check_threshold(args.threshold)?;
    let departures = settings.departures_with(&[
        (&DECLARED.metrics, args.metric.as_deref()),
        (&DECLARED.postprocess, args.postprocess.as_deref()),
    ]);
    warn_of_some_departures(settings, &departures);
    let metric = match (args.metric.as_deref(), &settings.metrics[..]) {
        (Some(PASS), _) => AskedMetric::Pass,
        (Some(LIKELIHOOD), _) => AskedMetric::Likelihood,
        (Some(name), _) => AskedMetric::Similarity(name.parse()?),
        (None, []) => AskedMetric::Usual,
        (None, [MetricName::One(metric)]) => AskedMetric::Similarity(*metric),
        (None, _) => {
            let several = settings.metrics.texts().join(", ");
            return fail(
                format!("metrics names {several}, and labels go by one metric"),
                "choose it with --metric",
            );
        }
    };
    let by = match (metric, exec) {
        (AskedMetric::Pass, [Some(base), Some(rag)]) => JudgedBy::Tests([base, rag]),
        (AskedMetric::Pass, _) => {
            return fail(
                "--metric pass needs the unit-test results of both predictions",
                "add --base-exec FILE --rag-exec FILE, from `eval --exec --per-task --format jsonl -o FILE`",
            );
        }
        (_, [Some(_), _] | [_, Some(_)]) => {
            return fail(
                "--base-exec and --rag-exec are for --metric pass",
                "add it, or leave them out",
            );
        }
        (AskedMetric::Likelihood, _) => JudgedBy::Likelihood,
        (AskedMetric::Similarity(metric), _) => JudgedBy::Similarity(metric),
        (AskedMetric::Usual, _) => JudgedBy::Usual,
    };
    let postprocess: Postprocess = match (&args.postprocess, settings.postprocess.get()) {
        (Some(steps), _) => steps.parse()?,
        (None, Some(postprocess)) => postprocess.clone(),
        (None, None) if are_chat_answers(&args.base)? || are_chat_answers(&args.rag)? => {
            Postprocess::chat(false)
        }
        (None, None) => Postprocess::own(false),
    };
    if by == JudgedBy::Likelihood && args.postprocess.is_some() {
        return fail(
            "--postprocess cuts predictions, and --metric likelihood has none",
            "leave it out",
        );
    }
    if let JudgedBy::Similarity(metric) = by {
        let scoring = Scoring { metrics: vec![metric], postprocess: postprocess.clone() };
        [&args.base, &args.rag]
            .into_iter()
            .try_for_each(|path| warn_of_ends(path, &scoring, &Screen))?;
    }
    // Labels of a shard's instances are a shard's, too.
    let part = ShardFile::of(&args.instances)?;
    let asked: Option<Shard> = *settings.shard;
    if let (Some(part), Some(asked)) = (&part, asked)
        && part.shard != asked
    {
        let reason = format!(
            "{}: the instances of shard {}, not of {asked}",
            args.instances.display(),
            part.shard
        );
        return fail(reason, "leave --shard out, or name the instances of all repositories");
    }
    let shard = part.as_ref().map(|part| part.shard).or(asked);
    let judging = JudgeSettings {
        instances: &args.instances,
        base: &args.base,
        augmented: &args.rag,
        prompts: args.prompts.as_deref(),
        probabilities: args.probabilities.as_deref(),
        samples: args.samples_from.as_deref(),
        model: args.model.as_deref(),
        by,
        postprocess: &postprocess,
        threshold: args.threshold,
        // A part holds its own instances alone.
        shard: asked.filter(|_| part.is_none()).unwrap_or(Shard::WHOLE),
    };
    let mut output = RecordsOutput::new(&args.output);
    let places: Option<Vec<u64>> = part.as_ref().map(|part| part.positions.of_each().collect());
    let mut positions = Positions::default();
    let judged = judge(&judging, &mut |number, record| {
        let place = places.as_ref().map_or(Some(number as u64), |all| all.get(number).copied());
        place.into_iter().for_each(|place| positions.add(place));
        output.line(record)
    });
    let judged = judged.map_err(|error| with_hint(error, args))?;
    // A shard may have no instance.
    let is_empty = judged.problems.is_empty() && judged.lacking.is_empty() && shard.is_some();
    if judged.gains.is_empty() && !is_empty {
        output::problems(&judged.problems);
        let instances = args.instances.display();
        if judged.lacking.is_empty() && !judged.problems.is_empty() {
            return fail(
                format!("{instances}: no instance could be judged"),
                "the errors above say why",
            );
        }
        return match by {
            JudgedBy::Likelihood => fail(
                format!(
                    "{instances}: no instance has both a likelihood without and one with retrieval"
                ),
                "write them with `complete --likelihood --mode none -o FILE`, and for a mode that retrieves",
            ),
            _ => fail(
                format!(
                    "{instances}: no instance has both a completion without and one with retrieval"
                ),
                "complete the prompts of modes none and given of these instances, and give both files",
            ),
        };
    }
    output.finish()?;
    let mut manifest = Manifest::new("labels");
    // Without any instance, the usual one is not known.
    if !judged.gains.is_empty() {
        manifest.setting("metric", judged.metric.to_string());
    }
    if by != JudgedBy::Likelihood {
        manifest.setting("postprocess", postprocess.to_string());
    }
    manifest.setting("threshold", args.threshold);
    manifest.count("instances", judged.gains.len());
    match shard {
        // Other inputs may differ from those of other shards.
        Some(shard) => {
            manifest.setting("model", args.model.clone());
            let predictions = [("base", Some(&args.base)), ("rag", Some(&args.rag))];
            let others = [
                ("samples-from", args.samples_from.as_ref()),
                ("probabilities", args.probabilities.as_ref()),
            ];
            for (name, path) in predictions.into_iter().chain(others) {
                let mut known = path.map(|path| common(path)).transpose()?.unwrap_or_default();
                known.retain(|name, _| !parts::OWN.contains(&name.as_str()));
                manifest.setting(name, json!(known));
            }
            manifest.count(LACKING, judged.lacking.values().sum());
            match part {
                Some(part) => manifest.digest("instances", &part.digest()),
                None => manifest.input("instances", &args.instances)?,
            }
            write_shard_beside(&args.output, manifest, shard, &positions)?;
        }
        None => {
            for (name, path) in
                [("instances", &args.instances), ("base", &args.base), ("rag", &args.rag)]
            {
                manifest.input(name, path)?;
            }
            write_manifest_beside(&args.output, &manifest.to_record())?;
        }
    }
    output::problems(&judged.problems);
    output::warn_of_numbers(judged.warnings.first());
    for (reason, count) in &judged.lacking {
        let reason = reason.words(&judged.metric);
        output::failed(format!("{} instances are left out: {reason}", group(*count)));
    }
    if args.probabilities.is_some() && judged.probable < judged.gains.len() {
        output::warning(format!(
            "{} of {} instances have no probability in --probabilities, so policy self cannot score them",
            group(judged.gains.len() - judged.probable),
            group(judged.gains.len())
        ));
    }
    let summary = Summary { judged: &judged, lengths: lengths(&judged) };
    summary.text().trim_end().lines().for_each(output::note);
    if let Some(place) = &args.summary {
        write_data(place, written(&summary, ScoreFormat::of(args.format, place)?)?)?;
    }
    Ok(())
}

pub(super) fn check_threshold(threshold: f64) -> Result<()> {
    if threshold.is_finite() {
        return Ok(());
    }
    fail("--threshold must be a number", "the paper's is 0: any improvement counts")
}

/// Path and name of `NAME=FILE`, or of a path alone.
fn named<'a>(given: &'a str, name: &'a str) -> (&'a Path, &'a str) {
    let parts = given.split_once('=').filter(|_| !Path::new(given).exists());
    parts.map_or((Path::new(given), name), |(name, path)| (Path::new(path), name))
}

/// Labels and gains, in all and by the length of the targets.
struct Summary<'a> {
    judged: &'a JudgeSummary,
    lengths: Vec<LengthRow>,
}

/// Instances whose targets have some numbers of lines.
struct LengthRow {
    least: usize,
    /// `None`: without a limit.
    most: Option<usize>,
    counts: LengthCounts,
}

impl Printable for Summary<'_> {
    fn table(&self) -> Table {
        let mut table = Table::new(["lines", "instances", "%", "positive %", "mean gain × 100"]);
        for LengthRow { least, most, counts } in &self.lengths {
            let count = counts.count as f64;
            table.row(vec![
                match most {
                    None => format!("{least}+"),
                    Some(most) if most == least => least.to_string(),
                    Some(most) => format!("{least}-{most}"),
                },
                counts.count.to_string(),
                format!("{:.1}", 100.0 * count / self.judged.gains.len() as f64),
                format!("{:.1}", 100.0 * counts.positive as f64 / count),
                signed(100.0 * counts.gain / count, 2),
            ]);
        }
        table
    }

    /// Share of positive labels, gains by size (figure 10), and both by the length of the targets.
    fn text(&self) -> String {
        let (judged, count) = (self.judged, self.judged.gains.len());
        if count == 0 {
            return "label judge: 0 instances".into();
        }
        format!(
            "label judge: {} instances by {}, {:.2} % positive; gain × 100:\n{}\n\n{}",
            group(count),
            judged.metric,
            100.0 * judged.positive as f64 / count as f64,
            histogram(&judged.buckets()).trim_end(),
            self.table().text(),
        )
    }

    fn json(&self) -> Value {
        let buckets = self.judged.buckets();
        let named =
            buckets.iter().map(|(bucket, count)| (bucket.label().to_string(), count.into()));
        json!({
            "metric": self.judged.metric, "instances": self.judged.gains.len(),
            "positive": self.judged.positive, "buckets": named.collect::<Map<String, Value>>(),
            "lengths": self.lines().collect::<Value>(),
        })
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.lengths.iter().map(|LengthRow { least, most, counts }| {
            json!({
                "lines": {"least": least, "most": most}, "instances": counts.count,
                "positive": counts.positive, "mean_gain": counts.gain / counts.count as f64,
            })
        }))
    }

    fn columns(&self) -> Vec<NamedColumn> {
        columns(Integer, ["lines.least", "lines.most", "instances", "positive"])
            .chain(columns(Number, ["mean_gain"]))
            .collect()
    }
}

/// The instances by the lines of their targets; long ones share a row.
fn lengths(judged: &JudgeSummary) -> Vec<LengthRow> {
    /// First number of lines of each row.
    const FROM: [usize; 9] = [0, 1, 2, 3, 4, 5, 6, 11, 21];
    let row = |(place, &least): (usize, &usize)| {
        let most = FROM.get(place + 1).map(|next| next - 1);
        let mut counts = LengthCounts::default();
        for (_, one) in judged.lengths.range(least..=most.unwrap_or(usize::MAX)) {
            counts.count += one.count;
            counts.positive += one.positive;
            counts.gain += one.gain;
        }
        LengthRow { least, most, counts }
    };
    FROM.iter().enumerate().map(row).filter(|row| row.counts.count > 0).collect()
}

/// Adds the flags and commands that resolve an error.
fn with_hint(error: Error, args: &LabelJudgeArgs) -> anyhow::Error {
    let hint = match &error {
        Error::Artifact { path, .. } if Some(path) == args.probabilities.as_ref() => {
            "`complete --probability-of '<cc>' --after '<eof>'` writes them".into()
        }
        Error::Parameter { name: "augmented", .. } => {
            "name different files with --base and --rag".into()
        }
        Error::Labelling { needed: LabelInput::Likelihoods, .. } => {
            "`complete --likelihood --mode MODE -o FILE` writes them".into()
        }
        Error::Labelling { needed, .. } => {
            let flags = match needed {
                LabelInput::Samples => " (--samples-from FILE)",
                LabelInput::TestResults => {
                    ": `eval --exec --per-task --format jsonl --predictions FILE -o FILE`"
                }
                LabelInput::TestedName => ": --base-exec NAME=FILE, --rag-exec NAME=FILE",
                LabelInput::Model if args.model.is_none() => " (--model NAME)",
                LabelInput::Model | LabelInput::Likelihoods => "",
            };
            error.hint().unwrap_or_default().then(flags)
        }
        _ => return error.into(),
    };
    hinted(error, hint)
}
