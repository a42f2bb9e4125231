//! Tests of the sweep with sums computed by hand.

use repoformer_store::error::{Error, RequestPart};
use repoformer_text::language::Language;

use super::*;
use crate::label::Signals;
use crate::policy::CompletionScores;
use crate::policy::features::Request;

/// Returns instances with these edit similarities without and with retrieval.
fn examples(similarities: &[[f64; 2]]) -> Vec<Example> {
    let example = |(number, es): (usize, &[f64; 2])| {
        let request = Request {
            left: "x = 1\n",
            right: "",
            path: "r/m.py",
            language: Language::Python,
            fragments: &[],
        };
        let em = es.map(|es| Some(f64::from(es == 1.0)));
        let outcome = CompletionScores { score: *es, em, label: None };
        Example::new(&format!("t/{number}"), request, outcome, Signals::default(), false)
    };
    similarities.iter().enumerate().map(example).collect()
}

const FOUR: [[f64; 2]; 4] = [[0.2, 1.0], [0.5, 0.5], [0.9, 0.1], [0.4, 0.6]];

fn sweep(policy: Policy, scores: &[f64], thresholds: &[Threshold]) -> SweepCurve {
    let clock = LatencyModel::from_times(RequestTimes::new(300.0, 700.0));
    SweepCurve::new(policy, &examples(&FOUR), scores, None, thresholds, &[clock])
}

#[test]
fn a_threshold_retrieves_for_what_is_above_it() {
    let thresholds = [0.3, 0.95].map(Threshold::Above);
    let curve = sweep(Policy::Learned, &[0.9, 0.3, 0.1, 0.6], &thresholds);
    let [none, half] = &curve.points[..] else { panic!("{curve:?}") };
    assert_eq!((none.rag_rate, none.score, none.em), (0.0, 0.5, Some(0.0)));
    assert_eq!(none.abstention_precision, Some(0.5));
    assert_eq!(none.latencies[0].unwrap().speedup, 0.3);
    assert_eq!((half.rag_rate, half.threshold, half.em), (0.5, 0.3, Some(0.25)));
    assert!((half.score - (1.0 + 0.5 + 0.9 + 0.6) / 4.0).abs() < 1e-12);
    assert_eq!((half.abstention_precision, half.latencies[0].unwrap().mean_ms), (Some(1.0), 850.0));
    assert_eq!(curve.auc, 1.0);
}

#[test]
fn a_share_becomes_the_threshold_of_these_scores() {
    let curve = sweep(Policy::Learned, &[0.9, 0.3, 0.1, 0.6], &[Threshold::Share(50.0)]);
    let [half] = &curve.points[..] else { panic!("{curve:?}") };
    assert_eq!((half.rag_rate, half.threshold, half.em), (0.5, 0.3, Some(0.25)));
    let curve = sweep(Policy::Learned, &[0.9; 4], &[50.0, 100.0].map(Threshold::Share));
    let rates: Vec<f64> = curve.points.iter().map(|point| point.rag_rate).collect();
    assert_eq!(rates, [0.0, 1.0]);
}

#[test]
fn ends_and_best_are_always_there() {
    let curve = sweep(Policy::Oracle, &[0.8, 0.0, -0.8, 0.2], &[]);
    assert_eq!(curve.points.first().unwrap().rag_rate, 0.0);
    assert_eq!(curve.points.last().unwrap().rag_rate, 1.0);
    let best = curve.best().unwrap();
    assert_eq!((best.rag_rate, best.threshold), (0.5, 0.0), "it does not retrieve in vain");
    // Always retrieving scores 0.55; retrieving only for the first instance scores more.
    assert_eq!(curve.reaches_always.as_ref().unwrap().rag_rate, 0.25);
    assert_eq!(curve.at_rate(0.52).unwrap().rag_rate, 0.5);
    assert!(curve.at_rate(0.6).is_none() && curve.elsewhere.is_none());
    let never = sweep(Policy::Never, &[0.0; 4], &[]);
    assert_eq!((never.points.len(), never.points[0].rag_rate), (1, 0.0));
    let always = sweep(Policy::Always, &[1.0; 4], &[]);
    assert_eq!((always.points.len(), always.points[0].latencies[0].unwrap().speedup), (1, 0.0));
}

#[test]
fn thresholds_of_the_others_are_applied() {
    let mut examples = examples(&FOUR);
    // The first two belong to one repository, the others to another.
    for (place, example) in examples.iter_mut().enumerate() {
        example.repository = ["a", "a", "b", "b"][place].into();
    }
    let scores = [0.9, 0.3, 0.1, 0.6];
    let curve = SweepCurve::new(Policy::Learned, &examples, &scores, None, &[], &[]);
    // On `b`, the best threshold is 0.1, above which both instances of `a` are; on `a` it is 0.3, above which one of `b` is.
    let point = curve.elsewhere.unwrap();
    assert_eq!((point.rag_rate, point.em), (0.75, Some(0.25)));
    assert!((point.score - (1.0 + 0.5 + 0.9 + 0.6) / 4.0).abs() < 1e-12);
}

