//! Tests of sweeps over labels that are written as files.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use repoformer_core::policy::model::{CalibrationMethod, LearnedPolicy};
use repoformer_core::policy::sweep::{Clock, RequestTimes};
use repoformer_core::policy::{Examples, Measure, Policy, Threshold};
use repoformer_store::error::{Error, Result};
use repoformer_store::remark::Remark;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::policy_scores::TrainedPolicies;
use crate::table::Printable;

/// Returns a judged instance. Retrieval helps every third, and its fragment continues the text before the hole.
fn label(repository: usize, number: usize) -> Value {
    let helps = number.is_multiple_of(3);
    let block = format!("    total = scale_{number}(total)\n    emit(total, {number})\n");
    let seen = if helps { format!("    first = start({})\n", number * 7) } else { block.clone() };
    let (text, score) = if helps {
        (format!("    emit(total, {number})\n    finish(total)\n    return total\n"), 0.4)
    } else {
        ("class Other:\n    pass\n".into(), 0.1)
    };
    let (infile, rg1) = if helps { (0.25, 1.0) } else { (0.75, 0.5) };
    let file = format!("repo{repository}/pkg/m{number}.py");
    json!({
        "metadata": {"task_id": format!("{file}/4_5"), "filename": file, "start_i": 4, "end_i": 5},
        "prompt": format!("def run_{number}(value):\n    total = 0\n{seen}{block}"),
        "groundtruth": "    finish(total)", "right_context": "\n    return total\n",
        "crossfile_context": {"text": format!("# {text}"), "list": [
            {"retrieved_chunk": text, "filename": "pkg/other.py", "score": score},
        ]},
        "es_infile": infile, "es_rg1": rg1, "em_infile": 0, "em_rg1": u8::from(helps),
        "min_logprob": if helps { -3.0 } else { -0.1 },
        "generation_model": "m", "metric": "repocoder", "label": helps, "threshold": 0.0,
    })
}

fn labels(repositories: std::ops::Range<usize>) -> Vec<Value> {
    repositories.flat_map(|r| (0..12).map(move |n| label(r, n))).collect()
}

fn write(folder: &TempDir, name: &str, records: &[Value]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    std::fs::write(&path, lines).unwrap();
    path
}

/// Log of the messages, each after its kind.
#[derive(Default)]
struct MessageLog(RefCell<Vec<String>>);

impl MessageLog {
    fn hear(&self, remark: Remark) {
        let text = match remark {
            Remark::Note(text) | Remark::NoteOnce(text) => format!("note: {text}"),
            Remark::Detail(text) | Remark::Hint(text) => format!("detail: {text}"),
            Remark::LeftOut(tasks) => format!("left out: {}", tasks.count()),
            Remark::Announcement(text) | Remark::WarningOnce(text) | Remark::Warning(text) => {
                format!("warning: {text}")
            }
            Remark::Failed(text) => format!("failed: {text}"),
            Remark::Unproven(text) => format!("unproven: {text}"),
            Remark::Gaps(gaps) => format!("gaps: {}", gaps.len()),
            Remark::Problems(all) if all.is_empty() => return,
            Remark::Problems(all) => format!("problems: {}", all.len()),
        };
        self.0.borrow_mut().push(text);
    }

    fn take(&self) -> Vec<String> {
        self.0.take()
    }
}

/// Returns the reason and hint of an error.
fn refusal<T: std::fmt::Debug>(result: Result<T>) -> (String, String) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    (error.to_string(), error.hint().unwrap().to_string())
}

fn read(path: &Path, policies: &[Policy], keeps: bool, heard: &MessageLog) -> Result<Examples> {
    read_labels(&[path.to_owned()], policies, None, keeps, &|remark| heard.hear(remark))
}

fn run(sweep: &Sweep, files: &[&Path], heard: &MessageLog) -> Result<SweepResults> {
    let files: Vec<PathBuf> = files.iter().map(|path| path.to_path_buf()).collect();
    sweep.run(LabelSet::list(&files), &|remark| heard.hear(remark))
}

