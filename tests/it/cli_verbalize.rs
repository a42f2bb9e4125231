//! `label verbalize`: labels as training sequences, in the files that trainers load.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use crate::support::{Place, jsonl, parse_jsonl};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::{Value, json};

const VERBALIZE: [&str; 8] = [
    "label", "verbalize", "--labels", "labels.jsonl", "--tokenizer", "tokenizer.json", "-o", "out",
];

/// The tokenizer of 900 tokens that is built like StarCoder's.
fn place() -> Place {
    let place = Place::empty();
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizers/starcoder.json");
    std::fs::copy(fixture, place.path("tokenizer.json")).unwrap();
    place
}

fn label(repository: &str, number: usize, positive: bool) -> Value {
    json!({
        "metadata": {
            "task_id": format!("{repository}/a.py/{number}_{}", number + 1), "filename": format!("{repository}/a.py"),
            "start_i": number, "end_i": number + 1,
        },
        "prompt": format!("x_{number} = '{repository}'\n"), "groundtruth": format!("y = {number}"), "right_context": "\nz = y\n",
        "crossfile_context": {"text": "# b = 2\n", "list": []},
        "es_infile": 0.25, "es_rg1": if positive { 0.75 } else { 0.25 }, "generation_model": "m", "label": positive, "threshold": 0.0,
    })
}

/// Ten repositories of three instances each.
fn labels() -> Vec<Value> {
    let numbers = (0..30).map(|n| label(&format!("r{}", n / 3), n, n % 3 == 0));
    numbers.collect()
}

/// The rows of a Parquet file, as another reader than that of the program's own would have them in JSON.
fn parquet_rows(path: &Path) -> Vec<Value> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    let object = |row: &Row| {
        row.get_column_iter().map(|(name, field)| (name.clone(), json_of(field))).collect()
    };
    rows.map(|row| Value::Object(object(&row.unwrap()))).collect()
}

fn json_of(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(bit) => json!(bit),
        Field::Byte(number) => json!(number),
        Field::Int(number) => json!(number),
        Field::Float(number) => json!(number),
        Field::Double(number) => json!(number),
        Field::Str(text) => json!(text),
        Field::ListInternal(list) => list.elements().iter().map(json_of).collect(),
        other => panic!("{other}"),
    }
}

/// Real instances come back from their tokens, and both formats say the same, whatever the number of threads.
#[test]
fn real_instances_come_back() {
    let place = place();
    place.add_samples();
    let sample = ["label", "sample", "--repos-dir", "repos", "--no-filter"];
    let instances = parse_jsonl(&place.run(&sample).done().stdout);
    let mut judged = instances.clone();
    for (number, instance) in judged.iter_mut().enumerate() {
        instance["label"] = json!(number % 3 == 0 && instance["crossfile_context"]["text"] != "");
    }
    place.write("labels.jsonl", jsonl(&judged));
    let ran =
        place.run(&[&VERBALIZE[..], &["--max-tokens", "1000", "--threads", "1"]].concat()).done();
    ran.says(&["train: ", "validation: ", "% positive", "<cc> = 900, <eof> = 901"]);
    let read = |name: &str| std::fs::read(place.path(&format!("out/{name}"))).unwrap();
    let names = [
        "train.jsonl", "train.parquet", "validation.jsonl", "validation.parquet", "tokenizer.json",
        "prompt-style.toml",
    ];
    let first = names.map(read);
    place.run(&[&VERBALIZE[..], &["--max-tokens", "1000", "--threads", "4"]].concat()).done();
    assert!(first == names.map(read), "threads have no say");

    let tokenizer = tokenizers::Tokenizer::from_file(place.path("out/tokenizer.json")).unwrap();
    let mut count = 0;
    for split in ["train", "validation"] {
        let rows = place.records(&format!("out/{split}.jsonl"));
        let table = parquet_rows(&place.path(&format!("out/{split}.parquet")));
        assert_eq!(rows.len(), table.len());
        count += rows.len();
        for (row, from_table) in rows.iter().zip(&table) {
            for (name, value) in row.as_object().unwrap() {
                match name.as_str() {
                    // Shortest decimals of 32 bits on one side.
                    "loss_weights" => {
                        let numbers = |value: &Value| -> Vec<f32> {
                            serde_json::from_value(value.clone()).unwrap()
                        };
                        assert_eq!(numbers(value), numbers(&from_table[name]));
                    }
                    _ => assert_eq!(value, &from_table[name], "{name}"),
                }
            }
            let ids: Vec<u32> = serde_json::from_value(row["input_ids"].clone()).unwrap();
            assert_eq!(tokenizer.decode(&ids, false).unwrap(), row["text"].as_str().unwrap());
            assert!(ids.len() <= 1000);
            // The decision is the token after <eof>: <cc> (900), or else <fim_middle> (2).
            let at = row["eval_mask"].as_array().unwrap().iter().position(|bit| *bit == 1).unwrap();
            assert_eq!(
                (ids[at - 1], ids[at]),
                (901, if row["positive"] == true { 900 } else { 2 })
            );
            let instance =
                instances.iter().find(|i| i["metadata"]["task_id"] == row["task_id"]).unwrap();
            let target: Vec<u32> = ids
                .iter()
                .zip(row["gen_mask"].as_array().unwrap())
                .filter(|(_, bit)| **bit == 1)
                .map(|(id, _)| *id)
                .collect();
            assert_eq!(tokenizer.decode(&target, false).unwrap(), instance["groundtruth"]);
            let lengths = ["attention_mask", "labels", "eval_mask", "gen_mask", "loss_weights"]
                .map(|name| row[name].as_array().unwrap().len());
            assert!(lengths.iter().all(|length| *length == ids.len()));
        }
    }
    assert_eq!(count, instances.len());
}

