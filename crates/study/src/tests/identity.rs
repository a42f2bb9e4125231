//! Every setting and input that affects an artifact is in the artifact's identity. After a change, a run on the old cache
//! therefore leaves the same files as a run with an empty cache, and rewrites only files that depend on the change.
//!
//! The tables list the dependencies of artifacts. Each line names the first kind of artifact that is rewritten after a change
//! of a setting or input; no earlier kind may be rewritten. A setting without a line fails the test.
//!
//! Two things that change a server's completions are not in their identity. One is the server's address: a model is identified
//! by its name, and two servers with models of the same name need separate `--journal`s. The other is the lines of a journal:
//! they are answers to the requests that they name, and whoever edits a line changes the server's answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rayon::prelude::*;
use repoformer_core::retrieve::Mode;
use repoformer_pipeline::{
    NoMessages, dense_texts, vectorize_queries, vectorize_repositories, window_queries,
    window_repositories,
};
use repoformer_testing::{ReceivedRequest, TestServer, ok};
use serde_json::{Value, json};

use super::{data, files_below};
use crate::experiments::experiments;
use crate::run::{RunRequest, run};
use crate::settings::{Invocation, Setting, Settings};

/// Folder with the inputs and caches of runs.
struct TestFolder(tempfile::TempDir);