fn of(policies: &[Policy]) -> Sweep {
    Sweep { policies: policies.to_vec(), ..Sweep::default() }
}

#[test]
fn the_legend_fits_a_terminal_of_100_columns() {
    assert_eq!(results::NOTE.lines().find(|line| line.chars().count() > 100), None);
}

#[test]
fn files_of_one_name_are_a_set() {
    let folder = tempfile::tempdir().unwrap();
    let odd = write(&folder, "x=y.jsonl", &[]);
    let given = ["a.jsonl", "new=b.jsonl", "c.jsonl", "new=d.jsonl"].map(PathBuf::from);
    let sets = LabelSet::list(&[&given[..], std::slice::from_ref(&odd)].concat());
    let set = |name: Option<&str>, files: &[&Path]| LabelSet {
        name: name.map(str::to_owned),
        files: files.iter().map(|file| file.to_path_buf()).collect(),
    };
    let unnamed = [Path::new("a.jsonl"), Path::new("c.jsonl"), &odd];
    let named = [Path::new("b.jsonl"), Path::new("d.jsonl")];
    assert_eq!(sets, [set(None, &unnamed), set(Some("new"), &named)]);
}

#[test]
fn instances_that_know_the_target_are_left_out_for_who_looks_at_fragments() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let mut knowing = labels(0..1);
    knowing[7]["metadata"]["query_has_target"] = json!(true);
    knowing[8].as_object_mut().unwrap().remove("es_rg1");
    let path = write(&folder, "knowing.jsonl", &knowing);
    let unjudged = "failed: 1 instance is left out: not labelled (no es_rg1)";
    assert_eq!(read(&path, &[Policy::Learned], false, &heard).unwrap().all.len(), 11);
    assert_eq!(heard.take(), [unjudged]);
    let looking = [Policy::Learned, Policy::LearnedScored];
    assert_eq!(read(&path, &looking, false, &heard).unwrap().all.len(), 10);
    let left_out = "note: 1 instances whose query contained the target are left out, because their \
                    fragments reveal the target to learned-scored";
    assert_eq!(heard.take(), [unjudged, left_out]);
    let kept = read(&path, &looking, true, &heard).unwrap();
    assert!(kept.all.len() == 11 && kept.all.iter().all(|one| !one.query_has_target));
    assert!(
        heard.take()[1]
            .ends_with("are kept, although their fragments reveal the target to learned-scored")
    );
    knowing.iter_mut().for_each(|label| label["metadata"]["query_has_target"] = json!(true));
    let path = write(&folder, "knowing.jsonl", &knowing);
    let (reason, hint) = refusal(read(&path, &looking, false, &heard));
    assert_eq!(reason, "the query of every labelled instance contained the target");
    assert_eq!(hint, "add labels other than instances whose query contained the target");
    let none = write(&folder, "none.jsonl", &[]);
    assert_eq!(refusal(read(&none, &looking, false, &heard)).1, "judge instances");
}

#[test]
fn a_policy_learns_from_the_instances_that_have_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let mut some = labels(0..2);
    some[2].as_object_mut().unwrap().remove("crossfile_context");
    some[2]["crossfile_context"] = json!({"text": "# as text", "list": []});
    let path = write(&folder, "some.jsonl", &some);
    let train = |path: &Path, kind| {
        let examples = read(path, &[], false, &heard).unwrap();
        train_on(examples, kind, CalibrationMethod::default(), &|remark| heard.hear(remark))
    };
    let policy = train(&path, LearnedPolicy::LearnedScored).unwrap();
    assert_eq!((policy.training.instances, policy.training.positive), (23, 8));
    let [left_out] = &heard.take()[..] else { panic!() };
    assert!(left_out.starts_with("failed: 1 instance is left out: it lacks their fragments"));
    let summary = policy.training.summary();
    assert!(
        summary.starts_with(
            "23 instances of 2 repositories, 34.78 % positive, by model m; held out: AUC "
        ),
        "{summary}"
    );
    let (reason, _) = refusal(train(&path, LearnedPolicy::SelfScored));
    assert!(reason.starts_with("every instance lacks cc_probability"), "{reason}");
    let one = write(&folder, "one.jsonl", &labels(0..1));
    train(&one, LearnedPolicy::Learned).unwrap();
    let [warning] = &heard.take()[..] else { panic!() };
    assert!(warning.starts_with("warning: all instances belong to one repository (repo0)"));

    let explained = Explanation::new(&policy, 3);
    let records: Vec<Value> = explained.lines().collect();
    let spreads: Vec<f64> = records.iter().map(|r| r["spread"].as_f64().unwrap()).collect();
    let mut all: Vec<f64> = policy.model.curves.iter().map(|curve| curve.spread).collect();
    all.sort_by(|a, b| b.total_cmp(a));
    assert_eq!(spreads, all[..3]);
    assert!(explained.text().contains(&summary));
}

