//! Measurements that divan does not support: growth in one table, data and timings for other programs, and runs for counting
//! instructions. Times are CPU seconds of this thread, which a busy machine affects less.
//! `cargo bench --bench measure -- COMMAND`; see CONTRIBUTING.md.

#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use cpu_time::ProcessTime;
use repoformer_core::repository::fragment::RepoFragments;
use repoformer_core::retrieve::rank::Words;
use repoformer_core::retrieve::vector::TokenSets;
use repoformer_core::retrieve::{Level, Queries, Retrieval};
use repoformer_store::artifact::{self, Payload};
use repoformer_text::tokenize::{P50k, each_word};
use serde_json::json;
use support::chunks::{self, CHUNKS};
use support::corpus::{FUNCTION_TASKS, LINE_TASKS, PROMPTS, SAMPLE, SAMPLE_WINDOWS, pairs};
use support::figure::{Line, svg};
use support::growth::{GROWTH, sizes};
use support::memory::{Reading, read};
use support::sets::Sets;
use support::work::{self, Work};

const USAGE: &str = "\
usage: cargo bench --bench measure -- COMMAND
  growth [FILE]     µs a query at growing numbers of windows, next to an inverted index that adds up one term at a time; as an SVG figure
  levels            the same for every level of instructions that the machine has, and the index's size
  memory            how fast the machine reads, from its nearest cache to its memory
  artifacts CACHE   how long reading every artifact of a cache takes
  check             stop with an error if a plain twin finds anything else
  stage NAME RUNS   prepare NAME, run it RUNS times (0 counts the preparation alone)
  export DIR        write what peers in other languages need
  serve             answer lines `NAME [WINDOWS]` with a timing as JSON, until the input ends";

fn main() {
    support::one_thread();
    // Cargo adds the flag `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["growth"] => growth(None),
        ["growth", figure] => growth(Some(Path::new(figure))),
        ["levels"] => levels(),
        ["memory"] => memory(),
        ["artifacts", cache] => artifacts(Path::new(cache)),
        ["check"] => sizes().into_iter().for_each(work::check_twins),
        ["stage", name, runs] => stage(name, runs.parse().unwrap()),
        ["export", folder] => export(Path::new(folder)),
        ["serve"] => serve(),
        _ => eprintln!("{USAGE}\nNAME is one of {}", work::NAMES.join(", ")),
    }
}

