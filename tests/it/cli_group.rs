//! `group`: rows of every kind become the same repositories, whatever is broken, killed, full or run twice.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use repoformer_core::repository::Shard;
use serde_json::{Value, json};

use crate::support::{Place, Ran, jsonl};

/// A row of The Stack: repository, path, text, stars.
type Row<'a> = (&'a str, &'a str, &'a [u8], Option<i64>);

/// Writes rows as The Stack's Parquet has them, so many to a row group.
fn stack(place: &Place, name: &str, rows: &[Row<'_>], at_once: usize, compression: Compression) {
    let text = |name: &str| {
        let builder = Type::primitive_type_builder(name, PhysicalType::BYTE_ARRAY);
        let builder = builder.with_logical_type(Some(LogicalType::String));
        Arc::new(builder.with_repetition(Repetition::REQUIRED).build().unwrap())
    };
    let stars = Type::primitive_type_builder("max_stars_count", PhysicalType::INT64)
        .with_repetition(Repetition::OPTIONAL);
    let fields = vec![
        text("hexsha"),
        text("lang"),
        text("max_stars_repo_path"),
        text("max_stars_repo_name"),
        Arc::new(stars.build().unwrap()),
        text("content"),
    ];
    let schema = Type::group_type_builder("schema").with_fields(fields).build().unwrap();
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(false)
        .build();
    place.write(name, "");
    let file = File::create(place.path(name)).unwrap();
    let mut writer =
        SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).unwrap();
    for rows in rows.chunks(at_once) {
        let mut group = writer.next_row_group().unwrap();
        let mut texts = |of: &dyn Fn(&Row<'_>) -> Vec<u8>| {
            let values: Vec<ByteArray> = rows.iter().map(|row| of(row).into()).collect();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
            column.close().unwrap();
        };
        texts(&|_| b"hash".to_vec());
        texts(&|_| b"Python".to_vec());
        texts(&|row| row.1.as_bytes().to_vec());
        texts(&|row| row.0.as_bytes().to_vec());
        let present: Vec<i16> = rows.iter().map(|row| i16::from(row.3.is_some())).collect();
        let values: Vec<i64> = rows.iter().filter_map(|row| row.3).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&values, Some(&present), None).unwrap();
        column.close().unwrap();
        let values: Vec<ByteArray> = rows.iter().map(|row| row.2.to_vec().into()).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
}

/// The repositories of an output folder, in the order of the shards.
fn repositories(place: &Place, folder: &str) -> Vec<Value> {
    let record: Value = serde_json::from_str(&place.read(&format!("{folder}/group.json"))).unwrap();
    let mut all = Vec::new();
    for shard in record["shards"].as_array().unwrap() {
        let path = place.path(folder).join(shard["name"].as_str().unwrap());
        let text = zstd::decode_all(File::open(path).unwrap()).unwrap();
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        all.extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
    }
    all
}

/// Every file of the output and its bytes; nothing is hidden in it.
fn output(place: &Place, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(place.path(folder)).unwrap().map(|entry| entry.unwrap());
    let files = entries.map(|entry| {
        let name = entry.file_name().into_string().unwrap();
        assert!(!name.starts_with('.'), "{name} is left");
        (name, std::fs::read(entry.path()).unwrap())
    });
    files.collect()
}

/// Sixteen words of their own for a number and a line, so that no two texts are nearly the same.
fn words(number: usize, line: usize) -> String {
    let digest = blake3::hash(format!("{number} {line}").as_bytes()).to_hex();
    let letter = |digit: char| char::from(b'a' + digit.to_digit(16).unwrap_or(0) as u8);
    let letters: Vec<String> = digest.chars().map(|digit| letter(digit).to_string()).collect();
    letters.chunks(4).map(|word| word.concat()).collect::<Vec<_>>().join(" ") + "\n"
}

/// Rows of 40 repositories of 3 files each, in no order.
fn many() -> Vec<(String, String, String)> {
    let mut rows = Vec::new();
    for file in 0..3 {
        for number in 0..40 {
            let number = number * 7 % 40;
            let text = (0..20 + file).map(|line| words(number, line)).collect();
            rows.push((format!("o{}/r{number}", number % 5), format!("p/f{file}.py"), text));
        }
    }
    rows
}

