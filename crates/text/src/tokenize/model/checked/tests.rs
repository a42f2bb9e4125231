use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokenizers::normalizers::Precompiled;

use super::super::{Encoder, TextPart, Tokenizer};

/// Returns a file with a byte-level BPE of single characters, in which one part is replaced by `value`.
fn file(part: &str, value: Value) -> Value {
    let mut ids: serde_json::Map<String, Value> =
        (33..127_u8).map(|byte| (char::from(byte).to_string(), Value::from(byte))).collect();
    ids.extend([("Ġ".to_owned(), 200.into()), ("Ċ".to_owned(), 201.into())]);
    let mut file = json!({
        "version": "1.0", "added_tokens": [], "pre_tokenizer": byte_level(),
        "model": {"type": "BPE", "vocab": ids, "merges": []},
    });
    file[part] = value;
    file
}

fn byte_level() -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})
}

fn replace(found: &str, content: &str) -> Value {
    json!({"type": "Replace", "pattern": {"String": found}, "content": content})
}

fn replace_each(found: &str, content: &str) -> Value {
    json!({"type": "Replace", "pattern": {"Regex": found}, "content": content})
}

fn in_turn(steps: Vec<Value>) -> Value {
    json!({"type": "Sequence", "normalizers": steps})
}

fn cut_in_turn(steps: Vec<Value>) -> Value {
    json!({"type": "Sequence", "pretokenizers": steps})
}

/// Returns a table in Base64 in which `a` becomes `text`; `wrong` changes its bytes.
fn table(text: &str, wrong: impl Fn(&mut Vec<u8>)) -> Value {
    table_of("a", text, wrong)
}

fn table_of(key: &str, text: &str, wrong: impl Fn(&mut Vec<u8>)) -> Value {
    let mut units = vec![0_u32; 256 * (key.len() + 2)];
    units[0] = 256 << 10;
    let mut node = 256;
    for (at, byte) in key.bytes().enumerate() {
        let (unit, next) = (node ^ u32::from(byte), node + 256);
        let has_leaf = u32::from(at + 1 == key.len());
        units[unit as usize] = u32::from(byte) | has_leaf << 8 | (next ^ unit) << 10;
        node = next;
    }
    units[node as usize] = 1 << 31;
    let mut bytes = (units.len() as u32 * 4).to_le_bytes().to_vec();
    bytes.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
    bytes.extend(text.bytes());
    bytes.push(0);
    let whole = serde_json::to_value(Precompiled::from(&bytes).unwrap()).unwrap();
    wrong(&mut bytes);
    match Precompiled::from(&bytes) {
        Ok(table) => serde_json::to_value(table).unwrap(),
        Err(_) => whole,
    }
}

fn template(place: Value) -> Value {
    let special = json!({"<s>": {"id": "<s>", "ids": [33], "tokens": ["!"]}});
    let twice = json!({"Sequence": {"id": "A", "type_id": 0}});
    let single = json!([place, twice]);
    json!({"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": special})
}

fn added(content: &str, lstrip: bool, rstrip: bool) -> Value {
    json!({
        "id": 300, "content": content, "single_word": false, "lstrip": lstrip, "rstrip": rstrip,
        "normalized": true, "special": false,
    })
}

fn model(field: &str, value: Value) -> Value {
    let mut model = json!({
        "type": "WordPiece", "unk_token": "!", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100, "vocab": {"!": 0, "x": 1},
    });
    model[field] = value;
    model
}

fn pieces(pieces: impl Iterator<Item = String>) -> Value {
    let pieces = pieces.map(|piece| json!([piece, -1.0]));
    let vocab: Vec<Value> = std::iter::once(json!(["<u>", 0.0])).chain(pieces).collect();
    json!({"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": false})
}

/// Opens a file as the program does, for counting and for training.
fn opened(content: &str) -> Result<Tokenizer, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, content).unwrap();
    let tokenizer = Tokenizer::open(&path).map_err(|e| e.to_string());
    let encoder = Encoder::open(&path, &["<cc>"]).map_err(|e| e.to_string());
    assert_eq!(tokenizer.as_ref().err(), encoder.as_ref().err());
    let name = format!("{}: ", path.display());
    tokenizer.map_err(|e| e.strip_prefix(&name).unwrap().to_owned())
}