/// Scores by hand: 4 of 12 instances go from 0.25 to 1, the others from 0.75 to 0.5.
#[test]
fn a_sweep_has_the_points_of_each_policy() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let path = write(&folder, "labels.jsonl", &labels(0..3));
    let times = TimeSources {
        given: vec![("index".into(), RequestTimes::new(100.0, 400.0))],
        ..TimeSources::default()
    };
    let times = RetrieverTimes::read(&times, &|remark| heard.hear(remark)).unwrap();
    let sweep = Sweep { times, ..Sweep::default() };
    let swept = run(&sweep, &[&path], &heard).unwrap();
    let close = |value: &Value, wanted: f64| (value.as_f64().unwrap() - wanted).abs() < 1e-9;
    let points: Vec<Value> = swept.lines().collect();
    let never: Vec<&Value> = points.iter().filter(|point| point["policy"] == "never").collect();
    let [never] = never[..] else { panic!("{never:?}") };
    assert!(close(&never["es"], (0.25 + 2.0 * 0.75) / 3.0) && close(&never["speedup"], 0.2));
    assert_eq!((&never["threshold"], &never["latency_ms"]), (&Value::Null, &json!(400.0)));
    let best = |policy: Policy| {
        let of_policy = points.iter().filter(|point| point["policy"] == policy.name());
        of_policy.map(|point| point["es"].as_f64().unwrap()).fold(0.0, f64::max)
    };
    for policy in [Policy::Oracle, Policy::Learned, Policy::TrialRetrieval] {
        assert!((best(policy) - (1.0 + 2.0 * 0.75) / 3.0).abs() < 1e-9, "{policy}");
    }
    let left_out = heard.take();
    let signals = ["entropy: no", "self: no", "self@greedy: no", "self-scored: no"];
    assert_eq!(left_out.len(), signals.len(), "{left_out:?}");
    for (note, signal) in left_out.iter().zip(signals) {
        assert!(
            note.starts_with(&format!("note: policy sweep: left out: policy {signal}")),
            "{note}"
        );
    }
    assert_eq!(swept.warning(), None, "only the model's own decision takes time that is not known");
    assert_eq!(swept.rows().count(), points.len());
    assert!(swept.text().starts_with("36 instances of 3 repositories, ES x 100 by repocoder: never 58.33, always 66.67, oracle 83.33\n"));
    let page = swept.page();
    let tables: Vec<&str> = page.tables.iter().map(|table| &*table.title).collect();
    let wanted =
        ["Scores and budgets", "Chosen elsewhere", "Best in hindsight", "As good as always"];
    assert_eq!(tables, wanted);
    assert!(page.tables.iter().all(|table| table.rows[0][0] == "policy"));
    let charts: Vec<&str> = page.charts.iter().map(|chart| &*chart.name).collect();
    assert_eq!(charts[charts.len() - 2..], ["threshold-latency-1", "latency-1"]);
}

