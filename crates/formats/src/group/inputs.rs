//! Inputs of grouping: files, the files of folders, and patterns; their sizes and digests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use foldhash::HashSet;
use repoformer_core::repository::{corpus, parallel};
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_store::manifest::digest_of;
use repoformer_store::progress::Work;
use serde::{Deserialize, Serialize};
use walkdir::{DirEntry, WalkDir};

/// Extensions of the files that are read from a folder.
const ENDS: [&str; 5] = [".parquet", ".jsonl", ".ndjson", ".json", ".tar"];
/// Extensions of compressed files.
const COMPRESSED: [&str; 3] = ["", ".gz", ".zst"];

/// Files to read, in order, and other files of folders.
#[derive(Debug, Default)]
pub(super) struct InputList {
    pub(super) files: Vec<PathBuf>,
    pub(super) others: Vec<PathBuf>,
    /// Links that lead out of their input.
    pub(super) links: Vec<PathBuf>,
}

/// Lists the files of inputs in the order in which they are named; files of a folder or pattern, by their paths. Each file is
/// listed once. Files in `output` are left out.
///
/// # Errors
/// An input does not exist, or has no file.
pub(super) fn list(inputs: &[PathBuf], output: &Path) -> Result<InputList> {
    let mut listed = InputList::default();
    let mut seen = BTreeSet::new();
    let output = files::canonicalize(output).ok();
    for input in inputs {
        let found = expand(input)?;
        let own = OwnFolders::from_input(input);
        let (mut readable, mut others) = (0, 0);
        for (path, is_named) in found {
            let real = files::canonicalize(&path)
                .map_err(|e| Error::reading(&path, "open this file", e))?;
            let is_output = output.as_ref().is_some_and(|output| real.starts_with(output));
            if is_output {
                continue;
            }
            if path != *input && !own.has(&real) {
                listed.links.push(path);
                continue;
            }
            let is_read = is_named || has_known_end(&path);
            *(if is_read { &mut readable } else { &mut others }) += 1;
            match is_read {
                true if seen.insert(real) => listed.files.push(path),
                true => {}
                false => listed.others.push(path),
            }
        }
        if input.is_dir() && readable == 0 {
            let reason = format!("has no file named {}; others: {others}", ends());
            let hint =
                "pass the files themselves: their format is then read from their content".into();
            return Err(Error::Form { path: input.clone(), reason, hint });
        }
    }
    Ok(listed)
}

/// Folders that links in an input may lead to: the input itself, or the fixed part of its pattern, and the blobs of the hub's cache that
/// has the input. Somebody else may have made other links.
struct OwnFolders(Vec<PathBuf>);

impl OwnFolders {
    fn from_input(input: &Path) -> Self {
        let text = input.to_string_lossy();
        let fixed = text.split(['*', '?', '[']).next().unwrap_or_default();
        let folder = match fixed.rsplit_once('/') {
            _ if input.exists() => input,
            Some(("", _)) => Path::new("/"),
            Some((folder, _)) => Path::new(folder),
            None => Path::new("."),
        };
        let whole = std::path::absolute(folder).unwrap_or_default();
        let snapshots = whole.ancestors().find(|one| one.ends_with("snapshots"));
        let cache =
            snapshots.and_then(Path::parent).and_then(|path| files::canonicalize(path).ok());
        // The blobs are a folder; a link would lead anywhere.
        let blobs = cache.map(|cache| cache.join("blobs")).filter(|blobs| !blobs.is_symlink());
        Self(files::canonicalize(whole).into_iter().chain(blobs).collect())
    }

    fn has(&self, real: &Path) -> bool {
        self.0.iter().any(|folder| real.starts_with(folder))
    }
}

fn ends() -> String {
    format!("{}, plain, .gz or .zst", ENDS.join(", "))
}

fn has_known_end(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = COMPRESSED.iter().filter_map(|end| name.strip_suffix(end));
    plain.into_iter().any(|name| ENDS.iter().any(|end| name.ends_with(end)))
        || name.ends_with(".tgz")
}

/// Returns the files of an input, each with whether the input names it directly.
fn expand(input: &Path) -> Result<Vec<(PathBuf, bool)>> {
    if input == Path::new("-") {
        let reason = "standard input cannot be read again when interrupted work continues";
        let hint = "write the input to a file first".into();
        return Err(Error::Form { path: input.to_owned(), reason: reason.into(), hint });
    }
    if input.is_dir() {
        return walk(input);
    }
    if input.exists() {
        return Ok(vec![(input.to_owned(), true)]);
    }
    let text = input.to_string_lossy();
    if !text.contains(['*', '?', '[']) {
        let missing = std::io::ErrorKind::NotFound.into();
        return Err(Error::reading(input, "open this file", missing));
    }
    let bad = |reason: String, hint: &str| Error::Form {
        path: input.to_owned(),
        reason,
        hint: hint.into(),
    };
    let paths = glob::glob(&text).map_err(|e| {
        bad(format!("not a pattern of paths: {e}"), "use the wildcards *, ?, [ab] and **")
    })?;
    let mut found = Vec::new();
    for path in paths {
        let path = path.map_err(|e| Error::reading(input, "list these files", e.into()))?;
        if path.is_dir() { found.extend(walk(&path)?) } else { found.push((path, true)) }
    }
    if found.is_empty() {
        return Err(bad(
            "no file matches this pattern".into(),
            "check the pattern, and its folder",
        ));
    }
    found.sort();
    Ok(found)
}

