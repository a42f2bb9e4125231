//! Profiles and their metrics, settings that contradict them, names of metrics and kinds of intervals, and numbers that JSON values
//! cannot hold.

use repoformer_core::metrics::Metric;
use repoformer_text::language::Language;
use serde_json::{Value, json};

use crate::support::{Place, jsonl, parse_jsonl, sampled, task};

/// The metric of each paper, and how its program cuts: RepoCoder's `compute_score.py`, Repoformer's `eval_metric.py` (functions to
/// their bodies), CrossCodeEval's `eval_utils.py` (a Python prediction to its first statement).
#[test]
fn a_profile_scores_as_its_paper() {
    let kinds = ["line", "api", "function", "chunk"];
    let (place, repos) = sampled(&kinds, 4);
    let cuts = |metric: &str, function: &str| {
        let name = |kind: &&str| match *kind {
            "function" => format!("{metric}{function}"),
            _ => metric.to_owned(),
        };
        kinds.iter().map(name).collect::<Vec<_>>()
    };
    for (profile, metrics) in [
        ("repocoder", cuts("repocoder", "")),
        ("repoformer-paper", cuts("repoformer", " (function-body)")),
        ("repoformer-release", cuts("repoformer", " (function-body)")),
        ("crosscodeeval", cuts("crosscodeeval", "")),
    ] {
        for (kind, metric) in kinds.iter().zip(metrics) {
            let (profile_flag, tasks) =
                (format!("--profile={profile}"), format!("--tasks={kind}.jsonl"));
            let run = ["run", "-q", &profile_flag, &repos, &tasks, "--mode=none", "--format=jsonl"];
            let rows = parse_jsonl(&place.run(&run).done().stdout);
            let first = &rows[0];
            assert_eq!(
                (&first["metric"], &first["profile"]),
                (&json!(metric), &json!(profile)),
                "{kind}"
            );
            assert!(
                rows.iter()
                    .all(|row| row["metric"] == metric.as_str() && row.get("departures").is_none())
            );
            // The same file is scored so by `eval`, which names the cut.
            let eval =
                ["eval", "-q", &profile_flag, &repos, &tasks, "--mode=none", "--format=json"];
            let scores: Value = serde_json::from_str(&place.run(&eval).done().stdout).unwrap();
            let name = metric.split(' ').next().unwrap();
            let cut = match (name, *kind) {
                ("repocoder", _) => "stripped-lines",
                ("crosscodeeval", _) => "statement",
                (_, "function") => "function-body",
                _ => "lines",
            };
            assert_eq!(scores["postprocess"], json!({name: cut}), "{profile} {kind}");
            assert_eq!(scores["all"][name]["es"], first["es"]);
        }
    }
}

/// In Python a statement ends as soon as it parses, in the other three languages at the first of `; { }`.
#[test]
fn crosscodeevals_profile_cuts_each_language_as_its_program() {
    for (ending, target, prediction, cut) in [
        ("py", "x = a", "x = a\nx = 1\n", "x = a"),
        ("java", "    return a;", "    return a; int x = 1;\n", "    return a;"),
        ("cs", "    return a;", "    return a;\n    int x;\n", "    return a;"),
        ("ts", "    return a;", "    return a;\n    x();\n", "    return a;"),
    ] {
        let place = Place::empty();
        let path = format!("alpha/a.{ending}");
        let sign = if ending == "py" { "#" } else { "//" };
        let text = format!("{sign} a file\n{sign} of two lines\n{target}\n");
        place.write("tasks.jsonl", jsonl(&[task("alpha/0", &path, &text, 0, 2)]));
        place.write("mine.jsonl", jsonl(&[json!({"task_id": "alpha/0", "pred": prediction})]));
        let eval = [
            "eval",
            "-q",
            "--profile=crosscodeeval",
            "--tasks=tasks.jsonl",
            "--predictions=mine.jsonl",
            "--per-task",
            "--format=jsonl",
        ];
        let scored = parse_jsonl(&place.run(&eval).done().stdout);
        assert_eq!(scored[0]["pred"], cut, "{ending}");
        assert_eq!(scored[0]["crosscodeeval"]["es"], 1.0, "{ending}");
    }
}