fn many_in_two_files(place: &Place) {
    let rows = many();
    let rows: Vec<Row<'_>> = rows
        .iter()
        .map(|(name, path, text)| (&**name, &**path, text.as_bytes(), Some(3)))
        .collect();
    stack(place, "in/a.parquet", &rows[..70], 30, Compression::SNAPPY);
    stack(place, "in/b.parquet", &rows[70..], 50, Compression::UNCOMPRESSED);
}

/// Expectations by hand.
#[test]
fn rows_of_every_kind_become_the_same_repositories() {
    let place = Place::empty();
    let rows: [Row<'_>; 4] = [
        ("b/two", "z.py", b"z\n", None),
        ("a/one", "lib/x.py", b"<reponame>a/one<gh_stars>1-10\nx\n", Some(4)),
        ("a/one", "a.py", b"a\n", Some(9)),
        ("a/one", "README.md", b"# one\n", Some(9)),
    ];
    stack(&place, "snappy.parquet", &rows, 2, Compression::SNAPPY);
    stack(&place, "zstd.parquet", &rows, 9, Compression::ZSTD(Default::default()));
    stack(&place, "gzip.parquet", &rows, 9, Compression::GZIP(Default::default()));
    let file = |name: &str, path: &str, text: &str, stars: u64| json!({"repo_name": name, "path": path, "code": text, "stars": stars, "size": 1});
    let lines = jsonl(&[
        file("b/two", "/z.py", "z\n", 0),
        file("a/one", "lib/x.py", "x\n", 4),
        file("a/one", "a.py", "a\n", 9),
        file("a/one", "README.md", "# one\n", 9),
    ]);
    place.write("rows.jsonl", &lines);
    place.write("rows.jsonl.zst", zstd::encode_all(lines.as_bytes(), 1).unwrap());
    let raw = [
        json!({"repo_name": "a/one", "stars_count": 9, "files": [
            {"filepath": "lib/x.py", "content": "x\n", "metadata": {"lang": "Python"}},
            {"filepath": "a.py", "content": "a\n"}, {"filepath": "README.md", "content": "# one\n"}]}),
        json!({"repo_name": "b/two", "stars_count": null, "files": [{"filepath": "z.py", "content": "z\n"}]}),
    ];
    place.write("raw", jsonl(&raw));
    let wanted = [
        json!({"repo_name": "a/one", "stars_count": 9, "files": [
            {"filepath": "a.py", "content": "a\n"}, {"filepath": "lib/x.py", "content": "x\n"}]}),
        json!({"repo_name": "b/two", "stars_count": 0, "files": [{"filepath": "z.py", "content": "z\n"}]}),
    ];
    let inputs =
        ["snappy.parquet", "zstd.parquet", "gzip.parquet", "rows.jsonl", "rows.jsonl.zst", "raw"];
    for input in inputs {
        let folder = format!("out-{input}");
        let ran = place.run(&["group", input, "--shards", "1", "-o", &folder]).done();
        assert_eq!(repositories(&place, &folder), wanted, "{input}");
        let said = "group: 1 file left out: in other languages";
        assert!(ran.stderr.contains(said), "{input}: {}", ran.stderr);
        assert_eq!(ran.stderr.contains("a StarCoderData mark"), input.ends_with(".parquet"));
    }
    // A file that is read again and again gives no file twice.
    let ran = place.run(&["group", "rows.jsonl", "raw", "--shards", "1", "-o", "both"]).done();
    assert_eq!(repositories(&place, "both"), wanted);
    assert!(ran.stderr.contains("3 files left out: repeated with the same path and text"));
}

