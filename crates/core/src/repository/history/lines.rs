//! Lines of a whole history.

use repoformer_store::error::Result;
use repoformer_text::language::Language;
use repoformer_text::lines::strip;
use repoformer_text::tokenize::is_word;
use rustc_hash::FxHashMap;
use twox_hash::XxHash64;

use super::git::{self, Git};

/// Lines that a history added, with the date of the first commit that did.
#[derive(Debug, Default)]
pub struct LineHistory {
    /// By a hash of the stripped line.
    first: FxHashMap<u64, Date>,
}

/// Date as a number whose digits are those of the year, the month, and so on.
type Date = u64;

/// Mark before the date of a commit, which no line of a diff begins with.
const COMMIT: u8 = 0x1e;

impl LineHistory {
    pub(super) fn read(git: &Git, language: Language) -> Result<Self> {
        let paths: Vec<String> =
            language.extensions().iter().map(|end| format!("*{end}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let asked = ["--max-parents=1", "--patch", "--format=%x1e%cd"];
        let arguments = [
            &git::PLAIN_LOG[..],
            &asked,
            &git::PLAIN_DIFF,
            &["--no-renames", "HEAD", "--"],
            &paths,
        ]
        .concat();
        let (mut lines, mut date, mut added, mut removed) = (Self::default(), 0, 0, 0);
        git.for_each_line(&arguments, |line| match line.first() {
            Some(b'+') if added > 0 => {
                added -= 1;
                lines.add(&line[1..], date);
            }
            Some(b'-') if removed > 0 => removed -= 1,
            Some(&COMMIT) => date = date_of(&String::from_utf8_lossy(line)),
            Some(b'@') => {
                if let Some(hunk) = git::hunk(&String::from_utf8_lossy(line)) {
                    (added, removed) = (hunk.added.len(), hunk.removed.len());
                }
            }
            _ => {}
        })?;
        Ok(lines)
    }

    fn add(&mut self, line: &[u8], date: Date) {
        let Ok(line) = str::from_utf8(line) else { return };
        let first = self.first.entry(hash(line)).or_insert(date);
        *first = date.min(*first);
    }

    /// Whether every line of a text that holds a word was added by some commit before a date (`2024-01-31T12:00:00Z`), in any
    /// order and any file; no for a text without words.
    pub fn hold(&self, text: &str, before: &str) -> bool {
        let before = date_of(before);
        let has_word = |line: &&str| line.contains(is_word);
        let mut lines = text.lines().filter(has_word).peekable();
        lines.peek().is_some()
            && lines.all(|line| self.first.get(&hash(line)).is_some_and(|first| *first < before))
    }
}

fn hash(line: &str) -> u64 {
    XxHash64::oneshot(0, strip(line).as_bytes())
}

fn date_of(text: &str) -> Date {
    let digits = text.bytes().filter(u8::is_ascii_digit);
    digits
        .fold(0, |date: Date, digit| date.saturating_mul(10).saturating_add((digit - b'0').into()))
}
