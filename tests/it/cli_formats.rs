//! `convert` and `validate` through the binary, on the reference's files.

use std::path::{Path, PathBuf};

use repoformer_core::completion::{Api, samples};
use serde_json::Value;

use crate::support::{Place, parse_jsonl};

fn fixture(path: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    folder.join(path).display().to_string()
}

/// Repoformer's converter on the odd repository: the same records, but for three tasks behind a form feed, where it counts
/// only `\n` and takes another line; and the ids that it leaves out.
#[test]
fn the_references_converter_is_matched_record_by_record() {
    let place = Place::empty();
    let archive = std::fs::File::open(fixture("edge_cases.tar.gz")).unwrap();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    archive.unpack(place.path("repos")).unwrap();
    let convert = |file: &str, to: &str| {
        let ran =
            place.run(&["convert", &fixture(file), "--to", to, "--repos-dir", "repos"]).done();
        let mut records = parse_jsonl(&ran.stdout);
        for record in &mut records {
            // The reference was told a URL, and drops where the RepoEval prompt began.
            let metadata = record["metadata"].as_object_mut().unwrap();
            metadata.retain(|name, _| {
                !["repository", "url", "context_start_lineno"].contains(&name.as_str())
            });
        }
        records
    };
    let ours = convert("repocoder/edge_cases.tasks.jsonl.gz", "repoformer");
    let theirs = convert("repoformer/edge_cases.input.jsonl.gz", "repoformer");
    assert_eq!((ours.len(), theirs.len()), (198, 191));
    let differ: Vec<&Value> = theirs
        .iter()
        .filter(|record| !ours.contains(record))
        .map(|record| &record["metadata"]["task_id"])
        .collect();
    assert_eq!(differ, ["edge_cases/43", "edge_cases/44", "edge_cases/45"]);
}

/// Over a folder with the reference's fixtures (`repocoder/`, `repoformer/`) and, for the tasks of real repositories, their
/// sources below `repos/`: `REPOFORMER_FIXTURES=… cargo test --test it -- --ignored cli_formats`.
#[test]
#[ignore = "needs a folder of fixtures in REPOFORMER_FIXTURES"]
fn the_references_own_files() {
    let folder = PathBuf::from(std::env::var_os("REPOFORMER_FIXTURES").unwrap());
    let place = Place::empty();
    for name in ["edge_cases", "huggingface_evaluate", "awslabs_fortuna"] {
        let input = folder.join(format!("repoformer/{name}.input.jsonl.gz"));
        let tasks = folder.join(format!("repocoder/{name}.tasks.jsonl.gz"));
        for (file, kind) in [(&input, "repoformer"), (&tasks, "repoeval")] {
            let ran = place.run(&["validate", file.to_str().unwrap()]);
            assert!(ran.stdout.contains(&format!(": {kind}, ")), "{}", ran.stdout);
            println!("{}{}", ran.stdout, ran.stderr);
        }
        let ran = place.run(&["convert", input.to_str().unwrap(), "--to", "repoformer"]).done();
        let plain = place.run(&["convert", tasks.to_str().unwrap(), "--to", "repoeval"]).done();
        assert!(!ran.stdout.is_empty() && !plain.stdout.is_empty());
        let repos = folder.join("repos");
        if !repos.join(name).is_dir() {
            continue;
        }
        // What Repoformer's converter made of the same tasks, less what only it knows.
        let ours = place.run(&[
            "convert",
            tasks.to_str().unwrap(),
            "--to",
            "repoformer",
            "--repos-dir",
            repos.to_str().unwrap(),
        ]);
        let bare = |text: &str| {
            let mut records = parse_jsonl(text);
            for record in &mut records {
                let metadata = record["metadata"].as_object_mut().unwrap();
                metadata.retain(|name, _| ["task_id", "filepath"].contains(&name.as_str()));
            }
            records
        };
        let (ours, theirs) = (bare(&ours.stdout), bare(&ran.stdout));
        let differ = theirs.iter().filter(|record| !ours.contains(record)).count();
        println!("{name}: {} of {} records differ", differ, theirs.len());
        if name != "edge_cases" {
            assert_eq!(differ, 0, "{name}");
        }
    }
}

/// `REPOFORMER_FIXTURES=DIR` holds exchanges that two servers were recorded with: `endpoint/SERVER/*.json`.
#[test]
#[ignore = "reads recorded exchanges: set REPOFORMER_FIXTURES"]
fn every_recorded_answer_is_read() {
    let fixtures = std::env::var("REPOFORMER_FIXTURES").unwrap();
    let mut read = 0;
    for server in std::fs::read_dir(format!("{fixtures}/endpoint")).unwrap() {
        for file in std::fs::read_dir(server.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let exchange: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let (request, answer) = (&exchange["request"], &exchange["response"]);
            let api = match request["path"].as_str().unwrap() {
                "/v1/completions" => Api::Completions,
                "/v1/chat/completions" => Api::Chat,
                _ => continue,
            };
            let found = samples(answer, api);
            if exchange["status"] != 200 {
                assert!(found.is_err(), "{}", path.display());
                continue;
            }
            let (found, choices) = (found.unwrap(), answer["choices"].as_array().unwrap());
            assert_eq!(found.len(), choices.len(), "{}", path.display());
            // Where probabilities were asked for, every token has one, but for the first of an echoed prompt; of several
            // prompts one server counts the tokens of one.
            let asked = &request["json"];
            let is_odd = asked["echo"] == true || asked["prompt"].is_array();
            if asked.get("logprobs").is_some() && !is_odd {
                let tokens: u64 = found.iter().map(|sample| sample.tokens.len() as u64).sum();
                assert_eq!(answer["usage"]["completion_tokens"], tokens, "{}", path.display());
            }
            read += 1;
        }
    }
    assert!(read >= 20, "{read}");
}
