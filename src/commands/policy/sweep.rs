//! `policy sweep`: scores of policies, and their curves.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use repoformer_core::label::{LIKELIHOOD, PASS};
use repoformer_core::policy::model::CalibrationMethod;
use repoformer_core::policy::sweep::{Clock, LatencyModel, RequestTimes, SweepCurve};
use repoformer_core::policy::{Example, Examples, Measure, Policy, Threshold};
use repoformer_core::task::NumberedRecords;
use repoformer_store::error::{Error, RequestPart};
use repoformer_store::progress::Work;

use super::labels::{LabelFlags, read_labels};
use super::lacking;
use super::page;
use super::tables::{self, AllSwept, Swept};
use crate::commands::session::{page_in, seed, warn_of_some_departures};
use crate::output::{self, check_output, fail, group, hinted, unknown, write_data};
use crate::settings::{DECLARED, Listed, Settings};
use crate::table::{ScoreFormat, written};
use repoformer_evaluate::scored::{Scored, Trained, score};
use repoformer_evaluate::table::with_embedding;

#[derive(Debug, Args)]
pub(crate) struct PolicySweepArgs {
    #[command(flatten)]
    labels: LabelFlags,
    /// Policy (repeatable, or separated by commas) [default: all whose signals the labels have]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = Listed::of(Policy::ALL))]
    policy: Vec<String>,
    /// Metric: es, the edit similarity of the labels, pass, their unit-test pass rate, or likelihood, the probability of their
    /// targets [default: the labels' own]
    #[arg(long, value_name = "NAME", value_parser = Listed::of(["es", PASS, LIKELIHOOD]))]
    metric: Option<String>,
    /// Trained policy, or `bundled` (repeatable) [default: learned policies are trained here, and score each repository after training on
    /// the others]
    #[arg(long, value_name = "FILE")]
    model: Vec<PathBuf>,
    /// More labelled instances for policies trained here; those of the scored repository are left out (repeatable)
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    train_labels: Vec<PathBuf>,
    /// Method that turns scores of policies trained here into probabilities
    #[arg(long, value_name = "NAME", default_value = "platt", value_parser = Listed::of(["platt", "isotonic"]))]
    calibration: String,
    /// Retrieve where the score is above this, or for this share of the instances, as in 30% (repeatable, or separated by
    /// commas) [default: at every fortieth of the instances]
    #[arg(long, value_name = "T", value_delimiter = ',', allow_negative_numbers = true)]
    threshold: Vec<Threshold>,
    /// Measured times, of a retriever if named: JSONL with task_id, retrieval_ms, generation_ms (repeatable)
    #[arg(long, value_name = "[NAME=]FILE")]
    latency: Vec<String>,
    /// Measured times of completions without retrieval, in the same format [default: those with retrieval]
    #[arg(long, value_name = "FILE")]
    base_latency: Option<PathBuf>,
    /// Time of a retrieval in milliseconds, of a retriever if named (repeatable)
    #[arg(long, value_name = "[NAME=]MS")]
    retrieval_ms: Vec<String>,
    /// Time of a generation in milliseconds
    #[arg(long, value_name = "MS")]
    generation_ms: Option<f64>,
    /// Time of a model's own decision in milliseconds, for policy self [default: that of --base-latency]
    #[arg(long, value_name = "MS")]
    decision_ms: Option<f64>,
    /// Parts of a request that run at the same time: all (parallel), as in the paper, or none (serial) [default: parallel]
    #[arg(long, value_name = "NAME", value_parser = Listed::of(Clock::ALL))]
    clock: Option<String>,
    /// Seed of policy random [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Format: a summary of each policy (text), or every point [default: as FILE is named, else text]
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
    let settings = Settings::without_flags()?;
    let departures = settings.departures_with(&[(&DECLARED.clock, args.clock.as_deref())]);
    warn_of_some_departures(&settings, &departures);
    let format = ScoreFormat::of(args.format, &args.output)?;
    let (retrievers, clocks) = clocks(args, &settings)?;
    let policies: Vec<Policy> =
        args.policy.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
    let method: CalibrationMethod = args.calibration.parse()?;
    check_outputs(args)?;
    let trained = Trained::read(&args.model)?;
    let sweeping = Sweeping {
        args,
        seed: args.seed.map_or_else(|| seed(&settings), Ok)?,
        policies,
        measure: args.metric.as_deref().map(measure).transpose()?,
        method,
        trained,
        retrievers: &retrievers,
        clocks: &clocks,
    };
    let mut sets = Vec::new();
    for (name, files) in label_sets(&args.labels.labels) {
        sets.push(sweeping.set(name, files, sets.first())?);
    }
    let swept = AllSwept { sets: &sets, retrievers: &retrievers };
    let is_untimed = |curve: &SweepCurve| {
        curve.points.iter().any(|point| point.latencies.iter().any(Option::is_none))
    };
    if let Some((_, curve)) = swept.curves().find(|(_, curve)| is_untimed(curve)) {
        output::warning(format!(
            "policy {} has no latency: the time of its decision is not known; give --decision-ms MS, or --base-latency with decision_ms",
            curve.policy
        ));
    }
    write_data(&args.output, written(&swept, format)?)?;
    if let Some(folder) = &args.report {
        page::write(folder, &swept)?;
        output::note(format!("report: {}", page_in(folder).display()));
    }
    if clocks.is_empty() {
        output::note(
            "policy sweep: no latencies: give --latency FILE, or --retrieval-ms MS with --generation-ms MS",
        );
    }
    Ok(())
}