#[test]
fn thresholds_say_what_they_come_to() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let path = write(&folder, "labels.jsonl", &labels(0..2));
    let thresholds = vec![Threshold::Share(50.0), Threshold::Above(0.2), Threshold::Above(7.0)];
    let sweep = Sweep { thresholds, ..of(&[Policy::Always, Policy::TrialRetrieval]) };
    run(&sweep, &[&path], &heard).unwrap();
    assert_eq!(
        heard.take(),
        [
            "note: policy sweep: trial-retrieval at 50%: retrieves for 8 of 24 instances (scores \
             above 0.1); trial-retrieval@0.1 as a policy of a run uses this threshold on other \
             tasks",
            "note: policy sweep: trial-retrieval: no instance has a score above 7, so the policy \
             equals never at that threshold",
        ]
    );
}

#[test]
fn instances_without_a_signal_are_left_out_of_every_curve() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let mut silent = labels(0..2);
    silent[3].as_object_mut().unwrap().remove("min_logprob");
    let path = write(&folder, "silent.jsonl", &silent);
    let chosen = of(&[Policy::TrialGeneration, Policy::Never]);
    let swept = run(&chosen, &[&path], &heard).unwrap();
    assert!(swept.sets[0].curves.iter().all(|curve| curve.count == 23));
    let [left_out] = &heard.take()[..] else { panic!() };
    assert!(left_out.starts_with(
        "failed: 1 instance is left out of every curve: policy trial-generation lacks min_logprob"
    ));
    let swept = run(&Sweep::default(), &[&path], &heard).unwrap();
    assert!(swept.sets[0].curves.iter().all(|curve| curve.count == 24));
    let is_told = |text: &String| text.contains("policy trial-generation is left out: 1 of 24");
    assert!(heard.take().iter().any(is_told));
    let asked = of(&[Policy::SelfDecision]);
    assert!(refusal(run(&asked, &[&path], &heard)).0.contains("no instance has its signal"));
    for (place, label) in silent.iter_mut().enumerate() {
        let lacked = if place < 12 { "min_logprob" } else { "crossfile_context" };
        label.as_object_mut().unwrap().remove(lacked);
        if place >= 12 {
            label["crossfile_context"] = json!({"text": "# as text", "list": []});
        }
    }
    let apart = write(&folder, "apart.jsonl", &silent);
    let both = of(&[Policy::TrialGeneration, Policy::TrialRetrieval]);
    let (reason, hint) = refusal(run(&both, &[&apart], &heard));
    assert!(
        reason.contains("trial-generation needs min_logprob")
            && reason.contains("; trial-retrieval needs "),
        "{reason}"
    );
    assert!(hint.starts_with("sweep the policies one by one"));
}

#[test]
fn labels_of_two_makings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let by = |name: &str, field: &str, value: &str| {
        let mut other = labels(1..3);
        other.iter_mut().for_each(|label| label[field] = json!(value));
        write(&folder, name, &other)
    };
    let here = write(&folder, "here.jsonl", &labels(0..1));
    let metric = by("metric.jsonl", "metric", "repoformer");
    let model = by("model.jsonl", "generation_model", "n");
    let named = PathBuf::from(format!("b={}", metric.display()));
    let (reason, hint) = refusal(run(&of(&[Policy::Never]), &[&here, &named], &heard));
    assert_eq!(
        reason,
        "these labels are by metric repoformer, but earlier labels are by repocoder"
    );
    assert_eq!(
        hint,
        "gains in two metrics cannot be compared: judge all labels with the same metric of labels"
    );
    for (more, wanted) in [
        (metric, "training labels are by the metric repoformer, but labels to sweep by repocoder"),
        (model, "training labels are of model n, but labels to sweep of m"),
    ] {
        let sweep = Sweep { training_labels: vec![more], ..of(&[Policy::Learned]) };
        assert_eq!(refusal(run(&sweep, &[&here], &heard)).0, wanted);
    }
    // A policy of one repository needs other repositories whose labels were made in the same way.
    let (reason, _) = refusal(run(&of(&[Policy::Learned]), &[&here], &heard));
    assert!(
        reason.contains("all instances belong to one repository, so no other repository"),
        "{reason}"
    );
    let training_labels = vec![write(&folder, "more.jsonl", &labels(1..3))];
    let sweep = Sweep { training_labels, ..of(&[Policy::Learned]) };
    assert!(run(&sweep, &[&here], &heard).unwrap().sets[0].curves[0].auc > 0.99);
}

