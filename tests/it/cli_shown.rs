//! Contexts of prompts: the embedded model, policies and labels read them as they stand there.

use serde_json::{Value, json};

use crate::support::{Place, jsonl, judge, parse_jsonl};

const PROJECT: &str = env!("CARGO_MANIFEST_DIR");

/// The rows of `run` on the sample repositories.
fn rows(place: &Place, tasks: &str, cache: &str, more: &[&str]) -> Vec<Value> {
    let repos = format!("{PROJECT}/data/repos");
    let run = [
        "run", "--repos-dir", &repos, "--tasks", tasks, "--cache-dir", cache, "--format", "jsonl",
        "--resamples", "100",
    ];
    parse_jsonl(&place.run(&[&run[..], more].concat()).done().stdout)
}

fn row<'a>(rows: &'a [Value], mode: &str) -> &'a Value {
    rows.iter().find(|row| row["mode"] == mode).unwrap()
}

/// Scores and rate of a row.
fn result(rows: &[Value], mode: &str) -> [Value; 3] {
    ["em", "es", "with_retrieved"].map(|name| row(rows, mode)[name].clone())
}

fn line_tasks() -> String {
    format!("{PROJECT}/data/tasks/line.jsonl")
}

/// Tasks that carry a right context, and those of the labels, which carry the same as their prompts showed.
fn with_right(labels: &[Value], right: impl Fn(&Value) -> Value) -> String {
    let task = |label: &Value| {
        let metadata = &label["metadata"];
        json!({
            "prompt": label["prompt"], "groundtruth": label["groundtruth"], "right_context": right(label),
            "crossfile_context": "",
            "metadata": {"task_id": metadata["task_id"], "filepath": metadata["filename"]},
        })
    };
    jsonl(&labels.iter().map(task).collect::<Vec<_>>())
}

#[test]
fn the_embedded_model_knows_a_prompt_by_its_own_style() {
    let place = Place::empty();
    let bundled = |name: &str| {
        std::fs::read_to_string(format!(
            "{PROJECT}/crates/core/src/prompt/style/bundled/{name}.toml"
        ))
        .unwrap()
    };
    place.write("copy.toml", bundled("starcoder"));
    place.write("mine.toml", format!("# mine\n{}", bundled("starcoder")));
    place.write("sub/starcoder.toml", bundled("codellama"));
    let run = |style: &str, cache: &str| {
        let more = [
            "--profile", "repoformer-paper", "--mode", "none,rg1", "--policy", "never",
            "--prompt-style", style,
        ];
        let rows = rows(&place, &line_tasks(), cache, &more);
        [result(&rows, "none"), result(&rows, "rg1")]
    };
    let starcoder = run("starcoder", "starcoder");
    assert_eq!(run("copy.toml", "copy"), starcoder);
    assert_eq!(run("mine.toml", "mine"), starcoder);
    assert_eq!(run("sub/starcoder.toml", "sub"), run("codellama", "codellama"));
    // A file of prompts says which style it is of.
    let prompts = place.named("mine/prompts/line", "none");
    let complete = ["complete", "--prompts", &prompts];
    place
        .run(&complete)
        .partly()
        .says(&["unknown prompt style 'mine'", "name the file of its style"]);
    let named = place
        .run(
            &[&complete[..], &["--profile", "repoformer-paper", "--prompt-style", "mine.toml"]]
                .concat(),
        )
        .done();
    assert_eq!(named.stdout, place.read(&place.named("mine/predictions/line", "none")));
    let prompts = place.named("sub/prompts/line", "none");
    place.run(&["complete", "--prompts", &prompts]).done();
    let copied = place.read(&place.named("mine/prompts/line", "none"));
    place.write(
        "other.jsonl",
        copied.replace("\"prompt_style\":\"mine\"", "\"prompt_style\":\"starcoder\""),
    );
    place
        .run(&["complete", "--prompts", "other.jsonl"])
        .partly()
        .says(&["style 'starcoder' differs from the bundled one"]);
}

