//! Chunks on disk: which files there are and where each chunk lies, then the text of all files.

use super::{Chunk, ChunkFile, ChunkShape, RepoChunks};
use crate::error::Result;
use crate::store::artifact::{Column, Columns, Payload, check_offsets};
use crate::text::language::Language;

const ABOUT: &str = "about";
const FILES: &str = "files";
const FIRST: &str = "first chunk";
const CHUNKS: &str = "chunks";
const TEXT: &str = "text";

/// A file without its text: path, same_as, bytes of its lines joined.
type FileRecord = (String, u32, u32);

impl Payload for RepoChunks {
    const KIND: &'static str = "repository chunks";

    fn records(&self) -> usize {
        self.len()
    }

    fn columns(&self) -> Result<Vec<Column<'_>>, String> {
        let record = |file: &ChunkFile| -> FileRecord {
            (file.path.clone(), file.same_as, file.text.len() as u32)
        };
        let files: Vec<FileRecord> = self.files.iter().map(record).collect();
        let numbers = |chunk: &Chunk| [chunk.file, chunk.number, chunk.start, chunk.end];
        let chunks: Vec<u32> = self.chunks.iter().flat_map(numbers).collect();
        let texts = self.files.iter().map(|file| file.text.as_bytes());
        Ok(vec![
            Column::records(ABOUT, &(&self.repository, self.language, self.shape))?,
            Column::records(FILES, &files)?,
            Column::numbers(FIRST, &self.first),
            Column::owned(CHUNKS, chunks),
            Column::runs(TEXT, texts),
        ])
    }

    fn from_columns(columns: &mut Columns) -> Result<Self> {
        let (repository, language, shape): (String, Language, ChunkShape) =
            columns.records(ABOUT)?;
        let records: Vec<FileRecord> = columns.records(FILES)?;
        let first = columns.numbers(FIRST)?;
        let numbers: Vec<u32> = columns.numbers(CHUNKS)?;
        let text: Vec<u8> = columns.numbers(TEXT)?;
        let text =
            String::from_utf8(text).map_err(|_| columns.damaged("its texts are no UTF-8"))?;
        let (mut files, mut begin) = (Vec::with_capacity(records.len()), 0_usize);
        for (path, same_as, bytes) in records {
            let end = begin + bytes as usize;
            let lines = text.get(begin..end);
            let lines = lines.ok_or_else(|| columns.damaged("a file's text is not there"))?;
            files.push(ChunkFile::joined(path, same_as, lines.to_owned()));
            begin = end;
        }
        let chunk = |n: &[u32]| Chunk {
            file: n[0],
            number: n[1],
            start: n[2],
            end: n[3],
        };
        Ok(Self {
            repository,
            language,
            shape,
            files,
            chunks: numbers.chunks_exact(4).map(chunk).collect(),
            first,
        })
    }

    fn check(&self) -> Result<(), String> {
        check_offsets(&self.first, self.chunks.len())?;
        if self.first.len() != self.files.len() + 1 {
            return Err("it has not one run of chunks a file".into());
        }
        let files = self.files.len();
        if self.files.iter().any(|file| file.same_as as usize >= files) {
            return Err("a file is the same as one that is not there".into());
        }
        let is_outside = |(index, chunk): (u32, &Chunk)| {
            let file = self.files.get(chunk.file as usize);
            file.is_none_or(|file| chunk.end as usize > file.count())
                || chunk.start >= chunk.end
                || self.numbered(chunk.file, chunk.number) != Some(index)
        };
        if (0..).zip(&self.chunks).any(is_outside) {
            return Err("a chunk lies outside its file".into());
        }
        Ok(())
    }
}
