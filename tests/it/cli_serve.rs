//! `serve`: prompts that are those of the stages, changes of files, cancelled requests, servers that fail, and who may ask.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::server::{answer as sent, ok, refusal, server};
use crate::support::{Place, parse_jsonl};

/// A server of completions that runs until it is dropped.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: String,
    /// What it writes to standard error.
    pub(crate) said: Arc<Mutex<String>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer: status, head, body.
pub(crate) type Reply = (u16, String, String);

impl Serving {
    pub(crate) fn start(place: &Place, args: &[&str]) -> Self {
        Self::start_with(place, args, &[])
    }

    pub(crate) fn start_with(place: &Place, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let all = [&["serve", "--listen", "127.0.0.1:0"], args].concat();
        let mut command = place.command(&all);
        command.envs(variables.iter().copied());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut all = String::new();
        let address = loop {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "it ended: {all}");
            all += &line;
            if let Some(address) = line.trim().strip_prefix("listening on http://") {
                break address.to_owned();
            }
        };
        // What it says later is read, so that it never waits for a reader.
        let lines = Arc::new(Mutex::new(all));
        let later = Arc::clone(&lines);
        std::thread::spawn(move || {
            let mut line = String::new();
            while said.read_line(&mut line).is_ok_and(|read| read > 0) {
                *later.lock().unwrap() += &std::mem::take(&mut line);
            }
        });
        Self { child, address, said: lines }
    }

    fn connect(&self, path: &str, headers: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let method = if body.is_empty() { "GET" } else { "POST" };
        let host = if headers.to_lowercase().contains("host:") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.address)
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{host}{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(&[request.as_bytes(), body].concat()).unwrap();
        stream
    }

    pub(crate) fn ask(&self, path: &str, headers: &str, body: &str) -> Reply {
        reply(self.connect(path, headers, body.as_bytes()))
    }

    pub(crate) fn ask_bytes(&self, path: &str, body: &[u8]) -> Reply {
        reply(self.connect(path, "", body))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask(path, "", &body.to_string())
    }

    /// The answers to a text that is sent as it is.
    fn say(&self, text: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(text.replace("ADDRESS", &self.address).as_bytes()).unwrap();
        let mut answers = Vec::new();
        let _ = stream.read_to_end(&mut answers);
        String::from_utf8(answers).unwrap()
    }

    pub(crate) fn last(&self) -> Value {
        let (status, _, body) = self.ask("/debug/last", "", "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }
}

/// Reads an answer to its end.
fn reply(mut stream: TcpStream) -> Reply {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase(), body.to_owned())
}

pub(crate) fn text_answer(text: &str) -> Value {
    json!({"model": "m", "choices": [{"index": 0, "text": text, "finish_reason": "stop"}]})
}

/// A request for a task of RepoEval's: its left context, and what its file has behind the target.
fn infill(place: &Place, task: &Value) -> Value {
    let metadata = &task["metadata"];
    let names =
        metadata["fpath_tuple"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let path = names.collect::<Vec<_>>().join("/");
    let text = place.read(&format!("repos/{path}"));
    let (prompt, target) =
        (task["prompt"].as_str().unwrap(), metadata["ground_truth"].as_str().unwrap());
    let line_no = metadata["line_no"].as_u64().unwrap() as usize;
    let start: usize = text.split_inclusive('\n').take(line_no).map(str::len).sum();
    let suffix = &text[start + target.len()..];
    let file = path.split_once('/').unwrap().1;
    json!({"input_prefix": prompt, "input_suffix": suffix, "prompt": "", "filename": file, "n_predict": 5})
}

/// A file that gets requests is in the index, whatever its ending (TypeScript 4.7).
#[test]
fn every_module_of_typescript_is_in_the_index() {
    let place = Place::empty();
    let code: String =
        (0..30).map(|n| format!("const total{n} = computeTotal({n}, prices);\n")).collect();
    place.write("repos/r/src/lib.mts", &code);
    place.write("repos/r/src/old.d.cts", "export declare const old: number;\n");
    place.write("repos/r/src/main.mts", "import { a } from './lib.mjs';\n");
    let (url, seen) = server(|_| ok(&text_answer("x")));
    let serving = Serving::start(
        &place,
        &[
            "--repos-dir", "repos", "--repo", "r", "--language", "typescript", "--endpoint", &url,
            "--no-watch", "--cache-dir", "cache",
        ],
    );
    let prefix = format!("import {{ a }} from './lib.mjs';\n{}", &code[..code.len() / 2]);
    let request = json!({
        "input_prefix": prefix, "input_suffix": "", "prompt": "", "filename": "./src//main.mts", "n_predict": 5,
    });
    let (status, _, body) = serving.post("/infill", &request);
    assert_eq!(status, 200, "{body}");
    let prompts: Vec<String> =
        seen.lock().unwrap().iter().map(|request| request.body.to_string()).collect();
    assert!(prompts.iter().any(|prompt| prompt.contains("lib.mts")), "{prompts:?}");
}

#[test]
fn prompts_are_those_of_the_stages() {
    let place = Place::empty();
    place.add_samples();
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/tasks/line.jsonl");
    let tasks = parse_jsonl(&std::fs::read_to_string(data).unwrap());
    let of_one = |task: &&Value| task["metadata"]["fpath_tuple"][0] == "parcelflow";
    let tasks: Vec<Value> = tasks.iter().filter(of_one).cloned().collect();
    place.write("tasks.jsonl", crate::support::jsonl(&tasks));
    let (url, seen) = server(|_| ok(&text_answer("x")));
    for settings in [
        &["--prompt-style", "repocoder"][..],
        &["--prompt-style", "starcoder"],
        &[
            "--prompt-style", "qwen2.5-coder", "--window-size", "8", "--align", "none",
            "--max-blocks", "3",
        ],
        &["--profile", "repoformer-paper"],
    ] {
        let data = ["--repos-dir", "repos", "--repo", "parcelflow", "--cache-dir", "cache"];
        let with_tasks =
            [&data[..], &["--tasks", "tasks.jsonl", "--mode", "rg1"], settings].concat();
        for stage in ["window", "vectorize", "search"] {
            place.run(&[&[stage], &with_tasks[..]].concat()).done();
        }
        let prompts = place.run(&[&["prompt"], &with_tasks[..], &["-o", "-"]].concat()).done();
        let prompts = parse_jsonl(&prompts.stdout);
        assert_eq!(prompts.len(), tasks.len());
        let serving = Serving::start(
            &place,
            &[&data[..], &["--endpoint", &url, "--no-watch"], settings].concat(),
        );
        for (task, wanted) in tasks.iter().zip(&prompts) {
            seen.lock().unwrap().clear();
            let (status, head, body) = serving.post("/infill", &infill(&place, task));
            assert_eq!(status, 200, "{body}");
            assert!(head.contains("x-repoformer-decision: retrieved; policy=always"), "{head}");
            let sent = seen.lock().unwrap()[0].prompt().to_owned();
            let wanted = wanted["prompt"].as_str().unwrap();
            let blank = [' ', '\t', '\r', '\n'];
            assert_eq!(
                sent,
                wanted.trim_end_matches(blank),
                "{settings:?} {}",
                task["metadata"]["task_id"]
            );
        }
    }
}

/// Length of what two texts have in common at their beginning.
fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

#[test]
fn a_stable_prompt_begins_as_the_one_before_it() {
    let place = Place::empty();
    place.add_samples();
    let file = "parcelflow/services/tracking.py";
    let text = place.read(&format!("repos/parcelflow/{file}"));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (url, seen) = server(|_| ok(&text_answer("x")));
    let common_parts = |stability: &str, style: &str, total: &str| -> Vec<bool> {
        let data =
            ["--repos-dir", "repos", "--repo", "parcelflow", "--no-watch", "--endpoint", &url];
        let style =
            ["--prompt-style", style, "--stability", stability, "--max-prompt-tokens", total];
        let serving = Serving::start(&place, &[&data[..], &style].concat());
        seen.lock().unwrap().clear();
        for end in 12..30.min(lines.len()) {
            let (prefix, suffix) = (lines[..end].concat(), lines[end..].concat());
            let body = json!({"input_prefix": prefix, "input_suffix": suffix, "filename": file});
            assert_eq!(serving.post("/infill", &body).0, 200);
        }
        let seen = seen.lock().unwrap();
        let prompts: Vec<&str> = seen.iter().map(|request| request.prompt()).collect();
        for (prompt, end) in prompts.iter().zip(12..) {
            assert!(
                prompt.contains(lines[end - 4..end].concat().trim_end()),
                "the left context: {prompt}"
            );
        }
        // All that stands before the cursor of the earlier prompt.
        let before = |prompt: &str| prompt.find("<|fim_suffix|>").unwrap_or(prompt.len());
        prompts.windows(2).map(|two| common(two[0], two[1]) >= before(two[0])).collect()
    };
    let (stable, best) =
        (common_parts("0.3", "qwen2.5-coder", "2048"), common_parts("0", "qwen2.5-coder", "2048"));
    assert!(stable.iter().all(|same| *same), "{stable:?}");
    assert!(best.iter().any(|same| !same), "fragments never change: {best:?}");
    // The other parts may have as many tokens as there are, and seldom need them.
    common_parts("0.3", "plain", "700");
}

#[test]
fn a_replay_measures_what_an_editor_sees() {
    let place = Place::empty();
    place.add_samples();
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/tasks/line.jsonl");
    place.write("tasks.jsonl", std::fs::read(data).unwrap());
    let (url, _) = server(|_| {
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}});
        ok(&json!({"choices": [{"text": "x", "finish_reason": "stop"}], "usage": usage}))
    });
    let serving = Serving::start(
        &place,
        &[
            "--repos-dir", "repos", "--repo", "parcelflow", "--endpoint", &url, "--policy",
            "trial-retrieval@0.3",
        ],
    );
    let server = format!("http://{}", serving.address);
    let replay = [
        "replay", "--tasks", "tasks.jsonl", "--repos-dir", "repos", "--repo", "parcelflow",
        "--limit", "4",
    ];
    let more = ["--server", &server, "--keystrokes", "3", "--format", "json"];
    let found: Value =
        serde_json::from_str(&place.run(&[&replay[..], &more].concat()).done().stdout).unwrap();
    assert_eq!(
        (&found["lines"], &found["requests"], &found["failed"]),
        (&json!(4), &json!(16), &json!(0))
    );
    assert_eq!((&found["prompt_tokens"], &found["evaluated_tokens"]), (&json!(160), &json!(96)));
    assert_eq!(found["preparing_ms"]["n"], 16);
    assert!(found["preparing_ms"]["p99"].as_f64().unwrap() > 0.0);
    let share = found["retrieved_share"].as_f64().unwrap();
    assert!(share > 0.0 && share < 1.0, "{share}");
    let typed = ["--server", &server, "--keystrokes", "5", "--speed", "200"];
    let text = place.run(&[&replay[..], &typed].concat()).done().stdout;
    assert!(text.contains("4 lines, ") && text.contains("decision and retrieval"), "{text}");
    let replay = ["replay", "--tasks", "tasks.jsonl", "--repos-dir", "repos", "--server"];
    place.run(&[&replay[..], &["http://127.0.0.1:9"]].concat()).failed().says(&["127.0.0.1:9"]);
    let other = [&replay[..], &[&server, "--repo", "quillpad"]].concat();
    place.run(&other).failed().says(&[
        "belongs to repository quillpad, but the server serves parcelflow",
        "choose the tasks of parcelflow among the repositories (--repo)",
    ]);
}

