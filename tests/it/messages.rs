//! `tests/messages.txt` lists every text of the source that users may read, by file, so that somebody can read them all at once.
//! `SNAPSHOTS=overwrite` writes it.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Least number of words of a text that is a message.
const WORDS: usize = 3;

#[test]
fn every_message_is_listed() {
    let mut listed = String::new();
    for path in sources() {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        let messages: Vec<String> =
            literals(without_tests(&text)).into_iter().filter(|text| is_message(text)).collect();
        if messages.is_empty() {
            continue;
        }
        writeln!(listed, "\n{}", path.display()).unwrap();
        for message in messages {
            writeln!(listed, "  {}", message.replace('\n', "\\n")).unwrap();
        }
    }
    // Of a file whose tests are a file of their own, and of one whose tests are its last part.
    assert!(listed.contains("tokens are not those of the prompt") && listed.contains("not JSONL"));
    let file = root().join("tests/messages.txt");
    let listed = listed.trim_start().to_owned();
    if std::env::var("SNAPSHOTS").is_ok_and(|value| value == "overwrite") {
        fs::write(&file, &listed).unwrap();
    }
    let known = fs::read_to_string(&file).unwrap_or_default();
    for (line, (known, now)) in known.lines().zip(listed.lines()).enumerate() {
        assert_eq!(known, now, "tests/messages.txt:{}: SNAPSHOTS=overwrite accepts it", line + 1);
    }
    assert_eq!(known.lines().count(), listed.lines().count(), "SNAPSHOTS=overwrite accepts it");
}

/// A source without its module of tests, which is the last part if it is not a file of its own.
fn without_tests(text: &str) -> &str {
    let starts =
        text.match_indices("#[cfg(test)]\nmod ").map(|(start, mark)| (start, start + mark.len()));
    let is_inline = |end: usize| text[end..].lines().next().is_some_and(|line| line.ends_with('{'));
    let start = starts.into_iter().find(|(_, end)| is_inline(*end)).map(|(start, _)| start);
    &text[..start.unwrap_or(text.len())]
}

/// Paths of the sources of the program and its libraries, without tests.
fn sources() -> Vec<PathBuf> {
    let folders = ["src", "crates"].map(|folder| walkdir::WalkDir::new(root().join(folder)));
    let files = folders.into_iter().flatten().map(|entry| entry.unwrap().into_path());
    let mut paths: Vec<PathBuf> =
        files.map(|path| path.strip_prefix(root()).unwrap().to_owned()).collect();
    paths.retain(|path| {
        let text = path.to_str().unwrap();
        let is_test = text.ends_with("tests.rs") || text.contains("/tests/");
        text.ends_with(".rs")
            && text.contains("src/")
            && !is_test
            && !text.contains("crates/testing/")
    });
    paths.sort();
    paths
}

/// Whether a text is prose: words with blanks between them, and no markup.
fn is_message(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 1);
    words.count() >= WORDS && text.contains(' ') && !text.trim_start().starts_with(['<', '{', '"'])
}

/// The string literals of a source, without its comments.
fn literals(code: &str) -> Vec<String> {
    let (bytes, mut found, mut at) = (code.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let rest = &code[at..];
        let behind = rest.strip_prefix('r').unwrap_or_default();
        let hashes = behind.bytes().take_while(|byte| *byte == b'#').count();
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if behind.get(hashes..).is_some_and(|rest| rest.starts_with('"')) {
            let start = at + hashes + 2;
            let end = start + code[start..].find(&format!("\"{}", "#".repeat(hashes))).unwrap();
            found.push(code[start..end].to_owned());
            at = end + 1 + hashes;
        } else if let Some(literal) = rest.strip_prefix('"') {
            let (text, length) = unescape(literal);
            found.push(text);
            at += length + 2;
        } else if let Some(character) = rest.strip_prefix('\'') {
            // A character, or the name of a lifetime.
            let end = rest.char_indices().skip(2).take(10).find(|(_, c)| *c == '\'');
            let is_escape = character.starts_with('\\');
            let is_one = rest.chars().nth(2) == Some('\'');
            at += match end {
                Some((end, _)) if is_escape || is_one => end + 1,
                _ => 1,
            };
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

/// The text of a literal behind its first quote, and the length of its source.
fn unescape(code: &str) -> (String, usize) {
    let (mut text, mut signs) = (String::new(), code.char_indices().peekable());
    while let Some((at, sign)) = signs.next() {
        match sign {
            '"' => return (text, at),
            '\\' => match signs.next().unwrap().1 {
                '\n' => while signs.next_if(|(_, c)| c.is_whitespace()).is_some() {},
                'n' => text.push('\n'),
                't' => text.push('\t'),
                sign @ ('"' | '\\') => text.push(sign),
                other => text.extend(['\\', other]),
            },
            sign => text.push(sign),
        }
    }
    panic!("a literal has no end: {text}");
}

#[test]
fn literals_are_found_and_comments_are_not() {
    let code = "let a = \"one two\\\n    three\"; // \"no\"\nlet c = '\"'; let d: &'a str = r#\"x \"y\" z\"#; '\\'' \"é\"";
    assert_eq!(literals(code), ["one twothree", "x \"y\" z", "é"]);
}