#[test]
fn repositories_are_held_out_whole() {
    let place = place();
    place.write("labels.jsonl", jsonl(&labels()));
    let shares = ["--validation", "0.2", "--test", "0.1"];
    let ran = place.run(&[&VERBALIZE[..], &shares].concat()).done();
    ran.says(&[
        "train: 21 sequences of 7 repositories, 33.33 % positive",
        "validation: 6 sequences of 2",
        "test: 3 sequences of 1",
    ]);
    let repositories = |split: &str| -> BTreeSet<String> {
        let rows = place.records(&format!("out/{split}.jsonl"));
        rows.iter().map(|row| row["repository"].as_str().unwrap().to_owned()).collect()
    };
    let [train, validation, test] = ["train", "validation", "test"].map(repositories);
    assert!(
        train.is_disjoint(&validation) && train.is_disjoint(&test) && validation.is_disjoint(&test)
    );
    assert_eq!(train.len() + validation.len() + test.len(), 10);
    let seeded = [&VERBALIZE[..], &shares, &["--seed", "1"]].concat();
    place.run(&seeded).done();
    assert_ne!(validation, repositories("validation"));
    // What is not held out any more must not lie there as if it were.
    place.run(&[&VERBALIZE[..], &["--validation", "0"]].concat()).done();
    assert!(
        !place.path("out/validation.jsonl").exists() && !place.path("out/test.parquet").exists()
    );
    assert_eq!(place.records("out/train.jsonl").len(), 30);

    // An instance that all repositories have stays in the tests alone.
    let mut copied = labels();
    for name in train.iter().chain(&validation).chain(&test) {
        let mut copy = label(name, 99, false);
        copy["prompt"] = json!("the same");
        copied.push(copy);
    }
    place.write("labels.jsonl", jsonl(&copied));
    let ran = place.run(&[&VERBALIZE[..], &shares].concat()).partly();
    ran.says(&[
        "9 instances are left out: the same target and contexts are held out in another split",
    ]);
    assert_eq!(place.records("out/test.jsonl").len(), 4);

    place.write("labels.jsonl", jsonl(&labels()[..3]));
    let ran = place.run(&VERBALIZE).failed();
    ran.says(&["leave none of 1 repository for training", "--validation 0"]);
}

