//! The payload of an artifact: columns of numbers, texts and records, each a run of bytes with its own checksum, so that
//! a reader loads what it needs directly into place and leaves the rest on disk.

use std::borrow::Cow;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Serialize, de::DeserializeOwned};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use super::header::{ColumnHeader, hex};
use crate::error::{Error, Result};

/// Limit of a column of records when it is decoded. Columns are checksummed before, so this only bounds what a crafted file
/// can allocate.
const LARGEST_COLUMN: usize = 1 << 36;
/// Bytes read at a time if they are not kept: few enough to stay in the nearer caches and in memory used before, which is
/// cheaper than allocating more.
const CHUNK: usize = 1 << 16;

fn encoding() -> impl bincode::config::Config {
    bincode::config::standard()
        .with_fixed_int_encoding()
        .with_limit::<LARGEST_COLUMN>()
}

/// A column to be written: bytes in one or several parts.
#[derive(Debug)]
pub struct Column<'a> {
    name: &'static str,
    pub(super) parts: Vec<Part<'a>>,
    /// Checksum of the bytes, if it is not their own digest.
    checksum: Option<String>,
}

/// Bytes of a column to be written.
#[derive(Debug)]
pub(super) enum Part<'a> {
    Bytes(Cow<'a, [u8]>),
    /// A piece of another artifact's column, from this byte of its file on.
    Kept(&'a Columns, u64, Piece),
}

/// A part of a column with its own digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Its length.
    pub bytes: u64,
    /// BLAKE3 of its bytes.
    pub digest: [u8; 32],
}

