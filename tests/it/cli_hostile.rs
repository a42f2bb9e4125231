//! Repositories, task files and servers of a stranger: nothing outside of a repository is read, and no key is kept.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::server::{refusal, server_listing};
use crate::support::{Place, Ran, task};

/// A text that stands in files outside of the repositories alone.
const SECRET: &str = "the_key_of_the_user";

/// Repositories with links to a file and a folder outside, directly, by way of another link, and with an absolute path.
fn hostile() -> Place {
    let place = Place::new();
    let secret: String = (0..25).map(|n| format!("{SECRET}_{n} = {n}\n")).collect();
    place.write("private/notes.py", secret);
    let to =
        |target: &str, link: &str| symlink(target, place.path("repos/alpha").join(link)).unwrap();
    to("../../private/notes.py", "aaa.py");
    to("../../private", "folder");
    to("folder/notes.py", "by_way.py");
    symlink(place.path("private/notes.py"), place.path("repos/alpha/absolute.py")).unwrap();
    symlink("/proc/self/environ", place.path("repos/alpha/environment.py")).unwrap();
    place
}

const LINKS: [&str; 5] = ["aaa.py", "folder", "by_way.py", "absolute.py", "environment.py"];

#[test]
fn links_out_of_a_repository_are_named_and_nothing_of_what_they_lead_to_is_kept() {
    let clean = Place::new();
    let place = hostile();
    for (stage, here) in [["run"], ["window"]].iter().map(|stage| (stage, place.stage(stage))) {
        let here = here.partly();
        for link in LINKS {
            let path = format!("alpha/{link}");
            assert!(here.stderr.contains(&path), "{stage:?} does not name {path}: {}", here.stderr);
        }
        assert!(here.stderr.contains("a link out of the repository"), "{}", here.stderr);
    }
    clean.stage(&["run"]).done();
    let (found, wanted) = (place.files("cache"), clean.files("cache"));
    assert!(wanted.len() > 20 && found.keys().eq(wanted.keys()));
    for (path, bytes) in &wanted {
        assert!(found[path] == *bytes, "{path} is another with links than without");
    }
}

#[test]
fn what_is_drawn_and_converted_has_nothing_from_outside() {
    let place = hostile();
    place.add_samples();
    for command in [
        "sample --kind line --repos-dir repos --min-tokens 1",
        "label sample --repos-dir repos --min-files 0 --min-lines 0 --ratio 1",
        "convert --to raw --repos-dir repos",
        "convert --to packages --repos-dir repos",
        "sample --walk rglob --kind line --repos-dir repos --min-tokens 1",
    ] {
        let args: Vec<&str> = command.split(' ').collect();
        let ran = place.run(&args);
        assert!(ran.code != Some(2) && ran.stdout.len() > 100, "{command}: {}", ran.stderr);
        assert!(ran.stderr.contains("alpha/aaa.py"), "{command}: {}", ran.stderr);
        assert!(!ran.stdout.contains(SECRET), "{command}");
    }
    // By the user's own word.
    let asked = "sample --walk glob-anywhere --kind line --repos-dir repos --repo alpha --min-tokens 1 --data-tables draw";
    let args: Vec<&str> = asked.split(' ').collect();
    assert!(place.run(&args).stdout.contains(SECRET));
}

#[test]
fn a_task_names_no_file_outside_of_its_repository() {
    let place = hostile();
    let secret = place.read("private/notes.py");
    let absolute = place.path("private/notes.py");
    let paths = [
        "alpha/aaa.py",
        "alpha/folder/notes.py",
        "alpha/../../private/notes.py",
        "../private/notes.py",
    ];
    let mut paths: Vec<String> = paths.map(str::to_owned).to_vec();
    paths.push(absolute.to_str().unwrap().to_owned());
    for path in paths {
        // Its record holds the hole alone; the rest of the file would come from the disk.
        let mut record = task("alpha/0", &path, &secret, 12, 12);
        record["metadata"]["fpath_tuple"] = json!(path.split('/').collect::<Vec<_>>());
        record["metadata"]["ground_truth"] = json!("x = 1");
        place.write("tasks.jsonl", format!("{record}\n"));
        for to in ["crosscodeeval", "repoformer", "crosscodelongeval"] {
            let args = ["convert", "--to", to, "--repos-dir", "repos", "tasks.jsonl"];
            let ran = place.run(&args);
            assert!(!ran.stdout.contains(SECRET), "{path}, {to}: {}", ran.stdout);
            assert!(!ran.stderr.contains(SECRET), "{path}, {to}: {}", ran.stderr);
        }
        let ran = place.stage(&["run", "--profile", "repoformer-paper"]);
        assert!(ran.code == Some(1) || ran.code == Some(2), "{path}: {}", ran.stderr);
        for (file, bytes) in place.files("cache") {
            assert!(!String::from_utf8_lossy(&bytes).contains(SECRET), "{path}: {file}");
        }
        std::fs::remove_dir_all(place.path("cache")).ok();
    }
}