#[test]
fn parts_that_would_crash_or_grow_are_refused_by_name() {
    let long = "a".repeat(100_000);
    let beyond = |bytes: &mut Vec<u8>| bytes[4..8].copy_from_slice(&(768_u32 << 10).to_le_bytes());
    let no_text = |bytes: &mut Vec<u8>| bytes[2052..2056].copy_from_slice(&[9, 0, 0, 128]);
    let metaspace = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"});
    let pad = json!({"SpecialToken": {"id": "zz", "type_id": 0}});
    let again = json!({"Sequence": {"id": "A", "type_id": 0}});
    let second = json!({"Sequence": {"id": "B", "type_id": 0}});
    let mut long_special = template(json!({"SpecialToken": {"id": "<s>", "type_id": 0}}));
    long_special["special_tokens"]["<s>"]["tokens"] = json!([long]);
    let text = |text: &str| json!({"type": "Precompiled", "precompiled_charsmap": text});
    for (part, value, reason) in [
        ("normalizer", text("/////w=="), "shorter than it says"),
        ("normalizer", text("AAAA"), "shorter than it says"),
        ("normalizer", text("AAAAAA=="), "is empty"),
        ("normalizer", text("?"), "not Base64"),
        ("normalizer", table("b", beyond), "offset beyond its end"),
        ("normalizer", table("b", no_text), "leads to no text"),
        ("normalizer", table(&"b".repeat(17), |_| ()), "Precompiled makes texts more than 16"),
        ("normalizer", table(&"b".repeat(300), |_| ()), "leads to no text"),
        ("normalizer", replace("a", &long), "Replace makes texts more than 10 times as long"),
        ("normalizer", in_turn(vec![replace("a", "aa"); 40]), "Replace makes texts more than 10"),
        ("normalizer", replace("a", "\u{fdfa}"), "Replace makes texts more"),
        (
            "normalizer",
            in_turn(vec![replace("a", "漢"), table_of("漢", &"b".repeat(18), |_| ())]),
            "Precompiled makes texts more",
        ),
        ("normalizer", in_turn(vec![replace_each("(?=a)", "a"); 7]), "Replace makes texts more"),
        ("normalizer", in_turn(vec![replace_each("x*", "a"); 7]), "Replace makes texts more"),
        ("normalizer", in_turn(vec![replace("", "a"); 7]), "Replace makes texts more"),
        ("normalizer", json!({"type": "Prepend", "prepend": long}), "Prepend makes texts more"),
        ("normalizer", in_turn(vec![json!({"type": "NFC"}); 100]), "more than 32 steps"),
        ("normalizer", in_turn(vec![json!({"type": "ByteLevel"}); 3]), "ByteLevel makes texts"),
        ("normalizer", json!({"type": "Other", "content": "a"}), "Other is not a supported type"),
        ("normalizer", json!({"prepend": "a"}), "missing field `type`"),
        ("normalizer", replace_each(&long, "a"), "pattern of more than 16384 bytes"),
        ("normalizer", replace_each("(", "a"), "a pattern is not valid"),
        ("normalizer", replace_each(".{0,600}.{0,600}(?=x)|.", "a"), "too many ways"),
        ("pre_tokenizer", json!({"type": "FixedLength", "length": 0}), "FixedLength has length 0"),
        ("pre_tokenizer", cut_in_turn(vec![metaspace; 7]), "Metaspace makes texts more than 10"),
        ("pre_tokenizer", cut_in_turn(vec![byte_level(); 7]), "ByteLevel makes texts more than"),
        (
            "decoder",
            json!({"type": "Sequence", "decoders": vec![replace("a", "aa"); 7]}),
            "Replace",
        ),
        ("post_processor", template(pad), "it has no special token zz"),
        (
            "post_processor",
            template(second),
            "the template for a single text contains a second text",
        ),
        (
            "post_processor",
            json!({"type": "Sequence", "processors": vec![template(again); 11]}),
            "more than 1024 tokens around a text",
        ),
        ("post_processor", long_special, "more than 1024 tokens around a text"),
        (
            "added_tokens",
            json!([{
                "id": 300, "content": long, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true,
            }]),
            "a token has more than 256 characters",
        ),
        ("added_tokens", json!([added(" \n", true, false)]), "a token of white space strips"),
        ("added_tokens", json!([added("\u{3000}", false, true)]), "a token of white space strips"),
        (
            "added_tokens",
            (0..20_001).map(|n| added(&format!("<{n}>"), false, false)).collect(),
            "it has more than 20000 tokens",
        ),
        ("model", model("unk_token", json!(long)), "its unk_token has more than 64 characters"),
        ("model", model("continuing_subword_prefix", json!(long)), "its continuing_subword_prefix"),
        (
            "model",
            model("max_input_chars_per_word", json!(1 << 30)),
            "max_input_chars_per_word is above 200",
        ),
        ("model", model("vocab", json!({"!": 0, "x": 1, "aa".repeat(40): 1})), "the id of another"),
        ("model", pieces((1..3000).map(|n| "a".repeat(n))), "a piece has more than 64 characters"),
        (
            "model",
            pieces((0..80_000).map(|n| format!("{n}{}", "a".repeat(58)))),
            "its pieces have more than 4194304 different beginnings",
        ),
    ] {
        let shown = value.to_string().chars().take(80).collect::<String>();
        let error = opened(&file(part, value).to_string()).unwrap_err();
        let wanted = format!("its {part} cannot be used: ");
        assert!(error.starts_with(&wanted) && error.contains(reason), "{shown}: {error}");
    }
}

