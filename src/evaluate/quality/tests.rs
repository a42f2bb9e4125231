use proptest::prelude::*;

use super::*;

/// Word runs that begin with a letter or `_`: a stand-in for a language's identifiers.
fn identifiers(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    words.filter(|word| word.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())).collect()
}

fn share(found: usize, of: usize) -> Share {
    Share { found, of }
}

/// Every value, in the order of [`Measure::ALL`].
fn values(measures: &Measures) -> Vec<Option<f64>> {
    Measure::ALL.map(|measure| measures.get(measure)).to_vec()
}

#[test]
fn a_task_by_hand() {
    // Names: out, Reader, open_file, path, read; the left context shows path and read, the right one out.
    // Calls: Reader, open_file, read.
    let target = "    out = Reader(open_file(path))\n\n    out.read(path)\n";
    let in_file = ["def f(path):\n    reader.read()\n", "    return out\n"];
    let fragments = ["class Reader:\n    pass", "x\n  out.read(path)  \ny", "Path"];
    let measures = RetrievalTarget::new(target, &in_file, identifiers).measure(&fragments);
    // Reader, out, read and path; open_file is nowhere.
    assert_eq!(measures.identifiers, share(4, 5));
    // Reader and open_file are new.
    assert_eq!(measures.new_identifiers, share(1, 2));
    assert_eq!(measures.apis, share(2, 3));
    assert_eq!(measures.new_apis, share(1, 2));
    assert_eq!(measures.lines, share(1, 2));
    assert_eq!(measures.rank, None);
    // "out = Reader(open_file(path))\nout.read(path)" is 29 + 1 + 14 characters. "x\nout.read(path)" is its last 15
    // and an x that stands for any other: 28 insertions and a substitution.
    assert_eq!(measures.edit_similarity, Some(1.0 - 29.0 / 44.0));
    let get = |measure| measures.get(measure);
    assert_eq!(get(Measure::IdentifierContainment), Some(0.0));
    assert_eq!(get(Measure::Verbatim), Some(0.0));
    assert_eq!(get(Measure::ReciprocalRank), Some(0.0));
}

#[test]
fn the_target_itself_is_found_at_its_rank() {
    let target = "a = 1\n\n  b(a)";
    let split = "  a = 1\nc\nb(a)"; // both lines, but not one after the other
    let whole = "z\n a = 1\n\n\nb(a)\nz";
    let measures =
        RetrievalTarget::new(target, &[], identifiers).measure(&[split, "", whole, whole]);
    assert_eq!((measures.rank, measures.lines), (Some(3), share(2, 2)));
    let defined = values(&measures);
    let third = Some(1.0 / 3.0);
    let one = Some(1.0);
    // rr and es are the last two that are defined; there is no ground-truth query.
    let wanted = [vec![one; 10], vec![third, one], vec![None; DEPTHS.len()]];
    assert_eq!(defined, wanted.concat());
}

#[test]
fn what_cannot_be_measured_is_undefined_and_nothing_retrieved_is_zero() {
    let measures = RetrievalTarget::new(" \n\t\n", &["x"], identifiers).measure(&["", "x = 1"]);
    assert_eq!(values(&measures), [None; 15]);
    // A literal has no name, but a line.
    let measures = RetrievalTarget::new("1,", &[], identifiers).measure(&["x"]);
    assert_eq!((measures.identifiers, measures.lines), (share(0, 0), share(0, 1)));
    let measures = RetrievalTarget::new("f(x)", &["x"], identifiers).measure(&[]);
    let zeros = [[Some(0.0); 12].as_slice(), &[None; 3]].concat();
    assert_eq!(values(&measures), zeros);
    // All names are known: nothing new is wanted.
    let measures = RetrievalTarget::new("f(x)", &["f", "x"], identifiers).measure(&["f"]);
    assert_eq!(measures.get(Measure::NewIdentifierRecall), None);
    assert_eq!(measures.get(Measure::NewApiContainment), None);
    assert_eq!(measures.get(Measure::ApiRecall), Some(1.0));
}

#[test]
fn a_line_counts_as_often_as_it_stands_there() {
    let measures = RetrievalTarget::new("a\nb\na", &[], identifiers).measure(&["x\na"]);
    assert_eq!(measures.lines, share(2, 3));
}

