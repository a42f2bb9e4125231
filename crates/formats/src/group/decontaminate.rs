//! Overlap of training data with benchmarks: their repositories, and files that contain their targets.
//!
//! A repository is left out by its name. A file is left out if it contains twelve successive words of a target; StarCoder's and
//! datatrove's filters leave out texts in the same way. Words are `\w+`: whole identifiers, case-sensitive. Neither indent, line
//! breaks nor punctuation therefore hide a target, and code that shares only its punctuation is not a leak. A shorter target is
//! found by the twelve words that end with its last word and begin in the left context, so that `return x` alone does not count as
//! a leak.
//!
//! Twelve words with fewer than six different ones, such as rows of zeros, are not significant and are ignored. Unlike
//! datatrove's filter, this one does not combine left context and longer targets in n-grams: the files found in this way share
//! only a license or imports with the left context.

use std::fmt;
use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashSet};
use repoformer_core::task::{Format, Task, TaskSet};
use repoformer_text::tokenize::is_word;
use twox_hash::XxHash64;

/// Number of words in an n-gram.
const NGRAM: usize = 12;
/// Smallest number of different words.
const DIFFERENT: usize = 6;
/// Number of bytes of the left context that a short target can reach into.
const REACH: usize = 1 << 12;
/// Number of digits of a commit at the end of a folder's name.
const COMMIT: std::ops::RangeInclusive<usize> = 7..=40;

/// Names and n-grams of benchmarks.
///
/// ```
/// use repoformer_formats::group::decontaminate::Contamination;
/// use repoformer_core::task::{Task, TaskSet};
///
/// let target = "    left, right = self.split(values, at=middle)\n    return self.merge(self.sort(left), self.sort(right))";
/// let task = Task::new("o_r/0".into(), "o_r/a.py", 0, 1, target, "def sort(self, values):\n");
/// let found = Contamination::new(&[TaskSet::new("tasks.jsonl".into(), vec![task])]);
/// assert_eq!(found.repository("O/r").unwrap().to_string(), "task o_r/0 of tasks.jsonl");
/// assert!(found.file(&target.replace("    ", "\t")).is_some());
/// assert!(found.file("return self.merge(left, right)").is_none());
/// ```
#[derive(Debug, Default)]
pub struct Contamination {
    /// Task files.
    sets: Vec<PathBuf>,
    /// Task file and id of each task.
    tasks: Vec<(usize, String)>,
    /// First task of each repository, by the repository's key.
    names: HashMap<String, usize>,
    /// First task of each n-gram, by the n-gram's hash.
    ngrams: HashMap<u64, usize>,
    unchecked: Vec<usize>,
}

/// Task whose repository or target was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak<'a> {
    /// File of the task.
    pub tasks: &'a Path,
    /// Id of the task.
    pub task: &'a str,
    /// Name of the repository, or words of the target, as they were found.
    pub by: String,
}

impl fmt::Display for Leak<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {} of {}", self.task, self.tasks.display())
    }
}

impl Contamination {
    /// Reads repositories and targets of these tasks.
    pub fn new(sets: &[TaskSet]) -> Self {
        let mut found = Self::default();
        for set in sets {
            for task in set.tasks() {
                found.add(task);
            }
            found.sets.push(set.path.clone());
        }
        found
    }

    fn add(&mut self, task: &Task) {
        let number = self.tasks.len();
        self.tasks.push((self.sets.len(), task.id.clone()));
        for key in keys(&task.repository) {
            self.names.entry(key).or_insert(number);
        }
        let ngrams = ngrams(task);
        if ngrams.is_empty() {
            self.unchecked.push(number);
        }
        for ngram in ngrams {
            self.ngrams.entry(ngram).or_insert(number);
        }
    }

