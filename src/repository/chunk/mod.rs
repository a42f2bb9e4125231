//! The chunk index, Repoformer's counterpart of [windows](crate::repository::window): every file's non-blank lines cut into runs
//! of `size` lines, a new one every `stride` lines.
//!
//! One index serves all tasks of a repository: a task sees the chunks of the *other* files, the nearest files first
//! ([`Neighbourhood`](crate::retrieve::chunks::Neighbourhood)), whatever its own file is.

mod payload;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::repository::corpus::{Repository, SourceFile};
use crate::text::language::Language;
use crate::text::lines::strip;
use crate::text::tokenize::is_word;

/// How files are cut into chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkShape {
    /// Lines of a chunk.
    pub size: usize,
    /// Lines between the starts of two chunks.
    pub stride: usize,
}

impl Default for ChunkShape {
    /// The paper's for lines, API calls and chunks (appendix A).
    fn default() -> Self {
        Self {
            size: 20,
            stride: 10,
        }
    }
}

impl ChunkShape {
    /// # Errors
    /// A size or stride of 0, or one past any file's length.
    pub fn check(&self) -> Result<()> {
        let too_large = u32::MAX as usize / 4;
        for (name, value) in [("chunk-size", self.size), ("chunk-stride", self.stride)] {
            if value == 0 || value > too_large {
                let reason = format!("must lie between 1 and {too_large}, not {value}");
                return Err(Error::Parameter { name, reason });
            }
        }
        Ok(())
    }
}

/// A chunk: lines `start..end` of its file's non-blank lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Index in [`RepoChunks::files`].
    pub file: u32,
    /// Its place among the chunks of its file: `path|number` is its name.
    pub number: u32,
    /// First line, counted from 0 among the non-blank ones.
    pub start: u32,
    /// Line after the last.
    pub end: u32,
}

/// A file's non-blank lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkFile {
    /// `repository/folder/…/file`.
    pub path: String,
    /// Index of the first file that is the same on disk; its own where no link is involved.
    pub same_as: u32,
    /// The lines joined by `\n`.
    text: String,
    /// Where each begins.
    starts: Vec<u32>,
}

impl ChunkFile {
    /// Keeps the lines of a file that are not blank. Lines end at `\n` alone, as in the reference: a form feed is a
    /// character like any other.
    fn of(file: SourceFile) -> Self {
        let mut text = String::with_capacity(file.text.len());
        for line in file.text.split('\n').filter(|line| !strip(line).is_empty()) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(line);
        }
        Self::joined(file.path, file.same_as, text)
    }

    fn joined(path: String, same_as: u32, text: String) -> Self {
        let mut starts = Vec::new();
        if !text.is_empty() {
            starts.push(0);
            let ends = memchr::memchr_iter(b'\n', text.as_bytes());
            starts.extend(ends.map(|end| end as u32 + 1));
        }
        Self {
            path,
            same_as,
            text,
            starts,
        }
    }

    /// Number of non-blank lines.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// All of them, joined by `\n`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Lines `start..end` joined by `\n`.
    ///
    /// # Panics
    /// When `end` is beyond the last line or before `start`.
    pub fn range(&self, start: u32, end: u32) -> &str {
        if start == end {
            return "";
        }
        let next = self.starts.get(end as usize);
        let to = next.map_or(self.text.len(), |next| *next as usize - 1);
        assert!(end as usize <= self.count(), "line {end} of {}", self.path);
        &self.text[self.starts[start as usize] as usize..to]
    }
}

/// The chunks of a repository: files in the code-point order of their paths, then by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoChunks {
    /// The repository's folder name.
    pub repository: String,
    /// What its files are written in.
    pub language: Language,
    /// How they were cut.
    pub shape: ChunkShape,
    /// All of them, those without a chunk included.
    pub files: Vec<ChunkFile>,
    chunks: Vec<Chunk>,
    /// `first[f]..first[f + 1]` are the chunks of file f.
    first: Vec<u32>,
}

impl RepoChunks {
    /// Cuts every file of a repository. A chunk without a word token is dropped and takes no number.
    ///
    /// ```
    /// use repoformer::repository::chunk::{ChunkShape, RepoChunks};
    /// use repoformer::repository::corpus::{Repository, SourceFile};
    /// use repoformer::text::language::Language;
    /// let file = SourceFile { path: "r/a.py".into(), text: "a\n\n  \nb\nc\n)\n]\n".into(), same_as: 0 };
    /// let repository = Repository { name: "r".into(), files: vec![file] };
    /// let chunks = RepoChunks::cut(repository, Language::Python, ChunkShape { size: 2, stride: 1 });
    /// let texts: Vec<_> = (0..chunks.len()).map(|chunk| chunks.text(chunk)).collect();
    /// assert_eq!(texts, ["a\nb", "b\nc", "c\n)"], "neither brackets alone nor blank lines");
    /// ```
    pub fn cut(repository: Repository, language: Language, shape: ChunkShape) -> Self {
        let files: Vec<ChunkFile> = repository
            .files
            .into_par_iter()
            .map(ChunkFile::of)
            .collect();
        let of_each: Vec<Vec<(u32, u32)>> = files
            .par_iter()
            .map(|file| chunk_lines(file, shape))
            .collect();
        let (mut chunks, mut first) = (Vec::new(), vec![0]);
        for (file, lines) in (0..).zip(of_each) {
            chunks.extend((0..).zip(lines).map(|(number, (start, end))| Chunk {
                file,
                number,
                start,
                end,
            }));
            first.push(chunks.len() as u32);
        }
        Self {
            repository: repository.name,
            language,
            shape,
            files,
            chunks,
            first,
        }
    }

    /// Number of chunks.
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// A chunk by its index.
    pub fn chunk(&self, index: usize) -> Chunk {
        self.chunks[index]
    }

    /// The indices of a file's chunks.
    pub fn of_file(&self, file: u32) -> std::ops::Range<u32> {
        self.first[file as usize]..self.first[file as usize + 1]
    }

    /// The chunk of a file with this number.
    pub fn numbered(&self, file: u32, number: u32) -> Option<u32> {
        let range = self.of_file(file);
        let index = range.start.checked_add(number)?;
        range.contains(&index).then_some(index)
    }

    /// A chunk's lines joined by `\n`.
    pub fn text(&self, index: usize) -> &str {
        let chunk = self.chunks[index];
        self.files[chunk.file as usize].range(chunk.start, chunk.end)
    }

    /// A chunk's name in the reference: `path|number`.
    pub fn name(&self, index: usize) -> String {
        let chunk = self.chunks[index];
        format!("{}|{}", self.files[chunk.file as usize].path, chunk.number)
    }

    /// Index of the file with this path.
    pub fn file_index(&self, path: &str) -> Option<u32> {
        let found = self
            .files
            .binary_search_by(|file| file.path.as_str().cmp(path));
        found.ok().map(|index| index as u32)
    }
}

/// The lines of each chunk of a file.
fn chunk_lines(file: &ChunkFile, shape: ChunkShape) -> Vec<(u32, u32)> {
    let count = file.count();
    let starts = (0..count).step_by(shape.stride);
    let lines = starts.map(|start| (start as u32, count.min(start + shape.size) as u32));
    lines
        .filter(|(start, end)| file.range(*start, *end).contains(is_word))
        .collect()
}

/// A digest of what chunks are cut from: the files' names and texts, and which are the same on disk.
pub fn digest_of_files(files: &[SourceFile]) -> String {
    let mut hasher = blake3::Hasher::new();
    for file in files {
        for text in [&file.path, &file.text] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        hasher.update(&file.same_as.to_le_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
