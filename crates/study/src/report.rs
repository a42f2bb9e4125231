//! Command `report`: writes one HTML page and its figures, from predictions in the cache or in files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::UncutReason;
use repoformer_core::retrieve::Mode;
use repoformer_core::task::TaskSet;
use repoformer_evaluate::conditions::{Conditions, differences, read_parameters};
use repoformer_evaluate::executed::{self, TestOutcome, is_of, read_executed};
use repoformer_evaluate::predictions;
use repoformer_evaluate::report::{ReportContents, ReportFinding};
use repoformer_evaluate::score::{MissingPredictions, Scores, Scoring};
use repoformer_evaluate::statistics::Resampling;
use repoformer_pipeline::report::{Contender, ReportBuilder, ReportTexts, foresee_figures};
use repoformer_pipeline::{
    Experiment, Messages, PlanVerdict, PlannedArtifact, cached_predictions, evaluate,
};
use repoformer_store::artifact::{digest, parameters, write_file, write_file_with};
use repoformer_store::files;
use repoformer_store::manifest::{self, Manifest, write_document};
use repoformer_text::counts::part;
use repoformer_text::message;
use repoformer_text::message::UserChoice;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::choices::{completed_modes, completion, page_in, set_profile};
use crate::experiments::{of_kind, stem};
use crate::scoring::{scoring, warn_of_ends};
use crate::settings::{DECLARED, Settings};
use crate::{fail, mixed, unknown};

/// Files of a report: its page, and the folder of its figures.
struct ReportPaths {
    page: PathBuf,
    folder: PathBuf,
}

impl ReportPaths {
    /// Returns the files in a folder, or next to the page itself if `output` ends in `.html`.
    fn new(output: &Path) -> Self {
        if output.extension().is_some_and(|ending| ending == "html") {
            Self { page: output.to_owned(), folder: output.with_extension("figures") }
        } else {
            Self { page: page_in(output), folder: output.join("figures") }
        }
    }

