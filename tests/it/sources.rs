//! What the compiler does not hold: files are read and written in one place, and the fuzzer has the packages of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files that may name `std::fs` or `tempfile` themselves, and why.
const OWN_CALLS: [(&str, &str); 8] = [
    ("crates/store/src/files.rs", "the place"),
    (
        "crates/store/src/artifact/replace.rs",
        "has names of temporary files chosen, which the place creates",
    ),
    (
        "crates/store/src/parquet.rs",
        "hands an open file to a reader of the standard library's files",
    ),
    ("crates/execute/src/guard/", "works within the sandbox, on /proc and on mounts"),
    ("src/interruption.rs", "asks /proc how interruptions are met"),
    ("src/commands/doctor.rs", "asks /proc, and writes nothing that is kept"),
    ("crates/text/src/tokenize/model/", "reads tokenizers below the place"),
    ("src/commands/demonstration.rs", "lays out files for a dry run, outside of any cache"),
];

/// Tests let calls fail in one place (`store::files`), which so must be the only one.
#[test]
fn files_are_read_and_written_in_one_place() {
    let mut elsewhere = Vec::new();
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|folder| folder.unwrap().path());
    let folders = crates.chain([root().to_owned()]);
    let folders = folders.map(|folder| walkdir::WalkDir::new(folder.join("src")));
    for entry in folders.flatten().flatten() {
        let path = entry.path().strip_prefix(root()).unwrap().to_str().unwrap();
        let is_test = path.ends_with("tests.rs") || path.ends_with("test_server.rs");
        let is_code = path.ends_with(".rs") && !is_test;
        if !is_code || OWN_CALLS.iter().any(|(own, _)| path.starts_with(own)) {
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
        // Options are handed to the place, which opens.
        let code = lines.collect::<Vec<_>>().join("\n").replace("std::fs::File::options()", "");
        let names = ["std::fs", "tempfile", "std::{fs", ", fs}", ", fs,"];
        if names.iter().any(|name| code.contains(name)) {
            elsewhere.push(path.to_owned());
        }
    }
    assert!(elsewhere.is_empty(), "call `store::files`, or say why not here: {elsewhere:?}");
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
    // It has no targets in the servers.
    let is_fuzzed = |name: &str| name.starts_with("repoformer-") && name != "repoformer-serve";
    for (package, depends_on) in ours.iter().filter(|((name, _), _)| is_fuzzed(name)) {
        let folder = package.0.replace("repoformer-", "crates/");
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let for_tests = |name: &str| manifest["dev-dependencies"].get(name).is_some();
        let missing: Vec<_> = depends_on.difference(&fuzzers[package]).collect();
        assert!(missing.iter().all(|name| for_tests(name)), "{package:?}: {missing:?}");
    }
}