/// The files of each set of labels, `NAME=FILE`; those without a name are one set.
fn label_sets(given: &[PathBuf]) -> Vec<(Option<String>, Vec<PathBuf>)> {
    let mut sets: Vec<(Option<String>, Vec<PathBuf>)> = Vec::new();
    for path in given {
        let text = path.to_string_lossy();
        let parts = text.split_once('=').filter(|(name, _)| !path.exists() && !name.is_empty());
        let (name, file) = match parts {
            Some((name, file)) => (Some(name.to_owned()), file.into()),
            None => (None, path.clone()),
        };
        match sets.iter_mut().find(|(known, _)| *known == name) {
            Some((_, files)) => files.push(file),
            None => sets.push((name, vec![file])),
        }
    }
    sets
}

/// What is swept, whatever the set of labels.
struct Sweeping<'a> {
    args: &'a PolicySweepArgs,
    seed: u64,
    /// Empty: all.
    policies: Vec<Policy>,
    measure: Option<Measure>,
    method: CalibrationMethod,
    trained: Trained,
    retrievers: &'a [String],
    clocks: &'a [LatencyModel],
}

impl Sweeping<'_> {
    /// Curves of the policies over one set of labels, whose metric is that of the `first`.
    fn set(
        &self,
        name: Option<String>,
        files: Vec<PathBuf>,
        first: Option<&Swept>,
    ) -> Result<Swept> {
        let Self { args, policies, trained, .. } = self;
        let asked = !policies.is_empty();
        let policies = if asked { policies.clone() } else { Policy::ALL.to_vec() };
        let flags = |labels| LabelFlags { labels, ..args.labels };
        let mut examples = read_labels(&flags(files), &args.output, &policies, self.measure)?;
        if let Some(first) = first.filter(|first| first.metric != examples.metric) {
            let name = |metric: &Option<String>| {
                metric.clone().unwrap_or_else(|| "none that they name".into())
            };
            return fail(
                format!(
                    "these labels are by metric {}, and those before by {}",
                    name(&examples.metric),
                    name(&first.metric)
                ),
                "gains of two metrics cannot be compared: judge all by one, with `label judge --metric`",
            );
        }
        let more = if args.train_labels.is_empty() {
            Examples::default()
        } else {
            let measure = Some(examples.measure);
            let more = flags(args.train_labels.clone());
            read_labels(&more, &args.output, &policies, measure)?.behind(&examples)
        };
        same_making(&examples, &more)?;
        let [model, metric, fragments] =
            [&examples.model, &examples.metric, &examples.fragments].map(Option::as_deref);
        trained.warnings(&examples.all, model, metric, fragments).iter().for_each(output::warning);
        let mut scored = Vec::new();
        let work = Work::of("policy sweep", "policies", policies.len());
        for policy in policies {
            work.done(1);
            let found = score(policy, &examples.all, &more.all, trained, self.method, self.seed);
            match found.map_err(Into::into).and_then(known) {
                Ok(found) if asked || found.lacking() == 0 => scored.push(found),
                // It was not requested, and would exclude instances from the other policies.
                Ok(found) => output::note(format!(
                    "policy sweep: policy {policy} is left out: {} of {} instances lack {} (--policy {policy} sweeps the rest)",
                    group(found.lacking()),
                    group(examples.all.len()),
                    lacking(policy)
                )),
                Err(reason) if asked => return Err(reason),
                Err(reason) => output::note(format!("policy sweep: left out: {reason:#}")),
            }
        }
        let curves = curves(&mut examples, &scored, &args.threshold, self.clocks)?;
        check_clocks(&examples, self.retrievers, self.clocks)?;
        Ok(Swept {
            name,
            finding: tables::finding(&examples),
            measure: examples.measure,
            metric: examples.metric.clone(),
            curves,
        })
    }
}