/// `tests/fixtures/group/make.py` wrote it.
#[test]
fn lists_of_pyarrow_are_read_and_their_gaps_are_named() {
    let place = Place::empty();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/group/nested.parquet");
    let ran = place.run(&["group", fixture, "--shards", "1", "-o", "out"]).partly();
    let wanted = [
        json!({"repo_name": "ann/one", "stars_count": 12, "files": [
            {"filepath": "a.py", "content": "a = 1\n"}, {"filepath": "src/b.py", "content": "b = 2\n"}]}),
        json!({"repo_name": "dee/two", "stars_count": 0, "files": [
            {"filepath": "m.go", "content": "package m\n"}, {"filepath": "n.py", "content": "é\n"}]}),
        json!({"repo_name": "eve/gap", "stars_count": 3, "files": [{"filepath": "here.py", "content": "h\n"}]}),
    ];
    assert_eq!(repositories(&place, "out"), wanted);
    for said in
        ["nested.parquet: row 3: has no repository name", "row 6: eve/gap: /gone.py: has no text"]
    {
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    let ran =
        place.run(&["group", fixture, "--shards", "1", "--language", "go", "-o", "go"]).partly();
    assert_eq!(repositories(&place, "go").len(), 1, "{}", ran.stderr);
}

#[test]
fn a_compression_that_is_not_read_is_named_with_those_that_are() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/group");
    for codec in ["lz4", "brotli"] {
        let (place, file) = (Place::empty(), format!("{fixtures}/{codec}.parquet"));
        let nested = format!("{fixtures}/nested.parquet");
        let ran = place.run(&["group", &file, &nested, "--shards", "1", "-o", "out"]).partly();
        let said = format!(
            "{codec}.parquet: row group 1: rows 1 to 1 are lost: compressed with {codec}, which is \
             not supported; write the file again with Snappy, zstd, gzip or no compression"
        );
        assert!(ran.stderr.contains(&said), "{}", ran.stderr);
        assert_eq!(repositories(&place, "out").len(), 3, "the other file's");
    }
}

#[test]
fn archives_become_repositories_as_convert_makes_them() {
    let place = Place::new();
    place.write("repos/alpha/setup.py", "");
    place.write("repos/beta/setup.py", "");
    place
        .shell("tar -cf all.tar -C repos alpha beta && tar -czf alpha.tar.gz -C repos/alpha .")
        .done();
    place.run(&["convert", "all.tar", "--to", "repos", "-o", "folders"]).done();
    place.run(&["convert", "--repos-dir", "folders", "--to", "raw", "-o", "raw.jsonl"]).done();
    place.run(&["group", "all.tar", "--shards", "1", "-o", "out"]).done();
    let names = |files: &Value| {
        let files = files.as_array().unwrap().iter();
        files.map(|file| (file["filepath"].clone(), file["content"].clone())).collect::<Vec<_>>()
    };
    let (ours, theirs) = (repositories(&place, "out"), place.records("raw.jsonl"));
    assert_eq!(ours.len(), 2);
    for (one, other) in ours.iter().zip(&theirs) {
        assert_eq!(one["repo_name"], other["repo_name"]);
        assert_eq!(names(&one["files"]), names(&other["files"]));
    }
    place.run(&["group", "alpha.tar.gz", "--shards", "1", "-o", "one"]).done();
    assert_eq!(repositories(&place, "one")[0]["repo_name"], "alpha");
}