#[test]
fn failures_do_not_end_a_replay_before_they_are_many() {
    let place = Place::empty();
    place.add_samples();
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/tasks/line.jsonl");
    place.write("tasks.jsonl", std::fs::read(data).unwrap());
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let (url, _) = server(move |_| match asked.fetch_add(1, Relaxed) {
        0..3 | 8.. => refusal("400 Bad Request", "too long"),
        _ => ok(&text_answer("x")),
    });
    let serving = Serving::start(
        &place,
        &["--repos-dir", "repos", "--repo", "parcelflow", "--endpoint", &url, "--no-watch"],
    );
    let server = format!("http://{}", serving.address);
    let found = place.run(&[
        "replay", "--tasks", "tasks.jsonl", "--repos-dir", "repos", "--repo", "parcelflow",
        "--keystrokes", "2", "--server", &server, "--format", "json",
    ]);
    let found = found.partly().says(&["too long"]).stdout;
    let found: Value = serde_json::from_str(&found).unwrap();
    // Those of the first task, and five in a row.
    assert_eq!((&found["failed"], &found["lines"]), (&json!(8), &json!(2)), "{found}");
}

#[test]
fn a_decision_says_the_lines_of_its_fragments_and_what_was_dropped() {
    let place = Place::empty();
    let code = "def total(items):\n    amount = 0\n\n    for item in items:\n        amount += item.price\n";
    place.write("repos/shop/a.py", "x = 1\n");
    place.write("repos/shop/b.py", format!("import one\n\n\n{code}    return amount\n"));
    let (url, _) = server(|_| ok(&text_answer("return total")));
    let data = ["--repos-dir", "repos", "--repo", "shop", "--endpoint", &url, "--no-watch"];
    for more in [
        &["--prompt-style", "qwen2.5-coder"][..],
        &["--prompt-style", "repocoder"],
        &["--unit", "chunks", "--chunk-size", "6"],
    ] {
        let serving = Serving::start(&place, &[&data[..], more].concat());
        let body = json!({"prompt": format!("{code}    "), "filepath": "a.py"});
        let (status, _, answer) = serving.post("/v1/completions", &body);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let is_infilled = more.contains(&"qwen2.5-coder");
        // The prompt ends before the cursor's indentation, and the model writes on in the line before.
        let wanted = if is_infilled { "return total" } else { "" };
        assert_eq!((status, &answer["choices"][0]["text"]), (200, &json!(wanted)), "{more:?}");
        let last = serving.last();
        let dropped = if is_infilled { Value::Null } else { json!("return total") };
        assert_eq!(last["dropped"], dropped, "{last}");
        let fragment = &last["fragments"][0];
        let lines = (&fragment["first_line"], &fragment["last_line"]);
        assert_eq!((&fragment["path"], lines), (&json!("b.py"), (&json!(1), &json!(9))), "{last}");
        serving.post("/v1/completions", &body);
        let decisions = |query: &str| -> Value {
            let (status, _, body) = serving.ask(&format!("/debug/decisions{query}"), "", "");
            assert_eq!(status, if query == "?last" { 400 } else { 200 }, "{body}");
            serde_json::from_str(&body).unwrap()
        };
        let all = decisions("");
        assert_eq!((&all[0]["number"], &all[1]["number"]), (&json!(2), &json!(1)));
        assert_eq!(decisions("?after=1"), json!([all[0]]));
        assert_eq!(decisions("?after=2"), json!([]));
        assert!(decisions("?last")["error"].to_string().contains("after=NUMBER"));
    }
}