#[test]
fn what_cannot_be_used_is_told_and_counted() {
    let place = place();
    let mut records = labels();
    records[4]["label"] = Value::Null;
    records[4]["es_rg1"] = Value::Null;
    records[5]["groundtruth"] = json!("");
    records[6]["crossfile_context"] = json!("");
    records[7]["metadata"]["filename"] = json!("a.py");
    records[8]["groundtruth"] = json!("y = 1\n".repeat(600));
    let lines = jsonl(&records).replacen("\"prompt\":\"x_1 =", "\"prom\":\"x_1 =", 1) + "{\n";
    place.write("labels.jsonl", lines);
    let ran = place.run(&VERBALIZE).partly();
    ran.says(&[
        "labels.jsonl:2: field 'prompt' is missing",
        "labels.jsonl:31: not JSON",
        "1 instance is left out: not judged",
        "labels.jsonl:6: its ground truth is empty: there is nothing to predict",
        "1 instance is left out: labelled as helped",
        "labels.jsonl:8: field 'metadata.filename' must be repository/folder/…/file",
        "1 instance is left out: target and cross-file context leave no room",
    ]);
    let written =
        ["train", "validation"].map(|split| place.records(&format!("out/{split}.jsonl")).len());
    assert_eq!(written.iter().sum::<usize>(), 30 - 6);

    let mut mixed = labels();
    mixed[9]["generation_model"] = json!("other");
    place.write("labels.jsonl", jsonl(&mixed));
    let before = place.read("out/train.jsonl");
    let ran = place.run(&VERBALIZE).failed();
    ran.says(&[
        "line 10 was judged by model other with threshold 0, and lines before it by model m with",
        "separately",
    ]);
    assert_eq!(before, place.read("out/train.jsonl"), "what was there stays");

    let mut mixed = labels();
    mixed[20]["threshold"] = json!(0.5);
    place.write("labels.jsonl", jsonl(&mixed));
    place.run(&VERBALIZE).failed().says(&["line 21 was judged", "with threshold 0.5"]);
    // What is wrong with some is told where the rest is too little.
    place.write("labels.jsonl", jsonl(&labels()[..2]) + "{\n[]\n");
    place.run(&VERBALIZE).failed().says(&[
        "leave none of 1 repository",
        "2 records cannot be used, the first: labels.jsonl:3: not JSON",
    ]);

    place.write("labels.jsonl", "");
    place.run(&VERBALIZE).failed().says(&["no instance can be a sequence: the file is empty"]);
    place.write("labels.jsonl", jsonl(&labels()));
    for (flags, said) in [
        (["--prompt-style", "codegen"], "no special token that begins the completion"),
        (
            ["--validation", "1"],
            "the share for validation (--validation) must be at least 0 and less than 1",
        ),
        (["--lambda", "nan"], "--lambda"),
        (["--tokenizer", "p50k_base"], "the tokenizer (--tokenizer) must be a model's own file"),
        (["--eof-token", "<cc>"], "'<cc>'"),
        (["--eof-token", "end"], "'end' could also occur in code"),
        (["--end-token", ""], "'' could also occur in code"),
        (
            ["--end-token", "<fim_suffix>"],
            "the end token (--end-token) '<fim_suffix>' is already part",
        ),
        (["--max-tokens", "6"], "cannot hold its 5 special tokens"),
        (["-o", "labels.jsonl"], "labels.jsonl: this is a file"),
        (["--labels", "-"], "name a file"),
        (
            ["--max-cc-tokens", "0"],
            "the limit of cross-file tokens (--max-cc-tokens) must be at least 1",
        ),
        (["-o", "."], "-o would overwrite tokenizer.json"),
    ] {
        let mut args = VERBALIZE.to_vec();
        match args.iter().position(|arg| *arg == flags[0]) {
            Some(at) => args[at + 1] = flags[1],
            None => args.extend(flags),
        }
        place.run(&args).failed().says(&[said]);
    }
}

