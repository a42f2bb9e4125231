//! What the compiler does not hold: files are read and written in one place, libraries name no flags, and the fuzzer has the
//! packages of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files that may name `std::fs` or `tempfile` themselves, and why.
const OWN_CALLS: [(&str, &str); 9] = [
    ("crates/store/src/files.rs", "the place"),
    ("crates/store/src/removal.rs", "removes folders for the place"),
    (
        "crates/store/src/artifact/replace.rs",
        "has names of temporary files chosen, which the place creates",
    ),
    ("crates/store/src/parquet/", "hands an open file to a reader of the standard library's files"),
    ("crates/execute/src/guard/", "works within the sandbox, on /proc and on mounts"),
    ("src/interruption.rs", "asks /proc how interruptions are met"),
    ("src/commands/doctor.rs", "asks /proc, and writes nothing that is kept"),
    ("crates/text/src/tokenize/model/", "reads tokenizers below the place"),
    ("src/commands/demonstration.rs", "lays out files for a dry run, outside of any cache"),
];

/// Code of a crate's files, without comments and tests: each path with its lines.
fn code(folders: impl IntoIterator<Item = PathBuf>) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for entry in folders.into_iter().flat_map(|folder| walkdir::WalkDir::new(folder.join("src"))) {
        let entry = entry.unwrap();
        let path = entry.path().strip_prefix(root()).unwrap().to_str().unwrap();
        let is_test = path.ends_with("tests.rs") || path.contains("/tests/");
        if !path.ends_with(".rs") || is_test {
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        found.push((path.to_owned(), lines.map(str::to_owned).collect()));
    }
    found
}

/// Folders of the crates that the program is made of.
fn libraries() -> Vec<PathBuf> {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    crates.map(|folder| folder.unwrap().path()).collect()
}

/// Tests let calls fail in one place (`store::files`), which so must be the only one.
#[test]
fn files_are_read_and_written_in_one_place() {
    let mut elsewhere = Vec::new();
    for (path, lines) in code(libraries().into_iter().chain([root().to_owned()])) {
        if OWN_CALLS.iter().any(|(own, _)| path.starts_with(own)) {
            continue;
        }
        // Options are handed to the place, which opens.
        let code = lines.join("\n").replace("std::fs::File::options()", "");
        let names = ["std::fs", "tempfile", "std::{fs", ", fs}", ", fs,"];
        if names.iter().any(|name| code.contains(name)) {
            elsewhere.push(path);
        }
    }
    assert!(elsewhere.is_empty(), "call `store::files`, or say why not here: {elsewhere:?}");
}

/// Files of libraries that may hold flags as text, and why.
const OWN_FLAGS: [(&str, &str); 4] = [
    ("crates/repository/src/history/", "runs git, and says how to run it"),
    ("crates/execute/src/guard/scope.rs", "runs systemd-run"),
    ("crates/study/src/settings/declared.rs", "help texts of the flags that follow from settings"),
    ("crates/study/src/settings/declaration.rs", "headings in that help"),
];

/// True if a line of code holds a flag, as in `"--tasks is not set"` or `"leave --tasks out"`.
fn has_flag(line: &str) -> bool {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("--") {
        let begins = before.is_empty() || before.ends_with([' ', '"', '`', '(', '\'']);
        if begins && after.starts_with(|c: char| c.is_ascii_lowercase()) {
            return true;
        }
        rest = after;
    }
    false
}

/// They name settings and choices by type, so that each front end writes its own way to set them.
#[test]
fn libraries_name_no_flags() {
    assert!(has_flag("bail!(\"--tasks is not set\")") && has_flag("    out; leave --tasks out\","));
    assert!(!has_flag("\"a--b\", \"a -- b\", \"--\", \"---x\""));
    let (mut elsewhere, mut used) = (Vec::new(), BTreeSet::new());
    for (path, lines) in code(libraries()) {
        let Some(line) = lines.into_iter().find(|line| has_flag(line)) else { continue };
        match OWN_FLAGS.iter().find(|(own, _)| path.starts_with(own)) {
            Some((own, _)) => drop(used.insert(*own)),
            None => elsewhere.push((path, line)),
        }
    }
    assert!(elsewhere.is_empty(), "name the setting or choice, or say why not: {elsewhere:#?}");
    let unused: Vec<_> = OWN_FLAGS.iter().filter(|(own, _)| !used.contains(own)).collect();
    assert!(unused.is_empty(), "these hold no flags: {unused:?}");
}

/// Packages of a lock file: name and version, with what each depends on.
fn locked(path: &str) -> BTreeMap<(String, String), BTreeSet<String>> {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let lock: toml::Table = text.parse().unwrap();
    let package = |package: &toml::Value| {
        let field = |name: &str| package[name].as_str().unwrap().to_owned();
        let names = package.get("dependencies").and_then(toml::Value::as_array).into_iter();
        let names = names.flatten().map(|name| name.as_str().unwrap().to_owned());
        ((field("name"), field("version")), names.collect())
    };
    lock["package"].as_array().unwrap().iter().map(package).collect()
}

/// Its lock was an older one, with which it was not built (`--locked`), and with other versions.
#[test]
fn the_fuzzer_has_our_packages_in_our_versions() {
    let (ours, fuzzers) = (locked("Cargo.lock"), locked("fuzz/Cargo.lock"));
    let own = ["arbitrary", "libfuzzer-sys", "repoformer-fuzz"];
    let others: Vec<_> = fuzzers.keys().filter(|package| !ours.contains_key(*package)).collect();
    assert!(others.iter().all(|(name, _)| own.contains(&name.as_str())), "{others:?}");
    // It has no targets in the servers, and only tests depend on `testing`.
    let others = ["repoformer-serve", "repoformer-testing"];
    let is_fuzzed = |name: &str| name.starts_with("repoformer-") && !others.contains(&name);
    for (package, depends_on) in ours.iter().filter(|((name, _), _)| is_fuzzed(name)) {
        let folder = package.0.replace("repoformer-", "crates/");
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let for_tests = |name: &str| manifest["dev-dependencies"].get(name).is_some();
        let missing: Vec<_> = depends_on.difference(&fuzzers[package]).collect();
        assert!(missing.iter().all(|name| for_tests(name)), "{package:?}: {missing:?}");
    }
}
