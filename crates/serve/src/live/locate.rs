//! Finds the file of a completion request, and the cursor in it: editors send only a part of the file, and usually not its name.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use foldhash::HashMap;
use memchr::memmem;
use repoformer_core::prompt::shown::ShownFragment;
use repoformer_core::repository::corpus::path_names;
use repoformer_core::repository::parallel;
use repoformer_text::lines::universal_newlines;

use super::LiveRepository;

/// Maximum number of a request's lines by which its file is identified.
const TOLD_BY: usize = 8;
/// Minimum number of a request's lines that its file must contain.
const FEWEST: usize = 2;
/// Minimum length in bytes of a distinctive line.
const TELLING: usize = 12;
/// Number of lines at either end of a request by which its position in the file is found.
const ANCHOR: usize = 3;
/// Maximum number of a request's lines that are tried as its first line in the file.
const TRIES: usize = 20;

/// Cursor in a file of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CursorPlace {
    /// `repository/folder/…/file.py`; for a new file without a name, a placeholder name.
    pub(crate) path: String,
    /// Whole text of the file; the parts outside the request are taken from the saved file.
    pub(crate) text: String,
    /// Bytes before the cursor.
    pub(crate) offset: usize,
    /// First line, 0-based, that the request contains.
    pub(crate) first_line: usize,
    /// Byte range of the text that the request contains.
    pub(crate) held: Range<usize>,
    /// Whether the file was named in the request or found by its lines.
    pub(crate) is_known: bool,
}

/// Position of a request: its file and cursor, as far as the request states them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestPosition<'a> {
    /// Text before the cursor.
    pub(crate) prefix: &'a str,
    /// Text after the cursor.
    pub(crate) suffix: &'a str,
    /// Name of the file, if the editor sends it.
    pub(crate) name: Option<&'a str>,
    /// Whether the two texts together are the whole file, with its name.
    pub(crate) is_whole: bool,
}

impl LiveRepository {
    /// Finds the file of a request, by its name if the request has one or else by its lines, and the request's position in the file.
    /// `recent` are the paths of recently edited files.
    pub(crate) fn locate(&self, place: &RequestPosition<'_>, recent: &[String]) -> CursorPlace {
        // Normalize line ends, as the index does.
        let [prefix, suffix] =
            [place.prefix, place.suffix].map(|text| universal_newlines(text.to_owned()));
        let named = place.name.and_then(|name| self.path_of(name));
        // An absolute path needs no guess.
        let is_sure = place.is_whole
            || place.name.is_some_and(|name| Path::new(&*path_of_url(name)).is_absolute());
        let path = match named {
            Some(path) if is_sure || self.is_there(&path) => Some(path),
            Some(path) => Some(self.alike(&path, &prefix, &suffix, recent).unwrap_or(path)),
            None if place.is_whole => None,
            None => self.path_by_lines(&prefix, &suffix, recent),
        };
        let is_known = path.is_some();
        let untitled = || {
            let ending = self.experiment().layout.language.extensions().first();
            format!("{}/untitled{}", self.name(), ending.unwrap_or(&""))
        };
        let path = path.unwrap_or_else(untitled);
        let saved = if place.is_whole { None } else { self.saved_text(&path) }.unwrap_or_default();
        let (head, tail) = around(&saved, &prefix, &suffix);
        CursorPlace {
            path,
            offset: head.len() + prefix.len(),
            first_line: repoformer_text::lines::line_ends(head),
            held: head.len()..head.len() + prefix.len() + suffix.len(),
            text: [head, &prefix, &suffix, tail].concat(),
            is_known,
        }
    }

    fn is_there(&self, path: &str) -> bool {
        self.snapshot().file(path).is_some() || self.experiment().repos_dir.join(path).exists()
    }

