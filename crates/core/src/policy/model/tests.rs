//! Tests of training, of decisions and of policy files.

use std::path::Path;

use repoformer_text::language::Language;

use super::*;
use crate::label::Signals;
use crate::policy::features::Request;
use crate::policy::measure::area;
use crate::policy::{CompletionScores, Example, Examples};
use crate::task::cross_file::CrossFileFragment;

/// Calls a function with a request for a hole after the call of a helper. If `is_known`, the file has called the helper before
/// with the same lines around it, and retrieval does not help; otherwise a fragment has the call.
fn with_request<T>(
    repository: usize,
    number: usize,
    is_known: bool,
    of: impl Fn(Request<'_>) -> T,
) -> T {
    let block = format!("    total = scale_{number}(value)\n    emit(total, {number})\n");
    let (seen, text, score) = if is_known {
        (format!("{block}    close(total)\n"), "class Other:\n    pass\n".into(), 0.1)
    } else {
        let text = format!("    emit(total, {number})\n    finish(total)\n    return total\n");
        (format!("    first = start({})\n", number * 7), text, 0.4)
    };
    of(Request {
        left: &format!("import os\n\ndef run_{number}(value):\n    total = 0\n{seen}{block}"),
        right: "\n    return total\n",
        path: &format!("repo{repository}/pkg/m{number}.py"),
        language: Language::Python,
        fragments: &[CrossFileFragment { path: "pkg/other.py".into(), text, score: Some(score) }],
    })
}

fn example(repository: usize, number: usize) -> Example {
    let is_known = !number.is_multiple_of(3);
    let es = if is_known { [0.9, 0.8] } else { [0.3, 0.9] };
    let outcome = CompletionScores { score: es, em: [None; 2], label: None };
    with_request(repository, number, is_known, |request| {
        Example::new(&format!("{repository}/{number}"), request, outcome, Signals::default(), false)
    })
}

fn examples(repositories: usize) -> Examples {
    let all = (0..repositories).flat_map(|r| (0..40).map(move |n| example(r, n + r)));
    Examples { all: all.collect(), model: Some("m".into()), ..Examples::default() }
}

#[test]
fn a_decision_is_that_of_the_example() {
    let examples = examples(2);
    for kind in [LearnedPolicy::Learned, LearnedPolicy::LearnedScored] {
        let policy = train(&examples, kind, CalibrationMethod::Platt).unwrap();
        let decided =
            with_request(0, 3, false, |request| policy.decide(request, Signals::default()));
        assert_eq!(decided, policy.probability(&example(0, 3)));
        if kind == LearnedPolicy::Learned {
            let before = |request: Request<'_>| {
                policy.decide(Request { fragments: &[], ..request }, Signals::default())
            };
            assert_eq!(with_request(0, 3, false, before), decided, "it has not retrieved yet");
        }
    }
}

#[test]
fn a_policy_learns_from_what_a_model_asks_for() {
    // Only the model's probability distinguishes these instances.
    let asked = |number: usize| Signals {
        cc_probability: Some(if number.is_multiple_of(3) { 0.7 } else { 0.2 }),
        ..Signals::default()
    };
    let example = |repository: usize, number: usize| {
        let gain = if number.is_multiple_of(3) { 0.9 } else { 0.1 };
        let outcome = CompletionScores { score: [0.5, gain], em: [None; 2], label: None };
        with_request(repository, number, true, |request| {
            let signals = asked(number);
            Example::new(&format!("{repository}/{number}"), request, outcome, signals, false)
        })
    };
    let all = (0..3).flat_map(|r| (0..40).map(move |n| example(r, n))).collect();
    let mut examples = Examples { all, ..Examples::default() };
    let train = |examples: &Examples, kind| train(examples, kind, CalibrationMethod::Platt);
    let policy = train(&examples, LearnedPolicy::SelfScored).unwrap();
    assert!(policy.training.held_out_auc > 0.99, "{:?}", policy.training);
    let without = train(&examples, LearnedPolicy::LearnedScored).unwrap();
    assert!(without.training.held_out_auc < 0.8, "{:?}", without.training);
    let decide = |signals| with_request(0, 3, true, |request| policy.decide(request, signals));
    assert_eq!(decide(asked(3)), policy.probability(&example(0, 3)));
    assert!(decide(asked(3)) > Some(0.5) && decide(asked(2)) < Some(0.5));
    let certain = Signals { cc_probability: Some(1.0), ..Signals::default() };
    assert!(decide(certain) > decide(asked(3)));
    // A missing probability is not treated as 0.
    assert_eq!(decide(Signals::default()), None);
    let unasked = Example { signals: Signals::default(), ..example(0, 3) };
    assert_eq!(policy.probability(&unasked), None);
    examples.all.push(unasked);
    let error = train(&examples, LearnedPolicy::SelfScored).unwrap_err().to_string();
    assert!(error.contains("1 of 121 labels lack the data that policy self-scored"), "{error}");
}

