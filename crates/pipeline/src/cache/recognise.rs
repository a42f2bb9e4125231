//! Recognises files of a cache folder.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use repoformer_core::policy::Policy;
use repoformer_core::repository::corpus::{Repository, Walk};
use repoformer_core::repository::fragment::{
    ChunkShape, Cut, FragmentFile, RepoFragments, WindowShape, digest_of_files,
};
use repoformer_core::retrieve::Mode;
use repoformer_store::artifact::{
    Header, Payload, header_path, is_artifact, is_held, is_temporary, jsonl_header, read_header,
};
use repoformer_store::error::Error;
use repoformer_store::files::{self, File};
use repoformer_text::language::Language;
use walkdir::{DirEntry, WalkDir};

use super::super::layout::COPIES;
use super::file::{
    CacheFile, CacheSources, Condition, LOCK, RepositoryDigest, RepositoryKey, STAGES,
};

/// True if a file is the companion of an existing file.
pub(super) fn is_beside(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let of = |end: &str, suffixes: &[&str]| {
        let stem = name.strip_prefix('.').and_then(|name| name.strip_suffix(end));
        stem.is_some_and(|stem| {
            let there = |suffix: &&str| path.with_file_name(format!("{stem}{suffix}")).is_file();
            suffixes.iter().any(there)
        })
    };
    of(".header.json", &[".jsonl", ".json"]) || of(".time.json", &[".bin"])
}

/// Returns the components of a path within the cache.
fn parts(path: &Path, cache: &Path) -> Vec<String> {
    let within = path.strip_prefix(cache).unwrap_or(path);
    within.iter().map(|part| part.to_string_lossy().into_owned()).collect()
}

fn stage_of(parts: &[String]) -> Option<&'static str> {
    let of = |name: &str| STAGES.into_iter().find(|stage| *stage == name);
    match parts {
        [vector, dense, _, ..] if vector == "vector" && dense == "dense" => of("dense"),
        [first, _, ..] if first != "dense" => of(first),
        _ => None,
    }
}

/// True if a folder holds copies of repositories for test runs.
pub(super) fn is_copies(entry: &DirEntry, cache: &Path) -> bool {
    let parts = parts(entry.path(), cache);
    let is_name = |name: &str| name == COPIES || name.starts_with(&format!("{COPIES}.shard-"));
    matches!(&parts[..], [exec, _, copies] if exec == "exec" && is_name(copies))
        && entry.path().join(LOCK).is_file()
}

pub(super) fn copies(entry: &DirEntry, cache: &Path) -> CacheFile {
    let files = WalkDir::new(entry.path()).into_iter().flatten();
    let lengths = files.filter(|file| file.file_type().is_file());
    let bytes = lengths.filter_map(|file| Some(file.metadata().ok()?.len())).sum();
    CacheFile {
        kind: "copies of repositories for tests".into(),
        bytes,
        condition: Condition::Kept,
        ..plain(entry, cache)
    }
}

/// Returns a file of which only the path is known yet.
fn plain(entry: &DirEntry, cache: &Path) -> CacheFile {
    let parts = parts(entry.path(), cache);
    let stage = stage_of(&parts);
    let metadata = entry.metadata().ok();
    let has_benchmark = stage.is_some_and(|stage| !["dense", "journal", "demo"].contains(&stage));
    let has_mode = stage.is_some_and(|stage| ["window", "vector", "retrieval"].contains(&stage));
    CacheFile {
        path: entry.path().to_owned(),
        beside: Vec::new(),
        stage,
        benchmark: parts.get(1).filter(|_| has_benchmark && parts.len() > 2).cloned(),
        mode: if has_mode {
            parts.get(2).filter(|_| parts.len() > 3).cloned()
        } else {
            stage.and_then(|_| mode_of(parts.last()?))
        },
        kind: "another file".into(),
        bytes: metadata.as_ref().map_or(0, files::Metadata::len),
        modified: metadata.and_then(|metadata| metadata.modified().ok()),
        condition: Condition::Foreign,
        parameters: BTreeMap::new(),
    }
}

