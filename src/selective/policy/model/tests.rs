//! Tests of training, of decisions and of policy files.

use std::path::Path;

use super::*;
use crate::selective::label::Signals;
use crate::selective::policy::features::Request;
use crate::selective::policy::measure::area;
use crate::selective::policy::{CompletionScores, Example, Examples};
use crate::task::cross_file::Fragment;
use crate::text::language::Language;

/// A hole after the call of a helper: where `is_known`, the file has called it before with the same lines around, and retrieval
/// does not help; else a fragment has it.
fn left(number: usize, is_known: bool) -> String {
    let block = |n: usize| format!("    total = total + scale_{n}(value)\n    emit(total, {n})\n");
    let seen = match is_known {
        true => block(number) + "    close(total)\n" + &block(number),
        false => format!("    first = start({})\n", number * 7) + &block(number),
    };
    format!("import os\n\ndef run_{number}(value):\n    total = 0\n{seen}")
}

fn fragments(number: usize, is_known: bool) -> Vec<Fragment> {
    let text = match is_known {
        true => format!("class Other{number}:\n    pass\n"),
        false => {
            format!("    emit(total, {number})\n    finish_{number}(total)\n    return total\n")
        }
    };
    let score = Some(if is_known { 0.1 } else { 0.4 });
    vec![Fragment { path: "pkg/other.py".into(), text, score }]
}

fn example(repository: usize, number: usize) -> Example {
    let is_known = !number.is_multiple_of(3);
    let (left, fragments) = (left(number, is_known), fragments(number, is_known));
    let request = Request {
        left: &left,
        right: "\n    return total\n",
        path: &format!("repo{repository}/pkg/m{number}.py"),
        language: Language::Python,
        fragments: &fragments,
    };
    let outcome = CompletionScores {
        es: if is_known { [0.9, 0.8] } else { [0.3, 0.9] },
        em: [None; 2],
        label: None,
    };
    Example::new(&format!("{repository}/{number}"), request, outcome, Signals::default())
}

fn examples(repositories: usize) -> Examples {
    let all = (0..repositories).flat_map(|r| (0..40).map(move |n| example(r, n + r)));
    Examples { all: all.collect(), model: Some("m".into()), ..Examples::default() }
}

#[test]
fn both_kinds_learn_what_tells_the_instances_apart() {
    let examples = examples(3);
    for kind in [LearnedPolicy::Learned, LearnedPolicy::LearnedScored] {
        for method in [CalibrationMethod::Platt, CalibrationMethod::Isotonic] {
            let policy = train(&examples, kind, method).unwrap();
            let training = &policy.training;
            assert!(training.held_out_auc > 0.95, "{kind} {}", training.held_out_auc);
            assert!(training.held_out_calibration_error < 0.2, "{training:?}");
            assert_eq!((training.instances, training.repositories.len()), (120, 3));
        }
    }
}

#[test]
fn a_decision_is_that_of_the_example() {
    let examples = examples(2);
    for kind in [LearnedPolicy::Learned, LearnedPolicy::LearnedScored] {
        let policy = train(&examples, kind, CalibrationMethod::Platt).unwrap();
        let (left, fragments) = (left(3, false), fragments(3, false));
        let request = Request {
            left: &left,
            right: "\n    return total\n",
            path: "repo0/pkg/m3.py",
            language: Language::Python,
            fragments: &fragments,
        };
        assert_eq!(policy.decide(request), policy.probability(&example(0, 3)));
        if kind == LearnedPolicy::Learned {
            let before = Request { fragments: &[], ..request };
            assert_eq!(policy.decide(before), policy.decide(request), "it has not retrieved yet");
        }
    }
}

#[test]
fn held_out_scores_do_not_know_their_repository() {
    let all = examples(3).all;
    let scores =
        hold_out(&all, &[], LearnedPolicy::Learned, CalibrationMethod::Platt).unwrap().ordered;
    // Turning all labels of one repository round leaves its own scores' order: they come from the others.
    let mut turned = all.clone();
    for example in turned.iter_mut().filter(|e| e.repository == "repo0") {
        example.label = !example.label;
    }
    let of_turned =
        hold_out(&turned, &[], LearnedPolicy::Learned, CalibrationMethod::Platt).unwrap().ordered;
    let of_repo0 = |scores: &[f64]| {
        let own = all.iter().zip(scores).filter(|(e, _)| e.repository == "repo0");
        let (labels, scores): (Vec<bool>, Vec<f64>) = own.map(|(e, s)| (e.label, *s)).unzip();
        area(&scores, &labels)
    };
    assert_eq!(of_repo0(&scores), of_repo0(&of_turned));
}

#[test]
fn the_same_labels_train_the_same_bytes_whatever_the_threads() {
    let text = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let train = || {
            train(&examples(4), LearnedPolicy::LearnedScored, CalibrationMethod::Platt)
                .unwrap()
                .to_text()
        };
        pool.install(train)
    };
    assert_eq!(text(1), text(3));
}

#[test]
fn labels_that_are_all_alike_teach_nothing() {
    let mut examples = examples(2);
    examples.all.iter_mut().for_each(|e| e.label = true);
    let error = train(&examples, LearnedPolicy::Learned, CalibrationMethod::Platt).unwrap_err();
    assert!(error.to_string().contains("all equal"), "{error}");
}

#[test]
fn files_are_read_again_and_others_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.json");
    let policy = train(&examples(2), LearnedPolicy::Learned, CalibrationMethod::Platt).unwrap();
    policy.write(&path).unwrap();
    assert_eq!(PolicyModel::read(&path).unwrap(), policy);
    let refused = |from: &str, to: &str, wanted: &str| {
        let text = policy.to_text();
        assert!(text.contains(from), "{from}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let error = PolicyModel::read(&path).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(wanted) && said.contains("policy.json"), "{said}");
    };
    refused("\"version\": 1", "\"version\": 9", "of version 9");
    refused("repoformer-policy", "another", "not a trained policy");
    refused(
        "\"feature\": \"indent\"",
        "\"feature\": \"moon\"",
        "it has 'moon' where this program has 'indent'",
    );
    refused("\"learned\"", "\"learned-scored\"", "without the feature 'retrieved.fragments'");
    refused("\"slope\"", "\"slip\"", "damaged");
    std::fs::write(&path, "not json").unwrap();
    assert!(PolicyModel::read(&path).is_err());
    assert!(PolicyModel::read(Path::new("/nowhere/policy.json")).is_err());
}
