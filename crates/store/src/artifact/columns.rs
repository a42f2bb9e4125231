//! Payload of an artifact: columns of numbers, texts and records. Each column is a run of bytes with its own checksum, so that
//! a reader loads the columns it needs directly into place and leaves the rest on disk.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bytemuck::Pod;
use serde::{Serialize, de::DeserializeOwned};

use super::header::{ColumnHeader, hex};
use crate::error::{Error, Result};
use crate::files::File;

/// Greatest size of a decoded column of records. Columns are verified by their checksums first, so this only limits the memory
/// that a crafted file can allocate.
const LARGEST_COLUMN: usize = 1 << 36;
/// Whether checksums are computed but not compared: the checksums of a fuzzer's inputs never match, so the fuzzer would never
/// get past them.
pub(super) const IS_UNCHECKED: bool = cfg!(fuzzing);
/// Number of bytes read at a time if they are not kept. It is small enough for the nearer caches and for reusing memory, which
/// is cheaper than allocating more.
const CHUNK: usize = 1 << 16;

fn encoding<const LARGEST: usize>() -> impl bincode::config::Config {
    bincode::config::standard().with_fixed_int_encoding().with_limit::<LARGEST>()
}

/// Decodes records; returns them and the number of bytes used. The decoder believes a length before it compares the length with
/// the following bytes, so the limit on allocation is close to the total length.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), bincode::error::DecodeError> {
    use bincode::serde::decode_from_slice;
    match bytes.len() {
        0..=0xff_ffff => decode_from_slice(bytes, encoding::<{ 1 << 24 }>()),
        0x100_0000..=0x3fff_ffff => decode_from_slice(bytes, encoding::<{ 1 << 30 }>()),
        _ => decode_from_slice(bytes, encoding::<LARGEST_COLUMN>()),
    }
}

/// Column to be written: bytes in one or several parts.
#[derive(Debug)]
pub struct Column<'a> {
    name: &'static str,
    pub(super) parts: Vec<Cow<'a, [u8]>>,
    /// Checksum of the bytes, if it is not their digest.
    checksum: Option<String>,
}

/// Part of a column of texts, identified by its own digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Length in bytes.
    pub bytes: u64,
    /// BLAKE3 of its bytes.
    pub digest: [u8; 32],
}

/// Number that a column can hold.
pub trait Number: Pod {
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
    /// Returns a column of numbers in little-endian order.
    pub fn numbers<N: Number>(name: &'static str, numbers: &'a [N]) -> Self {
        let bytes = if cfg!(target_endian = "little") {
            Cow::Borrowed(bytemuck::cast_slice(numbers))
        } else {
            let turned: Vec<N> = numbers.iter().map(|n| n.little_endian()).collect();
            Cow::Owned(bytemuck::cast_slice(&turned).to_vec())
        };
        Self { name, parts: vec![bytes], checksum: None }
    }

    /// Returns a column of texts with their digests; its checksum is the digest of these digests.
    pub fn pieces(name: &'static str, pieces: impl Iterator<Item = (&'a str, [u8; 32])>) -> Self {
        let (mut parts, mut hasher) = (Vec::new(), blake3::Hasher::new());
        for (text, digest) in pieces {
            parts.push(Cow::Borrowed(text.as_bytes()));
            hasher.update(&digest);
        }
        Self { name, parts, checksum: Some(hex(&hasher)) }
    }

    /// Returns a column of serializable records.
    ///
    /// # Errors
    /// A record cannot be encoded; the message gives the reason.
    pub fn records(name: &'static str, records: &impl Serialize) -> Result<Self, String> {
        let bytes = bincode::serde::encode_to_vec(records, encoding::<LARGEST_COLUMN>())
            .map_err(|e| e.to_string())?;
        Ok(Self { name, parts: vec![Cow::Owned(bytes)], checksum: None })
    }

    pub(super) fn header(&self) -> ColumnHeader {
        let (mut bytes, mut hasher) = (0, blake3::Hasher::new());
        for part in &self.parts {
            bytes += part.len() as u64;
            if self.checksum.is_none() {
                hasher.update(part);
            }
        }
        ColumnHeader {
            name: self.name.into(),
            bytes,
            checksum: self.checksum.clone().unwrap_or_else(|| hex(&hasher)),
        }
    }
}