    fn figure(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn manifest(&self) -> PathBuf {
        self.folder.join("manifest.json")
    }
}

/// Report that was written.
pub struct WrittenReport {
    /// Path of the page.
    pub page: PathBuf,
    /// Headline.
    pub title: String,
    /// Main result.
    pub finding: ReportFinding,
}

/// Returns the files of the report that a run would write after completing, with these policies' choices.
pub fn plan(
    experiment: &Experiment,
    settings: &Settings,
    policies: &[String],
    output: &Path,
) -> Result<Vec<PlannedArtifact>> {
    let tasks = experiment.tasks()?;
    let completion = completion(&of_kind(settings, experiment.tasks.as_deref()))?;
    let modes = completed_modes(settings, experiment, &completion)?.0;
    let mut names: Vec<&str> = modes.iter().map(|mode| mode.name()).collect();
    names.extend(policies.iter().map(String::as_str));
    let metrics = scoring(settings, experiment, &METRICS).metrics;
    let retrieves = modes.iter().any(|mode| *mode != Mode::Without);
    let place = ReportPaths::new(output);
    let mut files =
        vec![PlannedArtifact::file(place.page.clone(), "report", PlanVerdict::EachTime)];
    for (name, is_sure) in foresee_figures(tasks, &metrics, &names) {
        let verdict = if is_sure {
            PlanVerdict::EachTime
        } else if retrieves {
            PlanVerdict::Perhaps("prompts show retrieved fragments")
        } else {
            continue;
        };
        files.push(PlannedArtifact::file(place.figure(&name), "figure", verdict));
    }
    files.push(PlannedArtifact::file(
        place.manifest(),
        "manifest of a page",
        PlanVerdict::EachTime,
    ));
    Ok(files)
}

/// Metrics of a report, with the default one first, unless the settings choose others.
pub const METRICS: [Metric; 2] = [Metric::RepoCoder, Metric::Repoformer];

/// Results of unit tests by row.
type ByRow = BTreeMap<usize, TestOutcome>;

/// Predictions to show: their name, their file, and the prompts that were completed.
#[derive(Default)]
pub struct ReportSource {
    /// Name of the system.
    pub name: String,
    /// File of its predictions.
    pub predictions: PathBuf,
    /// Artifact that records how the predictions were made, if their own file does not.
    pub made_as: Option<PathBuf>,
    /// Artifact of the prompts, if there is one.
    pub prompts: Option<PathBuf>,
    /// Rows for which a policy retrieves.
    pub retrieved: Option<BTreeSet<usize>>,
}

/// Contents of a report.
pub struct ReportSettings {
    /// Results of `eval --exec`, as `NAME=FILE` or for all systems.
    pub exec: Vec<String>,
    /// Scoring of predictions.
    pub scoring: Scoring,
    /// Headline; by default, the benchmark's name.
    pub title: Option<String>,
    /// System that the others are compared with; the first if none is named.
    pub baseline: Option<String>,
    /// Settings of intervals.
    pub resampling: Resampling,
    /// True if systems may have been run under different conditions.
    pub allow_mixed: bool,
    /// Settings of these tasks.
    pub settings: Settings,
}

impl ReportSettings {
    /// Returns a report that shows only scores and intervals, for systems of any origin.
    pub fn of_scores(scoring: Scoring, resampling: Resampling, settings: &Settings) -> Self {
        let (exec, title, baseline) = (Vec::new(), None, None);
        let settings = settings.clone();
        Self { exec, scoring, title, baseline, resampling, allow_mixed: true, settings }
    }
}

/// Returns predictions given as `NAME=FILE`, or as a file whose stem is the name.
pub fn of_file(given: &str) -> ReportSource {
    let (name, path) = files::split_name(given);
    let name = name.map_or_else(|| stem(Path::new(path)), str::to_owned);
    ReportSource { name, predictions: path.into(), ..ReportSource::default() }
}

/// Returns the requested modes, or all completed ones.
pub fn of_cache(experiment: &Experiment, settings: &Settings) -> Result<Vec<ReportSource>> {
    let completion = completion(&of_kind(settings, experiment.tasks.as_deref()))?;
    let mut sources = Vec::new();
    for mode in completed_modes(settings, experiment, &completion)?.0 {
        sources.push(ReportSource {
            name: mode.to_string(),
            predictions: cached_predictions(experiment, mode, &completion)?,
            prompts: Some(experiment.paths().prompts(mode)).filter(|path| path.exists()),
            ..ReportSource::default()
        });
    }
    if sources.is_empty() {
        return fail(
            "the cache holds no predictions to report on",
            message![
                UserChoice::CompletePrompts,
                ", or choose each ",
                UserChoice::PredictionsFile,
                " as NAME=FILE"
            ],
        );
    }
    Ok(sources)
}

/// Writes a report. `output` is a folder, or the page itself if it ends in `.html`.
pub fn make(
    experiment: &Experiment,
    sources: Vec<ReportSource>,
    making: &ReportSettings,
    output: &Path,
) -> Result<WrittenReport> {
    let messages = &*experiment.messages;
    check_names(&sources, making)?;
    let Some(tasks) = &experiment.tasks else {
        return Err(message!["nothing to report on: ", &DECLARED.tasks, " is not set"].into());
    };
    let mut manifest = Manifest::new("report");
    manifest.input("tasks", &tasks.path)?;
    for (metric, recipe) in making.scoring.recipes() {
        manifest.setting(&format!("postprocess.{metric}"), recipe.to_string());
    }
    manifest.setting("resamples", making.resampling.resamples);
    manifest.setting("seed", making.resampling.seed);
    let (mut notes, mut conditions) = (Vec::new(), Vec::new());
    let (mut builder, mut evaluated) = (ReportBuilder::new(making.resampling), None);
    let mut used = BTreeSet::new();
    for source in sources {
        let path = &source.predictions;
        manifest.input(&format!("predictions.{}", source.name), path)?;
        let mut evaluation = evaluate(experiment, path, &making.scoring, MissingPredictions::Skip)?;
        messages.problems(std::mem::take(&mut evaluation.problems));
        drop(std::mem::take(&mut evaluation.samples));
        let unproven = predictions::warning(path, &evaluation.numbered);
        if let Some(warning) = &unproven {
            messages.unproven(warning);
        }
        notes.extend(unproven);
        if let Ok(scores) = &evaluation.scores
            && scores.missing > 0
        {
            notes.push(format!(
                "{}: {} no prediction, and {} left out of its means.",
                source.name,
                part(scores.missing, evaluation.tasks.tasks().len(), "task", ["has", "have"]),
                if scores.missing == 1 { "is" } else { "are" }
            ));
        }
        if let Ok(scores) = &evaluation.scores {
            let reasons = [UncutReason::File, UncutReason::Bound].into_iter();
            let told = reasons.flat_map(|reason| scores.tell_uncut(reason));
            notes.extend(told.map(|told| format!("{}: {told}.", source.name)));
        }
        let made_as = source.made_as.as_ref().unwrap_or(&source.predictions);
        warn_of_ends(made_as, &making.scoring, messages)?;
        let mut known = Conditions::of_predictions(&read_parameters(made_as)?);
        known.set_samples(evaluation.scores.as_ref().map_or(0, Scores::samples));
        conditions.push((source.name.clone(), known));
        let mut settings = settings_of(made_as, source.prompts.as_deref())?;
        if let Some(rows) = &source.retrieved {
            settings.insert(0, ("policy".into(), source.name.clone()));
            settings.push(("retrieved-for".into(), rows.len().to_string()));
        }
        evaluated.get_or_insert_with(|| Arc::clone(&evaluation.tasks));
        builder.add(Contender {
            executed: read_test_results(
                &making.exec, &mut used, &source, tasks, &mut manifest, messages,
            )?,
            name: source.name,
            settings,
            evaluation,
            prompts: source.prompts,
            retrieved: source.retrieved,
        })?;
    }
    if let Some(unused) = making.exec.iter().find(|given| !used.contains(given.as_str())) {
        return fail(
            format!("{unused}: contains no test results of any system"),
            message!["compute the ", UserChoice::UnitTestResults, " of these predictions"],
        );
    }
    let conditions: Vec<_> =
        conditions.iter().map(|(name, known)| (name.as_str(), known)).collect();
    let differences = differences(&conditions);
    mixed::check(&differences, making.allow_mixed, messages)?;
    if !differences.is_empty() {
        notes.push(mixed::join_differences(&differences));
        manifest.setting("mixed", differences);
    }
    set_profile(&mut manifest, &making.settings);
    notes.extend(making.settings.departure_line());
    // Without systems, nothing was evaluated.
    let evaluated = evaluated.unwrap_or_else(|| Arc::clone(tasks));
    manifest.count("tasks", evaluated.tasks().len());
    manifest.count("systems", conditions.len());
    let about = ReportTexts {
        title: making.title.clone().unwrap_or_else(|| experiment.name.clone()),
        provenance: manifest.lines(),
        notes,
        baseline: making.baseline.clone(),
    };
    let report = builder.finish(&evaluated, about);
    let page = write(&report, manifest, &ReportPaths::new(output))?;
    Ok(WrittenReport { page, finding: report.finding(), title: report.title })
}

/// Returns the parameters of a system, from its cached artifacts.
fn settings_of(predictions: &Path, prompts: Option<&Path>) -> Result<Vec<(String, String)>> {
    let mut settings = prompts.map(parameters).transpose()?.unwrap_or_default();
    settings.extend(parameters(predictions)?);
    settings.remove("benchmark");
    let no_limit = usize::MAX.to_string();
    let shown = |value: String| if value == no_limit { "all".into() } else { value };
    Ok(settings.into_iter().map(|(name, value)| (name, shown(value))).collect())
}

/// Reads the results of a system's unit tests by row; adds the files that have some to `used`.
fn read_test_results<'g>(
    given: &'g [String],
    used: &mut BTreeSet<&'g str>,
    source: &ReportSource,
    tasks: &TaskSet,
    manifest: &mut Manifest,
    messages: &dyn Messages,
) -> Result<ByRow> {
    let name = &*source.name;
    let mut all = ByRow::default();
    for given in given {
        let (system, path) = files::split_name(given);
        if system.is_some_and(|system| system != name) {
            continue;
        }
        manifest.input(&format!("exec.{name}"), Path::new(path))?;
        let found = read_executed(Path::new(path), name)?;
        if found.is_empty() && system.is_some() {
            return fail(
                format!("{path}: contains no test results of '{name}'"),
                message!["compute the ", UserChoice::UnitTestResults, " for it"],
            );
        }
        let numbered = executed::join(Path::new(path), &found, tasks)?;
        let is_of = is_of(Path::new(path), &source.predictions)?;
        if is_of.is_none()
            && let Some(warning) = numbered.warning(path, None)
        {
            messages.unproven(&warning);
        }
        if !found.is_empty() && is_of == Some(false) {
            return fail(
                format!(
                    "{path}: contains test results of other predictions than {}",
                    source.predictions.display()
                ),
                message!["compute the ", UserChoice::UnitTestResults, " for these predictions"],
            );
        }
        if !found.is_empty() {
            used.insert(given);
        }
        all.extend(found);
    }
    Ok(all)
}