    /// Returns the only file that a name may refer to, if the name is relative to a different folder.
    fn alike(&self, path: &str, prefix: &str, suffix: &str, recent: &[String]) -> Option<String> {
        let within = |path: &str| path.split_once('/').map_or("", |(_, rest)| rest).to_owned();
        let wanted = within(path);
        let ends_with = |long: &str, short: &str| {
            long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        let snapshot = self.snapshot();
        let files = snapshot.files().map(|(file, _)| &file.path);
        let mut found = files.filter(|path| {
            let path = within(path);
            ends_with(&path, &wanted) || ends_with(&wanted, &path)
        });
        // If the file contains none of the lines, the request is about another file that is not saved yet.
        let lines = telling_lines(prefix, suffix);
        let has_some = |path: &String| {
            let text = snapshot.file(path).map_or("", |(file, _)| file.lines.text());
            lines.is_empty() || lines.iter().any(|line| text.contains(line))
        };
        if let Some(only) = found.next()
            && found.next().is_none()
        {
            return Some(only.clone()).filter(has_some);
        }
        let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
        self.path_by_lines(prefix, suffix, recent).filter(|found| name(found) == name(path))
    }

    /// Returns the saved text of a file, including blank lines.
    fn saved_text(&self, path: &str) -> Option<String> {
        let read = self.listing().ok()?.read_saved(path);
        Some(read.ok()??.0.text)
    }

    /// Returns the first and last line, 0-based, of each fragment in its saved file; `None` if the file no longer contains it or contains
    /// it more than once.
    pub(crate) fn lines_of(&self, fragments: &[ShownFragment]) -> Vec<Option<[usize; 2]>> {
        let Ok(listing) = self.listing() else { return vec![None; fragments.len()] };
        let read = |path: &str| Some(listing.read_saved(path).ok()??.0.text);
        let mut saved: HashMap<&str, Option<String>> = HashMap::default();
        let lines = |fragment| {
            let ShownFragment { path, first_line, text, .. }: &'_ ShownFragment = fragment;
            let count = text.lines().count().max(1);
            (path, first_line.map(|first| [first, first + count - 1]), text)
        };
        let mut found = Vec::with_capacity(fragments.len());
        for (path, known, fragment) in fragments.iter().map(lines) {
            found.push(known.or_else(|| {
                // The path in the prompt may begin with the repository or inside it.
                let text = saved.entry(path).or_insert_with_key(|path| {
                    read(&format!("{}/{path}", self.name())).or_else(|| read(path))
                });
                lines_of(text.as_ref()?, fragment)
            }));
        }
        found
    }

    /// Returns the path of a file that an editor names: relative to the repository's folder, absolute, or as a URL.
    fn path_of(&self, name: &str) -> Option<String> {
        let name = &*path_of_url(name);
        let folder = self.folder();
        let real =
            repoformer_store::files::canonicalize(&folder).unwrap_or_else(|_| folder.clone());
        let within = |root: &Path| Path::new(name).strip_prefix(root).ok()?.to_str();
        let below = within(&real).or_else(|| within(&folder));
        let below = below.or_else(|| (!Path::new(name).is_absolute()).then_some(name))?;
        let below = below.replace('\\', "/");
        let names = path_names(&below).ok()?;
        Some(format!("{}/{}", self.name(), names.join("/")))
    }

    /// Returns the path of the file that contains most of a request's lines, and at least half of them.
    fn path_by_lines(&self, prefix: &str, suffix: &str, recent: &[String]) -> Option<String> {
        let lines = telling_lines(prefix, suffix);
        if lines.len() < FEWEST {
            return None;
        }
        let finders: Vec<memmem::Finder<'_>> =
            lines.iter().map(|line| memmem::Finder::new(line.as_bytes())).collect();
        let count = |text: &str| {
            finders.iter().filter(|finder| finder.find(text.as_bytes()).is_some()).count()
        };
        let snapshot = self.snapshot();
        let known = recent.iter().find(|path| {
            let file = snapshot.file(path);
            file.is_some_and(|(file, _)| count(file.lines.text()) == lines.len())
        });
        if known.is_some() {
            return known.cloned();
        }
        let files: Vec<_> = snapshot.files().map(|(file, _)| file).collect();
        let counts = parallel::map(&files, |file| count(file.lines.text()));
        let most = counts.iter().copied().max()?;
        if most < FEWEST || 2 * most < lines.len() {
            return None;
        }
        let best = files.iter().zip(counts).filter(|(_, count)| *count == most);
        let best: Vec<&String> = best.map(|(file, _)| &file.path).collect();
        // Copies of a file can only be distinguished by which was edited last.
        let last = recent.iter().find(|path| best.contains(path));
        last.or(best.first().copied().filter(|_| best.len() == 1)).cloned()
    }
}

/// Returns the path in a `file://` URL; any other text is already a path.
pub(crate) fn path_of_url(url: &str) -> Cow<'_, str> {
    let Some(path) = url.strip_prefix("file://") else { return url.into() };
    // A host name may precede the path.
    let path = path.find('/').map_or(path, |at| &path[at..]);
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'%').then(|| after.get(..2)).flatten();
        let code = code.filter(|code| code.iter().all(u8::is_ascii_hexdigit));
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).map_or_else(|_| path.into(), Cow::Owned)
}

