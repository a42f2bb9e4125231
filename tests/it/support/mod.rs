//! The program as its users drive it: a folder with repositories and tasks written by the test, the built binary in a
//! clean environment, and what it answered.

pub(crate) mod frame;
pub(crate) mod server;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

pub(crate) use repoformer_testing::completion;
use serde_json::{Value, json};

/// Every stage in the order of the work.
pub(crate) const STAGES: [&[&str]; 7] = [
    &["window"],
    &["vectorize"],
    &["search"],
    &["prompt"],
    &["complete"],
    &["rg-rg"],
    &["complete", "--mode", "rg-rg"],
];

/// The three tasks' ids and targets, in the order of `tasks.jsonl`.
pub(crate) const TARGETS: [(&str, &str); 3] = [
    ("alpha/0", "store_12 = store(12)"),
    ("alpha/1", "view_20 = view(20)"),
    ("beta/0", "main_30 = main(30)"),
];

/// A folder of its own for one test.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

/// Exit code and output of one run of the program.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// `count` lines: `store_0 = store(0)`, `store_1 = store(1)`, …
pub(crate) fn source(name: &str, count: usize) -> String {
    (0..count).map(|n| format!("{name}_{n} = {name}({n})\n")).collect()
}

/// A task record whose prompt is the text's lines `context_start..line_no` and whose target is line `line_no`.
pub(crate) fn task(
    id: &str,
    path: &str,
    text: &str,
    context_start: usize,
    line_no: usize,
) -> Value {
    let lines: Vec<&str> = text.lines().collect();
    let prompt: String =
        lines[context_start..line_no].iter().map(|line| format!("{line}\n")).collect();
    let fpath_tuple: Vec<&str> = path.split('/').collect();
    json!({"prompt": prompt, "metadata": {
        "task_id": id, "ground_truth": lines[line_no], "fpath_tuple": fpath_tuple,
        "context_start_lineno": context_start, "line_no": line_no,
    }})
}