/// Returns the files in a folder except hidden ones. Links are followed, since the hub's cache consists of them, but each
/// folder is entered only once.
fn walk(folder: &Path) -> Result<Vec<(PathBuf, bool)>> {
    let is_hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
    let entries = WalkDir::new(folder).follow_links(true).sort_by_file_name().into_iter();
    let (mut found, mut met) = (Vec::new(), HashSet::default());
    let mut is_taken = |entry: &DirEntry| {
        (entry.depth() == 0 || !is_hidden(entry.file_name()))
            && (!entry.file_type().is_dir() || met.insert(corpus::identity(entry.path())))
    };
    for entry in entries.filter_entry(|entry| is_taken(entry)) {
        let entry = entry.map_err(|e| {
            let path = e.path().unwrap_or(folder).to_owned();
            Error::reading(&path, "list this folder", e.into())
        })?;
        if entry.file_type().is_file() {
            found.push((entry.into_path(), false));
        }
    }
    found.sort();
    Ok(found)
}

/// File in its state when its digest was computed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Input {
    pub(super) path: String,
    pub(super) bytes: u64,
    pub(super) digest: String,
    /// Time of its last change in nanoseconds, to detect later changes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) modified: Option<u64>,
}

impl Input {
    /// Returns true if another input has the same content.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.bytes, &self.digest) == (other.bytes, &other.digest)
    }
}

/// Returns the size of a file and the time of its last change.
pub(super) fn state(path: &Path) -> Result<(u64, Option<u64>)> {
    let metadata = files::metadata(path).map_err(|e| Error::reading(path, "open this file", e))?;
    if !metadata.is_file() {
        let reason = "is neither a file nor a folder".into();
        return Err(Error::Repository { path: path.to_owned(), reason });
    }
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok((metadata.len(), modified.and_then(|age| u64::try_from(age.as_nanos()).ok())))
}

/// Computes the digests of files. If a file is unchanged since an earlier run, that run's digest is used.
pub(super) fn describe(paths: &[PathBuf], earlier: &[Input]) -> Result<Vec<Input>> {
    let work = Work::begin("group: digests", "bytes");
    for path in paths {
        work.more(state(path)?.0 as usize);
    }
    let one = |path: &PathBuf| {
        let (bytes, modified) = state(path)?;
        let name = path.to_string_lossy().into_owned();
        let is_it = |input: &&Input| {
            input.path == name
                && input.bytes == bytes
                && modified.is_some()
                && input.modified == modified
        };
        if let Some(input) = earlier.iter().find(is_it) {
            work.advance_kept(bytes as usize);
            return Ok(input.clone());
        }
        let digest = digest_of(path)?.digest;
        work.advance(bytes as usize);
        if state(path)? != (bytes, modified) {
            return Err(change_error(path));
        }
        Ok(Input { path: name, bytes, digest, modified })
    };
    parallel::map(paths, one).into_iter().collect()
}

/// Returns the error for a file that changed while it was read.
pub(super) fn change_error(path: &Path) -> Error {
    Error::artifact(path, "it changed while it was read", "run the command again")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_folders_and_patterns_are_listed_once_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in [
            "b/2.parquet", "b/1.jsonl.zst", "b/.c/x.parquet", "b/README.md", "odd", "b/out/s.jsonl",
        ] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), "x").unwrap();
        }
        let names = |inputs: &[&str]| {
            let inputs: Vec<PathBuf> = inputs.iter().map(|name| at(name)).collect();
            let listed = list(&inputs, &at("b/out"));
            let listed = listed.map_err(|error| error.to_string())?;
            let of = |paths: Vec<PathBuf>| {
                let paths = paths.iter().map(|path| path.strip_prefix(dir.path()).unwrap());
                paths.map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
            };
            Ok::<_, String>((of(listed.files), of(listed.others)))
        };
        // Somebody else may have made links out of a folder; the hub's cache consists of links into its own blobs.
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            for name in ["private/a.jsonl", "hub/blobs/x", "hub/snapshots/1/own.jsonl"] {
                fs::create_dir_all(at(name).parent().unwrap()).unwrap();
                fs::write(at(name), "x").unwrap();
            }
            fs::create_dir(at("links")).unwrap();
            for (to, name) in [
                ("../private/a.jsonl", "links/a.jsonl"),
                ("../private", "links/more"),
                ("../../blobs/x", "hub/snapshots/1/a.jsonl"),
                ("../../../private/a.jsonl", "hub/snapshots/1/b.jsonl"),
            ] {
                symlink(to, at(name)).unwrap();
            }
            let links = |name: &str| list(&[at(name)], &at("b/out")).map(|found| found.links.len());
            fs::create_dir_all(at("trap/snapshots")).unwrap();
            symlink("../private", at("trap/blobs")).unwrap();
            symlink("../blobs/a.jsonl", at("trap/snapshots/a.jsonl")).unwrap();
            assert_eq!(links("trap/snapshots/*.jsonl").unwrap(), 1);
            assert!(names(&["links"]).unwrap_err().contains("has no file named"));
            assert_eq!(links("links/*.jsonl").unwrap(), 1);
            assert_eq!(links("hub/snapshots/1").unwrap(), 1);
            assert_eq!(
                names(&["hub/snapshots/1"]).unwrap().0,
                "hub/snapshots/1/a.jsonl hub/snapshots/1/own.jsonl"
            );
        }
        let all = ("b/1.jsonl.zst b/2.parquet".to_owned(), "b/README.md".to_owned());
        assert_eq!(names(&["b"]).unwrap(), all);
        assert_eq!(names(&["odd", "b/2*", "b"]).unwrap().0, "odd b/2.parquet b/1.jsonl.zst");
        assert_eq!(names(&["b", "b"]).unwrap().0, all.0);
        for (input, reason) in [
            ("nothing", "cannot open"),
            ("x*", "no file matches this pattern"),
            ("b/out", "has no file named .parquet"),
        ] {
            let error = names(&[input]).unwrap_err();
            assert!(error.contains(reason), "{input}: {error}");
        }
    }
}
