//! `sample --from-commits`: tasks from what commits added, each in its parent's tree.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::support::{Place, parse_jsonl};

const NAMES: [&str; 8] = ["alpha", "beta", "gamma", "delta", "store", "load", "total", "index"];
const COMMITS: usize = 60;
/// Commits before 2025.
const OLD: usize = 20;

/// Numbers that look random and are always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn function(&mut self, number: usize) -> Vec<String> {
        let [a, b, c] = std::array::from_fn(|_| NAMES[self.below(NAMES.len())]);
        let offset = self.below(number + 1);
        vec![
            format!("def {a}_{number}({b}, {c}):"),
            format!("    {a} = base({b}.{c}({number}) + {c}_{offset})"),
            format!("    print({a}, {b}_{offset})"),
            format!("    return {a} + {b}"),
            String::new(),
        ]
    }
}

fn git(place: &Place, date: &str, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(place.path("made")).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
    for (name, value) in [("NAME", "n"), ("EMAIL", "n@example.org"), ("DATE", date)] {
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_{name}"), value);
        }
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A repository `made`: functions, imports and files are added, lines removed.
fn make_history(place: &Place) {
    let mut numbers = Numbers(7);
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in &NAMES[..5] {
        let head: &[&str] = match *name {
            "alpha" => &["def base(value):", "    return value", ""],
            _ => &["from pkg.alpha import base", ""],
        };
        let mut lines: Vec<String> = head.iter().map(|line| (*line).to_owned()).collect();
        lines.extend((0..16).flat_map(|number| numbers.function(number)));
        files.insert(format!("pkg/{name}.py"), lines);
    }
    // What git could take for something else, or would be told to do.
    place.write("made/README", "x\n");
    place.write("made/HEAD", "x\n");
    place.write("made/pkg/odd \"name\"\n.py", "odd = 1\n");
    git(place, "", &["init", "-q"]);
    for number in 0..COMMITS {
        for _ in 0..2 {
            let file = numbers.below(files.len());
            let lines = files.values_mut().nth(file).unwrap();
            let at = numbers.below(lines.len() + 1);
            if number % 4 == 1 && at + 2 < lines.len() {
                lines.drain(at..at + 2);
            }
            let function = numbers.function(number);
            lines.splice(at..at, function);
            // Lines that are removed and not replaced, above what was added.
            if number % 5 == 2 && at > 50 {
                lines.drain(at - 45..at - 43);
            }
            if number % 6 == 0 {
                let from = NAMES[numbers.below(5)];
                let name = NAMES[numbers.below(NAMES.len())];
                lines.insert(
                    0,
                    format!("from pkg.{from} import {name}_{}", numbers.below(number + 1)),
                );
            }
        }
        if number % 7 == 6 {
            let mut lines = vec!["from pkg.alpha import base".to_owned(), String::new()];
            lines.extend(numbers.function(number));
            files.insert(format!("pkg/new_{number}.py"), lines);
        }
        for (path, lines) in &files {
            place.write(&format!("made/{path}"), lines.join("\n") + "\n");
        }
        let year = if number < OLD { 2024 } else { 2025 };
        let date = format!("{year}-02-{:02}T10:00:{number:02}Z", 1 + number % 28);
        git(place, &date, &["add", "-A"]);
        git(place, &date, &["commit", "-q", "-m", "x"]);
    }
}

/// Text of a file in a commit; empty where it has none.
fn in_commit(place: &Place, commit: &str, path: &str) -> String {
    if git(place, "", &["ls-tree", "--name-only", commit, path]).is_empty() {
        String::new()
    } else {
        git(place, "", &["show", &format!("{commit}:{path}")])
    }
}

fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).unwrap().as_str().unwrap()
}

/// Folder of the repository, and the path in it.
fn path_of(value: &Value) -> (String, String) {
    let names = value["fpath_tuple"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|name| name.as_str().unwrap()).collect();
    (names[0].to_owned(), names[1..].join("/"))
}

fn number(value: &Value, name: &str) -> usize {
    value[name].as_u64().unwrap() as usize
}

/// Checks that a task's tree is the parent's, with the hole's file as far as it was typed.
fn assert_moment(place: &Place, trees: &str, record: &Value) {
    let metadata = &record["metadata"];
    let (folder, own) = path_of(metadata);
    let (commit, parent) = (text(metadata, "/commit/id"), text(metadata, "/commit/parent"));
    assert!(text(metadata, "/commit/date").starts_with("2025-"));
    for path in git(place, "", &["ls-tree", "-r", "--name-only", parent]).lines() {
        if path.ends_with(".py") && !path.contains('"') && path != own {
            assert_eq!(
                place.read(&format!("{trees}/{folder}/{path}")),
                in_commit(place, parent, path)
            );
        }
    }
    let tree = place.read(&format!("{trees}/{folder}/{own}"));
    let start = number(metadata, "context_start_lineno");
    let shown: String = tree.split_inclusive('\n').skip(start).collect();
    let (prompt, target) = (text(record, "/prompt"), text(metadata, "/ground_truth"));
    assert!(shown.starts_with(&format!("{prompt}{target}\n")), "{own}");
    let (typed, rest) = tree.split_at(tree.len() - shown.len() + prompt.len() + target.len() + 1);
    assert!(in_commit(place, commit, &own).starts_with(typed));
    let before = in_commit(place, parent, &own);
    assert!(before.ends_with(rest), "{own}");
    // What the prompt does not show was there.
    let hidden = &tree[..tree.len() - shown.len()];
    assert!(before.starts_with(hidden), "{own}");
}