/// A piece to be written.
#[derive(Debug)]
pub enum PieceSource<'a> {
    /// It is here.
    Text(&'a str),
    /// It is that of an artifact, from this byte of its column on.
    Kept(&'a Columns, u64),
}

/// A number that a column can hold.
pub trait Number: Copy + FromBytes + FromZeros + IntoBytes + Immutable {
    /// Converts to the byte order on disk, or back.
    fn little_endian(self) -> Self;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Number for $number {
            fn little_endian(self) -> Self {
                self.to_le()
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64);

impl Number for f32 {
    fn little_endian(self) -> Self {
        Self::from_bits(self.to_bits().to_le())
    }
}

impl<'a> Column<'a> {
    /// A column of numbers in little-endian order.
    pub fn numbers<N: Number + 'a>(name: &'static str, numbers: &'a [N]) -> Self {
        Self::runs(name, [numbers])
    }

    /// A column of numbers that are not stored elsewhere.
    pub fn owned<N: Number>(name: &'static str, numbers: Vec<N>) -> Self {
        let turned: Vec<N> = numbers.into_iter().map(N::little_endian).collect();
        Self {
            name,
            parts: vec![Part::Bytes(Cow::Owned(turned.as_bytes().to_vec()))],
            checksum: None,
        }
    }

    /// A column of several runs of numbers, concatenated.
    pub fn runs<N: Number + 'a>(
        name: &'static str,
        runs: impl IntoIterator<Item = &'a [N]>,
    ) -> Self {
        let bytes = |run: &'a [N]| {
            if cfg!(target_endian = "little") {
                return Part::Bytes(Cow::Borrowed(run.as_bytes()));
            }
            let turned: Vec<N> = run.iter().map(|n| n.little_endian()).collect();
            Part::Bytes(Cow::Owned(turned.as_bytes().to_vec()))
        };
        Self {
            name,
            parts: runs.into_iter().map(bytes).collect(),
            checksum: None,
        }
    }

    /// A column of concatenated pieces; its checksum is the digest of their digests.
    ///
    /// # Errors
    /// The artifact that a piece is to be taken from has no such column.
    pub fn pieces(
        name: &'static str,
        pieces: impl Iterator<Item = (Piece, PieceSource<'a>)>,
    ) -> Result<Self, String> {
        let (mut parts, mut hasher) = (Vec::new(), blake3::Hasher::new());
        for (piece, source) in pieces {
            hasher.update(&piece.digest);
            parts.push(match source {
                PieceSource::Text(text) => Part::Bytes(Cow::Borrowed(text.as_bytes())),
                PieceSource::Kept(columns, begin) => {
                    let (column, _) = columns.find(name).map_err(|e| e.to_string())?;
                    Part::Kept(columns, column + begin, piece)
                }
            });
        }
        let checksum = Some(hex(&hasher));
        Ok(Self {
            name,
            parts,
            checksum,
        })
    }

    /// A column of serializable records.
    ///
    /// # Errors
    /// A record cannot be encoded; the message says why.
    pub fn records(name: &'static str, records: &impl Serialize) -> Result<Self, String> {
        let bytes =
            bincode::serde::encode_to_vec(records, encoding()).map_err(|e| e.to_string())?;
        Ok(Self {
            name,
            parts: vec![Part::Bytes(Cow::Owned(bytes))],
            checksum: None,
        })
    }

    pub(super) fn header(&self) -> ColumnHeader {
        let (mut bytes, mut hasher) = (0, blake3::Hasher::new());
        for part in &self.parts {
            match part {
                Part::Bytes(part) => {
                    bytes += part.len() as u64;
                    if self.checksum.is_none() {
                        hasher.update(part);
                    }
                }
                Part::Kept(_, _, piece) => bytes += piece.bytes,
            }
        }
        let own = || hex(&hasher);
        ColumnHeader {
            name: self.name.into(),
            bytes,
            checksum: self.checksum.clone().unwrap_or_else(own),
        }
    }
}

/// The columns of an opened artifact. What is read is verified; the rest stays on disk.
#[derive(Debug)]
pub struct Columns {
    path: PathBuf,
    /// Opened at the first read: a program that works on hundreds of artifacts must not keep all of them open.
    file: OnceLock<File>,
    /// Offset of the first column in the file.
    begin: u64,
    columns: Vec<ColumnHeader>,
}

impl Columns {
    pub(super) fn new(path: &Path, file: File, begin: u64, columns: Vec<ColumnHeader>) -> Self {
        let path = path.to_owned();
        Self {
            path,
            file: file.into(),
            begin,
            columns,
        }
    }

    /// Closes the file until the next read. A file replaced in between is detected by its checksums.
    pub fn close(&mut self) {
        self.file.take();
    }

    fn file(&self) -> Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = File::open(&self.path).map_err(|e| self.cannot_read(e))?;
        Ok(self.file.get_or_init(|| file))
    }

    fn cannot_read(&self, error: std::io::Error) -> Error {
        Error::reading(&self.path, "read this artifact", error)
    }

    pub(crate) fn damaged(&self, reason: impl Into<String>) -> Error {
        Error::damaged(&self.path, reason)
    }

    /// Returns a column's offset in the file and its header.
    fn find(&self, name: &str) -> Result<(u64, &ColumnHeader)> {
        let mut begin = self.begin;
        for column in &self.columns {
            if column.name == name {
                return Ok((begin, column));
            }
            begin += column.bytes;
        }
        Err(self.damaged(format!("it has no column '{name}'")))
    }

    /// Whether there is a column of this name.
    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    fn check(&self, column: &ColumnHeader, digest: blake3::Hash) -> Result<()> {
        if digest.to_hex().as_str() == column.checksum {
            return Ok(());
        }
        Err(self.damaged("its checksum does not match"))
    }

    /// Reads and verifies all columns except `but`, which the caller verifies; nothing is kept.
    ///
    /// # Errors
    /// One is damaged or cannot be read.
    pub fn check_all(&self, but: Option<&str>) -> Result<()> {
        let mut begin = self.begin;
        for column in &self.columns {
            if but != Some(column.name.as_str()) {
                self.check(column, self.stream(begin, column.bytes, &mut |_| Ok(()))?)?;
            }
            begin += column.bytes;
        }
        Ok(())
    }

    /// Reads and verifies a column of pieces; nothing is kept.
    ///
    /// # Errors
    /// It is damaged or cannot be read.
    pub fn check_pieces(&self, name: &str, pieces: impl Iterator<Item = Piece>) -> Result<()> {
        let (mut begin, column) = self.find(name)?;
        let (mut hasher, end) = (blake3::Hasher::new(), begin + column.bytes);
        for piece in pieces {
            if begin + piece.bytes > end {
                return Err(self.damaged(format!("its column '{name}' is too short")));
            }
            self.copy(begin, piece, &mut |_| Ok(()))?;
            hasher.update(&piece.digest);
            begin += piece.bytes;
        }
        self.check(column, hasher.finalize())
    }

    /// Passes a piece to `sink` and verifies it at the end.
    pub(super) fn copy(
        &self,
        begin: u64,
        piece: Piece,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        if self.stream(begin, piece.bytes, sink)? == piece.digest {
            return Ok(());
        }
        Err(self.damaged("its checksum does not match"))
    }

    /// Passes bytes of the file to `sink`, a chunk at a time; returns their digest.
    fn stream(
        &self,
        begin: u64,
        bytes: u64,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<blake3::Hash> {
        let mut chunk = vec![0; bytes.min(CHUNK as u64) as usize];
        let (mut hasher, mut done) = (blake3::Hasher::new(), 0);
        while done < bytes {
            let length = (bytes - done).min(CHUNK as u64) as usize;
            self.read_exact(begin + done, &mut chunk[..length])?;
            hasher.update(&chunk[..length]);
            sink(&chunk[..length])?;
            done += length as u64;
        }
        Ok(hasher.finalize())
    }

    /// Fills a buffer from an offset of the file.
    fn read_exact(&self, begin: u64, buffer: &mut [u8]) -> Result<()> {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_exact_at(self.file()?, buffer, begin);
        #[cfg(not(unix))]
        let read = {
            use std::io::{Read, Seek, SeekFrom};
            let mut file = self.file()?;
            let sought = file.seek(SeekFrom::Start(begin));
            sought.and_then(|_| file.read_exact(buffer))
        };
        read.map_err(|e| self.cannot_read(e))
    }

    /// Reads a whole column of numbers.
    ///
    /// # Errors
    /// It is missing, damaged, or cannot be read.
    pub fn numbers<N: Number>(&mut self, name: &str) -> Result<Vec<N>> {
        let (begin, column) = self.find(name)?;
        let width = size_of::<N>() as u64;
        if !column.bytes.is_multiple_of(width) {
            return Err(self.damaged(format!("its column '{name}' ends within a number")));
        }
        let mut numbers = vec![N::new_zeroed(); (column.bytes / width) as usize];
        let bytes = numbers.as_mut_bytes();
        self.read_exact(begin, bytes)?;
        self.check(column, blake3::hash(bytes))?;
        for number in &mut numbers {
            *number = number.little_endian();
        }
        Ok(numbers)
    }

    /// Reads a whole column of records.
    ///
    /// # Errors
    /// It is missing, damaged, or cannot be read.
    pub fn records<T: DeserializeOwned>(&mut self, name: &str) -> Result<T> {
        let (begin, column) = self.find(name)?;
        let bytes = self.bytes(begin, column.bytes)?;
        self.check(column, blake3::hash(&bytes))?;
        let (value, used) = bincode::serde::decode_from_slice(&bytes, encoding())
            .map_err(|e| self.damaged(format!("its column '{name}' cannot be decoded: {e}")))?;
        if used != bytes.len() {
            return Err(self.damaged(format!("its column '{name}' is longer than its records")));
        }
        Ok(value)
    }

    /// Reads a whole column of text pieces.
    ///
    /// # Errors
    /// It is missing, damaged, or cannot be read.
    pub fn texts(&mut self, name: &str, pieces: impl Iterator<Item = Piece>) -> Result<String> {
        let (begin, column) = self.find(name)?;
        let bytes = self.bytes(begin, column.bytes)?;
        let (mut hasher, mut left) = (blake3::Hasher::new(), &bytes[..]);
        for piece in pieces {
            let (part, rest) = left
                .split_at_checked(piece.bytes as usize)
                .ok_or_else(|| self.damaged(format!("its column '{name}' is too short")))?;
            if blake3::hash(part) != piece.digest {
                return Err(self.damaged("its checksum does not match"));
            }
            hasher.update(&piece.digest);
            left = rest;
        }
        self.check(column, hasher.finalize())?;
        self.utf8(bytes)
    }

    /// Reads one piece of a column of texts, from an offset in the column.
    ///
    /// # Errors
    /// It is missing, damaged, or cannot be read.
    pub fn text(&mut self, name: &str, from: u64, piece: Piece) -> Result<String> {
        let (begin, column) = self.find(name)?;
        if from + piece.bytes > column.bytes {
            return Err(self.damaged(format!("its column '{name}' is too short")));
        }
        let bytes = self.bytes(begin + from, piece.bytes)?;
        if blake3::hash(&bytes) != piece.digest {
            return Err(self.damaged("its checksum does not match"));
        }
        self.utf8(bytes)
    }

    fn bytes(&self, begin: u64, length: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length as usize];
        self.read_exact(begin, &mut bytes)?;
        Ok(bytes)
    }

    fn utf8(&self, bytes: Vec<u8>) -> Result<String> {
        String::from_utf8(bytes).map_err(|_| self.damaged("a text is not UTF-8"))
    }
}