/// The cache is indexed while it is checked whether it is current.
#[test]
fn a_start_sees_what_changed_since_the_cache_was_made() {
    let place = Place::new();
    let (url, _) = server(|request| ok(&text_answer(request.prompt())));
    let data = ["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url, "--no-watch"];
    let code = "def total_of(orders):\n    total = 0\n    for order in orders:\n        total += order.price\n";
    let prompt = || prompt_at_end(&Serving::start(&place, &data), code, "new.py");
    assert!(!prompt().contains("only_here"));
    place.write("repos/alpha/other.py", format!("{code}    return only_here\n"));
    assert!(prompt().contains("only_here"), "a stale cache");
    assert!(prompt().contains("only_here"), "a current one");
    std::fs::remove_file(place.path("repos/alpha/other.py")).unwrap();
    assert!(!prompt().contains("only_here"), "a file that is gone");
}

/// Each request reads its file, and other programs read many.
#[cfg(target_os = "linux")]
#[test]
fn files_that_are_only_read_wake_nobody() {
    let place = Place::new();
    let data = ["--repos-dir", "repos", "--repo", "alpha", "--endpoint", "http://127.0.0.1:1"];
    let serving = Serving::start(&place, &data);
    let threads = format!("/proc/{}/task", serving.child.id());
    let name = |task: &std::path::Path| std::fs::read_to_string(task.join("comm")).unwrap();
    // A thread gets its name after its start.
    let find = || {
        let mut tasks = std::fs::read_dir(&threads).unwrap().map(|task| task.unwrap().path());
        tasks.find(|task| name(task) == "watch\n")
    };
    let mut looks = (0..1000).map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        find()
    });
    let watch = looks.find_map(|found| found).unwrap();
    let waits = || -> u32 {
        let status = std::fs::read_to_string(watch.join("status")).unwrap();
        let waits = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        waits.unwrap().trim().parse().unwrap()
    };
    let (before, begin) = (waits(), Instant::now());
    let file = std::fs::read_dir(place.path("repos/alpha")).unwrap();
    let file = file.map(|file| file.unwrap().path()).find(|path| path.is_file()).unwrap();
    for _ in 0..20 {
        std::fs::read(&file).unwrap();
        std::thread::sleep(Duration::from_millis(15));
    }
    // It looks around once a second.
    assert!(waits() - before <= 3 + 2 * begin.elapsed().as_secs() as u32);
}

#[cfg(unix)]
#[test]
fn a_new_file_has_the_name_that_the_stages_give_it() {
    let place = Place::empty();
    let code =
        "def total(items):\n    amount = 0\n    for item in items:\n        amount += item.price\n";
    place.write("repos/shop/real/known.py", "x = 1\n");
    std::os::unix::fs::symlink("real", place.path("repos/shop/alink")).unwrap();
    let (url, _) = server(|request| ok(&text_answer(request.prompt())));
    let data = ["--repos-dir", "repos", "--repo", "shop", "--endpoint", &url, "--walk", "glob"];
    let serving = Serving::start(&place, &data);
    place.write("repos/shop/real/new.py", format!("import new\n{code}    return amount\n"));
    let prompt = || prompt_at_end(&serving, &format!("{code}x = "), "a.py");
    soon("the new file", || prompt().contains("import new"));
    assert!(prompt().contains("# alink/new.py"), "{}", prompt());
}

/// The prompt that a request for a new line at the end of a text is sent with.
fn prompt_at_end(serving: &Serving, text: &str, file: &str) -> String {
    let (status, _, body) = serving
        .post("/v1/completions", &json!({"prompt": text, "filepath": file, "max_tokens": 3}));
    assert_eq!(status, 200, "{body}");
    let body: Value = serde_json::from_str(&body).unwrap();
    body["choices"][0]["text"].as_str().unwrap().to_owned()
}

