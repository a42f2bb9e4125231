//! `label judge`: whether retrieval helps a model with an instance.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use repoformer_core::label::{FragmentSet, LIKELIHOOD, PASS};
use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::Postprocess;
use repoformer_core::repository::Shard;
use repoformer_evaluate::label::{
    JudgeSettings, JudgeSummary, JudgeTable, LabelCriterion, LabelMetric, check_threshold,
    usual_postprocess,
};
use repoformer_evaluate::score::Scoring;
use repoformer_evaluate::table::Printable;
use repoformer_formats::label::InstanceJudgement;
use repoformer_store::files;
use repoformer_study::choices::warn_of_some_departures;
use repoformer_study::scoring::warn_of_ends;
use repoformer_text::counts::{format_count, part, subject};

use crate::output::{self, Screen, check_output, check_rereadable, fail, screen, write_data};
use crate::records_output::RecordsOutput;
use crate::settings::{DECLARED, MetricName, SettingValue, Settings, ValueList};
use crate::table::{ScoreFormat, format_results};

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
    /// Prompts of --rag; needed if the instances do not include their fragments, as in benchmarks
    #[arg(long, value_name = "FILE")]
    pub(crate) prompts: Option<PathBuf>,
    /// Tasks that show some of an instance's fragments, from --next-fragments, and their predictions in mode given: adds the gains
    /// of these fragments to the labels; repeatable
    #[arg(long, value_name = "TASKS=FILE", value_parser = split_trials)]
    pub(crate) fragments: Vec<[PathBuf; 2]>,
    /// Write tasks to this file, to be completed in mode given: first each instance with one fragment at a time, then, with the
    /// results in --fragments, the best set so far with one more fragment at a time. The file is empty if no set can grow
    #[arg(long, value_name = "FILE")]
    pub(crate) next_fragments: Option<PathBuf>,
    /// Probabilities of the token that asks for retrieval, for policy self, from `complete --probability-of`
    #[arg(long, value_name = "FILE")]
    pub(crate) probabilities: Option<PathBuf>,
    /// Samples of completions without retrieval, for policy entropy, from `complete --mode none --samples 20 --temperature 1`
    #[arg(long, value_name = "FILE")]
    pub(crate) samples_from: Option<PathBuf>,
    /// Metric that decides whether retrieval helps: edit similarity by a metric of `eval`; pass (the unit-test pass rate); or
    /// likelihood (the probability of the target; --base and --rag come from `complete --likelihood`) [default: from the settings
    /// or the profile; otherwise repocoder for lines and calls, repoformer for chunks and functions]
    #[arg(long, value_name = "NAME", value_parser = ValueList::new(Metric::ALL).and(PASS).and(LIKELIHOOD))]
    pub(crate) metric: Option<String>,
    /// How to cut predictions before scoring, as in `eval` [default: own; chat,own for answers of the chat API]
    #[arg(long, value_name = "STEPS")]
    pub(crate) postprocess: Option<String>,
    /// Unit-test results of --base, from `eval --exec --per-task --format jsonl`, for --metric pass; NAME is the name of the
    /// predictions in the results [default: none]
    #[arg(long, value_name = "[NAME=]FILE", requires = "rag_exec")]
    pub(crate) base_exec: Option<String>,
    /// Unit-test results of --rag, in the same form [default: rg1]
    #[arg(long, value_name = "[NAME=]FILE", requires = "base_exec")]
    pub(crate) rag_exec: Option<String>,
    /// Name of the model [default: as in the predictions]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Judge one shard of the instances' repositories, for example 2/8; combine the labels with `merge` [default: all, or the
    /// shard that the instances are from]
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<String>,
    /// Minimum gain: retrieval helps if it raises the metric (0 to 1) by more than this
    #[arg(long, value_name = "T", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) threshold: f64,
    /// File for the labels (`-`: standard output)
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Also write a summary to this file: labels and gains by target length (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) summary: Option<PathBuf>,
    /// Format of the summary [default: from the extension of its file, else text]
    #[arg(long, value_name = "FORMAT", requires = "summary")]
    pub(crate) format: Option<ScoreFormat>,
}

pub(super) fn run(args: &LabelJudgeArgs) -> Result<()> {
    let judged = judge(args, &Settings::of_shard(args.shard.as_deref(), screen())?)?;
    report(args, &judged)
}

