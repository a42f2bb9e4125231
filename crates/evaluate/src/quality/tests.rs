use proptest::prelude::*;

use super::*;

/// Returns the word runs that begin with a letter or `_`: a stand-in for a language's identifiers.
fn identifiers(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    words.filter(|word| word.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())).collect()
}

fn share(found: usize, of: usize) -> Share {
    Share { found, of }
}

fn values(measures: &Measures) -> [Option<f64>; 16] {
    measures.values().map(|(_, value)| value)
}

fn measure(target: &str, in_file: &[&str], fragments: &[&str]) -> Measures {
    RetrievalTarget::new(target, in_file, identifiers).measure(fragments)
}

#[test]
fn a_task_by_hand() {
    // Names: out, Reader, open_file, path, read. The left context shows path and read, the right one out. Calls: Reader,
    // open_file, read.
    let target = "    out = Reader(open_file(path))\n\n    out.read(path)\n";
    let in_file = ["def f(path):\n    reader.read()\n", "    return out\n"];
    let fragments = ["class Reader:\n    pass", "x\n  out.read(path)  \ny", "Path"];
    let measures = measure(target, &in_file, &fragments);
    // Found: Reader, out, read and path, but not open_file. Reader and open_file are new.
    assert_eq!((measures.identifiers, measures.new_identifiers), (share(4, 5), share(1, 2)));
    assert_eq!((measures.apis, measures.new_apis), (share(2, 3), share(1, 2)));
    assert_eq!((measures.lines, measures.rank), (share(1, 2), None));
    // "out = Reader(open_file(path))\nout.read(path)" is 29 + 1 + 14 characters. "x\nout.read(path)" is its last 15 and an x
    // that stands for any other: 28 insertions and a substitution.
    assert_eq!(measures.edit_similarity, Some(1.0 - 29.0 / 44.0));
    for name in ["id_containment", "verbatim", "rr"] {
        assert_eq!(measures.get(name), Some(0.0), "{name}");
    }
}

#[test]
fn the_target_itself_is_found_at_its_rank() {
    let target = "a = 1\n\n  b(a)";
    let split = "  a = 1\nc\nb(a)"; // both lines, but not one after the other
    let whole = "z\n a = 1\n\n\nb(a)\nz";
    let measures = measure(target, &[], &[split, "", whole, whole]);
    assert_eq!((measures.rank, measures.lines), (Some(3), share(2, 2)));
    // rr and es are the last two defined values; there are no definitions and no ground-truth query.
    let (one, third) = (Some(1.0), Some(1.0 / 3.0));
    let wanted = [vec![one; 10], vec![third, one], vec![None; 1 + DEPTHS.len()]];
    assert_eq!(values(&measures).to_vec(), wanted.concat());
}

#[test]
fn what_cannot_be_measured_is_undefined_and_nothing_retrieved_is_zero() {
    assert_eq!(values(&measure(" \n\t\n", &["x"], &["", "x = 1"])), [None; 16]);
    // A literal has no name, but a line.
    let measures = measure("1,", &[], &["x"]);
    assert_eq!((measures.identifiers, measures.lines), (share(0, 0), share(0, 1)));
    let zeros = [[Some(0.0); 12].as_slice(), &[None; 4]].concat();
    assert_eq!(values(&measure("f(x)", &["x"], &[])).to_vec(), zeros);
    // All names are known, so nothing new is wanted.
    let measures = measure("f(x)", &["f", "x"], &["f"]);
    assert_eq!((measures.get("new_id_recall"), measures.get("new_api_containment")), (None, None));
    assert_eq!(measures.get("api_recall"), Some(1.0));
}

#[test]
fn means_are_over_the_tasks_that_have_a_value() {
    let task = |row, repository: Option<&str>, found, of, rank| TaskQuality {
        row,
        task_id: "repo/idx".into(),
        repository: repository.map(Into::into),
        measures: Measures {
            identifiers: share(found, of),
            lines: share(0, 1),
            rank,
            ..Measures::default()
        },
    };
    let quality = RetrievalQuality::new(vec![
        task(0, Some("b"), 1, 2, Some(2)),
        task(1, Some("a"), 3, 3, None),
        task(2, None, 0, 1, Some(1)),
        task(3, Some("b"), 0, 0, Some(4)),
    ]);
    let record = quality.to_record("rg1 jaccard", true);
    assert_eq!(record["retrieval"], "rg1 jaccard");
    // The task without a repository counts only in the means over all. Identifiers: 1/2, 1, 0; ranks: 1/2, 0, 1, 1/4.
    let (all, b) = (&record["all"], &record["repositories"]["b"]);
    assert_eq!((&all["n"], &b["n"]), (&4.into(), &2.into()));
    assert_eq!(all["id_recall"].to_string(), r#"{"mean":0.5,"n":3}"#);
    assert_eq!(all["rr"].to_string(), r#"{"mean":0.4375,"n":4}"#);
    assert_eq!(all["es"].to_string(), r#"{"mean":null,"n":0}"#);
    assert_eq!(b["id_recall"].to_string(), r#"{"mean":0.5,"n":1}"#);
    assert_eq!(b["rr"]["mean"], 0.375);
    assert_eq!(record["repositories"]["a"]["id_recall"]["mean"], 1.0);
    assert_eq!(
        record["tasks"][0].to_string(),
        r#"{"row":0,"task_id":"repo/idx","repository":"b","id_recall":0.5,"id_containment":0.0,"new_id_recall":null,"new_id_containment":null,"api_recall":null,"api_containment":null,"new_api_recall":null,"new_api_containment":null,"line_recall":0.0,"verbatim":1.0,"rr":0.5,"es":null,"definition_recall":null,"gt_recall@1":null,"gt_recall@5":null,"gt_recall@10":null}"#
    );
    assert_eq!(quality.to_record("rg1 jaccard", false).get("tasks"), None);
    assert_eq!(RetrievalQuality::new(Vec::new()).all.n, 0);
}

/// Computes the shares of names and lines by their definitions, with sets.
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
        let m = measure(&target, &[&left, &right], &fragments);
        let shares = [m.identifiers, m.new_identifiers, m.apis, m.new_apis, m.lines];
        prop_assert_eq!(shares, naive(&target, &[&left, &right], &fragments));
    }
}
