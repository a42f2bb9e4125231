//! Run: executes every stage of each experiment, and produces a row for each mode and policy, a table or figure of the paper,
//! or a plan.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use repoformer_core::retrieve::{Mode, REPOCODER_MODES};
use repoformer_evaluate::statistics::Resampling;
use repoformer_evaluate::table::Printable;
use repoformer_pipeline as pipeline;
use repoformer_pipeline::{
    Completion, Experiment, Layout, Messages, PlanVerdict, PlannedArtifact, has_predictions,
};
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use crate::choices::{modes, page_in, resampling, seed};
use crate::experiments::{
    are_functions, check_completable, completion_of, experiments_of, possible_modes,
};
use crate::judged::JudgedTasks;
use crate::paper::{
    self, Figure, FigureNumbers, FilledTable, Panel, PaperResult, Sizes, Tasks, TwoRequests,
    tasks_of,
};
use crate::policies::{Policies, PolicyChoice};
use crate::report::{self, ReportSettings, WrittenReport};
use crate::reports::{Reports, report_folder};
use crate::rows::{self, ResultRows, Row};
use crate::scoring::{scoring, warn_of_ends};
use crate::settings::{DECLARED, SettingValue, Settings};
use crate::stage_log::StageLog;
use crate::stages::run_stages;
use crate::test_results::TestResults;
use crate::{fail, server};

/// Request for a run: its outputs, and the files of its policies and tests.
#[derive(Debug, Default)]
pub struct RunRequest {
    /// True if the run is only planned.
    pub is_dry: bool,
    /// True if a plan lists all artifacts for a reason, instead of only the first.
    pub lists_all: bool,
    /// Files that are copied for the run; a plan lists them.
    pub copied: Vec<PlannedArtifact>,
    /// `Some` to write reports, with their folder if it is not the cache's.
    pub report: Option<Option<PathBuf>>,
    /// Files of the probabilities that policy `self` uses.
    pub probabilities: Vec<PathBuf>,
    /// File of the samples that policy `entropy` uses.
    pub samples: Option<PathBuf>,
    /// Results of unit tests, as `MODE=FILE`.
    pub exec: Vec<String>,
}

/// Result of a run.
#[derive(Debug)]
pub enum RunResult {
    /// Artifacts that the run would make.
    Plan(StageLog),
    /// Row for each mode and policy.
    Rows(ResultRows),
    /// Table of the paper.
    Table(FilledTable),
    /// Table of the benchmarks' sizes.
    Sizes(Sizes),
    /// Figure of the paper.
    Figure(FigureNumbers),
    /// Two requests, step by step.
    Walk(TwoRequests),
}

impl RunResult {
    /// Returns the result, to print.
    pub fn printable(&self) -> &dyn Printable {
        match self {
            Self::Plan(plan) => plan,
            Self::Rows(rows) => rows,
            Self::Table(table) => table,
            Self::Sizes(sizes) => sizes,
            Self::Figure(figure) => figure,
            Self::Walk(walk) => walk,
        }
    }
}

/// Run that is finished.
#[derive(Debug)]
pub struct FinishedRun {
    /// Result.
    pub result: RunResult,
    /// Remarks printed after the result; none after a plan.
    after: Option<ClosingRemarks>,
}

/// Remarks printed after the result of a run.
#[derive(Debug)]
struct ClosingRemarks {
    rows: Vec<Row>,
    policies: Arc<Policies>,
    /// Folders and pages that were written.
    places: Vec<String>,
    /// Time of each stage.
    times: String,
}

impl FinishedRun {
    /// Reports limits of the result, its files and its times.
    pub fn tell(&self, messages: &dyn Messages) {
        let Some(ClosingRemarks { rows, policies, places, times }) = &self.after else { return };
        rows::tell_of_crowds(rows, messages);
        policies.tell_of_shares();
        rows::warn_of_gaps(rows, messages);
        places.iter().for_each(|place| messages.note(place.into()));
        messages.note(times.into());
    }
}