fn check_names(sources: &[ReportSource], making: &ReportSettings) -> Result<()> {
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    for (number, name) in names.iter().enumerate() {
        if names[..number].contains(name) {
            return fail(
                format!("two predictions have the name '{name}'"),
                message!["choose each ", UserChoice::PredictionsFile, " as NAME=FILE"],
            );
        }
    }
    for given in &making.exec {
        if let Some(of) = files::split_name(given).0.filter(|of| !names.contains(of)) {
            let system = format!(" '{given}': unknown system");
            return unknown(message![UserChoice::TestResultsFile, system], of, &names);
        }
    }
    if let Some(name) = making.baseline.as_ref().filter(|name| !names.contains(&name.as_str())) {
        return unknown(message!["unknown ", UserChoice::Baseline], name, &names);
    }
    Ok(())
}

fn write(report: &ReportContents, mut manifest: Manifest, place: &ReportPaths) -> Result<PathBuf> {
    remove_old_figures(place)?;
    let page = write_file_with(&place.page, |out| report.write_page(out))?;
    manifest.digest("index.html", &page);
    for (name, svg) in report.figures() {
        write_file(&place.figure(&name), svg.as_bytes())?;
        manifest.digest(&name, &digest(svg.as_bytes()));
    }
    let mut record = manifest.to_record();
    record[RESULT] = json!({"title": report.title, "finding": report.finding()});
    write_document(&place.manifest(), &record)?;
    Ok(place.page.clone())
}