#[test]
fn times_belong_to_retrievers_and_instances() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let labels = labels(0..2);
    let times: Vec<Value> = (labels.iter())
        .map(|label| json!({"task_id": label["metadata"]["task_id"], "retrieval_ms": 50, "generation_ms": 100}))
        .collect();
    let other = json!({"task_id": "other", "generation_ms": 9, "retrieval_ms": 1});
    let path = write(&folder, "labels.jsonl", &labels);
    let file = write(&folder, "latency/api/rg1.jsonl", &times);
    let of_line = write(&folder, "latency/line/none.jsonl", &times);
    let part = write(&folder, "part.jsonl", &times[..20]);
    let other = write(&folder, "other.jsonl", &[other]);
    let measured = |name: &str, file: &Path| vec![(name.to_owned(), file.to_owned())];
    let read = |sources: &TimeSources| RetrieverTimes::read(sources, &|remark| heard.hear(remark));
    let two = TimeSources {
        measured: measured("index", &file),
        given: vec![("dense".into(), RequestTimes::new(300.0, 100.0))],
        ..TimeSources::default()
    };
    let sweep = Sweep { times: read(&two).unwrap(), ..of(&[Policy::Never, Policy::SelfDecision]) };
    assert_eq!(
        heard.take(),
        ["note: policy sweep: the times of index are from benchmark api; the labels do not name \
             a benchmark"]
    );
    let mut asked = labels.clone();
    asked.iter_mut().for_each(|label| label["cc_probability"] = json!(0.5));
    let asked = write(&folder, "asked.jsonl", &asked);
    let swept = run(&sweep, &[&asked], &heard).unwrap();
    let never = swept.lines().next().unwrap();
    assert_eq!(never["retrievers"]["dense"], json!({"latency_ms": 100.0, "speedup": 0.75}));
    assert_eq!(swept.rows().nth(1).unwrap()["retriever"], "dense");
    let warning = swept.warning().unwrap().to_string();
    assert!(
        warning.starts_with("policy self has no latency, because the time of its decision"),
        "{warning}"
    );

    let base = TimeSources { base: Some(of_line), measured: measured("a", &file), ..two.clone() };
    assert!(refusal(read(&base)).0.ends_with(
        "has times from benchmark api, but the times of completions without retrieval are from line"
    ));
    let twice = TimeSources { measured: measured("dense", &part), ..two.clone() };
    assert_eq!(refusal(read(&twice)).0, "two retrievers have the name 'dense'");
    let checked = |measured| {
        let times = read(&TimeSources { measured, ..TimeSources::default() }).unwrap();
        heard.take();
        let swept = run(&Sweep { times, ..of(&[Policy::Never]) }, &[&path], &heard);
        (swept, heard.take())
    };
    let (swept, told) = checked(measured("part", &part));
    assert!(swept.is_ok());
    assert_eq!(
        told,
        ["warning: 4 of 24 instances have no time of part; the mean of the other times is used"]
    );
    let (swept, _) = checked(measured("other", &other));
    assert_eq!(refusal(swept).0, "no time of other belongs to these instances");
}

