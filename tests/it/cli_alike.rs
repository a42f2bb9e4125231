//! Systems set side by side were made alike; where they were not, that is refused or named.

use serde_json::{Value, json};

use crate::support::server::{Request, ok, server};
use crate::support::{Place, jsonl, parse_jsonl};

/// A server of model `m` whose samples are numbered.
fn numbering() -> String {
    let answer = |request: &Request| {
        let choice =
            |n: u64| json!({"index": n, "text": format!("x = {n}"), "finish_reason": "stop"});
        let samples = request.body["n"].as_u64().unwrap_or(1);
        ok(&json!({"choices": (0..samples).map(choice).collect::<Vec<_>>()}))
    };
    server(answer).0
}

/// Three samples of none and one greedy answer of rg1, of the same model.
fn sampled() -> Place {
    let (place, url) = (Place::new(), numbering());
    let model = ["--endpoint", &url, "--model", "m"];
    let three = ["run", "--samples", "3", "--temperature", "0.8", "--metrics"];
    let of_both = ["repocoder,repoformer", "--mode", "none,rg1", "--policy", "never,oracle"];
    let rows = place.stage(&[&three[..], &of_both, &["--format", "jsonl"], &model].concat()).done();
    for row in parse_jsonl(&rows.stdout) {
        let named = ["repocoder (best of 3)", "repoformer (mean of 3)"];
        assert!(named.iter().any(|name| row["metric"] == *name), "{row}");
    }
    let table = place.stage(&[&["run", "--mode", "rg1"], &model[..]].concat()).done().stdout;
    assert!(!table.contains("best of"), "{table}");
    place
}

const DIFFERENCES: [&str; 3] =
    ["samples: 3 (none), 1 (rg1)", "temperature: 0.8 (none), 0 (rg1)", "--allow-mixed"];