#[test]
fn a_setting_that_contradicts_the_profile_is_named() {
    let (place, repos) = sampled(&["line", "function"], 3);
    let common = ["--profile=crosscodeeval", &repos, "--mode=none,rg1"];
    let run = |more: &[&str]| {
        place.run(&[&["run", "-q", "--tasks=line.jsonl"], &common[..], more].concat())
    };
    let table = run(&["--metrics=repocoder"]).done().stdout;
    let line = "not as in profile crosscodeeval: metrics = repocoder instead of crosscodeeval";
    assert!(table.contains(&format!("\nline: {line}\n")), "{table}");
    let rows = parse_jsonl(&run(&["--metrics=repocoder", "--format=jsonl"]).done().stdout);
    let departures =
        json!([{"setting": "metrics", "value": "repocoder", "usual": "crosscodeeval"}]);
    assert!(rows.iter().all(|row| row["departures"] == departures), "{rows:?}");
    assert!(run(&["--metrics=repocoder", "--format=tsv"]).done().stdout.contains(line));
    // A value that repeats the profile's is no departure, nor are data, models and threads.
    let same = run(&["--metrics=crosscodeeval", "--top-k=100", "--threads=1", "--cache-dir=other"]);
    assert!(!same.done().stdout.contains("not as in"));
    // Defaults that the profile relies on count as well, wherever the value comes from.
    place.write(
        "own.toml",
        "profile = \"repoformer-paper\"\nright-context = \"no\"\npostprocess = \"none\"\n",
    );
    let own = ["run", "-q", "--config=own.toml", &repos, "--tasks=line.jsonl", "--mode=none"];
    let table = place.run(&own).done().stdout;
    assert!(
        table.contains("not as in profile repoformer-paper: right-context = no instead of yes, postprocess = none instead of own"),
        "{table}"
    );
    // For functions, their section of the profile counts.
    let functions = [
        "run",
        "-q",
        "--profile=repoformer-paper",
        &repos,
        "--tasks=function.jsonl",
        "--mode=none",
    ];
    let table = |more: &[&str]| place.run(&[&functions[..], more].concat()).done().stdout;
    assert!(!table(&["--max-tokens=256"]).contains("not as in"));
    assert!(table(&["--max-tokens=50"]).contains("max-tokens = 50 instead of 256"));
    // Commands that score name it in their results; the other commands warn.
    let eval = ["eval", "--metrics=repocoder", "--tasks=line.jsonl"];
    let scored = place.run(&[&eval, &common[..]].concat()).done();
    assert!(scored.stdout.contains(line) && !scored.stderr.contains(line), "{}", scored.stdout);
    let json = place.run(&[&eval, &common[..], &["--format=json"]].concat()).done().stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["manifest"]["settings"]["departures"], departures);
    assert_eq!(json[0]["manifest"]["settings"]["profile"], "crosscodeeval");
    let report = ["report", "-q", "--metrics=repocoder", "--tasks=line.jsonl", "-o", "page"];
    place.run(&[&report, &common[..]].concat()).done();
    assert!(place.read("page/index.html").contains(line));
    let manifest: Value = serde_json::from_str(&place.read("page/figures/manifest.json")).unwrap();
    assert_eq!(manifest["settings"]["departures"], departures);
    let compare = [
        "compare",
        "none",
        "rg1",
        "--metrics=repocoder",
        "--tasks=line.jsonl",
        "--profile=crosscodeeval",
    ];
    place.run(&compare).done().says(&[line]);
    let prompt = ["prompt", "--max-cross-file-tokens=100", "--tasks=line.jsonl"];
    place
        .run(&[&prompt, &common[..]].concat())
        .done()
        .says(&["max-cross-file-tokens = 100 instead of 512"]);
}