/// Runs every stage for the experiments that the settings describe.
///
/// # Errors
/// The settings contradict the request or each other, or a stage cannot continue.
pub fn run(settings: &Settings, request: RunRequest) -> Result<FinishedRun> {
    let begin = Instant::now();
    let paper = check(settings, &request)?;
    // The sizes of the benchmarks need no completions.
    if matches!(paper, Some(PaperResult::Sizes)) {
        return Ok(FinishedRun { result: RunResult::Sizes(paper::sizes(settings)?), after: None });
    }
    let mut run = Run::new(settings, request, paper)?;
    for planned in run.experiments()? {
        run.experiment(planned)?;
    }
    run.finish(begin)
}

/// Checks that the request fits the requested result, and returns the table or figure of the paper, if one is requested.
fn check(settings: &Settings, request: &RunRequest) -> Result<Option<PaperResult>> {
    let paper = PaperResult::from_settings(settings)?;
    let is_sizes = matches!(paper, Some(PaperResult::Sizes));
    let is_walk = paper.as_ref().is_some_and(PaperResult::is_walk);
    let unused = [
        (UserChoice::ReportOfRun, request.report.is_some(), is_sizes || is_walk),
        (UserChoice::TestResultsFile, !request.exec.is_empty(), is_sizes || is_walk),
        (UserChoice::ProbabilitiesFile, !request.probabilities.is_empty(), is_sizes),
        (UserChoice::SamplesFile, request.samples.is_some(), is_sizes),
        (UserChoice::DryRun, request.is_dry, is_sizes),
    ];
    if let Some((choice, ..)) =
        unused.iter().find(|(_, is_given, is_unused)| *is_given && *is_unused)
    {
        let name = settings.paper.as_deref().unwrap_or_default();
        return fail(message![*choice, format!(" is not used by {name}")], "leave it out");
    }
    if is_sizes && settings.policy.is_chosen() {
        let name = settings.paper.as_deref().unwrap_or_default();
        return fail(message![&DECLARED.policy, format!(" is not used by {name}")], "leave it out");
    }
    Ok(paper)
}

/// Experiment of a run, with the modes to run.
struct PlannedExperiment {
    experiment: Experiment,
    settings: Settings,
    modes: Vec<Mode>,
    /// Modes that cannot be run for its tasks, and the reasons.
    left_out: Vec<(Mode, String)>,
}

/// Run in progress.
struct Run<'a> {
    request: RunRequest,
    settings: &'a Settings,
    modes: Vec<Mode>,
    /// Model by the settings of all tasks.
    completion: Completion,
    /// Seed of the first sample.
    seed: Option<u64>,
    paper: Option<PaperResult>,
    policies: Arc<Policies>,
    /// Policies of tasks whose holes are function bodies.
    of_functions: Arc<Policies>,
    tests: TestResults,
    resampling: Resampling,
    log: StageLog,
    reports: Option<Reports>,
    /// Modes that can be run for some experiment.
    possible: BTreeSet<Mode>,
    rows: Vec<Row>,
    /// Tasks of each benchmark, as the paper names them.
    tasks: Vec<(String, Tasks)>,
    panels: Vec<Panel>,
    walk: Option<TwoRequests>,
    /// True if a policy would choose, as predicted by a plan.
    is_judged: bool,
    places: Vec<String>,
}

impl<'a> Run<'a> {
    fn new(
        settings: &'a Settings,
        request: RunRequest,
        paper: Option<PaperResult>,
    ) -> Result<Self> {
        // Greedy completions draw no random numbers.
        let is_greedy = *settings.temperature == 0.0;
        let seed = (!is_greedy).then_some(seed(settings)?);
        let completion = server::model(settings, seed, false)?;
        let modes = modes(settings, &REPOCODER_MODES)?;
        // Check this before spending hours on completions.
        let tests = TestResults::new(&request.exec)?;
        if paper.is_some() {
            tests.check_pairs()?;
        }
        let policies = Arc::new(policies(&request, settings, false)?);
        let of_functions = Arc::new(self::policies(&request, &settings.of_functions(), true)?);
        if !request.is_dry {
            policies.greet(settings)?;
        }
        Ok(Self {
            log: StageLog::new(request.is_dry, request.lists_all),
            request,
            settings,
            modes,
            completion,
            seed,
            paper,
            policies,
            of_functions,
            tests,
            resampling: resampling(settings)?,
            reports: None,
            possible: BTreeSet::new(),
            rows: Vec::new(),
            tasks: Vec::new(),
            panels: Vec::new(),
            walk: None,
            is_judged: false,
            places: Vec::new(),
        })
    }