/// Which shard a repository is in, and that `label sample --shard` draws from no other, depends on its folder's name alone.
#[test]
fn shards_hold_what_shard_draws_and_bytes_depend_on_no_thread() {
    let place = Place::empty();
    many_in_two_files(&place);
    let args = ["group", "in", "--shards", "4", "--threads"];
    place.run(&[&args[..], &["1", "-o", "one"]].concat()).done();
    place.run(&[&args[..], &["4", "-o", "four"]].concat()).done();
    assert_eq!(output(&place, "one"), output(&place, "four"));
    let record: Value = serde_json::from_str(&place.read("one/group.json")).unwrap();
    let mut seen = 0;
    for (index, shard) in (0..).zip(record["shards"].as_array().unwrap()) {
        let path = place.path("one").join(shard["name"].as_str().unwrap());
        let text = String::from_utf8(zstd::decode_all(File::open(path).unwrap()).unwrap()).unwrap();
        let names: Vec<String> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|record| record["repo_name"].as_str().unwrap().to_owned())
            .collect();
        assert!(names.is_sorted());
        let shard = Shard { index, count: 4 };
        assert!(names.iter().all(|name| shard.holds(&name.replace('/', "_"))));
        seen += names.len();
    }
    assert_eq!(seen, 40);
    // A second time, nothing is done; other settings and inputs are refused.
    let before = output(&place, "one");
    let again = place.run(&[&args[..], &["1", "-o", "one"]].concat()).done();
    assert!(again.stderr.contains("group: one is up to date: 4 shards"), "{}", again.stderr);
    let other = place.run(&["group", "in", "--shards", "5", "-o", "one"]).failed();
    assert!(other.stderr.contains("holds repositories with shards 4, not 5"), "{}", other.stderr);
    let fewer = place.run(&["group", "in/a.parquet", "--shards", "4", "-o", "one"]).failed();
    assert!(fewer.stderr.contains("of 2 input files, not 1"), "{}", fewer.stderr);
    assert_eq!(output(&place, "one"), before);
    std::fs::remove_file(place.path("one/shard-00002-of-00004.jsonl.zst")).unwrap();
    let lost = place.run(&[&args[..], &["1", "-o", "one"]].concat()).failed();
    assert!(lost.stderr.contains("shard-00002-of-00004.jsonl.zst: is missing"), "{}", lost.stderr);
}

/// Of two files with one path the first input's stays; of equal repositories the one with the most stars.
#[test]
fn duplicates_are_dropped_and_listed() {
    let place = Place::empty();
    let row = |name: &str, path: &str, text: &str, stars: u64| json!({"repo_name": name, "path": path, "content": text, "stars_count": stars});
    place.write(
        "a.jsonl",
        jsonl(&[
            row("a/x", "f.py", "1", 1),
            row("b/x", "f.py", "1", 5),
            row("c/x", "f.py", "2", 0),
        ]),
    );
    place.write("b.jsonl", jsonl(&[row("c/x", "f.py", "other", 0)]));
    let ran = place.run(&["group", "a.jsonl", "b.jsonl", "--shards", "2", "-o", "out"]).done();
    let names = |folder: &str| {
        let mut names: Vec<(String, String)> = repositories(&place, folder)
            .iter()
            .map(|one| (one["repo_name"].to_string(), one["files"][0]["content"].to_string()))
            .collect();
        names.sort();
        names
    };
    let pair = |one: &str, other: &str| (format!("\"{one}\""), format!("\"{other}\""));
    assert_eq!(names("out"), [pair("b/x", "1"), pair("c/x", "2")]);
    let dropped = json!({"repo_name": "a/x", "reason": "exact-duplicate", "of": "b/x"});
    assert_eq!(place.records("out/dropped.jsonl"), [dropped]);
    assert!(
        ran.stderr.contains("1 file left out: repeated with the same path and a different text")
    );
    assert!(ran.stderr.contains("1 repository left out: same files as another repository"));
    place
        .run(&["group", "b.jsonl", "a.jsonl", "--dedup", "none", "--shards", "2", "-o", "all"])
        .done();
    assert_eq!(names("all"), [pair("a/x", "1"), pair("b/x", "1"), pair("c/x", "other")]);
}