/// Decides for each repository over a list of all others: the obvious implementation.
fn decided_one_by_one(examples: &[Example], scores: &[f64]) -> Vec<bool> {
    let mut retrieves = vec![false; examples.len()];
    for own in examples {
        let mut others: Vec<usize> = (0..examples.len())
            .filter(|&place| examples[place].repository != own.repository)
            .collect();
        others.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        let threshold = best_threshold(examples, scores, &others);
        for (place, example) in examples.iter().enumerate() {
            if example.repository == own.repository {
                retrieves[place] = scores[place] > threshold;
            }
        }
    }
    retrieves
}

/// Returns the threshold with the best sum of gains over instances by decreasing score; of equally good thresholds, the one
/// with the least retrieval. If no retrieval at all is best, the threshold is infinite.
fn best_threshold(examples: &[Example], scores: &[f64], order: &[usize]) -> f64 {
    let (mut sum, mut best, mut threshold) = (0.0, 0.0, f64::INFINITY);
    for (at, &place) in order.iter().enumerate() {
        sum += examples[place].gain();
        let next = order.get(at + 1).map_or(f64::NEG_INFINITY, |&next| scores[next]);
        if next < scores[place] && sum > best + 1e-12 {
            (best, threshold) = (sum, next);
        }
    }
    threshold
}

#[test]
fn thresholds_of_the_others_are_those_found_one_by_one() {
    let mut random = 1_u64;
    let mut below = |bound: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    for round in 0..400 {
        let count = 1 + below(40);
        let (repositories, levels) = (1 + below(count), 1 + below(12));
        let (steps, lift) = ([4.0, 10.0][round % 2], below(3) as f64);
        let mut share = |most: u64| below(most) as f64 / steps;
        let similarities: Vec<[f64; 2]> =
            (0..count).map(|_| [share(5), (share(5) + (lift - 1.0) / steps).max(0.0)]).collect();
        let mut examples = examples(&similarities);
        for example in &mut examples {
            example.repository = below(repositories).to_string();
        }
        let scores: Vec<f64> = examples.iter().map(|_| below(levels) as f64 - 1.0).collect();
        let is_one = examples.iter().all(|one| one.repository == examples[0].repository);
        let wanted = (!is_one).then(|| decided_one_by_one(&examples, &scores));
        assert_eq!(elsewhere::decisions(&examples, &scores), wanted, "round {round}");
    }
}

#[test]
fn equal_scores_are_never_parted() {
    let curve = sweep(Policy::TrialRetrieval, &[0.5, 0.5, 0.5, 0.1], &[]);
    let rates: Vec<f64> = curve.points.iter().map(|point| point.rag_rate).collect();
    assert_eq!(rates, [0.0, 0.75, 1.0]);
}

#[test]
fn policies_wait_for_what_they_go_by() {
    let times = RequestTimes { decision: Some(600.0), ..RequestTimes::new(900.0, 500.0) };
    // A prompt without retrieved fragments is shorter.
    let short = RequestTimes { base: 200.0, ..times };
    for (times, policy, wanted) in [
        (times, Policy::Learned, [500.0, 1400.0]),
        (times, Policy::LearnedScored, [900.0, 1400.0]),
        (times, Policy::TrialGeneration, [500.0, 1400.0]),
        (times, Policy::SelfDecision, [600.0, 1400.0]),
        (short, Policy::Learned, [200.0, 1400.0]),
        (short, Policy::TrialGeneration, [200.0, 1400.0]),
    ] {
        assert_eq!(
            [false, true].map(|retrieves| times.cost(policy, retrieves, Clock::Parallel).unwrap()),
            wanted
        );
    }
}

#[test]
fn measured_times_are_read_and_filled_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.jsonl");
    let lines = "{\"task_id\": \"t/0\", \"retrieval_ms\": 10, \"generation_ms\": 100}\n\
                 {\"task_id\": \"t/1\", \"retrieval_ms\": 30, \"generation_ms\": null}\n";
    std::fs::write(&path, lines).unwrap();
    let clock = LatencyModel::read(&path, None, None).unwrap().deciding(Some(5.0));
    let named = |id: &str| Example { id: id.into(), ..examples(&FOUR[..1]).remove(0) };
    let times = |id: &str| (clock.of(&named(id)).retrieval, clock.of(&named(id)).generation);
    assert_eq!(
        (times("t/0"), times("t/1"), times("t/9")),
        ((10.0, 100.0), (30.0, 100.0), (20.0, 100.0))
    );
    assert_eq!(clock.of(&named("t/1")).decision, Some(5.0));
    assert_eq!(["t/0", "t/1", "t/9"].map(|id| clock.knows(&named(id))), [true, false, false]);
    assert!(!clock.without_embedding);
    let lacking = lines.replace("\"t/1\",", "\"t/1\", \"without_embedding\": true,");
    std::fs::write(&path, lacking).unwrap();
    assert!(LatencyModel::read(&path, None, None).unwrap().without_embedding);
    let base = folder.path().join("base.jsonl");
    std::fs::write(&base, "{\"task_id\": \"t/1\", \"generation_ms\": 40}\n").unwrap();
    let clock = LatencyModel::read(&path, Some(&base), None).unwrap();
    let of = |id: &str| (clock.of(&named(id)).base, clock.of(&named(id)).generation);
    assert_eq!((of("t/0"), of("t/1")), ((40.0, 100.0), (40.0, 100.0)));
    std::fs::write(&path, "{\"task_id\": \"t/0\", \"generation_ms\": 100}\n").unwrap();
    let error = LatencyModel::read(&path, None, None).unwrap_err();
    assert!(matches!(error, Error::NoTime { part: RequestPart::Retrieval, .. }), "{error}");
    assert!(error.to_string().ends_with("l.jsonl: has no retrieval_ms"), "{error}");
    std::fs::write(&path, "{\"task_id\": \"t/0\", \"retrieval_ms\": \"x\"}\n").unwrap();
    assert!(LatencyModel::read(&path, None, None).unwrap_err().to_string().contains("l.jsonl:1"));
}

