//! RepoCoder's scores beside those its own program gave, pair by pair.
//!
//! `tests/fixtures/scores/pairs.jsonl` holds some rows of each small kind; all rows are compared where the environment
//! variable `REPOFORMER_FIXTURES` names a folder with `scores/pairs.jsonl.gz`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::Path;

use repoformer::jsonl;
use repoformer::metrics::repocoder::{Score, score};
use serde_json::Value;

/// What comparing a file gave.
#[derive(Debug, Default)]
struct Compared {
    equal: usize,
    /// Rows on which the program stops with an error.
    fixed: usize,
    kinds: BTreeSet<String>,
}

fn compare(path: &Path) -> Compared {
    let mut compared = Compared::default();
    for line in jsonl::open(path).unwrap().lines() {
        let line = line.unwrap();
        let row: Value = serde_json::from_str(&line).unwrap();
        let text = |name: &str| row[name].as_str().unwrap();
        let Score { em, es } = score(text("gt"), &[text("pred")]);
        let place = format!("row {} ({})", row["id"], text("kind"));
        assert_eq!(Value::from(em), row["rc_em"], "{place}: exact match");
        match &row["rc_es"] {
            Value::String(error) => {
                assert_eq!(error, "ERR:ZeroDivisionError", "{place}");
                assert_eq!(es, 1.0, "{place}: a target without lines");
                compared.fixed += 1;
            }
            // The same operations in the same order, so the same bits.
            _ => {
                assert_eq!(es, number(&line, "rc_es"), "{place}: edit similarity");
                compared.equal += 1;
            }
        }
        compared.kinds.insert(text("kind").to_owned());
    }
    compared
}

/// A number of the record to its last bit, which serde_json rounds away.
fn number(line: &str, name: &str) -> f64 {
    let value = line.split(&format!("\"{name}\": ")).nth(1).unwrap();
    let end = value.find([',', '}']).unwrap();
    value[..end].parse().unwrap()
}

#[test]
fn rows_of_the_reference() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scores/pairs.jsonl");
    let Compared {
        equal,
        fixed,
        kinds,
    } = compare(&path);
    assert_eq!((equal, fixed, kinds.len()), (139, 8, 35));
}

#[test]
#[ignore = "reads the folder that REPOFORMER_FIXTURES names"]
fn all_rows_of_the_reference() {
    let folder = std::env::var_os("REPOFORMER_FIXTURES").expect("REPOFORMER_FIXTURES is not set");
    let compared = compare(&Path::new(&folder).join("scores/pairs.jsonl.gz"));
    assert_eq!((compared.equal, compared.fixed), (2490, 48));
    println!("{compared:?}");
}
