//! Filling a prompt style within a budget of 2,048 tokens (512 right, 512 cross-file), and cutting a text of one megabyte.
//! `REPOFORMER_TOKENIZER=FILE` names a `tokenizer.json`; the default is the small one of the tests.

use std::path::PathBuf;
use std::sync::LazyLock;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use repoformer_core::prompt::style::{Budget, Parts, Style};
use repoformer_core::task::cross_file::{CrossFile, CrossFileFragment};
use repoformer_text::language::Language;
use repoformer_text::tokenize::model::Tokenizer;

use crate::support::corpus::SAMPLE;

static FILE: LazyLock<Tokenizer> = LazyLock::new(|| {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tokenizers/starcoder.json");
    let path = std::env::var_os("REPOFORMER_TOKENIZER").unwrap_or_else(|| fixture.into());
    Tokenizer::open(&PathBuf::from(path)).unwrap()
});

/// Text of the sample, repeated to one megabyte.
static TEXT: LazyLock<String> = LazyLock::new(|| {
    let files = SAMPLE.files.iter().cycle().map(|file| file.text.as_str());
    let mut text = String::new();
    for file in files {
        text.push_str(file);
        if text.len() >= 1 << 20 {
            break;
        }
    }
    text
});

fn fill(bencher: Bencher<'_, '_>, tokenizer: &Tokenizer) {
    let style: Style = "repoformer".parse().unwrap();
    let budget = Budget { total: 2048, left: None, right: Some(512), cross_file: Some(512) };
    let files = SAMPLE.files.iter().take(20);
    let fragments = files.clone().map(|file| CrossFileFragment {
        path: file.path.clone(),
        text: file.text.lines().take(10).collect::<Vec<_>>().join("\n"),
        score: None,
    });
    let context = CrossFile::new(fragments.take(10).collect(), Language::Python);
    let middle = TEXT.floor_char_boundary(TEXT.len() / 2);
    let holes: Vec<usize> = (0..20).map(|i| TEXT.floor_char_boundary(middle + 997 * i)).collect();
    bencher.counter(ItemsCount::new(holes.len())).bench(|| {
        let tokens = |&hole: &usize| {
            let parts = Parts {
                repository: "sample",
                path: "a.py",
                left: &TEXT[..hole],
                right: &TEXT[hole..],
                cross_file: &context,
                language: Language::Python,
            };
            style.fill(black_box(&parts), &budget, tokenizer).unwrap().tokens
        };
        holes.iter().map(tokens).sum::<usize>()
    });
}

#[divan::bench]
fn fill_p50k(bencher: Bencher<'_, '_>) {
    fill(bencher, &Tokenizer::p50k_base());
}

#[divan::bench]
fn fill_words(bencher: Bencher<'_, '_>) {
    fill(bencher, &Tokenizer::words());
}

#[divan::bench(sample_count = 10)]
fn fill_file(bencher: Bencher<'_, '_>) {
    fill(bencher, &FILE);
}

#[divan::bench(sample_count = 10)]
fn keep_end_of_a_megabyte_file(bencher: Bencher<'_, '_>) {
    bencher.bench(|| FILE.keep_end(black_box(&TEXT), 1024).len());
}

/// Measures the first step of the plain twin: counting all tokens.
#[divan::bench(sample_count = 3)]
fn count_a_megabyte_file(bencher: Bencher<'_, '_>) {
    bencher.bench(|| FILE.count(black_box(&TEXT)));
}