/// 80 characters `a`, a blank and three characters of one byte each.
const TEXT: &str = concat!(
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa = 1"
);

#[test]
fn parts_that_real_tokenizers_have_are_taken() {
    let cls = json!({"SpecialToken": {"id": "<s>", "type_id": 0}});
    let metaspace = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"});
    let like_albert = vec![
        replace("``", "\""),
        json!({"type": "NFKD"}),
        json!({"type": "StripAccents"}),
        json!({"type": "Lowercase"}),
        table("b", |_| ()),
        replace_each(" {2,}", "▁"),
    ];
    let like_llama = vec![json!({"type": "Prepend", "prepend": "▁"}), replace(" ", "▁")];
    let split = json!({
        "type": "Split", "pattern": {"Regex": "(\\d{3})+(?!\\d)|\\s+(?!\\S)|\\s+"}, "behavior": "Isolated",
        "invert": false,
    });
    // The form in which the library writes its own type.
    let like_bert = json!({
        "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
        "lowercase": true,
    });
    let mut mixed = like_bert.clone();
    mixed["content"] = "a".into();
    assert!(opened(&file("normalizer", mixed).to_string()).is_err());
    for (part, value, count, around) in [
        ("normalizer", Value::Null, 84, 0),
        ("normalizer", table("bb", |_| ()), 164, 0),
        ("normalizer", in_turn(like_albert), 84, 0),
        ("added_tokens", json!([added("<|user|>", true, true), added("  ", false, false)]), 84, 0),
        // The prefix put before the text, and each blank, have no token.
        ("normalizer", in_turn(like_llama), 82, 0),
        ("normalizer", like_bert.clone(), 84, 0),
        ("pre_tokenizer", cut_in_turn(vec![split, byte_level()]), 84, 0),
        ("pre_tokenizer", json!({"type": "CharDelimiterSplit", "delimiter": " "}), 82, 0),
        ("pre_tokenizer", metaspace, 82, 0),
        ("post_processor", template(cls), 84, 1),
        ("model", pieces((1..65).map(|n| "a".repeat(n))), 4, 0),
    ] {
        let shown = value.to_string().chars().take(80).collect::<String>();
        let tokenizer = opened(&file(part, value).to_string()).expect(&shown);
        assert_eq!((tokenizer.count(TEXT), tokenizer.around()), (count, around), "{shown}");
    }
}

/// SentencePiece's tables have a character of three bytes that becomes 18 characters.
#[test]
fn a_table_may_have_long_texts_for_characters_of_several_bytes() {
    let table = table_of("\u{fdfa}", &"b".repeat(18), |_| ());
    let metaspace = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"});
    let mut file = file("normalizer", in_turn(vec![replace("''", "\""), table]));
    file["pre_tokenizer"] = metaspace;
    assert_eq!(opened(&file.to_string()).unwrap().count("\u{fdfa}"), 18);
}

/// The library looks for added tokens in the normalized text.
#[test]
fn what_becomes_white_space_is_white_space() {
    for (content, becomes) in [("<x>", " "), ("<x>", ""), ("<y>", "\n\t")] {
        let mut file = file("normalizer", replace(content, becomes));
        file["added_tokens"] = json!([added(content, false, true)]);
        let error = opened(&file.to_string()).unwrap_err();
        assert!(error.contains("a token of white space strips"), "{content}: {error}");
        file["added_tokens"][0]["normalized"] = false.into();
        assert!(opened(&file.to_string()).is_ok(), "{content}");
    }
}

/// Padding and truncation are dropped before the library reads the file.
#[test]
fn padding_and_truncation_are_never_read() {
    let padding = json!({
        "strategy": {"Fixed": 1_000_000_000}, "direction": "Right", "pad_to_multiple_of": null,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "a",
    });
    for (part, value) in [("padding", padding), ("truncation", json!({"max_length": 0}))] {
        let tokenizer = opened(&file(part, value).to_string()).unwrap();
        assert_eq!((tokenizer.count(TEXT), tokenizer.around()), (84, 0), "{part}");
    }
}

/// The library tries the longest accepted pieces at each character.
#[test]
fn long_pieces_take_time_in_proportion_to_the_text() {
    let mut content = file("model", pieces((1..65).map(|n| "a".repeat(n))));
    content["pre_tokenizer"] = Value::Null;
    let tokenizer = opened(&content.to_string()).unwrap();
    let start = Instant::now();
    assert_eq!(tokenizer.count_parts(&[TextPart::Plain(&"a".repeat(20_000))]), 313);
    assert!(start.elapsed() < Duration::from_secs(20));
}