/// Checks that every fragment that a prompt was made of stands in the parent; returns the number of those of the own file.
fn assert_old(place: &Place, record: &Value) -> usize {
    let (folder, own) = path_of(&record["metadata"]);
    let parent = text(record, "/metadata/commit/parent");
    let mut of_own_file = 0;
    let mut check = |path: &str, shown: &str, lines: Option<(usize, usize)>| {
        let before = in_commit(place, parent, path);
        let before: Vec<&str> = before.lines().collect();
        let is_there = match lines {
            Some((start, end)) => before[start..end].join("\n") == shown,
            // A chunk's blank lines are left out.
            None => shown.lines().all(|line| before.contains(&line)),
        };
        assert!(is_there, "{path} of {parent}: {shown}");
        of_own_file += usize::from(path == own);
    };
    for found in record["metadata"]["top_k_context"].as_array().unwrap() {
        if let Some(chunk) = found.get("retrieved_chunk") {
            let path = text(found, "/filename");
            let path = path.strip_prefix(&format!("{folder}/")).unwrap_or(path);
            check(path, chunk.as_str().unwrap(), None);
            continue;
        }
        for at in found["metadata"].as_array().unwrap() {
            let lines = (number(at, "start_line_no"), number(at, "end_line_no"));
            check(&path_of(at).1, text(found, "/context"), Some(lines));
        }
    }
    of_own_file
}

#[test]
fn nothing_that_is_retrieved_is_younger_than_the_parent() {
    let place = Place::empty();
    make_history(&place);
    let (mut strata, mut of_own_file) = (BTreeSet::new(), 0);
    for (kind, cursor) in [
        ("line", "line-start"),
        ("line", "any-token"),
        ("chunk", "any-token"),
        ("api", "line-start"),
        ("function", "line-start"),
    ] {
        let (tasks, trees) = (format!("{kind}-{cursor}.jsonl"), format!("trees-{kind}-{cursor}"));
        let flags = ["--per-repo", "9", "--context-tokens", "300", "--cursor", cursor];
        let drawn = ["--from-commits", "made", "--since", "2025-01-01", "--trees", &trees];
        let sample = [&["sample", "--kind", kind, "-o", &tasks], &flags[..], &drawn].concat();
        place.run(&sample).done().says(&["since 2025-01-01", "are in the parent's tree"]);
        let records = place.records(&tasks);
        place.run(&sample).done();
        assert_eq!(place.records(&tasks), records, "folders with the same files are taken");
        assert!(records.len() >= 8, "{kind}: {}", records.len());
        for record in &records {
            assert_moment(&place, &trees, record);
            strata.insert(text(record, "/metadata/commit/stratum").to_owned());
        }
        place.run(&["validate", "--strict", &tasks, "--repos-dir", &trees]).done();
        for unit in ["windows", "chunks"] {
            let cache = format!("cache-{tasks}-{unit}");
            let mut flags = vec!["--repos-dir", &trees, "--tasks", &tasks, "--cache-dir", &cache];
            flags.extend(["--unit", unit, "--mode", "rg1,gt"]);
            if unit == "windows" {
                flags.extend(["--window-size", "6", "--slice-size", "2"]);
            }
            for stage in ["window", "vectorize", "search", "prompt"] {
                place.run(&[&[stage], &flags[..]].concat()).done();
            }
            let prompts = place.files(&format!("{cache}/prompts"));
            let prompts = prompts.iter().filter(|(name, _)| name.ends_with(".jsonl"));
            let records = prompts.map(|(_, bytes)| parse_jsonl(str::from_utf8(bytes).unwrap()));
            let records: Vec<Value> = records.flatten().collect();
            assert!(records.len() >= 16);
            of_own_file += records.iter().map(|r| assert_old(&place, r)).sum::<usize>();
        }
    }
    assert!(of_own_file > 5, "{of_own_file}");
    let strata: Vec<String> = strata.into_iter().collect();
    assert_eq!(strata, ["file", "import", "nowhere", "repository"]);
}