impl TestFolder {
    fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn records(&self, name: &str) -> Vec<Value> {
        self.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the files in a folder except measured times, which differ between two runs.
    fn files(&self, folder: &str) -> Files {
        let mut files = files_below(&self.path(folder));
        files.retain(|name, _| !super::cache::is_time(name));
        files
    }

    /// Returns the time at which each file was written.
    fn times(&self, folder: &str) -> BTreeMap<String, SystemTime> {
        let time =
            |name: &String| fs::metadata(self.path(folder).join(name)).unwrap().modified().unwrap();
        self.files(folder).into_keys().map(|name| (name.clone(), time(&name))).collect()
    }

    /// Returns the settings of `--key=value`; paths are relative to this folder.
    fn settings(&self, flags: &[String]) -> anyhow::Result<Settings> {
        let every = Settings::defaults().unwrap();
        let every: Vec<&'static Setting> =
            every.entries().iter().map(|entry| entry.setting()).collect();
        let mut invocation = Invocation::default();
        for flag in flags {
            let (key, value) = flag.trim_start_matches("--").split_once('=').unwrap();
            let setting = every.iter().find(|setting| setting.key == key).unwrap();
            let is_path = ["cache-dir", "journal"].contains(&key) || self.path(value).exists();
            let value = if is_path { self.path(value).display().to_string() } else { value.into() };
            invocation.given.insert(setting, setting.split(&value));
        }
        Settings::resolve(&invocation, Arc::new(NoMessages))
    }
}

fn jsonl(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

/// Returns a task whose prompt is the lines `first..hole` of a file, and whose target is the line `hole`.
fn task(id: &str, path: &str, text: &str, first: usize, hole: usize) -> Value {
    let lines: Vec<&str> = text.lines().collect();
    let prompt: String = lines[first..hole].iter().map(|line| format!("{line}\n")).collect();
    json!({"prompt": prompt, "metadata": {
        "task_id": id, "ground_truth": lines[hole], "fpath_tuple": path.split('/').collect::<Vec<_>>(),
        "context_start_lineno": first, "line_no": hole,
    }})
}

/// Run that others are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Base {
    Windows,
    Chunks,
    /// Tasks that carry contexts, which prompts show.
    Given,
    Dense,
    /// Retrieval that depends on the tasks' texts.
    Definitions,
    Server,
}

use Base::{Chunks, Definitions, Dense, Given, Server, Windows};

impl Base {
    fn arguments(self, url: &str) -> Vec<String> {
        let own: &[&str] = match self {
            Windows => &["--max-prompt-tokens=400"],
            Chunks => &["--unit=chunks", "--prompt-style=style.toml", "--tokenizer=tokenizer.json"],
            Given => &["--mode=given", "--prompt-style=starcoder", "--tasks=given.jsonl"],
            Dense => &[
                "--unit=chunks",
                "--ranker=dense",
                "--vectors=vectors.jsonl",
                "--vector-texts=texts.jsonl",
            ],
            Definitions => &["--max-prompt-tokens=400", "--ranker=definitions"],
            Server => &[
                "--unit=chunks",
                "--prompt-style=starcoder",
                "--policy=self@0.3",
                "--model=tiny",
                "--max-tokens=8",
                "--temperature=0.5",
                "--max-left-tokens=300",
            ],
        };
        let mut all: Vec<String> = own.iter().map(|&text| text.to_owned()).collect();
        if self != Given {
            all.extend(["--repos-dir=repos".into(), "--tasks=tasks.jsonl".into()]);
            // The results of rg-rg depend on predictions, however files are cut.
            let modes = if self == Windows { "none,rg1,rg-rg" } else { "none,rg1" };
            all.push(format!("--mode={modes}"));
        }
        if self == Server {
            all.push(format!("--endpoint={url}"));
        }
        all
    }
}

/// Kinds of artifacts in dependency order, and the prefixes of their paths in the cache.
const KINDS: [(&str, &str); 10] = [
    ("fragments", "window/repos/"),
    ("vectors", "vector/repos/"),
    ("right contexts", ""),
    ("queries", "window/"),
    ("query vectors", "vector/"),
    ("retrieval", "retrieval/"),
    ("prompts", "prompts/"),
    ("predictions", "predictions/"),
    ("probabilities", "probabilities/"),
    ("scores", "scores/"),
];

/// Returns the number of a file's kind.
fn kind(path: &str) -> usize {
    if path.ends_with(".right.bin") {
        return 2;
    }
    let of = |(_, begin): &(&str, &str)| !begin.is_empty() && path.starts_with(begin);
    KINDS.iter().position(of).unwrap_or_else(|| panic!("{path}: which kind?"))
}

/// Setting, the run that it changes, its flags, and the first kind of artifact that is rewritten, if any.
type Change = (&'static str, Base, &'static [&'static str], &'static str);

/// Settings that artifacts depend on, or may seem to.
#[rustfmt::skip]
const SETTINGS: &[Change] = &[
    ("repo", Windows, &["--repo=yard"], "prompts"),
    ("tasks", Windows, &["--tasks=more.jsonl"], "queries"),
    ("benchmark", Windows, &["--benchmark=other"], "queries"),
    ("mode", Windows, &["--mode=gt"], "queries"),
    ("unit", Windows, &["--unit=chunks"], "fragments"),
    ("language", Windows, &["--language=typescript"], "fragments"),
    ("walk", Windows, &["--walk=rglob"], "fragments"),
    ("walk", Chunks, &["--walk=rglob"], "fragments"),
    ("window-size", Windows, &["--window-size=10"], "fragments"),
    ("slice-size", Windows, &["--slice-size=4"], "fragments"),
    ("center", Windows, &["--center=step"], "fragments"),
    ("chunk-size", Chunks, &["--chunk-size=8"], "fragments"),
    ("chunk-stride", Chunks, &["--chunk-stride=4"], "fragments"),
    ("hole-guard", Windows, &["--hole-guard=reference"], "retrieval"),
    ("tokenizer", Windows, &["--tokenizer=words"], "vectors"),
    ("vectorizer", Chunks, &["--vectorizer=words"], "vectors"),
    ("ranker", Windows, &["--ranker=bm25"], "vectors"),
    ("ranker", Chunks, &["--ranker=tf-idf"], "retrieval"),
    ("ranker", Chunks, &["--ranker=definitions"], "retrieval"),
    ("top-k", Windows, &["--top-k=2"], "retrieval"),
    ("query", Windows, &["--query=last-n-lines"], "queries"),
    ("query", Chunks, &["--query=first-n-lines"], "queries"),
    ("query-lines", Chunks, &["--query-lines=3"], "queries"),
    ("ties", Chunks, &["--ties=reference"], "retrieval"),
    ("max-files", Chunks, &["--max-files=1"], "retrieval"),
    ("max-chunks", Chunks, &["--max-chunks=2"], "retrieval"),
    ("vectors", Dense, &["--vectors=other_vectors.jsonl"], "vectors"),
    ("vector-texts", Dense, &["--vector-texts=other_texts.jsonl"], "vectors"),
    ("max-blocks", Windows, &["--max-blocks=1"], "prompts"),
    ("max-prompt-tokens", Windows, &["--max-prompt-tokens=200"], "prompts"),
    ("max-prompt-tokens", Chunks, &["--max-prompt-tokens=300"], "prompts"),
    ("align", Windows, &["--align=enclosing"], "prompts"),
    ("fragment-paths", Chunks, &["--fragment-paths=full"], "prompts"),
    ("prompt-style", Chunks, &["--prompt-style=codellama"], "prompts"),
    ("right-context", Chunks, &["--right-context=no"], "prompts"),
    ("max-left-tokens", Chunks, &["--max-left-tokens=20"], "prompts"),
    ("max-right-tokens", Chunks, &["--max-right-tokens=20"], "prompts"),
    ("max-cross-file-tokens", Chunks, &["--max-cross-file-tokens=20"], "prompts"),
    ("max-cross-file-tokens", Given, &["--max-cross-file-tokens=5"], "prompts"),
    ("max-tokens", Windows, &["--max-tokens=3"], "predictions"),
    ("model", Server, &["--model=other"], "predictions"),
    ("api", Server, &["--api=chat", "--policy=always"], "predictions"),
    ("samples", Server, &["--samples=2"], "predictions"),
    ("temperature", Server, &["--temperature=0.7"], "predictions"),
    ("top-p", Server, &["--top-p=0.5"], "predictions"),
    ("stop", Server, &["--stop=;"], "predictions"),
    ("prompt-end", Server, &["--prompt-end=as-is"], "predictions"),
    ("until", Server, &["--until=tokens"], "predictions"),
    ("instruction", Server, &["--api=chat", "--policy=always", "--instruction=Go on"], "predictions"),
    ("journal", Server, &["--journal=own.jsonl", "--endpoint=URL/other"], "predictions"),
    ("seed", Server, &["--seed=7"], "predictions"),
    ("metrics", Windows, &["--metrics=repoformer"], "scores"),
    ("postprocess", Windows, &["--postprocess=none"], "scores"),
    ("postprocess", Windows, &["--postprocess=chat,own"], "scores"),
    // A setting that does not change a byte makes nothing stale.
    ("threads", Windows, &["--threads=1"], ""),
    ("threads", Chunks, &["--threads=3"], ""),
    ("top-k", Given, &["--top-k=3"], ""),
    ("vectors", Windows, &["--vectors=none.jsonl"], ""),
    ("max-right-tokens", Windows, &["--unit=windows"], ""),
    ("concurrency", Server, &["--concurrency=1"], ""),
    ("request-timeout", Server, &["--request-timeout=5"], ""),
    ("retry-failed", Server, &["--retry-failed=yes"], ""),
    ("seed", Windows, &["--seed=7"], ""),
    ("resamples", Windows, &["--resamples=200"], ""),
    ("policy", Windows, &["--policy=always"], ""),
    ("policy-model", Windows, &["--policy=always"], ""),
    ("clock", Windows, &["--clock=serial"], ""),
    ("paper", Windows, &["--paper=table-2"], ""),
    ("paper-model", Windows, &["--paper=table-2", "--paper-model=StarCoderBase-7B"], ""),
    ("paper-dataset", Windows, &["--paper=table-7", "--paper-dataset=CrossCodeEval"], ""),
];

/// Settings without a line, and the reasons.
const ELSEWHERE: &[(&str, &str)] = &[
    ("repos-dir", "the folder's files count, whatever its name: see the inputs"),
    ("cache-dir", "the folder of the artifacts"),
    ("profile", "other settings"),
    ("endpoint", "see above"),
    ("beside", "predictions of an earlier run, which a figure reads"),
    ("policy-endpoint", "a model is known by its name, as with endpoint"),
    ("policy-model-name", "its probabilities lie under its name"),
    ("policy-prompt-style", "its probabilities lie under its style"),
    ("embedding-model", "the next test"),
    ("embedding-batch", "the next test"),
    ("embedding-concurrency", "the next test"),
    ("embedding-timeout", "the next test"),
    ("max-lines", "`run` has no such flag; `complete` has a test of its own"),
    ("config", "other settings"),
    ("shard", "the union of shards is compared with the whole elsewhere"),
];

/// Edit of an input, the run that reads the input, and the kinds that are rewritten.
type Edit = (&'static str, Base, fn(&TestFolder), &'static str);

#[rustfmt::skip]
const INPUTS: &[Edit] = &[
    ("a line of a file", Windows, |p| edit(p, "repos/depot/app/prices.py", "rounded", "cut"), "fragments"),
    ("a line of a file", Chunks, |p| edit(p, "repos/depot/app/prices.py", "rounded", "cut"), "fragments"),
    ("a blank line", Chunks, |p| edit(p, "repos/depot/app/orders.py", "\ndef orders_5", "\n\ndef orders_5"), "right contexts"),
    ("a file's name", Windows, |p| fs::rename(p.path("repos/depot/app/prices.py"), p.path("repos/depot/app/costs.py")).unwrap(), "fragments"),
    ("a file less", Chunks, |p| fs::remove_file(p.path("repos/depot/lib/money.py")).unwrap(), "fragments"),
    ("a file of another repository", Windows, |p| edit(p, "repos/yard/fence.py", "rounded", "cut"), "fragments"),
    ("a file of another language", Windows, |p| p.write("repos/depot/web/cart.ts", "let a = 1\n"), ""),
    ("a prompt", Windows, |p| edit_task(p, "tasks.jsonl", |t| t["prompt"] = json!("x = 1\n")), "prompts"),
    ("a prompt", Chunks, |p| edit_task(p, "tasks.jsonl", |t| t["prompt"] = json!("x = 1\n")), "right contexts"),
    ("a hole", Windows, |p| edit_task(p, "tasks.jsonl", |t| t["metadata"]["line_no"] = json!(20)), "queries"),
    ("a target", Windows, |p| edit_task(p, "tasks.jsonl", |t| t["metadata"]["ground_truth"] = json!("y\nz")), "prompts"),
    ("a target", Definitions, |p| edit_task(p, "tasks.jsonl", |t| t["metadata"]["ground_truth"] = json!("y\nz")), "retrieval"),
    ("an id", Windows, |p| edit_task(p, "tasks.jsonl", |t| t["metadata"]["task_id"] = json!("new")), "queries"),
    ("an unknown field", Windows, |p| edit_task(p, "tasks.jsonl", |t| t["mine"] = json!(1)), "prompts"),
    ("the order of tasks", Windows, |p| { let mut tasks = p.records("tasks.jsonl"); tasks.reverse(); p.write("tasks.jsonl", jsonl(&tasks)) }, "queries"),
    ("a fragment's score", Given, |p| edit_task(p, "given.jsonl", |t| t["crossfile_context"]["list"][0]["score"] = json!(0.25)), "prompts"),
    ("a fragment without a score", Given, |p| edit_task(p, "given.jsonl", |t| { t["crossfile_context"]["list"][0].as_object_mut().unwrap().shift_remove("score"); }), "prompts"),
    ("a fragment's text", Given, |p| edit_task(p, "given.jsonl", |t| t["crossfile_context"]["list"][0]["retrieved_chunk"] = json!("new = 1")), "prompts"),
    ("a right context", Given, |p| edit_task(p, "given.jsonl", |t| t["right_context"] = json!("\nc = 3\n")), "prompts"),
    ("the tokenizer's file", Chunks, |p| fs::rename(p.path("other_tokenizer.json"), p.path("tokenizer.json")).unwrap(), "vectors"),
    ("the style's file", Chunks, |p| edit(p, "style.toml", "<fim_middle>\"", "<fim_middle># go on\\n\""), "prompts"),
    ("the vectors' file", Dense, |p| edit(p, "vectors.jsonl", "[1", "[9"), "vectors"),
    ("the texts' file", Dense, |p| fs::rename(p.path("other_texts.jsonl"), p.path("texts.jsonl")).unwrap(), "vectors"),
];

fn edit(place: &TestFolder, path: &str, before: &str, now: &str) {
    let text = place.read(path);
    assert!(text.contains(before), "{path}: {before}");
    place.write(path, text.replace(before, now));
}

fn edit_task(place: &TestFolder, path: &str, change: impl Fn(&mut Value)) {
    let mut tasks = place.records(path);
    change(&mut tasks[1]);
    place.write(path, jsonl(&tasks));
}

/// Returns functions that have much in common.
fn code(name: &str) -> String {
    let word = name.len();
    let function = |n: usize| {
        let (third, half, cost) = (n % 3, n % 2, n * 7 + word);
        format!(
            "def {name}_{n}(basket, table):\n    found = table.lookup('{name}', {n})\n    if found is None:\n\
             \x20       return basket.fallback({n} + {word})\n\n    for item in basket.items_of({third}):\n\
             \x20       found = found.add(item.price * {cost})\n    return found.rounded({half})\n\n"
        )
    };
    (0..6).map(function).collect()
}

/// Creates two repositories, tasks of two formats, and a file for every setting that takes one.
fn place() -> TestFolder {
    let place = TestFolder::empty();
    let names =
        ["app/orders", "app/prices", "app/stock", "lib/money", "lib/units", ".hidden/secret"];
    for name in names {
        let stem = name.rsplit('/').next().unwrap();
        place.write(&format!("repos/depot/{name}.py"), code(stem));
    }
    place.write("repos/depot/web/cart.ts", "export function cart(a: number) {\n  return a\n}\n");
    for name in ["fence", "gate"] {
        place.write(&format!("repos/yard/{name}.py"), code(name));
    }
    let tasks = [
        task("depot/0", "depot/app/orders.py", &code("orders"), 0, 24),
        task("depot/1", "depot/app/prices.py", &code("prices"), 0, 33),
        task("yard/0", "yard/fence.py", &code("fence"), 9, 25),
    ];
    place.write("tasks.jsonl", jsonl(&tasks));
    place.write("more.jsonl", jsonl(&tasks[1..]));
    let given = |n: usize| {
        json!({
            "prompt": format!("a = {n}\nb ="), "groundtruth": " 2", "right_context": null,
            "metadata": {"task_id": format!("given/{n}"), "repository": "depot", "file": "app/a.py",
                "context_start_lineno": 0, "groundtruth_start_lineno": 1, "right_context_start_lineno": 2},
            "crossfile_context": {
                "text": "# Here are some relevant code fragments from other files of the repo:\n\n# the below code fragment can be found in:\n# b.py\n# b = 2\n\n",
                "list": [{"retrieved_chunk": "b = 2", "filename": "b.py", "score": 0.5}],
            },
        })
    };
    place.write("given.jsonl", jsonl(&[given(0), given(1)]));
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/prompt/style/bundled");
    place.write("style.toml", fs::read(bundled.join("starcoder.toml")).unwrap());
    let tokenizers = data().join("../tests/fixtures/tokenizers");
    place.write("tokenizer.json", fs::read(tokenizers.join("starcoder.json")).unwrap());
    place.write("other_tokenizer.json", fs::read(tokenizers.join("codellama.json")).unwrap());
    place
}

/// Adds vectors by id, and two files that map the ids to texts.
fn add_vectors(place: &TestFolder) {
    let flags = [
        "--repos-dir=repos", "--tasks=tasks.jsonl", "--cache-dir=texts", "--unit=chunks",
        "--ranker=dense",
    ];
    let settings = place.settings(&flags.map(str::to_owned)).unwrap();
    let (experiment, _) = experiments(&settings).unwrap().remove(0);
    window_repositories(&experiment).unwrap();
    window_queries(&experiment, &[Mode::LeftContext], None).unwrap();
    let texts = dense_texts(&experiment, &[Mode::LeftContext]).unwrap();
    let mut texts: Vec<Value> =
        texts.iter().map(|text| json!({"_id": text.id, "text": text.text})).collect();
    place.write("texts.jsonl", jsonl(&texts));
    let vectors: Vec<Value> = (texts.iter().enumerate())
        .map(|(n, text)| json!({"_id": text["_id"], "embedding": [1 + n % 5, n % 7, 1]}))
        .collect();
    place.write("vectors.jsonl", jsonl(&vectors));
    let others: Vec<Value> = (vectors.iter().enumerate())
        .map(|(n, vector)| json!({"_id": vector["_id"], "embedding": [1 + n % 3, 1, n % 4]}))
        .collect();
    place.write("other_vectors.jsonl", jsonl(&others));
    // Each id with the text of another.
    let ids: Vec<Value> = texts.iter().map(|text| text["_id"].clone()).collect();
    for (text, id) in texts.iter_mut().zip(ids.iter().rev()) {
        text["_id"] = id.clone();
    }
    place.write("other_texts.jsonl", jsonl(&texts));
}

/// Starts a server whose answers depend on the whole request except whether it may stream, and whose probabilities depend on
/// its path and prompt.
fn moody() -> String {
    let mood =
        |text: &str| text.bytes().fold(7_u32, |mood, byte| mood.wrapping_mul(31) ^ u32::from(byte));
    let answer = move |request: &ReceivedRequest| {
        let ReceivedRequest { path, body, .. } = request;
        if path.ends_with("/tokenize") {
            return ok(&json!({"tokens": [7]}));
        }
        if body.get("logit_bias").is_some() {
            let mood = mood(&format!("{path} {}", request.prompt()));
            let logprob = -1.0 - f64::from(mood % 1000) / 500.0;
            let token = json!({"id": 7, "token": "", "logprob": logprob});
            let logprobs = json!({"content": [token]});
            return ok(&json!({"choices": [{"index": 0, "text": "", "logprobs": logprobs}]}));
        }
        let mut asked = body.clone();
        asked.as_object_mut().unwrap().remove("stream");
        let mood = mood(&format!("{path} {asked}"));
        let choice = |n: u64| {
            let text = format!("\nx_{mood} = {n}");
            let message = json!({"role": "assistant", "content": text});
            json!({"index": n, "text": text, "message": message, "finish_reason": "stop"})
        };
        let samples = body["n"].as_u64().unwrap_or(1);
        ok(&json!({"choices": (0..samples).map(choice).collect::<Vec<_>>()}))
    };
    TestServer::start_without_models(answer).leak().0
}

type Files = BTreeMap<String, Vec<u8>>;

/// Returns flags, with some replaced by others.
fn replaced(mut flags: Vec<String>, others: &[&str]) -> Vec<String> {
    let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
    flags.retain(|flag| !others.iter().any(|other| name(other) == name(flag)));
    flags.extend(others.iter().map(|&other| other.to_owned()));
    flags
}

fn run_base(
    place: &TestFolder,
    cache: &str,
    base: Base,
    url: &str,
    more: &[&str],
) -> Result<Files, String> {
    let mut flags = replaced(base.arguments(url), more);
    flags.iter_mut().for_each(|flag| *flag = flag.replace("URL", url));
    flags.push(format!("--cache-dir={cache}"));
    let ran = place.settings(&flags).and_then(|settings| run(&settings, RunRequest::default()));
    ran.map_err(|error| format!("{error:#}"))?;
    let mut files = place.files(cache);
    // Answers arrive in any order, and choices of policies are not artifacts.
    files.retain(|path, _| {
        let name = path.rsplit('/').next().unwrap_or_default();
        !path.starts_with("journal/") && !name.starts_with("self@") && !name.starts_with("always-")
    });
    Ok(files)
}

/// Makes a change on the cache of the base's run and on an empty cache, and compares both. The error describes the differences.
fn check(
    place: &TestFolder,
    url: &str,
    base: Base,
    name: &str,
    flags: &[&str],
    first: &str,
) -> Result<(), String> {
    let (before, times) = (place.files("warm"), place.times("warm"));
    let edit = INPUTS.iter().find(|(input, of, ..)| *input == name && *of == base);
    if let (Some((_, _, edit, _)), true) = (edit, flags.is_empty()) {
        edit(place);
    }
    run_base(place, "warm", base, url, flags)?;
    let (warm, now) = (place.files("warm"), place.times("warm"));
    let cold = run_base(place, "cold", base, url, flags)?;
    if let Some((path, _)) = cold.iter().find(|(path, bytes)| warm.get(*path) != Some(*bytes)) {
        return Err(format!("{path} is not what a run from nothing makes"));
    }
    // The artifacts of mode rg-rg depend on predictions.
    let is_first = |path: &&String| !path.contains("rg-rg");
    let written = cold.keys().filter(is_first).filter(|path| times.get(*path) != now.get(*path));
    let written = written.map(|path| kind(path)).min().map_or("", |kind| KINDS[kind].0);
    // A change that does not affect any text proves nothing.
    let is_text = |path: &str| !path.ends_with(".header.json");
    let differs = cold.iter().any(|(path, bytes)| is_text(path) && before.get(path) != Some(bytes));
    match (written == first, differs != first.is_empty()) {
        (true, true) => Ok(()),
        (true, false) => Err(format!("whether a text differs: {differs}")),
        (false, _) => Err(format!("the first kind that is written: {written:?}, not {first:?}")),
    }
}

/// Returns a folder with the cache of a base's run.
fn ran(base: Base, url: &str) -> (Base, TestFolder) {
    let place = place();
    if base == Dense {
        add_vectors(&place);
    }
    run_base(&place, "warm", base, url, &[]).unwrap();
    (base, place)
}

#[test]
fn a_change_of_a_setting_or_an_input_is_never_called_current() {
    let url = moody();
    let settings = SETTINGS.iter().map(|&(name, base, flags, first)| (name, base, flags, first));
    let inputs = INPUTS.iter().map(|&(name, base, _, first)| (name, base, &[][..], first));
    let changes: Vec<Change> = settings.chain(inputs).collect();
    let before: BTreeMap<Base, TestFolder> = [Windows, Chunks, Given, Dense, Definitions, Server]
        .into_par_iter()
        .map(|base| ran(base, &url))
        .collect();
    let wrong = changes.par_iter().filter_map(|&(name, base, flags, first)| {
        let place = TestFolder::empty();
        for (path, bytes) in before[&base].files("") {
            place.write(&path, bytes);
        }
        let wrong = check(&place, &url, base, name, flags, first).err();
        wrong.map(|reason| format!("{name} ({base:?}, {flags:?}): {reason}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_setting_has_a_line() {
    let settings = Settings::defaults().unwrap();
    let keys: BTreeSet<&str> = settings.entries().iter().map(|entry| entry.setting().key).collect();
    let tables = SETTINGS.iter().map(|line| line.0).chain(ELSEWHERE.iter().map(|line| line.0));
    let tables: BTreeSet<&str> = tables.collect();
    let others: Vec<_> = tables.symmetric_difference(&keys).collect();
    assert!(others.is_empty(), "only here, or not here: {others:?}");
}

/// Vectors that a server computes are identified by the name of its model.
#[test]
fn vectors_of_another_embedding_model_are_others() {
    let server = TestServer::start_without_models(|request| {
        let scale = request.body["model"].as_str().unwrap().len();
        let texts = request.body["input"].as_array().unwrap();
        let vector = |(n, text): (usize, &Value)| {
            let length = text.as_str().unwrap().len();
            json!({"index": n, "embedding": [length % 7, scale, 1]})
        };
        ok(&json!({"data": texts.iter().enumerate().map(vector).collect::<Vec<_>>()}))
    });
    let url = server.url();
    let place = place();
    let vectors = |cache: &str, more: &[&str]| {
        let mut flags: Vec<String> = [
            "--repos-dir=repos", "--tasks=tasks.jsonl", "--unit=chunks", "--ranker=dense",
            "--embedding-model=one",
        ]
        .map(str::to_owned)
        .into();
        flags.extend([format!("--endpoint={url}"), format!("--cache-dir={cache}")]);
        let settings = place.settings(&replaced(flags, more)).unwrap();
        let (experiment, _) = experiments(&settings).unwrap().remove(0);
        window_repositories(&experiment).unwrap();
        window_queries(&experiment, &[Mode::LeftContext], None).unwrap();
        vectorize_repositories(&experiment).unwrap();
        vectorize_queries(&experiment, &[Mode::LeftContext]).unwrap();
    };
    vectors("warm", &[]);
    let (before, times) = (place.files("warm"), place.times("warm"));
    for same in ["--embedding-batch=1", "--embedding-concurrency=1", "--embedding-timeout=9"] {
        vectors("warm", &[same]);
    }
    assert!(place.times("warm") == times, "what changes no vector has none made again");
    for cache in ["warm", "cold"] {
        vectors(cache, &["--embedding-model=another"]);
    }
    let (warm, cold) = (place.files("warm"), place.files("cold"));
    let dense = "vector/repos/depot_chunk20_stride10.dense.bin";
    assert!(warm[dense] == cold[dense] && warm[dense] != before[dense]);
}