/// Returns the first and last line of a fragment that occurs exactly once in a text. Blank lines are ignored, and the fragment's last line
/// may be truncated.
fn lines_of(text: &str, fragment: &str) -> Option<[usize; 2]> {
    let is_blank = |line: &str| line.trim().is_empty();
    let wanted: Vec<&str> = fragment.split('\n').filter(|line| !is_blank(line)).collect();
    let there: Vec<(usize, &str)> =
        text.split('\n').enumerate().filter(|(_, line)| !is_blank(line)).collect();
    let (last, whole) = wanted.split_last()?;
    let lines: Vec<&str> = there.iter().map(|(_, line)| *line).collect();
    let begins: Vec<usize> = (0..lines.len()).collect();
    let common = common_lengths(whole, &lines, &begins);
    let mut places = (whole.len()..lines.len())
        .filter(|end| common[end - whole.len()] == whole.len() && lines[*end].starts_with(last));
    let end = places.next().filter(|_| places.next().is_none())?;
    Some([there[end - whole.len()].0, there[end].0])
}

/// Returns the longest distinct lines near the cursor.
fn telling_lines<'t>(prefix: &'t str, suffix: &'t str) -> Vec<&'t str> {
    // Skip the cursor's own line, which is being changed.
    let before = prefix.rsplit('\n').skip(1).take(60);
    let after = suffix.split('\n').skip(1).take(30);
    let mut lines: Vec<&str> =
        before.chain(after).map(str::trim).filter(|line| line.len() >= TELLING).collect();
    lines.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    lines.dedup();
    lines.truncate(TOLD_BY);
    lines
}

/// Returns the parts of a saved text before a prefix and after a suffix; empty if these are not found.
fn around<'t>(saved: &'t str, prefix: &str, suffix: &str) -> (&'t str, &'t str) {
    let (head, tail) = (head(saved, prefix), tail(saved, suffix));
    (&saved[..head], &saved[tail.max(head)..])
}

/// Returns the number of bytes of a saved text before the beginning of a prefix. If the first lines of the prefix are not found because
/// they were changed or truncated, later lines are used.
fn head(saved: &str, prefix: &str) -> usize {
    let begins = |at: &usize| *at == 0 || saved.as_bytes()[at - 1] == b'\n';
    let starts = std::iter::once(0).chain(prefix.match_indices('\n').map(|(at, _)| at + 1));
    for (line, start) in starts.take(TRIES).enumerate() {
        let (before, rest) = prefix.split_at(start);
        let anchor = first_lines(rest);
        let lines = memchr::memchr_iter(b'\n', anchor).count();
        let text = anchor.iter().filter(|byte| !byte.is_ascii_whitespace()).count();
        if text == 0 || line > 0 && (lines < ANCHOR || text < TELLING) {
            continue;
        }
        let places = memmem::find_iter(saved.as_bytes(), anchor).filter(begins);
        let places: Vec<usize> = places.collect();
        let common = common_lengths(rest.as_bytes(), saved.as_bytes(), &places);
        let alike = |(at, common): &(usize, usize)| (saved[..*at].ends_with(before), *common);
        let best = places.into_iter().zip(common).max_by_key(alike);
        let Some((place, _)) = best else { continue };
        if saved[..place].ends_with(before) {
            return place - before.len();
        }
        // Go up as many lines, if one of them is recognized.
        let mut start = place;
        let mut is_known = false;
        for changed in before.lines().rev() {
            let above = saved[..start].strip_suffix('\n').unwrap_or_default();
            start = above.rfind('\n').map_or(0, |at| at + 1);
            is_known |= is_changed(&above[start..], changed);
        }
        return if is_known { start } else { 0 };
    }
    0
}