/// Returns the mode in a file name, which may follow a policy or the word `decision`: `rg-rg-2-…`.
fn mode_of(name: &str) -> Option<String> {
    let name = name.trim_start_matches('.');
    let starts = std::iter::once(0).chain(name.match_indices('-').map(|(at, _)| at + 1));
    starts.filter_map(|at| mode_at(&name[at..])).next()
}

fn mode_at(name: &str) -> Option<String> {
    let modes = Mode::ALL.into_iter().map(Mode::name);
    let found = modes.filter_map(|mode| Some((mode, name.strip_prefix(mode)?.strip_prefix('-')?)));
    let (mode, rest) = found.max_by_key(|(mode, _)| mode.len())?;
    // Further iterations are numbered.
    let (number, _) = rest.split_once('-').unwrap_or((rest, ""));
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_iteration = mode == Mode::Prediction.name() && is_number;
    Some(if is_iteration { format!("{mode}-{number}") } else { mode.to_owned() })
}

pub(super) fn read_file(
    entry: &DirEntry,
    cache: &Path,
    sources: &CacheSources,
) -> (CacheFile, Option<Header>) {
    let (path, mut file) = (entry.path(), plain(entry, cache));
    if is_temporary(path) {
        file.kind = "temporary file".into();
        file.condition = if is_held(path) { Condition::InUse } else { Condition::Temporary };
        return (file, None);
    }
    let Some(stage) = file.stage.filter(|_| entry.file_type().is_file()) else {
        return (file, None);
    };
    let header = header_path(path);
    let header = match is_artifact(path) {
        Err(error) => return (unreadable(file, &error), None),
        Ok(true) => Some(read_header(path)),
        Ok(false) if header.is_file() && (ends(path, "jsonl") || ends(path, "json")) => {
            file.beside.push(header);
            Some(jsonl_header(path))
        }
        Ok(false) => None,
    };
    if ends(path, "bin") {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let time = path.with_file_name(format!(".{stem}.time.json"));
        file.beside.extend(Some(time).filter(|time| time.is_file()));
    }
    let lengths = file.beside.iter().filter_map(|path| Some(path.metadata().ok()?.len()));
    file.bytes += lengths.sum::<u64>();
    let header = match header {
        Some(Ok(header)) => header,
        Some(Err(Error::Artifact { reason, .. })) => {
            file.kind = "artifact".into();
            // A file in another format is not damaged.
            let is_other = reason.starts_with("written by");
            let condition = if is_other { Condition::Stale } else { Condition::Damaged };
            file.condition = condition(reason.trim_start_matches("damaged: ").to_owned());
            return (file, None);
        }
        Some(Err(Error::Io { reason, .. })) => return (unreadable(file, &reason), None),
        Some(Err(error)) => {
            file.condition = Condition::Damaged(error.to_string());
            return (file, None);
        }
        None => {
            return match without_header(&mut file, stage, cache, sources) {
                Ok(()) => (file, None),
                Err(error) => (unreadable(file, &error), None),
            };
        }
    };
    file.kind = header.identity.kind.clone();
    file.parameters = header.identity.parameters.clone();
    file.condition = if header.tool == env!("CARGO_PKG_VERSION") {
        of_sources(&header, &file, sources)
    } else {
        Condition::Stale(format!("it was written by repoformer {}", header.tool))
    };
    (file, Some(header))
}

fn unreadable(file: CacheFile, error: &io::Error) -> CacheFile {
    let condition = Condition::Unreadable(format!("cannot be read: {error}"));
    CacheFile { condition, ..file }
}

fn ends(path: &Path, end: &str) -> bool {
    path.extension().is_some_and(|found| found == end)
}