#[test]
fn tasks_of_one_id_have_each_their_own_times() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.jsonl");
    let line = |row: usize, ms: usize| {
        format!(
            "{{\"task_id\": \"r/idx\", \"row\": {row}, \"retrieval_ms\": {ms}, \"generation_ms\": 100}}\n"
        )
    };
    std::fs::write(&path, [line(0, 10), line(1, 30), line(4, 50)].concat()).unwrap();
    let clock = LatencyModel::read(&path, None, None).unwrap();
    let at = |row: Option<usize>| {
        let one = examples(&FOUR[..1]).remove(0);
        let example = Example { id: "r/idx".into(), row, ..one };
        (clock.of(&example).retrieval, clock.knows(&example))
    };
    assert_eq!([Some(0), Some(1), Some(4)].map(at), [(10.0, true), (30.0, true), (50.0, true)]);
    assert_eq!([Some(2), None].map(at), [(30.0, false); 2], "the mean, not another task's");
    // One record has this id, but with another row, so it belongs to another file of tasks.
    std::fs::write(&path, line(0, 10)).unwrap();
    let clock = LatencyModel::read(&path, None, None).unwrap();
    let knows = |row: Option<usize>| {
        let one = examples(&FOUR[..1]).remove(0);
        clock.knows(&Example { id: "r/idx".into(), row, ..one })
    };
    assert_eq!([Some(0), Some(3), None].map(knows), [true, false, true]);
}

#[test]
fn a_rate_that_no_whole_number_has_is_the_nearest_below() {
    let all = examples(&[[0.0, 1.0]; 164]);
    let scores: Vec<f64> = (0..164).map(f64::from).collect();
    let curve = SweepCurve::new(Policy::Random, &all, &scores, None, &[], &[]);
    let at = |rate: f64| (curve.at_rate(rate).unwrap().rag_rate * 164.0).round();
    assert_eq!((at(0.2), at(0.5)), (32.0, 82.0), "of 164");
}

#[test]
fn where_never_is_best_nothing_is_retrieved() {
    let mut all = examples(&[[0.9, 0.1]; 90]);
    let places = all.iter_mut().enumerate();
    places.for_each(|(place, example)| example.repository = format!("r{}", place % 3));
    let scores: Vec<f64> = (0..90).map(|place| f64::from(place) / 90.0).collect();
    let curve = SweepCurve::new(Policy::Random, &all, &scores, None, &[], &[]);
    assert_eq!(curve.elsewhere.unwrap().rag_rate, 0.0);
}

#[test]
fn a_task_with_two_labels_contradicts_itself() {
    let mut all = examples(&[FOUR[0], FOUR[0], FOUR[1], FOUR[1]]);
    for (example, row) in all.iter_mut().zip([0, 0, 0, 1]) {
        (example.id, example.row) = ("r/idx".into(), Some(row));
    }
    let [repeated, contradicting] = Example::count_repeats(&mut all);
    assert_eq!((repeated.len(), contradicting.len()), (3, 1));
}

#[test]
fn chance_decides_each_task_of_one_id() {
    let mut all = examples(&[[0.0, 1.0]; 64]);
    all.iter_mut().for_each(|example| example.id = "r/idx".into());
    let [repeated, contradicting] = Example::count_repeats(&mut all);
    assert_eq!((repeated.len(), contradicting.len()), (63, 0));
    let retrieves = |example: &&Example| Policy::Random.score(example, 0) > Some(0.5);
    let count = all.iter().filter(retrieves).count();
    assert!((16..48).contains(&count), "{count} of 64");
    assert_eq!(Policy::Random.score(&all[0], 0), {
        let mut alone = all[..1].to_vec();
        assert!(Example::count_repeats(&mut alone).iter().all(Vec::is_empty));
        Policy::Random.score(&alone[0], 0)
    });
}