/// The tasks of `Place::new` are of alpha and beta; their targets have three words, and reach into the
/// left context; that of alpha/0 is two lines long, too short.
#[test]
fn repositories_and_targets_of_a_benchmark_are_left_out() {
    let place = Place::new();
    let leak = "view_17 = view(17)\nview_18 = view(18)\nview_19 = view(19)\nview_20 = view(20)\n";
    let row = |name: &str, path: &str, text: &str| json!({"repo_name": name, "path": path, "content": text});
    place.write(
        "rows.jsonl",
        jsonl(&[
            row("o/alpha", "a.py", "x = 1\n"),
            row("p/fork", "leak.py", &format!("import os\n\n{leak}")),
            row("p/fork", "own.py", "y = 2\n"),
            row("q/none", "leak.py", leak),
            row("r/other", "a.py", "z = view(20)\n"),
        ]),
    );
    let args =
        ["group", "rows.jsonl", "--decontaminate", "tasks.jsonl", "--shards", "1", "-o", "out"];
    let ran = place.run(&args).done();
    let kept: Vec<_> = repositories(&place, "out")
        .iter()
        .map(|one| (one["repo_name"].clone(), one["files"].as_array().unwrap().len()))
        .collect();
    assert_eq!(kept, [(json!("p/fork"), 1), (json!("r/other"), 1)], "{}", ran.stderr);
    let dropped: Vec<_> = place
        .records("out/dropped.jsonl")
        .iter()
        .map(|one| (one["repo_name"].clone(), one["filepath"].clone(), one["of"].clone()))
        .collect();
    let [repository, task] =
        ["alpha/0", "alpha/1"].map(|id| json!(format!("task {id} of tasks.jsonl")));
    let wanted = [
        (json!("o/alpha"), json!(null), repository),
        (json!("p/fork"), json!("leak.py"), task.clone()),
        (json!("q/none"), json!("leak.py"), task),
    ];
    assert_eq!(dropped, wanted);
    assert!(ran.stderr.contains("1 repository left out: used by tasks"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("2 files left out: with the text of a task's target"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("the targets of 1 task have too few words"), "{}", ran.stderr);
    place.write("other.jsonl", jsonl(&place.records("tasks.jsonl")[..1]));
    let other =
        ["group", "rows.jsonl", "--decontaminate", "other.jsonl", "--shards", "1", "-o", "out"];
    assert!(place.run(&other).failed().stderr.contains("with decontaminate"));
}

/// A bad row, page, row group or file loses nothing else, and is named.
#[test]
fn what_is_broken_is_named_and_the_rest_is_read() {
    let place = Place::empty();
    let rows = many();
    let rows: Vec<Row<'_>> =
        rows.iter().map(|(name, path, text)| (&**name, &**path, text.as_bytes(), None)).collect();
    stack(&place, "damaged.parquet", &rows, 40, Compression::ZSTD(Default::default()));
    let mut bytes = std::fs::read(place.path("damaged.parquet")).unwrap();
    // The second of three row groups: its zstd frames are no longer.
    let frames: Vec<usize> = (0..bytes.len() - 4)
        .filter(|at| bytes[*at..].starts_with(&[0x28, 0xb5, 0x2f, 0xfd]))
        .collect();
    assert_eq!(frames.len(), 18, "six columns of three groups");
    bytes[frames[11]] = 0;
    place.write("damaged.parquet", &bytes);
    place.write("cut.parquet", &bytes[..bytes.len() - 10]);
    stack(
        &place,
        "bad.parquet",
        &[
            ("a/ok", "x.py", b"ok\n", None),
            ("a/bad", "../x.py", b"", None),
            ("a/bad", "y.py", b"ok\n\xff", None),
            ("../bad", "y.py", b"", None),
        ],
        9,
        Compression::SNAPPY,
    );
    place.write("names.jsonl", "{\"name\": 1}\n[1]\n{\"repo_name\": \"b/ok\", \"path\": \"x.py\", \"content\": 1}\n{\"repo_name\": \"b/ok\", \"path\": \"x.py\", \"content\": \"\"}\n{");
    place.write("ids.jsonl", "{\"repo_name\": \"b/ok\", \"path\": \"x.py\", \"blob_id\": \"1\"}\n");
    place.write("empty.jsonl", "");
    let inputs = [
        "damaged.parquet", "cut.parquet", "bad.parquet", "names.jsonl", "ids.jsonl", "empty.jsonl",
    ];
    let args = [&["group", "-v"][..], &inputs, &["--shards", "1", "-o", "out"]].concat();
    let ran = place.run(&args).partly();
    for said in [
        "damaged.parquet: row group 2: rows 41 to 80 are lost: ",
        "cut.parquet: cannot read this Parquet table: ",
        "bad.parquet: row 2: a/bad: ../x.py: leads out of the repository",
        "bad.parquet: row 3: a/bad: y.py: not UTF-8 (its line 2)",
        "bad.parquet: row 4: ../bad: y.py: leads out of the repository",
        "names.jsonl:1: the fields 'max_stars_repo_name', 'repo_name'",
        "names.jsonl:2: a JSON object is expected, not a list",
        "names.jsonl:3: field 'content' must be a string, not a number",
        "names.jsonl:5: not JSON",
        "The Stack v2 has no texts, only their `blob_id`",
        "empty.jsonl: is empty",
    ] {
        assert!(ran.stderr.contains(said), "{said}\n{}", ran.stderr);
    }
    let found = repositories(&place, "out");
    let files = found.iter().map(|one| one["files"].as_array().unwrap().len());
    assert_eq!((found.len(), files.sum::<usize>()), (42, 82));
    let again = place.run(&args).partly();
    assert!(again.stderr.contains("is up to date"), "{}", again.stderr);
}

/// A repository over the limit, in file rows, in a list of Parquet or on a line, is named; the others stay.
#[test]
fn a_repository_over_the_limit_is_named_alone() {
    let place = Place::empty();
    let long = "x".repeat(700 << 10);
    let file = |path: &str| json!({"path": path, "content": long});
    let large = [
        json!({"repo_name": "a/large", "files": [file("a.py"), file("b.py")]}),
        json!({"repo_name": "b/small", "files": [file("a.py")]}),
    ];
    place.write("large.jsonl", jsonl(&large));
    let rows: Vec<Row<'_>> = vec![
        ("a/large", "a.py", long.as_bytes(), None),
        ("a/large", "b.py", long.as_bytes(), None),
        ("b/small", "a.py", long.as_bytes(), None),
    ];
    stack(&place, "large.parquet", &rows, 9, Compression::SNAPPY);
    for input in ["large.jsonl", "large.parquet"] {
        let folder = format!("out-{input}");
        let args = ["group", input, "--max-repository", "1", "--shards", "1", "-o", &folder];
        let ran = place.run(&args).partly();
        let said = "repository a/large: left out: more than 1 MiB";
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        let found = repositories(&place, &folder);
        assert_eq!((found.len(), &found[0]["repo_name"]), (1, &json!("b/small")));
    }
}

#[test]
fn a_second_process_is_refused() {
    let place = Place::empty();
    many_in_two_files(&place);
    std::fs::create_dir_all(place.path("out/.group")).unwrap();
    let lock = File::create(place.path("out/.group/lock")).unwrap();
    lock.lock().unwrap();
    let ran = place.run(&["group", "in", "-o", "out"]).failed();
    assert!(ran.stderr.contains("another process is grouping into this folder"), "{}", ran.stderr);
    drop(lock);
    place.run(&["group", "in", "-o", "out"]).done();
    place.write("mine/shard-x", "");
    let ran = place.run(&["group", "in", "-o", "mine"]).failed();
    assert!(
        ran.stderr.contains("already exists, but does not belong to this run"),
        "{}",
        ran.stderr
    );
}

/// Killed before every third call that changes files, or with a full disk from there on: the same command ends the work, and the bytes
/// are those of an undisturbed run.
#[test]
fn interrupted_work_goes_on_to_the_same_bytes() {
    let place = Place::empty();
    many_in_two_files(&place);
    let args = ["group", "in", "--shards", "2", "--threads", "1", "-o", "out"];
    let whole = {
        place.run(&args).done();
        output(&place, "out")
    };
    for (kind, lasts) in [("kill", ""), ("enospc", "+")] {
        let mut ends = 0;
        for number in (1..).step_by(3) {
            place.shell("rm -rf out").done();
            let fault = format!("{kind}:{number}{lasts}");
            let ran = Ran::new(place.command(&args).env("FAULTY_CALL", &fault).output().unwrap());
            if ran.code == Some(0) {
                break;
            }
            ends += 1;
            if kind == "enospc" {
                assert!(
                    ran.stderr.contains("No space left") || ran.stderr.contains("os error 28"),
                    "{}",
                    ran.stderr
                );
            }
            place.run(&args).done();
            assert_eq!(output(&place, "out"), whole, "{fault}");
        }
        assert!(ends > 5, "{kind}: {ends}");
    }
}

/// Inputs that were read before the program was killed are not read again, and others are refused meanwhile.
#[test]
fn finished_inputs_are_not_read_again() {
    let place = Place::empty();
    many_in_two_files(&place);
    let args = ["group", "in", "--shards", "2", "--threads", "1", "-o", "out"];
    // The last call before a shard is in its place.
    let at = (1..)
        .find(|number| {
            place.shell("rm -rf out").done();
            let fault = format!("kill:{number}");
            let ran = Ran::new(place.command(&args).env("FAULTY_CALL", fault).output().unwrap());
            assert_ne!(ran.code, Some(0), "no call left a unit alone");
            place.path("out/.group/unit-00001.json").exists()
        })
        .unwrap();
    assert!(at > 3);
    let other = place.run(&["group", "in/a.parquet", "--shards", "2", "-o", "out"]).failed();
    assert!(
        other.stderr.contains("holds unfinished work of 2 input files, not 1"),
        "{}",
        other.stderr
    );
    let ran = place.run(&args).done();
    assert!(ran.stderr.contains("group: resuming after 2 inputs"), "{}", ran.stderr);
}

#[test]
fn finished_output_that_was_changed_is_refused() {
    let place = Place::empty();
    many_in_two_files(&place);
    let group = ["group", "in", "--shards", "2", "-o", "out"];
    place.run(&group).done();
    assert!(place.run(&group).done().stderr.contains("is up to date"));
    for name in ["dropped.jsonl", "shard-00002-of-00002.jsonl.zst"] {
        let path = place.path(&format!("out/{name}"));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&bytes[..], b"{}\n"].concat()).unwrap();
        let ran = place.run(&group).failed();
        let said = format!("out/{name}: is missing or was changed");
        assert!(ran.stderr.contains(&said), "{}", ran.stderr);
        std::fs::write(&path, bytes).unwrap();
    }
    place.run(&group).done();
}