/// One metric comes first for each kind of task, in every command, and is named.
#[test]
fn every_command_begins_with_the_same_metric() {
    for (kind, metric) in [
        ("line", "repocoder"),
        ("api", "repocoder"),
        ("function", "repoformer"),
        ("chunk", "repoformer"),
    ] {
        let (place, repos) = sampled(&[kind], 6);
        // Records with `kind`, as `label sample` writes them, are chunks.
        let text = place.read(&format!("{kind}.jsonl"));
        let text = text.replace("\"metadata\":{", &format!("\"metadata\":{{\"kind\":\"{kind}\","));
        place.write(&format!("{kind}.jsonl"), text);
        let tasks = format!("--tasks={kind}.jsonl");
        let ran =
            |command: &[&str]| place.run(&[command, &[&*repos, &*tasks]].concat()).done().stdout;
        let rows = parse_jsonl(&ran(&["run", "-q", "--mode=none,rg1", "--format=jsonl"]));
        assert!(rows[0]["metric"].as_str().unwrap().starts_with(metric), "{kind}: {rows:?}");
        let eval = ran(&["eval", "-q"]);
        assert!(eval.lines().next().unwrap().contains(&format!("{metric}.em")), "{kind}: {eval}");
        let compared = ran(&["compare", "none", "rg1", "-q", "--format=jsonl"]);
        assert_eq!(parse_jsonl(&compared)[0]["measure"], format!("{metric}.em"), "{kind}");
        ran(&["report", "-q", "-o", "page"]);
        let page = place.read("page/index.html");
        assert!(page.contains(&format!("ES ({metric})")), "{kind}");
        // The headline is the gain of the terminal's table.
        let gain = 100.0 * (rows[1]["es"].as_f64().unwrap() - rows[0]["es"].as_f64().unwrap());
        let shown = format!("{}{:.2}", if gain < 0.0 { '\u{2212}' } else { '+' }, gain.abs());
        assert!(
            gain == 0.0 || page.contains(&format!("ES ({metric}) <span class=\"nowrap\">{shown}")),
            "{kind}: {shown}"
        );
    }
}

/// Two repositories give a range, seven a confidence interval: in each format and each command.
#[test]
fn intervals_name_their_kind() {
    for (repositories, kind, level) in [(2, "range", json!(null)), (7, "confidence", json!(0.95))] {
        let place = Place::empty();
        let id = |n: usize| format!("r{}/{n}", n % repositories);
        let tasks: Vec<Value> = (0..14)
            .map(|n| task(&id(n), &format!("r{}/x.py", n % repositories), "a = 1\nb = 2\n", 0, 1))
            .collect();
        place.write("tasks.jsonl", jsonl(&tasks));
        for (name, text) in [("one", "b = 2"), ("two", "b = 3")] {
            let predictions: Vec<Value> = (0..14)
                .map(|n| json!({"task_id": id(n), "pred": if n % 3 == 0 { "b" } else { text }}))
                .collect();
            place.write(&format!("{name}.jsonl"), jsonl(&predictions));
        }
        let ran = |args: &[&str]| {
            place.run(&[args, &["-q", "--tasks=tasks.jsonl"]].concat()).done().stdout
        };
        let eval = ["eval", "--predictions=one.jsonl"];
        let json: Value =
            serde_json::from_str(&ran(&[&eval[..], &["--format=json"]].concat())).unwrap();
        let intervals = &json["intervals"];
        assert_eq!((&intervals["kind"], &intervals["level"]), (&json!(kind), &level));
        for format in ["csv", "tsv"] {
            let flag = format!("--format={format}");
            let rows = ran(&[&eval[..], &[&flag]].concat());
            let split = |line: &str| line.split([',', '\t']).map(str::to_owned).collect::<Vec<_>>();
            let place = split(rows.lines().next().unwrap())
                .iter()
                .position(|name| name == "interval")
                .unwrap();
            assert_eq!(split(rows.lines().last().unwrap())[place], kind, "{rows}");
        }
        let compare = ["compare", "one.jsonl", "two.jsonl"];
        let json: Value =
            serde_json::from_str(&ran(&[&compare[..], &["--format=json"]].concat())).unwrap();
        assert_eq!(
            (&json["bootstrap"]["kind"], &json["bootstrap"]["level"]),
            (&json!(kind), &level)
        );
        let lines =
            parse_jsonl(&ran(&[&compare[..], &["--format=jsonl", "--by-repository"]].concat()));
        for line in &lines {
            // Within a repository tasks are drawn.
            let wanted = if line["repository"].is_null() { kind } else { "confidence" };
            assert_eq!(line["interval"], wanted, "{line}");
        }
        let csv = ran(&[&compare[..], &["--format=csv"]].concat());
        assert!(csv.lines().nth(1).unwrap().contains(&format!(",{kind},")), "{csv}");
        let tsv = ran(&[&compare[..], &["--format=tsv"]].concat());
        assert!(tsv.lines().nth(1).unwrap().contains(&format!("\t{kind}\t")), "{tsv}");
    }
}

