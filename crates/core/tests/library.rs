//! The core with any choice of features: an operation that needs a disabled feature reports that.

use std::path::Path;

use repoformer_core::metrics::Metric;
use repoformer_core::prompt::style::{DecisionFrame, Style};
use repoformer_core::repository::corpus::{Listing, Repository, Walk};
use repoformer_core::store::artifact::OutputFile;
use repoformer_core::store::jsonl;
use repoformer_text::language::Language;
use repoformer_text::tokenize::model::{Encoder, Tokenizer};

fn project(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn the_core_needs_no_feature() {
    let reading = Repository::read(&project("data/repos"), "tidewatch", Language::Python).unwrap();
    assert!(reading.repository.files.len() > 3 && reading.skipped.is_empty());
    let p50k: Tokenizer = "p50k_base".parse().unwrap();
    assert_eq!(p50k.count("import numpy as np\n"), 6);
    let style: Style = "starcoder".parse().unwrap();
    assert!(DecisionFrame::new(&style, None, None).is_ok());
    let scores = Metric::RepoCoder.score("x = 1", &["x = 1"], Language::Python);
    assert_eq!(scores, [1.0, 1.0]);
}

/// Asserts that an outcome is good if the feature that it needs is on, and otherwise an error that names the feature.
#[track_caller]
fn needs<T, E: std::fmt::Display>(feature: &str, is_on: bool, outcome: Result<T, E>) {
    match (is_on, outcome) {
        (true, Ok(_)) => {}
        (true, Err(error)) => panic!("{error}"),
        (false, Ok(_)) => panic!("{feature} is off"),
        (false, Err(error)) => {
            let error = error.to_string();
            assert!(error.contains(&format!("lacks the feature `{feature}`")), "{error}");
        }
    }
}

#[test]
fn what_needs_a_feature_says_so() {
    let tokenizers = cfg!(feature = "tokenizers");
    let file = project("tests/fixtures/tokenizers/starcoder.json");
    needs("tokenizers", tokenizers, file.to_str().unwrap().parse::<Tokenizer>());
    needs("tokenizers", tokenizers, Encoder::open(&file, &["<cc>"]));
    let repos = project("data/repos");
    let listing = Listing::new(&repos, "tidewatch", Language::Python, Walk::Git);
    needs("gitignore", cfg!(feature = "gitignore"), listing);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.zst");
    needs("zstd", cfg!(feature = "zstd"), OutputFile::create(&file));
    // A zstd frame of an empty file.
    std::fs::write(&file, [0x28, 0xb5, 0x2f, 0xfd, 0x24, 0, 1, 0, 0, 0x99, 0xe9, 0xd8, 0x51])
        .unwrap();
    needs("zstd", cfg!(feature = "zstd"), jsonl::read(&file));
}
