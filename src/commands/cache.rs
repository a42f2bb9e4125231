//! `cache`: lists the files in the cache folder, and removes selected ones.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use clap::{Args, Subcommand};
use indicatif::{HumanBytes, HumanDuration};
use repoformer_core::retrieve::Mode;
use repoformer_evaluate::table::{NamedColumn, Printable, Table, columns};
use repoformer_pipeline::{CacheFile, CacheSources, Condition, STAGES, cache_files};
use repoformer_store::error::{Access, Error};
use repoformer_store::files;
use repoformer_store::frame::ColumnType::{Integer, Text};
use repoformer_study::checkout;
use repoformer_study::experiments::{benchmark, read_tasks};
use repoformer_study::settings::Invocation;
use repoformer_text::visible::visible_in_line;
use serde_json::{Value, json};

use super::demonstration::FILES;
use crate::output::{self, Screen, fail, group, note, plural, screen, unknown, write_data};
use crate::settings::{DECLARED, Settings, ValueList};
use crate::table::{ScoreFormat, format_results};

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List the files in the cache, and whether they are up to date
    List(CacheListArgs),
    /// Remove files from the cache by stage, benchmark, mode or state
    Prune(CachePruneArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CacheListArgs {
    #[command(flatten)]
    place: CachePlace,
    /// List each file, with its settings, and why it is out of date
    #[arg(long)]
    files: bool,
    /// Format of the list; csv, json, jsonl and parquet have a row per file, as has tsv with --files
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: ScoreFormat,
    #[command(flatten)]
    selection: Selection,
}

#[derive(Debug, Args)]
pub(crate) struct CachePruneArgs {
    #[command(flatten)]
    place: CachePlace,
    /// Remove the files; without this, they are only listed
    #[arg(long)]
    yes: bool,
    /// Format of the list; text prints only the paths
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: ScoreFormat,
    #[command(flatten)]
    selection: Selection,
}

/// The cache, and what its artifacts are compared with.
#[derive(Debug, Args)]
struct CachePlace {
    /// Folder of the cached artifacts [default: from the settings, or data/cache]
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Folder that holds one folder per repository, to check that fragments are up to date [default: from the settings]
    #[arg(long, value_name = "DIR")]
    repos_dir: Option<PathBuf>,
    /// Task file, to check that its prompts and scores are up to date (repeatable, or separated by commas) [default: from the
    /// settings]
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    tasks: Vec<PathBuf>,
}

/// Filter of the files; a file is selected if it matches every given flag.
#[derive(Debug, Args)]
#[command(next_help_heading = "Selection")]
struct Selection {
    /// Only files of this stage (repeatable, or separated by commas)
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = ValueList::new(STAGES))]
    stage: Vec<String>,
    /// Only files of this benchmark; repos selects files of repositories (repeatable, or separated by commas)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    benchmark: Vec<String>,
    /// Only files of this mode (repeatable, or separated by commas)
    #[arg(long, value_name = "MODE", value_delimiter = ',', value_parser = mode_name)]
    mode: Vec<String>,
    /// Only stale or damaged files
    #[arg(long)]
    stale: bool,
    /// Only temporary files of killed runs; with --stale, stale and damaged files too
    #[arg(long)]
    temporary: bool,
}

pub(crate) fn run(command: &CacheCommand) -> Result<()> {
    match command {
        CacheCommand::List(args) => list(args),
        CacheCommand::Prune(args) => prune(args),
    }
}