/// Retries for as long as a watcher may take on a busy machine.
pub(crate) fn soon(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn changes_of_files_are_seen_and_unsaved_text_wins() {
    let place = Place::new();
    // The completion is the prompt that it was asked for with.
    let (url, _) = server(|request| ok(&text_answer(request.prompt())));
    let serving =
        Serving::start(&place, &["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url]);
    let query = "def total_of_orders(orders):\n    total = 0\n    for order in orders:\n        total += order.price\n";
    let prompt = || prompt_at_end(&serving, query, "new.py");
    assert!(!prompt().contains("orders.py"));
    place.write("repos/alpha/deep/orders.py", format!("import one\n{query}    return total\n"));
    soon("a new file in a new folder", || prompt().contains("import one"));
    place.write("repos/alpha/deep/orders.py", format!("import two\n{query}    return total\n"));
    soon("a changed file", || !prompt().contains("import one") && prompt().contains("import two"));
    std::fs::rename(place.path("repos/alpha/store.py"), place.path("repos/alpha/shop.py")).unwrap();
    let store = place.read("repos/alpha/shop.py");
    let of_store = || prompt_at_end(&serving, &store[..store.len() / 2], "other.py");
    soon("a renamed file", || {
        of_store().contains("# shop.py") && !of_store().contains("# store.py")
    });
    std::fs::remove_file(place.path("repos/alpha/shop.py")).unwrap();
    soon("a removed file", || !of_store().contains("# shop.py"));
    // Another folder takes the repository's place.
    std::fs::rename(place.path("repos/alpha"), place.path("repos/away")).unwrap();
    place.write("repos/alpha/again.py", format!("import again\n{query}    return total\n"));
    soon("the new folder", || prompt().contains("import again"));
    place.write("repos/alpha/again.py", format!("import changed\n{query}    return total\n"));
    soon("a file that is changed there", || prompt().contains("import changed"));
    // One that is made anew, which may have the number of the old one.
    std::fs::remove_dir_all(place.path("repos/alpha")).unwrap();
    place.write("repos/alpha/store.py", &store);
    place.write("repos/alpha/again.py", format!("import anew\n{query}    return total\n"));
    soon("the folder that was made anew", || prompt().contains("import anew"));
    place.write("repos/alpha/again.py", format!("import last\n{query}    return total\n"));
    soon("a file that is changed there", || prompt().contains("import last"));
    std::fs::remove_file(place.path("repos/alpha/again.py")).unwrap();
    // Unsaved text of one file is not seen from it, and what was saved is found again once it is open no longer.
    let long: String = (0..60).map(|n| format!("step_{n} = advance({n})\n")).collect();
    place.write("repos/alpha/long.py", &long);
    let part: Vec<&str> = long.lines().collect();
    // The request shows the last lines, changed; the file before them is where retrieval may look.
    let shown = part[40..60].join("\n") + "\nstep_9 = advance(9)\n";
    let asked = || prompt_at_end(&serving, &shown, "long.py");
    soon("a saved window before the request's lines", || asked().contains("step_30 = advance(30)"));
    place.write("repos/alpha/long.py", long.replace("advance", "retreat"));
    let changed = shown.replace("advance", "retreat");
    let asked = || prompt_at_end(&serving, &changed, "long.py");
    soon("the window as it was saved again", || asked().contains("step_30 = retreat(30)"));
}

#[test]
fn what_git_ignores_is_not_found_and_ten_thousand_changes_are_read() {
    let place = Place::empty();
    let code =
        "def total(items):\n    amount = 0\n    for item in items:\n        amount += item.price\n";
    place.write("repos/shop/a.py", "x = 1\n");
    place.write("repos/shop/built/b.py", format!("import built\n{code}    return amount\n"));
    place.write("repos/.git/info/exclude", "");
    let (url, _) = server(|request| ok(&text_answer(request.prompt())));
    let data = ["--repos-dir", "repos", "--repo", "shop", "--cache-dir", "cache"];
    let serving = Serving::start(&place, &[&data[..], &["--endpoint", &url]].concat());
    let asked = || prompt_at_end(&serving, &format!("{code}x = "), "a.py");
    assert!(asked().contains("import built"));
    place.write("repos/shop/.gitignore", "built/\n");
    soon("a folder that is ignored now", || !asked().contains("import built"));
    place.write("repos/shop/built/c/new.py", format!("import new\n{code}    return amount\n"));
    place.write("repos/shop/seen.py", format!("import seen\n{code}    return 1\n"));
    soon("a file beside it", || asked().contains("import seen"));
    // Lists outside of the repository's folder.
    place.write("repos/shop/outer.py", format!("import outer\n{code}    return 2\n"));
    soon("one more", || asked().contains("import outer"));
    place.write("repos/.git/info/exclude", "outer.py\n");
    soon("a file that the clone's list names", || !asked().contains("import outer"));
    place.write("repos/.gitignore", "!outer.py\n");
    soon("one that the list above does not ignore", || asked().contains("import outer"));
    std::fs::remove_file(place.path("repos/shop/outer.py")).unwrap();
    soon("one that is gone", || !asked().contains("import outer"));
    assert!(!asked().contains("import new"));
    // The stages read the same files with the same walk.
    let tasks = json!({"prompt": format!("{code}x = "), "metadata": {
        "task_id": "shop/0", "ground_truth": "y\n", "fpath_tuple": ["shop", "a.py"],
        "context_start_lineno": 0, "line_no": 4,
    }});
    place.write("tasks.jsonl", format!("{tasks}\n"));
    let last = serving.last();
    // Of an ignored file that is edited, what the request leaves out is read.
    let lines = |range: std::ops::Range<usize>| -> String {
        range.map(|at| format!("value_{at} = {at}\n")).collect()
    };
    place.write("repos/shop/built/long.py", lines(0..100));
    prompt_at_end(&serving, &lines(50..60), "built/long.py");
    assert_eq!(serving.last()["line"], 61);
    for (walk, is_seen) in [("git", false), ("glob", true)] {
        place.write("repos/shop/a.py", format!("{code}x = y\n"));
        let data =
            [&data[..], &["--tasks", "tasks.jsonl", "--mode", "rg1", "--walk", walk]].concat();
        for stage in ["window", "vectorize", "search"] {
            place.run(&[&[stage], &data[..]].concat()).done();
        }
        let prompts = place.run(&[&["prompt"], &data[..], &["-o", "-"]].concat()).done();
        assert_eq!(prompts.stdout.contains("import new"), is_seen, "{walk}: {}", prompts.stdout);
        assert!(prompts.stdout.contains("import seen"));
    }
    assert_eq!(last["fragments"][0]["path"], "seen.py", "{last}");
    // As when another branch is checked out.
    for number in 0..10_000 {
        place.write(
            &format!("repos/shop/f{}/m{number}.py", number % 100),
            format!("value_{number} = {number}\n"),
        );
    }
    place.write("repos/shop/seen.py", format!("import last\n{code}    return 1\n"));
    let fragments = || {
        let (_, _, body) = serving.ask("/metrics", "", "");
        let line =
            body.lines().find(|line| line.starts_with("repoformer_fragments ")).unwrap().to_owned();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    soon("all that changed", || fragments() > 10_000 && asked().contains("import last"));
    std::fs::remove_dir_all(place.path("repos/shop/f7")).unwrap();
    for number in 0..10_000 {
        let _ =
            std::fs::remove_file(place.path(&format!("repos/shop/f{}/m{number}.py", number % 100)));
    }
    soon("all that is gone", || fragments() < 10 && asked().contains("import last"));
}

#[test]
fn labels_are_learned_from_what_is_written_where_completions_were_shown() {
    let place = Place::empty();
    let lines: Vec<String> =
        (0..12).map(|n| format!("    row_{n} = load(table_{n}, {n})\n")).collect();
    place.write("repos/shop/store.py", format!("def fill(table):\n{}", lines.concat()));
    place.write("repos/shop/new.py", "def fill_again(table):\n");
    place.write("repos/shop/end.py", "");
    // The model knows odd lines by itself, and the others where they are shown to it.
    let known = lines.clone();
    let (url, seen) = server(move |request| {
        let prompt = request.prompt();
        let at = prompt.rsplit("def fill_again").next().unwrap().matches(" = ").count();
        let line = known.get(at).cloned().unwrap_or_default();
        let is_known = at % 2 == 1 || prompt.contains(&format!("# {}", line.trim_end()));
        // The line end before it is not sent, and so written.
        let text = if is_known { line.trim_end() } else { "    pass" };
        ok(&text_answer(&format!("\n{text}")))
    });
    let labels = || match std::fs::read_to_string(place.path("labels.jsonl")) {
        Ok(text) => parse_jsonl(&text),
        Err(_) => Vec::new(),
    };
    for (policy, retrieved) in [("never", false), ("always", true)] {
        let flags = [
            "--repos-dir", "repos", "--repo", "shop", "--endpoint", &url, "--learn", "labels.jsonl",
        ];
        let serving =
            Serving::start(&place, &[&flags[..], &["--policy", policy, "--model", "m"]].concat());
        let mut text = "def fill_again(table):\n".to_owned();
        let ask = |text: &str| {
            let body = json!({
                "input_prefix": text, "input_suffix": "", "prompt": "", "filename": "new.py", "n_predict": 16,
            });
            assert_eq!(serving.post("/infill", &body).0, 200);
        };
        let before = labels().len();
        for line in &lines[..6] {
            ask(&text);
            // While the line is typed, nothing is known of it.
            ask(&format!("{text}{}", &line[..9]));
            text += line;
        }
        ask(&text);
        soon("a label for each line", || labels().len() == before + 6);
        for (at, label) in labels()[before..].iter().enumerate() {
            assert_eq!(label["groundtruth"], lines[at], "{label}");
            assert_eq!(label["label"], at % 2 == 0, "{label}");
            assert_eq!(label["es_rg1"], 1.0, "{label}");
            let metadata = &label["metadata"];
            assert_eq!(metadata["retrieved"], retrieved);
            assert_eq!(metadata["accepted"], retrieved || at % 2 == 1, "{label}");
            let wanted = if at % 2 == 1 { lines[at].trim_end() } else { "    pass" };
            assert_eq!(metadata["completions"], json!([wanted, lines[at].trim_end()]));
            assert_eq!(metadata["task_id"], format!("shop/new.py/{}_{}", at + 1, at + 2));
            assert_eq!(label["generation_model"], "m");
            assert_eq!(label["fragments"], "windows ranked by jaccard");
            assert!(label["crossfile_context"]["text"].as_str().unwrap().contains("store.py"));
        }
    }
    assert!(seen.lock().unwrap().len() >= 2 * (6 + 7 + 6));
    place.run(&["validate", "labels.jsonl"]).done();
    let trained = place.run(&[
        "policy", "train", "--labels", "labels.jsonl", "--policy", "learned-scored", "-o",
        "policy.json",
    ]);
    trained.done();
    let flags = ["serve", "--repos-dir", "repos", "--repo", "shop", "--endpoint", &url];
    let other = ["--policy", "learned-scored", "--policy-model", "policy.json", "--unit", "chunks"];
    place.run(&[&flags[..], &other].concat()).failed().says(&[
        "trained on scores of windows ranked by jaccard, but these scores are of chunks ranked by jaccard",
        "--unit",
    ]);
    let other = ["--learn", "labels.jsonl", "--unit", "chunks"];
    place.run(&[&flags[..], &other].concat()).failed().says(&[
        "labels.jsonl:1: this label is of windows ranked by jaccard, but this server uses chunks \
         ranked by jaccard",
        "--learn",
    ]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(place.path("labels.jsonl")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "others read none of the user's code");
    }
    let flags = [
        "serve", "--repos-dir", "repos", "--repo", "shop", "--endpoint", &url, "--learn",
        "no/such/file",
    ];
    place.run(&flags).failed().says(&["no/such/file: cannot be opened"]);
}

/// An editor that sends a part of the file: beyond it stands what was saved, which is not what she wrote.
#[test]
fn no_label_is_learned_from_text_that_no_request_holds() {
    let place = Place::empty();
    let lines: Vec<String> = (0..60).map(|at| format!("value_{at} = {at}\n")).collect();
    let filler = |range: std::ops::Range<usize>| lines[range].concat();
    place.write("repos/shop/a.py", format!("import os\nx = old\n{}", filler(0..60)));
    place.write("repos/shop/b.py", "y = 1\n");
    let (url, _) = server(|_| ok(&text_answer("new")));
    let serving = Serving::start(
        &place,
        &[
            "--repos-dir", "repos", "--repo", "shop", "--endpoint", &url, "--no-watch", "--learn",
            "labels.jsonl",
        ],
    );
    let ask = |file: &str, prompt: &str, suffix: &str| {
        let body = json!({"prompt": prompt, "suffix": suffix, "filepath": file});
        assert_eq!(serving.post("/v1/completions", &body).0, 200);
    };
    ask("a.py", "import os\nx = ", &format!("\n{}", filler(0..10)));
    ask("a.py", &filler(30..40), &filler(40..50));
    ask("b.py", "y = ", "");
    ask("b.py", "y = new\nz = ", "");
    soon("a label", || !place.read("labels.jsonl").is_empty());
    let labels = place.records("labels.jsonl");
    assert_eq!(labels.len(), 1, "{labels:?}");
    assert_eq!(labels[0]["metadata"]["task_id"], "shop/b.py/0_1");
}

#[test]
fn a_model_decides_at_the_cursor() {
    let place = Place::empty();
    let code = "def total(items):\n    amount = 0\n    for item in items:\n";
    place.write("repos/shop/a.py", "x = 1\n");
    place.write("repos/shop/b.py", format!("{code}        amount += item.price\n"));
    crate::cli_policy::train_self_scored(&place, "joined.json");
    let has_failed = AtomicBool::new(false);
    // It asks for retrieval after `total`; where it is broken, it tells no probability.
    let (url, seen) = server(move |request| {
        let (body, prompt) = (&request.body, request.prompt());
        if request.path == "/tokenize" {
            return ok(&json!({"tokens": [7]}));
        }
        if body["max_tokens"] != 1 || body.get("stream").is_some() {
            // Where a label asks for what was not shown, it fails once.
            let is_plain = prompt.contains("total") && !prompt.contains("<cc>");
            if is_plain && !has_failed.swap(true, Relaxed) {
                return refusal("500 Internal Server Error", "starting");
            }
            return ok(&text_answer(if is_plain { "pass" } else { "done" }));
        }
        assert!(prompt.ends_with("<eof>"), "{prompt}");
        if prompt.contains("broken") {
            return refusal("500 Internal Server Error", "no");
        }
        let asks = prompt.contains("total");
        let id = if asks || body.get("logit_bias").is_some() { 7 } else { 9 };
        let token = json!({"id": id, "token": "", "logprob": if asks { -0.8 } else { -3.0 }});
        ok(&json!({"choices": [{
            "index": 0, "text": "", "finish_reason": "length", "logprobs": {"content": [token]},
        }]}))
    });
    let data = [
        "--repos-dir", "repos", "--repo", "shop", "--endpoint", &url, "--no-watch", "--unit",
        "chunks", "--prompt-style", "repoformer", "--policy",
    ];
    let joined = ["self-scored@0.5", "--policy-model", "joined.json"];
    for policy in [&["self@greedy", "--learn", "labels.jsonl"][..], &["self@0.3"], &joined] {
        let serving = Serving::start(&place, &[&data[..], policy].concat());
        let decision = |text: &str| {
            let body = json!({"prompt": text, "suffix": "\n", "filepath": "a.py"});
            let (status, head, body) = serving.post("/v1/completions", &body);
            assert!(status == 200 || text.contains("broken"), "{policy:?}: {body}");
            (status, head.contains("x-repoformer-decision"), serving.last()["retrieved"] == true)
        };
        assert_eq!(decision(code), (200, true, true), "{policy:?}");
        if policy.contains(&"--learn") {
            decision(&format!("{code}done\nx = "));
            soon("a label", || !place.read("labels.jsonl").is_empty());
            let label = &place.records("labels.jsonl")[0];
            assert_eq!(label["groundtruth"], "done\n");
            assert_eq!(label["metadata"]["completions"], json!(["pass", "done"]));
            assert!((label["cc_probability"].as_f64().unwrap() - 0.449_328_964).abs() < 1e-6);
            assert_eq!((&label["cc_likeliest"], &label["label"]), (&json!(true), &json!(true)));
        }
        assert_eq!(decision("zzz = qqq(www)\n"), (200, true, false), "{policy:?}");
        assert!(decision("broken = 1\n").0 >= 500, "{policy:?}: never without a reason");
        let last = serving.last();
        assert!(last["error"].as_str().unwrap().contains("500"), "{last}");
        assert_eq!((&last["outcome"], &last["retrieved"]), (&json!("failed"), &Value::Null));
    }
    assert!(seen.lock().unwrap().iter().any(|request| request.prompt().contains("<cc>")));
    let serving = Serving::start(&place, &[&data[..], &["random@0.5"]].concat());
    let at_random = |_| {
        serving.post("/v1/completions", &json!({"prompt": code, "suffix": "", "filepath": "a.py"}));
        serving.last()["retrieved"] == true
    };
    let share = (0..64).map(at_random).filter(|retrieved| *retrieved).count();
    assert!((8..=56).contains(&share), "{share} of 64");
    for (policy, retrieves) in [("learned-scored@0", true), ("learned-scored@1", false)] {
        let serving = Serving::start(&place, &[&data[..], &[policy]].concat());
        serving.post("/v1/completions", &json!({"prompt": code, "suffix": "", "filepath": "a.py"}));
        let last = serving.last();
        let score = last["score"].as_f64().unwrap();
        assert!(0.0 < score && score < 1.0 && last["retrieved"] == retrieves, "{last}");
    }
    let bundled = place.run(&["policy", "explain", "bundled"]).done().stdout;
    let made = "by model SmolLM2-135M-Instruct-m0, chunks ranked by jaccard;";
    assert!(bundled.contains(made), "{bundled}");
    // Its threshold means nothing for windows.
    let windows: Vec<&str> =
        data.iter().map(|word| if *word == "chunks" { "windows" } else { word }).collect();
    let serve = [&["serve"], &windows[..], &["learned-scored@0.2"]].concat();
    place.run(&serve).failed().says(&["trained on scores of chunks ranked by jaccard"]);
    let more = ["--policy", "self-scored@0.5"];
    let all = [&["serve"], &data[..data.len() - 1], &more].concat();
    place.run(&all).failed().says(&["policy self-scored needs a trained model"]);
    let style = |word| if word == "repoformer" { "plain" } else { word };
    let all: Vec<&str> = all.into_iter().chain(joined[1..].iter().copied()).map(style).collect();
    place.run(&all).failed().says(&["the model has no place to decide"]);
}

#[test]
fn stability_shows_no_text_that_is_gone_and_decides_by_what_is_found() {
    let place = Place::empty();
    let code =
        "def total(items):\n    amount = 0\n    for item in items:\n        amount += item.price\n";
    place.write("repos/shop/a.py", "x = 1\n");
    place.write("repos/shop/b.py", format!("import one\n{code}    return amount\n"));
    let (url, _) = server(|request| ok(&text_answer(request.prompt())));
    let data = ["--repos-dir", "repos", "--repo", "shop", "--stability", "1", "--endpoint", &url];
    let serving = Serving::start(&place, &data);
    let prompt = || prompt_at_end(&serving, &format!("{code}x = "), "a.py");
    assert!(prompt().contains("import one"));
    place.write("repos/shop/b.py", format!("import two\n{code}    return amount\n"));
    soon("a changed fragment", || prompt().contains("import two"));
    drop(serving);
    let policy = ["--no-watch", "--policy", "trial-retrieval@0.5"];
    let serving = Serving::start(
        &place,
        &[&data[..4], &["--stability", "0.2", "--endpoint", &url], &policy].concat(),
    );
    let retrieves = |text: &str| {
        prompt_at_end(&serving, text, "a.py");
        serving.last()["retrieved"] == true
    };
    assert!(!retrieves("zzz = qqq(www)\nvvv = uuu\n"));
    assert!(retrieves(&format!("{code}    return amount\n")), "{}", serving.last());
    assert!(!retrieves("zzz = qqq(www)\nvvv = uuu\n"), "{}", serving.last());
}

#[test]
fn a_file_is_known_by_its_lines() {
    let place = Place::new();
    let (url, seen) = server(|_| ok(&text_answer("x")));
    let serving = Serving::start(
        &place,
        &["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url, "--no-watch"],
    );
    let store = place.read("repos/alpha/store.py");
    let middle: Vec<&str> = store.lines().collect();
    let (prefix, suffix) = (middle[5..15].join("\n"), middle[16..24].join("\n"));
    let body = json!({"input_prefix": format!("{prefix}\n"), "prompt": "x", "input_suffix": format!("\n{suffix}\n")});
    assert_eq!(serving.post("/infill", &body).0, 200);
    assert_eq!(
        (&serving.last()["file"], &serving.last()["line"]),
        (&json!("alpha/store.py"), &json!(16))
    );
    let body = json!({"input_prefix": "unknown words of another language altogether\nx", "input_suffix": ""});
    assert_eq!(serving.post("/infill", &body).0, 200);
    assert_eq!(serving.last()["file"], Value::Null);
    // A name from another folder on is that of the file which ends so.
    for name in ["checkout/alpha/view.py", "file:///elsewhere/view.py", "alpha/view.py"] {
        let body = json!({"prompt": "x = 1\n", "filepath": name});
        assert_eq!(serving.post("/v1/completions", &body).0, 200);
        let wanted = if name.starts_with("file") { Value::Null } else { json!("alpha/view.py") };
        assert_eq!(serving.last()["file"], wanted, "{name}");
    }
    // One that is not saved yet, and has nothing of another with its name.
    let root = place.path("repos/alpha").canonicalize().unwrap();
    let inner = root.join("pkg/view.py");
    for name in ["pkg/view.py", inner.to_str().unwrap(), &format!("file://{}", inner.display())] {
        let new = "def entirely_new_function(argument):\n    return argument_of_another_kind\n";
        let body = json!({"prompt": new, "filepath": name});
        assert_eq!(serving.post("/v1/completions", &body).0, 200);
        assert_eq!(serving.last()["file"], "alpha/pkg/view.py", "{name}");
    }
    // A stop that the withheld line break holds: the prompt is sent as it is.
    let body = json!({"prompt": "x = 1\n", "stop": ["\n"], "filepath": "view.py"});
    assert_eq!(serving.post("/v1/completions", &body).0, 200);
    assert!(seen.lock().unwrap().last().unwrap().prompt().ends_with("x = 1\n"));
    for name in ["/etc/passwd", "../beta/main.py", "file:///etc/passwd", ".."] {
        let body = json!({"prompt": "root:x:0:0\n", "filepath": name});
        let (status, _, body) = serving.post("/v1/completions", &body);
        assert_eq!(status, 200, "{body}");
        let last = serving.last();
        assert!(last["file"].is_null(), "{last}");
    }
}

#[test]
fn the_language_is_that_of_most_files() {
    let place = Place::empty();
    for name in ["A", "B"] {
        let text = format!(
            "class {name} {{\n    int total(int price) {{\n        return price * 2;\n    }}\n}}\n"
        );
        place.write(&format!("repos/shop/{name}.java"), text);
    }
    place.write("repos/shop/tool.py", "x = 1\n");
    let (url, seen) = server(|_| ok(&text_answer("x")));
    let serving = Serving::start(
        &place,
        &["--repos-dir", "repos", "--repo", "shop", "--endpoint", &url, "--no-watch"],
    );
    let body = json!({"prompt": "class C {\n    int total(int price) {\n", "filepath": "C.java"});
    assert_eq!(serving.post("/v1/completions", &body).0, 200);
    let prompt = seen.lock().unwrap()[0].prompt().to_owned();
    assert!(prompt.contains("// A.java") || prompt.contains("// B.java"), "{prompt}");
}

/// A model's server that writes one event, then nothing, and says when its client is gone.
pub(crate) fn slow_server(first: &'static str) -> (String, mpsc::Receiver<&'static str>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, sender) = (stream.unwrap(), sender.clone());
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                let read = stream.read(&mut head).unwrap();
                if head[..read].starts_with(b"GET") {
                    return;
                }
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{first}"
                );
                if first.is_empty() || stream.write_all(answer.as_bytes()).is_ok() {
                    sender.send("asked").unwrap();
                }
                let mut rest = [0; 4096];
                while stream.read(&mut rest).is_ok_and(|read| read > 0) {}
                let _ = sender.send("gone");
            });
        }
    });
    (url, receiver)
}

