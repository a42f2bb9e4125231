//! Store of computed vectors: a file that is only appended to.
//!
//! The file begins with a line `repoformer vectors` and a line of JSON (format, model, numbers per vector). Records of the same
//! size follow: the BLAKE3 digest of a text, its vector as little-endian `f32`, and the first eight bytes of the BLAKE3 of
//! both. Each batch is appended and synced before the next, so that an interrupted run loses only the batches in progress.

use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use foldhash::HashMap;
use repoformer_store::artifact::{HeaderVersion, create_folder, folder_of};
use repoformer_store::error::{Error, Result};
use repoformer_store::files::{self, File, TryLockError};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde::{Deserialize, Serialize};

use super::matrix::Matrix;
use super::text::{Digest, digest, quote_start};

const MAGIC: &[u8] = b"repoformer vectors\n";
/// Maximum length of the header; headers usually have about a hundred bytes.
const LONGEST_HEADER: u64 = 1 << 16;
/// Version of the file's format.
const FORMAT: u32 = 1;
const DIGEST: usize = 32;
const CHECKSUM: usize = 8;
/// Maximum plausible size of a vector; a header with a larger size is damaged.
const LARGEST_DIM: usize = 1 << 16;

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    format: u32,
    tool: String,
    model: String,
    dim: usize,
}

/// Vectors of one model by the digest of their text. While the store is open, no other process can open it.
#[derive(Debug)]
pub struct VectorStore {
    /// Path of the store's file.
    pub path: PathBuf,
    file: File,
    /// Name of the model.
    pub model: String,
    /// Offset of the first record, and numbers per vector; `None` until there is a vector.
    shape: Option<Shape>,
    /// Record number of each text.
    records: HashMap<Digest, u64>,
    /// Number of records, including unusable ones.
    count: u64,
    notes: Vec<Error>,
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    begin: u64,
    dim: usize,
}

impl Shape {
    /// Returns the bytes per record.
    fn record(self) -> usize {
        DIGEST + 4 * self.dim + CHECKSUM
    }

    /// Returns the vector of a record.
    fn numbers(self, record: &[u8]) -> Vec<f32> {
        let (numbers, _) = record[DIGEST..][..4 * self.dim].as_chunks::<4>();
        numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }

    /// Returns the offset of a record.
    fn at(self, record: u64) -> u64 {
        self.begin + record * self.record() as u64
    }
}

/// Returns the name of the file for a model's vectors: the letters, digits, `.`, `-` and `_` of the model's name, and a digest
/// that distinguishes similar names.
///
/// ```
/// use repoformer_core::retrieve::dense::store_file_name;
/// assert!(store_file_name("BAAI/bge-m3").starts_with("BAAI-bge-m3-"));
/// assert_ne!(store_file_name("a/b"), store_file_name("a-b"));
/// ```
pub fn store_file_name(model: &str) -> String {
    let kept = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }
    };
    let name: String = model.chars().take(80).map(kept).collect();
    format!("{}-{}.vectors", name.trim_start_matches(['.', '-']), &digest(model).to_hex()[..8])
}

/// Contents of a store, for display.
#[derive(Debug)]
pub struct StoredVectors {
    /// Name of the model.
    pub model: String,
    /// Numbers per vector.
    pub dim: usize,
    /// Each intact vector with its text's digest, in the order of the file.
    pub vectors: Vec<(Digest, Vec<f32>)>,
}

/// Reads a store without opening it for writing; `None` if the file is not a store.
///
/// # Errors
/// The file cannot be read.
pub fn read_stored(path: &Path) -> Result<Option<StoredVectors>> {
    let bytes = files::read(path).map_err(|e| Error::reading(path, "read these vectors", e))?;
    let rest = bytes.strip_prefix(MAGIC);
    let parts = rest.and_then(|rest| rest.split_at_checked(memchr::memchr(b'\n', rest)? + 1));
    let header = parts.and_then(|(json, _)| serde_json::from_slice::<Header>(json).ok());
    let (Some((_, records)), Some(Header { model, dim, .. })) = (parts, header) else {
        return Ok(None);
    };
    if !(1..=LARGEST_DIM).contains(&dim) {
        return Ok(None);
    }
    let shape = Shape { begin: 0, dim };
    let of = |record: &[u8]| Some((parse(record)?, shape.numbers(record)));
    let vectors = records.chunks_exact(shape.record()).filter_map(of).collect();
    Ok(Some(StoredVectors { model, dim, vectors }))
}

