//! Repository windows on disk: which files there are and where each window lies, then the text of all files, which is
//! most of it and can be left there.

use std::sync::Arc;

use super::{RepoWindows, WindowFile, WindowShape};
use crate::error::{Error, Result};
use crate::store::artifact::{Column, Columns, Payload, Piece, PieceSource, check_offsets};
use crate::text::lines::Lines;

const ABOUT: &str = "about";
const FILES: &str = "files";
const FIRST_PLACE: &str = "first place";
const PLACES: &str = "places";
const HASHES: &str = "hashes";
const TEXT: &str = "text";

/// A file without its text: path, same_as, number of lines, bytes of the lines joined, their digest.
type FileRecord = (String, u32, u32, u32, [u8; 32]);

impl Payload for RepoWindows {
    const KIND: &'static str = "repository windows";

    fn records(&self) -> usize {
        self.len()
    }

    fn columns(&self) -> Result<Vec<Column<'_>>, String> {
        self.columns_with(|file| PieceSource::Text(self.files[file].lines.text()))
    }

    fn from_columns(columns: &mut Columns) -> Result<Self> {
        let (mut windows, texts) = Self::outline(columns)?;
        windows.read_hashes(columns)?;
        windows.read_texts(columns, &texts, None)?;
        Ok(windows)
    }

    fn check_columns(columns: &mut Columns) -> Result<()> {
        columns.check_all(Some(TEXT))?;
        let (_, texts) = Self::outline(columns)?;
        columns.check_pieces(TEXT, texts.pieces())
    }

    fn check(&self) -> Result<(), String> {
        check_offsets(&self.first_place, self.places.len() / 4)?;
        if ![0, self.len()].contains(&self.hashes.len()) {
            return Err("it has not one hash a window".into());
        }
        let is_outside = |n: &[u32]| {
            let file = n.first().and_then(|file| self.files.get(*file as usize));
            n.len() < 4
                || n[2] >= n[3]
                || file.is_none_or(|file| n[3] as usize > file.lines.count())
        };
        let without_place = self.first_place.windows(2).any(|pair| pair[0] == pair[1]);
        let files = self.files.len();
        if without_place || self.places.chunks(4).any(is_outside) {
            Err("a window lies outside its file".into())
        } else if self.files.iter().any(|file| file.same_as as usize >= files) {
            Err("a file is the same as one that is not there".into())
        } else {
            Ok(())
        }
    }
}

/// Where the text of each file begins in the column of texts, and how it is known.
#[derive(Debug)]
pub struct TextRanges(Vec<(u64, Piece)>);

impl TextRanges {
    fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.0.iter().map(|(_, piece)| *piece)
    }

    /// Where the text of a file begins.
    pub fn begin(&self, file: usize) -> u64 {
        self.0[file].0
    }
}

impl RepoWindows {
    /// All columns, where the texts of files that were left on disk are taken from elsewhere.
    ///
    /// # Errors
    /// A record cannot be encoded, in words.
    pub fn columns_with<'a>(
        &'a self,
        text: impl Fn(usize) -> PieceSource<'a>,
    ) -> Result<Vec<Column<'a>>, String> {
        let record = |file: &WindowFile| -> FileRecord {
            let (lines, bytes) = (file.lines.count() as u32, file.bytes);
            (file.path.clone(), file.same_as, lines, bytes, file.digest)
        };
        let files: Vec<FileRecord> = self.files.iter().map(record).collect();
        let pieces = self.files.iter().enumerate().map(|(number, file)| {
            let piece = Piece {
                bytes: file.bytes.into(),
                digest: file.digest,
            };
            (piece, text(number))
        });
        Ok(vec![
            Column::records(ABOUT, &(&self.repository, self.shape))?,
            Column::records(FILES, &files)?,
            Column::numbers(FIRST_PLACE, &self.first_place),
            Column::numbers(PLACES, &self.places),
            Column::numbers(HASHES, &self.hashes),
            Column::pieces(TEXT, pieces)?,
        ])
    }

    /// Reads everything but the texts, and where they are, and the hashes, which are needed to cut again.
    ///
    /// # Errors
    /// A column is missing, damaged, or cannot be read.
    pub fn outline(columns: &mut Columns) -> Result<(Self, TextRanges)> {
        let (repository, shape): (String, WindowShape) = columns.records(ABOUT)?;
        let records: Vec<FileRecord> = columns.records(FILES)?;
        let (mut files, mut ranges, mut end) = (Vec::new(), Vec::new(), 0);
        for (path, same_as, lines, bytes, digest) in records {
            let lines = Lines::unread(lines as usize);
            files.push(WindowFile {
                path,
                same_as,
                bytes,
                digest,
                lines,
            });
            let bytes = u64::from(bytes);
            ranges.push((end, Piece { bytes, digest }));
            end += bytes;
        }
        let windows = Self {
            repository,
            shape,
            files,
            first_place: columns.numbers(FIRST_PLACE)?,
            places: columns.numbers(PLACES)?,
            hashes: Vec::new(),
        };
        Ok((windows, TextRanges(ranges)))
    }

    /// Reads the hashes of the windows' texts.
    ///
    /// # Errors
    /// They are damaged or cannot be read.
    pub fn read_hashes(&mut self, columns: &mut Columns) -> Result<()> {
        let hashes: Vec<u64> = columns.numbers(HASHES)?;
        if hashes.len() != self.len() {
            return Err(columns.damaged("it has not one hash a window"));
        }
        self.hashes = hashes;
        Ok(())
    }

    /// Reads the texts of these files, or of all.
    ///
    /// # Errors
    /// The texts are damaged or cannot be read.
    pub fn read_texts(
        &mut self,
        columns: &mut Columns,
        texts: &TextRanges,
        wanted: Option<&[u32]>,
    ) -> Result<()> {
        let Some(wanted) = wanted else {
            let text = Arc::new(columns.texts(TEXT, texts.pieces())?);
            for (file, (begin, piece)) in self.files.iter_mut().zip(&texts.0) {
                let part = *begin as usize..(begin + piece.bytes) as usize;
                file.lines = joined(columns, &text, part, file)?;
            }
            return Ok(());
        };
        for &index in wanted {
            let (file, (begin, piece)) = (&mut self.files[index as usize], texts.0[index as usize]);
            if !file.lines.is_read() {
                let text = Arc::new(columns.text(TEXT, begin, piece)?);
                file.lines = joined(columns, &text, 0..text.len(), file)?;
            }
        }
        Ok(())
    }
}

fn joined(
    columns: &Columns,
    text: &Arc<String>,
    part: std::ops::Range<usize>,
    file: &WindowFile,
) -> Result<Lines, Error> {
    Lines::from_joined(text, part, file.lines.count())
        .ok_or_else(|| columns.damaged("a text has another number of lines"))
}
