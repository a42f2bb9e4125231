//! Compares every metric with the values of the reference programs, pair by pair.
//!
//! `tests/fixtures/scores/pairs.jsonl` has some rows of each small kind. All rows are compared if the environment variable
//! `REPOFORMER_FIXTURES` names a folder with `scores/pairs.jsonl.gz`. `tests/fixtures/scores/languages.jsonl` has the values of
//! CrossCodeEval's formulas for edited statements of four languages; `languages.py` in the same folder wrote it.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::Path;

use repoformer_store::jsonl;
use repoformer_text::distance::indel;
use repoformer_text::language::{Language, identifiers, without_strings};
use repoformer_text::lines::strip;
use serde_json::{Value, json};

use super::repoformer::Fuzz;
use super::{PairScore, crosscodeeval, repocoder, repoformer as code_tokens};
use crate::postprocess::{HoleContext, Recipe};

/// Result of comparing one file.
#[derive(Debug, Default)]
struct FileComparison {
    equal: usize,
    /// Rows on which RepoCoder's program stops with an error.
    fixed: usize,
    kinds: BTreeSet<String>,
}

/// One row of the file.
struct Row {
    line: String,
    record: Value,
}

impl Row {
    fn text(&self, name: &str) -> &str {
        self.record[name].as_str().unwrap()
    }

    /// Returns a number of the record to its last bit, which serde_json rounds away.
    fn number(&self, name: &str) -> f64 {
        let value = self.line.split(&format!("\"{name}\": ")).nth(1).unwrap();
        let end = value.find([',', '}']).unwrap();
        value[..end].parse().unwrap()
    }

    fn place(&self) -> String {
        format!("row {} ({})", self.record["id"], self.text("kind"))
    }
}

fn compare(path: &Path) -> FileComparison {
    let mut compared = FileComparison::default();
    for line in jsonl::open(path).unwrap().lines() {
        let line = line.unwrap();
        let record = serde_json::from_str(&line).unwrap();
        let row = Row { line, record };
        if by_repocoder(&row) {
            compared.equal += 1
        } else {
            compared.fixed += 1
        }
        by_repoformer(&row);
        by_crosscodeeval(&row);
        compared.kinds.insert(row.text("kind").to_owned());
    }
    compared
}

/// Compares RepoCoder's scores; returns `false` if its program has none.
fn by_repocoder(row: &Row) -> bool {
    let place = row.place();
    let PairScore { em, es } = repocoder::score(row.text("gt"), row.text("pred"));
    assert_eq!(Value::from(em), row.record["rc_em"], "{place}: exact match");
    if let Value::String(error) = &row.record["rc_es"] {
        assert_eq!(error, "ERR:ZeroDivisionError", "{place}");
        assert_eq!(es, 1.0, "{place}: a target without lines");
        return false;
    }
    // The same operations in the same order, so the same bits.
    assert_eq!(es, row.number("rc_es"), "{place}: edit similarity");
    true
}

/// Compares Repoformer's scores, with both variants of `fuzz.ratio`, for the prediction as it is and for the prediction cut to
/// the target's lines.
fn by_repoformer(row: &Row) {
    let (place, target, prediction) = (row.place(), row.text("gt"), row.text("pred"));
    let lines: Recipe = "lines".parse().unwrap();
    let hole = HoleContext {
        left_context: "",
        whole_left_context: None,
        target,
        language: Language::Python,
    };
    let cut = lines.apply(hole, prediction).prediction;
    let changed = Value::from(cut != prediction);
    assert_eq!(changed, row.record["rf_trunc_pred_changed"], "{place}: cut");
    for (prefix, prediction) in [("rf_", prediction), ("rf_trunc_", &*cut)] {
        let score = code_tokens::score(target, prediction, Fuzz::Indel);
        let wanted = &row.record[format!("{prefix}em")];
        assert_eq!(&Value::from(score.em), wanted, "{place}: {prefix} exact match");
        let es = row.number(&format!("{prefix}es_repoeval"));
        assert_eq!(score.es, es, "{place}: {prefix} edit similarity");
        let fuzz = row.number(&format!("{prefix}edit_sim"));
        assert_eq!(score.es_fuzz, fuzz / 100.0, "{place}: {prefix} fuzz ratio");
    }
    let difflib = code_tokens::score(target, prediction, Fuzz::Difflib).es_fuzz;
    let wanted = row.number("rf_edit_sim_difflib") / 100.0;
    assert_eq!(difflib, wanted, "{place}: fuzz ratio by difflib");
    let ratio = 100.0 * indel::similarity(strip(prediction), strip(target));
    assert_eq!(ratio, row.number("rapidfuzz_ratio"), "{place}: RapidFuzz's ratio");
}

