//! Experiments of a command: one for each requested task file, fragment size, ranker and right context.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use repoformer_core::completion::Api;
use repoformer_core::metrics::Metric;
use repoformer_core::postprocess::{FunctionBodies, Postprocess, Step};
use repoformer_core::repository::corpus::is_folder_name;
use repoformer_core::repository::fragment::Cut;
use repoformer_core::retrieve::rank::Ranker;
use repoformer_core::retrieve::{Align, Mode};
use repoformer_core::task::{Task, TaskSet};
use repoformer_evaluate::conditions::are_chat_answers;
use repoformer_evaluate::score::Scoring;
use repoformer_pipeline::{
    Completion, CompletionBound, Experiment, Layout, Messages, PromptLayout,
};
use repoformer_store::artifact::header_path;
use repoformer_text::counts::part;
use repoformer_text::language::Language;
use repoformer_text::message;
use repoformer_text::message::Message;

use crate::choices::{
    check_named, completion, note_links, repos_dir, repos_dir_of_modes, repositories_in,
    warn_of_departures,
};
use crate::experiment_settings::{cuts, prompts, retrieval};
use crate::settings::{DECLARED, MetricName, Settings, StyleName};
use crate::{fail, server};

/// Returns one experiment for each task file, or one without tasks, each with the settings of its tasks.
///
/// # Errors
/// The settings name no repositories, contradict each other, or name a file that cannot be read.
pub fn experiments(settings: &Settings) -> Result<Vec<(Experiment, Settings)>> {
    repos_dir(settings)?;
    open_experiments(settings)
}

/// Returns experiments for these modes, each with its settings. Repositories are needed only for retrieval and for RepoCoder's
/// prompts, whose holes are in the repositories.
pub fn experiments_of(settings: &Settings, modes: &[Mode]) -> Result<Vec<(Experiment, Settings)>> {
    let is_repocoder = *settings.prompt_style.get() == StyleName::RepoCoder;
    if is_repocoder || modes.iter().any(|mode| mode.retrieves()) {
        repos_dir_of_modes(settings)?;
    }
    open_experiments(settings)
}

fn open_experiments(settings: &Settings) -> Result<Vec<(Experiment, Settings)>> {
    let files = &settings.tasks;
    if files.len() > 1 && settings.benchmark.is_some() {
        let count = files.len();
        let reason = format!(" can name the folders of only one task file, but there are {count}");
        return Err(message![&DECLARED.benchmark, reason].into());
    }
    check_names(settings, files)?;
    let mut experiments = Vec::new();
    let named = files.iter().map(|file| Some(file.as_path()));
    for file in named.chain(files.is_empty().then_some(None)) {
        let mut tasks = file.map(|file| read_tasks(file, &*settings.messages)).transpose()?;
        let settings = &of_kind(settings, tasks.as_ref());
        if let Some(tasks) = tasks.as_ref().filter(|_| settings.scores()) {
            warn_of_cuts(settings, tasks);
        }
        // Commands that score name the departures in their results.
        if !settings.scores() {
            warn_of_departures(settings);
        }
        let mut variations = variations(settings).into_iter().peekable();
        while let Some((settings, varied)) = variations.next() {
            let cuts = cuts(&settings)?;
            for (number, &cut) in cuts.iter().enumerate() {
                // The last one needs no copy.
                let is_last = variations.peek().is_none() && number + 1 == cuts.len();
                let tasks = if is_last { tasks.take() } else { tasks.clone() };
                let mut experiment = experiment(&settings, file, tasks, cut)?;
                experiment.name += &varied;
                if cuts.len() > 1 {
                    experiment.name = format!("{}_{cut}", experiment.name);
                }
                experiments.push((experiment, settings.clone()));
            }
        }
    }
    Ok(experiments)
}

