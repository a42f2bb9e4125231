use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

/// Returns the path of a small file in `tests/fixtures/tokenizers`; `train.py` there describes each of them.
fn fixture(name: &str) -> PathBuf {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("tests/fixtures/tokenizers");
    folder.join(format!("{name}.json"))
}

fn file(name: &str) -> Tokenizer {
    Tokenizer::open(&fixture(name)).unwrap()
}

fn all() -> Vec<Tokenizer> {
    let mut all = vec![Tokenizer::p50k_base(), Tokenizer::words()];
    all.extend(["starcoder", "qwen", "codellama", "first_part_differs"].map(file));
    all
}

/// Python's package tokenizers 0.23.3 with the same file gives `▁return`, `<PRE>`, `re`, `turn`. With the blank before every
/// part, as in `codellama.json`, it gives `▁return` twice.
#[test]
#[cfg_attr(not(feature = "tokenizers"), ignore = "needs the feature tokenizers")]
fn only_a_first_part_may_differ_from_the_others() {
    let parts = |tokenizer: &Tokenizer| {
        let parts =
            [TextPart::Plain("return"), TextPart::Special("<PRE>"), TextPart::Plain("return")];
        tokenizer.count_parts(&parts)
    };
    assert_eq!(parts(&file("codellama")), 3);
    let file = file("first_part_differs");
    assert_eq!((file.count("return"), parts(&file)), (1, 4));
}

const TEXTS: [&str; 3] = [
    "def read(path):\n    return open(path)\n",
    "x<fim_prefix>y<|fim_prefix|>z<PRE><|endoftext|></s>",
    "  naïve 漢字 😀\r\n\tif a!=b: # 1234\n\n\n",
];

/// Counts by Python's package tokenizers 0.23.3 with the same files, from which added tokens, truncation and post-processor
/// were removed, so that no text is special.
#[test]
#[cfg_attr(not(feature = "tokenizers"), ignore = "needs the feature tokenizers")]
fn code_has_the_tokens_of_its_characters() {
    let expected =
        [("starcoder", [15, 41, 37]), ("qwen", [14, 39, 37]), ("codellama", [17, 40, 38])];
    for (name, counts) in expected {
        let tokenizer = file(name);
        assert_eq!(TEXTS.map(|text| tokenizer.count(text)), counts, "{name}");
    }
}

/// By hand: a, é1_ | = | 漢字 | + | 😀 | ½; blanks of all kinds are not tokens.
#[test]
fn words_are_runs_and_single_characters() {
    let words = Tokenizer::words();
    let text = "aé1_ =\u{a0}漢字\u{2028}+😀\t½\u{85}";
    assert_eq!(words.count(text), 6);
    let spans = words.spans(text);
    assert_eq!(
        spans.into_iter().map(|s| &text[s]).collect::<Vec<_>>(),
        ["aé1_", "=", "漢字", "+", "😀", "½"]
    );
    assert_eq!(words.count(" \n\u{3000}"), 0);
    // A combining mark is in the category M and is not part of a word, as in Python.
    assert_eq!(words.count("e\u{301}f"), 3);
}

#[test]
#[cfg_attr(not(feature = "tokenizers"), ignore = "needs the feature tokenizers")]
fn a_marker_is_one_token_where_it_stands_for_itself() {
    let known = [
        ("starcoder", "<fim_prefix>"),
        // Not flagged as special in the file.
        ("qwen", "<|fim_prefix|>"),
        ("codellama", "<PRE>"),
    ];
    for (name, marker) in known {
        let tokenizer = file(name);
        assert!(tokenizer.special(marker).is_some(), "{name}");
        assert!(tokenizer.count(marker) > 3, "{name}: code that spells it");
        assert_eq!(tokenizer.count_parts(&[TextPart::Special(marker)]), 1, "{name}");
        let code = [TextPart::Special(marker), TextPart::Plain("x"), TextPart::Plain(marker)];
        let apart = 1 + tokenizer.count(&format!("x{marker}"));
        assert_eq!(tokenizer.count_parts(&code), apart, "{name}");
        assert_eq!(tokenizer.special("<nothing>"), None);
        let unknown = [TextPart::Special("<nothing>"), TextPart::Plain("()")];
        assert_eq!(tokenizer.count_parts(&unknown), tokenizer.count("<nothing>()"));
    }
}

/// `qwen.json` sets a limit of 64 tokens, and `codellama.json` puts `<s>` before every text.
#[test]
#[cfg_attr(not(feature = "tokenizers"), ignore = "needs the feature tokenizers")]
fn what_a_file_does_beside_tokenizing_is_left_out() {
    assert_eq!(file("qwen").count(&"x = 1\n".repeat(100)), 500);
    assert_eq!(file("codellama").count("def"), 1);
}