/// Columns of an opened artifact. Data is verified when it is read; the rest stays on disk.
#[derive(Debug)]
pub struct Columns {
    path: PathBuf,
    /// File, opened at the first read: a program that works on hundreds of artifacts must not keep all of them open.
    file: OnceLock<File>,
    /// Offset of the first column in the file.
    begin: u64,
    columns: Vec<ColumnHeader>,
}

impl Columns {
    pub(super) fn new(path: &Path, file: File, begin: u64, columns: Vec<ColumnHeader>) -> Self {
        let path = path.to_owned();
        Self { path, file: file.into(), begin, columns }
    }

    /// Closes the file until the next read. If the file is replaced in between, the checksums reveal it.
    pub fn close(&mut self) {
        self.file.take();
    }

    fn file(&self) -> Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = File::open_regular(&self.path).map_err(|e| self.cannot_read(e))?;
        Ok(self.file.get_or_init(|| file))
    }

    fn cannot_read(&self, error: std::io::Error) -> Error {
        Error::reading(&self.path, "read this artifact", error)
    }

    /// Returns the error for damage to this artifact.
    pub fn damage_error(&self, reason: impl Into<String>) -> Error {
        Error::from_damage(&self.path, reason)
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
        Err(self.damage_error(format!("it has no column '{name}'")))
    }

    /// Returns true if there is a column of this name.
    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    fn check(&self, column: &ColumnHeader, digest: blake3::Hash) -> Result<()> {
        let is_same = IS_UNCHECKED || digest.to_hex().as_str() == column.checksum;
        if is_same { Ok(()) } else { Err(self.mismatch()) }
    }

    fn mismatch(&self) -> Error {
        self.damage_error("its checksum does not match")
    }

    /// Reads and verifies all columns except one that the caller checks; nothing is kept.
    ///
    /// # Errors
    /// A column is damaged or cannot be read.
    pub fn check_all(&self, but: Option<&str>) -> Result<()> {
        let mut begin = self.begin;
        for column in &self.columns {
            if but != Some(column.name.as_str()) {
                self.check(column, self.digest(begin, column.bytes)?)?;
            }
            begin += column.bytes;
        }
        Ok(())
    }

    /// Reads a column of pieces and verifies each piece; nothing is kept.
    ///
    /// # Errors
    /// The column is damaged or cannot be read.
    pub fn check_pieces(&self, name: &str, pieces: impl Iterator<Item = Piece>) -> Result<()> {
        let (mut begin, column) = self.find(name)?;
        let (mut hasher, end) = (blake3::Hasher::new(), begin + column.bytes);
        for piece in pieces {
            let next = begin.checked_add(piece.bytes).filter(|next| *next <= end);
            let next = next.ok_or_else(|| self.mismatch())?;
            if self.digest(begin, piece.bytes)? != piece.digest && !IS_UNCHECKED {
                return Err(self.mismatch());
            }
            hasher.update(&piece.digest);
            begin = next;
        }
        self.check(column, hasher.finalize())
    }

    /// Computes the digest of a byte range of the file, reading one chunk at a time.
    fn digest(&self, begin: u64, bytes: u64) -> Result<blake3::Hash> {
        let mut chunk = vec![0; bytes.min(CHUNK as u64) as usize];
        let (mut hasher, mut done) = (blake3::Hasher::new(), 0);
        while done < bytes {
            let length = (bytes - done).min(CHUNK as u64) as usize;
            self.read_exact(begin + done, &mut chunk[..length])?;
            hasher.update(&chunk[..length]);
            done += length as u64;
        }
        Ok(hasher.finalize())
    }

    /// Fills a buffer from an offset of the file.
    fn read_exact(&self, begin: u64, buffer: &mut [u8]) -> Result<()> {
        #[cfg(unix)]
        let read = self.file()?.read_exact_at(buffer, begin);
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
    /// The column is missing, damaged, or cannot be read.
    pub fn numbers<N: Number>(&mut self, name: &str) -> Result<Vec<N>> {
        let (begin, column) = self.find(name)?;
        let width = size_of::<N>() as u64;
        if !column.bytes.is_multiple_of(width) {
            return Err(self.damage_error(format!("its column '{name}' ends within a number")));
        }
        let mut numbers = vec![N::zeroed(); (column.bytes / width) as usize];
        let bytes = bytemuck::cast_slice_mut(&mut numbers);
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
    /// The column is missing, damaged, or cannot be read.
    pub fn records<T: DeserializeOwned>(&mut self, name: &str) -> Result<T> {
        let (begin, column) = self.find(name)?;
        let bytes = self.bytes(begin, column.bytes)?;
        self.check(column, blake3::hash(&bytes))?;
        let (value, used) = decode(&bytes).map_err(|e| {
            self.damage_error(format!("its column '{name}' cannot be decoded: {e}"))
        })?;
        if used != bytes.len() {
            return Err(
                self.damage_error(format!("its column '{name}' is longer than its records"))
            );
        }
        Ok(value)
    }

    /// Reads a whole column of pieces of text.
    ///
    /// # Errors
    /// The column is missing, damaged, or cannot be read.
    pub fn texts(&mut self, name: &str, pieces: impl Iterator<Item = Piece>) -> Result<String> {
        let (begin, column) = self.find(name)?;
        let bytes = self.bytes(begin, column.bytes)?;
        let (mut hasher, mut left) = (blake3::Hasher::new(), &bytes[..]);
        for piece in pieces {
            let part = left.split_at_checked(piece.bytes as usize);
            let part = part.filter(|(part, _)| IS_UNCHECKED || blake3::hash(part) == piece.digest);
            let (_, rest) = part.ok_or_else(|| self.mismatch())?;
            hasher.update(&piece.digest);
            left = rest;
        }
        self.check(column, hasher.finalize())?;
        String::from_utf8(bytes).map_err(|_| self.damage_error("a text is not UTF-8"))
    }

    /// Reads one piece of a column of texts, from an offset in the column.
    ///
    /// # Errors
    /// The column is missing, damaged, or cannot be read.
    pub fn text(&mut self, name: &str, from: u64, piece: Piece) -> Result<String> {
        let (begin, column) = self.find(name)?;
        if from.checked_add(piece.bytes).is_none_or(|end| end > column.bytes) {
            return Err(self.damage_error(format!("its column '{name}' is too short")));
        }
        let bytes = self.bytes(begin + from, piece.bytes)?;
        if blake3::hash(&bytes) != piece.digest && !IS_UNCHECKED {
            return Err(self.mismatch());
        }
        String::from_utf8(bytes).map_err(|_| self.damage_error("a text is not UTF-8"))
    }

    fn bytes(&self, begin: u64, length: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length as usize];
        self.read_exact(begin, &mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by the fuzzer: eight gigabytes were allocated for a text of eight bytes.
    #[test]
    fn lengths_beyond_the_column_are_not_believed() {
        let error = decode::<String>(&(1u64 << 33).to_le_bytes()).unwrap_err();
        assert!(matches!(error, bincode::error::DecodeError::LimitExceeded), "{error}");
        let text = "x".repeat(1 << 20);
        let bytes = bincode::serde::encode_to_vec(&text, encoding::<LARGEST_COLUMN>()).unwrap();
        assert_eq!(decode::<String>(&bytes).unwrap(), (text, bytes.len()));
    }
}
