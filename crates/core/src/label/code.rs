//! A repository from which instances are drawn: the lines of each file, usually without blank lines, and their words.

use std::ops::Range;

use foldhash::HashMap;
use repoformer_text::lines::strip;
use repoformer_text::tokenize::words::cut;
use repoformer_text::tokenize::{Dictionary, Nltk, each_word};

use crate::repository::corpus::{Repository, SourceFile};
use crate::repository::parallel;

/// Maximum sizes, in bytes, of a file and of a line; larger files are treated as files without lines.
const LARGEST_FILE: usize = 8 << 20;
const LONGEST_LINE: usize = 1 << 16;

/// Selection of a repository's lines, and the way in which they are split into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineSelection {
    /// Non-blank lines, each split into words separately.
    Lines,
    /// Non-blank lines, with the words of NLTK 3.8.
    Lines38,
    /// All lines, including the text after the last line break, with the words of NLTK 3.8.
    AllLines38,
}

/// A file and its lines.
#[derive(Debug)]
pub(super) struct CodeFile {
    /// `repository/folder/…/file`.
    pub(super) path: String,
    /// Index of the first file that is the same on disk.
    pub(super) same_as: u32,
    text: String,
    /// Range of each line in the text, without its line end.
    lines: Vec<Range<u32>>,
    /// Number of the file's first line among the lines of all files.
    pub(super) first: usize,
    /// Index of the file's folder.
    pub(super) folder: usize,
}

impl CodeFile {
    fn new(file: SourceFile, reading: LineSelection) -> Self {
        // Nobody completes data files or one-line generated files, and nobody wants to see them.
        let longest = file.text.split('\n').map(str::len).max().unwrap_or(0);
        let is_data = file.text.len() > LARGEST_FILE || longest > LONGEST_LINE;
        let text = if is_data { String::new() } else { file.text };
        let (mut lines, mut at) = (Vec::new(), 0);
        for line in text.split('\n') {
            if reading == LineSelection::AllLines38 || !strip(line).is_empty() {
                lines.push(at as u32..(at + line.len()) as u32);
            }
            at += line.len() + 1;
        }
        Self { path: file.path, same_as: file.same_as, text, lines, first: 0, folder: 0 }
    }

    /// Returns the number of lines.
    pub(super) fn count(&self) -> usize {
        self.lines.len()
    }

    /// Returns a line.
    pub(super) fn line(&self, number: usize) -> &str {
        let line = &self.lines[number];
        &self.text[line.start as usize..line.end as usize]
    }

    /// Returns some lines, joined with newlines.
    pub(super) fn join(&self, lines: Range<usize>) -> String {
        let lines: Vec<&str> = lines.map(|number| self.line(number)).collect();
        lines.join("\n")
    }

    /// Returns the text of the file before these lines, in them and after them. Blank lines between them are part of the
    /// target; the line end of the last belongs to the text after them.
    pub(super) fn around(&self, lines: Range<usize>) -> [&str; 3] {
        let start = self.lines[lines.start].start as usize;
        let end = self.lines[lines.end - 1].end as usize;
        [&self.text[..start], &self.text[start..end], &self.text[end..]]
    }

    /// Returns the byte offsets at which the rows of the file begin, including blank rows.
    pub(super) fn row_starts(&self) -> Vec<usize> {
        let ends = memchr::memchr_iter(b'\n', self.text.as_bytes());
        std::iter::once(0).chain(ends.map(|end| end + 1)).collect()
    }

    /// Selects the values of the lines from the values of all rows.
    pub(super) fn of_lines<T: Copy + Default>(&self, rows: &[T]) -> Vec<T> {
        let starts = self.row_starts();
        let row = |line: &Range<u32>| starts.partition_point(|start| *start <= line.start as usize);
        let lines = self.lines.iter().map(row);
        lines.map(|row| rows.get(row.saturating_sub(1)).copied().unwrap_or_default()).collect()
    }

    /// Returns the lines among these rows.
    pub(super) fn of_rows(&self, starts: &[usize], rows: Range<usize>) -> Range<usize> {
        let number = |row: usize| {
            let begin = starts.get(row).copied().unwrap_or(self.text.len() + 1);
            self.lines.partition_point(|line| (line.start as usize) < begin)
        };
        number(rows.start)..number(rows.end)
    }
}

/// A repository's files and the words of all their lines.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) files: Vec<CodeFile>,
    /// A path for each folder that has files.
    pub(super) folders: Vec<String>,
    /// Number of distinct words.
    pub(super) vocabulary: usize,
    /// `first[n]..first[n + 1]` are the words of line n of all files' lines.
    first: Vec<u32>,
    words: Vec<u32>,
}

impl Code {
    pub(super) fn from_repository(repository: Repository, reading: LineSelection) -> Self {
        let mut files = parallel::map(repository.files, |file| CodeFile::new(file, reading));
        let (mut dictionary, mut first, mut words) = (Dictionary::default(), vec![0], Vec::new());
        let (mut numbers, mut folders) = (HashMap::default(), Vec::new());
        for file in &mut files {
            let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            file.folder = *numbers.entry(folder.to_owned()).or_insert_with(|| {
                folders.push(file.path.clone());
                folders.len() - 1
            });
            file.first = first.len() - 1;
            match reading {
                LineSelection::Lines => {
                    for number in 0..file.count() {
                        each_word(file.line(number), |word| words.push(dictionary.intern(word)));
                        first.push(words.len() as u32);
                    }
                }
                // Whether NLTK splits off `n't` depends on the text after the line.
                LineSelection::Lines38 | LineSelection::AllLines38 => {
                    let text = file.join(0..file.count());
                    let mut ends = memchr::memchr_iter(b'\n', text.as_bytes()).peekable();
                    cut(&text, Nltk::Until38, |word| {
                        let at = word.as_ptr() as usize - text.as_ptr() as usize;
                        while ends.next_if(|end| *end < at).is_some() {
                            first.push(words.len() as u32);
                        }
                        words.push(dictionary.intern(word));
                    });
                    first.resize(file.first + file.count() + 1, words.len() as u32);
                }
            }
        }
        Self { vocabulary: dictionary.len(), folders, files, first, words }
    }

    /// Returns the words of these lines of a file, repeats included.
    pub(super) fn words(&self, file: &CodeFile, lines: Range<usize>) -> &[u32] {
        let first = self.first[file.first + lines.start] as usize;
        &self.words[first..self.first[file.first + lines.end] as usize]
    }

    /// Returns the distinct words of some lines, ascending.
    pub(super) fn set<'a>(&self, lines: impl Iterator<Item = &'a [u32]>) -> Vec<u32> {
        let mut set: Vec<u32> = lines.flatten().copied().collect();
        set.sort_unstable();
        set.dedup();
        set
    }
}
