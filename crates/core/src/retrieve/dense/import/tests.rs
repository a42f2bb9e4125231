use super::*;
use serde_json::json;

fn texts(texts: &[(&str, &str)]) -> Vec<Text> {
    texts.iter().map(|(id, text)| Text { id: (*id).into(), text: (*text).into() }).collect()
}

/// Returns the result of importing a file of these bytes.
fn of(bytes: &[u8], texts: &[Text]) -> Result<TextVectors> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v");
    std::fs::write(&path, bytes).unwrap();
    import(&path, texts)
}

fn lines(records: &[Value]) -> Vec<u8> {
    records.iter().map(|record| format!("{record}\n\n")).collect::<String>().into()
}

/// Returns the error without the folder.
fn refused(bytes: &[u8], texts: &[Text]) -> String {
    let error = of(bytes, texts).unwrap_err();
    assert!(error.hint().is_some(), "{error}");
    let text = error.to_string();
    text[text.find("/v").unwrap() + 1..].into()
}

#[test]
fn lines_name_their_text_in_any_of_four_ways() {
    let texts = texts(&[("0", "a"), ("r/x", "b\n"), ("7", "c"), ("i", "d"), ("e", "")]);
    let hex = digest("a").to_hex();
    let bytes = lines(&[
        json!({"id": "i", "embedding": [4, 0.5]}),
        json!({"digest": hex.to_uppercase(), "vector": [1.0, 0.5]}),
        json!({"text": "b\n", "digest": digest("b\n").to_hex().as_str(), "embedding": [2.0, 0.5], "x": []}),
        json!({"_id": 7, "embedding": [3.0, 0.5]}),
        json!({"text": "of another time", "embedding": [9.0, 9.0]}),
    ]);
    let packed = cfg!(feature = "zstd").then(|| zstd::stream::encode_all(&bytes[..], 1).unwrap());
    for bytes in [Some(bytes), packed].into_iter().flatten() {
        let vectors = of(&bytes, &texts).unwrap();
        assert_eq!(vectors.rows.len(), 4);
        let matrix = vectors.matrix(["d", "c", "b\n", "a", "", "a"]).unwrap();
        let firsts: Vec<f32> = matrix.iter().map(|row| row[0]).collect();
        assert_eq!(firsts, [4.0, 3.0, 2.0, 1.0, 0.0, 1.0]);
        let error = vectors.matrix(["of another time"]).unwrap_err().to_string();
        assert!(error.ends_with("has no vector for the text \"of another time\""), "{error}");
    }
}

#[test]
fn a_wrong_line_is_named() {
    let texts = texts(&[("0", "a"), ("1", "b"), ("2", "x"), ("2", "y")]);
    let good = json!({"_id": "0", "embedding": [1.0, 2.0]});
    for (record, reason) in [
        (
            json!({"_id": "1", "embedding": [1.0]}),
            "the vector has 1 numbers, but earlier vectors have 2",
        ),
        (json!({"_id": "1", "embedding": [1.0, null]}), "field 'embedding': number 2 is null"),
        (json!({"_id": "1", "vector": [1.0, "NaN"]}), "field 'vector': number 2 is \"NaN\""),
        (json!({"_id": "1", "vector": [-1e39, 1.0]}), "number 1 is -1e+39, too large for 32 bits"),
        (json!({"_id": "1", "vector": [-1e-39, 1e-50]}), "number is 1e-39, too small for 32 bits"),
        (
            json!({"_id": "1", "vector": 3}),
            "field 'vector': a list of numbers is expected, not a number",
        ),
        (json!({"_id": "1", "vector": [[1.0, 2.0]]}), "a vector for each token"),
        (json!({"_id": "1", "vector": []}), "it contains no numbers"),
        (json!({"_id": "1"}), "field 'embedding' or 'vector' is missing"),
        (
            json!({"vector": [1.0, 2.0]}),
            "one of the fields 'digest', 'text', '_id' and 'id' is needed",
        ),
        (json!({"_id": "9", "vector": [1.0, 2.0]}), "no text has the id \"9\""),
        (json!({"_id": "2", "vector": [1.0, 2.0]}), "several texts have the id \"2\""),
        (json!({"text": 1, "vector": [1.0, 2.0]}), "field 'text' must be a string, not a number"),
        (json!({"digest": "ab", "vector": [1.0, 2.0]}), "not a BLAKE3 digest"),
        (
            json!({"digest": digest("a").to_hex().as_str(), "text": "b", "vector": [1.0, 2.0]}),
            "does not match field 'text'",
        ),
        (
            json!({"text": "a", "vector": [1.0, 2.1]}),
            "differs from the vector in line 1 for the same text, \"a\"",
        ),
        (json!([]), "a JSON object is expected, not a list"),
    ] {
        let text = refused(&lines(&[good.clone(), record]), &texts);
        assert!(text.starts_with("v:3: ") && text.contains(reason), "{text}");
    }
    let text = refused(b"{\"_id\": \"0\", \"embedding\": [NaN]}", &texts);
    assert_eq!(text, "v:1: field 'embedding': number 1 is NaN");
}

