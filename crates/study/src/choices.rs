//! Choices that settings make for all experiments of a command: repositories, modes, the model, intervals.

use std::path::{Path, PathBuf};

use anyhow::Result;
use repoformer_core::repository::corpus::{
    RepositoryFolders, Walk, foreign_links, is_folder_name, is_link_out, languages,
};
use repoformer_core::retrieve::{Mode, QueryForm};
use repoformer_evaluate::report::ChartPage;
use repoformer_evaluate::statistics::Resampling;
use repoformer_pipeline::{Completion, Experiment, Messages};
use repoformer_store::artifact::write_file;
use repoformer_store::manifest::Manifest;
use repoformer_text::counts::{format_count, list_first};
use repoformer_text::language::Language;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use repoformer_text::names::did_you_mean;
use serde_json::Value;

use crate::experiment_settings::cuts_chunks;
use crate::fail;
use crate::settings::{DECLARED, Departure, SettingValue, Settings, StyleName};

/// Warns of all departures from the paper's profile in force, unless the command names them in its results.
pub fn warn_of_departures(settings: &Settings) {
    warn_of_some_departures(settings, &settings.departures());
}

/// Warns of these departures from the paper's profile in force.
pub fn warn_of_some_departures(settings: &Settings, departures: &[Departure]) {
    if let Some(line) = settings.line_of(departures) {
        settings.messages.warning_once(line.into());
    }
}

/// Records the paper's profile, and the settings that contradict it.
pub fn set_profile(manifest: &mut Manifest, settings: &Settings) {
    let departures: Vec<Value> = settings.departures().iter().map(Departure::to_record).collect();
    if let Some(profile) = settings.paper_profile() {
        manifest.setting("profile", profile);
    }
    if !departures.is_empty() {
        manifest.setting("departures", departures);
    }
}

/// Returns a hint for when the folder of repositories is not set.
fn name_repos_dir() -> Message {
    message![
        "name a folder that holds one folder per repository, or one repository; the ",
        UserChoice::Demonstration,
        " needs none"
    ]
}

/// Returns the folder of repositories, which has no default.
pub fn repos_dir(settings: &Settings) -> Result<PathBuf> {
    match settings.repos_dir.get() {
        Some(dir) => Ok(dir.clone()),
        None => fail(message![&DECLARED.repos_dir, " is not set"], name_repos_dir()),
    }
}

/// Returns the folder of repositories for the modes that retrieve; the hint names mode `given`, which needs no repositories.
pub fn repos_dir_of_modes(settings: &Settings) -> Result<PathBuf> {
    match settings.repos_dir.get() {
        Some(dir) => Ok(dir.clone()),
        None => fail(
            message![&DECLARED.repos_dir, " is not set"],
            message![
                name_repos_dir(),
                "; tasks that carry their cross-file context need no repositories with ",
                &DECLARED.mode,
                " given"
            ],
        ),
    }
}

/// Number of folder names that a note lists.
const LISTED: usize = 5;
/// Number of repository names that an error lists.
const KNOWN: usize = 20;

/// Returns the named repositories of a folder, or all; sorted, without duplicates. Prints a note that names the folders left
/// out.
pub fn repositories_in(
    dir: &Path,
    named: &[String],
    messages: &dyn Messages,
) -> Result<Vec<String>> {
    let mut names = named.to_vec();
    check_named(dir, named)?;
    if names.is_empty() {
        let found = RepositoryFolders::below(dir)?;
        note_left_out(dir, &found, messages);
        names = found.names;
    }
    names.sort_unstable();
    names.dedup();
    note_links(dir, &names, messages);
    Ok(names)
}

/// Prints notes that name the repositories whose folders are links to elsewhere, and such links that are not read.
pub fn note_links(dir: &Path, names: &[String], messages: &dyn Messages) {
    let links: Vec<String> = names.iter().filter(|name| is_link_out(dir, name)).cloned().collect();
    if !links.is_empty() {
        let listed = list_first(&links, LISTED);
        messages.note(format!("{}: links to elsewhere are read: {listed}", dir.display()).into());
    }
    let mut left = foreign_links(dir);
    left.retain(|name| !names.contains(name));
    if !left.is_empty() {
        messages.note(message![
            format!(
                "{}: links out of a folder under version control are not read: {}; name them with ",
                dir.display(),
                list_first(&left, LISTED)
            ),
            &DECLARED.repo
        ]);
    }
}

/// Checks that the named repositories exist.
///
/// # Errors
/// A named repository does not exist; the error lists the existing ones.
pub fn check_named(dir: &Path, named: &[String]) -> Result<()> {
    let is_missing = |name: &&String| is_folder_name(name) && !dir.join(name).is_dir();
    let Some(missing) = named.iter().find(is_missing) else {
        return Ok(());
    };
    let known = RepositoryFolders::below(dir)?.names;
    let listed = list_first(&known, KNOWN);
    fail(
        format!("{}: unknown repository '{missing}'; known: {listed}", dir.display()),
        match did_you_mean(missing, known.iter().map(String::as_str)) {
            Some(hint) => hint.into(),
            None => message![
                "choose one of these with ",
                &DECLARED.repo,
                ", or another ",
                &DECLARED.repos_dir
            ],
        },
    )
}