/// Returns the cache folder of the settings, and its files.
pub(super) fn files(settings: &Settings) -> Result<(PathBuf, Vec<CacheFile>)> {
    let cache = settings.cache_dir.to_path_buf();
    if !cache.is_dir() {
        return Ok((cache, Vec::new()));
    }
    let mut settings = settings.clone();
    checkout::settle(&mut settings);
    let settings = &settings;
    let mut sources = CacheSources {
        repos_dir: settings.repos_dir.get().clone(),
        demo: FILES.iter().map(|(path, text)| (path.into(), *text)).collect(),
        ..CacheSources::default()
    };
    for file in settings.tasks.iter() {
        let name = benchmark(settings, Some(file))?;
        sources.tasks.insert(name, read_tasks(file, &Screen)?);
    }
    // Without data in the settings, `run` uses the demonstration's data, which is in the cache.
    if sources.repos_dir.is_none() && sources.tasks.is_empty() {
        let demo = cache.join("demo/data");
        sources.repos_dir = Some(demo.join("repos")).filter(|folder| folder.is_dir());
        for (path, _) in FILES.iter().filter(|(path, _)| path.ends_with(".jsonl")) {
            let path = cache.join("demo").join(path);
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if let Ok(tasks) = read_tasks(&path, &Screen) {
                sources.tasks.insert(name, tasks);
            }
        }
    }
    let files = cache_files(&cache, &sources)?;
    Ok((cache, files))
}

impl CachePlace {
    fn files(&self) -> Result<(PathBuf, Vec<CacheFile>)> {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let mut given = Vec::new();
        let folders =
            [(&DECLARED.cache_dir, &self.cache_dir), (&DECLARED.repos_dir, &self.repos_dir)];
        for (setting, path) in folders {
            given.extend(path.iter().map(|path| (setting, vec![text(path)])));
        }
        if !self.tasks.is_empty() {
            given.push((&DECLARED.tasks, self.tasks.iter().map(text).collect()));
        }
        if let Some(path) = &self.cache_dir
            && let Err(reason) = files::read_dir(path)
        {
            let action = "list this folder";
            let error = Error::Io { path: path.clone(), access: Access::Read, action, reason };
            return Err(error.into());
        }
        files(&Settings::resolve(&Invocation::giving(given), screen())?)
    }
}

/// Returns the name of a mode as file names contain it.
fn mode_name(name: &str) -> Result<String, Infallible> {
    Ok(Mode::canonical(name).to_owned())
}

impl Selection {
    fn is_empty(&self) -> bool {
        let names = [&self.stage, &self.benchmark, &self.mode];
        names.iter().all(|names| names.is_empty()) && !self.stale && !self.temporary
    }