/// Checks that no input is overwritten.
fn check_outputs(args: &PolicySweepArgs) -> Result<()> {
    let times = args.latency.iter().map(|text| Path::new(named(text, "").1));
    let labels = label_sets(&args.labels.labels).into_iter().flat_map(|(_, files)| files);
    let labels: Vec<PathBuf> = labels.collect();
    let files = [&labels, &args.train_labels, &args.model].into_iter().flatten();
    let files = files.chain(&args.base_latency).map(PathBuf::as_path);
    check_output(Some(&args.output), files.chain(times))
}

/// Refuses a policy that can score no instance.
fn known(scored: Scored) -> Result<Scored> {
    if scored.ordered.iter().any(Option::is_some) {
        return Ok(scored);
    }
    let (policy, lacking) = (scored.policy, lacking(scored.policy));
    let hint = match policy {
        Policy::TrialRetrieval => {
            "instances have scores where their fragments do: retrieve for them again, and label them with --prompts"
        }
        _ => "complete the instances and label them again",
    };
    fail(format!("policy {policy}: no instance has its signal: {lacking}"), hint)
}

/// Curves of the policies over the instances that all of them can score, of which there must be some; the others are reported.
fn curves(
    examples: &mut Examples,
    scored: &[Scored],
    thresholds: &[Threshold],
    clocks: &[LatencyModel],
) -> Result<Vec<SweepCurve>> {
    let is_kept = |place: usize| scored.iter().all(|scored| scored.ordered[place].is_some());
    let kept: Vec<bool> = (0..examples.all.len()).map(is_kept).collect();
    let lack = scored.iter().filter(|scored| scored.lacking() > 0);
    if !kept.contains(&true) {
        let needs = lack.map(|one| format!("{} needs {}", one.policy, lacking(one.policy)));
        return fail(
            format!(
                "no instance can be scored by all of these policies: {}",
                needs.collect::<Vec<_>>().join("; ")
            ),
            "sweep them one by one, or label the instances again with the signals of all",
        );
    }
    for scored in lack {
        let (count, policy) = (group(scored.lacking()), scored.policy);
        let signal = lacking(policy);
        output::failed(format!(
            "{count} instances are left out of every curve: policy {policy} lacks {signal}"
        ));
    }
    let mut each = kept.iter();
    examples.all.retain(|_| each.next() == Some(&true));
    let of_kept = |scores: &[Option<f64>]| -> Vec<f64> {
        scores
            .iter()
            .zip(&kept)
            .filter(|(_, kept)| **kept)
            .filter_map(|(score, _)| *score)
            .collect()
    };
    let curve = |scored: &Scored| {
        let ordered = of_kept(&scored.ordered);
        let probabilities = scored.probabilities.as_deref().map(of_kept);
        // Thresholds compare with what is known at decision time.
        let scores = match (&probabilities, thresholds) {
            (Some(probabilities), [_, ..]) => probabilities,
            _ => &ordered,
        };
        let probabilities = probabilities.as_deref();
        tell_thresholds(scored.policy, scores, thresholds);
        SweepCurve::of(scored.policy, &examples.all, scores, probabilities, thresholds, clocks)
    };
    Ok(scored.iter().map(curve).collect())
}