fn note_left_out(dir: &Path, found: &RepositoryFolders, messages: &dyn Messages) {
    let kinds = [
        (&found.without_source, "without a source file"),
        (&found.caches_with_source, "with artifacts of this program and source files"),
    ];
    for (names, kind) in kinds.into_iter().filter(|(names, _)| !names.is_empty()) {
        let count = format_count(names.len() as u64, "folder");
        let listed = list_first(names, LISTED);
        messages.note(format!("{}: {count} {kind} left out: {listed}", dir.display()).into());
    }
}

/// Returns a hint that counts the source files of other languages in repositories; `None` without such files.
pub fn other_languages(dir: &Path, names: &[String], chosen: (Language, Walk)) -> Option<Message> {
    let (language, walk) = chosen;
    let mut found = languages(dir, names, walk);
    found.retain(|(other, _)| *other != language);
    let (first, _) = found.first()?;
    let counts = found.iter().map(|(other, files)| format!("{files} of {}", other.title()));
    let counts = counts.collect::<Vec<_>>().join(", ");
    Some(message![
        format!("the folder has files in other languages, {counts}: "),
        &DECLARED.language,
        format!(" {first} chooses one")
    ])
}

/// Returns the requested modes, or `default`, in the order of a results table.
pub fn modes(settings: &Settings, default: &[Mode]) -> Result<Vec<Mode>> {
    let mut modes = settings.mode.to_vec();
    cuts_chunks(settings)?;
    let form = *settings.query;
    let chosen = (form != QueryForm::Window && settings.query.is_chosen()).then_some(form);
    if modes.is_empty() {
        modes = chosen.map_or(default.to_vec(), |form| vec![form.mode()]);
    }
    if let Some(form) = chosen
        && !modes.contains(&form.mode())
    {
        return fail(
            message![
                &DECLARED.query,
                format!(" {form} works only in mode {}, which ", form.mode()),
                &DECLARED.mode,
                " leaves out"
            ],
            message!["leave ", &DECLARED.mode, " out, or choose another ", &DECLARED.query],
        );
    }
    if modes.contains(&Mode::Given) && *settings.prompt_style.get() == StyleName::RepoCoder {
        return fail(
            "mode given needs a prompt style with a place for the tasks' cross-file context; repocoder has none",
            message![
                "choose another ", &DECLARED.prompt_style, ", or a ", &DECLARED.profile,
                " with one"
            ],
        );
    }
    modes.sort_unstable();
    modes.dedup();
    Ok(modes)
}

/// Returns the requested modes, or all completed ones; and the requested modes that are left out because they are not
/// completed.
pub fn completed_modes(
    settings: &Settings,
    experiment: &Experiment,
    completion: &Completion,
) -> Result<(Vec<Mode>, Vec<Mode>)> {
    let asked = !settings.mode.is_empty();
    let path = |mode: &Mode| experiment.paths().predictions(*mode, &completion.model);
    let modes = modes(settings, experiment.known_modes())?;
    Ok(modes.into_iter().partition(|mode| asked || experiment.has(&path(mode))))
}

/// Returns the model that completes, and the limits of a completion.
pub fn completion(settings: &Settings) -> Result<Completion> {
    let (model, max_tokens) = (settings.model.to_string(), *settings.max_tokens);
    let mut completion = Completion { model, max_tokens, max_lines: None, server: None };
    if completion.is_embedded() {
        completion.max_lines = *settings.max_lines;
    }
    Ok(completion)
}

/// Returns the path of the page in a folder.
pub fn page_in(folder: &Path) -> PathBuf {
    folder.join("index.html")
}

/// Writes `index.html` and the figures of a page into a folder.
pub fn write_page(folder: &Path, page: &ChartPage) -> Result<()> {
    write_file(&page_in(folder), page.html().as_bytes())?;
    for (name, svg) in page.figures() {
        write_file(&folder.join(name), svg.as_bytes())?;
    }
    Ok(())
}

/// Returns the resampling settings for intervals.
pub fn resampling(settings: &Settings) -> Result<Resampling> {
    Ok(Resampling {
        resamples: *settings.resamples,
        seed: seed(settings)?,
        ..Resampling::default()
    })
}

/// Returns the seed of random draws.
pub fn seed(settings: &Settings) -> Result<u64> {
    Ok(settings.seed.unwrap_or(0))
}

/// Returns `window line:` if there is a benchmark.
pub fn label(name: &str, experiment: &Experiment) -> String {
    match experiment.tasks {
        Some(_) => format!("{name} {}", experiment.name),
        None => name.to_owned(),
    }
}

/// Modes that retrieve without a completion.
pub const FIRST: [Mode; 2] = [Mode::LeftContext, Mode::GroundTruth];
/// Modes that need no prediction.
pub const WITHOUT_PREDICTION: [Mode; 3] = [Mode::Without, Mode::LeftContext, Mode::GroundTruth];