/// Recognises files that stages write without a header.
fn without_header(
    file: &mut CacheFile,
    stage: &str,
    cache: &Path,
    sources: &CacheSources,
) -> io::Result<()> {
    let name = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let begin = beginning(&file.path)?;
    let begins = |text: &str| begin.starts_with(text);
    let has = |texts: &[&str]| texts.iter().all(|text| begin.contains(text));
    // A program that was killed may leave a file empty to which it appends lines.
    let is_empty = file.bytes == 0;
    let starts = |text: &str| begins(text) || is_empty;
    let is_own_manifest = || begins("{") && has(&["\"tool\": \"repoformer\""]);
    let kind = match stage {
        "journal" if ends(&file.path, "jsonl") && starts("{\"key\":") => "answers of a server",
        "predictions" if is_choice(&file.path, &name) => "predictions that a policy chose",
        "latency"
            if ends(&file.path, "jsonl")
                && begins("{\"task_id\":")
                && (has(&["\"generation_ms\":"]) || has(&["\"decision_ms\":"])) =>
        {
            "times of tasks"
        }
        "exec"
            if ends(&file.path, "jsonl")
                && starts("{\"task_id\":")
                && (has(&["\"kind\":", "\"status\":"]) || is_empty) =>
        {
            "results of test runs"
        }
        "exec" if name.ends_with(".manifest.json") && is_own_manifest() => "manifest of test runs",
        "dense" if ends(&file.path, "vectors") => "vectors of a model",
        "dense" if name.ends_with(".times.jsonl") && starts("{\"digest\":") => {
            "times of embeddings"
        }
        "report"
            if ends(&file.path, "html")
                && has(&["<meta name=\"generator\" content=\"repoformer"]) =>
        {
            "page"
        }
        "report"
            if ends(&file.path, "svg")
                && has(&[
                    "role=\"img\" aria-labelledby=\"title desc\" font-family=\"Helvetica, Arial, 'Liberation Sans'",
                ]) =>
        {
            "figure"
        }
        "report" if name == "manifest.json" && is_own_manifest() => "manifest of a page",
        "demo" if is_demo(&file.path, cache, sources)? => "file of the demonstration",
        _ if name.starts_with('.') && name.ends_with(".header.json") && begins("{") => {
            file.kind = "header of an artifact".into();
            file.condition = Condition::Damaged("its artifact is missing".into());
            return Ok(());
        }
        _ if name.starts_with('.') && name.ends_with(".time.json") && begins("{") => {
            file.kind = "time of a search".into();
            file.condition = Condition::Damaged("its artifact is missing".into());
            return Ok(());
        }
        _ => return Ok(()),
    };
    file.kind = kind.into();
    file.condition = Condition::Kept;
    Ok(())
}

/// True if a file is named as a policy's choice between existing predictions.
fn is_choice(path: &Path, name: &str) -> bool {
    let is_made = |(at, _): (usize, &str)| {
        let (policy, base) = (&name[..at], path.with_file_name(&name[at + 1..]));
        let policy = policy.split('@').next().unwrap_or(policy);
        policy.parse::<Policy>().is_ok() && base.is_file() && header_path(&base).is_file()
    };
    name.match_indices('-').any(is_made)
}

/// Reads the first bytes of a file, which show its kind.
fn beginning(path: &Path) -> io::Result<String> {
    let mut begin = Vec::new();
    File::open_regular(path)?.take(4096).read_to_end(&mut begin)?;
    Ok(String::from_utf8_lossy(&begin).into_owned())
}

fn is_demo(path: &Path, cache: &Path, sources: &CacheSources) -> io::Result<bool> {
    let within = path.strip_prefix(cache.join("demo")).unwrap_or(path);
    let own = sources.demo.iter().find(|(path, _)| path == within);
    let is_same = |(_, text): &(_, &str)| Ok(files::read_companion(path)? == text.as_bytes());
    own.map_or(Ok(false), is_same)
}

