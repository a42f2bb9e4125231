//! `eval`

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::{HoleContext, Postprocess, Step};
use repoformer_core::repository::Shard;
use repoformer_core::retrieve::Mode;
use repoformer_core::task::TaskSet;
use repoformer_evaluate::conditions::{Conditions, differences, read_parameters};
use repoformer_evaluate::pairs;
use repoformer_evaluate::score::{MissingPredictions, Scoring, score_pairs, score_tasks};
use repoformer_evaluate::table::percent;
use repoformer_formats::merge::{Positions, SHARD_PARAMETERS};
use repoformer_pipeline as pipeline;
use repoformer_pipeline::{Evaluation, Experiment, cached_predictions};
use repoformer_store::artifact::header_path;
use repoformer_store::error;
use repoformer_store::manifest::Manifest;
use repoformer_study::choices::{
    completed_modes, completion, resampling, set_profile, warn_of_departures,
};
use repoformer_study::experiments::{asked_scoring, cut_answers, stem, without_repositories};
use repoformer_study::mixed;
use repoformer_study::scoring::{scoring, warn_of_ends};
use repoformer_text::language::Language;
use serde_json::json;

use super::eval_output::{NamedScores, Results, write_results};
use super::eval_score::{ScoringSettings, score, tell_uncut, with_missing};
use super::{eval_names, eval_retrieval, parts};
use crate::commands::eval_args::EvalArgs;
use crate::commands::session::{check_not_tasks, open};
use crate::output::{self, Screen, check_output, fail};
use crate::settings::Settings;
use crate::table::ScoreFormat;

pub(crate) fn run(args: &EvalArgs) -> Result<()> {
    let settings = open(&args.settings)?;
    args.format()?;
    let shard: Option<Shard> = *settings.shard;
    if shard.is_some() {
        check_mergeable(args)?;
    }
    check_not_tasks(&settings, Some(&args.output))?;
    check_output(Some(&args.output), args.pairs.iter().chain(&args.predictions))?;
    if args.retrieval {
        return eval_retrieval::run(args, &settings);
    }
    if args.definitions || args.unresolved {
        return eval_names::run(args, &settings);
    }
    if args.exec.exec {
        #[cfg(target_os = "linux")]
        return super::eval_exec::run(args, &settings);
        #[cfg(not(target_os = "linux"))]
        bail!("tests can run only on Linux");
    }
    if let Some(path) = &args.pairs {
        return of_pairs(args, path, &settings);
    }
    let (mut experiment, settings) = without_repositories(&settings)?;
    if let Some(path) = &args.predictions {
        cut_answers(&mut experiment, &settings, path)?;
    }
    let Some(tasks) = &experiment.tasks else {
        bail!("--tasks is not set, so there is nothing to score against")
    };
    let all = experiment.all_tasks().unwrap_or(tasks);
    let judging = ScoringSettings {
        scoring: scoring(&settings, &experiment, &[Metric::RepoCoder]),
        missing: args.missing.parse()?,
    };
    let mut manifest = judging.manifest();
    manifest.input("tasks", &tasks.path)?;
    let (named, mixed) = if args.check_references {
        (vec![references(tasks, &judging.scoring)?], Vec::new())
    } else {
        let scored = of_predictions(args, &experiment, &settings, &judging, &mut manifest)?;
        warn_of_ceilings(tasks, &judging.scoring)?;
        scored
    };
    if !mixed.is_empty() {
        manifest.setting("mixed", mixed.clone());
    }
    set_profile(&mut manifest, &settings);
    manifest.count("tasks", tasks.tasks().len());
    let part = shard.map(|shard| {
        let rows = |(_, scores): &NamedScores| scores.tasks.iter().map(|task| task.row).collect();
        (shard, parts::positions(all, named.iter().map(rows)))
    });
    write(args, &settings, &named, mixed, &manifest, part)
}

