//! Rows in transit through the disk: sorted sections of one shard each, several per file, and their merge.
//!
//! The order is by repository name, then by path, then by input: of two files with the same path, the first one read comes
//! first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use repoformer_core::repository::Shard;
use repoformer_store::error::{Error, Result};
use repoformer_store::files::{self, File};
use serde::{Deserialize, Serialize};

use super::rows::FileRow;

/// Compression: the fastest level that gives small files, with a window small enough to read many sections at once.
const LEVEL: i32 = 1;
const WINDOW_LOG: u32 = 17;
/// Number of bytes of a section that are read at once.
const AT_ONCE: usize = 1 << 15;

/// Part of a file that contains sorted rows of one shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Section {
    pub(super) shard: u64,
    begin: u64,
    length: u64,
}

/// Row that waits in memory: its position in the bytes, and its position in the inputs.
struct BufferedRow {
    shard: u64,
    begin: usize,
    lengths: [u32; 3],
    stars: u64,
    input: u64,
    row: u64,
}

impl BufferedRow {
    fn part<'b>(&self, bytes: &'b [u8], number: usize) -> &'b [u8] {
        let begin = self.lengths[..number].iter().fold(self.begin, |at, n| at + *n as usize);
        &bytes[begin..begin + self.lengths[number] as usize]
    }
}

/// Writer of rows into a file, sorted, as many at a time as fit in memory.
pub(super) struct Spill {
    path: PathBuf,
    file: BufWriter<File>,
    end: u64,
    shards: u64,
    most: usize,
    bytes: Vec<u8>,
    waiting: Vec<BufferedRow>,
    sections: Vec<Section>,
}

impl Spill {
    /// Creates the file. Memory holds up to `most` bytes, plus the row that exceeds them.
    pub(super) fn create(path: &Path, shards: u64, most: usize) -> Result<Self> {
        let file =
            File::create(path).map_err(|e| Error::writing(path, "create this work file", e))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 16, file),
            end: 0,
            shards,
            most,
            bytes: Vec::new(),
            waiting: Vec::new(),
            sections: Vec::new(),
        })
    }

    /// Adds a row, the `row`th of an input.
    pub(super) fn add(&mut self, file: FileRow<'_>, input: u64, row: u64) -> Result<()> {
        let parts = [file.repository, file.path, file.text].map(str::as_bytes);
        let begin = self.bytes.len();
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        let shard = Shard::containing(&file.repository.replace('/', "_"), self.shards).index;
        // A text has at most 64 MiB.
        let lengths = parts.map(|part| part.len() as u32);
        self.waiting.push(BufferedRow { shard, begin, lengths, stars: file.stars, input, row });
        if self.bytes.len() + self.waiting.len() * size_of::<BufferedRow>() >= self.most {
            self.write_out()?;
        }
        Ok(())
    }

    fn write_out(&mut self) -> Result<()> {
        let bytes = &self.bytes;
        self.waiting.sort_unstable_by(|one, other| {
            let key =
                |row: &BufferedRow| (row.part(bytes, 0), row.part(bytes, 1), row.input, row.row);
            one.shard.cmp(&other.shard).then_with(|| key(one).cmp(&key(other)))
        });
        let cannot_write = |e| Error::writing(&self.path, "write this work file", e);
        for rows in self.waiting.chunk_by(|one, other| one.shard == other.shard) {
            let begin = self.end;
            let mut section = SectionWriter::begin(&mut self.file).map_err(cannot_write)?;
            for row in rows {
                let head = Head {
                    name: row.part(bytes, 0),
                    path: row.part(bytes, 1),
                    input: row.input,
                    row: row.row,
                    stars: row.stars,
                };
                section.write(&head, row.part(bytes, 2)).map_err(cannot_write)?;
            }
            self.end += section.finish().map_err(cannot_write)?;
            let length = self.end - begin;
            self.sections.push(Section { shard: rows[0].shard, begin, length });
        }
        self.waiting.clear();
        self.bytes.clear();
        Ok(())
    }

    /// Writes the remaining rows, syncs the file, and returns its sections.
    pub(super) fn finish(mut self) -> Result<Vec<Section>> {
        self.write_out()?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error);
        let synced = file.and_then(|file| file.sync_all());
        synced.map_err(|e| Error::writing(&self.path, "write this work file", e))?;
        Ok(self.sections)
    }
}

/// Row without its text.
struct Head<B> {
    name: B,
    path: B,
    input: u64,
    row: u64,
    stars: u64,
}

struct SectionWriter<'f> {
    encoder: zstd::stream::write::Encoder<'static, ByteCounter<&'f mut BufWriter<File>>>,
}

struct ByteCounter<W> {
    sink: W,
    bytes: u64,
}

impl<W: Write> Write for ByteCounter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

impl<'f> SectionWriter<'f> {
    fn begin(file: &'f mut BufWriter<File>) -> io::Result<Self> {
        let mut encoder =
            zstd::stream::write::Encoder::new(ByteCounter { sink: file, bytes: 0 }, LEVEL)?;
        encoder.include_checksum(true)?;
        encoder.window_log(WINDOW_LOG)?;
        Ok(Self { encoder })
    }

