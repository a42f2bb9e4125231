//! `inspect` on each kind of artifact: the header as text, the records as JSONL in the field names of the exchange formats.

use crate::support::{Place, Ran, parse_jsonl};
use serde_json::{Value, json};

const WINDOWS: &str = "cache/window/repos/alpha_ws20_slice2.bin";
const QUERIES: &str = "cache/window/tasks/rg1/alpha_ws20_slice2.bin";
const VECTORS: &str = "cache/vector/repos/alpha_ws20_slice2.one-gram.bin";
const RESULTS: &str = "cache/retrieval/tasks/rg1/alpha_ws20_slice2.one-gram.top20.bin";
const PROMPTS: &str = "cache/prompts/tasks/rg1-one-gram-ws-20-ss-2.jsonl";
const PREDICTIONS: &str = "cache/predictions/tasks/rg1-one-gram-ws-20-ss-2-in-context.jsonl";
const SCORES: &str = "cache/scores/tasks/rg1-one-gram-ws-20-ss-2-in-context.json";

fn place() -> Place {
    let place = Place::new();
    place.stage(&["run"]).done();
    place
}

fn header(place: &Place, file: &str) -> String {
    place.run(&["inspect", file]).done().stdout
}

fn records(place: &Place, args: &[&str]) -> Vec<Value> {
    let args = [&["inspect", "--format", "jsonl"], args].concat();
    parse_jsonl(&place.run(&args).done().stdout)
}

fn keys(record: &Value) -> Vec<&str> {
    record.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn headers_name_kind_parameters_inputs_count_and_checksum() {
    let place = place();
    let wanted = [
        (WINDOWS, "repository fragments", 6, "window-size = 20", "repository"),
        (QUERIES, "queries", 2, "mode = rg1", "fragments"),
        (VECTORS, "one-gram vectors", 6, "tokenizer = p50k_base", "fragments"),
        (RESULTS, "retrieval results", 2, "top-k = 20", "query vectors"),
        (PROMPTS, "prompts", 3, "max-prompt-tokens = 2000", "retrieval"),
        (PREDICTIONS, "predictions", 3, "model = in-context", "prompts"),
    ];
    for (file, kind, count, parameter, input) in wanted {
        let text = header(&place, file);
        let line = |start: String| {
            let found = text.lines().find(|line| line.starts_with(&start));
            found.unwrap_or_else(|| panic!("{file}: no {start:?} in\n{text}")).to_owned()
        };
        line(format!("kind        {kind}"));
        line(format!("records     {count}"));
        line(format!("parameter   {parameter}"));
        let digest = line(format!("input       {input}: "));
        assert_eq!(digest.rsplit(' ').next().unwrap().len(), 64, "BLAKE3 in hex");
        assert_eq!(line("checksum    ".into()).len(), "checksum    ".len() + 64);
        line("format      2".into());
        line(format!("written by  repoformer {}", env!("CARGO_PKG_VERSION")));
    }
    // The digests chain the artifacts together.
    let checksum = header(&place, WINDOWS);
    let checksum = checksum.lines().find_map(|line| line.strip_prefix("checksum    ")).unwrap();
    assert!(header(&place, VECTORS).contains(&format!("input       fragments: {checksum}")));
}

#[test]
fn repository_windows() {
    let place = place();
    let windows = records(&place, &[WINDOWS]);
    let place_of = |file: &str, line_no: u32, start: u32, end: u32| {
        json!({"metadata": [{"fpath_tuple": ["alpha", file], "line_no": line_no, "start_line_no": start,
            "end_line_no": end, "window_size": 20, "repo": "alpha", "slice_size": 2}]})
    };
    // 25 and 30 lines, a window around every 10th line, 10 lines before it and 10 after.
    let wanted = [
        place_of("store.py", 0, 0, 10),
        place_of("store.py", 10, 0, 20),
        place_of("store.py", 20, 10, 25),
        place_of("view.py", 0, 0, 10),
        place_of("view.py", 10, 0, 20),
        place_of("view.py", 20, 10, 30),
    ];
    assert_eq!(windows, wanted);
    let with_texts = records(&place, &[WINDOWS, "--context"]);
    assert_eq!(keys(&with_texts[2]), ["context", "metadata"]);
    let lines: Vec<String> = (10..25).map(|n| format!("store_{n} = store({n})")).collect();
    assert_eq!(with_texts[2]["context"], lines.join("\n"));
}

#[test]
fn query_windows() {
    let place = place();
    let bare = records(&place, &[QUERIES]);
    assert_eq!(keys(&bare[0]), ["metadata"]);
    let full = records(&place, &[QUERIES, "--context"]);
    assert_eq!(
        full[0],
        json!({"context": "store_10 = store(10)\nstore_11 = store(11)", "metadata": {
            "task_id": "alpha/0", "row": 0, "fpath_tuple": ["alpha", "store.py"], "line_no": 12, "start_line_no": 10,
            "end_line_no": 12, "context_start_lineno": 10, "window_size": 20, "slice_size": 2, "repo": "alpha"}})
    );
    // The oracle's window: 10 lines before the hole, where the prompt shows them, and 10 from the hole on.
    let oracle = records(&place, &[&QUERIES.replace("rg1", "gt")]);
    let lines = |query: &Value| {
        (query["metadata"]["start_line_no"].clone(), query["metadata"]["end_line_no"].clone())
    };
    assert_eq!(lines(&oracle[0]), (10.into(), 22.into()));
    assert_eq!(lines(&oracle[1]), (10.into(), 30.into()));
    let second = records(&place, &[&QUERIES.replace("rg1", "rg-rg")]);
    assert_eq!(second[0]["metadata"]["sample"], 0, "which prediction");
}

#[test]
fn vectors() {
    let place = place();
    let vectors = records(&place, &[VECTORS]);
    assert_eq!(vectors.len(), 6);
    for vector in &vectors {
        assert_eq!(keys(vector), ["embedding"]);
        let ids: Vec<u64> =
            vector["embedding"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b), "distinct ids, ascending");
    }
    // "store", "_", " =", " store", "(", ")", the newline, and the digits 0 to 9.
    assert_eq!(vectors[0]["embedding"].as_array().unwrap().len(), 17);
}