/// A key that servers see in each request.
const KEY: &str = "sk-live-0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d";

/// Servers repeat the key: in completions, token by token, in errors, and in the names of their models.
#[test]
fn a_server_that_repeats_the_key_has_it_kept_and_printed_nowhere() {
    let place = Place::new();
    let models = json!({"data": [{"id": format!("model-{KEY}")}]}).to_string();
    let (url, seen) = server_listing(("200 OK".into(), models), |request| {
        let said = format!("Bearer {KEY}\n and {KEY}");
        if request.prompt().contains("main_") {
            return refusal("400 Bad Request", &format!("the key {}… is too short", &KEY[..30]));
        }
        if request.prompt().contains("view_") {
            let choice =
                json!({"index": 0, "text": "", "finish_reason": KEY, "error": {"message": said}});
            return ("200 OK".into(), json!({"choices": [choice]}).to_string());
        }
        let parts: Vec<&str> =
            said.as_bytes().chunks(5).map(|part| str::from_utf8(part).unwrap()).collect();
        let logprobs = |parts: &[&str]| -> Vec<_> {
            parts.iter().map(|part| json!({"token": part, "logprob": -0.5})).collect()
        };
        if request.body["stream"] != true {
            let choice = json!({"index": 0, "text": said, "finish_reason": "stop", "stop_reason": KEY, "logprobs": {"content": logprobs(&parts)}});
            return ("200 OK".into(), json!({"choices": [choice]}).to_string());
        }
        let events = parts.iter().map(|part| {
            let choice = json!({"index": 0, "text": part, "finish_reason": null, "logprobs": {"content": logprobs(&[part])}});
            format!("data: {}\n\n", json!({"choices": [choice]}))
        });
        let text = events.collect::<String>() + "data: [DONE]\n\n";
        ("200 OK\r\nContent-Type: text/event-stream".into(), text)
    });
    let asked = ["--endpoint", &url, "--model", "m", "--max-tokens", "64", "--cache-dir"];
    for (cache, more) in [("streamed", &[][..]), ("whole", &["--until", "tokens"]), ("doctor", &[])]
    {
        let stage: &[&str] = if cache == "doctor" { &["doctor"] } else { &["run", "--report"] };
        let args = [stage, &asked, &[cache], more].concat();
        let args = if cache == "doctor" { args } else { place.args(&args) };
        let ran = Ran::of(place.command(&args).env("REPOFORMER_API_KEY", KEY).output().unwrap());
        for (what, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
            assert_no_part(text.as_bytes(), &format!("{what} of {cache}"));
        }
        assert!(cache == "doctor" || ran.stderr.contains("is too short"), "{}", ran.stderr);
    }
    assert!(seen.lock().unwrap().len() > 4);
    let files: Vec<_> = walkdir::WalkDir::new(place.path(".")).into_iter().flatten().collect();
    let files = files.iter().filter(|entry| entry.file_type().is_file());
    let mut masked = 0;
    for file in files {
        let bytes = std::fs::read(file.path()).unwrap();
        assert_no_part(file.path().as_os_str().as_encoded_bytes(), "a name");
        assert_no_part(&bytes, &file.path().display().to_string());
        masked += usize::from(String::from_utf8_lossy(&bytes).contains("Bearer ***"));
    }
    assert!(masked > 3, "completions are kept: {masked}");
}

/// Asserts that no twelve characters of the key stand in a text.
fn assert_no_part(text: &[u8], what: &str) {
    let text = String::from_utf8_lossy(text);
    for at in 0..=KEY.len() - 12 {
        assert!(!text.contains(&KEY[at..at + 12]), "{what} has a part of the key");
    }
}