#[test]
#[cfg_attr(not(feature = "tokenizers"), ignore = "needs the feature tokenizers")]
fn a_tokenizer_says_what_is_wrong_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    let words = r#"{"version": "1.0", "added_tokens": [], "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "?"}}"#;
    for (content, wanted) in [
        ("\n\u{e}\n\u{5}<unk>", "it is not a tokenizer.json, which is JSON"),
        (r#"{"tokenizer_class": "Llama"}"#, "it is a tokenizer_config.json"),
        (r#"{"a": 0, "b": 1}"#, "it is a vocabulary without its merges"),
        ("[]", "it is not a tokenizer.json: it has no \"model\""),
        (r#"{"model": {"type": "BPE"}}"#, "its tokenizer cannot be used: "),
        (words, "it cannot tokenize code: "),
    ] {
        std::fs::write(&path, content).unwrap();
        let error = Tokenizer::open(folder.path()).unwrap_err();
        assert!(error.hint().contains("tokenizer.json"));
        let wanted = format!("{}: {wanted}", path.display());
        assert!(error.to_string().starts_with(&wanted), "{error}");
    }

    let missing = "p50kbase".parse::<Tokenizer>().unwrap_err();
    assert_eq!(missing.to_string(), "p50kbase: this tokenizer does not exist");
    assert!(missing.hint().starts_with("pass p50k_base, words"));
}

#[test]
#[cfg_attr(not(feature = "tokenizers"), ignore = "needs the feature tokenizers")]
fn a_digest_tells_tokenizers_apart() {
    let mut digests: Vec<_> = all().iter().map(Tokenizer::digest).collect();
    assert_eq!(digests[..2], ["p50k_base", "words"]);
    assert_eq!(digests[2].len(), 64);
    digests.dedup();
    assert_eq!(digests.len(), 6);
    assert_eq!(file("qwen").digest(), file("qwen").digest());
    let path = fixture("qwen").display().to_string();
    assert_eq!(path.parse::<Tokenizer>().unwrap().to_string(), path);
}

/// Computes [`Tokenizer::end_of`] the plain way, by tokenizing the whole text.
fn plain_end<'t>(tokenizer: &Tokenizer, text: &'t str, tokens: usize) -> &'t str {
    let spans = tokenizer.spans(text);
    if tokenizer.count(text) <= tokens {
        return text;
    }
    let mut start = text.len();
    for kept in 1..=tokens {
        let first = spans.len() - kept;
        let gap = spans[first - 1].end..spans[first].start;
        if gap.start <= gap.end && tokenizer.count(&text[gap.start..]) <= tokens {
            start = gap.start;
        }
    }
    &text[start..]
}

/// Computes [`Tokenizer::start_of`] the plain way.
fn plain_start<'t>(tokenizer: &Tokenizer, text: &'t str, tokens: usize) -> &'t str {
    let spans = tokenizer.spans(text);
    if tokenizer.count(text) <= tokens {
        return text;
    }
    let mut end = 0;
    for kept in 1..=tokens {
        let gap = spans[kept - 1].end..spans[kept].start;
        if gap.start <= gap.end && tokenizer.count(&text[..gap.end]) <= tokens {
            end = gap.end;
        }
    }
    &text[..end]
}

/// Generates code, markers, and characters of several tokens, in any order.
fn text() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "def read(path):\n", "    return self.path\n", "\n\n", "\r\n", "\t", "  ", " ",
        "<fim_prefix>", "<|file_sep|>", "<PRE>", "漢字", "e\u{301}", "😀", "\"\"\"",
        "# --------\n", "0123456789", "import numpy as np\n",
    ]);
    let part =
        prop_oneof![4 => known.prop_map(str::to_owned), 1 => "\\PC{0,6}", 1 => "[a-z_]{1,12}"];
    prop::collection::vec(part, 0..80).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// Tokenizing a part gives the same result as tokenizing the whole, however small the first part is.
    #[test]
    #[cfg_attr(not(feature = "tokenizers"), ignore = "needs the feature tokenizers")]
    fn cuts_agree_with_their_plain_twins(text in text(), tokens in 0_usize..40, reach in 1_usize..200) {
        for tokenizer in all_once() {
            let (kept, count) = cut::end(tokenizer, &text, tokens, reach);
            prop_assert_eq!(kept, plain_end(tokenizer, &text, tokens), "end, {}", tokenizer);
            prop_assert!(text.ends_with(kept) && count <= tokens);
            prop_assert_eq!(count, tokenizer.count(kept));
            let (kept, count) = cut::start(tokenizer, &text, tokens, reach);
            prop_assert_eq!(kept, plain_start(tokenizer, &text, tokens), "start, {}", tokenizer);
            prop_assert!(text.starts_with(kept) && count <= tokens);
            prop_assert_eq!(count, tokenizer.count(kept));
        }
    }
}

fn all_once() -> &'static [Tokenizer] {
    static ALL: std::sync::OnceLock<Vec<Tokenizer>> = std::sync::OnceLock::new();
    ALL.get_or_init(all)
}

/// Found by the fuzzer: the crate panics on these files.
#[test]
#[cfg_attr(not(feature = "tokenizers"), ignore = "needs the feature tokenizers")]
fn damaged_parts_of_a_tokenizer_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokenizer.json");
    for (parts, reason) in [
        (r#""decoder": {"type": "ByteLevel", "use_regex": trzue}"#, "which is JSON"),
        (r#""normalizer": {"type": "Precompiled"}"#, "part of the file is damaged"),
        (
            r#""normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}"#,
            "cannot be used",
        ),
    ] {
        let model = r#""model": {"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0}}"#;
        let text = format!("{{\"version\": \"1.0\", \"added_tokens\": [], {parts}, {model}}}");
        std::fs::write(&path, text).unwrap();
        let error = Tokenizer::open(&path).unwrap_err().to_string();
        assert!(error.contains(reason), "{parts}: {error}");
    }
}