#[test]
fn policies_and_labels_see_what_stands_in_the_prompts() {
    let place = Place::empty();
    let tasks = line_tasks();
    let paper = [
        "--profile",
        "repoformer-paper",
        "--mode",
        "none,rg1",
        "--policy",
        "learned@0.2,learned-scored@0.2",
    ];
    let first = rows(&place, &tasks, "paper", &paper);
    rows(&place, &tasks, "repocoder", &["--mode", "none,rg1"]);
    let mut labels = Vec::new();
    for cache in ["paper", "repocoder"] {
        let file = |kind: &str, mode: &str| place.named(&format!("{cache}/{kind}/line"), mode);
        let (base, rag) = (file("predictions", "none"), file("predictions", "rg1"));
        let prompts = file("prompts", "rg1");
        let more = ["--prompts", &prompts, "-o", "labels.jsonl"];
        place.run(&[&judge(&tasks, &base, &rag)[..], &more].concat()).done();
        labels = place.records("labels.jsonl");
        assert_eq!(labels.len(), 180);
        let mut count = 0;
        for (label, prompt) in labels.iter().zip(place.records(&prompts)) {
            let prompt = prompt["prompt"].as_str().unwrap();
            for fragment in label["crossfile_context"]["list"].as_array().unwrap() {
                let text = fragment["retrieved_chunk"].as_str().unwrap().trim_matches('\n');
                let commented: Vec<String> =
                    text.split('\n').map(|line| format!("# {line}")).collect();
                assert!(
                    prompt.contains(&commented.join("\n")),
                    "{cache} {}: {text}",
                    label["metadata"]
                );
                count += 1;
            }
        }
        assert!(count > 180, "{cache}: {count}");
        if cache == "paper" {
            assert!(labels.iter().all(|label| label["right_context"] != ""));
            place.write(
                "carried.jsonl",
                with_right(&labels, |label| label["right_context"].clone()),
            );
            place.write("empty.jsonl", with_right(&labels, |_| json!("")));
        }
    }
    // RepoCoder's prompts show none.
    assert!(labels.iter().all(|label| label["right_context"] == ""));
    for policy in ["learned@0.2", "learned-scored@0.2"] {
        let of = |tasks: &str, cache: &str, more: &[&str]| {
            result(&rows(&place, tasks, cache, &[&paper[..], more].concat()), policy)
        };
        assert_eq!(of("carried.jsonl", "carried", &[]), result(&first, policy), "{policy}");
        let left = ["--right-context", "no"];
        assert_eq!(
            of("carried.jsonl", "left", &left),
            of("empty.jsonl", "left", &left),
            "{policy}"
        );
    }
}

/// The queries of half of the instances from `label sample` contain the target.
#[test]
fn a_run_says_whose_fragments_give_the_target_away() {
    let place = Place::empty();
    place
        .run(&[
            "label",
            "sample",
            "--repos-dir",
            &format!("{PROJECT}/data/repos"),
            "--no-filter",
            "-o",
            "inst.jsonl",
        ])
        .done();
    let instances = place.records("inst.jsonl");
    let knowing =
        instances.iter().filter(|one| one["metadata"]["query_has_target"] == true).count();
    assert!(knowing > 0 && knowing < instances.len());
    let repos = format!("{PROJECT}/data/repos");
    let run = |mode: &str| {
        place.run(&[
            "run",
            "--tasks",
            "inst.jsonl",
            "--repos-dir",
            &repos,
            "--profile",
            "repoformer-paper",
            "--mode",
            mode,
            "--policy",
            "learned-scored@0.2,trial-retrieval@0.3,random@0.5",
            "--cache-dir",
            "cache",
        ])
    };
    let count = instances.len();
    run("none,given").done().says(&[&format!(
        "the queries of {knowing} of {count} tasks contained the target, so their fragments give it away to learned-scored@0.2, \
         trial-retrieval@0.3"
    )]);
    // Another mode asks with queries of its own.
    run("none,rg1").done().silent_on("contained the target");
    let file = |mode: &str| place.named("cache/predictions/inst", mode);
    let (base, rag) = (file("none"), file("given"));
    place.run(&[&judge("inst.jsonl", &base, &rag)[..], &["-o", "labels.jsonl"]].concat()).done();
    let features = place.run(&["policy", "features", "--labels", "labels.jsonl"]).done().stdout;
    let features = parse_jsonl(&features);
    assert_eq!(features.iter().filter(|one| one["query_has_target"] == true).count(), knowing);
}

/// Times of the queries are kept with those of the completions, whoever asks for them.
#[test]
fn latencies_have_the_time_of_their_query() {
    let place = Place::new();
    place.stage(&["run", "--mode", "none,rg1,gt"]).done();
    for mode in ["rg1", "gt"] {
        for one in place.records(&place.named("cache/latency/tasks", mode)) {
            assert!(one["retrieval_ms"].as_f64().is_some_and(|time| time > 0.0), "{one}");
        }
    }
}
