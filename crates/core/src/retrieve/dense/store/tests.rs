use super::*;
use proptest::prelude::*;

fn vector(seed: u8, dim: usize) -> Vec<f32> {
    (0..dim).map(|at| f32::from(seed) + at as f32 / 8.0).collect()
}

fn path(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("a/b.vectors")
}

/// Creates a store with one vector for each of these texts.
fn filled(path: &Path, texts: &[&str]) -> VectorStore {
    let mut store = VectorStore::open(path, "m").unwrap();
    fill(&mut store, texts);
    store
}

/// Appends vectors for these texts in one batch.
fn fill(store: &mut VectorStore, texts: &[&str]) {
    let vectors: Vec<Vec<f32>> = (0..texts.len() as u8).map(|seed| vector(seed, 3)).collect();
    let records: Vec<(Digest, &[f32])> = texts
        .iter()
        .zip(&vectors)
        .map(|(text, vector)| (digest(text), vector.as_slice()))
        .collect();
    store.append(&records).unwrap();
}

fn refused(path: &Path, model: &str) -> (String, String) {
    let error = VectorStore::open(path, model).unwrap_err();
    (error.to_string(), error.hint().unwrap().to_string())
}

#[test]
fn vectors_are_found_again_after_closing() {
    let dir = tempfile::tempdir().unwrap();
    let path = path(&dir);
    let mut store = VectorStore::open(&path, "m").unwrap();
    assert_eq!(store.dim(), None);
    assert_eq!(store.get(&digest("a")).unwrap(), None);
    store.append(&[]).unwrap();
    let (a, b, other) = (vector(1, 3), vector(2, 3), vector(9, 3));
    // "a" occurs twice in one batch and again in the next: its first vector stays.
    store.append(&[(digest("a"), &a), (digest("b"), &b), (digest("a"), &other)]).unwrap();
    store.append(&[(digest("a"), &other), (digest("c"), &[0.0, 0.0, 1.0])]).unwrap();
    drop(store);
    let store = VectorStore::open(&path, "m").unwrap();
    assert_eq!(
        (store.records.len(), store.count, store.dim(), store.notes().len()),
        (3, 3, Some(3), 0)
    );
    let matrix = store.matrix(["b", "", "a", "b"]).unwrap();
    let rows: Vec<&[f32]> = matrix.iter().collect();
    assert_eq!(rows, [&b[..], &[0.0; 3], &a, &b]);
    let error = store.matrix(["b", "x", "y"]).unwrap_err();
    assert!(
        error.to_string().ends_with("contains no vector for 2 of the texts; the first is \"x\""),
        "{error}"
    );
}

#[test]
fn a_torn_end_is_dropped_wherever_it_is_torn() {
    let dir = tempfile::tempdir().unwrap();
    let path = path(&dir);
    drop(filled(&path, &["a", "b"]));
    let bytes = std::fs::read(&path).unwrap();
    let record = DIGEST + 12 + CHECKSUM;
    let header = bytes.len() - 2 * record;
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let mut store = VectorStore::open(&path, "m").unwrap();
        let whole = length.saturating_sub(header) / record;
        assert_eq!(store.records.len(), whole, "{length}");
        let torn = length != 0 && (length < header || !(length - header).is_multiple_of(record));
        assert_eq!(store.notes().len(), usize::from(torn), "{length}");
        // Lost vectors are computed again, and the file is the same as before.
        fill(&mut store, &["a", "b"]);
        drop(store);
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn damaged_vectors_are_dropped_and_no_others(flips in prop::collection::btree_set(0_usize..8, 0..8)) {
        let dir = tempfile::tempdir().unwrap();
        let path = path(&dir);
        let texts = ["0", "1", "2", "3", "4", "5", "6", "7"];
        drop(filled(&path, &texts));
        let mut bytes = std::fs::read(&path).unwrap();
        let record = DIGEST + 12 + CHECKSUM;
        let header = bytes.len() - 8 * record;
        for flip in &flips {
            bytes[header + flip * record + 5 * flip] ^= 1;
        }
        std::fs::write(&path, &bytes).unwrap();
        for run in 0..2 {
            let store = VectorStore::open(&path, "m").unwrap();
            prop_assert_eq!(store.notes().len(), usize::from(run == 0 && !flips.is_empty()));
            for (number, text) in texts.iter().enumerate() {
                let expected = (!flips.contains(&number)).then(|| vector(number as u8, 3));
                prop_assert_eq!(store.get(&digest(text)).unwrap(), expected);
            }
            prop_assert_eq!(store.path.metadata().unwrap().len() as usize, header + (8 - flips.len()) * record);
        }
    }
}

#[test]
fn a_file_that_is_something_else_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    drop(filled(&path, &["a", "b"]));
    let good = std::fs::read(&path).unwrap();
    let replaced = |from: &str, to: &str| {
        let at = good.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
        [&good[..at], to.as_bytes(), &good[at + from.len()..]].concat()
    };
    for (bytes, model, reason, hint) in [
        (b"a = 1\n".to_vec(), "m", "not a vector file of repoformer", "another file"),
        (good.clone(), "n", "contains vectors of model 'm', not 'n'", "each model"),
        (
            replaced("\"format\":1", "\"format\":7"),
            "m",
            "in format 7; this is repoformer",
            "remove it",
        ),
        (replaced("\"dim\":3", "\"dim\":0"), "m", "have 0 numbers", "remove it"),
        (replaced("\"dim\":3", "\"dim\":4"), "m", "all of its", "remove it"),
        (
            replaced("\"format\":1", "\"farmat\":1"),
            "m",
            "its header is damaged: missing field",
            "remove it",
        ),
    ] {
        // Two more vectors, so that more than one record is complete in the other size, too.
        let bytes = [&bytes[..], &[0; 200]].concat();
        std::fs::write(&path, &bytes).unwrap();
        let (text, way_out) = refused(&path, model);
        assert!(text.contains(reason), "{text}");
        assert!(way_out.contains(hint), "{way_out}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{text}");
    }
}

#[test]
fn one_writer_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = path(&dir);
    let first = VectorStore::open(&path, "m").unwrap();
    let (text, hint) = refused(&path, "m");
    assert!(text.ends_with("another process is writing these vectors"), "{text}");
    assert!(hint.contains("wait"));
    drop(first);
    VectorStore::open(&path, "m").unwrap();
}

#[test]
fn vectors_that_do_not_fit_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = path(&dir);
    let mut store = filled(&path, &["a"]);
    let before = std::fs::read(&path).unwrap();
    for (wrong, reason) in [
        (&[1.0, 2.0][..], "it has 2 numbers, but the other vectors in"),
        (&[1.0, f32::NAN, 0.0], "not finite"),
        (&[], "it has 0 numbers"),
    ] {
        let good = vector(5, 3);
        let error = store.append(&[(digest("b"), &good), (digest("c"), wrong)]).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert_eq!((store.records.len(), std::fs::read(&path).unwrap()), (1, before));
}

#[test]
fn file_names_are_safe_and_one_for_each_model() {
    let names =
        ["m", "M", "a/b", "a-b", "..", "/etc/x", "é", &"x".repeat(300)].map(store_file_name);
    let distinct: std::collections::HashSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    for name in &names {
        assert!(!name.contains('/') && !name.starts_with('.') && name.len() < 110, "{name}");
        assert!(name.is_ascii() && name.ends_with(".vectors"), "{name}");
    }
}