#[test]
fn held_out_scores_do_not_know_their_repository() {
    let all = examples(3).all;
    let held_out = |all: &[Example]| {
        hold_out(all, &[], LearnedPolicy::Learned, CalibrationMethod::Platt).unwrap().ordered
    };
    // Reversing all labels of one repository leaves the order of its own scores unchanged: its scores come from the other
    // repositories.
    let mut turned = all.clone();
    for example in turned.iter_mut().filter(|e| e.repository == "repo0") {
        example.label = !example.label;
    }
    let of_repo0 = |scores: Vec<f64>| {
        let own = all.iter().zip(scores).filter(|(e, _)| e.repository == "repo0");
        let (labels, scores): (Vec<bool>, Vec<f64>) = own.map(|(e, s)| (e.label, s)).unzip();
        area(&scores, &labels)
    };
    assert_eq!(of_repo0(held_out(&all)), of_repo0(held_out(&turned)));
}

#[test]
fn the_same_labels_train_the_same_bytes_whatever_the_threads() {
    let text = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (kind, method) = (LearnedPolicy::LearnedScored, CalibrationMethod::Platt);
        pool.install(|| train(&examples(4), kind, method).unwrap().to_text())
    };
    assert_eq!(text(1), text(3));
}

#[test]
fn a_policy_comes_along() {
    let policy = PolicyModel::load_bundled().unwrap();
    assert_eq!(policy.policy, LearnedPolicy::LearnedScored);
    assert!(policy.training.held_out_auc > 0.6 && policy.training.repositories.len() > 40);
}

#[test]
fn files_are_read_again_and_others_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.json");
    let policy = train(&examples(2), LearnedPolicy::Learned, CalibrationMethod::Platt).unwrap();
    policy.write(&path).unwrap();
    assert_eq!(PolicyModel::read(&path).unwrap(), policy);
    for (from, to, wanted) in [
        ("repoformer-policy", "another", "not a trained policy"),
        ("\"learned\"", "\"learned-scored\"", "without the feature 'retrieved.fragments'"),
        ("\"slope\"", "\"slip\"", "damaged"),
    ] {
        let mut edited: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&policy.to_text().replacen(from, to, 1)).unwrap();
        edited.remove("record_checksum").unwrap();
        std::fs::write(&path, serde_json::to_string(&edited).unwrap()).unwrap();
        let said = PolicyModel::read(&path).unwrap_err().to_string();
        assert!(said.contains(wanted) && said.contains("policy.json"), "{said}");
    }
    let mut edited: serde_json::Value = serde_json::from_str(&policy.to_text()).unwrap();
    edited.as_object_mut().unwrap().remove("record_checksum");
    for (place, value, wanted) in [
        ("/training/held_out_auc", 1.5, "'training.held_out_auc' must be between 0 and 1, not 1.5"),
        ("/training/instances", -1.0, "damaged"),
        ("/training/instances", 0.5, "damaged"),
    ] {
        let mut other = edited.clone();
        *other.pointer_mut(place).unwrap() = value.into();
        std::fs::write(&path, other.to_string()).unwrap();
        let said = PolicyModel::read(&path).unwrap_err().to_string();
        assert!(said.contains(wanted), "{said}");
    }
    std::fs::write(&path, "not json").unwrap();
    assert!(PolicyModel::read(&path).is_err());
    assert!(PolicyModel::read(Path::new("/nowhere/policy.json")).is_err());
}