/// Returns whether a line may be an earlier version of another: their common beginning and end cover at least half of the longer one.
fn is_changed(before: &str, after: &str) -> bool {
    let longest = before.len().max(after.len());
    let start = common_length(before.as_bytes(), after.as_bytes());
    let ends = before.bytes().rev().zip(after.bytes().rev());
    let end = ends.take_while(|(a, b)| a == b).count();
    longest > 0 && 2 * (start + end) >= longest
}

/// Returns the number of bytes of a saved text up to the end of a suffix.
fn tail(saved: &str, suffix: &str) -> usize {
    let anchor = last_lines(suffix);
    if !anchor.trim_ascii().is_empty() {
        let places = memmem::find_iter(saved.as_bytes(), anchor).map(|at| at + anchor.len());
        let mut places: Vec<usize> = places.filter(|at| saved.is_char_boundary(*at)).collect();
        let last = places.last().copied();
        if places.len() > 1 {
            let reversed = |text: &str| text.bytes().rev().collect::<Vec<u8>>();
            places.reverse();
            let behind: Vec<usize> = places.iter().map(|at| saved.len() - at).collect();
            let common = common_lengths(&reversed(suffix), &reversed(saved), &behind);
            let best = places.into_iter().zip(common).rev().max_by_key(|(_, common)| *common);
            return best.map_or(saved.len(), |(at, _)| at);
        }
        return last.unwrap_or(saved.len());
    }
    saved.len()
}

/// Returns, for each of some ascending positions, how many elements of a text from there on match the beginning of a pattern. Takes linear
/// time, because matches at earlier positions are reused (the Z algorithm).
fn common_lengths<T: PartialEq>(pattern: &[T], text: &[T], places: &[usize]) -> Vec<usize> {
    let (Some(first), true) = (places.first(), places.len() > 1) else {
        let of = |at: &usize| common_length(pattern, &text[*at..]);
        return places.iter().map(of).collect();
    };
    let own = own_lengths(pattern);
    // The text from `begin` to `end` matches the pattern's beginning; no known match ends later.
    let (mut begin, mut end) = (*first, *first);
    let mut wanted = places.iter().peekable();
    let mut found = Vec::with_capacity(places.len());
    for at in *first..text.len() {
        let known = own.get(at - begin).map_or(0, |own| (*own).min(end.saturating_sub(at)));
        let mut length = known;
        if at + known >= end {
            length += common_length(&pattern[known..], &text[at + known..]);
            (begin, end) = (at, at + length);
        }
        if wanted.next_if_eq(&&at).is_some() {
            found.push(length);
        }
    }
    found.resize(places.len(), 0);
    found
}

/// Returns, for each position of a pattern, how many elements from there on match the pattern's beginning.
fn own_lengths<T: PartialEq>(pattern: &[T]) -> Vec<usize> {
    let mut own = vec![pattern.len(); pattern.len()];
    let (mut begin, mut end) = (0, 0);
    for at in 1..pattern.len() {
        let known = if at < end { own[at - begin].min(end - at) } else { 0 };
        own[at] = known;
        if at + known >= end {
            own[at] += common_length(&pattern[known..], &pattern[at + known..]);
            (begin, end) = (at, at + own[at]);
        }
    }
    own
}