/// Compares the inputs outside the cache, if they are known.
fn of_sources(header: &Header, file: &CacheFile, sources: &CacheSources) -> Condition {
    let input = |name: &str| header.identity.inputs.get(name);
    let changed = |name: &str| Condition::Stale(format!("{name} changed"));
    if header.identity.kind == RepoFragments::KIND
        && let Some(made_from) = input("repository")
    {
        match repository(header, sources) {
            Some(Err(reason)) => return Condition::Unknown(reason),
            Some(Ok(known)) if known != *made_from => return changed("repository"),
            Some(Ok(_)) => {}
            None if sources.repos_dir.is_none() => {
                return Condition::Unknown("the folder of repositories is not known".into());
            }
            None => return Condition::Unknown("its repository was not found".into()),
        }
    }
    if let Some(made_from) = input("tasks") {
        let tasks = file.benchmark.as_ref().and_then(|name| sources.tasks.get(name));
        let Some(tasks) = tasks else {
            return Condition::Unknown("the task file of its benchmark is not known".into());
        };
        // An artifact of one repository depends on all of its tasks, or only on their holes.
        let known = match header.identity.parameters.get("repository") {
            None => vec![tasks.digest()],
            Some(name) => vec![tasks.digest_of(name), tasks.hole_digest(name)],
        };
        if !known.contains(made_from) {
            return changed("tasks");
        }
    }
    Condition::Current
}

/// Returns the current digest of the repository that fragments were cut from, or why it is not known; `None` if the repository is
/// missing.
fn repository(header: &Header, sources: &CacheSources) -> RepositoryDigest {
    let parameter = |name: &str| header.identity.parameters.get(name);
    let language: Language = parameter("language")?.parse().ok()?;
    let walk: Walk = parameter("walk")?.parse().ok()?;
    let (repos_dir, name) = (sources.repos_dir.as_ref()?, parameter("repository")?);
    let are_chunks = parameter("chunk-size").is_some();
    let key = (name.to_owned(), language, walk, are_chunks);
    sources.digests.get_or_read(key, |key| digest_of_repository(repos_dir, key))
}

fn digest_of_repository(
    repos_dir: &Path,
    (name, language, walk, are_chunks): &RepositoryKey,
) -> RepositoryDigest {
    let cut = if *are_chunks {
        Cut::Chunks(ChunkShape::default())
    } else {
        Cut::Windows(WindowShape::default())
    };
    let reading = Repository::read_with(repos_dir, name, *language, *walk).ok()?;
    // Files that are always skipped were skipped when the fragments were cut, too.
    let failed = reading.skipped.iter().map(ToString::to_string);
    if let Some(reason) = { failed }.find(|reason| reason.contains("cannot be read")) {
        return Some(Err(reason));
    }
    let files = reading.repository.files.into_iter();
    let files: Vec<FragmentFile> = files.map(|file| FragmentFile::new(file, cut)).collect();
    Some(Ok(digest_of_files(&files)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_from_names() {
        for (name, mode) in [
            ("none-starcoder-in-context.jsonl", Some("none")),
            ("rg1-one-gram-ws-20-ss-2.jsonl", Some("rg1")),
            ("rg-rg-one-gram-ws-20-ss-2-m.jsonl", Some("rg-rg")),
            ("rg-rg-2-one-gram-ws-20-ss-2-m.jsonl", Some("rg-rg-2")),
            ("decision-gt-plain-m.jsonl", Some("gt")),
            ("trial-retrieval@0.3-rg1-last-n-lines20-m.jsonl", Some("rg1")),
            (".rg1-plain.header.json", Some("rg1")),
            ("results.jsonl", None),
        ] {
            assert_eq!(mode_of(name).as_deref(), mode, "{name}");
        }
    }

    #[test]
    fn a_stage_is_a_folder_with_something_in_it() {
        let of = |path: &str| stage_of(&parts(Path::new(path), Path::new("cache")));
        assert_eq!(of("cache/window/repos/a.bin"), Some("window"));
        assert_eq!(of("cache/vector/tasks/gt/a.bin"), Some("vector"));
        assert_eq!(of("cache/vector/dense/m.vectors"), Some("dense"));
        for other in ["cache/window", "cache/notes.txt", "cache/dense/m.vectors", "cache/mine/a"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