/// The names of the released files, an end to learn, and λ.
#[test]
fn tokens_and_weights_are_named_on_the_command_line() {
    let place = place();
    place.write("labels.jsonl", jsonl(&labels()));
    let flags = [
        "--prompt-style", "repoformer-released", "--end-token", "<|endoftext|>", "--lambda", "0.5",
        "--validation", "0",
    ];
    let ran = place.run(&[&VERBALIZE[..], &flags].concat()).done();
    // In the order of the released program, whose <cfc_info> is the first token behind the vocabulary.
    ran.says(&["<cfc_info> = 900, <end_rc> = 901"]);
    let rows = place.records("out/train.jsonl");
    assert_eq!(
        rows[0]["text"],
        "<fim_prefix>x_0 = 'r0'\n<fim_suffix>\nz = y\n<end_rc><cfc_info># b = 2\n<fim_middle>y = 0<|endoftext|>"
    );
    assert_eq!(
        rows[1]["text"],
        "<fim_prefix>x_1 = 'r0'\n<fim_suffix>\nz = y\n<end_rc><fim_middle>y = 1<|endoftext|>"
    );
    // `y`, ` =`, ` `, `1` and the end: a fifth each.
    let weights = rows[1]["loss_weights"].as_array().unwrap().iter().map(|w| w.as_f64().unwrap());
    let weights: Vec<f64> = weights.filter(|weight| *weight > 0.0).collect();
    assert_eq!(weights[0], 0.5);
    assert!(weights[1..].iter().all(|w| (w * (weights.len() - 1) as f64 - 1.0).abs() < 1e-6));
    assert!(place.read("out/prompt-style.toml").contains("<end_rc>{#cross_file}<cfc_info>"));
}

/// `label all` gives what its stages give one by one, goes on where it was, and makes anew what it is told to make otherwise.
#[test]
fn all_of_it_in_one_command() {
    let place = place();
    place.add_samples();
    let all = [
        "label", "all", "--repos-dir", "repos", "--no-filter", "--kind", "function", "--tokenizer",
        "tokenizer.json", "-o", "out",
    ];
    // A server that is not there is told before anything is drawn.
    let nowhere = ["--endpoint", "http://127.0.0.1:9", "--model", "m"];
    place.run(&[&all[..], &nowhere].concat()).failed().says(&["is the server running"]);
    assert!(!place.path("out/instances.jsonl").exists());
    let ran = place.run(&[&all[..], &["--ratio", "0.3"]].concat());
    ran.says(&["label sample: ", "label judge: ", "% positive", "train: "]);
    let first = place.files("out");
    let names = [
        "instances.jsonl", "labels.jsonl", "train.jsonl", "train.parquet", "validation.jsonl",
        "tokenizer.json",
    ];
    assert!(names.iter().all(|name| first.contains_key(*name)), "{:?}", first.keys());
    // Nothing is drawn or completed again.
    let again = place.run(&[&all[..], &["--ratio", "0.3"]].concat());
    again.says(&["instances.jsonl is up to date", "complete instances: ", "(current)"]);
    crate::support::assert_same(&first, &place.files("out"));
    // Other limits, other instances.
    let ran = place.run(&[&all[..], &["--ratio", "0.3", "--fragments", "2"]].concat());
    ran.says(&[" function instances of "]).silent_on("instances.jsonl is up to date");
    // Other files too; unless they were there before.
    let new = "def new(x):\n    y = x\n    y += 1\n    return y\n";
    place.write("repos/quillpad/new.py", new);
    place.run(&[&all[..], &["--ratio", "0.3"]].concat()).silent_on("instances.jsonl is up to date");
    std::fs::remove_file(place.path("repos/quillpad/new.py")).unwrap();
    place.run(&[&all[..], &["--ratio", "0.3"]].concat());
    crate::support::assert_same(&first, &place.files("out"));
    // By the stages' own commands.
    let paper =
        ["--profile", "repoformer-paper", "--tokenizer", "tokenizer.json", "--cache-dir", "cache"];
    let sample = [
        "label", "sample", "--repos-dir", "repos", "--no-filter", "--kind", "function", "--ratio",
        "0.3", "-o", "instances.jsonl",
    ];
    place.run(&sample).done();
    assert_eq!(place.read("instances.jsonl"), place.read("out/instances.jsonl"));
    for stage in ["prompt", "complete"] {
        let data = ["--tasks", "instances.jsonl", "--mode", "none,given"];
        place.run(&[&[stage][..], &data, &paper].concat()).done();
    }
    let file = |mode: &str| place.named("cache/predictions/instances", mode);
    let (base, rag) = (file("none-"), file("given-"));
    place
        .run(
            &[&crate::support::judge("instances.jsonl", &base, &rag)[..], &["-o", "labels.jsonl"]]
                .concat(),
        )
        .done();
    assert_eq!(place.read("labels.jsonl"), place.read("out/labels.jsonl"));
    let verbalize = [
        "label", "verbalize", "--labels", "labels.jsonl", "--tokenizer", "tokenizer.json", "-o",
        "by-hand",
    ];
    let ran = place.run(&verbalize);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    assert_eq!(place.read("by-hand/train.jsonl"), place.read("out/train.jsonl"));
    // Another ratio, other instances.
    let other = place.run(&[&all[..], &["--ratio", "0.1"]].concat());
    other.silent_on("instances.jsonl is up to date");
    assert!(
        place.records("out/instances.jsonl").len()
            < parse_jsonl(&String::from_utf8(first["instances.jsonl"].clone()).unwrap()).len()
    );
    let tasks = [&all[..], &["--tasks", "t.jsonl"]].concat();
    place.run(&tasks).failed().says(&["--tasks is not used by label all"]);
    place
        .run(&[&all[..], &["--threshold", "nan"]].concat())
        .failed()
        .says(&["the threshold of labels (--threshold) must be a number"]);
    // Nor is anything completed that cannot be split.
    let alone = [&all[..], &["--repo", "quillpad", "--ratio", "0.3"]].concat();
    let ran = place.run(&alone).failed();
    ran.says(&["leave none of 1 repository"]).silent_on("complete");
    // What cannot be made is known before anything is drawn.
    let without = ["label", "all", "--repos-dir", "repos", "-o", "none"];
    place.run(&without).failed().says(&["the tokenizer (--tokenizer) must be a model's own file"]);
    assert!(!place.path("none").exists());
}

