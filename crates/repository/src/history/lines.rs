//! Lines of a whole history.

use std::ops::ControlFlow;

use foldhash::{HashMap, HashSet};
use repoformer_store::error::Result;
use repoformer_text::language::Language;
use repoformer_text::lines::strip;
use repoformer_text::tokenize::is_word;
use twox_hash::XxHash64;

use super::bound::{Bound, SkippedCommit, TreeSizes};
use super::git::{self, Git};

/// Lines that a history added, each with the date of the first commit that added it.
#[derive(Debug, Default)]
pub struct LineHistory {
    /// Dates by a hash of the stripped line.
    first: HashMap<u64, Date>,
}

/// Date as a number with the digits of the year, the month, and so on.
type Date = u64;

/// Greatest number of bytes of a history's changes that are read, in addition to an allowance for each commit. 33,000 commits
/// of Django have 0.5 GB.
const MOST_BYTES: u64 = 1 << 30;
const MOST_BYTES_OF_COMMIT: u64 = 1 << 20;

/// Mark before a commit's date; no line of a diff begins with this byte.
const COMMIT: u8 = 0x1e;

impl LineHistory {
    /// Reads the lines of a history, or returns the commit that exceeds a bound, and the bound.
    pub(super) fn read(
        git: &Git,
        sizes: &mut TreeSizes,
        language: Language,
    ) -> Result<Result<Self, SkippedCommit>> {
        let all = ["--max-parents=1", "--format=%H %P", "HEAD", "--"];
        let listed = git.text(&[&git::PLAIN_LOG[..], &all].concat())?;
        let bytes_of_commits = listed.lines().count() as u64 * MOST_BYTES_OF_COMMIT;
        let mut bytes_left = MOST_BYTES + bytes_of_commits;
        // A listed commit's parent may be a merge, which is not listed itself.
        let mut checked = HashSet::default();
        for id in listed.split_whitespace().filter(|id| checked.insert(*id)) {
            if let Err(skipped) = sizes.check(id)? {
                return Ok(Err(skipped));
            }
        }
        let paths: Vec<String> =
            language.extensions().iter().map(|end| format!("*{end}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let asked = ["--max-parents=1", "--patch", "--format=%x1e%cd %H"];
        let arguments = [
            &git::PLAIN_LOG[..],
            &asked,
            &git::PLAIN_DIFF,
            &["--no-renames", "HEAD", "--"],
            &paths,
        ]
        .concat();
        let (mut lines, mut date, mut added, mut removed) = (Self::default(), 0, 0, 0);
        let mut commit = String::new();
        let is_whole = git.for_each_part(b'\n', &arguments, |line| {
            match line.first() {
                Some(b'+') if added > 0 => {
                    added -= 1;
                    lines.add(&line[1..], date);
                }
                Some(b'-') if removed > 0 => removed -= 1,
                Some(&COMMIT) => {
                    let head = String::from_utf8_lossy(line);
                    let (day, id) = head.split_once(' ').unwrap_or((&head, ""));
                    (date, commit) = (date_of(day), id.to_owned());
                }
                Some(b'@') => {
                    if let Some(hunk) = git::hunk(&String::from_utf8_lossy(line)) {
                        (added, removed) = (hunk.added.len(), hunk.removed.len());
                    }
                }
                _ => {}
            }
            match bytes_left.checked_sub(line.len() as u64 + 1) {
                Some(left) => {
                    bytes_left = left;
                    ControlFlow::Continue(())
                }
                None => ControlFlow::Break(()),
            }
        })?;
        let skipped = |bound| SkippedCommit { id: commit, bound };
        Ok(match is_whole {
            Ok(true) => Ok(lines),
            Ok(false) => Err(skipped(Bound::Changes)),
            Err(bound) => Err(skipped(bound)),
        })
    }

    fn add(&mut self, line: &[u8], date: Date) {
        let Ok(line) = str::from_utf8(line) else { return };
        let first = self.first.entry(hash(line)).or_insert(date);
        *first = date.min(*first);
    }

    /// Returns true if every line of a text that contains a word was added by some commit before a date
    /// (`2024-01-31T12:00:00Z`), in any order and file. Returns false for a text without words.
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