#[test]
fn retrieval_results() {
    let place = place();
    let results = records(&place, &[RESULTS]);
    assert_eq!(results.len(), 2);
    assert_eq!(keys(&results[0]), ["task_id", "row", "query_window", "top_k_context"]);
    assert_eq!((&results[1]["task_id"], &results[1]["row"]), (&"alpha/1".into(), &1.into()));
    assert_eq!(results[0]["query_window"]["metadata"]["end_line_no"], 12);
    let hits = results[0]["top_k_context"].as_array().unwrap();
    // What may be found: the window of store.py that ends where the prompt starts, and those of view.py.
    let mut found: Vec<String> = hits
        .iter()
        .map(|hit| {
            format!(
                "{} {}",
                hit["metadata"][0]["fpath_tuple"][1], hit["metadata"][0]["start_line_no"]
            )
        })
        .collect();
    assert_eq!(found[0], "\"store.py\" 0", "its words are the query's");
    found.sort();
    assert_eq!(found, ["\"store.py\" 0", "\"view.py\" 0", "\"view.py\" 0", "\"view.py\" 10"]);
    let mut last = 1.0;
    for hit in hits {
        assert_eq!(keys(hit), ["metadata", "sim_score", "overlap", "union"]);
        let score = hit["sim_score"].as_f64().unwrap();
        assert_eq!(score, hit["overlap"].as_f64().unwrap() / hit["union"].as_f64().unwrap());
        assert!(score <= last, "best first");
        last = score;
    }
    // 9 tokens of the query ("store", "_", "10", " =", " store", "(", ")", newline, "11") and 17 of the window: 7 are common.
    assert_eq!((&hits[0]["overlap"], &hits[0]["union"]), (&7.into(), &(9 + 17 - 7).into()));
    let texts = records(&place, &[RESULTS, "--context"]);
    assert!(
        texts[0]["top_k_context"][0]["context"]
            .as_str()
            .unwrap()
            .starts_with("store_0 = store(0)\n")
    );
    assert!(
        texts[0]["query_window"]["context"].as_str().unwrap().starts_with("store_10 = store(10)\n")
    );
}

#[test]
fn prompts_predictions_and_scores() {
    let place = place();
    for file in [PROMPTS, PREDICTIONS] {
        let ran = place.run(&["inspect", "--format", "jsonl", file]).done();
        assert_eq!(ran.stdout, place.read(file), "as they stand in the file");
    }
    let prompt = &place.records(PROMPTS)[0];
    assert_eq!(keys(prompt), ["prompt", "metadata"]);
    for field in [
        "task_id",
        "ground_truth",
        "fpath_tuple",
        "context_start_lineno",
        "line_no",
        "query_window",
        "top_k_context",
        "window_size",
        "slice_size",
    ] {
        assert!(prompt["metadata"].get(field).is_some(), "{field}");
    }
    assert_eq!(
        keys(&prompt["metadata"]["top_k_context"][0])[..3],
        ["context", "metadata", "sim_score"]
    );
    let prediction = &place.records(PREDICTIONS)[0];
    assert_eq!(keys(prediction), ["prompt", "metadata", "choices"]);
    assert!(prediction["choices"][0]["text"].is_string());
    assert_eq!(
        header(&place, SCORES),
        "kind        scores\nrecords     3\npredictions rg1\nmissing     0\n"
    );
    let scores = records(&place, &[SCORES]);
    assert_eq!(scores.len(), 3);
    assert_eq!(keys(&scores[2]), ["task_id", "row", "repository", "repocoder", "pred_raw", "pred"]);
}

#[test]
fn a_benchmark_may_be_named_as_a_stage_is() {
    let place = Place::new();
    for stage in ["window", "vectorize", "search"] {
        place.stage(&[stage, "--benchmark", "window"]).done();
    }
    assert_eq!(records(&place, &[&RESULTS.replace("tasks", "window")]).len(), 2);
}

#[test]
fn results_are_not_shown_with_windows_of_another_time() {
    let place = place();
    place.write("repos/alpha/view.py", crate::support::source("view", 31));
    place.stage(&["window"]).done();
    let ran = place.run(&["inspect", "--format", "jsonl", RESULTS]);
    ran.failed().says(&[RESULTS, "made from other fragments", "`repoformer search`"]);
    place.run(&["inspect", RESULTS]).done();
}

#[test]
fn what_is_no_artifact_is_named_with_the_way_out() {
    let place = place();
    let failed = |file: &str| -> Ran { place.run(&["inspect", file]).failed() };
    failed("tasks.jsonl").says(&[
        "error: tasks.jsonl: ",
        "not an artifact",
        "hint: ",
        "cache folder",
    ]);
    failed("nowhere.bin").says(&["error: nowhere.bin: ", "No such file", "hint: check the path"]);
    failed("repos").says(&["error: repos: "]);
    let bytes = std::fs::read(place.path(WINDOWS)).unwrap();
    place.write("cut.bin", &bytes[..bytes.len() - 7]);
    let records = place.run(&["inspect", "--format", "jsonl", "cut.bin"]).failed();
    records.says(&["cut.bin: damaged: ", "bytes of payload", "hint: "]);
}