impl VectorStore {
    /// Opens the vectors of a model, or creates a file for them and its folder. An incomplete end left by an interrupted run is
    /// dropped and reported in [`notes`](Self::notes).
    ///
    /// # Errors
    /// The file cannot be read and written, another process has it open, or it is not a store, belongs to another model, or has
    /// another format.
    pub fn open(path: &Path, model: &str) -> Result<Self> {
        create_folder(folder_of(path))?;
        let file = File::open_with(
            std::fs::File::options().read(true).write(true).create(true).truncate(false),
            path,
        );
        let file = file.map_err(|e| Error::writing(path, "open these vectors", e))?;
        let mut store = Self {
            path: path.to_owned(),
            file,
            model: model.into(),
            shape: None,
            records: HashMap::default(),
            count: 0,
            notes: Vec::new(),
        };
        store.lock()?;
        store.read_header()?;
        store.read_records()?;
        Ok(store)
    }

    /// Locks the file; the system releases the lock when the process ends in any way.
    fn lock(&self) -> Result<()> {
        match self.file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => Err(self.error(
                "another process is writing these vectors",
                message!["wait until it is done, or use another ", UserChoice::CacheFolder],
            )),
            // Some network file systems do not support locks.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(()),
            Err(TryLockError::Error(error)) => {
                Err(Error::writing(&self.path, "lock these vectors", error))
            }
        }
    }

    fn read_header(&mut self) -> Result<()> {
        let mut reader = BufReader::new(&self.file).take(LONGEST_HEADER);
        let (mut magic, mut json) = (Vec::new(), Vec::new());
        let read = reader.read_until(b'\n', &mut magic);
        read.and_then(|_| reader.read_until(b'\n', &mut json))
            .map_err(|e| Error::reading(&self.path, "read these vectors", e))?;
        if magic.is_empty() {
            return Ok(());
        }
        if !MAGIC.starts_with(&magic) {
            return Err(self.error(
                "is not a vector file of repoformer: its first line differs",
                "choose another file, or remove this file",
            ));
        }
        if !json.ends_with(b"\n") && (json.len() as u64) < LONGEST_HEADER - MAGIC.len() as u64 {
            self.note("its header is truncated, as after an interrupted run; the file is rebuilt");
            return self.truncate(0);
        }
        let version: HeaderVersion = serde_json::from_slice(&json).unwrap_or_default();
        let again = || {
            message![
                "remove it, or use another ",
                UserChoice::CacheFolder,
                "; its vectors are then computed again"
            ]
        };
        if let Some(reason) = version.format.and_then(|_| version.other_than(FORMAT)) {
            return Err(self.error(reason, again()));
        }
        let header: Header = serde_json::from_slice(&json)
            .map_err(|e| self.error(format!("its header is damaged: {e}"), again()))?;
        if header.model != self.model {
            let reason =
                format!("contains vectors of model '{}', not '{}'", header.model, self.model);
            return Err(self.error(reason, "use another file for each model"));
        }
        if !(1..=LARGEST_DIM).contains(&header.dim) {
            return Err(
                self.error(format!("damaged: its vectors have {} numbers", header.dim), again())
            );
        }
        let begin = (MAGIC.len() + json.len()) as u64;
        self.shape = Some(Shape { begin, dim: header.dim });
        Ok(())
    }

    /// Reads the digest of each record. An unusable record at the end of the file is cut off; elsewhere, the last record
    /// replaces it.
    fn read_records(&mut self) -> Result<()> {
        let Some(shape) = self.shape else {
            return Ok(());
        };
        let reading = |e| Error::reading(&self.path, "read these vectors", e);
        let size = self.file.metadata().map_err(reading)?.len();
        let whole = (size - shape.begin) / shape.record() as u64;
        let mut reader = BufReader::with_capacity(1 << 20, &self.file);
        reader.seek(SeekFrom::Start(shape.begin)).map_err(reading)?;
        let (mut record, mut bad) = (vec![0; shape.record()], Vec::new());
        for number in 0..whole {
            reader.read_exact(&mut record).map_err(reading)?;
            match parse(&record) {
                Some(digest) => {
                    self.records.insert(digest, number);
                }
                None => bad.push(number),
            }
        }
        self.count = whole;
        if whole > 1 && bad.len() as u64 == whole {
            return Err(self.error(
                format!("all of its {whole} vectors are damaged"),
                "remove it; its vectors are then computed again",
            ));
        }
        if shape.at(whole) != size {
            self.note("its last vector is truncated, as after an interrupted run, and was dropped");
        }
        if !bad.is_empty() {
            self.note(format!(
                "{} of its {whole} vectors were damaged and will be recomputed",
                bad.len()
            ));
        }
        self.fill(shape, bad)?;
        if shape.at(self.count) != size {
            self.truncate(shape.at(self.count))?;
        }
        Ok(())
    }

    /// Replaces unusable records with the last ones. If this is interrupted, a record exists twice, which does no harm.
    fn fill(&mut self, shape: Shape, mut bad: Vec<u64>) -> Result<()> {
        while let Some(last) = bad.last().copied() {
            self.count -= 1;
            if last == self.count {
                bad.pop();
                continue;
            }
            let mut record = vec![0; shape.record()];
            self.read_at(&mut record, shape.at(self.count))?;
            let place = bad.remove(0);
            let mut file = &self.file;
            file.seek(SeekFrom::Start(shape.at(place)))
                .and_then(|_| file.write_all(&record))
                .map_err(|e| Error::writing(&self.path, "repair these vectors", e))?;
            if let Some(digest) = parse(&record) {
                self.records.insert(digest, place);
            }
        }
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> Result<()> {
        self.file.set_len(length).map_err(|e| Error::writing(&self.path, "repair these vectors", e))
    }

    fn error(&self, reason: impl Into<String>, hint: impl Into<Message>) -> Error {
        Error::artifact(&self.path, reason, hint)
    }

    fn note(&mut self, reason: impl Into<String>) {
        let error = self.error(reason, "you need not do anything; all other vectors are used");
        self.notes.push(error);
    }

    /// Returns the damage that was found and dropped when the file was opened.
    pub fn notes(&self) -> &[Error] {
        &self.notes
    }

    /// Returns the numbers per vector; `None` until there is a vector.
    pub fn dim(&self) -> Option<usize> {
        self.shape.map(|shape| shape.dim)
    }

    /// Returns true if this text has a vector.
    pub fn contains(&self, digest: &Digest) -> bool {
        self.records.contains_key(digest)
    }

    /// Appends vectors of the same size as the stored ones, and syncs the file. A text that already has a vector is skipped,
    /// because a text has only one vector.
    ///
    /// # Errors
    /// A vector has another size or contains a number that is not finite, or the file cannot be written. The file is then
    /// unchanged.
    pub fn append(&mut self, vectors: &[(Digest, &[f32])]) -> Result<()> {
        let Some((_, first)) = vectors.first() else {
            return Ok(());
        };
        let dim = self.dim().unwrap_or(first.len());
        let wrong = |reason: String| Error::parameter("vector", reason);
        for (digest, vector) in vectors {
            if dim > LARGEST_DIM {
                return Err(wrong(format!(
                    "{digest}: it has {dim} numbers; {LARGEST_DIM} are the limit"
                )));
            }
            if vector.len() != dim || dim == 0 {
                let (path, n) = (self.path.display(), vector.len());
                return Err(wrong(format!(
                    "{digest}: it has {n} numbers, but the other vectors in {path} have {dim}"
                )));
            }
            if !vector.iter().all(|number| number.is_finite()) {
                return Err(wrong(format!("{digest}: a number in it is not finite")));
            }
        }
        let mut bytes = Vec::new();
        let shape = match self.shape {
            Some(shape) => shape,
            None => {
                let (tool, model) = (env!("CARGO_PKG_VERSION").into(), self.model.clone());
                let json = serde_json::to_vec(&Header { format: FORMAT, tool, model, dim })
                    .map_err(|e| Error::writing(&self.path, "write these vectors", e.into()))?;
                bytes = [MAGIC, &json, b"\n"].concat();
                Shape { begin: bytes.len() as u64, dim }
            }
        };
        let from = if self.shape.is_some() { shape.at(self.count) } else { 0 };
        let mut fresh: HashMap<Digest, u64> = HashMap::default();
        for (digest, vector) in vectors {
            if !self.contains(digest) && !fresh.contains_key(digest) {
                fresh.insert(*digest, self.count + fresh.len() as u64);
                push_record(&mut bytes, digest, vector);
            }
        }
        let mut file = &self.file;
        let written = file.seek(SeekFrom::Start(from)).and_then(|_| file.write_all(&bytes));
        if let Err(error) = written.and_then(|()| file.sync_data()) {
            // Half a batch is useless; opening the file again would drop it, too.
            let _ = file.set_len(from);
            return Err(Error::writing(&self.path, "write these vectors", error));
        }
        self.shape = Some(shape);
        self.count += fresh.len() as u64;
        self.records.extend(fresh);
        Ok(())
    }

    /// Returns a text's vector; `None` if it is not stored.
    ///
    /// # Errors
    /// The file cannot be read, or has changed since it was opened.
    pub fn get(&self, digest: &Digest) -> Result<Option<Vec<f32>>> {
        let (Some(shape), Some(number)) = (self.shape, self.records.get(digest)) else {
            return Ok(None);
        };
        let mut record = vec![0; shape.record()];
        self.read_at(&mut record, shape.at(*number))?;
        if parse(&record) != Some(*digest) {
            return Err(self.error("was damaged while it was open", "run this again"));
        }
        Ok(Some(shape.numbers(&record)))
    }

    /// Returns the vectors of these texts, one row each, in order. An empty text without a vector has a row of zeros.
    ///
    /// # Errors
    /// A text has no vector; otherwise as for [`get`](Self::get).
    pub fn matrix<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Result<Matrix> {
        let texts = texts.into_iter();
        let mut matrix = Matrix::with_capacity(self.dim().unwrap_or(0), texts.size_hint().0);
        let (mut missing, mut first) = (0_usize, String::new());
        for text in texts {
            match self.get(&digest(text))? {
                Some(vector) => matrix.push(&vector)?,
                None if text.is_empty() => matrix.push_zeros(),
                None => {
                    if missing == 0 {
                        first = quote_start(text);
                    }
                    missing += 1;
                }
            }
        }
        match missing {
            0 => Ok(matrix),
            n => Err(self.error(
                format!("contains no vector for {n} of the texts; the first is {first}"),
                message![
                    "compute the missing vectors: vectorize the texts with a ",
                    UserChoice::DenseVectorizer,
                    " and an ",
                    UserChoice::EmbeddingServer
                ],
            )),
        }
    }

    /// Fills a buffer from an offset of the file.
    fn read_at(&self, buffer: &mut [u8], begin: u64) -> Result<()> {
        #[cfg(unix)]
        let read = self.file.read_exact_at(buffer, begin);
        #[cfg(not(unix))]
        let read = {
            let mut file = &self.file;
            let sought = file.seek(SeekFrom::Start(begin));
            sought.and_then(|_| file.read_exact(buffer))
        };
        read.map_err(|e| Error::reading(&self.path, "read these vectors", e))
    }
}

fn push_record(bytes: &mut Vec<u8>, digest: &Digest, vector: &[f32]) {
    let begin = bytes.len();
    bytes.extend_from_slice(digest.as_bytes());
    bytes.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
    let checksum = blake3::hash(&bytes[begin..]);
    bytes.extend_from_slice(&checksum.as_bytes()[..CHECKSUM]);
}

/// Returns the digest of a record's text; `None` if the record is damaged.
fn parse(record: &[u8]) -> Option<Digest> {
    let (content, checksum) = record.split_at_checked(record.len().checked_sub(CHECKSUM)?)?;
    let digest = content.first_chunk::<DIGEST>()?;
    (blake3::hash(content).as_bytes()[..CHECKSUM] == *checksum).then(|| Digest::from_bytes(*digest))
}

#[cfg(test)]
mod tests;