    /// Checks that each name belongs to some file.
    fn check(&self, files: &[CacheFile]) -> Result<()> {
        let known = |of: fn(&CacheFile) -> Option<&str>| {
            let mut names: Vec<String> = files.iter().filter_map(of).map(str::to_owned).collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        for (what, given, known) in [
            ("unknown stage", &self.stage, STAGES.map(str::to_owned).to_vec()),
            ("no benchmark", &self.benchmark, known(|file| file.benchmark.as_deref())),
            ("no mode", &self.mode, known(|file| file.mode.as_deref())),
        ] {
            if let Some(name) = given.iter().find(|name| !known.contains(name)) {
                return unknown(what, name, &known);
            }
        }
        Ok(())
    }

    /// True if a file has the selected stage, benchmark and mode.
    fn has_place(&self, file: &CacheFile) -> bool {
        let is_one = |names: &[String], name: Option<&str>| {
            names.is_empty() || name.is_some_and(|name| names.iter().any(|one| one == name))
        };
        is_one(&self.stage, file.stage)
            && is_one(&self.benchmark, file.benchmark.as_deref())
            && is_one(&self.mode, file.mode.as_deref())
    }

    fn has(&self, file: &CacheFile) -> bool {
        let is_stale = matches!(file.condition, Condition::Stale(_) | Condition::Damaged(_));
        let is_temporary = file.condition == Condition::Temporary;
        self.has_place(file)
            && (!self.stale && !self.temporary
                || self.stale && is_stale
                || self.temporary && is_temporary)
    }
}

/// Reports unreadable files with the selected stage, benchmark and mode: they may be stale or damaged.
fn tell_unreadable(files: &[CacheFile], selection: &Selection) {
    let of_it = files.iter().filter(|file| selection.has_place(file));
    let problems: Vec<Error> = of_it.filter_map(CacheFile::unreadable).collect();
    output::problems(&problems);
}

fn list(args: &CacheListArgs) -> Result<()> {
    let format = ScoreFormat::choose(Some(args.format), Path::new("-"))?;
    let (cache, mut files) = args.place.files()?;
    args.selection.check(&files)?;
    tell_unreadable(&files, &args.selection);
    files.retain(|file| args.selection.has(file));
    let shown = if args.files { FileTable::Files } else { FileTable::Summary };
    write_data(Path::new("-"), format_results(&FileList { files: &files, shown }, format)?)?;
    note(format!("cache: {} in {}", total(&files), cache.display()));
    note_uncompared(&files);
    Ok(())
}

/// Reports artifacts that could not be compared, and the flags that allow it.
fn note_uncompared(files: &[CacheFile]) {
    let unknown =
        files.iter().filter(|file| matches!(file.condition, Condition::Unknown(_))).count();
    if unknown > 0 {
        note(format!(
            "cache: {} {} could not be checked; name the repositories and tasks with --repos-dir and --tasks",
            group(unknown),
            plural(unknown, "file")
        ));
    }
}

fn prune(args: &CachePruneArgs) -> Result<()> {
    let format = ScoreFormat::choose(Some(args.format), Path::new("-"))?;
    let (cache, files) = args.place.files()?;
    if args.selection.is_empty() {
        return fail(
            "nothing is selected, so nothing is removed",
            "select files with --stage, --benchmark, --mode, --stale or --temporary; `repoformer cache list` lists the files",
        );
    }
    args.selection.check(&files)?;
    tell_unreadable(&files, &args.selection);
    let is_others = |file: &CacheFile| {
        matches!(file.condition, Condition::Foreign | Condition::InUse | Condition::Unreadable(_))
    };
    let is_named = |file: &&CacheFile| !is_others(file) && args.selection.has(file);
    // Files that cost server requests or hours of tests are removed only if their stage is named.
    let has_stage = !args.selection.stage.is_empty();
    let (chosen, kept): (Vec<_>, Vec<_>) =
        files.iter().filter(is_named).partition(|file| has_stage || !file.is_paid());
    let mut removed = Vec::new();
    for file in chosen {
        match args.yes.then(|| file.remove(&cache)) {
            Some(Err(error)) => output::problems(&[error]),
            _ => removed.push(file.clone()),
        }
    }
    if args.selection.stale {
        note_uncompared(&files);
    }
    let list = FileList { files: &removed, shown: FileTable::Paths };
    write_data(Path::new("-"), format_results(&list, format)?)?;
    let done = if args.yes { "removed" } else { "not removed; pass --yes to remove them" };
    note(format!("cache: {} {done}", total(&removed)));
    if !kept.is_empty() {
        let mut stages: Vec<&str> = kept.iter().filter_map(|file| file.stage).collect();
        stages.dedup();
        note(format!(
            "cache: {} of {} kept, since they took a server or test runs; remove them with --stage",
            group(kept.len()),
            stages.join(", ")
        ));
    }
    Ok(())
}

/// Formats the number and size of files: `12 files, 3.4 MiB`.
pub(super) fn total(files: &[CacheFile]) -> String {
    let count = files.iter().map(|file| 1 + file.beside.len()).sum();
    let bytes = files.iter().map(|file| file.bytes).sum();
    format!("{} {}, {}", group(count), plural(count, "file"), HumanBytes(bytes))
}

fn age(modified: Option<SystemTime>) -> String {
    let age = modified.and_then(|time| time.elapsed().ok()).unwrap_or(Duration::ZERO);
    format!("{:#}", HumanDuration(age))
}

/// Files to print.
struct FileList<'a> {
    files: &'a [CacheFile],
    shown: FileTable,
}