/// Rejects options for which `merge` could not combine the scores of shards.
fn check_mergeable(args: &EvalArgs) -> Result<()> {
    let others = [
        ("--retrieval", args.retrieval),
        ("--pairs", args.pairs.is_some()),
        ("--results", args.results.is_some()),
        ("--mine-tests", args.exec.mine_tests),
    ];
    if let Some((flag, _)) = others.iter().find(|(_, is_given)| *is_given) {
        return fail(
            format!("--shard cannot be used with {flag}, since a shard has only scores of tasks"),
            "leave one of the two out",
        );
    }
    if args.per_task && args.format()? == ScoreFormat::Jsonl && args.output != Path::new("-") {
        return Ok(());
    }
    fail(
        "mean scores of shards cannot be combined",
        "write the scores of each task with --per-task -o FILE.jsonl, and combine them with `merge`",
    )
}

fn write(
    args: &EvalArgs,
    settings: &Settings,
    named: &[NamedScores],
    mixed: Vec<String>,
    manifest: &Manifest,
    part: Option<(Shard, Positions)>,
) -> Result<()> {
    let (per_task, resampling) = (args.per_task, resampling(settings)?);
    let manifest = parts::of_part(manifest.to_record(), part);
    if args.format()? != ScoreFormat::Text {
        warn_of_departures(settings);
    }
    let departures = settings.departure_line();
    Results { named, per_task, resampling, mixed, departures, manifest }.write(args)
}

fn of_pairs(args: &EvalArgs, path: &Path, settings: &Settings) -> Result<()> {
    let language: Option<Language> = *settings.language;
    let mut scoring = asked_scoring(settings, &[])?;
    if settings.postprocess.is_none() {
        // Cuts in a metric's definition still apply.
        scoring.postprocess = Postprocess::NONE;
    }
    let judging = ScoringSettings { scoring, missing: MissingPredictions::Error };
    let scoring = &judging.scoring;
    let mut manifest = judging.manifest();
    manifest.input("pairs", path)?;
    let reading = pairs::read(path)?;
    output::problems(&reading.problems);
    if reading.pairs.is_empty() {
        bail!("{}: no pair to score", path.display());
    }
    manifest.count("pairs", reading.pairs.len());
    manifest.count("unusable", error::count(&reading.problems));
    let language = language.unwrap_or_default();
    let scores = score_pairs(&reading.pairs, &scoring.metrics, &scoring.postprocess, language);
    set_profile(&mut manifest, settings);
    tell_uncut(path, &scores);
    let named = [("pairs".into(), scores)];
    write(args, settings, &named, Vec::new(), &manifest, None)?;
    // The program ends: freeing hundreds of thousands of small texts would take a tenth of its time.
    std::mem::forget((reading, named));
    Ok(())
}

/// Returns the references as predictions.
fn ground_truths(tasks: &TaskSet) -> Vec<Vec<String>> {
    tasks.tasks().iter().map(|task| vec![task.ground_truth.clone()]).collect()
}

/// Warns of metrics that truncate targets, with the score that the references would have.
fn warn_of_ceilings(tasks: &TaskSet, scoring: &Scoring) -> Result<()> {
    let Scoring { metrics, postprocess } = scoring;
    let cuts = |metric: &&Metric| {
        let recipe = postprocess.recipe(**metric);
        [Step::Statement, Step::FirstLine, Step::Bracket].iter().any(|step| recipe.has(*step))
    };
    let cutting: Vec<Metric> = metrics.iter().filter(cuts).copied().collect();
    if cutting.is_empty() {
        return Ok(());
    }
    let truth = ground_truths(tasks);
    let scores = score_tasks(tasks, &truth, &cutting, postprocess, MissingPredictions::Error)?;
    for mean in scores.all.means.iter().filter(|mean| mean.get("em") < Some(1.0)) {
        let values = mean.metric.values().iter().zip(&mean.values);
        let values = values.map(|(name, value)| format!("{name} {}", percent(*value)));
        let (metric, values) = (mean.metric, values.collect::<Vec<_>>().join(", "));
        output::warning(format!(
            "{metric} truncates these targets, so that even the targets themselves score less than 100: {values}"
        ));
    }
    Ok(())
}