#[test]
fn trained_policies_say_where_they_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let path = write(&folder, "labels.jsonl", &labels(0..2));
    let examples = read(&path, &[], false, &heard).unwrap();
    let policy = train_on(examples, LearnedPolicy::Learned, CalibrationMethod::default(), &|_| {});
    let [one, two] = ["one.json", "two.json"].map(|name| folder.path().join(name));
    for path in [&one, &two] {
        policy.as_ref().unwrap().write(path).unwrap();
    }
    assert!(
        refusal(TrainedPolicies::read(&[&one, &two]))
            .0
            .ends_with("another trained policy is already of kind learned")
    );
    let trained = TrainedPolicies::read(&[&one]).unwrap();
    assert!(trained.check_others(Policy::Learned, ["a"].into_iter()).is_ok(), "it has learned");
    let untrained = TrainedPolicies::default();
    assert!(untrained.check_others(Policy::Learned, ["a", "b"].into_iter()).is_ok());
    let (reason, _) = refusal(untrained.check_others(Policy::LearnedScored, [""].into_iter()));
    assert!(reason.contains("the tasks do not name their repositories"), "{reason}");
    let here = read(&path, &[], false, &heard).unwrap();
    let warnings = |[generator, metric, fragments]: [&str; 3]| -> Vec<String> {
        let warnings =
            trained.warnings(&here.all[..12], Some(generator), Some(metric), Some(fragments));
        warnings.iter().map(ToString::to_string).collect()
    };
    let [known] = &warnings(["m", "repocoder", "windows"])[..] else { panic!() };
    assert!(known.starts_with("policy learned was trained on 1 of these repositories (repo0)"));
    let others = warnings(["n", "pass", "windows"]);
    assert_eq!(
        others[1..],
        [
            "policy learned was trained on completions of m, but these completions are of n",
            "policy learned was trained on gains in metric repocoder, but these gains are in pass",
        ]
    );
    assert_eq!("pass".parse::<Measure>().unwrap(), Measure::Pass);
    assert!("similarity".parse::<Measure>().is_err());
}

/// ES in percent and EM as a fraction, as some programs write them, are each read on their own scale.
#[test]
fn each_score_has_its_own_scale() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let mut all = labels(0..3);
    let points = |all: &[Value]| -> Vec<Value> {
        let path = write(&folder, "labels.jsonl", all);
        run(&of(&[Policy::Never, Policy::Always]), &[&path], &heard).unwrap().lines().collect()
    };
    let shares = points(&all);
    for names in [["es_infile", "es_rg1"], ["em_infile", "em_rg1"]] {
        for label in &mut all {
            for name in names {
                label[name] = json!(100.0 * label[name].as_f64().unwrap());
            }
        }
        assert_eq!(points(&all), shares);
    }
}

/// If no whole number of instances has a column's percentage, the column is named by the nearest.
#[test]
fn columns_name_their_true_share() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let mut all: Vec<Value> = (0..82).map(|number| label(number % 3, number)).collect();
    let text = |all: &[Value]| {
        let path = write(&folder, "labels.jsonl", all);
        run(&of(&[Policy::Random]), &[&path], &heard).unwrap().text()
    };
    let whole = text(&all[..80]);
    assert!(!whole.contains(" %)"), "{whole}");
    // Instances with the same content have the same random number.
    for (number, label) in all.iter_mut().enumerate() {
        label["prompt"] = json!(format!("value_{number} = (\n"));
    }
    let part = text(&all);
    assert!(part.contains(" (19.5 %)"), "{part}");
}

#[test]
fn instances_that_come_twice_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let all = labels(0..2);
    let mut twice = [all.clone(), all.clone()].concat();
    let first = all[0]["metadata"]["task_id"].as_str().unwrap();
    let repeats = format!(
        "warning: 24 instances repeat an id of their repository (first {first}); each counts"
    );
    let path = write(&folder, "labels.jsonl", &twice);
    assert_eq!(read(&path, &[], false, &heard).unwrap().all.len(), 48);
    assert_eq!(heard.take(), std::slice::from_ref(&repeats));
    for label in &mut twice[..3] {
        label["label"] = json!(!label["label"].as_bool().unwrap());
    }
    let path = write(&folder, "labels.jsonl", &twice);
    read(&path, &[], false, &heard).unwrap();
    let again = format!(
        "warning: 3 instances are repeated with another label (first {first}); each counts"
    );
    assert_eq!(heard.take(), [repeats, again]);
}