    /// Returns the experiments, checked before spending hours on completions.
    fn experiments(&mut self) -> Result<Vec<PlannedExperiment>> {
        let mut experiments = experiments_of(self.settings, &self.modes)?;
        experiments.iter_mut().for_each(|(experiment, _)| self.log.begin(experiment));
        if self.request.is_dry {
            self.log.add_files("demo", std::mem::take(&mut self.request.copied));
        }
        if let (Some(folder), None) = (&self.request.report, &self.paper) {
            let names: Vec<String> = experiments.iter().map(|(one, _)| one.name.clone()).collect();
            self.reports = Some(Reports::new(folder, self.settings, &names)?);
        }
        for (experiment, settings) in &experiments {
            if experiment.tasks.is_none() {
                return Err(
                    message!["nothing to complete: ", &DECLARED.tasks, " is not set"].into()
                );
            }
            check_completable(experiment)?;
            if let Some(PaperResult::Table(table)) = &self.paper {
                table.check_has(&tasks_of(experiment, settings)?, &experiment.name)?;
            }
        }
        let planned: Vec<PlannedExperiment> = experiments
            .into_iter()
            .map(|(experiment, settings)| {
                let (modes, left_out) = possible_modes(&experiment, &self.modes);
                PlannedExperiment { experiment, settings, modes, left_out }
            })
            .collect();
        let model = &self.completion.model;
        let mut open = planned.iter().flat_map(|one| {
            let path = |mode: &Mode| one.experiment.paths().predictions(*mode, model);
            one.modes.iter().map(move |mode| !path(mode).exists())
        });
        if !self.request.is_dry && open.any(|is_open| is_open) {
            server::greet(&self.completion, &*self.settings.messages)?;
        }
        self.possible = planned.iter().flat_map(|one| &one.modes).copied().collect();
        Ok(planned)
    }

    /// Runs an experiment, and keeps its results.
    fn experiment(&mut self, planned: PlannedExperiment) -> Result<()> {
        let PlannedExperiment { experiment, settings, modes, left_out } = planned;
        for (mode, reason) in left_out {
            // Each of several benchmarks has its own modes.
            if self.possible.contains(&mode) {
                settings.messages.note(reason.into())
            } else {
                settings.messages.failure(reason.into())
            }
        }
        let completion = completion_of(&experiment, &settings, self.seed, false)?;
        let are_functions = are_functions(&settings, experiment.tasks.as_deref());
        let policies = if are_functions { &self.of_functions } else { &self.policies };
        let policies = Arc::clone(policies);
        run_stages(&experiment, &settings, &modes, &completion, &mut self.log)?;
        self.places.push(place(&experiment));
        self.tasks.push((experiment.name.clone(), tasks_of(&experiment, &settings)?));
        let is_timed = !policies.is_empty() || self.paper.is_some();
        for &mode in &modes {
            self.score(&experiment, &settings, mode, &completion, is_timed)?;
        }
        if self.log.is_dry() {
            let chosen = policies.plan(&experiment, &modes, &completion, &settings, &mut self.log);
            return self.plan(&experiment, &settings, chosen);
        }
        let choose = || policies.choose(&experiment, &modes, &completion, &settings);
        let (selected, judged) = if policies.is_empty() {
            choose()?
        } else {
            self.log.time("policies", || Ok((choose()?, false)))?
        };
        for one in &selected {
            let row = Row::selective(&experiment, one, &self.resampling).with_profile(&settings);
            let row = row.with_tests(self.tests.of_policy(&experiment, one)?);
            self.rows.extend(row.by_metric(&experiment, &self.resampling));
        }
        match &self.paper {
            Some(PaperResult::Figure(_)) => match judged {
                Some(judged) => self.keep_judged(&experiment, &settings, &completion, judged),
                None => Ok(()),
            },
            _ => self.report(&experiment, &settings, selected),
        }
    }