    fn leak(&self, number: usize, by: String) -> Leak<'_> {
        let (set, task) = &self.tasks[number];
        Leak { tasks: &self.sets[*set], task, by }
    }

    /// Returns the task whose repository has this name, ignoring case. The owner must match too (`owner/name`, `owner_name`,
    /// `owner--name`, or CrossCodeEval's `owner-name-commit`), unless the task names none.
    pub fn repository(&self, name: &str) -> Option<Leak<'_>> {
        let without_owner = name.split_once('/').map_or(name, |(_, name)| name);
        let known = |name| self.names.get(&key(name));
        let number = known(name).or_else(|| known(without_owner))?;
        Some(self.leak(*number, name.to_owned()))
    }

    /// Returns the task of the first n-gram in this text that any task has.
    pub fn file(&self, text: &str) -> Option<Leak<'_>> {
        let mut window = Window::default();
        for word in words(text) {
            window.add(word);
            if let Some(&number) = self.ngrams.get(&window.hash)
                && window.count >= NGRAM
            {
                return Some(self.leak(number, window.words()));
            }
        }
        None
    }

    /// Returns the tasks whose targets cannot be compared with files: even with the left context, they have too few words, or
    /// too few different ones.
    pub fn unchecked_tasks(&self) -> impl Iterator<Item = Leak<'_>> {
        self.unchecked.iter().map(|&number| self.leak(number, String::new()))
    }
}

/// Returns a key that all forms of a repository's name share: in lower case, its parts between `/`, `_` and `-`.
fn key(name: &str) -> String {
    let parts = name.split(['/', '_', '-']).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect::<Vec<_>>().join("-")
}

/// Returns the keys of a task's folder: the folder's key, and the key without a commit after owner and name.
fn keys(folder: &str) -> Vec<String> {
    if folder.is_empty() {
        return Vec::new();
    }
    let is_commit =
        |part: &str| COMMIT.contains(&part.len()) && part.bytes().all(|c| c.is_ascii_hexdigit());
    let shorter =
        folder.rsplit_once('-').filter(|(name, commit)| name.contains('-') && is_commit(commit));
    std::iter::once(folder).chain(shorter.map(|(name, _)| name)).map(key).collect()
}

/// Hashes of a target's n-grams.
fn ngrams(task: &Task) -> HashSet<u64> {
    let left = task.full_left_context.as_deref().unwrap_or(&task.prompt);
    let left = &left[left.ceil_char_boundary(left.len().saturating_sub(REACH))..];
    // Prompts of whole lines may be stripped at the end.
    let between = if task.format == Format::RepoEval { "\n" } else { "" };
    let right = task.right_context.as_deref().unwrap_or_default();
    let right = &right[..right.find(|one| !is_word(one)).unwrap_or(right.len())];
    let text = [left, between, &task.ground_truth, right].concat();
    let start = left.len() + between.len();
    let end = start + task.ground_truth.len();

    // A word that continues in the right context does not belong to the target.
    let end_of = |word: &str| word.as_ptr().addr() - text.as_ptr().addr() + word.len();
    let (mut own, mut window, mut found) = (0, Window::default(), HashSet::default());
    let mut words = words(&text).take_while(|word| end_of(word) <= end).peekable();
    while let Some(word) = words.next() {
        window.add(word);
        own += usize::from(end_of(word) > start);
        let is_wanted = own >= NGRAM || own > 0 && words.peek().is_none();
        if is_wanted && window.count >= NGRAM && window.different() >= DIFFERENT {
            found.insert(window.hash);
        }
    }
    found
}

/// Returns the matches of `\w+`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_other =
        |one: char| !(one.is_ascii_alphanumeric() || one == '_' || !one.is_ascii() && is_word(one));
    text.split(is_other).filter(|word| !word.is_empty())
}