fn common_length<T: PartialEq>(one: &[T], other: &[T]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Returns the first complete lines of a text.
fn first_lines(text: &str) -> &[u8] {
    let end = text.match_indices('\n').nth(ANCHOR - 1).or(text.match_indices('\n').next_back());
    end.map_or(&[], |(at, _)| &text.as_bytes()[..=at])
}

/// Returns the last lines that begin in a text.
fn last_lines(text: &str) -> &[u8] {
    let inner = text.strip_suffix('\n').unwrap_or(text);
    let start =
        inner.rmatch_indices('\n').nth(ANCHOR - 1).or(inner.rmatch_indices('\n').next_back());
    start.map_or(&[], |(at, _)| &text.as_bytes()[at + 1..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAVED: &str =
        "import a\n\ndef f():\n    return 1\n\ndef g():\n    return 2\n\ndef h():\n    return 3\n";

    #[test]
    fn what_a_request_leaves_out_is_taken_from_the_saved_text() {
        let whole = around(
            SAVED,
            "import a\n\ndef f():\n    ret",
            "\n\ndef g():\n    return 2\n\ndef h():\n    return 3\n",
        );
        assert_eq!(whole, ("", ""));
        let part = around(SAVED, "def g():\n    return 25\n    retu", "\n\ndef h():\n");
        assert_eq!(part, ("", "    return 3\n"), "a changed line is no anchor");
        let part = around(SAVED, "def g():\n    return 2\n    retu", "\n\ndef h():\n");
        assert_eq!(part, ("import a\n\ndef f():\n    return 1\n\n", "    return 3\n"));
        assert_eq!(around(SAVED, "x = 1\ny", ""), ("", ""));
        // The first line is truncated or changed.
        let rest = "    return 1\n\ndef g():\n    return 2\n\nde";
        let part = around(SAVED, &format!("f f():\n{rest}"), "");
        assert_eq!(part.0, "import a\n\nde");
        let part = around(SAVED, &format!("def other():\n{rest}"), "");
        assert_eq!(part.0, "import a\n\n");
        let part = around(SAVED, "zzz\n\ndef g2():\n    return 2\n\ndef h():\n    ret", "");
        assert_eq!(part.0, "import a\n\ndef f():\n", "blank lines are lines");
        // Deleted text does not come back.
        let part = around(SAVED, &format!("zzzzzz = 1\n{rest}"), "");
        assert_eq!(part.0, "");
        // Of similar positions, the one whose preceding line matches the truncated line.
        let twice = "def one():\n    first = load(1)\n    x = 1\n    y = 2\n\ndef two():\n    first = load(1)\n    x = 1\n    y = 2\n";
        let part = around(twice, "f one():\n    first = load(1)\n    x = 1\n    y = 2\n", "");
        assert_eq!(part.0, "de");
        assert_eq!(around("", "x = 1\ny", "\nz\n"), ("", ""));
    }

    proptest! {
        #[test]
        fn common_lengths_are_those_of_each_place_alone(
            pattern in "[ab]{0,8}",
            text in "[ab]{0,40}",
            places in proptest::collection::btree_set(0..40_usize, 0..20),
        ) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            let places: Vec<usize> = places.into_iter().filter(|at| *at <= text.len()).collect();
            let alone: Vec<usize> =
                places.iter().map(|at| common_length(pattern, &text[*at..])).collect();
            prop_assert_eq!(common_lengths(pattern, text, &places), alone);
        }
    }

    #[test]
    fn a_fragment_that_stands_once_has_lines() {
        let text = "a = 1\n\nb = 2\n  \nc = 3\nb = 2\nd = 4\n";
        assert_eq!(lines_of(text, "a = 1\nb = 2\nc"), Some([0, 4]));
        assert_eq!(lines_of(text, "b = 2\nd = 4\n"), Some([5, 6]));
        assert_eq!(lines_of(text, "b = 2"), None, "twice");
        assert_eq!((lines_of(text, "x"), lines_of(text, " \n")), (None, None));
    }

    #[test]
    fn urls_of_files_name_paths() {
        assert_eq!(path_of_url("file:///a%20b/%C3%A9.py"), "/a b/é.py");
        assert_eq!(path_of_url("file://localhost/100%.py"), "/100%.py");
        assert_eq!(path_of_url("untitled:x%20y"), "untitled:x%20y");
        assert_eq!(path_of_url("file:///a%+1b"), "/a%+1b");
    }

    #[test]
    fn the_longest_lines_near_the_cursor_tell_a_file() {
        let prefix = "short\na line that is long\n    a line that is long\nthe longest line of all lines\nhere";
        assert_eq!(
            telling_lines(prefix, "rest\nmore\nbehind the cursor\n"),
            ["the longest line of all lines", "a line that is long", "behind the cursor",]
        );
        assert!(telling_lines("x\ny\n", "").is_empty());
    }
}