/// Form of the table of files.
#[derive(Clone, Copy)]
enum FileTable {
    /// A row for each stage, benchmark and mode.
    Summary,
    /// A row for each file.
    Files,
    /// Only the paths.
    Paths,
}

impl Printable for FileList<'_> {
    fn table(&self) -> Table {
        match self.shown {
            FileTable::Summary => summary(self.files),
            FileTable::Files | FileTable::Paths => file_table(self.files),
        }
    }

    fn text(&self) -> String {
        match self.shown {
            FileTable::Paths => {
                let paths = self.files.iter().map(|file| file.path.display().to_string());
                paths.map(|path| format!("{}\n", visible_in_line(&path))).collect()
            }
            _ if self.files.is_empty() => String::new(),
            _ => self.table().text_left(),
        }
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.files.iter().map(record))
    }

    fn columns(&self) -> Vec<NamedColumn> {
        let names = ["path", "beside", "stage", "benchmark", "mode", "kind"];
        let sizes = columns(Integer, ["bytes", "modified"]);
        let state = columns(Text, ["state", "reason", "made_with"]);
        columns(Text, names).chain(sizes).chain(state).collect()
    }

    fn rows(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.lines().map(|mut row| {
            // The settings of artifacts differ, but a table has the same columns for all rows.
            row["made_with"] = row["made_with"].to_string().into();
            row
        }))
    }
}

/// Returns a row for each stage, benchmark and mode.
fn summary(files: &[CacheFile]) -> Table {
    let mut rows: Vec<([String; 3], Vec<&CacheFile>)> = Vec::new();
    let name = |text: Option<&str>| text.unwrap_or("-").to_owned();
    for file in files {
        let key = [file.stage, file.benchmark.as_deref(), file.mode.as_deref()].map(name);
        match rows.iter_mut().find(|(known, _)| *known == key) {
            Some((_, files)) => files.push(file),
            None => rows.push((key, vec![file])),
        }
    }
    let mut table = Table::new(["stage", "benchmark", "mode", "files", "size", "age", "state"]);
    for ([stage, benchmark, mode], files) in rows {
        let count: usize = files.iter().map(|file| 1 + file.beside.len()).sum();
        let bytes = files.iter().map(|file| file.bytes).sum();
        let newest = files.iter().filter_map(|file| file.modified).max();
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        files.iter().for_each(|file| *states.entry(file.condition.name()).or_default() += 1);
        let state = match states.len() {
            1 => states.keys().map(|state| (*state).to_owned()).collect::<Vec<_>>(),
            _ => states.iter().map(|(state, count)| format!("{count} {state}")).collect(),
        };
        let bytes = HumanBytes(bytes).to_string();
        table.row(vec![stage, benchmark, mode, group(count), bytes, age(newest), state.join(", ")]);
    }
    table
}

/// Returns a row for each file.
fn file_table(files: &[CacheFile]) -> Table {
    let mut table = Table::new(["file", "what", "size", "age", "state", "made with"]);
    for file in files {
        let reason = file.condition.reason().map_or(String::new(), |reason| format!(": {reason}"));
        let with: Vec<String> =
            file.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        table.row(vec![
            file.path.display().to_string(),
            file.kind.clone(),
            HumanBytes(file.bytes).to_string(),
            age(file.modified),
            format!("{}{reason}", file.condition.name()),
            with.join(" "),
        ]);
    }
    table
}

fn record(file: &CacheFile) -> Value {
    let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
    json!({
        "path": file.path.display().to_string(),
        "beside": file.beside.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        "stage": file.stage,
        "benchmark": file.benchmark,
        "mode": file.mode,
        "kind": file.kind,
        "bytes": file.bytes,
        "modified": file.modified.and_then(since).map(|since| since.as_secs()),
        "state": file.condition.name(),
        "reason": file.condition.reason(),
        "made_with": file.parameters,
    })
}