    fn write(&mut self, head: &Head<&[u8]>, text: &[u8]) -> io::Result<()> {
        let mut numbers = [0; FIXED];
        let lengths = [head.name, head.path, text].map(|part| part.len() as u64);
        let values = lengths.into_iter().chain([head.stars, head.input, head.row]);
        for (place, value) in numbers.chunks_exact_mut(8).zip(values) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        self.encoder.write_all(&numbers)?;
        [head.name, head.path, text].iter().try_for_each(|part| self.encoder.write_all(part))
    }

    fn finish(self) -> io::Result<u64> {
        Ok(self.encoder.finish()?.bytes)
    }
}

/// Number of bytes of a row's numbers.
const FIXED: usize = 6 * 8;

/// Sections that are read one after another, row by row.
struct SpillSections {
    path: PathBuf,
    input: BufReader<zstd::stream::read::Decoder<'static, BufReader<io::Take<File>>>>,
    head: Head<Vec<u8>>,
    /// Number of unread bytes of the row's text.
    text: u64,
}

impl SpillSections {
    /// Opens a section; `None` if it has no row.
    fn open(path: &Path, section: &Section) -> Result<Option<Self>> {
        let opened = File::open(path).and_then(|mut file| {
            file.seek(SeekFrom::Start(section.begin))?;
            let bounded = BufReader::with_capacity(AT_ONCE, file.take(section.length));
            zstd::stream::read::Decoder::with_buffer(bounded)
        });
        let decoder = opened.map_err(|e| Error::reading(path, "open this work file", e))?;
        let input = BufReader::with_capacity(AT_ONCE, decoder);
        let head = Head { name: Vec::new(), path: Vec::new(), input: 0, row: 0, stars: 0 };
        let mut source = Self { path: path.to_owned(), input, head, text: 0 };
        Ok(source.next()?.then_some(source))
    }

    /// Reads the head of the next row; returns false at the end.
    fn next(&mut self) -> Result<bool> {
        self.read_head().map_err(|e| unreadable(&self.path, e))
    }

    fn read_head(&mut self) -> io::Result<bool> {
        let mut numbers = [0; FIXED];
        match self.input.read(&mut numbers[..1])? {
            0 => return Ok(false),
            _ => self.input.read_exact(&mut numbers[1..])?,
        }
        let mut values = [0; FIXED / 8];
        for (value, bytes) in values.iter_mut().zip(numbers.chunks_exact(8)) {
            *value = bytes.try_into().map_or(0, u64::from_le_bytes);
        }
        let [name, path, text, stars, input, row] = values;
        for (part, length) in [(&mut self.head.name, name), (&mut self.head.path, path)] {
            part.clear();
            fill(&mut self.input, part, length)?;
        }
        (self.head.stars, self.head.input, self.head.row, self.text) = (stars, input, row, text);
        Ok(true)
    }

    fn key(&self) -> (&[u8], &[u8], u64, u64) {
        (&self.head.name, &self.head.path, self.head.input, self.head.row)
    }
}