/// Records as JSON lines.
pub(crate) fn jsonl(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// A folder with the first tasks of the sample data, of each of these kinds, and the flag that names their repositories.
pub(crate) fn sampled(kinds: &[&str], count: usize) -> (Place, String) {
    let place = Place::empty();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    for kind in kinds {
        let tasks = std::fs::read_to_string(data.join(format!("tasks/{kind}.jsonl"))).unwrap();
        let first: String = tasks.split_inclusive('\n').take(count).collect();
        place.write(&format!("{kind}.jsonl"), first);
    }
    (place, format!("--repos-dir={}", data.join("repos").display()))
}

impl Place {
    /// Nothing in it.
    pub(crate) fn empty() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// Two repositories of two files each, and three tasks. With windows of 20 lines that start every 10: `alpha` has
    /// store.py (25 lines, 3 windows) and view.py (30 lines, 3 windows), `beta` main.py (40 lines, 4 windows) and
    /// pkg/help.py (10 lines, 1 window).
    pub(crate) fn new() -> Self {
        let place = Self::empty();
        let (store, view) = (source("store", 25), source("view", 30));
        let (main, help) = (source("main", 40), source("help", 10));
        place.write("repos/alpha/store.py", &store);
        place.write("repos/alpha/view.py", &view);
        place.write("repos/beta/main.py", &main);
        place.write("repos/beta/pkg/help.py", &help);
        place.write(
            "tasks.jsonl",
            jsonl(&[
                task(TARGETS[0].0, "alpha/store.py", &store, 10, 12),
                task(TARGETS[1].0, "alpha/view.py", &view, 0, 20),
                task(TARGETS[2].0, "beta/main.py", &main, 0, 30),
            ]),
        );
        place
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Appends records to the task file.
    pub(crate) fn add_tasks(&self, records: &[Value]) {
        let mut file = fs::File::options().append(true).open(self.path("tasks.jsonl")).unwrap();
        file.write_all(jsonl(records).as_bytes()).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        let path = self.path(path);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// The records of a JSONL file.
    pub(crate) fn records(&self, path: &str) -> Vec<Value> {
        parse_jsonl(&self.read(path))
    }

    /// The program, in this folder, in an environment that holds nothing but the search path.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_repoformer"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .stdin(Stdio::null());
        command
    }

    /// Runs the program.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::new(self.command(args).output().unwrap())
    }

    /// Runs a stage that must not hang.
    pub(crate) fn stage_within(&self, stage: &[&str], seconds: u64) -> Ran {
        let mut command = self.command(&self.args(stage));
        let begin = Instant::now();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() {
            if begin.elapsed().as_secs() >= seconds {
                child.kill().unwrap();
                panic!("{stage:?} still runs after {seconds} s");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ran::new(child.wait_with_output().unwrap())
    }

    /// The arguments of a stage on this folder's data.
    pub(crate) fn args<'a>(&self, stage: &[&'a str]) -> Vec<&'a str> {
        let mut args = stage.to_vec();
        for (flag, value) in
            [("--repos-dir", "repos"), ("--tasks", "tasks.jsonl"), ("--cache-dir", "cache")]
        {
            if !args.contains(&flag) {
                args.extend([flag, value]);
            }
        }
        args
    }

    /// Runs a stage on this folder's data.
    pub(crate) fn stage(&self, stage: &[&str]) -> Ran {
        self.run(&self.args(stage))
    }

    /// Runs every stage, each of which must succeed, and gives their answers.
    pub(crate) fn all_stages(&self, more: &[&str]) -> Vec<Ran> {
        STAGES.iter().map(|stage| self.stage(&[*stage, more].concat()).done()).collect()
    }

    /// A line of shell that finds the program by its name. The environment has nothing but the
    /// search path and `PROJECT`, the folder of this project.
    pub(crate) fn shell(&self, line: &str) -> Ran {
        self.shell_with(line, &[])
    }

    /// A line of shell with more in its environment.
    pub(crate) fn shell_with(&self, line: &str, more: &[(&str, &str)]) -> Ran {
        let binary = Path::new(env!("CARGO_BIN_EXE_repoformer"));
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let folders = binary.parent().map(Path::to_owned).into_iter();
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&inherited)));
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .current_dir(self.dir.path())
            .env_clear()
            .env("PATH", path.unwrap())
            .env("PROJECT", env!("CARGO_MANIFEST_DIR"))
            .envs(more.iter().copied())
            .stdin(Stdio::null());
        Ran::new(command.output().unwrap())
    }

    /// Every file below a folder by its path in it, without the files that depend on the clock.
    pub(crate) fn files(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        self.paths(folder)
            .into_iter()
            .filter(|path| {
                let is_measured = path.ends_with(".time.json")
                    || path.ends_with(".times.jsonl")
                    || path.split('/').any(|folder| folder == "latency");
                !is_measured
            })
            .map(|path| {
                let bytes = fs::read(self.path(folder).join(&path)).unwrap();
                (path, bytes)
            })
            .collect()
    }

    /// Every file by its path.
    pub(crate) fn every_file(&self) -> BTreeMap<String, Vec<u8>> {
        let read = |path: String| (fs::read(self.path(&path)).unwrap(), path);
        self.paths("").into_iter().map(read).map(|(bytes, path)| (path, bytes)).collect()
    }

    /// Number of files below a folder.
    pub(crate) fn count(&self, folder: &str) -> usize {
        self.paths(folder).len()
    }

    /// When each file below a folder was last written.
    pub(crate) fn times(&self, folder: &str) -> BTreeMap<String, SystemTime> {
        self.paths(folder)
            .into_iter()
            .map(|path| {
                let metadata = fs::metadata(self.path(folder).join(&path)).unwrap();
                (path, metadata.modified().unwrap())
            })
            .collect()
    }

    /// The project's sample repositories in `repos`.
    pub(crate) fn add_samples(&self) {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/repos");
        let mut names = Vec::new();
        collect(&data, &data, &mut names);
        for name in names {
            let text = fs::read_to_string(data.join(&name)).unwrap();
            self.write(&format!("repos/{name}"), text);
        }
    }

    /// The JSON lines in a folder whose name begins so: `folder/name`.
    pub(crate) fn named(&self, folder: &str, begin: &str) -> String {
        let mut names = self.paths(folder).into_iter();
        let is_one = |name: &String| name.starts_with(begin) && name.ends_with(".jsonl");
        let name = names.find(is_one).unwrap_or_else(|| panic!("{folder}/{begin}…"));
        format!("{folder}/{name}")
    }

    fn paths(&self, folder: &str) -> Vec<String> {
        let root = self.path(folder);
        let mut found = Vec::new();
        collect(&root, &root, &mut found);
        found.sort();
        found
    }
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, found);
        } else {
            found.push(path.strip_prefix(root).unwrap().display().to_string());
        }
    }
}

/// `label judge` of instances by two files of predictions.
pub(crate) fn judge<'a>(instances: &'a str, base: &'a str, rag: &'a str) -> [&'a str; 8] {
    ["label", "judge", "--instances", instances, "--base", base, "--rag", rag]
}

/// The records of JSON lines.
pub(crate) fn parse_jsonl(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

/// The two sets of files are the same, or the first that differs is named.
pub(crate) fn assert_same(one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>) {
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(one), names(other));
    for (name, bytes) in one {
        assert!(*bytes == other[name], "{name} differs");
    }
}

impl Ran {
    pub(crate) fn new(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn code(self, wanted: i32) -> Self {
        let Self { code, stdout, stderr } = &self;
        assert_eq!(*code, Some(wanted), "stdout:\n{stdout}\nstderr:\n{stderr}");
        self
    }

    /// Exit code 0: done.
    pub(crate) fn done(self) -> Self {
        self.code(0)
    }

    /// Exit code 1: done, but something was skipped or a check failed.
    pub(crate) fn partly(self) -> Self {
        self.code(1)
    }

    /// Exit code 2: could not run; no data then.
    pub(crate) fn failed(self) -> Self {
        assert_eq!(self.stdout, "", "data in spite of a failure");
        self.code(2)
    }

    /// Each text stands in what was said.
    pub(crate) fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "not said: {text}\nstderr:\n{}", self.stderr);
        }
        self
    }

    /// The text does not stand in what was said.
    pub(crate) fn silent_on(self, text: &str) -> Self {
        assert!(!self.stderr.contains(text), "said: {text}\nstderr:\n{}", self.stderr);
        self
    }
}