/// Judges with the metric and the cuts of these settings, unless flags name others. Writes the labels, and not the summary.
pub(super) fn judge(args: &LabelJudgeArgs, settings: &Settings) -> Result<JudgeSummary> {
    let exec = [(&args.base_exec, "none"), (&args.rag_exec, "rg1")];
    let exec = exec.map(|(given, name)| given.as_deref().map(|given| split_name(given, name)));
    args.check_files(exec)?;
    check_threshold(args.threshold)?;
    let departures = settings.departures_with(&[
        (&DECLARED.metrics, args.metric.as_deref()),
        (&DECLARED.postprocess, args.postprocess.as_deref()),
    ]);
    warn_of_some_departures(settings, &departures);
    let by = LabelCriterion::new(args.metric(settings)?, exec)?;
    let postprocess: Postprocess = match (&args.postprocess, settings.postprocess.get()) {
        (Some(steps), _) => steps.parse()?,
        (None, Some(postprocess)) => postprocess.clone(),
        (None, None) => usual_postprocess([&args.base, &args.rag])?,
    };
    match by {
        LabelCriterion::Tests(_) if args.next_fragments.is_some() || !args.fragments.is_empty() => {
            return fail(
                "--fragments and --next-fragments cannot be used with --metric pass, which needs a run of the tests for each set",
                "choose another metric",
            );
        }
        LabelCriterion::Likelihood if args.postprocess.is_some() => {
            return fail(
                "--postprocess cannot be used with --metric likelihood, which has no predictions to cut",
                "leave it out",
            );
        }
        LabelCriterion::Similarity(metric) => {
            let scoring = Scoring { metrics: vec![metric], postprocess: postprocess.clone() };
            [&args.base, &args.rag]
                .into_iter()
                .try_for_each(|path| warn_of_ends(path, &scoring, &Screen))?;
        }
        _ => {}
    }
    let judging = JudgeSettings {
        instances: &args.instances,
        base: &args.base,
        augmented: &args.rag,
        trials: &args.fragments,
        prompts: args.prompts.as_deref(),
        probabilities: args.probabilities.as_deref(),
        samples: args.samples_from.as_deref(),
        model: args.model.as_deref(),
        by,
        postprocess: &postprocess,
        threshold: args.threshold,
        shard: Shard::WHOLE,
    };
    let judgement = InstanceJudgement::new(judging, *settings.shard)?;
    let mut output = RecordsOutput::new(&args.output);
    let mut next = args.next_fragments.as_deref().map(RecordsOutput::new);
    let (mut without, mut long) = (0, 0);
    let labels = judgement.judge(&mut |row, label| {
        if let Some(next) = &mut next {
            let count = label.cross_file.fragments.len();
            without += usize::from(count == 0);
            long += usize::from(count > FragmentSet::MOST);
            let wanted = label.gains.wanted(count);
            wanted.into_iter().try_for_each(|shown| next.line(&label.trial(row, shown)))?;
        }
        output.line(&label.to_record())
    })?;
    if let Err(nothing) = judgement.check(&labels) {
        output::problems(&labels.summary.problems);
        return Err(nothing.into());
    }
    next.map_or(Ok(()), RecordsOutput::finish)?;
    let all = labels.summary.gains.len();
    if without > 0 {
        output::warning(format!(
            "{} no list of fragments, so --next-fragments has no task of {}",
            part(without, all, "instance", ["has", "have"]),
            if without == 1 { "it" } else { "them" }
        ));
    }
    if long > 0 {
        output::warning(format!(
            "{} more than {} fragments; --next-fragments shows only the first {}",
            part(long, all, "instance", ["has", "have"]),
            FragmentSet::MOST,
            FragmentSet::MOST
        ));
    }
    output.finish()?;
    judgement.write_manifest(&labels, &args.output)?;
    Ok(labels.summary)
}