#[test]
fn a_cancelled_request_is_cancelled_at_the_models_server() {
    let place = Place::new();
    for (first, stream) in
        [("", false), ("", true), ("data: {\"choices\": [{\"text\": \"x\"}]}\n\n", true)]
    {
        let (url, said) = slow_server(first);
        let serving = Serving::start(
            &place,
            &["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url, "--no-watch"],
        );
        let body = json!({"prompt": "def f", "stream": stream}).to_string();
        let mut editor = serving.connect("/v1/completions", "", body.as_bytes());
        let longest = Duration::from_secs(20);
        assert_eq!(said.recv_timeout(longest), Ok("asked"));
        if !first.is_empty() {
            let mut begin = [0; 12];
            editor.read_exact(&mut begin).unwrap();
            assert_eq!(&begin, b"HTTP/1.1 200");
        }
        drop(editor);
        assert_eq!(said.recv_timeout(longest), Ok("gone"), "{first:?} {stream}");
        soon("the decision is kept", || serving.ask("/debug/last", "", "").0 == 200);
        assert_eq!(serving.last()["outcome"], "cancelled");
    }
}

#[test]
fn a_stream_ends_with_done_or_with_an_error() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // The last answer breaks off.
    let event = "data: {\"choices\": [{\"text\": \"x\"}]}\n\n";
    std::thread::spawn(move || {
        for (mut stream, last) in listener.incoming().flatten().zip(["", "data: [DONE]\n\n", ""]) {
            let _ = stream.read(&mut [0; 4096]);
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(format!("{head}{event}{last}").as_bytes());
        }
    });
    let serving = Serving::start(
        &place,
        &["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url, "--no-watch"],
    );
    let body = json!({"prompt": "def f", "stream": true});
    let [whole, part] = [(); 2].map(|()| serving.post("/v1/completions", &body));
    assert_eq!([whole.0, part.0], [200, 200]);
    assert!(
        whole.2.contains("data: [DONE]\n\n") && whole.2.ends_with("\r\n0\r\n\r\n"),
        "{whole:?}"
    );
    assert!(part.2.contains("\"text\":\"x\"") && part.2.contains("upstream_error"), "{part:?}");
    assert!(!part.2.contains("data: [DONE]"), "{part:?}");
    assert_eq!(serving.last()["outcome"], "failed");
}

/// Takes ten seconds: the time that a silent client has.
#[test]
fn clients_that_send_or_take_nothing_more_are_given_up() {
    let place = Place::new();
    // 39 MB: more than waits for a client, and less than an answer of so many tokens may have.
    let event = json!({"choices": [{"text": "x".repeat(1 << 15)}]});
    let (url, said) = slow_server(format!("data: {event}\n\n").repeat(1200).leak());
    let serving = Serving::start(
        &place,
        &["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url, "--no-watch"],
    );
    let body = json!({"prompt": "def f", "stream": true, "max_tokens": 4096}).to_string();
    let mut reader = serving.connect("/v1/completions", "", body.as_bytes());
    let mut writer = TcpStream::connect(&serving.address).unwrap();
    writer.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!("POST /infill HTTP/1.1\r\nHost: {}\r\n", serving.address);
    writer.write_all(format!("{head}Content-Length: 100\r\n\r\n{{").as_bytes()).unwrap();
    let mut answer = [0; 12];
    writer.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
    assert_eq!(said.recv_timeout(Duration::from_secs(30)), Ok("gone"));
    soon("the completion is given up", || serving.ask("/debug/last", "", "").0 == 200);
    assert_eq!(serving.last()["outcome"], "cancelled");
    // What was sent has no end, so that it is not taken for the whole.
    let mut part = Vec::new();
    let _ = reader.read_to_end(&mut part);
    assert!(part.starts_with(b"HTTP/1.1 200") && !part.ends_with(b"\r\n0\r\n\r\n"));
}

#[test]
fn a_server_that_fails_is_an_error_that_the_editor_shows() {
    let place = Place::new();
    let data = ["--repos-dir", "repos", "--repo", "alpha", "--no-watch", "--endpoint"];
    let ask = |url: &str, more: &[&str]| {
        let serving = Serving::start(&place, &[&data[..], &[url], more].concat());
        let (status, head, body) = serving.post("/v1/completions", &json!({"prompt": "x = 1\n"}));
        assert!(head.contains("x-should-retry: false"), "{head}");
        let body: Value = serde_json::from_str(&body).unwrap();
        (status, body["error"]["message"].as_str().unwrap().to_owned())
    };
    let (status, message) = ask("http://127.0.0.1:9", &[]);
    assert!(status == 502 && message.contains("127.0.0.1:9"), "{status} {message}");
    let (url, _) = server(|_| refusal("400 Bad Request", "the prompt is too long"));
    let (status, message) = ask(&url, &[]);
    assert!(status == 400 && message.contains("the prompt is too long"), "{status} {message}");
    let (url, _) = server(|_| sent("200 OK", "", "<html>"));
    let (status, message) = ask(&url, &[]);
    assert!(status == 502 && message.contains("instead of JSON"), "{status} {message}");
    for (answer, says) in [
        ("{}", "the answer has no 'choices'"),
        ("{\"choices\": [{\"message\": {\"content\": \"x\"}}]}", "choices[0] has no 'text'"),
    ] {
        let (url, _) = server(move |_| sent("200 OK", "", answer));
        let (status, message) = ask(&url, &[]);
        assert!(status == 502 && message.contains(says), "{status} {message}");
    }
    let (url, _) = slow_server("");
    let begin = Instant::now();
    let (status, message) = ask(&url, &["--request-timeout", "0.5"]);
    assert!(status == 502 && begin.elapsed() < Duration::from_secs(15), "{status} {message}");
}

#[test]
fn requests_are_checked_and_bounded() {
    let place = Place::new();
    let (url, said) = slow_server("");
    let data = ["--repos-dir", "repos", "--repo", "alpha", "--no-watch", "--endpoint", &url];
    let serving = Serving::start(&place, &data);
    let status = |path: &str, headers: &str, body: &str| serving.ask(path, headers, body).0;
    assert_eq!(status("/health", "", ""), 200);
    assert_eq!(status("/", "", ""), 200);
    assert_eq!(status("/nothing", "", ""), 404);
    assert_eq!(status("/health", "Host: evil.example\r\n", ""), 403);
    assert_eq!(status("/debug/decisions", "Origin: http://evil.example\r\n", ""), 403);
    assert_eq!(status("/v1/completions", "", "{"), 400);
    assert_eq!(status("/v1/completions", "", "{\"model\": \"m\"}"), 400);
    let get = serving.ask("/v1/completions", "", "");
    assert!(get.0 == 405 && get.2.contains("does not support this method"), "{get:?}");
    let warm =
        serving.post("/v1/completions", &json!({"prompt": "", "max_tokens": 0, "stream": true}));
    assert!(warm.0 == 200 && warm.2.ends_with("data: [DONE]\n\n"), "{warm:?}");
    let warm =
        serving.post("/infill", &json!({"input_prefix": "", "input_suffix": "", "n_predict": 0}));
    assert!(warm.0 == 200 && warm.2.contains("\"content\":\"\""), "{warm:?}");
    let body = json!({"prompt": "x = 1\n"}).to_string();
    let waiting: Vec<TcpStream> =
        (0..32).map(|_| serving.connect("/v1/completions", "", body.as_bytes())).collect();
    for _ in &waiting {
        assert_eq!(said.recv_timeout(Duration::from_secs(30)), Ok("asked"));
    }
    assert_eq!(status("/v1/completions", "", &body), 429);
    let (_, _, metrics) = serving.ask("/metrics", "", "");
    assert!(metrics.contains("repoformer_requests_total{protocol=\"openai\"} 33"), "{metrics}");
    assert!(metrics.contains("repoformer_preparing_seconds_count 32"), "{metrics}");
    drop(waiting);
    place
        .run(&[&["serve", "--listen", "0.0.0.0:0"], &data[..]].concat())
        .failed()
        .says(&["REPOFORMER_SERVE_TOKEN", "other machines can reach"]);
}

#[test]
fn bodies_that_come_slowly_keep_nobody_waiting() {
    let place = Place::new();
    let (url, _) = server(|_| ok(&text_answer("x")));
    let serving = Serving::start(
        &place,
        &["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url, "--no-watch"],
    );
    let slow = |_| {
        let mut stream = TcpStream::connect(&serving.address).unwrap();
        let head = format!("POST /infill HTTP/1.1\r\nHost: {}\r\n", serving.address);
        stream.write_all(format!("{head}Content-Length: 100\r\n\r\n{{").as_bytes()).unwrap();
        stream
    };
    let slow: Vec<TcpStream> = (0..64).map(slow).collect();
    for _ in &slow {
        let (status, _, body) = serving.post("/v1/completions", &json!({"prompt": "x = 1\n"}));
        assert_eq!(status, 200, "{body}");
    }
}

/// As many connections as there may be, each of which sends half a request: the oldest ends for the next.
#[test]
fn slow_connections_end_for_a_new_one() {
    let place = Place::new();
    let (url, _) = server(|_| ok(&text_answer("x")));
    let serving = Serving::start(
        &place,
        &["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url, "--no-watch"],
    );
    let head = format!("POST /infill HTTP/1.1\r\nHost: {}\r\n", serving.address);
    let slow = |number: usize| {
        let end = if number.is_multiple_of(2) { "" } else { "Content-Length: 100\r\n\r\n{" };
        let mut stream = TcpStream::connect(&serving.address).unwrap();
        stream.write_all(format!("{head}{end}").as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    };
    let slow: Vec<TcpStream> = (0..256).map(slow).collect();
    let is_open = |mut stream: &TcpStream| {
        let read = stream.read(&mut [0]);
        read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    for _ in 0..3 {
        let (status, _, body) = serving.post("/v1/completions", &json!({"prompt": "x = 1\n"}));
        assert_eq!(status, 200, "{body}");
    }
    soon("the oldest is closed", || !is_open(&slow[0]));
    assert!(slow[16..].iter().all(is_open), "no more end than there are new ones");
}

/// Peak memory of a process, in bytes.
#[cfg(target_os = "linux")]
fn peak(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[cfg(target_os = "linux")]
#[test]
fn a_request_takes_little_more_memory_than_its_body() {
    let place = Place::new();
    let (url, _) = server(|_| ok(&text_answer("x")));
    let start = || {
        let options = ["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url, "--no-watch"];
        let serving = Serving::start(&place, &options);
        assert_eq!(serving.post("/v1/completions", &json!({"prompt": "a"})).0, 200);
        serving
    };
    for field in ["x", "stop", "logit_bias", "segments", "prompt"] {
        // A server of its own: the allocator of each thread keeps what earlier bodies took.
        let serving = start();
        let before = peak(serving.child.id());
        let body = format!("{{\"{field}\": [{}1], \"prompt\": \"a\"}}", "1,".repeat(4_000_000));
        let (status, _, answer) = serving.ask("/v1/completions", "", &body);
        assert_eq!(status, if field == "x" { 200 } else { 400 }, "{field}: {answer}");
        let more = peak(serving.child.id()) - before;
        assert!(more < 2 * body.len(), "{field}: {more} bytes for a body of {}", body.len());
    }
    let serving = start();
    let head = "POST /infill HTTP/1.1\r\nHost: ADDRESS\r\nConnection: close\r\nContent-Length: 9000000\r\n\r\n";
    assert!(serving.say(head).starts_with("HTTP/1.1 413"), "it is refused before it comes");
}

/// Each shows lines of files, which it reads.
#[cfg(target_os = "linux")]
#[test]
fn decisions_are_looked_up_one_at_a_time() {
    let place = Place::new();
    let text: String =
        (0..60_000).map(|n| format!("value_{n} = compute({n}, other_{n})\n")).collect();
    place.write("repos/alpha/large.py", &text);
    let (url, _) = server(|_| ok(&text_answer("x")));
    let serving = Serving::start(
        &place,
        &["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url, "--no-watch"],
    );
    let prompt = "value_1 = compute(1, other_1)\nx = ";
    serving.post("/v1/completions", &json!({"prompt": prompt, "filepath": "a.py"}));
    let before = peak(serving.child.id());
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| assert_eq!(serving.ask("/debug/decisions", "", "").0, 200));
        }
    });
    let more = peak(serving.child.id()) - before;
    assert!(more < 20 * text.len(), "{more} bytes for a file of {}", text.len());
}

#[test]
fn corners_of_the_protocol_are_answered() {
    let place = Place::new();
    let (url, _) = server(|_| ok(&text_answer("x")));
    let serving = Serving::start(
        &place,
        &["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url, "--no-watch"],
    );
    let own = "Host: ADDRESS\r\nConnection: close\r\n";
    let post = format!("POST /v1/completions HTTP/1.1\r\n{own}");
    let body = r#"{"prompt": "a", "max_tokens": 0}"#;
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for (request, status) in [
        (format!("{post}Content-Length: {}\r\n\r\n{body}", body.len()), "200"),
        (
            format!(
                "{post}Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ),
            "200",
        ),
        (format!("{post}Transfer-Encoding: chunked\r\n\r\n{chunk}"), "200"),
        (format!("{post}Transfer-Encoding: chunked\r\n\r\nzz\r\n{body}"), "400"),
        (format!("{post}Content-Length: 5\r\nContent-Length: 6\r\n\r\n{body}"), "400"),
        (format!("{post}Content-Length: -1\r\n\r\n{body}"), "400"),
        (format!("GET /health HTTP/1.0\r\n{own}\r\n"), "200"),
        ("GET /health HTTP/1.0\r\n\r\n".into(), "403"),
        (format!("HEAD /health HTTP/1.1\r\n{own}\r\n"), "200"),
        (format!("OPTIONS /infill HTTP/1.1\r\n{own}\r\n"), "405"),
        (format!("GET http://ADDRESS/health HTTP/1.1\r\n{own}\r\n"), "200"),
        (format!("GET http://evil.example/health HTTP/1.1\r\n{own}\r\n"), "403"),
        (format!("GET /health HTTP/1.1\r\n{own}Host: ADDRESS\r\n\r\n"), "403"),
        (format!("GET /health HTTP/1.1\r\n{own}Origin: http://ADDRESS\r\n\r\n"), "200"),
        (
            format!(
                "GET /health HTTP/1.1\r\n{own}Origin: http://203.0.113.5:{}\r\n\r\n",
                serving.address.split(':').nth(1).unwrap()
            ),
            "403",
        ),
        (format!("GET /health HTTP/1.1\r\n{own}Origin: null\r\n\r\n"), "403"),
        (
            format!(
                "GET /health HTTP/1.1\r\n{own}Origin: http://ADDRESS\r\nOrigin: http://evil.example\r\n\r\n"
            ),
            "403",
        ),
        ("nonsense\r\n\r\n".into(), "400"),
    ] {
        let answer = serving.say(&request);
        assert_eq!(answer.split(' ').nth(1), Some(status), "{request}\n{answer}");
    }
    let get = "GET /health HTTP/1.1\r\nHost: ADDRESS\r\n";
    let twice = format!("{get}\r\n{get}Connection: close\r\n\r\n");
    assert_eq!(serving.say(&twice).matches("HTTP/1.1 200").count(), 2);
}

#[test]
fn counts_that_cannot_be_are_not_counted() {
    let place = Place::new();
    let (url, _) = server(|_| {
        let mut answer = text_answer("x");
        let huge = u64::MAX;
        answer["usage"] = json!({"prompt_tokens": huge, "completion_tokens": -1});
        answer["timings"] = json!({"prompt_n": huge, "cache_n": huge, "predicted_n": 1e30});
        ok(&answer)
    });
    let serving = Serving::start(
        &place,
        &["--repos-dir", "repos", "--repo", "alpha", "--endpoint", &url, "--no-watch"],
    );
    let (status, _, body) =
        serving.post("/infill", &json!({"input_prefix": "a", "input_suffix": ""}));
    assert!(status == 200 && !body.contains("tokens_cached"), "{body}");
    assert_eq!(serving.post("/v1/completions", &json!({"prompt": "a"})).0, 200);
    assert_eq!(serving.last()["tokens"], json!({"prompt": null, "cached": null, "written": null}));
    let (_, _, metrics) = serving.ask("/metrics", "", "");
    for name in ["prompt_tokens", "cached_tokens", "written_tokens"] {
        assert!(metrics.contains(&format!("\nrepoformer_{name}_total 0\n")), "{metrics}");
    }
}

/// A file of the served folder would choose the server that gets the key and the code.
#[test]
fn a_strangers_settings_are_not_read() {
    let place = Place::new();
    place.write("repoformer.toml", "endpoint = \"http://stranger\"\ncache-dir = \"/elsewhere\"\n");
    let ran = place.run(&["serve", "--show-settings"]).done();
    let is_shown = ran.stdout.contains("stranger") || ran.stdout.contains("/elsewhere");
    assert!(!is_shown, "{}", ran.stdout);
    assert!(ran.stderr.contains("repoformer.toml: not read"), "{}", ran.stderr);
    let named = place.run(&["serve", "--show-settings", "--config=repoformer.toml"]).done();
    assert!(named.stdout.contains("http://stranger"), "{}", named.stdout);
    assert_eq!(named.stderr, "");
}

#[test]
fn what_cannot_be_served_is_refused_at_the_start() {
    let place = Place::new();
    let data =
        ["serve", "--repos-dir", "repos", "--repo", "alpha", "--endpoint", "http://127.0.0.1:9"];
    for (more, says) in [
        (&["--policy", "oracle"][..], "cannot decide before a completion"),
        (&["--policy", "trial-retrieval@30%"], "a percentage threshold"),
        (&["--policy", "learned"], "needs a trained model"),
        (
            &["--policy", "learned-scored", "--policy-model", "a.json,b.json"],
            "serve uses only one trained policy",
        ),
        (&["--policy", "learned-scored", "--policy-model", "no/bundled"], "no/bundled"),
        (&["--policy", "always,never"], "uses only one policy"),
        (&["--ranker", "bm25"], "ranker bm25 is not kept up to date"),
        (&["--prompt-style", "attach"], "attach"),
        (&["--query", "ground-truth"], "is not known at a cursor"),
        (&["--model", "in-context"], "the embedded model cannot complete for editors"),
        (&["--mode", "gt"], "unknown flag '--mode'"),
        (&["--benchmark", "b"], "unknown flag '--benchmark'"),
        (&["--vectors", "v.npy"], "unknown flag '--vectors'"),
        (&["--listen", "nowhere"], "not an address with a port"),
    ] {
        place.run(&[&data[..], more].concat()).failed().says(&[says]);
    }
    place
        .run(&["serve", "--repos-dir", "repos", "--endpoint", "http://127.0.0.1:9"])
        .failed()
        .says(&[
            "several repositories: alpha, beta; only one can be served at a time",
            "--repo NAME",
        ]);
    place
        .run(&["serve", "--repos-dir", "repos", "--repo", "alpha"])
        .failed()
        .says(&["--endpoint is not set"]);
}