fn seconds(work: &mut Work) -> f64 {
    let begin = ProcessTime::now();
    std::hint::black_box((work.run)());
    begin.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const ROUNDS: usize = 9;

/// Returns the median seconds per operation of each work. The works alternate, so that all run under the same conditions.
fn in_turn<const N: usize>(mut works: [Work; N]) -> [f64; N] {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..ROUNDS {
        for (work, times) in works.iter_mut().zip(&mut times) {
            times.push(seconds(work) / work.operations as f64);
        }
    }
    times.map(median)
}

/// Reads each artifact in a folder into the form that the program uses.
fn artifacts(cache: &Path) {
    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_hidden = path.file_name().unwrap().as_encoded_bytes()[0] == b'.';
            if is_hidden {
                continue;
            }
            if path.is_dir() {
                files(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    fn content<T: Payload>(path: &Path) {
        std::hint::black_box(artifact::read::<T>(path).unwrap());
    }
    let mut found = Vec::new();
    files(cache, &mut found);
    let mut bytes = 0;
    let read = || {
        let begin = ProcessTime::now();
        bytes = 0;
        for path in &found {
            bytes += fs::metadata(path).unwrap().len();
            if path.extension().is_some_and(|end| end == "jsonl") {
                std::hint::black_box(artifact::read_jsonl(path).unwrap());
                continue;
            }
            match &*artifact::read_header(path).unwrap().identity.kind {
                RepoFragments::KIND => content::<RepoFragments>(path),
                Queries::KIND => content::<Queries>(path),
                TokenSets::KIND => content::<TokenSets>(path),
                Words::KIND => content::<Words>(path),
                Retrieval::KIND => content::<Retrieval>(path),
                other => panic!("{}: holds {other}", path.display()),
            }
        }
        begin.elapsed().as_secs_f64()
    };
    let time = median(std::iter::repeat_with(read).take(ROUNDS).collect());
    let (files, bytes) = (found.len(), bytes as f64 / 1e6);
    println!("{files} artifacts of {bytes:.1} MB are read in {time:.3} CPU s");
}

fn head(columns: &[&str]) {
    println!("| {} |", columns.join(" | "));
    println!("|{}", "---|".repeat(columns.len()));
}

/// Prints the times of our index and of its twin.
fn growth(figure: Option<&Path>) {
    const COLUMNS: [&str; 4] = ["index", "batch", "one-query", "term-at-a-time"];
    head(&[
        "windows", "index, µs/window", "batch, µs/query", "one query, µs", "a term at a time, µs",
    ]);
    let mut points: Vec<(f64, [f64; 4])> = Vec::new();
    for size in sizes() {
        work::check_twins(size);
        let works = COLUMNS.map(|name| work::prepare(name, size).unwrap());
        let row = in_turn(works).map(|seconds| seconds * 1e6);
        let [index, batch, one, term] = row;
        println!("| {size} | {index:.3} | {batch:.1} | {one:.1} | {term:.1} |");
        points.push((size as f64, row));
    }
    if points.len() > 1 {
        let slope = |column: usize| {
            let points: Vec<_> =
                points.iter().map(|(n, row)| (libm::log(*n), libm::log(row[column]))).collect();
            format!("{:.2}", slope(&points))
        };
        let slopes = [slope(1), slope(2), slope(3)].join(" | ");
        println!("| slope, log-log | | {slopes} |");
    }
    let line = |name, colour, column: usize| Line {
        name,
        colour,
        points: points.iter().map(|(n, row)| (*n, row[column])).collect(),
    };
    let lines = [
        line("a term at a time", "#888888", 3),
        line("one query", "#d97706", 2),
        line("batch", "#1d4ed8", 1),
    ];
    if let Some(path) = figure {
        fs::write(path, svg(&lines)).unwrap();
    }
}

/// Prints the time of each level of instructions in µs per query, and how many times faster it is than the twin.
fn levels() {
    head(&[
        "windows", "instructions", "batch, µs/query", "faster", "one query, µs", "faster",
        "a term at a time, µs", "index, µs/window", "index, bytes/window",
    ]);
    for size in sizes() {
        work::check_twins(size);
        let bytes = work::searcher(size).bytes() as f64 / size as f64;
        for level in Level::available() {
            let searcher = || work::searcher(size).with_level(level);
            let [batch, one, term, index] = in_turn([
                work::batch(searcher()),
                work::one_query(searcher()),
                work::prepare("term-at-a-time", size).unwrap(),
                work::prepare("index", size).unwrap(),
            ])
            .map(|seconds| seconds * 1e6);
            let (batched, single) = (term / batch, term / one);
            println!(
                "| {size} | {level} | {batch:.1} | {batched:.1} | {one:.1} | {single:.1} | {term:.1} | {index:.3} | {bytes:.0} |"
            );
        }
    }
}

/// Prints the speed of reading data of sizes from the nearest cache to main memory.
fn memory() {
    head(&["KiB", "in order, GB/s", "scattered lines, GB/s", "line after line, ns"]);
    for kib in [16, 512, 2 << 10, 8 << 10, 16 << 10, 128 << 10, 512 << 10] {
        let Reading { in_order, scattered, one_by_one } = read(kib << 10);
        let (in_order, scattered) = (in_order / 1e9, scattered / 1e9);
        let nanoseconds = one_by_one * 1e9;
        println!("| {kib} | {in_order:.1} | {scattered:.1} | {nanoseconds:.1} |");
    }
}

/// Returns the slope of the least-squares line.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let (mut above, mut below) = (0.0, 0.0);
    for point in points {
        above += (point.0 - x) * (point.1 - y);
        below += (point.0 - x).powi(2);
    }
    above / below
}

fn stage(name: &str, runs: usize) {
    let mut work = work::prepare(name, sizes()[0]).expect("a name that `measure` lists");
    let sum: usize = (0..runs).map(|_| (work.run)()).sum();
    println!("{} {} {sum}", work.operations, work.unit);
}

fn serve() {
    let mut prepared: HashMap<String, Work> = HashMap::new();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let (name, size) = line.split_once(' ').unwrap_or((&line, "0"));
        let work = prepared.entry(line.clone()).or_insert_with(|| {
            work::prepare(name, size.parse().unwrap()).expect("a name that `measure` lists")
        });
        let begin = ProcessTime::now();
        let (mut runs, mut result) = (0, 0);
        while runs == 0 || begin.elapsed().as_secs_f64() < 0.05 {
            result = (work.run)();
            runs += 1;
        }
        let seconds = begin.elapsed().as_secs_f64() / f64::from(runs) / work.operations as f64;
        let answer = json!({"seconds": seconds, "operations": work.operations, "result": result});
        writeln!(out, "{answer}").unwrap();
        out.flush().unwrap();
    }
}

/// Writes token sets and results as little-endian numbers, and texts as JSON.
fn export(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let json = |name: &str, value: serde_json::Value| {
        fs::write(folder.join(name), value.to_string()).unwrap();
    };
    let sizes = sizes();
    write_sets(folder, "windows", &GROWTH.sets);
    write_sets(folder, "queries", &Sets::of(&GROWTH.queries));
    for &size in &sizes {
        let mut searcher = work::searcher(size);
        let found: Vec<Vec<_>> = searcher
            .batch()
            .iter()
            .map(|hits| hits.iter().map(|hit| (hit.window, hit.overlap, hit.union)).collect())
            .collect();
        json(&format!("found.{size}.json"), json!(found));
    }
    let files: Vec<&str> = SAMPLE.files.iter().map(|file| file.text.as_str()).collect();
    let windows: Vec<&str> = (0..SAMPLE_WINDOWS.len()).map(|w| SAMPLE_WINDOWS.text(w)).collect();
    json("sizes.json", json!(sizes));
    let words = |text: &str| {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word.to_owned()));
        words
    };
    let chunks = CHUNKS.texts(chunks::sizes()[chunks::sizes().len() - 1]);
    json("chunk_sizes.json", json!(chunks::sizes()));
    json("chunks.json", chunks.into_iter().map(words).collect());
    json("chunk_queries.json", CHUNKS.queries().iter().map(|query| words(query)).collect());
    json("files.json", json!(files));
    json("window_texts.json", json!(windows));
    json("prompts.json", json!(*PROMPTS));
    json("lines.json", json!(pairs(LINE_TASKS.tasks())));
    json("bodies.json", json!(pairs(&FUNCTION_TASKS)));
    // The vocabulary, which tiktoken would download otherwise: the bytes of each id except the end of text.
    let ids = 0..P50k::VOCABULARY as u16;
    let ranks: Vec<_> = ids.filter(|id| *id != 50_256).map(|id| (P50k.decode(&[id]), id)).collect();
    json("ranks.json", json!(ranks));
}

fn write_sets(folder: &Path, name: &str, sets: &Sets) {
    let first: Vec<u8> = sets.first.iter().flat_map(|n| n.to_le_bytes()).collect();
    let tokens: Vec<u8> = sets.tokens.iter().flat_map(|n| n.to_le_bytes()).collect();
    fs::write(folder.join(format!("{name}.first.u32")), first).unwrap();
    fs::write(folder.join(format!("{name}.tokens.u16")), tokens).unwrap();
}