/// Field of a report's manifest with its title and main result.
const RESULT: &str = "result";

/// Returns the title and the main result of the report in a folder; `None` without a report.
pub fn read_result(folder: &Path) -> Option<(String, ReportFinding)> {
    let manifest = manifest::read(&ReportPaths::new(folder).manifest()).ok()?;
    let result = manifest.get(RESULT)?;
    let finding = ReportFinding::deserialize(result.get("finding")?).ok()?;
    Some((result.get("title")?.as_str()?.to_owned(), finding))
}

/// Returns what the page in a folder reports on, if it is not this task file.
pub fn other_tasks(folder: &Path, tasks: &Path) -> Option<String> {
    let place = ReportPaths::new(folder);
    if !place.page.exists() {
        return None;
    }
    let manifest = manifest::read(&place.manifest()).unwrap_or_default();
    let mut inputs = manifest.get("inputs").and_then(Value::as_array).into_iter().flatten();
    let path =
        inputs.find(|input| input["name"] == "tasks").and_then(|input| input["path"].as_str());
    let Some(path) = path else { return Some("something else".into()) };
    let real = |path: &Path| files::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    (real(Path::new(path)) != real(tasks)).then(|| path.to_owned())
}

/// Removes the figures of an earlier report: a folder contains the figures of only one report.
fn remove_old_figures(place: &ReportPaths) -> Result<()> {
    let manifest = manifest::read(&place.manifest())?;
    let inputs = manifest.get("inputs").and_then(Value::as_array).into_iter().flatten();
    let names = inputs.filter_map(|input| input["name"].as_str());
    for name in names.filter(|name| name.ends_with(".svg") && !name.contains('/')) {
        let path = place.figure(name);
        if let Err(error) = files::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            bail!("{}: cannot remove this old figure: {error}", path.display());
        }
    }
    Ok(())
}