/// One clock retrieves while the model completes, the other before completing; with the latter, retrieving in order to decide
/// saves nothing.
#[test]
fn a_trial_retrieval_saves_nothing_before_the_completion() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let path = write(&folder, "labels.jsonl", &labels(0..2));
    let speedup = |clock| {
        let given = vec![("index".into(), RequestTimes::new(100.0, 400.0))];
        let sources = TimeSources { given, clock, ..TimeSources::default() };
        let times = RetrieverTimes::read(&sources, &|remark| heard.hear(remark)).unwrap();
        let thresholds = vec![Threshold::Above(0.3)];
        let sweep = Sweep { times, thresholds, ..of(&[Policy::TrialRetrieval]) };
        let point = run(&sweep, &[&path], &heard).unwrap().lines().next().unwrap();
        point["speedup"].as_f64().unwrap()
    };
    assert!(speedup(Clock::Parallel) > 0.1);
    assert!(speedup(Clock::Serial).abs() < 1e-9);
}

/// Another run can use the number; instances with the same score stay together.
#[test]
fn a_share_becomes_a_threshold_for_other_data() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let path = write(&folder, "labels.jsonl", &labels(0..3));
    let at = |threshold, policy| -> Value {
        let sweep = Sweep { thresholds: vec![threshold], ..of(&[policy]) };
        run(&sweep, &[&path], &heard).unwrap().lines().next().unwrap()
    };
    let random = at(Threshold::Share(30.0), Policy::Random);
    // Three instances each have the same content, and therefore the same random number.
    assert_eq!(random["rag_rate"], 9.0 / 36.0);
    let number = random["threshold"].as_f64().unwrap();
    assert_eq!(at(Threshold::Above(number), Policy::Random), random);
    // Gains of most instances are equal to 0.
    let oracle = at(Threshold::Share(30.0), Policy::Oracle);
    assert!(oracle["rag_rate"].as_f64().unwrap() <= 0.3);
    heard.take();
    // Neither never nor always has a threshold.
    at(Threshold::Share(30.0), Policy::Never);
    assert_eq!(heard.take(), [""; 0]);
}

/// A cross-file context that is one text has no scores, which must not pass for "nothing was retrieved".
#[test]
fn missing_scores_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let as_text = |label: &mut Value| {
        label["crossfile_context"] = label["crossfile_context"]["text"].clone();
    };
    let mut half = labels(0..2);
    half.iter_mut().step_by(2).for_each(as_text);
    let half = write(&folder, "half.jsonl", &half);
    for policy in [Policy::TrialRetrieval, Policy::LearnedScored] {
        let swept = run(&of(&[policy]), &[&half], &heard).unwrap();
        assert!(swept.sets[0].curves.iter().all(|curve| curve.count == 12));
        let lacked =
            format!("failed: 12 instances are left out of every curve: policy {policy} lacks");
        let [told] = &heard.take()[..] else { panic!() };
        assert!(told.starts_with(&lacked) && told.contains("`crossfile_context.list`"), "{told}");
    }
    let train = |path: &Path| {
        let examples = read(path, &[], false, &heard).unwrap();
        let method = CalibrationMethod::default();
        train_on(examples, LearnedPolicy::LearnedScored, method, &|remark| heard.hear(remark))
    };
    assert_eq!(train(&half).unwrap().training.instances, 12);
    assert!(heard.take()[0].starts_with("failed: 12 instances are left out: they lack"));
    let mut none = labels(0..2);
    none.iter_mut().for_each(as_text);
    let none = write(&folder, "none.jsonl", &none);
    let (reason, hint) = refusal(train(&none));
    assert!(reason.starts_with("every instance lacks ") && hint.contains("policy"), "{hint}");
    let (reason, hint) = refusal(run(&of(&[Policy::TrialRetrieval]), &[&none], &heard));
    assert!(reason.contains("no instance has its signal"), "{reason}");
    assert!(hint.contains("retrieve again"), "{hint}");
}