/// Retrieval that helps by one metric need not help by another; an instance that comes twice is told.
#[test]
fn labels_of_two_metrics_or_twice_are_told() {
    let place = place();
    let mut all = labels();
    all.iter_mut().for_each(|label| label["metric"] = json!("repocoder"));
    all[29]["metric"] = json!("repoformer");
    place.write("labels.jsonl", jsonl(&all));
    place.run(&VERBALIZE).failed().says(&[
        "line 30 was judged by model m and metric repoformer with threshold 0, and lines before it by model m and metric repocoder",
    ]);
    all.pop();
    place.write("labels.jsonl", jsonl(&all));
    place.run(&VERBALIZE).done().silent_on("are repeated");
    place.write("labels.jsonl", jsonl(&[&all[..], &all[..4]].concat()));
    place
        .run(&VERBALIZE)
        .done()
        .says(&["4 instances are repeated, with the same target and contexts; each copy is used"]);
}

/// Repoformer's training data join 240,000 chunks and 120,000 functions (section 4.1): one command draws, labels and joins both
/// kinds, and repositories are held out for both alike.
#[test]
fn chunks_and_functions_make_one_set() {
    let place = place();
    place.add_samples();
    let all = [
        "label", "all", "--repos-dir", "repos", "--no-filter", "--kind", "chunk,function",
        "--ratio", "0.1", "--tokenizer", "tokenizer.json", "-o", "out",
    ];
    let ran = place.run(&all);
    ran.says(&[
        " chunk instances of ",
        " function instances of ",
        "train: ",
        " of chunks, ",
        " of functions, ",
    ]);
    let names = ["instances-chunk", "instances-function", "labels-chunk", "labels-function"];
    let [chunks, functions, ..] = names.map(|name| place.records(&format!("out/{name}.jsonl")));
    assert!(
        !place.path("out/instances.jsonl").exists() && !place.path("out/labels.jsonl").exists()
    );
    let kinds = |records: &[Value]| -> BTreeSet<String> {
        records.iter().map(|record| record["metadata"]["kind"].as_str().unwrap().into()).collect()
    };
    assert_eq!(
        (kinds(&chunks), kinds(&functions)),
        (["chunk".into()].into(), ["function".into()].into())
    );
    // Every instance is in the split of its repository.
    let mut count = 0;
    let mut repositories: Vec<BTreeSet<String>> = Vec::new();
    for split in ["train", "validation"] {
        let rows = place.records(&format!("out/{split}.jsonl"));
        count += rows.len();
        repositories
            .push(rows.iter().map(|row| row["repository"].as_str().unwrap().to_owned()).collect());
    }
    assert_eq!(count, chunks.len() + functions.len());
    assert!(repositories[0].is_disjoint(&repositories[1]));
    // The two files of labels give the same; in the other order the splits are the same.
    let first = place.files("out");
    let verbalize = |one: &str, other: &str, to: &str| {
        let flags = [
            "label", "verbalize", "--tokenizer", "tokenizer.json", "--max-sequence-tokens", "2048",
        ];
        let labels = ["--labels", one, "--labels", other, "-o", to];
        place.run(&[&flags[..], &labels].concat()).done()
    };
    verbalize("out/labels-chunk.jsonl", "out/labels-function.jsonl", "joined");
    for name in ["train.jsonl", "train.parquet", "validation.jsonl", "tokenizer.json"] {
        assert!(first[name] == place.files("joined")[name], "{name}");
    }
    verbalize("out/labels-function.jsonl", "out/labels-chunk.jsonl", "turned");
    let sorted = |folder: &str| {
        let mut lines: Vec<String> = place
            .records(&format!("{folder}/validation.jsonl"))
            .iter()
            .map(Value::to_string)
            .collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted("joined"), sorted("turned"));
    // Finished work is kept.
    place
        .run(&all)
        .says(&["instances-chunk.jsonl is up to date", "instances-function.jsonl is up to date"]);
    crate::support::assert_same(&first, &place.files("out"));
    // Shards of both files merge into the same.
    for shard in ["1/2", "2/2"] {
        let to = format!("part-{}", &shard[..1]);
        let flags = [
            "label",
            "verbalize",
            "--tokenizer",
            "tokenizer.json",
            "--labels",
            "out/labels-chunk.jsonl",
            "--labels",
            "out/labels-function.jsonl",
            "--shard",
            shard,
            "-o",
            &to,
        ];
        place.run(&flags).done();
    }
    place.run(&["merge", "part-1", "part-2", "-o", "merged"]).done();
    for name in ["train.jsonl", "train.parquet", "validation.jsonl"] {
        assert!(first[name] == place.files("merged")[name], "{name}");
    }
    // A flag of neither kind, and a kind given twice, are refused.
    let kinds = |kinds: &[&str]| {
        let flags =
            ["label", "all", "--repos-dir", "repos", "--tokenizer", "tokenizer.json", "-o", "none"];
        place.run(&[&flags[..], kinds].concat()).failed()
    };
    kinds(&["--kind", "function", "--poisson-mean", "2"])
        .says(&["--poisson-mean works only with instances of kind chunk"]);
    kinds(&["--kind", "chunk", "--kind", "chunk"]).says(&["--kind names chunk twice"]);
    kinds(&["--kind", "chunk,line"]).says(&["unknown kind of instance 'line'"]);
}