/// JSON lines of one million files of one repository are read within the limits of a small one.
#[test]
fn a_line_longer_than_any_repository_is_left_out() {
    let place = Place::empty();
    let mut file = File::create(place.path("long.jsonl")).unwrap();
    let part = vec![b' '; 1 << 20];
    file.write_all(b"{\"repo_name\": \"a/b\",").unwrap();
    for _ in 0..70 {
        file.write_all(&part).unwrap();
    }
    file.write_all(b"\"files\": []}\n{\"repo_name\":\"c/d\",\"path\":\"x.py\",\"content\":\"\"}\n")
        .unwrap();
    let ran = place.run(&["group", "long.jsonl", "--max-repository", "1", "-o", "out"]).partly();
    assert!(ran.stderr.contains("long.jsonl:1: left out: longer than 66 MiB"), "{}", ran.stderr);
    assert_eq!(repositories(&place, "out").len(), 1);
}

/// Somebody else may have written the record of a folder.
#[test]
fn a_record_of_shards_names_no_file_elsewhere() {
    let place = Place::empty();
    place.write("private/raw.jsonl", "{\"repo_name\": \"a/b\", \"files\": []}\n");
    place.shell("mkdir theirs; ln -s ../private/raw.jsonl theirs/link; mkfifo theirs/pipe").done();
    let absolute = place.path("private/raw.jsonl");
    for name in ["../private/raw.jsonl", absolute.to_str().unwrap(), "link", "pipe", "..", "none"] {
        let shards = json!([{"name": name, "digest": "0"}]);
        let record = json!({"format": 2, "settings": {"language": "python"}, "shards": shards});
        place.write("theirs/group.json", record.to_string());
        place
            .shell("timeout 20 repoformer label sample --raw theirs")
            .failed()
            .says(&[&format!("its shard {name} is not a file in this folder")]);
    }
}