/// Returns the settings for each requested ranker and right context, and the part of the experiment's name that distinguishes
/// them if there are several.
fn variations(settings: &Settings) -> Vec<(Settings, String)> {
    let mut all = vec![(settings.clone(), String::new())];
    let rankers = distinct(&settings.ranker);
    if rankers.len() > 1 {
        let with = |(settings, _): (Settings, String)| {
            let one = |ranker: &Ranker| {
                let only = settings.with(|values| values.ranker.replace(vec![ranker.clone()]));
                (only, format!("_{ranker}"))
            };
            rankers.iter().map(one).collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(with).collect();
    }
    let rights = distinct(&settings.right_context);
    if rights.len() > 1 {
        let with = |(settings, varied): (Settings, String)| {
            let one = |right: &bool| {
                let name = if *right { "left-right" } else { "left" };
                let only = settings.with(|values| values.right_context.replace(vec![*right]));
                (only, format!("{varied}_{name}"))
            };
            rights.iter().map(one).collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(with).collect();
    }
    all
}

/// Returns the values without duplicates, in the order in which they were given.
fn distinct<T: Clone + PartialEq>(values: &[T]) -> Vec<T> {
    let mut once: Vec<T> = Vec::new();
    for value in values {
        if !once.contains(value) {
            once.push(value.clone());
        }
    }
    once
}

/// Rejects two task files of the same name, which would overwrite each other's artifacts.
fn check_names(settings: &Settings, files: &[PathBuf]) -> Result<()> {
    let mut seen: BTreeMap<String, &Path> = BTreeMap::new();
    for file in files {
        let name = benchmark(settings, Some(file))?;
        if let Some(other) = seen.insert(name.clone(), file) {
            return fail(
                format!(
                    "{} and {} would share the cache folders '{name}'",
                    other.display(),
                    file.display()
                ),
                message![
                    "rename one file, or run them one after another with ",
                    &DECLARED.benchmark
                ],
            );
        }
    }
    Ok(())
}

/// Returns the only experiment of a command that works on one task file, with the settings of its tasks.
///
/// # Errors
/// The same as for [`experiments`]; also if there are several experiments.
pub fn single(settings: &Settings) -> Result<(Experiment, Settings)> {
    repos_dir(settings)?;
    without_repositories(settings)
}

/// Returns the experiment of a command that needs no repositories, with the settings of its tasks. Without the folder of
/// repositories, it has all repositories that the tasks name.
///
/// # Errors
/// The same as for [`experiments`]; also if there are several experiments.
pub fn without_repositories(settings: &Settings) -> Result<(Experiment, Settings)> {
    check_single(settings)?;
    let mut experiments = open_experiments(settings)?;
    match experiments.len() {
        1 => Ok(experiments.remove(0)),
        n => bail!(
            "this command works with one window size, slice size, ranker and right context, but there are {n} combinations"
        ),
    }
}

/// Checks that there is at most one task file.
pub fn check_single(settings: &Settings) -> Result<()> {
    match settings.tasks.len() {
        0 | 1 => Ok(()),
        n => bail!("this command works on one task file, but there are {n}"),
    }
}

/// Returns the settings for these tasks, which are the settings of functions if the holes are function bodies.
pub fn of_kind(settings: &Settings, tasks: Option<&TaskSet>) -> Settings {
    if settings.has_functions() && are_functions(settings, tasks) {
        settings.of_functions()
    } else {
        settings.clone()
    }
}

/// Returns true if the holes of these tasks are function bodies, by their records and repositories.
pub fn are_functions(settings: &Settings, tasks: Option<&TaskSet>) -> bool {
    tasks.is_some_and(|set| bodies(settings, set.tasks()).are_all())
}

/// Counts how many of the first holes are function bodies, by the tasks and their repositories.
fn bodies(settings: &Settings, tasks: &[Task]) -> FunctionBodies {
    FunctionBodies::new(tasks, settings.repos_dir.as_deref().map(Path::new))
}

/// Warns if too little of the tasks' files is known to cut predictions correctly.
fn warn_of_cuts(settings: &Settings, set: &TaskSet) {
    let (file, bodies) = (set.path.display(), bodies(settings, set.tasks()));
    let asked = match settings.postprocess.get() {
        Some(Postprocess::Same(recipe)) => Some(recipe),
        Some(Postprocess::Own { .. }) | None => None,
    };
    let as_bodies = asked.map_or(bodies.are_all(), |recipe| recipe.has(Step::FunctionBody));
    let FunctionBodies { looked_at, found, unknown } = bodies;
    let is_known = settings.repos_dir.is_some();
    if asked.is_none() && bodies.are_unsure() {
        let way = if is_known {
            Message::default()
        } else {
            message![", ", &DECLARED.repos_dir, " gives access to the whole files"]
        };
        settings.messages.warning(message![
            format!(
                "{file}: {found} of the first {looked_at} holes are function bodies, and {unknown} more may be, but predictions are \
                 cut by lines: "
            ),
            &DECLARED.postprocess,
            " function-body cuts them as bodies",
            way
        ]);
    }
    let cut = set.tasks().iter().filter(|task| !task.has_whole_left()).count();
    if as_bodies && !is_known && cut > 0 {
        settings.messages.warning(message![
            format!(
                "{file}: {} only the end of the file, so function bodies may be cut wrongly: ",
                part(cut, set.tasks().len(), "prompt", ["shows", "show"])
            ),
            &DECLARED.repos_dir,
            " gives access to the whole file"
        ]);
    }
}

/// Returns the experiment of another model with the same tasks and fragments, in its prompt style.
pub fn experiment_like(
    other: &Experiment,
    settings: &Settings,
    style: Option<&StyleName>,
) -> Result<Experiment> {
    let settings = &settings.with(|values| {
        if let Some(style) = style {
            values.prompt_style.replace(style.clone());
        }
    });
    let file = other.tasks.as_ref().map(|set| set.path.as_path());
    let mut like = experiment(settings, file, other.tasks.as_deref().cloned(), other.layout.cut)?;
    if settings.postprocess.is_none() && has_chat_answers(settings, &like)? {
        like.scoring.postprocess.cut_answers();
    }
    Ok(Experiment { plan: other.plan.clone(), ..like })
}

fn experiment(
    settings: &Settings,
    file: Option<&Path>,
    mut tasks: Option<TaskSet>,
    cut: Cut,
) -> Result<Experiment> {
    let repos_dir = repos_dir_of(settings, tasks.as_ref()).map(Path::to_owned).unwrap_or_default();
    let repositories = repositories(settings, tasks.as_mut())?;
    let language = language(settings, tasks.as_ref())?;
    let (retrieval, prompts) = (retrieval(settings)?, prompts(settings)?);
    check_ranker(&retrieval.search.ranker, language)?;
    if prompts.align == Align::Signature && !retrieval.search.ranker.finds_definitions() {
        return fail(
            message![
                &DECLARED.align,
                format!(
                    " signature shows definitions, but ranker {} does not search for definitions",
                    retrieval.search.ranker
                )
            ],
            message!["choose ", &DECLARED.ranker, " definitions, or fuse it: rrf:definitions,bm25"],
        );
    }
    let scoring = asked_scoring(settings, tasks.as_ref().map_or(&[], |set| set.tasks()))?;
    let layout = Layout {
        cache: settings.cache_dir.to_path_buf(),
        benchmark: benchmark(settings, file)?,
        language,
        cut,
        iteration: 1,
        shard: None,
    };
    let mut experiment = Experiment {
        name: layout.benchmark.clone(),
        repos_dir,
        repositories,
        tasks: tasks.map(Arc::new),
        of_all_shards: None,
        layout,
        walk: *settings.walk,
        retrieval,
        prompts,
        scoring,
        plan: None,
        messages: Arc::clone(&settings.messages),
    };
    if settings.postprocess.is_none() && is_chat(settings, &experiment)? {
        experiment.scoring.postprocess.cut_answers();
    }
    if let Some(shard) = *settings.shard {
        experiment.restrict(shard);
    }
    Ok(experiment)
}

/// Rejects a ranker that is not defined for the language.
pub fn check_ranker(ranker: &Ranker, language: Language) -> Result<()> {
    match ranker.refusal(language) {
        Some(refusal) => fail(refusal, message!["choose another ", &DECLARED.ranker]),
        None => Ok(()),
    }
}

/// Returns the requested scoring, with the usual choices for these tasks if a setting is not chosen.
pub fn asked_scoring(settings: &Settings, tasks: &[Task]) -> Result<Scoring> {
    let mut metrics: Vec<Metric> = Vec::new();
    for name in settings.metrics.iter() {
        let named = match name {
            MetricName::All => Metric::ALL.to_vec(),
            MetricName::One(metric) => vec![*metric],
        };
        metrics.extend(named.into_iter().filter(|one| !metrics.contains(one)).collect::<Vec<_>>());
    }
    let function_bodies = bodies(settings, tasks).are_all();
    let mut scoring = Scoring::with_bodies(tasks, &metrics, function_bodies);
    if let Some(postprocess) = settings.postprocess.get() {
        scoring.postprocess = postprocess.clone().with_bodies(function_bodies);
    }
    Ok(scoring)
}

/// Cuts predictions as chat answers if they come from a chat model and the settings choose no cut.
pub fn cut_answers(
    experiment: &mut Experiment,
    settings: &Settings,
    predictions: &Path,
) -> Result<()> {
    if settings.postprocess.is_none() && are_chat_answers(predictions)? {
        experiment.scoring.postprocess.cut_answers();
    }
    Ok(())
}

/// Returns true if completions of the model are chat answers, by `--api` for commands that complete, otherwise by the cache's
/// predictions.
fn is_chat(settings: &Settings, experiment: &Experiment) -> Result<bool> {
    if settings.completes() {
        return Ok(*settings.api.get() == Api::Chat);
    }
    has_chat_answers(settings, experiment)
}

/// Returns true if the cache has answers of the chat API.
fn has_chat_answers(settings: &Settings, experiment: &Experiment) -> Result<bool> {
    let completion = completion(settings)?;
    if completion.is_embedded() {
        return Ok(false);
    }
    for mode in Mode::ALL {
        let path = experiment.paths().predictions(mode, &completion.model);
        if header_path(&path).exists() && are_chat_answers(&path)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the requested language, or else the language of most of the tasks' files, or else Python.
fn language(settings: &Settings, tasks: Option<&TaskSet>) -> Result<Language> {
    if let Some(language) = *settings.language {
        return Ok(language);
    }
    let tasks = tasks.map_or(&[][..], |set| set.tasks());
    let count =
        |language: &Language| tasks.iter().filter(|task| language.holds(&task.path)).count();
    let most = Language::ALL.into_iter().rev().max_by_key(count);
    Ok(most.unwrap_or_default())
}

/// Returns the folder of repositories; none for tasks that name no repository, such as CrossCodeLongEval's. Also none for tasks
/// whose repositories do not exist if nothing is retrieved, which is common for CrossCodeEval.
fn repos_dir_of<'s>(settings: &'s Settings, tasks: Option<&TaskSet>) -> Option<&'s Path> {
    let dir = settings.repos_dir.as_deref().map(Path::new)?;
    let tasks = tasks.map_or(&[][..], |set| set.tasks());
    let modes = settings.mode.get();
    let retrieves = modes.is_empty() || modes.iter().any(|mode| mode.retrieves());
    let is_there = |task: &Task| {
        let is_needed = retrieves || task.cross_file.is_none();
        !task.repository.is_empty() && (is_needed || dir.join(&task.repository).is_dir())
    };
    (tasks.is_empty() || tasks.iter().any(is_there)).then_some(dir)
}

/// Returns the modes that can be run for an experiment's tasks, and the reasons why others cannot.
pub fn possible_modes(experiment: &Experiment, modes: &[Mode]) -> (Vec<Mode>, Vec<(Mode, String)>) {
    let has_repositories = !experiment.repos_dir.as_os_str().is_empty();
    let tasks = experiment.tasks.as_deref().map_or(&[][..], |set| set.tasks());
    let has_context = tasks.iter().any(|task| task.cross_file.is_some());
    let (mut possible, mut reasons) = (Vec::new(), Vec::new());
    for &mode in modes {
        let name = &experiment.name;
        if mode.retrieves() && !has_repositories {
            let reason = format!("{name}: {mode} is left out: its tasks name no repository");
            reasons.push((mode, reason));
        } else if mode == Mode::Given && !has_context {
            let reason =
                format!("{name}: {mode} is left out: its tasks carry no cross-file context");
            reasons.push((mode, reason));
        } else {
            possible.push(mode);
        }
    }
    (possible, reasons)
}

/// Returns the repositories to process, sorted.
fn repositories(settings: &Settings, tasks: Option<&mut TaskSet>) -> Result<Vec<String>> {
    let named = &settings.repo;
    if let Some(dir) = repos_dir_of(settings, tasks.as_deref()) {
        check_named(dir, named)?;
        let all = if named.is_empty() && tasks.is_none() {
            repositories_in(dir, &[], &*settings.messages)?
        } else {
            Vec::new()
        };
        let named = if all.is_empty() { named } else { &all };
        let (found, problems) = Experiment::settle_repositories(dir, named, tasks)?;
        settings.messages.problems(problems);
        if all.is_empty() {
            note_links(dir, &found, &*settings.messages);
        }
        return Ok(found);
    }
    let Some(tasks) = tasks else {
        return Ok(Vec::new());
    };
    let mut folders = named.to_vec();
    folders.sort_unstable();
    tasks.name_folders(&folders);
    let mut names = tasks.repositories();
    names.retain(|name| named.is_empty() || named.contains(name));
    Ok(names)
}

/// Reads a task file, and reports problems and repeated ids.
///
/// # Errors
/// The file cannot be read, or contains no task.
pub fn read_tasks(file: &Path, messages: &dyn Messages) -> Result<TaskSet> {
    let (name, reading) = (file.display(), TaskSet::read(file)?);
    messages.problems(reading.problems);
    if reading.formats.len() > 1 {
        let formats = reading.formats.iter().map(|(format, tasks)| format!("{tasks} of {format}"));
        let formats = formats.collect::<Vec<_>>().join(", ");
        messages.warning(
            format!("{name}: contains tasks in several formats ({formats}); each task is read in its own format")
                .into(),
        );
    }
    if let count @ 1.. = reading.repeated_ids {
        let tasks = if count == 1 { "task repeats" } else { "tasks repeat" };
        messages.note(format!("{name}: {count} {tasks} an id; they are told apart by row").into());
    }
    Ok(reading.set)
}

/// Returns the name of a file of records without its extensions.
pub fn stem(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let ends = [".jsonl.gz", ".jsonl.zst", ".jsonl", ".json"];
    let stem = ends.iter().find_map(|end| name.strip_suffix(end));
    stem.unwrap_or(&name).to_owned()
}

/// Returns the name of the benchmark's cache folders: the setting, or the name of the task file.
///
/// # Errors
/// The name cannot be a folder name, or the file is a folder.
pub fn benchmark(settings: &Settings, file: Option<&Path>) -> Result<String> {
    if let Some(file) = file {
        if file.as_os_str().is_empty() {
            return fail(
                message![&DECLARED.tasks, " names no file"],
                message!["name a task file, or leave ", &DECLARED.tasks, " out"],
            );
        }
        if file.is_dir() {
            return fail(format!("{}: this is a folder", file.display()), "name a task file in it");
        }
    }
    let name = match (settings.benchmark.as_deref(), file) {
        (Some(name), _) => name.to_owned(),
        (None, Some(file)) => {
            let is_twin = |other: &&PathBuf| stem(other) == stem(file);
            let folder = file.parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
            match folder {
                // Files of the same name, which CrossCodeEval has for each language, are distinguished by their folders.
                Some(folder) if settings.tasks.iter().filter(is_twin).count() > 1 => {
                    format!("{folder}_{}", stem(file))
                }
                _ if file == Path::new("-") => "stdin".into(),
                _ => stem(file),
            }
        }
        (None, None) => "none".into(),
    };
    if is_folder_name(&name) && name != "repos" {
        return Ok(name);
    }
    fail(
        format!("'{name}' cannot be the name of the benchmark's cache folders"),
        message!["choose another with ", &DECLARED.benchmark],
    )
}

/// Checks that prompts are meant for a model, and are not tasks with their cross-file context.
pub fn check_completable(experiment: &Experiment) -> Result<()> {
    if matches!(experiment.prompts.layout, PromptLayout::Attach) {
        return fail(
            message![&DECLARED.prompt_style, " attach writes tasks, which a model cannot complete"],
            message!["choose another ", &DECLARED.prompt_style],
        );
    }
    Ok(())
}

/// Returns the model that completes an experiment, by the settings of its tasks; see [`server::model`].
///
/// # Errors
/// The same as for [`server::model`].
pub fn completion_of(
    experiment: &Experiment,
    settings: &Settings,
    seed: Option<u64>,
    by_batch: bool,
) -> Result<Completion> {
    let mut completion = server::model(settings, seed, by_batch)?;
    let looks_at_lines = || experiment.scoring.recipes().all(|(_, recipe)| recipe.is_of_lines());
    if let Some(server) = &mut completion.server
        && settings.until.is_none()
        && !are_functions(settings, experiment.all_tasks().map(Arc::as_ref))
        && experiment.tasks.is_some()
        // Text that a chat model writes before its code, such as reasoning, can be recognised only at its end.
        && server.asking.api != Api::Chat
        && looks_at_lines()
    {
        server.until = CompletionBound::Lines;
    }
    if let Some(server) = &completion.server
        && (server.until, server.asking.api) == (CompletionBound::Lines, Api::Chat)
    {
        settings.messages.warning_once(message![
            &DECLARED.until,
            " lines: a chat model's thoughts and sentences count as lines, so its code may be cut off"
        ]);
    }
    Ok(completion)
}