    /// Scores a mode, and adds its rows.
    fn score(
        &mut self,
        experiment: &Experiment,
        settings: &Settings,
        mode: Mode,
        completion: &Completion,
        is_timed: bool,
    ) -> Result<()> {
        let messages = &*settings.messages;
        if mode == Mode::Prediction && !has_predictions(experiment, Mode::LeftContext, completion)?
        {
            messages.failure("rg-rg is left out: rg1 has no prediction to search with".into());
            return Ok(());
        }
        if !has_predictions(experiment, mode, completion)? {
            messages.failure(format!("{mode} is left out: it has no prediction").into());
            return Ok(());
        }
        // The report reads these scores.
        let further = if self.reports.is_some() { &report::METRICS[..] } else { &[] };
        let scoring = scoring(settings, experiment, further);
        let (scores, report) = self.log.time("scores", || {
            let model = &completion.model;
            let (scores, report) = pipeline::scores(experiment, mode, model, &scoring, None)?;
            let is_current = report.built == 0;
            Ok(((scores, report), is_current))
        })?;
        messages.remarks(&report);
        let Some(scores) = scores else {
            self.log.add("scores", experiment, report.planned);
            return Ok(());
        };
        let predictions = experiment.paths().predictions(mode, &completion.model);
        warn_of_ends(&predictions, &experiment.scoring, messages)?;
        let row = Row::of_mode(experiment, mode, scores, &self.resampling)?;
        let passed = self.tests.of_mode(experiment, mode, completion)?;
        let row = row.with_profile(settings).with_tests(passed);
        // The cost of policies is shown next to the time of each mode.
        let row = if is_timed || !completion.is_embedded() {
            row.with_time(experiment, mode, &completion.model)?
        } else {
            row
        };
        rows::tell_of_untimed(&row, experiment, mode, completion, messages);
        self.rows.extend(row.by_metric(experiment, &self.resampling));
        Ok(())
    }

    /// Plans the report of an experiment in which these policies would choose.
    fn plan(
        &mut self,
        experiment: &Experiment,
        settings: &Settings,
        chosen: Option<Vec<String>>,
    ) -> Result<()> {
        self.is_judged |= chosen.is_some();
        if let Some(reports) = &self.reports {
            let folder = reports.folder.join(&experiment.name);
            let files = report::plan(experiment, settings, &chosen.unwrap_or_default(), &folder)?;
            self.log.add("report", experiment, files);
        }
        Ok(())
    }

    /// Keeps the judged tasks of an experiment for the figure.
    fn keep_judged(
        &mut self,
        experiment: &Experiment,
        settings: &Settings,
        completion: &Completion,
        judged: JudgedTasks,
    ) -> Result<()> {
        if self.paper.as_ref().is_some_and(PaperResult::is_walk) {
            if self.walk.is_none() {
                self.walk = Some(paper::walk(experiment, &completion.model, &judged)?);
            }
            return Ok(());
        }
        let passed =
            [Mode::Without, judged.mode].map(|mode| self.tests.pass_rates(experiment, mode));
        let metric = rows::metric_name(&self.rows, &experiment.name);
        let panel = Panel::new(experiment, settings, completion, judged, metric)?;
        let tested = match passed {
            [Some(without), Some(with)] => panel.judge_by_tests(without, with),
            _ => None,
        };
        if !self.panels.iter().any(|other| panel.repeats(other)) {
            self.panels.push(panel);
            self.panels.extend(tested);
        }
        Ok(())
    }