#[test]
fn systems_sampled_differently_are_compared_only_by_request() {
    let place = sampled();
    let of_cache = |command: &[&'static str]| [command, &["--model", "m"]].concat();
    let allowed = |command: &[&'static str]| [&of_cache(command)[..], &["--allow-mixed"]].concat();
    for command in [&["eval"][..], &["compare", "none", "rg1"], &["report"]] {
        place.stage(&of_cache(command)).failed().says(&DIFFERENCES);
        let said = place.stage(&allowed(command)).done().says(&DIFFERENCES[..2]);
        assert!(command[0] == "report" || said.stdout.contains(DIFFERENCES[0]), "{}", said.stdout);
        if command[0] != "report" {
            assert!(said.stdout.contains("repocoder.es (best of 1 or 3)"), "{}", said.stdout);
        }
    }
    let page = place.read("report/index.html");
    assert!(page.contains("mixed conditions: samples: 3 (none), 1 (rg1)"));
    assert!(page.contains("repocoder, best of 1 or 3"));
    for format in ["json", "jsonl"] {
        for command in [&["eval"][..], &["compare", "none", "rg1"]] {
            let text = place.stage(&[&allowed(command)[..], &["--format", format]].concat()).done();
            assert!(text.stdout.contains("\"mixed\""), "{}", text.stdout);
        }
    }
    for command in [&["eval"][..], &["compare", "none", "rg1"]] {
        let tsv =
            place.stage(&[&allowed(command)[..], &["--format", "tsv"]].concat()).done().stdout;
        let is_told = |line: &str| line.ends_with(&DIFFERENCES[..2].join("; "));
        assert!(tsv.lines().skip(1).all(is_told), "{tsv}");
        let csv =
            place.stage(&[&allowed(command)[..], &["--format", "csv"]].concat()).done().stdout;
        let is_told = |line: &str| line.contains(DIFFERENCES[0]);
        assert!(csv.lines().skip(1).all(is_told), "{csv}");
    }

    // One system alone is compared with nobody.
    let alone = place.stage(&of_cache(&["eval", "--mode", "none"])).done().stdout;
    assert!(alone.contains("repocoder.es (best of 3)"), "{alone}");
    // Files of scores say it as well: those of eval, with the manifest within or beside, and those of the cache.
    for (mode, format, file) in [("none", "json", "none.json"), ("rg1", "jsonl", "rg1.jsonl")] {
        let eval =
            ["eval", "--model", "m", "--mode", mode, "--per-task", "--format", format, "-o", file];
        place.stage(&eval).done();
    }
    let cached = place.files("cache/scores/tasks");
    let cached = |mode: &str| {
        let name = cached.keys().find(|name| name.starts_with(mode) && name.ends_with("-m.json"));
        format!("cache/scores/tasks/{}", name.unwrap())
    };
    for [a, b] in [["none.json".into(), "rg1.jsonl".into()], ["none", "rg1"].map(cached)] {
        let said = place.run(&["compare", &a, &b]).failed();
        let both =
            [format!("samples: 3 ({a}), 1 ({b})"), format!("temperature: 0.8 ({a}), 0 ({b})")];
        let said = said.says(&[&both[0], &both[1]]);
        assert!(said.stderr.contains("--allow-mixed"));
        place.run(&["compare", &a, &b, "--allow-mixed"]).done();
    }
}

/// Copies of the cache's predictions have no header, and their records say how they were asked for.
#[test]
fn records_say_how_they_were_asked_for() {
    let place = sampled();
    for (mode, copy) in [("none-", "a.jsonl"), ("rg1-", "b.jsonl")] {
        let names = place.files("cache/predictions/tasks");
        let name = names.keys().find(|name| name.starts_with(mode) && name.ends_with("-m.jsonl"));
        place.write(copy, &names[name.unwrap()]);
    }
    let wanted = ["temperature: 0.8 (a.jsonl), 0 (b.jsonl)", "samples: 3 (a.jsonl), 1 (b.jsonl)"];
    place.stage(&["compare", "a.jsonl", "b.jsonl"]).failed().says(&wanted);
    let report = ["report", "--predictions", "a.jsonl", "--predictions", "b.jsonl"];
    place.stage(&report).failed().says(&["temperature: 0.8 (a), 0 (b)"]);
}

/// Files without a header that set something alone: what the other's records leave out was not set, and is no unknown.
#[test]
fn settings_of_one_file_alone_are_refused() {
    let place = Place::new();
    let write = |name: &str, asked: Value| {
        let record = |id| json!({"task_id": id, "pred": "x", "asked": asked});
        place.write(name, jsonl(&["alpha/0", "alpha/1", "beta/0"].map(record)));
    };
    let plain = json!({"max_tokens": 8, "temperature": 0.0, "prompt_end": "as-is"});
    write("a.jsonl", plain.clone());
    let compare = ["compare", "--tasks", "tasks.jsonl", "a.jsonl", "b.jsonl"];
    let report = ["report", "--tasks", "tasks.jsonl", "--predictions=a.jsonl"];
    let report = [&report[..], &["--predictions=b.jsonl"]].concat();
    for (name, value, said) in [
        ("top_p", json!(0.9), "top-p: not set (A), 0.9 (B)"),
        ("instruction", json!("Complete."), "instruction: not set (A), Complete. (B)"),
        ("until", json!("lines"), "until: tokens (A), lines (B)"),
        ("prompt_end", json!("before-whitespace"), "prompt-end: as-is (A), before-whitespace (B)"),
    ] {
        let mut asked = plain.clone();
        asked[name] = value;
        write("b.jsonl", asked);
        let [as_files, as_names] = [("a.jsonl", "b.jsonl"), ("a", "b")]
            .map(|(a, b)| said.replace("(A)", &format!("({a})")).replace("(B)", &format!("({b})")));
        place.run(&compare).failed().says(&[&*as_files, "--allow-mixed"]);
        place.run(&report).failed().says(&[&*as_names, "--allow-mixed"]);
    }
    let mut asked = plain.clone();
    asked["until"] = json!("tokens");
    write("b.jsonl", asked);
    place.run(&compare).done();
    // Nothing is known of a file whose records say nothing, nor what else a record sets that names its limit alone.
    predictions(&place, "b.jsonl", ["x"; 3]);
    place.run(&compare).done();
    write("b.jsonl", json!({"max_tokens": 8}));
    place.run(&compare).done();
    place.run(&report).done();
}

/// lm-evaluation-harness says of its samples how they were asked for, and a changed prompt is another one.
#[test]
fn samples_of_lm_eval_are_compared_with_their_like() {
    let place = Place::new();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lm_eval/none.jsonl");
    let samples = std::fs::read_to_string(fixture).unwrap();
    place.write("a.jsonl", &samples);
    place.write("b.jsonl", samples.replace("\"arg_0\": \"", "\"arg_0\": \"Complete:\\n"));
    let compare = ["compare", "--tasks", "tasks.jsonl", "a.jsonl"];
    let with = |other| [&compare[..], &[other]].concat();
    let changed = "instruction: not set (a.jsonl), the prompt was changed by lm-evaluation-harness";
    place.run(&with("b.jsonl")).failed().says(&[changed]);
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lm_eval/rg1.jsonl");
    place.write("c.jsonl", std::fs::read_to_string(fixture).unwrap());
    let ends = "prompt-end: as-is (a.jsonl), before-whitespace (c.jsonl)";
    place.run(&with("c.jsonl")).failed().says(&[ends]);
}

/// Numbers without a bound are said in words.
#[test]
fn a_page_shows_no_limit_as_all() {
    let place = Place::new();
    place.stage(&["run", "--unit", "chunks", "--mode", "none,rg1", "--report"]).done();
    let page = place.read("cache/report/tasks/index.html");
    assert!(page.contains("max-chunks</th>") && !page.contains(&usize::MAX.to_string()));
}

/// Predictions of three tasks in CrossCodeEval's format.
fn predictions(place: &Place, name: &str, texts: [&str; 3]) {
    let ids = ["alpha/0", "alpha/1", "beta/0"];
    let records = ids.into_iter().zip(texts).map(|(id, text)| json!({"task_id": id, "pred": text}));
    place.write(name, jsonl(&records.collect::<Vec<_>>()));
}

#[test]
fn scores_of_other_cuts_and_other_targets_are_refused() {
    let place = Place::new();
    predictions(&place, "p.jsonl", ["store_12 = store(12)\nmore", "view_20", "main_30"]);
    let eval = ["eval", "--tasks", "tasks.jsonl", "--predictions", "p.jsonl", "--per-task"];
    let score = |more: &[&str]| place.run(&[&eval[..], more].concat()).done();
    score(&["--format", "json", "-o", "own.json"]);
    score(&["--format", "jsonl", "-o", "own.jsonl"]);
    score(&["--format", "jsonl", "-o", "none.jsonl", "--postprocess", "none"]);
    place.run(&["compare", "own.json", "own.jsonl"]).done();
    let cuts = ["cut for repocoder: stripped-lines (own.json), none (none.jsonl)", "--allow-mixed"];
    place.run(&["compare", "own.json", "none.jsonl"]).failed().says(&cuts);
    let both = ["compare", "own.json", "none.jsonl", "--allow-mixed"];
    assert!(place.run(&both).done().stdout.contains(cuts[0]));

    // The same ids, and another line to complete.
    let others =
        place.read("tasks.jsonl").replace("store_12 = store(12)\"", "store_12 = other(12)\"");
    place.write("others.jsonl", others);
    let eval = ["eval", "--tasks", "others.jsonl", "--predictions", "p.jsonl", "--per-task"];
    place.run(&[&eval[..], &["--format", "json", "-o", "others.json"]].concat()).done();
    let targets = ["targets: different in 1 of 3 tasks (the first is alpha/0)"];
    place.run(&["compare", "own.json", "others.json"]).failed().says(&targets);
}

#[test]
fn rg_rg_is_not_scored_once_its_first_predictions_are_others() {
    let place = Place::new();
    place.all_stages(&[]);
    place.stage(&["eval", "--mode", "rg-rg"]).done();
    place.stage(&["complete", "--mode", "rg1", "--max-lines", "2"]).done();
    let stale =
        ["stale: built from a different version of its predictions-file", "repoformer rg-rg"];
    place.stage(&["eval", "--mode", "rg-rg"]).failed().says(&stale);
    place.stage(&["compare", "none", "rg-rg"]).failed().says(&stale);
    place.stage(&["report"]).failed().says(&stale);
    place.stage(&["eval", "--mode", "none,gt"]).done();
}

/// The predictions that rg-rg searched with are those of the model that completes, with its settings.
#[test]
fn prompts_of_predictions_that_are_others_now_are_not_completed() {
    let place = Place::new();
    let stage = |stage: &[&str]| place.stage(&[stage, &["-q"]].concat());
    // What changes the answers of a model changes the text.
    let answer = |request: &Request| {
        let mut asked = request.body.clone();
        asked.as_object_mut().unwrap().remove("stream");
        ok(
            &json!({"choices": [{"index": 0, "text": format!("\nx = {}", asked.to_string().len())}]}),
        )
    };
    let url = format!("--endpoint={}", server(answer).0);
    let model = |name: &'static str| ["--model", name, "--max-tokens=8"];
    let complete =
        |mode, flags: &[&str]| stage(&[&["complete", "--mode", mode, &*url], flags].concat());
    for name in ["window", "vectorize", "search", "prompt"] {
        stage(&[name]).done();
    }
    for name in ["one", "two"] {
        complete("rg1", &model(name)).done();
    }
    stage(&[&["rg-rg"][..], &model("one")].concat()).done();
    complete("rg-rg", &model("two")).failed().says(&[
        "predictions of one, but the model is two",
        "rg-rg",
        "name their file",
    ]);
    // Absent is a value, too.
    for other in ["--seed=3", "--stop=;", "--top-p=0.5", "--temperature=0.5", "--journal=own.jsonl"]
    {
        let key = other.trim_start_matches('-').split('=').next().unwrap();
        let flags = [&model("one")[..], &[other]].concat();
        complete("rg-rg", &flags).failed().says(&["stale", key]);
    }
    complete("rg-rg", &model("one")).done();
    // The model's first predictions are others now.
    complete("rg1", &[&model("one")[..], &["--seed=3"]].concat()).done();
    complete("rg-rg", &model("one")).failed().says(&["seed was 3, is not set", "--mode rg1"]);
    complete("rg-rg", &[&model("one")[..], &["--seed=3"]].concat())
        .failed()
        .says(&["built from a different version of its predictions-file", "rg-rg"]);
    // Predictions that somebody names may be of any model.
    let first = place.named("cache/predictions/tasks", "rg1-one-gram-ws-20-ss-2-one");
    stage(&["rg-rg", "--predictions", &first]).done();
    complete("rg-rg", &model("two")).done();
    // The embedded model's lines count as well.
    complete("rg1", &[]).failed();
    stage(&["complete", "--mode=rg1", "--max-lines=2"]).done();
    stage(&["rg-rg"]).done();
    stage(&["complete", "--mode=rg-rg"]).failed().says(&["max-lines was 2, is not set"]);
    stage(&["complete", "--mode=rg-rg", "--max-lines=2"]).done();
}

/// Prompts are completed and scored only while they are those of what was retrieved.
#[test]
fn prompts_of_an_earlier_retrieval_are_not_completed() {
    let place = Place::new();
    let stage = |stage: &[&str]| place.stage(&[stage, &["-q"]].concat());
    let first = ["window", "vectorize", "search"];
    first.iter().chain(&["prompt", "complete"]).for_each(|name| drop(stage(&[name]).done()));
    place.write(
        "repos/alpha/view.py",
        place.read("repos/alpha/view.py").replace("view_1 ", "view_one "),
    );
    for name in first {
        stage(&[name]).done();
        let ran = stage(&["complete", "--mode=rg1"]).failed();
        ran.says(&[
            "stale: built from a different version of its",
            if name == "search" { "prompt" } else { "a different version" },
        ]);
    }
    stage(&["eval", "--mode=rg1"])
        .failed()
        .says(&["built from a different version of its retrieval"]);
    stage(&["prompt"]).done();
    stage(&["complete"]).done();
    stage(&["eval", "--mode=rg1"]).done();
    // Prompts alone, without what they were made of.
    for folder in ["window", "vector", "retrieval"] {
        std::fs::remove_dir_all(place.path("cache").join(folder)).unwrap();
    }
    stage(&["complete"]).done();
}

#[test]
fn a_report_takes_the_test_results_of_its_predictions_alone() {
    let place = Place::new();
    predictions(&place, "p.jsonl", ["a", "b", "c"]);
    let result =
        json!({"task_id": "alpha/0", "row": 0, "exec": {"pass_1": 1.0}, "statuses": ["pass"]});
    place.write("exec.jsonl", jsonl(&[result]));
    let report = [
        "report", "--tasks", "tasks.jsonl", "--predictions", "p=p.jsonl", "--exec", "p=exec.jsonl",
    ];
    let manifest = |digest: &str| {
        let inputs = json!([{"name": "predictions.p", "path": "p.jsonl", "blake3": digest}]);
        place.write("exec.jsonl.manifest.json", json!({"inputs": inputs}).to_string());
    };
    place.run(&report).done();
    manifest(&"0".repeat(64));
    place
        .run(&report)
        .failed()
        .says(&["exec.jsonl: contains test results of other predictions than p.jsonl"]);
    manifest(&repoformer_store::artifact::digest(place.read("p.jsonl").as_bytes()));
    place.run(&report).done();
}

/// Choices of other policies are kept while the predictions that they chose between are there, and removed with a word after.
#[test]
fn chosen_predictions_are_kept_while_they_are_current() {
    let place = Place::new();
    let run = |policy: &str, more: &[&str]| {
        place.stage(&[&["run", "--mode", "none,rg1", "--policy", policy], more].concat()).done()
    };
    run("never,always", &[]);
    run("oracle", &[]);
    let chosen = |name: &str| {
        place.files("cache/predictions/tasks").keys().any(|file| file.starts_with(name))
    };
    assert!(chosen("never-") && chosen("always-") && chosen("oracle-"));
    run("oracle", &["--max-tokens", "3"]).says(&[
        "never-rg1-",
        "removed, since a policy chose these from predictions that have changed",
    ]);
    assert!(!chosen("never-") && !chosen("always-") && chosen("oracle-"));
}

/// Variables of the environment count for commands with flags of their own.
#[test]
fn the_environment_counts_for_every_subcommand() {
    let place = Place::new();
    place.all_stages(&[]);
    let typo = [("REPOFORMER_SAMPELS", "3")];
    for command in [
        "label judge --instances a --base b --rag c",
        "label verbalize --labels a --tokenizer b -o c",
        "policy sweep --labels a",
        "policy train --labels a -o b",
        "convert --to repos a -o b",
        "validate a",
        "stats a",
        "inspect a",
    ] {
        let said = place.shell_with(&format!("repoformer {command}"), &typo).failed();
        said.says(&[
            "unknown environment variable REPOFORMER_SAMPELS",
            "did you mean 'REPOFORMER_SAMPLES'?",
        ]);
    }

    let file = |mode: &str| place.named("cache/predictions/tasks", mode);
    let judge = crate::support::judge("tasks.jsonl", &file("none"), &file("rg1")).join(" ");
    let judge = |more: &str, variables: &[(&str, &str)]| {
        let line = format!("repoformer {judge} {more} -o labels.jsonl");
        place.shell_with(&line, variables)
    };
    judge("", &[]).done().says(&["3 instances by repocoder"]);
    judge("", &[("REPOFORMER_METRICS", "chars")]).done().says(&["3 instances by chars"]);
    judge("--metric repobench", &[("REPOFORMER_METRICS", "chars")])
        .done()
        .says(&["3 instances by repobench"]);
    judge("", &[("REPOFORMER_METRICS", "chars,repobench")]).failed().says(&[
        "metrics has several values (chars, repobench), but labels use one metric",
        "--metric",
    ]);
    place.write("repoformer.toml", "metrics = [\"chars\"]\npostprocess = \"none\"\n");
    judge("", &[]).done().says(&["3 instances by chars"]);

    let sweep = |more: &str, seed: &str| {
        let line = format!(
            "repoformer policy sweep --labels labels.jsonl --policy random --format jsonl {more}"
        );
        parse_jsonl(&place.shell_with(&line, &[("REPOFORMER_SEED", seed)]).done().stdout)
    };
    let thresholds =
        |points: &[Value]| points.iter().map(|one| one["threshold"].clone()).collect::<Vec<_>>();
    let (flag, variable, other) = (sweep("--seed 5", "0"), sweep("", "5"), sweep("", "0"));
    assert_eq!(flag, variable);
    assert_ne!(thresholds(&flag), thresholds(&other));
}
