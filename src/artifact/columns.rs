//! The payload of an artifact: columns of numbers, texts and records, each a run of bytes with its own checksum, so that
//! a reader takes what it needs straight into its place and leaves the rest on disk.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use super::store::damaged;
use crate::error::{Error, Result};

/// What a column of records may ask to allocate while it is decoded: a damaged length must not take the machine's
/// memory. Columns are checksummed before, so this bounds only what a crafted file can do.
const LARGEST_COLUMN: usize = 1 << 36;
/// Bytes read at a time where a column is only checked.
pub(super) const CHUNK: usize = 1 << 18;

fn encoding() -> impl bincode::config::Config {
    bincode::config::standard()
        .with_fixed_int_encoding()
        .with_limit::<LARGEST_COLUMN>()
}

/// A column as its artifact's header describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnHeader {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// BLAKE3 of its bytes, in hex.
    pub checksum: String,
}

/// A column to be written: bytes in one or several parts.
#[derive(Debug)]
pub struct Column<'a> {
    name: &'static str,
    pub(super) parts: Vec<Cow<'a, [u8]>>,
}

/// A number that a column can hold.
pub trait Number: Copy + FromBytes + FromZeros + IntoBytes + Immutable {
    /// Turned into the order of bytes on disk, or back.
    fn little_endian(self) -> Self;
}

impl Number for u16 {
    fn little_endian(self) -> Self {
        self.to_le()
    }
}

impl Number for u32 {
    fn little_endian(self) -> Self {
        self.to_le()
    }
}

impl<'a> Column<'a> {
    /// A column of numbers, the lowest byte first.
    pub fn numbers<N: Number>(name: &'static str, numbers: &'a [N]) -> Self {
        let bytes = if cfg!(target_endian = "little") {
            Cow::Borrowed(numbers.as_bytes())
        } else {
            let turned: Vec<N> = numbers.iter().map(|n| n.little_endian()).collect();
            Cow::Owned(turned.as_bytes().to_vec())
        };
        Self {
            name,
            parts: vec![bytes],
        }
    }

    /// A column of texts, one behind the other.
    pub fn texts(name: &'static str, texts: impl Iterator<Item = &'a str>) -> Self {
        let parts = texts.map(|text| Cow::Borrowed(text.as_bytes())).collect();
        Self { name, parts }
    }

    /// A column of any records.
    ///
    /// # Errors
    /// A record cannot be encoded, in words.
    pub fn records(name: &'static str, records: &impl Serialize) -> Result<Self, String> {
        let bytes = bincode::serde::encode_to_vec(records, encoding());
        let parts = vec![Cow::Owned(bytes.map_err(|e| e.to_string())?)];
        Ok(Self { name, parts })
    }

    pub(super) fn header(&self) -> ColumnHeader {
        let mut hasher = blake3::Hasher::new();
        self.parts.iter().for_each(|part| {
            hasher.update(part);
        });
        ColumnHeader {
            name: self.name.into(),
            bytes: self.parts.iter().map(|part| part.len() as u64).sum(),
            checksum: hasher.finalize().to_hex().to_string(),
        }
    }
}

/// What stands for all columns: the digest of their headers.
pub(super) fn checksum(columns: &[ColumnHeader]) -> String {
    let mut hasher = blake3::Hasher::new();
    for column in columns {
        let line = format!("{} {} {}\n", column.name, column.bytes, column.checksum);
        hasher.update(line.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// The columns of an artifact that was opened. What is read is checked; what is not stays on disk.
#[derive(Debug)]
pub struct Columns {
    path: PathBuf,
    file: File,
    /// Where in the file the first column begins.
    begin: u64,
    columns: Vec<ColumnHeader>,
}

impl Columns {
    pub(super) fn new(path: &Path, file: File, begin: u64, columns: Vec<ColumnHeader>) -> Self {
        let path = path.to_owned();
        Self {
            path,
            file,
            begin,
            columns,
        }
    }

    fn cannot_read(&self, error: std::io::Error) -> Error {
        Error::reading(&self.path, "read this artifact", error)
    }

    pub(crate) fn damaged(&self, reason: impl Into<String>) -> Error {
        damaged(&self.path, reason)
    }

    /// A column's place in the file and its header.
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

    /// Reads all columns once and checks them, keeping nothing.
    pub(super) fn check_all(&mut self) -> Result<()> {
        let mut chunk = vec![0; CHUNK];
        self.seek(self.begin)?;
        for column in &self.columns {
            let (mut hasher, mut left) = (blake3::Hasher::new(), column.bytes);
            while left > 0 {
                let length = left.min(CHUNK as u64) as usize;
                let read = (&self.file).read_exact(&mut chunk[..length]);
                read.map_err(|e| self.cannot_read(e))?;
                hasher.update(&chunk[..length]);
                left -= length as u64;
            }
            self.check(column, hasher.finalize())?;
        }
        Ok(())
    }

    fn seek(&self, place: u64) -> Result<()> {
        let sought = (&self.file).seek(SeekFrom::Start(place));
        sought.map(|_| ()).map_err(|e| self.cannot_read(e))
    }

    /// A whole column of numbers.
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
        self.seek(begin)?;
        let bytes = numbers.as_mut_bytes();
        let read = (&self.file).read_exact(bytes);
        read.map_err(|e| self.cannot_read(e))?;
        self.check(column, blake3::hash(bytes))?;
        for number in &mut numbers {
            *number = number.little_endian();
        }
        Ok(numbers)
    }

    /// A whole column of records.
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

    /// A whole column of texts, one behind the other.
    ///
    /// # Errors
    /// It is missing, damaged, or cannot be read.
    pub fn texts(&mut self, name: &str) -> Result<String> {
        let (begin, column) = self.find(name)?;
        let bytes = self.bytes(begin, column.bytes)?;
        self.check(column, blake3::hash(&bytes))?;
        self.utf8(bytes)
    }

    /// Bytes `range` of a column of texts, which the caller knows by their own digest.
    ///
    /// # Errors
    /// It is missing, shorter, holds something else, or cannot be read.
    pub fn text_with(
        &mut self,
        name: &str,
        range: std::ops::Range<u64>,
        digest: &[u8; 32],
    ) -> Result<String> {
        let (begin, column) = self.find(name)?;
        if range.end > column.bytes {
            return Err(self.damaged(format!("its column '{name}' is too short")));
        }
        let bytes = self.bytes(begin + range.start, range.end - range.start)?;
        if blake3::hash(&bytes).as_bytes() != digest {
            return Err(self.damaged("its checksum does not match"));
        }
        self.utf8(bytes)
    }

    fn bytes(&self, begin: u64, length: u64) -> Result<Vec<u8>> {
        self.seek(begin)?;
        let mut bytes = Vec::with_capacity(length as usize);
        let read = (&self.file).take(length).read_to_end(&mut bytes);
        match read {
            Ok(read) if read as u64 == length => Ok(bytes),
            Ok(_) => Err(self.damaged("it was cut off while it was read")),
            Err(error) => Err(self.cannot_read(error)),
        }
    }

    fn utf8(&self, bytes: Vec<u8>) -> Result<String> {
        String::from_utf8(bytes).map_err(|_| self.damaged("a text is not UTF-8"))
    }
}