/// Prints the counts, and writes the summary.
pub(super) fn report(args: &LabelJudgeArgs, judged: &JudgeSummary) -> Result<()> {
    output::problems(&judged.problems);
    output::warn_of_numbers(judged.warnings.first());
    for (reason, count) in &judged.lacking {
        let reason = reason.words(&judged.metric);
        output::count_failure(format!(
            "{} left out: {reason}",
            subject(*count, "instance", ["is", "are"])
        ));
    }
    if judged.fragments.unanswered > 0 {
        output::count_failure(format!(
            "{} no completion in --fragments",
            subject(judged.fragments.unanswered, "task", ["has", "have"])
        ));
    }
    if judged.fragments.unseen > 0 {
        output::warning(format!(
            "{} in --fragments: the answer does not contain the prompt, so fragments that did not fit into it count as shown",
            format_count(judged.fragments.unseen as u64, "task")
        ));
    }
    if judged.fragments.cut > 0 {
        output::warning(format!(
            "{} in --fragments: the prompt shows only a part of a fragment",
            format_count(judged.fragments.cut as u64, "task")
        ));
    }
    let all = judged.gains.len();
    if args.probabilities.is_some() && judged.probable < all {
        output::warning(format!(
            "{} no probability in --probabilities, so policy self cannot score them",
            part(all - judged.probable, all, "instance", ["has", "have"])
        ));
    }
    let table = JudgeTable::new(judged);
    table.text().trim_end().lines().for_each(output::note);
    if let Some(place) = &args.summary {
        write_data(place, format_results(&table, ScoreFormat::choose(args.format, place)?)?)?;
    }
    Ok(())
}

impl LabelJudgeArgs {
    /// Checks that all inputs can be read twice, and that no output overwrites an input or the other.
    fn check_files(&self, exec: [Option<(&Path, &str)>; 2]) -> Result<()> {
        let optional = [&self.prompts, &self.probabilities, &self.samples_from];
        let mut inputs: Vec<&Path> = vec![&self.instances, &self.base, &self.rag];
        inputs.extend(optional.into_iter().flatten().map(PathBuf::as_path));
        inputs.extend(exec.iter().flatten().map(|(path, _)| *path));
        inputs.extend(self.fragments.iter().flatten().map(PathBuf::as_path));
        check_rereadable(&inputs, "label judge")?;
        check_output(Some(&self.output), &inputs)?;
        if let Some(next) = &self.next_fragments {
            if check_output(Some(next), &inputs).is_err() {
                return fail(
                    format!("--next-fragments would overwrite {}, an input", next.display()),
                    "name another file",
                );
            }
            let others = [Some(&self.output), self.summary.as_ref()].into_iter().flatten();
            if others.into_iter().any(|other| is_same_output(next, other)) {
                return fail(
                    "--next-fragments names the file of another output",
                    "name another file",
                );
            }
        }
        let Some(summary) = &self.summary else { return Ok(()) };
        ScoreFormat::choose(self.format, summary)?;
        if check_output(Some(summary), &inputs).is_err() {
            return fail(
                format!("--summary would overwrite {}, an input", summary.display()),
                "name another file",
            );
        }
        if is_same_output(summary, &self.output) {
            return fail(
                "the labels and the summary cannot go to the same file",
                "name another file with -o or --summary",
            );
        }
        Ok(())
    }

    /// Returns the metric of the labels, from the flag or the settings.
    fn metric(&self, settings: &Settings) -> Result<LabelMetric> {
        match (self.metric.as_deref(), &settings.metrics[..]) {
            (Some(name), _) => Ok(name.parse()?),
            (None, []) => Ok(LabelMetric::Usual),
            (None, [MetricName::One(metric)]) => Ok(LabelMetric::Similarity(*metric)),
            (None, _) => fail(
                format!(
                    "metrics has several values ({}), but labels use one metric",
                    settings.metrics.texts().join(", ")
                ),
                "choose it with --metric",
            ),
        }
    }
}

/// Returns true if two paths of outputs, which need not exist, name the same file.
fn is_same_output(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = files::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
        Some(folder.join(path.file_name()?))
    };
    one == other || place(one).is_some_and(|one| Some(one) == place(other))
}

/// Splits `TASKS=FILE` into both paths.
fn split_trials(given: &str) -> Result<[PathBuf; 2], &'static str> {
    match files::split_name(given) {
        (Some(tasks), answers) => Ok([tasks.into(), answers.into()]),
        (None, _) => Err("name the tasks from --next-fragments and their predictions: TASKS=FILE"),
    }
}

/// Splits `NAME=FILE` into path and name; a path alone gets the default name.
fn split_name<'a>(given: &'a str, name: &'a str) -> (&'a Path, &'a str) {
    let (own, path) = files::split_name(given);
    (Path::new(path), own.unwrap_or(name))
}