/// Retrieval does not shorten the left context of the paper's prompts, so that `none` and `rg1` differ only by the fragments.
#[test]
fn the_papers_budgets_fit_its_prompt() {
    let (place, repos) = sampled(&["line", "function"], 180);
    for kind in ["line", "function"] {
        let tasks = format!("--tasks={kind}.jsonl");
        let common = ["--profile=repoformer-paper", &repos, &tasks, "--mode=none,rg1", "-q"];
        for stage in ["window", "vectorize", "search"] {
            place.run(&[&[stage], &common[..]].concat()).done();
        }
        for style in ["starcoder", "repoformer", "starcoder2", "qwen2.5-coder", "codellama"] {
            let prompts = |mode: &str| {
                let (mode, style) = (format!("--mode={mode}"), format!("--prompt-style={style}"));
                let prompt = [
                    "prompt",
                    "--profile=repoformer-paper",
                    &repos,
                    &tasks,
                    &mode,
                    &style,
                    "-q",
                    "-o=-",
                ];
                parse_jsonl(&place.run(&prompt).done().stdout)
            };
            let (none, rag) = (prompts("none"), prompts("rg1"));
            assert_eq!(none.len(), 180);
            let left = |record: &Value| record["metadata"]["left_tokens"].as_u64().unwrap();
            for (without, with) in none.iter().zip(&rag) {
                assert_eq!(left(without), left(with), "{style} {}", with["metadata"]["task_id"]);
                assert!(with["metadata"]["cross_file_tokens"].as_u64().unwrap() <= 512);
            }
            let most = none.iter().map(left).max().unwrap();
            assert!(most > 1015, "some left contexts fill their budget: {most}");
        }
    }
}

#[test]
fn budgets_that_do_not_fit_are_reported() {
    let (place, repos) = sampled(&["line"], 3);
    let run = |more: &[&str]| {
        let common =
            ["--profile=repoformer-paper", &repos, "--tasks=line.jsonl", "--mode=none,rg1"];
        for stage in ["window", "vectorize", "search"] {
            place.run(&[&[stage, "-q"], &common[..]].concat()).done();
        }
        place.run(&[&["prompt"], &common[..], more].concat()).done()
    };
    let warned = run(&["--max-prompt-tokens=2048"]);
    warned.says(&[
        "left context (1024 tokens), right context (512), cross-file context (512) and the style's text (",
        "but the prompt budget (--max-prompt-tokens) is 2048, so retrieved fragments may shorten the left context",
    ]);
    // Without the right context they fit.
    for fits in [&[][..], &["--max-prompt-tokens=2048", "--right-context=no"]] {
        let ran = run(fits);
        assert!(!ran.stderr.contains("may shorten the left context"), "{}", ran.stderr);
    }
}

/// Integers beyond 64 bits keep their digits: Python reads and writes them.
#[test]
fn integers_beyond_64_bits_keep_their_digits() {
    let place = Place::new();
    let big = "123456789012345678901234567890";
    let tasks = place.read("tasks.jsonl");
    let tasks = tasks.replacen("{\"prompt\"", &format!("{{\"hash\":{big},\"prompt\""), 1);
    let tasks = tasks.replacen("\"metadata\":{", &format!("\"metadata\":{{\"big\":[-{big}],"), 1);
    place.write("tasks.jsonl", tasks);
    let has = |text: &str| {
        let first = text.lines().next().unwrap();
        assert!(
            first.contains(&format!("\"hash\":{big}"))
                && first.contains(&format!("\"big\":[-{big}]")),
            "{first}"
        );
    };
    has(&place.read("tasks.jsonl"));
    for style in ["repocoder", "plain"] {
        let style = format!("--prompt-style={style}");
        for stage in [&["window"][..], &["vectorize"], &["search"], &["prompt"], &["complete"]] {
            place.stage(&[stage, &["-q", &style]].concat()).done();
        }
        for stage in [&["prompt", "--mode=rg1", "-o=-"][..], &["complete", "--mode=rg1", "-o=-"]] {
            has(&place.stage(&[stage, &["-q", &style]].concat()).done().stdout);
        }
    }
    place.stage(&["prompt", "--mode=rg1", "-q", "-o=prompts.jsonl"]).done();
    has(&place.run(&["complete", "--prompts=prompts.jsonl", "-q", "-o=-"]).done().stdout);
    let convert =
        ["convert", "tasks.jsonl", "--to=crosscodeeval", "--repos-dir=repos", "-q", "-o=-"];
    has(&place.run(&convert).done().stdout);
    place.write(
        "predictions.jsonl",
        format!("{{\"task_id\": \"a\", \"pred\": \"x\", \"hash\": {big}, \"big\": [-{big}]}}\n"),
    );
    let convert = ["convert", "predictions.jsonl", "--to=crosscodeeval-predictions", "-q", "-o=-"];
    has(&place.run(&convert).done().stdout);
    // As an id it is one, too.
    place.write(
        "pairs.jsonl",
        format!("{{\"task_id\": {big}, \"target\": \"x\", \"pred\": \"x\"}}\n"),
    );
    let scored = place
        .run(&["eval", "--pairs=pairs.jsonl", "--per-task", "--format=jsonl", "-q"])
        .done()
        .stdout;
    assert_eq!(parse_jsonl(&scored)[0]["task_id"], big);
}