/// Compares CrossCodeEval's identifiers before its comment removal, and all its scores after.
fn by_crosscodeeval(row: &Row) {
    let (place, target, prediction) = (row.place(), row.text("gt"), row.text("pred"));
    // Rows with long texts lack the lists.
    let is_long = row.record["cc"].get("gt_ids").is_none();
    for (name, text) in [("gt_ids", target), ("pred_ids", prediction)] {
        if is_long {
            continue;
        }
        let bare = without_strings(text);
        let found = identifiers(&bare, Language::Python);
        assert_eq!(json!(found), row.record["cc_raw"][name], "{place}: {name}");
    }
    let found = crosscodeeval::detail(target, prediction, Language::Python);
    let wanted = &row.record["cc"];
    if !is_long {
        assert_eq!(json!(found.target_ids), wanted["gt_ids"], "{place}");
        assert_eq!(json!(found.prediction_ids), wanted["pred_ids"], "{place}");
    }
    let score = found.score;
    assert_eq!(json!(u8::from(score.em)), wanted["em"], "{place}: exact match");
    assert_eq!(json!(u8::from(score.id_em)), wanted["id_em"], "{place}: identifiers");
    let values =
        [("precision", score.id_precision), ("recall", score.id_recall), ("f1", score.id_f1)];
    for (name, value) in values {
        assert_eq!(value, wanted[name].as_f64().unwrap(), "{place}: {name}");
    }
}

#[test]
fn rows_of_the_reference() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/scores/pairs.jsonl");
    let FileComparison { equal, fixed, kinds } = compare(&path);
    assert_eq!((equal, fixed, kinds.len()), (139, 8, 35));
}

#[test]
fn crosscodeeval_in_four_languages() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/scores/languages.jsonl");
    let statement: Recipe = "statement".parse().unwrap();
    let (mut rows, mut matches) = (0, 0);
    for line in jsonl::open(&path).unwrap().lines() {
        let record: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let text = |name: &str| record[name].as_str().unwrap();
        let language: Language = text("language").parse().unwrap();
        let hole = HoleContext {
            left_context: text("left"),
            whole_left_context: None,
            target: text("target"),
            language,
        };
        let cut = statement.apply(hole, text("pred")).prediction;
        let found = crosscodeeval::detail(text("target"), &cut, language);
        let score = found.score;
        let ours = json!({
            "cut": found.prediction, "pred_ids": found.prediction_ids, "em": u8::from(score.em), "id_em": u8::from(score.id_em),
        });
        for (name, value) in ours.as_object().unwrap() {
            assert_eq!(value, &record[name], "{name}: {record}");
        }
        let values = [
            ("id_precision", score.id_precision),
            ("id_recall", score.id_recall),
            ("id_f1", score.id_f1),
            ("es", score.es * 100.0),
        ];
        for (name, value) in values {
            let wanted = record[name].as_f64().unwrap();
            assert!((value - wanted).abs() < 1e-12, "{name} {value}: {record}");
        }
        rows += 1;
        matches += usize::from(score.em);
    }
    assert_eq!(rows, 240);
    assert!((40..200).contains(&matches), "{matches}");
}

#[test]
#[ignore = "reads the folder that REPOFORMER_FIXTURES names"]
fn all_rows_of_the_reference() {
    let folder = std::env::var_os("REPOFORMER_FIXTURES").expect("REPOFORMER_FIXTURES is not set");
    let compared = compare(&Path::new(&folder).join("scores/pairs.jsonl.gz"));
    assert_eq!((compared.equal, compared.fixed), (2490, 48));
    println!("{compared:?}");
}