/// Scores the references as predictions.
fn references(tasks: &TaskSet, scoring: &Scoring) -> Result<NamedScores> {
    let Scoring { metrics, postprocess } = scoring;
    let truth = ground_truths(tasks);
    let scores = score_tasks(tasks, &truth, metrics, postprocess, MissingPredictions::Error)?;
    let mut imperfect = Vec::new();
    for (score, task) in scores.tasks.iter().zip(tasks.tasks()) {
        for one in &score.scores {
            let cut = postprocess.recipe(one.metric);
            let target = cut.apply(HoleContext::new(task), &task.ground_truth).target;
            if one.values != one.metric.best(&target, task.language()) {
                let reason = format!("its reference scores below the maximum of {}", one.metric);
                imperfect.push(tasks.error(task, reason));
            }
        }
    }
    output::problems(&imperfect);
    Ok(("references".into(), scores))
}

/// Scores the predictions of a file, or of each mode in the cache; with `--allow-mixed`, also reports their different conditions.
fn of_predictions(
    args: &EvalArgs,
    experiment: &Experiment,
    settings: &Settings,
    judging: &ScoringSettings,
    manifest: &mut Manifest,
) -> Result<(Vec<NamedScores>, Vec<String>)> {
    let mut of_file = |name: String, path: &Path, folder: Option<PathBuf>| {
        let input = parts::input_predictions(manifest, &name, path, experiment, args)?;
        let mut made_with = read_parameters(path)?;
        if experiment.layout.shard.is_some() {
            made_with.retain(|name, _| !SHARD_PARAMETERS.contains(&name.as_str()));
        }
        if !made_with.is_empty() {
            manifest.setting(&input, json!(made_with));
        }
        let evaluation = score(experiment, path, judging)?;
        let Evaluation { scores, tasks, samples, problems, .. } = evaluation;
        let scores = scores.map_err(with_missing)?;
        warn_of_ends(path, &judging.scoring, &Screen)?;
        if let Some(folder) = folder {
            let mut own = judging.manifest();
            if let Some(tasks) = &experiment.tasks {
                own.input("tasks", &tasks.path)?;
            }
            own.input("predictions", path)?;
            own.count("tasks", tasks.tasks().len());
            own.count("unusable", error::count(&problems));
            set_profile(&mut own, settings);
            let postprocess = &judging.scoring.postprocess;
            write_results(&folder, (&tasks, &samples), postprocess, judging.missing, own)?;
        }
        Ok::<NamedScores, anyhow::Error>((name, scores))
    };
    if let Some(path) = &args.predictions {
        let name = stem(path);
        return Ok((vec![of_file(name, path, args.results.clone())?], Vec::new()));
    }
    let completion = completion(settings)?;
    let (modes, mut left_out) = completed_modes(settings, experiment, &completion)?;
    let (mut named, mut conditions, mut prompts) = (Vec::new(), Vec::new(), Vec::new());
    for mode in modes {
        let path = cached_predictions(experiment, mode, &completion)?;
        let folder = args.results.as_ref().map(|folder| folder.join(mode.name()));
        let one = of_file(mode.to_string(), &path, folder)?;
        if experiment.layout.shard.is_some() {
            prompts.extend(parts::prompts_digest(experiment, mode).map(|digest| (mode, digest)));
        }
        if header_path(&path).exists() && experiment.layout.shard.is_none() {
            let known = (one.1.missing == 0).then_some(&one.1);
            let (model, scoring) = (&completion.model, &judging.scoring);
            // Scores that cannot be cached are still printed.
            if let Err(error) = pipeline::scores(experiment, mode, model, scoring, known) {
                output::problems(&[error]);
            }
        }
        let mut known = Conditions::of_predictions(&read_parameters(&path)?);
        known.set_samples(one.1.samples());
        conditions.push(known);
        named.push(one);
    }
    for (mode, digest) in prompts {
        manifest.digest(&format!("prompts.{mode}"), &digest);
    }
    if named.is_empty() {
        return fail(
            "the cache holds no predictions to score",
            "run `repoformer complete` first, or name a file with --predictions",
        );
    }
    left_out.retain(|mode| *mode != Mode::Given);
    if !left_out.is_empty() {
        let names: Vec<&str> = left_out.iter().map(|mode| mode.name()).collect();
        output::note(format!("eval: not completed yet: {}", names.join(", ")));
    }
    let names = named.iter().map(|(name, _)| name.as_str());
    let mixed = differences(&names.zip(&conditions).collect::<Vec<_>>());
    mixed::check(&mixed, args.allow_mixed, &Screen)?;
    Ok((named, mixed))
}