/// Reports the number that a share comes to, and thresholds that tell no instances apart.
fn tell_thresholds(policy: Policy, scores: &[f64], thresholds: &[Threshold]) {
    if matches!(policy, Policy::Never | Policy::Always) {
        return;
    }
    let count = scores.len();
    for &asked in thresholds {
        let threshold = asked.value(scores);
        let retrieved = scores.iter().filter(|score| **score > threshold).count();
        let [retrieves, all] = [retrieved, count].map(group);
        match asked.at_most(count) {
            Some(_) => output::note(format!(
                "policy sweep: {policy} at {asked}: retrieves for {retrieves} of {all} instances, those whose score is above {threshold}; \
                 `run --policy {policy}@{threshold}` uses this number on other tasks"
            )),
            None if retrieved == 0 || retrieved == count => {
                let (equals, few) =
                    if retrieved == 0 { ("never", "no") } else { ("always", "every") };
                output::note(format!(
                    "policy sweep: {policy}: {few} instance has a score above {asked}, so it equals {equals} there"
                ));
            }
            None => {}
        }
    }
}

/// Checks that measured times belong to these instances.
fn check_clocks(examples: &Examples, retrievers: &[String], clocks: &[LatencyModel]) -> Result<()> {
    for (name, clock) in retrievers.iter().zip(clocks) {
        if clock.is_measured() {
            let mut numbered = NumberedRecords::default();
            let known = examples.all.iter().filter(|example| clock.knows(example));
            known.for_each(|example| numbered.add(&example.id));
            output::warn_of_numbers(numbered.warning(format_args!("the times of {name}"), None));
        }
        let all = examples.all.len();
        let count = |knows: &dyn Fn(&Example) -> bool| {
            examples.all.iter().filter(|example| knows(example)).count()
        };
        let mut found = vec![(name.clone(), count(&|example| clock.knows(example)))];
        if clock.has_base() {
            let name = format!("{name} without retrieval");
            found.push((name, count(&|example| clock.knows_base(example))));
        }
        for (name, known) in found {
            if known == 0 {
                return fail(
                    format!("the times of {name} belong to none of these instances"),
                    "give the times of their own predictions, or --retrieval-ms MS with --generation-ms MS",
                );
            }
            if known < all {
                let (without, all) = (group(all - known), group(all));
                output::warning(format!(
                    "{without} of {all} instances have no time of {name}; the mean of the others is used"
                ));
            }
        }
    }
    Ok(())
}

/// The measure of a name.
fn measure(name: &str) -> Result<Measure> {
    match name {
        "es" => Ok(Measure::Similarity),
        PASS => Ok(Measure::Pass),
        LIKELIHOOD => Ok(Measure::Likelihood),
        other => unknown("unknown metric", other, &["es", PASS, LIKELIHOOD]),
    }
}

/// Checks that the training labels are of the same model, metric and fragments.
fn same_making(examples: &Examples, more: &Examples) -> Result<()> {
    let name =
        |metric: &Option<String>| metric.clone().unwrap_or_else(|| "they do not name".into());
    if !more.all.is_empty() && examples.metric != more.metric {
        let (here, there) = (name(&examples.metric), name(&more.metric));
        return fail(
            format!("--train-labels are by the metric {there}, but --labels by {here}"),
            "gains of two metrics cannot be compared: judge both by one, with `label judge --metric`",
        );
    }
    if let (Some(here), Some(there)) = (&examples.fragments, &more.fragments)
        && here != there
    {
        return fail(
            format!("--train-labels have {there}, but --labels have {here}"),
            "scores of two kinds of fragments cannot be compared: give the labels of one",
        );
    }
    match (&examples.model, &more.model) {
        (Some(here), Some(there)) if here != there => fail(
            format!("--train-labels are of model {there}, but --labels of {here}"),
            "what helps one model may not help another: label both with the same model",
        ),
        _ => Ok(()),
    }
}

