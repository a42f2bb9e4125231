//! Tests of the tokenizer against tiktoken-rs, whose results define correctness.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{IdSet, LineTokens, P50k, PieceCache};
use proptest::prelude::*;
use tiktoken_rs::p50k_base_singleton;

/// Returns the oracle's ids.
fn expected(text: &str) -> Vec<u16> {
    let ids = p50k_base_singleton().encode_ordinary(text);
    ids.into_iter().map(|id| u16::try_from(id).unwrap()).collect()
}

fn check(text: &str) {
    let p50k = P50k;
    let ids = p50k.encode(text);
    assert_eq!(ids, expected(text), "{text:?}");
    assert_eq!(p50k.count(text), ids.len(), "{text:?}");
    assert_eq!(p50k.decode(&ids), text.as_bytes(), "{text:?}");
}

/// Compares slices and sets of `text[start..end]` with the oracle's result for that string.
fn check_run(tokens: &LineTokens, text: &str, start: usize, end: usize, cache: &mut PieceCache) {
    let right = expected(&text[start..end]);
    let (mut ids, mut set) = (Vec::new(), Vec::new());
    tokens.slice_into(text, start, end, cache, &mut ids);
    assert_eq!(ids, right, "{start}..{end} of {text:?}");
    tokens.set_into(text, start, end, cache, &mut IdSet::default(), &mut set);
    let right: Vec<u16> = right.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!(set, right, "{start}..{end} of {text:?}");
}

/// Returns the starts and the ends of the lines.
fn bounds(text: &str) -> (Vec<usize>, Vec<usize>) {
    let newlines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let starts = std::iter::once(0).chain(newlines.iter().map(|at| at + 1)).collect();
    (starts, newlines.into_iter().chain([text.len()]).collect())
}

fn check_every_run(text: &str, cache: &mut PieceCache) {
    let tokens = LineTokens::new(&P50k, cache, text);
    let (starts, ends) = bounds(text);
    for (line, &start) in starts.iter().enumerate() {
        for &end in &ends[line..] {
            check_run(&tokens, text, start, end, cache);
        }
    }
}

/// Characters that the pattern, or an incorrect implementation, treats specially.
const NASTY: &[&str] = &[
    " ", " ", " ", "  ", "    ", "\n", "\n", "\n", "\r", "\r\n", "\t", "\x0b", "\x0c", "\u{85}",
    "\u{a0}", "\u{1680}", "\u{2003}", "\u{2028}", "\u{2029}", "\u{202f}", "\u{205f}", "\u{3000}",
    "\u{1c}", "\u{1d}", "\u{1e}", "\u{1f}", "\0", "\u{feff}", "\u{180e}", "\u{200b}", "\u{200d}",
    "'", "'", "'s", "'d", "'m", "'t", "'ll", "'ve", "'re", "'S", "'l", "'v", "'r", "s", "l", "e",
    "a", "Z", "ß", "é", "e\u{301}", "\u{300}", "ſ", "İ", "ñ", "漢", "字", "あ", "한", "ا", "ש",
    "अ", "ก", "ª", "ʰ", "0", "7", "42", "½", "²", "Ⅷ", "٣", "〇", "①", "_", "__", ".", "(", "):",
    "==", "#", "\"\"\"", "-", "—", "…", "€", "😀", "👩‍🔬", "\u{10ffff}", "\u{e000}", "\u{378}",
    "\u{7f}", "def", "self", "return", "<|endoftext|>", "tokenizer", "\u{10000}", "𝒜", "ǅ",
];

fn nasty() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(NASTY), 0..40)
        .prop_map(|parts| parts.concat())
}

/// Generates a few lines that are mostly whitespace.
fn blank() -> impl Strategy<Value = String> {
    let part = proptest::sample::select(
        &["\n", "\n", " ", "  ", "\t", "\u{a0}", "\u{2028}", "\r", "x", "é", "(", "7", "'s"][..],
    );
    proptest::collection::vec(part, 0..14).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn texts_of_nasty_characters(text in nasty()) {
        check(&text);
    }

    #[test]
    fn texts_of_any_characters(text in any::<String>(), ascii in "[ -~\n\t]{0,80}") {
        check(&text);
        check(&ascii);
    }

    #[test]
    fn names_of_every_length(text in "[a-zA-Z]{1,90}|[_.=\\-*#/(){}]{1,90}|[0-9]{1,90}|[ \n]{1,90}") {
        check(&text);
        check(&format!(" {text} "));
    }

    #[test]
    fn a_memo_with_a_past_changes_nothing(texts in proptest::collection::vec(nasty(), 1..8)) {
        let mut cache = PieceCache::default();
        for text in texts.iter().chain(&texts) {
            let mut ids = vec![3];
            P50k.encode_into(text, &mut cache, &mut ids);
            prop_assert_eq!(&ids[1..], expected(text));
            prop_assert_eq!(P50k.count_with(text, &mut cache), ids.len() - 1);
        }
    }

    #[test]
    fn runs_of_nasty_lines(text in nasty()) {
        check_every_run(&text, &mut PieceCache::default());
    }

    #[test]
    fn runs_of_nearly_blank_lines(text in blank()) {
        check_every_run(&text, &mut PieceCache::default());
    }

    #[test]
    fn slices_at_offsets_that_are_no_lines(text in nasty(), from in any::<proptest::sample::Index>(), to in any::<proptest::sample::Index>()) {
        let cuts: Vec<usize> = (0..=text.len()).filter(|&at| text.is_char_boundary(at)).collect();
        let (a, b) = (cuts[from.index(cuts.len())], cuts[to.index(cuts.len())]);
        let mut cache = PieceCache::default();
        let tokens = LineTokens::new(&P50k, &mut cache, &text);
        check_run(&tokens, &text, a.min(b), a.max(b), &mut cache);
    }
}