#[test]
fn what_cannot_be_drawn_from_is_refused() {
    let place = Place::empty();
    make_history(&place);
    place.write("plain/a.py", "x = 1\n");
    let sample = |more: &[&str]| {
        let usual = ["sample", "--kind", "line", "--trees", "trees", "-o", "t.jsonl"];
        place.run(&[&usual[..], more].concat())
    };
    let from = |more: &[&'static str]| [&["--from-commits", "made", "--since"], more].concat();
    sample(&["--from-commits", "made"]).failed().says(&["--since"]);
    sample(&from(&["yesterday"])).failed().says(&["'yesterday'", "2024-01-31"]);
    let none = ["no commit since 2030-01-01", "earlier --since"];
    sample(&from(&["2030-01-01"])).failed().says(&none);
    let unused = ["--walk is not used by sample, which draws from the commits of --from-commits"];
    sample(&from(&["2025-01-01", "--walk", "rglob"])).failed().says(&unused);
    let twice = ["two repositories of --from-commits are named 'made'"];
    sample(&from(&["2025-01-01", "--from-commits", "made/.git"])).failed().says(&twice);
    let plain = ["--from-commits", "plain", "--since", "2025-01-01"];
    sample(&plain).failed().says(&["plain", "is not a Git repository", "a clone with its history"]);
    assert!(!place.path("t.jsonl").exists() && !place.path("trees").exists());
    // Folders with other files are not overwritten.
    sample(&from(&["2025-01-01"])).done();
    let before = place.read("t.jsonl");
    let there = ["already exist", "folder of trees (--trees)"];
    sample(&from(&["2025-01-01", "--seed", "1"])).failed().says(&there);
    assert_eq!(place.read("t.jsonl"), before);
}

/// Type parameters with defaults, which Python's grammar does not know: nothing is drawn from such lines.
#[test]
fn code_of_commits_that_cannot_be_parsed_is_named() {
    let place = Place::empty();
    let function = |name: &str| {
        format!(
            "def {name}(value, other):\n    total = value.{name}(other)\n    return total + 1\n\n\n"
        )
    };
    place.write("made/a.py", function("one"));
    git(&place, "2024-01-01T00:00:00Z", &["init", "-q"]);
    let commit = |date: &str| {
        git(&place, date, &["add", "-A"]);
        git(&place, date, &["commit", "-q", "-m", "m"]);
    };
    commit("2024-01-01T00:00:00Z");
    let added = "def f[T = int](value):\n    return value\n\n\n".to_owned() + &function("two");
    place.write("made/a.py", function("one") + &added);
    commit("2025-02-01T00:00:00Z");
    let sample = [
        "sample", "--kind", "line", "--from-commits", "made", "--since", "2025-01-01", "--trees",
        "trees", "-o", "t.jsonl",
    ];
    place.run(&sample).done().says(&["the Python grammar cannot parse", "of 1 file", "/a.py:6"]);
}

/// A tree of 10 trees, each of 10 trees, and so on: one text in a few KB stands for any number of files.
#[cfg(unix)]
#[test]
fn a_commit_of_endless_files_is_left_out_and_named() {
    let place = Place::empty();
    let lines = |count: usize| -> String {
        (0..count).map(|number| format!("value_{number} = compute({number}, other)\n")).collect()
    };
    place.write("made/a.py", lines(9));
    git(&place, "", &["init", "-q"]);
    let date = "2025-02-01T00:00:00Z";
    git(&place, date, &["add", "-A"]);
    git(&place, date, &["commit", "-q", "-m", "m"]);
    place.write("made/a.py", lines(12));
    git(&place, date, &["commit", "-q", "-a", "-m", "m"]);
    let blob = git(&place, "", &["hash-object", "-w", "a.py"]);
    let mut tree = format!("100644 blob {}\ta.py\n", blob.trim_end());
    for _ in 0..40 {
        place.write("listed", &tree);
        let made = place.shell("git -C made mktree <listed").done().stdout;
        let entry = |number: usize| format!("040000 tree {}\td{number}\n", made.trim_end());
        tree = (0..10).map(entry).collect();
    }
    place.write("listed", &tree);
    let made = place.shell("git -C made mktree <listed").done().stdout;
    let commit = git(&place, date, &["commit-tree", made.trim_end(), "-p", "HEAD", "-m", "m"]);
    git(&place, date, &["update-ref", "HEAD", commit.trim_end()]);
    let sample = "sample --kind line --from-commits made --since 2025-01-01 --min-tokens 1 --trees trees -o t.jsonl";
    let ran = place.shell(&format!("ulimit -v 2000000; REPOFORMER_THREADS=2 repoformer {sample}"));
    let left_out = format!("made: left out: commit {}: it has more than", &commit[..12]);
    let history = format!("its history cannot be read for `in_history`: commit {}", &commit[..12]);
    ran.partly().says(&[&left_out, "1,000,000 files", &history]);
    let tasks = parse_jsonl(&place.read("t.jsonl"));
    assert_eq!(tasks.len(), 1);
    assert!(tasks[0].pointer("/metadata/commit/in_history").is_none());
}

/// Of a repository that somebody else wrote, what lies elsewhere on the disk is not read.
#[cfg(unix)]
#[test]
fn a_link_to_another_history_is_named() {
    let place = Place::empty();
    make_history(&place);
    place.write("alike/.git", format!("gitdir: {}\n", place.path("made/.git").display()));
    let sample = [
        "sample", "--kind", "line", "--from-commits", "alike", "--since", "2025-01-01", "--trees",
        "trees", "-o", "t.jsonl",
    ];
    let ran = place.run(&sample).failed();
    ran.says(&["alike: .git leads out of the repository, to ", "made/.git"]);
    assert!(!place.path("t.jsonl").exists() && !place.path("trees").exists());
}