#[test]
fn the_same_text_may_have_a_vector_twice_if_it_is_the_same() {
    let texts = texts(&[("0", "a"), ("1", "a")]);
    let two = |second: f64| {
        lines(&[
            json!({"_id": "0", "vector": [1.0, 0.0]}),
            json!({"_id": "1", "vector": [1.0, second]}),
        ])
    };
    // The vectors differ by a hundredth of the first one's length, and by a little more.
    let vectors = of(&two(0.01), &texts).unwrap();
    assert_eq!(vectors.get(&digest("a")), Some(&[1.0, 0.0][..]), "the first one stays");
    assert!(
        refused(&two(0.0101), &texts)
            .contains("differs from the vector in line 1 for the same text")
    );
}

#[test]
fn texts_without_a_vector_are_counted_and_the_first_named() {
    let many: Vec<(String, String)> =
        (0..9).map(|n| (format!("t{n}"), format!("text {n}"))).collect();
    let many: Vec<(&str, &str)> =
        many.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    let bytes = lines(&[json!({"_id": "t1", "vector": [1.0]})]);
    let text = refused(&bytes, &texts(&many));
    let end =
        "has no vector for 8 of 9 texts: t0 (\"text 0\"), t2 (\"text 2\"), t3 (\"text 3\"), …";
    assert!(text.ends_with(end), "{text}");
    assert!(
        refused(b"", &texts(&many[..1]))
            .ends_with("has no vector for 1 of 1 texts: t0 (\"text 0\")")
    );
    assert_eq!(of(b"\n", &texts(&[("e", "")])).unwrap().matrix([""]).unwrap().len(), 1);
    assert!(of(b"", &[]).unwrap().rows.is_empty());
}

#[test]
fn rows_follow_the_texts() {
    // Written by tests/fixtures/dense/arrays.py: row i has the numbers (i + 1) × [1, −0.5, 0.25].
    let bytes = include_bytes!("../../../../../../tests/fixtures/dense/f4_fortran.npy");
    let four = texts(&[("0", "a"), ("1", "b"), ("2", "c"), ("3", "")]);
    let vectors = of(bytes, &four).unwrap();
    assert_eq!(vectors.get(&digest("c")), Some(&[3.0, -1.5, 0.75][..]));
    assert_eq!(
        vectors.matrix([""]).unwrap().row(0),
        [4.0, -2.0, 1.0],
        "an empty text may have a vector"
    );
    assert!(refused(bytes, &four[..3]).ends_with("4 rows for 3 texts"));
    let twice = texts(&[("0", "a"), ("1", "a"), ("2", "c"), ("3", "d")]);
    let text = refused(bytes, &twice);
    assert!(
        text.ends_with(
            "v row 1 (counted from 0): differs from the vector in row 0 for the same text, \"a\""
        ),
        "{text}"
    );
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap()
    };
    assert_eq!(of(&gzip, &four).unwrap().rows.len(), 4);
    let archive = include_bytes!("../../../../../../tests/fixtures/dense/archive.npz");
    assert!(refused(archive, &four).contains("an archive of arrays"));
    let none = include_bytes!("../../../../../../tests/fixtures/dense/no_numbers.npy");
    assert!(refused(none, &four).ends_with("its 4 rows are empty"));
}