    /// Writes the report of an experiment, with the choices of the policies, if reports are requested.
    fn report(
        &mut self,
        experiment: &Experiment,
        settings: &Settings,
        selected: Vec<PolicyChoice>,
    ) -> Result<()> {
        let Some(reports) = &mut self.reports else {
            return Ok(());
        };
        let folder = reports.folder.join(&experiment.name);
        let written = self.log.time("report", || {
            let written = write_report(experiment, settings, &folder, selected, self.resampling)?;
            Ok((written, false))
        })?;
        self.places.push(format!("report: {}", written.page.display()));
        reports.add(experiment, written);
        Ok(())
    }

    /// Returns the folder of a figure of the paper.
    fn figure_folder(&self, figure: &Figure) -> Result<PathBuf> {
        let given = self.request.report.as_ref().and_then(Option::as_ref);
        Ok(report_folder(given, self.settings)?.join(figure.name()))
    }

    fn finish(mut self, begin: Instant) -> Result<FinishedRun> {
        if self.log.is_dry() {
            return self.finish_plan();
        }
        self.tests.check_used()?;
        rows::compare_with_always(&mut self.rows);
        let result = match self.paper.take() {
            Some(PaperResult::Table(table)) => {
                let mut numbers = Vec::new();
                for (benchmark, tasks) in &self.tasks {
                    let model = &self.completion.model;
                    numbers.extend(rows::measured_rows(&self.rows, benchmark, model, tasks));
                }
                RunResult::Table(table.filled_with(numbers, self.settings)?)
            }
            Some(PaperResult::Figure(figure)) => match self.walk.take() {
                Some(walk) => RunResult::Walk(walk),
                None => {
                    let folder = self.figure_folder(&figure)?;
                    self.places.push(format!("figure: {}", page_in(&folder).display()));
                    RunResult::Figure(figure.draw(&self.panels, self.settings, &folder)?)
                }
            },
            Some(PaperResult::Sizes) => RunResult::Sizes(paper::sizes(self.settings)?),
            None => RunResult::Rows(ResultRows(self.rows.clone())),
        };
        if let Some(reports) = &self.reports
            && let Some(index) = reports.write()?
        {
            self.places.push(format!("reports: {}", index.display()));
        }
        let after = ClosingRemarks {
            times: self.log.times(begin.elapsed()),
            rows: self.rows,
            policies: self.policies,
            places: self.places,
        };
        Ok(FinishedRun { result, after: Some(after) })
    }

    fn finish_plan(mut self) -> Result<FinishedRun> {
        let verdict = PlanVerdict::EachTime;
        let index = self.reports.as_ref().and_then(Reports::index);
        let index =
            index.map(|path| PlannedArtifact::file(path, "page of the reports", verdict.clone()));
        self.log.add_files("report", index.into_iter().collect());
        if let Some(PaperResult::Figure(figure)) = &self.paper
            && self.is_judged
            && !figure.is_walk()
        {
            let page = page_in(&self.figure_folder(figure)?);
            let page = PlannedArtifact::file(page, "page, with its charts beside it", verdict);
            self.log.add_files("figure", vec![page]);
        }
        Ok(FinishedRun { result: RunResult::Plan(self.log), after: None })
    }
}

/// Returns the policies that the settings choose, with the files of the request.
fn policies(request: &RunRequest, settings: &Settings, are_functions: bool) -> Result<Policies> {
    Policies::new(&request.probabilities, request.samples.as_ref(), settings, are_functions)
}

/// Writes the report of a benchmark, with the choices of the policies.
fn write_report(
    experiment: &Experiment,
    settings: &Settings,
    folder: &Path,
    selected: Vec<PolicyChoice>,
    resampling: Resampling,
) -> Result<WrittenReport> {
    let scoring = scoring(settings, experiment, &report::METRICS);
    let making = ReportSettings::of_scores(scoring, resampling, settings);
    let mut sources = report::of_cache(experiment, settings)?;
    sources.extend(selected.into_iter().map(|one| one.source));
    report::make(experiment, sources, &making, folder)
}

/// Returns the folders of a benchmark's artifacts.
fn place(experiment: &Experiment) -> String {
    let Layout { cache, benchmark, .. } = &experiment.layout;
    let stages = "{window,vector,retrieval,prompts,predictions,scores}";
    format!("artifacts: {}", cache.join(stages).join(benchmark).display())
}