/// The clocks and their retrievers' names, in the order of the flags.
fn clocks(args: &PolicySweepArgs, settings: &Settings) -> Result<(Vec<String>, Vec<LatencyModel>)> {
    let (mut names, mut clocks) = (Vec::new(), Vec::new());
    let by: Clock = match &args.clock {
        Some(clock) => clock.parse()?,
        None => *settings.clock,
    };
    for text in &args.latency {
        let (name, file) = named(text, "measured");
        let base = args.base_latency.as_deref();
        let clock = LatencyModel::read(Path::new(file), base, args.generation_ms);
        let clock = clock.map_err(|error| match (&error, error.hint()) {
            (Error::NoTime { part, .. }, Some(hint)) => {
                let way = match part {
                    RequestPart::Retrieval => "give --retrieval-ms instead of this file",
                    RequestPart::Generation | RequestPart::BaseGeneration => "add --generation-ms",
                };
                hinted(error, hint.then(format!(", or {way}")))
            }
            _ => error.into(),
        })?;
        if clock.without_embedding {
            output::warning(format!(
                "{file}: the times of retrieval lack those for the queries' dense vectors, which came from a file"
            ));
        }
        if let Some(benchmark) = benchmark_of(Path::new(file)) {
            if let Some(other) = base.and_then(benchmark_of).filter(|other| *other != benchmark) {
                return fail(
                    format!(
                        "{file} has the times of benchmark {benchmark}, and --base-latency those of {other}"
                    ),
                    "give both of one benchmark",
                );
            }
            output::note(format!(
                "policy sweep: the times of {name} are of benchmark {benchmark}; labels do not name theirs"
            ));
        }
        names.push(with_embedding(name, clock.without_embedding));
        clocks.push(clock.deciding(args.decision_ms).by(by));
    }
    if args.latency.is_empty() && args.base_latency.is_some() {
        return fail(
            "--base-latency gives the times of completions without retrieval, but those with retrieval are missing",
            "add --latency FILE",
        );
    }
    for text in &args.retrieval_ms {
        let (name, number) = named(text, "retrieval");
        let retrieval = milliseconds("--retrieval-ms", number)?;
        let Some(generation) = args.generation_ms else {
            return fail(
                "--retrieval-ms gives the time of a retrieval, but that of a generation is missing",
                "add --generation-ms MS",
            );
        };
        names.push(name);
        let clock = LatencyModel::given(RequestTimes::new(retrieval, generation));
        clocks.push(clock.deciding(args.decision_ms).by(by));
    }
    if clocks.is_empty() && args.generation_ms.is_some() {
        return fail(
            "--generation-ms gives the time of a generation, but that of a retrieval is missing",
            "add --retrieval-ms MS, or --latency FILE",
        );
    }
    for (place, name) in names.iter().enumerate() {
        if names[..place].contains(name) {
            return fail(
                format!("two retrievers have the name '{name}'"),
                "name them: --retrieval-ms sparse=12 --retrieval-ms dense=350",
            );
        }
    }
    for time in args.generation_ms.into_iter().chain(args.decision_ms) {
        milliseconds("a time", &time.to_string())?;
    }
    Ok((names, clocks))
}

/// The benchmark of a cache's times, which their folder alone names: `latency/BENCHMARK/FILE`.
fn benchmark_of(path: &Path) -> Option<&str> {
    let folder = path.parent()?;
    let is_cached = folder.parent()?.file_name()? == "latency";
    folder.file_name()?.to_str().filter(|_| is_cached)
}

/// `NAME=VALUE`, or a value alone.
fn named<'a>(text: &'a str, otherwise: &str) -> (String, &'a str) {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !name.contains('/') => (name.into(), value),
        _ => (otherwise.into(), text),
    }
}

fn milliseconds(flag: &str, text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => fail(
            format!("invalid {flag} '{text}': expected a number of milliseconds"),
            "a number of at least 0, as in 12.5",
        ),
    }
}