#[test]
fn documents_of_two_queries() {
    // Of the first 5 of 6 (a to e), found's first 5 hold a, c and e; f comes sixth in both.
    let (found, truth) = (["x", "a", "c", "e", "y", "f"], ["a", "b", "c", "d", "e", "f"]);
    let measures = Measures::default().beside(&found, &truth);
    assert_eq!(measures.ground_truth_recall, [Some(0.0), Some(0.6), Some(4.0 / 6.0)]);
    assert_eq!(measures.get(Measure::GroundTruthRecall(5)), Some(0.6));
    assert_eq!(measures.get(Measure::GroundTruthRecall(7)), None);
    assert_eq!(recall_at(1, &[], &["a"]), Some(0.0));
    assert_eq!(recall_at(0, &["a"], &["a"]), None);
}

#[test]
fn names_differ_and_are_padded() {
    let names = Measure::ALL.map(|measure| measure.to_string());
    assert_eq!(std::collections::BTreeSet::from(names).len(), 15);
    assert_eq!(format!("{:>6}", Measure::ReciprocalRank), "    rr");
}

fn task(row: usize, repository: Option<&str>, measures: Measures) -> TaskQuality {
    TaskQuality {
        row,
        task_id: "repo/idx".into(),
        repository: repository.map(Into::into),
        measures,
    }
}