#[test]
fn characters_alone_and_among_others() {
    let mut text = String::new();
    // Planes 4 to 13 have no characters, and 15 and 16 are for private use: one in 257 of these is enough.
    let is_wanted = |character: &char| {
        let number = u32::from(*character);
        number < 0x4_0000 || number >> 16 == 0xE || number % 257 == 0
    };
    for character in ('\0'..=char::MAX).filter(is_wanted) {
        text.extend([
            character, 'a', ' ', character, '7', character, '(', character, character, '\n',
            character, '\t',
        ]);
        if text.len() > 100_000 {
            check(&text);
            text.clear();
        }
    }
    check(&text);
}

#[test]
fn every_token_alone_and_behind_a_letter() {
    let p50k = P50k;
    for id in 0..P50k::VOCABULARY as u16 {
        if let Ok(token) = String::from_utf8(p50k.decode(&[id])) {
            check(&token);
            check(&format!("a{token}\n{token}a"));
        }
    }
}

#[test]
fn decoding_gives_the_bytes_of_the_oracle() {
    for id in 0..P50k::VOCABULARY as u16 {
        let bytes = p50k_base_singleton().decode_bytes(&[u32::from(id)]).unwrap();
        assert_eq!(P50k.decode(&[id]), bytes, "{id}");
    }
    assert!(P50k.decode(&[50_281, u16::MAX]).is_empty());
}

#[test]
fn whitespace_runs_of_every_length() {
    for length in 0..200 {
        for whitespace in [" ", "\n", "\t", "\r\n", "\n ", "\u{3000}", "\u{a0}\n"] {
            let run = whitespace.repeat(length);
            check(&run);
            check(&format!("a{run}b"));
            check(&format!("\n{run}return"));
            check(&format!("{run}'s"));
        }
    }
}

#[test]
fn pieces_too_long_to_be_kept_or_scanned() {
    for length in [13, 14, 15, 63, 64, 65, 66, 99, 100, 101, 127, 128, 129, 130, 1_000, 5_000] {
        for unit in ["a", "=", "-", " ", "é", "漢", "ab", "0", "=-", "*/", "\u{a0}", "ÃÂ"] {
            let run = unit.repeat(length);
            check(&run);
            check(&format!("x {run}\n{run} "));
        }
    }
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 16
    };
    for alphabet in
        [&b"!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~"[..], b"etaoinshrdlu", b"  \n\t", b"0123456789abcdef"]
    {
        let text: String =
            (0..20_000).map(|_| char::from(alphabet[next() as usize % alphabet.len()])).collect();
        check(&text);
    }
}

#[test]
fn one_line_of_megabytes_takes_no_quadratic_time() {
    for unit in ["a", " ", "=", "x!"] {
        let line = unit.repeat(2_000_000 / unit.len());
        let ids = P50k.encode(&line);
        assert_eq!(P50k.decode(&ids), line.as_bytes());
    }
}

#[test]
fn a_memo_that_overflows_stays_right() {
    let (p50k, mut cache) = (P50k, PieceCache::default());
    for round in 0..2 {
        for number in 0..100_000_u32 {
            let text = format!(
                "{:x} {}",
                number.wrapping_mul(2_654_435_761),
                "zq".repeat(number as usize % 40)
            );
            let mut ids = Vec::new();
            p50k.encode_into(&text, &mut cache, &mut ids);
            if number % 97 == round {
                assert_eq!(ids, expected(&text), "{text:?}");
            }
        }
    }
}

/// Returns the Python files in the folder that `REPOFORMER_CORPUS` names.
fn corpus() -> Vec<PathBuf> {
    let folder = std::env::var_os("REPOFORMER_CORPUS")
        .expect("REPOFORMER_CORPUS names a folder of Python files");
    let mut files = Vec::new();
    collect(Path::new(&folder), &mut files);
    assert!(!files.is_empty());
    files
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "py") {
            files.push(path);
        }
    }
}

#[test]
#[ignore = "reads the files under REPOFORMER_CORPUS"]
fn real_files_and_their_windows() {
    let mut cache = PieceCache::default();
    for path in corpus() {
        let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        check(&text);
        let tokens = LineTokens::new(&P50k, &mut cache, &text);
        let (starts, ends) = bounds(&text);
        for size in [1_usize, 20] {
            for line in (0..starts.len()).step_by(size.div_ceil(2)) {
                let last = (line + size).min(ends.len()) - 1;
                check_run(&tokens, &text, starts[line], ends[last], &mut cache);
            }
        }
    }
}