/// An instance counts once: in two files it is refused, unless it is a chunk in one and a function in the other.
#[test]
fn an_instance_in_two_files_is_refused() {
    let place = place();
    let mut all = labels();
    place.write("labels.jsonl", jsonl(&all));
    place.write("others.jsonl", jsonl(&all[7..9]));
    let two = [&VERBALIZE[..], &["--labels", "others.jsonl"]].concat();
    let ran = place.run(&two).failed();
    ran.says(&["others.jsonl: line 1 has the instance of labels.jsonl:8; 2 of its instances are in other files too"]);
    assert!(!place.path("out/train.jsonl").exists());
    place
        .run(&[&VERBALIZE[..], &["--labels", "labels.jsonl"]].concat())
        .failed()
        .says(&["line 1 has the instance of labels.jsonl:1"]);
    for (number, label) in all.iter_mut().enumerate() {
        label["metadata"]["kind"] =
            json!(if (7..9).contains(&number) { "function" } else { "chunk" });
    }
    place.write("others.jsonl", jsonl(&all[7..9]));
    for label in &mut all {
        label["metadata"]["kind"] = json!("chunk");
    }
    place.write("labels.jsonl", jsonl(&all));
    let ran = place.run(&two).done();
    ran.says(&["27 of chunks, ", "3 of chunks, ", "2 of functions, ", "are repeated"]);
    // Labels of two models are refused, in two files as in one.
    let mut other = labels();
    other.truncate(1);
    other[0]["generation_model"] = json!("n");
    other[0]["prompt"] = json!("z = 1\n");
    place.write("others.jsonl", jsonl(&other));
    place.run(&two).failed().says(&[
        "line 1 was judged by model n with threshold 0, and those of labels.jsonl by model m",
    ]);
}