#[test]
fn means_are_over_the_tasks_that_have_a_value() {
    let with = |found, of, rank| Measures {
        identifiers: share(found, of),
        lines: share(0, 1),
        rank,
        ..Measures::default()
    };
    let quality = RetrievalQuality::of(vec![
        task(0, Some("b"), with(1, 2, Some(2))),
        task(1, Some("a"), with(3, 3, None)),
        task(2, None, with(0, 1, Some(1))),
        task(3, Some("b"), with(0, 0, Some(4))),
    ]);
    let mean = |summary: &QualityMeans, measure| {
        let MeasureMean { n, mean, .. } = summary.get(measure).unwrap();
        (n, mean)
    };
    let names: Vec<_> = quality.repositories.iter().map(|(name, s)| (&**name, s.n)).collect();
    assert_eq!(names, [("a", 1), ("b", 2)]); // the task without a repository counts in all alone
    let b = &quality.repositories[1].1;
    assert_eq!(mean(b, Measure::IdentifierRecall), (1, Some(0.5)));
    assert_eq!(mean(b, Measure::ReciprocalRank), (2, Some(0.375))); // 1/2, 1/4
    assert_eq!(quality.all.n, 4);
    assert_eq!(mean(&quality.all, Measure::IdentifierRecall), (3, Some(0.5))); // 1/2, 1, 0
    assert_eq!(mean(&quality.all, Measure::ReciprocalRank), (4, Some(0.4375))); // 1/2, 0, 1, 1/4
    assert_eq!(mean(&quality.all, Measure::NewApiRecall), (0, None));
    let record = quality.to_record("rg1 jaccard", false);
    assert_eq!(record["retrieval"], "rg1 jaccard");
    assert_eq!(record["all"]["n"], 4);
    assert_eq!(record["all"]["rr"].to_string(), r#"{"mean":0.4375,"n":4}"#);
    assert_eq!(record["all"]["es"].to_string(), r#"{"mean":null,"n":0}"#);
    assert_eq!(record["repositories"]["a"]["id_recall"]["mean"], 1.0);
    assert_eq!(record.get("tasks"), None);
    let rows = quality.to_record("rg1 jaccard", true);
    assert_eq!(
        rows["tasks"][0].to_string(),
        r#"{"row":0,"task_id":"repo/idx","repository":"b","id_recall":0.5,"id_containment":0.0,"new_id_recall":null,"new_id_containment":null,"api_recall":null,"api_containment":null,"new_api_recall":null,"new_api_containment":null,"line_recall":0.0,"verbatim":1.0,"rr":0.5,"es":null,"gt_recall@1":null,"gt_recall@5":null,"gt_recall@10":null}"#
    );
    assert_eq!(rows["tasks"][2]["repository"], serde_json::Value::Null);
    let none = RetrievalQuality::of(Vec::new());
    assert_eq!((none.all.n, none.repositories.len()), (0, 0));
}

/// The definitions of names and lines with sets, one by one.
fn naive(target: &str, in_file: &[&str], fragments: &[&str]) -> [Share; 5] {
    use std::collections::BTreeSet;
    let set = |texts: &[&str]| -> BTreeSet<String> {
        let names = texts.iter().flat_map(|text| identifiers(text));
        names.map(str::to_owned).collect()
    };
    let (wanted, known, held) = (set(&[target]), set(in_file), set(fragments));
    let is_called = |name: &&String| {
        let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
        target.match_indices(name.as_str()).any(|(at, _)| {
            let rest = &target[at + name.len()..];
            let rest = rest.trim_start_matches([' ', '\t']);
            !target[..at].ends_with(is_word) && rest.starts_with('(')
        })
    };
    let of = |names: Vec<&String>| {
        let found = names.iter().filter(|name| held.contains(**name)).count();
        share(found, names.len())
    };
    let is_new = |name: &&String| !known.contains(*name);
    let lines = |text: &str| -> Vec<String> {
        let lines = text.split('\n').map(|line| line.trim().to_owned());
        lines.filter(|line| !line.is_empty()).collect()
    };
    let (target_lines, all) = (lines(target), lines(&fragments.join("\n")));
    let found = target_lines.iter().filter(|line| all.contains(line)).count();
    [
        of(wanted.iter().collect()),
        of(wanted.iter().filter(is_new).collect()),
        of(wanted.iter().filter(is_called).collect()),
        of(wanted.iter().filter(is_called).filter(is_new).collect()),
        share(found, target_lines.len()),
    ]
}

const CODE: &str = "([ab_]{1,2}[ .(),=\n]|a\\(b\\)\n|\n){0,12}";

proptest! {
    #[test]
    fn shares_equal_their_definitions(
        target in CODE, left in CODE, right in CODE,
        fragments in prop::collection::vec(CODE, 0..4),
    ) {
        let fragments: Vec<&str> = fragments.iter().map(String::as_str).collect();
        let m = RetrievalTarget::new(&target, &[&left, &right], identifiers).measure(&fragments);
        let shares = [m.identifiers, m.new_identifiers, m.apis, m.new_apis, m.lines];
        prop_assert_eq!(shares, naive(&target, &[&left, &right], &fragments));
    }

    #[test]
    fn more_fragments_are_never_less_and_order_matters_to_the_rank_alone(
        target in CODE, left in CODE,
        fragments in prop::collection::vec(CODE, 0..6),
        keep in any::<prop::sample::Index>(),
    ) {
        let fragments: Vec<&str> = fragments.iter().map(String::as_str).collect();
        let wanted = RetrievalTarget::new(&target, &[&left], identifiers);
        let all = wanted.measure(&fragments);
        let fewer = wanted.measure(&fragments[..keep.index(fragments.len() + 1)]);
        for (all, fewer) in values(&all).into_iter().zip(values(&fewer)) {
            prop_assert_eq!(all.is_some(), fewer.is_some());
            prop_assert!(all.is_none_or(|value| (0.0..=1.0).contains(&value)));
            prop_assert!(fewer <= all);
        }
        let backwards: Vec<&str> = fragments.iter().rev().copied().collect();
        let backwards = Measures { rank: all.rank, ..wanted.measure(&backwards) };
        prop_assert_eq!(backwards, all);
        // The target among the fragments: all that is wanted is found.
        let itself = wanted.measure(&[&target]);
        let of_target = &Measure::ALL[..12];
        prop_assert!(of_target.iter().all(|&m| itself.get(m).is_none_or(|value| value == 1.0)));
    }

    #[test]
    fn a_query_that_is_the_ground_truth_recalls_all(
        documents in prop::collection::vec(0..30u8, 1..15), other in prop::collection::vec(0..30u8, 0..15), k in 1..12usize,
    ) {
        prop_assert_eq!(recall_at(k, &documents, &documents), Some(1.0));
        let recall = recall_at(k, &other, &documents).unwrap();
        prop_assert!((0.0..=1.0).contains(&recall));
    }
}