/// The order of the labels does not matter.
#[test]
fn labels_of_two_makings_in_one_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let mut by_tests = labels(0..1);
    for label in &mut by_tests {
        label["metric"] = json!("pass");
        (label["pass_infile"], label["pass_rg1"]) = (json!(0.0), json!(1.0));
    }
    let mut by_other = labels(0..1);
    by_other.iter_mut().for_each(|label| label["generation_model"] = json!("other"));
    let here = labels(1..3);
    for (others, what) in [(by_tests, "uses metric"), (by_other, "is of model")] {
        for all in [[others.clone(), here.clone()].concat(), [here.clone(), others].concat()] {
            let path = write(&folder, "labels.jsonl", &all);
            let error = read(&path, &[], false, &heard).unwrap_err().to_string();
            assert!(error.contains(&format!(": this label {what} ")), "{error}");
            assert_eq!(heard.take(), [""; 0]);
        }
    }
}

/// A model's probability is added to the features; a missing one does not count as 0.
#[test]
fn a_policy_joins_a_models_own_probability() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    // Only the probability distinguishes them.
    let mut all: Vec<Value> =
        labels(0..6).into_iter().filter(|label| label["label"] == false).collect();
    for (at, label) in all.iter_mut().enumerate() {
        let helps = at.is_multiple_of(2);
        label["label"] = helps.into();
        label["es_rg1"] = if helps { 1.0 } else { 0.5 }.into();
        label["cc_probability"] = if helps { 0.45 } else { 0.05 }.into();
    }
    let path = write(&folder, "asked.jsonl", &all);
    let given = RequestTimes { decision: Some(30.0), ..RequestTimes::new(100.0, 400.0) };
    let given = vec![("index".into(), given)];
    let sources = TimeSources { given, clock: Clock::Serial, ..TimeSources::default() };
    let times = RetrieverTimes::read(&sources, &|remark| heard.hear(remark)).unwrap();
    let policies = [Policy::SelfScored, Policy::SelfDecision, Policy::LearnedScored];
    let swept = run(&Sweep { times, ..of(&policies) }, &[&path], &heard).unwrap();
    let [joined, own, learned] = &swept.sets[0].curves[..] else { panic!() };
    assert!(joined.auc > 0.99 && own.auc > 0.99 && learned.auc < 0.8);
    let never = joined.points.iter().find(|point| point.rag_rate == 0.0).unwrap();
    assert_eq!(never.latencies[0].as_ref().unwrap().mean_ms, 30.0 + 100.0 + 400.0);

    all[1].as_object_mut().unwrap().shift_remove("cc_probability");
    let some = write(&folder, "some.jsonl", &all);
    heard.take();
    run(&of(&[Policy::SelfScored]), &[&some], &heard).unwrap();
    let [told] = &heard.take()[..] else { panic!() };
    assert!(
        told.starts_with("failed: 1 instance is left out of every curve: policy self-scored lacks"),
        "{told}"
    );
    let examples = read(&some, &[], false, &heard).unwrap();
    let method = CalibrationMethod::default();
    train_on(examples, LearnedPolicy::SelfScored, method, &|remark| heard.hear(remark)).unwrap();
    assert!(heard.take()[0].starts_with("failed: 1 instance is left out: it lacks cc_probability"));
}

#[test]
fn sets_of_labels_are_swept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let heard = MessageLog::default();
    let named = |name: &str, range| {
        let path = write(&folder, &format!("{name}.jsonl"), &labels(range));
        PathBuf::from(format!("{name}={}", path.display()))
    };
    let (a, b) = (named("a", 0..3), named("b", 3..5));
    let sweep = Sweep { thresholds: vec![Threshold::Above(0.3)], ..of(&[Policy::TrialRetrieval]) };
    let swept = run(&sweep, &[&a, &b], &heard).unwrap();
    let counts: Vec<Value> =
        swept.lines().map(|point| json!([point["labels"], point["n"]])).collect();
    assert_eq!(counts, [json!(["a", 36]), json!(["b", 24])]);
    assert!(swept.text().contains("b: 24 instances"), "{}", swept.text());
    // All instances for which the policy retrieves gain.
    let point = swept.lines().next().unwrap();
    for (name, value) in
        [("abstention_precision", 1.0), ("abstained_right", 0.0), ("abstained_harmed", 0.0)]
    {
        assert_eq!(point[name], value, "{name}");
    }
}
