//! Grouping of rows: signatures of near duplicates, and n-grams of benchmarks.

use std::path::Path;

use divan::Bencher;
use divan::counter::BytesCount;
use repoformer_core::task::TaskSet;
use repoformer_formats::group::decontaminate::Contamination;
use repoformer_formats::group::min_hash::{Signature, Signer};

use crate::support::corpus::{SAMPLE, bytes};

/// Measures the signature of all files, as if they were one repository.
#[divan::bench]
fn signature(bencher: Bencher<'_, '_>) {
    bencher.counter(BytesCount::new(bytes(&SAMPLE))).bench(|| -> Option<Signature> {
        let mut signer = Signer::default();
        SAMPLE.files.iter().for_each(|file| signer.add(&file.text));
        signer.finish()
    });
}

/// Measures the comparison of every file with the sample's reversed targets, so that each file is read to its end.
#[divan::bench]
fn contamination(bencher: Bencher<'_, '_>) {
    let mut tasks = TaskSet::read(Path::new("data/tasks/function.jsonl")).unwrap().set;
    for task in tasks.tasks_mut() {
        task.ground_truth = task.ground_truth.chars().rev().collect();
    }
    let found = Contamination::new(&[tasks]);
    bencher.counter(BytesCount::new(bytes(&SAMPLE))).bench(|| {
        let leaks = SAMPLE.files.iter().filter(|file| found.file(&file.text).is_some());
        assert_eq!(leaks.count(), 0);
    });
}