/// Reads `length` bytes; a damaged length reserves no memory.
fn fill(input: &mut impl Read, into: &mut Vec<u8>, length: u64) -> io::Result<()> {
    let read = input.by_ref().take(length).read_to_end(into)?;
    if read as u64 == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn unreadable(path: &Path, error: io::Error) -> Error {
    if error.raw_os_error().is_some() {
        return Error::reading(path, "read this work file", error);
    }
    let hint = "remove the folder that contains it, and run the command again";
    Error::artifact(path, format!("damaged: {error}"), hint)
}

impl PartialEq for SpillSections {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for SpillSections {}

impl PartialOrd for SpillSections {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SpillSections {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Rows of several sections in order.
pub(super) struct Merge {
    sources: BinaryHeap<Reverse<SpillSections>>,
    /// Sections that the current row comes from.
    current: Option<SpillSections>,
}

impl Merge {
    /// Merges sections of files. If there are more than `at_once`, they are first merged into fewer, in files of this folder,
    /// which is removed.
    pub(super) fn open(
        mut sections: Vec<(PathBuf, Section)>,
        at_once: usize,
        folder: &Path,
    ) -> Result<Self> {
        let mut number = 0;
        while sections.len() > at_once {
            files::create_dir_all(folder)
                .map_err(|e| Error::writing(folder, "create this folder", e))?;
            let mut fewer = Vec::new();
            for some in sections.chunks(at_once) {
                number += 1;
                let path = folder.join(format!("{number}.rows"));
                let length = Self::from_sections(some)?.write(&path)?;
                // The rows of earlier merges are in the new file.
                for (path, _) in some.iter().filter(|(path, _)| path.starts_with(folder)) {
                    let _ = files::remove_file(path);
                }
                fewer.push((path, Section { shard: some[0].1.shard, begin: 0, length }));
            }
            sections = fewer;
        }
        Self::from_sections(&sections)
    }

    fn from_sections(sections: &[(PathBuf, Section)]) -> Result<Self> {
        let mut sources = BinaryHeap::new();
        for (path, section) in sections {
            sources.extend(SpillSections::open(path, section)?.map(Reverse));
        }
        Ok(Self { sources, current: None })
    }

    fn write(mut self, path: &Path) -> Result<u64> {
        let cannot_write = |e| Error::writing(path, "write this work file", e);
        let mut file = BufWriter::with_capacity(1 << 16, File::create(path).map_err(cannot_write)?);
        let mut section = SectionWriter::begin(&mut file).map_err(cannot_write)?;
        while self.next()? {
            let text = self.text()?;
            if let Some(source) = &self.current {
                let Head { name, path, input, row, stars } = &source.head;
                let head = Head {
                    name: &name[..],
                    path: &path[..],
                    input: *input,
                    row: *row,
                    stars: *stars,
                };
                section.write(&head, &text).map_err(cannot_write)?;
            }
        }
        let length = section.finish().map_err(cannot_write)?;
        file.flush().map_err(cannot_write)?;
        Ok(length)
    }

    /// Advances to the next row; returns false at the end.
    pub(super) fn next(&mut self) -> Result<bool> {
        if let Some(mut source) = self.current.take() {
            if source.text > 0 {
                let left = io::copy(&mut source.input.by_ref().take(source.text), &mut io::sink());
                left.map_err(|e| unreadable(&source.path, e))?;
            }
            if source.next()? {
                self.sources.push(Reverse(source));
            }
        }
        self.current = self.sources.pop().map(|Reverse(source)| source);
        Ok(self.current.is_some())
    }

    /// Returns the current row: its repository, its path, its stars, and the length of its text.
    pub(super) fn row(&self) -> Option<(&[u8], &[u8], u64, u64)> {
        let source = self.current.as_ref()?;
        Some((&source.head.name, &source.head.path, source.head.stars, source.text))
    }

    /// Reads the text of the current row.
    pub(super) fn text(&mut self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        if let Some(source) = &mut self.current {
            fill(&mut source.input, &mut text, source.text)
                .map_err(|e| unreadable(&source.path, e))?;
            source.text = 0;
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result equals a plain sort of all rows, however little memory there is and however few sections are read at once.
    #[test]
    fn merged_rows_are_sorted_whatever_the_memory() {
        let dir = tempfile::tempdir().unwrap();
        let mut rows = Vec::new();
        for number in 0..300u64 {
            let hash = blake3::hash(&number.to_le_bytes());
            let [a, b, c] = [0, 1, 2].map(|i| hash.as_bytes()[i] % 7);
            rows.push((
                format!("o/{a}"),
                format!("{b}.py"),
                "x".repeat(c as usize),
                number % 3,
                number,
            ));
        }
        for (most, at_once) in [(1, 2), (500, 3), (1 << 20, 64)] {
            let path = dir.path().join("rows");
            let mut spill = Spill::create(&path, 4, most).unwrap();
            for (repository, path, text, input, row) in &rows {
                let file = FileRow { repository, path, text, stars: *row };
                spill.add(file, *input, *row).unwrap();
            }
            let sections = spill.finish().unwrap();
            let mut seen = 0;
            for shard in 0..4 {
                let of = sections.iter().filter(|section| section.shard == shard);
                let of = of.map(|section| (path.clone(), section.clone())).collect();
                let folder = dir.path().join("merged");
                let mut merge = Merge::open(of, at_once, &folder).unwrap();
                let mut wanted: Vec<_> = rows
                    .iter()
                    .filter(|row| Shard::containing(&row.0.replace('/', "_"), 4).index == shard)
                    .collect();
                wanted.sort_by_key(|row| (&row.0, &row.1, row.3, row.4));
                for (repository, path, text, _, row) in wanted {
                    assert!(merge.next().unwrap());
                    let (name, place, stars, length) = merge.row().unwrap();
                    assert_eq!((name, place), (repository.as_bytes(), path.as_bytes()));
                    assert_eq!((stars, length), (*row, text.len() as u64));
                    // Texts need not be read.
                    if row % 2 == 0 {
                        assert_eq!(merge.text().unwrap(), text.as_bytes());
                    }
                    seen += 1;
                }
                assert!(!merge.next().unwrap());
            }
            assert_eq!(seen, rows.len());
        }
    }

    #[test]
    fn a_damaged_section_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows");
        let mut spill = Spill::create(&path, 1, 1 << 20).unwrap();
        let text = "abc\n".repeat(1000);
        spill.add(FileRow { repository: "a", path: "b.py", text: &text, stars: 0 }, 0, 0).unwrap();
        let section = spill.finish().unwrap().remove(0);
        let mut bytes = std::fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let read = || {
            let mut merge = Merge::open(vec![(path.clone(), section.clone())], 8, dir.path())?;
            while merge.next()? {
                merge.text()?;
            }
            Ok::<_, Error>(())
        };
        let error = read().unwrap_err();
        assert!(error.to_string().contains("damaged"), "{error}");
    }
}
