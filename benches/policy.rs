//! Decisions of the learned policies, from text to probability: for each label of `REPOFORMER_LABELS=FILE`, or for holes in the
//! sample's files. `-- policy` runs only these.

use std::path::Path;
use std::sync::LazyLock;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use repoformer_core::label::{Label, Signals};
use repoformer_core::policy::features::Request;
use repoformer_core::policy::model::{CalibrationMethod, LearnedPolicy, PolicyModel, train};
use repoformer_core::policy::{CompletionScores, Example, Examples};
use repoformer_core::task::cross_file::CrossFileFragment;
use repoformer_store::jsonl;
use repoformer_text::language::Language;

use crate::support::corpus::SAMPLE;

struct Hole {
    left: String,
    right: String,
    path: String,
    fragments: Vec<CrossFileFragment>,
}

impl Hole {
    fn request(&self) -> Request<'_> {
        Request {
            left: &self.left,
            right: &self.right,
            path: &self.path,
            language: Language::Python,
            fragments: &self.fragments,
        }
    }
}

static HOLES: LazyLock<Vec<Hole>> = LazyLock::new(|| match std::env::var_os("REPOFORMER_LABELS") {
    Some(file) => of_labels(Path::new(&file)),
    None => of_sample(),
});

fn of_labels(path: &Path) -> Vec<Hole> {
    let mut holes = Vec::new();
    jsonl::for_each(path, |at, object| {
        let label = Label::read(path, at.line, object)?;
        holes.push(Hole {
            left: label.prompt,
            right: label.right_context,
            path: label.filename,
            fragments: label.cross_file.fragments,
        });
        Ok(())
    })
    .unwrap();
    holes
}

/// Returns holes of three lines at one third and two thirds of each file, with the first ten lines of other files as fragments.
fn of_sample() -> Vec<Hole> {
    let begins = SAMPLE.files.iter().map(|file| CrossFileFragment {
        path: file.path.clone(),
        text: file.text.lines().take(10).collect::<Vec<_>>().join("\n"),
        score: Some(0.25),
    });
    let begins: Vec<CrossFileFragment> = begins.collect();
    let mut holes = Vec::new();
    for (number, file) in SAMPLE.files.iter().enumerate() {
        let lines: Vec<&str> = file.text.lines().collect();
        for third in 1..3 {
            let at = lines.len() * third / 3;
            holes.push(Hole {
                left: lines[..at].join("\n") + "\n",
                right: lines[(at + 3).min(lines.len())..].join("\n"),
                path: format!("{}/{}", number % 2, file.path),
                fragments: begins.iter().skip(number + 1).take(3).cloned().collect(),
            });
        }
    }
    holes
}

/// Trains a policy on the holes themselves, since only time is measured.
fn model(kind: LearnedPolicy) -> PolicyModel {
    let example = |(number, hole): (usize, &Hole)| {
        let es = [0.5, if number.is_multiple_of(3) { 0.75 } else { 0.25 }];
        let outcome = CompletionScores { score: es, em: [None; 2], label: None };
        Example::new("x", hole.request(), outcome, Signals::default(), false)
    };
    let examples = Examples {
        all: HOLES.iter().take(400).enumerate().map(example).collect(),
        ..Examples::default()
    };
    train(&examples, kind, CalibrationMethod::Platt).unwrap()
}

fn decide(bencher: Bencher<'_, '_>, kind: LearnedPolicy) {
    let model = model(kind);
    let counter = ItemsCount::new(HOLES.len());
    bencher.counter(counter).bench_local(|| {
        for hole in HOLES.iter() {
            black_box(model.decide(black_box(hole.request()), Signals::default()));
        }
    });
}

#[divan::bench]
fn learned(bencher: Bencher<'_, '_>) {
    decide(bencher, LearnedPolicy::Learned);
}

#[divan::bench]
fn learned_scored(bencher: Bencher<'_, '_>) {
    decide(bencher, LearnedPolicy::LearnedScored);
}
