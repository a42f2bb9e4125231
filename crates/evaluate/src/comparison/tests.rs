use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::statistics::Interval;

fn scores(name: &str, records: &[Value]) -> PerTask {
    let mut scores = PerTask::new(name);
    for record in records {
        scores.add(record.as_object().unwrap()).unwrap();
    }
    scores
}

fn es(id: &str, row: usize, repository: &str, es: f64) -> Value {
    json!({"task_id": id, "row": row, "repository": repository, "repocoder": {"es": es}})
}

fn compare(a: &[Value], b: &[Value]) -> Result<Comparison> {
    compare_with(a, b, ComparisonSettings::default())
}

fn compare_with(a: &[Value], b: &[Value], settings: ComparisonSettings) -> Result<Comparison> {
    Comparison::new(&scores("A", a), &scores("B", b), &settings)
}

fn ids(comparison: &Comparison) -> Vec<&str> {
    comparison.tasks.iter().map(|task| task.task_id.as_str()).collect()
}

fn texts(problems: &[Error]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

mod joining {
    use super::*;

    #[test]
    fn by_row_and_id() {
        // One id three times, distinguished by rows; tasks that a side lacks are listed by row.
        let a = [("x", 2, 0.2), ("x", 0, 0.0), ("x", 1, 0.1), ("z", 9, 1.0)];
        let b = [("x", 1, 1.0), ("y", 7, 1.0), ("x", 0, 0.5), ("w", 3, 1.0)];
        let [a, b] = [a, b].map(|side| side.map(|(id, row, value)| es(id, row, "r", value)));
        let found = compare(&a, &b).unwrap();
        let rows: Vec<_> = found.tasks.iter().map(|task| (task.row, task.values[0])).collect();
        assert_eq!(rows, [(Some(0), Some((0.0, 0.5))), (Some(1), Some((0.1, 1.0)))]);
        assert_eq!((found.a.tasks, &*found.a.alone), (4, &["x".to_owned(), "z".into()][..]));
        assert_eq!((found.b.tasks, &*found.b.alone), (4, &["w".to_owned(), "y".into()][..]));
        assert_eq!((found.moved, found.problems.len()), (0, 0));
    }

    #[test]
    fn by_id_where_a_side_knows_no_row() {
        let bare = |id: &str, es: f64| json!({"task_id": id, "repocoder": {"es": es}});
        let a = [es("x", 4, "r", 0.0), es("y", 2, "s", 0.25), es("z", 1, "r", 0.5)];
        let found = compare(&a, &[bare("x", 1.0), bare("z", 1.0), bare("y", 1.0)]).unwrap();
        assert_eq!(ids(&found), ["z", "y", "x"], "in the order of the rows that are known");
        assert_eq!(found.unit, ResamplingUnit::Repositories, "A knows the repositories");
        // Two tasks with the same id cannot be distinguished without rows.
        let found = compare(&a, &[bare("x", 1.0), bare("x", 0.0), bare("z", 1.0)]).unwrap();
        assert_eq!(ids(&found), ["z"]);
        let wanted = "B: 2 records have the task_id \"x\", and not all have a row that tells them \
                      apart; none of them is compared";
        assert_eq!(texts(&found.problems), [wanted]);
        assert_eq!(found.a.alone, ["y"], "x is no task that B lacks");
    }

    #[test]
    fn what_cannot_be_told_apart_or_contradicts_is_named() {
        let x = es("x", 0, "r", 0.5);
        let a = [x.clone(), x.clone(), es("y", 1, "r", 0.5), es("z", 2, "r", 0.0)];
        let found = compare(&a, &[x, es("y", 1, "s", 0.5), es("z", 2, "r", 1.0)]).unwrap();
        assert_eq!(ids(&found), ["z"]);
        let wanted = [
            "A: 2 records have the task_id \"x\" and row 0; none of them is compared",
            "B: task \"y\" belongs to repository s here, but to r in A; it is not compared",
        ];
        assert_eq!(texts(&found.problems), wanted);
    }

    #[test]
    fn the_same_ids_at_other_rows_are_other_tasks() {
        let (a, b) = ([es("x", 0, "r", 0.5), es("y", 1, "r", 0.5)], [es("x", 1, "r", 0.5)]);
        let error = compare(&a, &b).unwrap_err();
        assert!(
            error
                .hint()
                .unwrap()
                .to_string()
                .starts_with("1 ids are in both files, at different rows")
        );
        let found = compare(&a, &[&b[..], &[es("y", 1, "r", 0.0)]].concat()).unwrap();
        assert_eq!((ids(&found), found.moved), (vec!["y"], 1));
    }
}

mod measures {
    use super::*;

    #[test]
    fn a_measure_that_some_tasks_lack_counts_where_it_is() {
        let exec = |row: usize, pass: Value| json!({"task_id": "t", "row": row, "repocoder": {"es": 0.5}, "exec": {"pass": pass}});
        let a = [exec(0, 0.into()), exec(1, Value::Null), exec(2, 1.into())];
        let b = [exec(0, 1.into()), exec(1, 1.into()), exec(2, 1.into())];
        let found = compare(&a, &b).unwrap();
        let pass = &found.all[1];
        assert_eq!((pass.measure.as_str(), pass.n, pass.difference.mean), ("exec.pass", 2, 0.5));
        assert_eq!((pass.changes.better, pass.changes.same), (1, 1));
        assert_eq!(found.tasks[1].values, [Some((0.5, 0.5)), None]);
        assert_eq!((found.unit, found.units), (ResamplingUnit::Tasks, 3), "no repository is named");
    }

    #[test]
    fn what_is_not_compared_is_named() {
        let a = [json!({"task_id": "t", "m": {"one": 0, "big": 3, "a": 1}})];
        let b = [json!({"task_id": "t", "m": {"one": 1, "big": 1, "b": 1}})];
        let found = compare(&a, &b).unwrap();
        assert_eq!(found.all.len(), 1);
        let left_out: Vec<_> = found.left_out.iter().map(|(m, why)| format!("{m} {why}")).collect();
        let wanted =
            ["m.big has values outside 0 to 1, such as 3", "m.a is only in A", "m.b is only in B"];
        assert_eq!(left_out, wanted);
        let lists = "A has m.one, m.big, m.a; B has m.one, m.big, m.b";
        for (measure, said) in
            [("m.a", "m.a is only in A"), ("m.big", wanted[0]), ("x", "x is in neither")]
        {
            let settings =
                ComparisonSettings { measures: vec![measure.into()], ..Default::default() };
            let error = compare_with(&a, &b, settings).unwrap_err();
            assert_eq!(error.to_string(), format!("measure: {said}; {lists}"));
        }
        let error = compare(&a, &[json!({"task_id": "t", "other": {"b": 1}})]).unwrap_err();
        assert!(
            error.to_string().starts_with("measure: they have no measure in common; A has m.one")
        );
    }

    #[test]
    fn repositories_can_only_be_drawn_where_there_are_two() {
        let unit = |unit, records: &[Value]| {
            let settings = ComparisonSettings { unit, ..ComparisonSettings::default() };
            compare_with(records, records, settings).map(|found| found.unit)
        };
        let two = [es("x", 0, "r", 0.5), es("y", 1, "s", 0.5)];
        let nameless = [two[0].clone(), json!({"task_id": "y", "row": 1, "repocoder": {"es": 0}})];
        assert_eq!(unit(Some(ResamplingUnit::Tasks), &two).unwrap(), ResamplingUnit::Tasks);
        assert_eq!(
            unit(Some(ResamplingUnit::Repositories), &two).unwrap(),
            ResamplingUnit::Repositories
        );
        assert_eq!(unit(None, &nameless).unwrap(), ResamplingUnit::Tasks);
        for (records, reason) in [
            (&nameless[..], "1 of 2 tasks names no repository"),
            (&two[..1], "all tasks belong to one repository"),
        ] {
            let error = unit(Some(ResamplingUnit::Repositories), records).unwrap_err().to_string();
            assert_eq!(error, format!("unit: repositories cannot be resampled: {reason}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    #[test]
    fn b_less_a_is_a_less_b_turned(
        tasks in prop::collection::vec((0..4usize, 0..=8u8, 0..=8u8, 0..3u8), 1..50),
        turn in 0..50usize,
    ) {
        // One side lacks some tasks; with twice as many repositories as are drawn, some have only one task.
        let record = |row: usize, repository: usize, value: u8| {
            es(&format!("t{}", row / 2), row, &format!("r{repository}"), f64::from(value) / 8.0)
        };
        let side = |lacks: u8, second: bool| -> Vec<Value> {
            let tasks = tasks.iter().enumerate().filter(|(_, task)| task.3 != lacks);
            tasks.map(|(row, task)| record(row, task.0, if second { task.2 } else { task.1 })).collect()
        };
        let (a, mut b) = (side(1, false), side(2, true));
        let settings = ComparisonSettings {
            by_repository: true,
            resampling: Resampling { resamples: 200, ..Resampling::default() },
            flips: SignFlips { flips: 2000, ..SignFlips::default() },
            ..ComparisonSettings::default()
        };
        let of = |a: &[Value], b: &[Value]| compare_with(a, b, settings.clone());
        let (Ok(one), Ok(other)) = (of(&a, &b), of(&b, &a)) else {
            prop_assert!(tasks.iter().all(|task| task.3 != 0));
            return Ok(());
        };
        let sides = one.repositories.iter().map(|(_, d)| d).chain([&one.all]).flatten();
        let turned = other.repositories.iter().map(|(_, d)| d).chain([&other.all]).flatten();
        for (one, other) in sides.zip(turned) {
            prop_assert_eq!(one.difference.mean, -other.difference.mean);
            let turned = |i: Interval| Interval { low: 0.0 - i.high, high: 0.0 - i.low };
            // Differences with the same values under either sign are drawn in the same order.
            if one.difference.mean != 0.0 {
                prop_assert_eq!(one.difference.interval, other.difference.interval.map(turned));
            }
            prop_assert_eq!((one.a, one.b), (other.b, other.a));
            prop_assert_eq!((one.by_task, one.by_repository), (other.by_task, other.by_repository));
            prop_assert_eq!((one.changes.better, one.changes.worse), (other.changes.worse, other.changes.better));
            let mirrored = other.buckets.map(|mut buckets| { buckets.counts.reverse(); buckets });
            prop_assert_eq!(one.buckets, mirrored);
        }
        // Neither the order of a file nor the number of threads changes a single byte.
        let wanted = one.to_record(true);
        let length = b.len();
        b.rotate_left(turn % length);
        prop_assert_eq!(&of(&a, &b).unwrap().to_record(true), &wanted);
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            prop_assert_eq!(&pool.install(|| of(&a, &b).unwrap().to_record(true)), &wanted);
        }
    }
}

mod reading {
    use super::*;

    /// File of scores in a folder of its own.
    struct File(tempfile::TempDir);

    impl File {
        fn new(text: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("s.json"), text).unwrap();
            Self(dir)
        }

        fn read(&self, name: &str) -> Result<ReadScores> {
            read(&format!("{}/s.json{name}", self.0.path().display()))
        }

        /// Returns the message of the error, without the folder, and its hint.
        fn refuses(&self, name: &str) -> (String, String) {
            let error = self.read(name).unwrap_err();
            let folder = format!("{}/", self.0.path().display());
            let hint = error.hint().unwrap_or_default().to_string();
            (error.to_string().replace(&folder, ""), hint.replace(&folder, ""))
        }
    }

    fn values(reading: &ReadScores) -> Vec<(&str, Option<f64>)> {
        let scores = &reading.scores;
        let tasks = scores.tasks.iter();
        tasks.map(|task| (task.task_id.as_str(), scores.value(task, "repocoder.es"))).collect()
    }

    fn set(name: &str, value: f64) -> Value {
        json!({"predictions": name, "all": {"n": 2}, "repositories": {"r": {"n": 2}},
            "tasks": [es("x", 0, "r", value), es("y", 1, "r", 1.0)]})
    }

    #[test]
    fn every_form_that_eval_writes() {
        let wanted = vec![("x", Some(0.5)), ("y", Some(1.0))];
        let one = set("rg1", 0.5);
        let lines: String =
            one["tasks"].as_array().unwrap().iter().map(|t| format!("{t}\n")).collect();
        for text in [
            serde_json::to_string_pretty(&one).unwrap(),
            one.to_string(),
            json!([one]).to_string(),
            serde_json::to_string_pretty(&json!([one])).unwrap(),
            one["tasks"].to_string(),
            lines,
        ] {
            let reading = File::new(&text).read("").unwrap();
            assert_eq!((values(&reading), reading.problems.len()), (wanted.clone(), 0), "{text}");
            let task = &reading.scores.tasks[1];
            assert_eq!((task.row, task.repository.as_deref()), (Some(1), Some("r")));
        }
    }

    #[test]
    fn of_several_predictions_one_is_named() {
        let both = json!([set("none", 0.25), set("rg1", 0.5)]);
        let mut lines = String::new();
        for (name, value) in [("none", 0.25), ("rg1", 0.5)] {
            for mut task in set(name, value)["tasks"].as_array().unwrap().clone() {
                task["predictions"] = name.into();
                lines += &format!("{task}\n");
            }
        }
        for text in [both.to_string(), serde_json::to_string_pretty(&both).unwrap(), lines] {
            let file = File::new(&text);
            assert_eq!(values(&file.read("#rg1").unwrap())[0], ("x", Some(0.5)));
            assert_eq!(values(&file.read("#none").unwrap())[0], ("x", Some(0.25)));
            assert!(
                file.refuses("")
                    .0
                    .ends_with("contains the scores of several predictions: none, rg1")
            );
            let (error, _) = file.refuses("#gt");
            assert_eq!(error, "s.json: contains scores of none, rg1, but not of 'gt'");
        }
        // A name with # is first tried as a file name.
        let file = File::new("");
        let odd = format!("{}/a#b.json", file.0.path().display());
        std::fs::write(&odd, set("rg1", 0.5).to_string()).unwrap();
        for name in [&odd, &format!("{odd}#rg1")] {
            assert_eq!(values(&read(name).unwrap())[0], ("x", Some(0.5)));
        }
    }

    /// Work is proportional to tasks times measures, results repeat the measures' names, and any object of numbers is a metric.
    #[test]
    fn measures_are_bounded() {
        let record = |id: &str, names: std::ops::Range<usize>| {
            let values: Vec<String> = names.map(|name| format!(r#""{name}":0.5"#)).collect();
            format!("{{\"task_id\":\"{id}\",\"x\":{{{}}}}}\n", values.join(","))
        };
        let lines = [record("a", 0..80), record("b", 50..110), record("c", 60..100)].concat();
        let reading = File::new(&lines).read("").unwrap();
        assert_eq!((reading.scores.tasks.len(), reading.scores.measures.len()), (2, 100));
        let [problem] = &reading.problems[..] else { panic!("{:?}", reading.problems) };
        let reason = ":2: adds 30 measures to 80, but at most 100 are compared";
        assert!(problem.to_string().contains(reason), "{problem}");
        let long = json!({"task_id": "a", "m".repeat(300): {"e": 1}});
        let problem = PerTask::new("A").add(long.as_object().unwrap()).unwrap_err();
        assert_eq!(problem, "a measure has a name of 302 bytes, but at most 256 are compared");
    }

    #[test]
    fn unusable_records_are_named_and_the_others_used() {
        let good = es("x", 0, "r", 0.5);
        let bad = [
            ("{", ":2: not JSON: "),
            (r#"{"repocoder": {"es": 1}}"#, ":3: field 'task_id' is missing"),
            (
                r#"{"task_id": "y", "es": 1, "row": 1}"#,
                ":4: has no scores: no field is an object of numbers, such as 'repocoder'",
            ),
            (
                r#"{"task_id": "z", "row": -1, "repocoder": {"es": 1}}"#,
                ":5: field 'row' must be a whole number from 0",
            ),
            (
                r#"{"task_id": "v", "repository": 3, "repocoder": {"es": 1}}"#,
                ":6: field 'repository' must be a string",
            ),
            (
                r#"{"task_id": "w", "pred": "text"}"#,
                ":7: contains a prediction (it has 'pred'), not scores of tasks",
            ),
        ];
        let lines: String = bad.map(|(line, _)| format!("\n{line}")).concat();
        let reading = File::new(&format!("{good}{lines}")).read("").unwrap();
        assert_eq!(values(&reading), [("x", Some(0.5))]);
        let mut problems = texts(&reading.problems);
        problems.sort();
        assert_eq!(problems.len(), bad.len());
        for (problem, (_, wanted)) in problems.iter().zip(bad) {
            assert!(problem.contains(wanted), "{problem} {wanted}");
        }
        let document = json!({"predictions": "p", "tasks": [good, 7, {"row": 1}]}).to_string();
        let file = File::new(&document.replacen('{', "{\n", 1));
        let problems = texts(&file.read("").unwrap().problems);
        assert!(problems[0].ends_with("tasks[1]: a JSON object is expected, not a number"));
        assert!(problems[1].ends_with("s.json: tasks[2]: field 'task_id' is missing"));
    }

    #[test]
    fn a_file_without_scores_is_named_for_what_it_is() {
        let needed = "pass a file with the scores of each task";
        let prediction = "{\"task_id\": \"x\", \"pred\": \"y\"}\n";
        for (text, wanted, hint) in [
            (
                r#"{"predictions": "rg1", "all": {"n": 2, "repocoder": {"es": 1}}, "missing": 0}"#,
                "s.json: contains means, not the scores of each task",
                needed,
            ),
            (
                &prediction.repeat(3),
                "s.json: contains a prediction (it has 'pred'), not scores of tasks",
                "compute their scores first",
            ),
            (
                r#"{"task_id": "x", "pred": "y", "target": "y"}"#,
                "s.json: ",
                "compute their scores first",
            ),
            ("", "s.json: is empty", needed),
            ("# Title\n", "s.json: contains no scores of tasks: line 1: not JSON", needed),
            ("[\n{\n", "s.json: not JSON: EOF", needed),
            ("[1]", "s.json: contains no scores of tasks: [0]: a JSON object is expected", needed),
            ("{\"tasks\": []}", "s.json: contains no scores of tasks", needed),
            (
                "{\"task_id\": \"x\"}",
                "s.json: contains no scores of tasks: line 1: has no scores",
                needed,
            ),
        ] {
            let (error, found) = File::new(text).refuses("");
            assert!(error.starts_with(wanted), "{error}");
            assert_eq!(found, hint);
        }
    }
}