/// Twelve successive words.
#[derive(Default)]
struct Window<'t> {
    /// Words with their hashes, in a ring.
    last: [(&'t str, u64); NGRAM],
    /// Number of words so far.
    count: usize,
    /// Polynomial of the words' hashes, modulo `2^64`.
    hash: u64,
}

/// Base of the polynomial: odd, and without a pattern.
const BASE: u64 = 0x9E37_79B9_7F4A_7C15;

impl<'t> Window<'t> {
    #[inline]
    fn add(&mut self, word: &'t str) {
        let first = const { BASE.wrapping_pow(NGRAM as u32) };
        let hash = XxHash64::oneshot(0, word.as_bytes());
        let (_, gone) = std::mem::replace(&mut self.last[self.count % NGRAM], (word, hash));
        self.hash =
            self.hash.wrapping_mul(BASE).wrapping_add(hash).wrapping_sub(gone.wrapping_mul(first));
        self.count += 1;
    }

    fn different(&self) -> usize {
        self.last.iter().map(|(word, _)| word).collect::<HashSet<_>>().len()
    }

    fn words(&self) -> String {
        let mut words = self.last.map(|(word, _)| word);
        words.rotate_left(self.count % NGRAM);
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use repoformer_store::files;

    use super::*;

    fn sample_tasks() -> Vec<TaskSet> {
        let read = |kind| {
            let path = format!("{}/../../data/tasks/{kind}.jsonl", env!("CARGO_MANIFEST_DIR"));
            TaskSet::read(Path::new(&path)).unwrap().set
        };
        ["line", "api", "function", "chunk"].map(read).into()
    }

    /// Returns the texts of the sample repositories' files, each with the repository's name.
    fn sample_files() -> Vec<(String, String)> {
        let root = format!("{}/../../data/repos", env!("CARGO_MANIFEST_DIR"));
        let entries = walkdir::WalkDir::new(&root).sort_by_file_name().into_iter().flatten();
        let sources =
            entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "py"));
        let read = |entry: walkdir::DirEntry| {
            let path = entry.path().strip_prefix(&root).unwrap();
            let repository = path.iter().next().unwrap().to_string_lossy().into_owned();
            (repository, files::read_to_string(entry.path()).unwrap())
        };
        sources.map(read).collect()
    }

    /// Returns a target with the preceding lines that its n-gram reaches into.
    fn leaked(task: &Task) -> String {
        let lines: Vec<&str> = task.prompt.split_inclusive('\n').collect();
        let own = words(&task.ground_truth).count();
        let from =
            (0..lines.len()).rev().find(|&at| own + words(&lines[at..].concat()).count() >= NGRAM);
        lines[if own >= NGRAM { lines.len() } else { from.unwrap_or(0) }..].concat()
            + &task.ground_truth
    }

    /// Each task's target, inserted into a file of another repository: unchanged, with other indents and line ends, and as the
    /// body of another function.
    #[test]
    fn planted_targets_are_found() {
        let (sets, hosts) = (sample_tasks(), sample_files());
        let (mut planted, mut unchecked) = (0, 0);
        for set in &sets {
            for (task, number) in set.tasks().iter().zip(0..) {
                let found =
                    Contamination::new(&[TaskSet::new(set.path.clone(), vec![task.clone()])]);
                if found.unchecked_tasks().next().is_some() {
                    unchecked += 1;
                    continue;
                }
                let others = hosts.iter().filter(|(repository, _)| *repository != task.repository);
                let (_, host) = others.cycle().nth(number).unwrap();
                let middle = host.len() / 2;
                let line = host[middle..].find('\n').map_or(host.len(), |at| middle + at + 1);
                let leaked = leaked(task);
                for text in [
                    leaked.clone(),
                    leaked.replace('\n', "\n        ").replace("    ", "\t"),
                    format!(
                        "def other(self):\n    # copied\n{}\n    return self",
                        leaked.replace('\n', "\r\n\r\n")
                    ),
                ] {
                    let file = format!("{}{text}\n{}", &host[..line], &host[line..]);
                    let leak = found.file(&file);
                    assert_eq!(leak.map(|leak| leak.task), Some(&*task.id), "{text}");
                    planted += 1;
                }
            }
        }
        assert_eq!((planted, unchecked), (3 * 714, 6));
    }

    /// The sample repositories share an author and some habits.
    #[test]
    fn other_repositories_are_clean() {
        let mut sets = sample_tasks();
        let mut wrong = Vec::new();
        for repository in ["parcelflow", "quillpad", "tidewatch"] {
            let all = sets.clone();
            for set in &mut sets {
                set.tasks_mut().retain(|task| task.repository == repository);
            }
            let found = Contamination::new(&sets);
            for (_, text) in sample_files().iter().filter(|(name, _)| name != repository) {
                wrong.extend(found.file(text).map(|leak| leak.by));
            }
            sets = all;
        }
        assert_eq!(wrong, [""; 0]);
    }

    #[test]
    fn repositories_are_found_by_every_form_of_their_name() {
        let named = |folder: &str| {
            let task = Task { id: folder.into(), repository: folder.into(), ..Task::default() };
            Contamination::new(&[TaskSet::new("t".into(), vec![task])])
        };
        for (folder, name) in [
            ("huggingface_diffusers", "huggingface/diffusers"),
            ("huggingface_diffusers", "HuggingFace/Diffusers"),
            ("huggingface_diffusers", "huggingface_diffusers"),
            ("huggingface_diffusers", "fork/huggingface_diffusers"),
            ("amazon-science--patchcore-inspection", "amazon-science/patchcore-inspection"),
            ("amazon-science_patchcore-inspection", "amazon-science/patchcore-inspection"),
            ("turboderp-exllama-a544085", "turboderp/exllama"),
            ("turboderp-exllama-a544085", "turboderp/exllama-a544085"),
            ("click", "pallets/click"),
            ("my_package", "me/my-package"),
        ] {
            let found = named(folder);
            assert_eq!(found.repository(name).map(|leak| leak.task), Some(folder), "{name}");
        }
        for (folder, name) in [
            ("huggingface_diffusers", "other/diffusers"),
            ("click", "click/other"),
            ("feed-deadbeef", "any/feed"),
            ("turboderp-exllama-a5440", "turboderp/exllama"),
            ("", "any/thing"),
            ("", ""),
        ] {
            assert_eq!(named(folder).repository(name), None, "{folder}: {name}");
        }
    }

    fn target(format: Format, left: &str, target: &str, right: &str) -> Contamination {
        let mut task = Task::new("r/0".into(), "r/a.py", 0, 0, target, left);
        (task.format, task.right_context) = (format, Some(right.into()));
        Contamination::new(&[TaskSet::new("t".into(), vec![task])])
    }

    /// By hand.
    #[test]
    fn short_targets_reach_into_the_left_context_and_end_with_the_hole() {
        let found = target(Format::CrossCodeEval, "a b c d e f g h i j k lo", "ng(m, n", "ext)");
        assert!(found.file("b c d e f g h i j k long m").is_some());
        assert!(found.file("x = (b, c, d.e, f, g, h)[i:j] % {k: long(m)}").is_some());
        for clean in [
            "c d e f g h i j k long m next",
            "a b c d e f g h i j k lo",
            "b c d e f g h i j k lo ng m",
        ] {
            assert_eq!(found.file(clean), None, "{clean}");
        }
        let stripped = target(Format::RepoEval, "a b c d e f g h i j", "k = l", "");
        assert_eq!(stripped.file("a b c d e f g h i j k l").unwrap().by, "a b c d e f g h i j k l");
    }

    /// By hand.
    #[test]
    fn longer_targets_are_found_by_their_own_words_alone() {
        let found = target(Format::RepoEval, "x y z\n", "a b c d e f g h i j k l m", "");
        assert!(found.file("a b c d e f g h i j k l").is_some());
        assert!(found.file("b c d e f g h i j k l m").is_some());
        assert_eq!(found.file("z a b c d e f g h i j k"), None);
        assert_eq!(found.file("a b c d e f g h i j k L"), None);
    }

    #[test]
    fn targets_that_say_too_little_are_told() {
        for (left, ground_truth) in
            [("a b\n", "c d e"), ("", ")"), ("", "0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4")]
        {
            let found = target(Format::RepoEval, left, ground_truth, "");
            assert_eq!(found.unchecked_tasks().map(|leak| leak.task).collect::<Vec<_>>(), ["r/0"]);
        }
        assert_eq!(
            target(Format::RepoEval, "a b c d e f g h i j k\n", "l", "").unchecked_tasks().count(),
            0
        );
    }
}