/// `json.dumps` of Python writes NaN, Infinity and -Infinity, which JSON lacks.
#[test]
fn pythons_nan_and_infinity_are_read() {
    let place = Place::new();
    let ids = ["alpha/0", "alpha/1", "beta/0"];
    let predictions: String = ids
        .iter()
        .map(|id| format!("{{\"task_id\": \"{id}\", \"pred\": \"x\", \"time\": NaN, \"more\": [Infinity, -Infinity]}}\n"))
        .collect();
    place.write("mine.jsonl", &predictions);
    let eval = ["eval", "--predictions=mine.jsonl", "--tasks=tasks.jsonl"];
    let warning = "mine.jsonl:1: NaN or Infinity is not valid JSON (Python's json writes it); it is read as null in unused fields (3 records)";
    place.run(&eval).done().says(&[warning]);
    let convert = ["convert", "mine.jsonl", "--to=crosscodeeval-predictions", "-o=-"];
    let converted = place.run(&convert).done().says(&[warning]);
    assert_eq!(
        parse_jsonl(&converted.stdout)[0],
        json!({"task_id": "alpha/0", "pred": "x", "time": null, "more": [null, null]})
    );
    // If a text or a number is needed, the error names the field.
    place.write("mine.jsonl", predictions.replacen("\"pred\": \"x\"", "\"pred\": NaN", 1));
    let skipped = place.run(&[&eval[..], &["--missing=skip"]].concat()).partly();
    skipped.says(&["mine.jsonl:1: ", "'pred'", "NaN"]);
    for (name, value) in [("a", "0.5"), ("b", "NaN")] {
        let score = |n: usize, value: &str| {
            format!(
                "{{\"task_id\": \"{}\", \"row\": {n}, \"other\": NaN, \"repocoder\": {{\"es\": {value}}}}}\n",
                ids[n]
            )
        };
        place.write(
            &format!("{name}.jsonl"),
            [score(0, value), score(1, "0.25"), score(2, "1.0")].concat(),
        );
    }
    let compared = place.run(&["compare", "a.jsonl", "b.jsonl", "--format=json"]).partly();
    let compared = compared.says(&["b.jsonl:1: field 'repocoder.es' must be a number, not NaN"]);
    let compared: Value = serde_json::from_str(&compared.stdout).unwrap();
    assert_eq!(compared["n"], 2);
    let exec = |rate: &str| {
        format!(
            "{{\"task_id\": \"alpha/0\", \"row\": 0, \"exec\": {{\"pass_1\": {rate}}}, \"statuses\": [\"pass\"]}}\n"
        )
    };
    place.write("exec.jsonl", exec("NaN"));
    let report =
        ["report", "--predictions=mine=mine.jsonl", "--exec=exec.jsonl", "--tasks=tasks.jsonl"];
    place
        .run(&report)
        .failed()
        .says(&["exec.jsonl:1: field 'exec.pass_1' must be a number, not NaN"]);
}

/// An empty sum is not a negative zero, neither in values nor in printed numbers.
#[test]
fn zeros_have_no_sign() {
    let place = Place::new();
    place.write("mine.jsonl", jsonl(&[json!({"task_id": "alpha/0", "pred": ""})]));
    let eval = [
        "eval",
        "-q",
        "--predictions=mine.jsonl",
        "--tasks=tasks.jsonl",
        "--missing=zero",
        "--metrics=all",
        "--per-task",
    ];
    for format in ["jsonl", "json", "csv", "tsv"] {
        let format = format!("--format={format}");
        let shown = place.run(&[&eval[..], &[&format]].concat()).done().stdout;
        assert!(!shown.contains("-0"), "{shown}");
    }
    assert!(Metric::ALL.iter().all(|metric| {
        metric.score::<&str>("x", &[], Language::Python).iter().all(|value| value.to_bits() == 0)
    }));
}
