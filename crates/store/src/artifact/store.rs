//! Reading and writing artifacts.
//!
//! A binary artifact is a line `repoformer artifact`, a line of JSON (the [`Header`]) and its concatenated columns. A JSONL
//! artifact is an ordinary file whose header is in a file next to it. Both are written to a temporary file in the same folder,
//! synced and renamed, so that a reader never sees an incomplete file.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use repoformer_text::message;
use repoformer_text::message::UserChoice;

use super::columns::{Column, Columns, IS_UNCHECKED};
use super::header::{Difference, FORMAT, Header, HeaderVersion, Identity, LineTotals, hex};
use super::payload::Payload;
use super::replace::{Replacement, replace_file, write_file};
use crate::error::{Error, Result};
use crate::files::{self, File};
use crate::jsonl::{self, LONGEST_LINE};
use crate::seal::{self, Seal, seal};

const MAGIC: &[u8] = b"repoformer artifact\n";
/// Greatest length of a header; typical headers have a few hundred bytes.
const LONGEST_HEADER: u64 = 1 << 20;

/// State of an artifact on disk compared with the one needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArtifactState {
    /// It does not exist.
    Missing,
    /// It is the artifact needed.
    Current(Box<Header>),
    /// It is out of date: it was built from other inputs, with other parameters, or by another version.
    Stale(Vec<Difference>),
    /// It cannot be read; the value is the reason.
    Damaged(String),
}

/// Returns the BLAKE3 of some bytes, in hex.
pub fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Writes an artifact; returns its header.
///
/// # Errors
/// The folder or file cannot be written; nothing is left behind.
pub fn write<T: Payload>(path: &Path, identity: &Identity, payload: &T) -> Result<Header> {
    let cannot_write = |e| Error::writing(path, "write this artifact", e);
    let columns = payload.columns().map_err(|e| cannot_write(io::Error::other(e)))?;
    let described = columns.iter().map(Column::header).collect();
    let header = Header::of_columns(identity, payload.records(), described);
    let json = seal(serde_json::to_vec(&header).map_err(|e| cannot_write(e.into()))?);
    let mut parts: Vec<&[u8]> = vec![MAGIC, &json, b"\n"];
    parts.extend(columns.iter().flat_map(|column| &column.parts).map(AsRef::as_ref));
    replace_file(path, &parts)?;
    Ok(header)
}

/// Writes a JSONL artifact from the lines that `make` passes to the sink, and its header in a file next to it, with the counts
/// that `make` returns.
///
/// # Errors
/// The same as for [`write()`], or an error of `make`; the artifact is then unchanged, or will be detected as damaged.
pub fn write_lines(
    path: &Path,
    identity: &Identity,
    make: impl FnOnce(&mut LineSink) -> Result<LineTotals>,
) -> Result<Header> {
    let mut sink = LineSink {
        path: path.to_owned(),
        file: None,
        waiting: Vec::new(),
        hasher: blake3::Hasher::new(),
        bytes: 0,
    };
    let totals = make(&mut sink)?;
    sink.flush()?; // an empty artifact is also valid
    let header = Header::of_lines(identity, totals, sink.bytes, hex(&sink.hasher));
    let json = serde_json::to_vec_pretty(&header);
    let mut json = seal(json.map_err(|e| Error::writing(path, "write this artifact", e.into()))?);
    json.push(b'\n');
    // The header is written first. Since it describes one specific text, a header next to an old text, or to none, only causes
    // that text to be rewritten. A text without a header would be mistaken for the user's own when an interrupted run resumes.
    write_file(&header_path(path), &json)?;
    sink.file.map_or(Ok(()), Replacement::finish)?;
    Ok(header)
}

/// Sink that receives the lines of a JSONL artifact and writes them to its file, so that memory holds only a few of them.
#[derive(Debug)]
pub struct LineSink {
    path: PathBuf,
    file: Option<Replacement>,
    /// Lines that are not yet written.
    waiting: Vec<u8>,
    hasher: blake3::Hasher,
    bytes: u64,
}

/// Number of bytes of lines that are hashed and written at once.
const AT_ONCE: usize = 1 << 18;

impl LineSink {
    /// Writes the next lines.
    ///
    /// # Errors
    /// The lines cannot be written.
    pub fn write(&mut self, lines: &[u8]) -> Result<()> {
        self.waiting.extend_from_slice(lines);
        if self.waiting.len() >= AT_ONCE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(Replacement::new(&self.path)?),
        };
        self.hasher.update(&self.waiting);
        self.bytes += self.waiting.len() as u64;
        file.write(&[&self.waiting])?;
        self.waiting.clear();
        Ok(())
    }
}

/// Returns the path of the header of a JSONL artifact: `x.jsonl` → `.x.header.json`. It is hidden, so that listing and globbing
/// the folder find only artifacts.
pub fn header_path(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{stem}.header.json"))
}

/// Returns the parameters recorded for a JSONL artifact, by name; empty for a file without a header.
///
/// # Errors
/// The header exists, but cannot be read or is damaged.
pub fn parameters(path: &Path) -> Result<std::collections::BTreeMap<String, String>> {
    let beside = header_path(path);
    let text = files::read_companion_if_there(&beside)
        .map_err(|e| Error::reading(&beside, "open this header", e))?;
    match text {
        Some(text) => parse_header(&beside, &text).map(|header| header.identity.parameters),
        None => Ok(Default::default()),
    }
}

/// Reads only the header of an artifact.
///
/// # Errors
/// The file cannot be opened, is not an artifact, is truncated, or has another format version.
pub fn read_header(path: &Path) -> Result<Header> {
    open(path).map(|(header, _)| header)
}

/// Returns true if a file begins like an artifact.
///
/// # Errors
/// The file cannot be read.
pub fn is_artifact(path: &Path) -> io::Result<bool> {
    let mut begin = [0; MAGIC.len()];
    match File::open_regular(path)?.read_exact(&mut begin) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| begin == MAGIC),
    }
}

/// Opens an artifact: reads its header and prepares its columns for reading.
///
/// # Errors
/// The same as for [`read_header`].
pub fn open(path: &Path) -> Result<(Header, Columns)> {
    let cannot_read = |e| Error::reading(path, "read this artifact", e);
    let file =
        File::open_regular(path).map_err(|e| Error::reading(path, "open this artifact", e))?;
    let mut reader = BufReader::new(&file);
    let mut magic = Vec::new();
    let read = reader.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic);
    read.map_err(cannot_read)?;
    if magic != MAGIC {
        return Err(Error::artifact(
            path,
            "damaged, or not an artifact of repoformer: its first line differs",
            message![
                "choose a file that a stage wrote in the ",
                UserChoice::CacheFolder,
                ", or run that stage again"
            ],
        ));
    }
    let mut json = Vec::new();
    let read = reader.take(LONGEST_HEADER).read_until(b'\n', &mut json);
    read.map_err(cannot_read)?;
    let header = parse_header(path, &json)?;
    let begin = (MAGIC.len() + json.len()) as u64;
    let length = file.metadata().map_err(cannot_read)?.len();
    let found = length.saturating_sub(begin);
    if found != header.bytes {
        let reason = format!("{found} bytes of payload instead of {}", header.bytes);
        return Err(Error::from_damage(path, reason));
    }
    let sizes = header.columns.iter().map(|column| column.bytes);
    let whole = sizes.into_iter().try_fold(0, u64::checked_add);
    let is_same = IS_UNCHECKED || Header::checksum_of(&header.columns) == header.checksum;
    if whole != Some(header.bytes) || !is_same {
        return Err(Error::from_damage(path, "its header's columns do not match"));
    }
    let columns = Columns::new(path, file, begin, header.columns.clone());
    Ok((header, columns))
}

fn parse_header(path: &Path, json: &[u8]) -> Result<Header> {
    let version: HeaderVersion = serde_json::from_slice(json)
        .map_err(|_| Error::from_damage(path, "its header is not JSON or is truncated"))?;
    if let Some(reason) = version.other_than(FORMAT) {
        let hint = message![
            "run the command that writes it again, or use another ",
            UserChoice::CacheFolder
        ];
        return Err(Error::artifact(path, reason, hint));
    }
    if seal::check(json) == Seal::Broken {
        return Err(Error::from_damage(path, "its header's checksum does not match"));
    }
    serde_json::from_slice(json).map_err(|e| Error::from_damage(path, format!("its header: {e}")))
}

/// Reads and verifies a complete artifact.
///
/// # Errors
/// The artifact is missing, damaged, of another format version, or not a `T`.
pub fn read<T: Payload>(path: &Path) -> Result<(Header, T)> {
    let (header, mut columns) = open(path)?;
    if header.identity.kind != T::KIND {
        let reason = format!("contains {}, not {}", header.identity.kind, T::KIND);
        return Err(Error::artifact(path, reason, "choose another file"));
    }
    let value = T::from_columns(&mut columns)?;
    value.check().map_err(|e| Error::from_damage(path, e))?;
    Ok((header, value))
}

/// Returns the state of the file at `path` compared with an identity. If the identity matches, the checksums are verified.
pub fn state<T: Payload>(path: &Path, identity: &Identity) -> ArtifactState {
    match open(path) {
        Ok((header, mut columns)) => {
            compare(path, identity, Ok(header), || T::check_columns(&mut columns))
        }
        Err(error) => compare(path, identity, Err(error), || Ok(())),
    }
}

/// Returns the state of a JSONL artifact compared with an identity.
pub fn state_jsonl(path: &Path, identity: &Identity) -> ArtifactState {
    compare(path, identity, jsonl_header(path), || read_jsonl_header(path).map(|_| ()))
}

/// Compares a header with an identity, and verifies the content if they agree.
fn compare(
    path: &Path,
    identity: &Identity,
    header: Result<Header>,
    verify: impl FnOnce() -> Result<()>,
) -> ArtifactState {
    let compared = header.and_then(|header| {
        if header.tool != env!("CARGO_PKG_VERSION") {
            return Ok(ArtifactState::Stale(vec![Difference::Version { was: header.tool }]));
        }
        let differences = header.identity.differences(identity);
        if !differences.is_empty() {
            return Ok(ArtifactState::Stale(differences));
        }
        verify()?;
        Ok(ArtifactState::Current(Box::new(header)))
    });
    match compared {
        Ok(state) => state,
        Err(_) if !path.exists() => ArtifactState::Missing,
        Err(Error::Artifact { reason, .. }) => ArtifactState::Damaged(reason),
        Err(error) => ArtifactState::Damaged(error.to_string()),
    }
}

/// Reads the header of a JSONL artifact and checks only the file's length; the caller leaves verification to others.
///
/// # Errors
/// The file or its header is missing, truncated, or of another format version.
pub fn jsonl_header(path: &Path) -> Result<Header> {
    let file = files::metadata(path).map_err(|e| Error::reading(path, "open this artifact", e))?;
    header_of(path, |header| file.len() == header.bytes)
}

/// Reads the header of a JSONL artifact and verifies the file's checksum.
///
/// # Errors
/// The file or its header is missing, damaged, or of another format version.
pub fn read_jsonl_header(path: &Path) -> Result<Header> {
    let cannot_read = |e| Error::reading(path, "open this artifact", e);
    let mut hasher = blake3::Hasher::new();
    let hashed = File::open_regular(path).and_then(|file| hasher.update_reader(file).map(|_| ()));
    hashed.map_err(cannot_read)?;
    header_of(path, |header| hex(&hasher) == header.checksum)
}

/// Reads a JSONL artifact and its header, and verifies the checksum.
///
/// # Errors
/// The same as for [`read_jsonl_header`].
pub fn read_jsonl(path: &Path) -> Result<(Header, Vec<u8>)> {
    let mut text = Vec::new();
    let read = File::open_regular(path).and_then(|mut file| file.read_to_end(&mut text));
    read.map_err(|e| Error::reading(path, "open this artifact", e))?;
    let header = header_of(path, |header| digest(&text) == header.checksum)?;
    Ok((header, text))
}

/// Calls `take` with the lines of a JSONL artifact, a few megabytes at a time. Only at the end is it certain that the lines
/// match `header`, so the caller must not make results permanent before that.
///
/// # Errors
/// The artifact cannot be read, is damaged, or is not the one that the header describes; or an error of `take`.
pub fn for_each_piece(
    path: &Path,
    header: &Header,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let file =
        File::open_regular(path).map_err(|e| Error::reading(path, "open this artifact", e))?;
    let mut hasher = blake3::Hasher::new();
    whole_lines(path, Box::new(BufReader::new(file)), &mut |piece| {
        hasher.update(piece);
        take(piece)
    })?;
    if hex(&hasher) == header.checksum || IS_UNCHECKED {
        Ok(())
    } else {
        Err(Error::from_damage(path, UNLIKE_HEADER))
    }
}

/// Number of bytes of complete lines that are read at once to save memory.
const PIECE: u64 = 1 << 22;

/// Calls `take` with complete lines, a few megabytes at a time.
///
/// # Errors
/// The input cannot be read, or an error of `take`.
pub fn whole_lines(
    path: &Path,
    mut input: Box<dyn BufRead>,
    take: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut piece = Vec::new();
    loop {
        piece.clear();
        let read = input.by_ref().take(PIECE).read_to_end(&mut piece);
        let read = read.and_then(|_| jsonl::read_line(&mut input, || LONGEST_LINE, &mut piece));
        read.map_err(|e| Error::reading(path, "read this file", e))?;
        if piece.is_empty() { return Ok(()) } else { take(&piece)? }
    }
}

const UNLIKE_HEADER: &str = "it does not match its header";

/// Reads the header of a JSONL artifact, which must match.
fn header_of(path: &Path, matches: impl FnOnce(&Header) -> bool) -> Result<Header> {
    let beside = header_path(path);
    let json = files::read_companion(&beside)
        .map_err(|e| Error::reading(&beside, "open this header", e))?;
    let header = parse_header(&beside, &json)?;
    if matches(&header) || IS_UNCHECKED {
        return Ok(header);
    }
    Err(Error::from_damage(path, UNLIKE_HEADER))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::artifact::{Column, Columns};

    /// Lines and the offset of the first.
    #[derive(Debug, PartialEq)]
    struct Content {
        name: String,
        begins: Vec<u32>,
        lines: Vec<String>,
    }

    impl Payload for Content {
        const KIND: &'static str = "lines";

        fn records(&self) -> usize {
            self.lines.len()
        }

        fn columns(&self) -> Result<Vec<Column<'_>>, String> {
            let about = Column::records("about", &(&self.name, &self.lines))?;
            Ok(vec![about, Column::numbers("begins", &self.begins)])
        }

        fn from_columns(columns: &mut Columns) -> Result<Self> {
            let (name, lines) = columns.records("about")?;
            Ok(Self { name, lines, begins: columns.numbers("begins")? })
        }

        fn check(&self) -> Result<(), String> {
            Ok(())
        }
    }

    fn content() -> Content {
        let lines = ["x = 1", "y = 2"].map(str::to_owned).into();
        Content { name: "r".into(), begins: vec![0, 7], lines }
    }

    fn state(path: &Path, identity: &Identity) -> ArtifactState {
        super::state::<Content>(path, identity)
    }

    fn identity(window_size: usize) -> Identity {
        let identity = Identity::new(Content::KIND);
        identity.parameter("window-size", window_size).input("repository", "d")
    }

    fn written() -> (tempfile::TempDir, PathBuf, Identity) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/w.bin");
        let identity = identity(20);
        write(&path, &identity, &content()).unwrap();
        (dir, path, identity)
    }

    #[test]
    fn what_is_written_is_read_back() {
        let (_dir, path, identity) = written();
        let (header, back) = read::<Content>(&path).unwrap();
        assert_eq!(back, content());
        assert_eq!((header.records, &header.identity), (2, &identity));
        assert!(matches!(state(&path, &identity), ArtifactState::Current(_)));
        let names: Vec<_> =
            fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["w.bin"], "nothing temporary is left");
    }

    #[test]
    fn every_damaged_byte_and_every_truncation_is_noticed() {
        let (_dir, path, identity) = written();
        let bytes = fs::read(&path).unwrap();
        let name = memchr::memmem::find(&bytes, b"\"record_checksum\"").unwrap();
        let name = name..name + "\"record_checksum\"".len();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x20;
            fs::write(&path, &changed).unwrap();
            let is_current = matches!(state(&path, &identity), ArtifactState::Current(_));
            // Without the field's name, there is no checksum; the content it covers is intact.
            assert!(!is_current || name.contains(&at), "byte {at}");
            fs::write(&path, &bytes[..at]).unwrap();
            assert!(matches!(state(&path, &identity), ArtifactState::Damaged(_)), "cut at {at}");
            assert!(read::<Content>(&path).is_err());
        }
    }

    #[test]
    fn stale_artifacts_say_why() {
        let (_dir, path, identity) = written();
        for (other, reason) in [
            (self::identity(10), "window-size was 20, is 10"),
            (identity.input("repository", "e"), "repository changed"),
        ] {
            let ArtifactState::Stale(differences) = state(&path, &other) else {
                panic!("not stale")
            };
            assert_eq!(differences.iter().map(ToString::to_string).collect::<Vec<_>>(), [reason]);
        }
    }

    #[test]
    fn another_version_is_named_with_the_way_out() {
        let (_dir, path, identity) = written();
        let bytes = fs::read(&path).unwrap();
        let ours = concat!("\"format\":2,\"tool\":\"", env!("CARGO_PKG_VERSION"), "\"");
        let text = String::from_utf8_lossy(&bytes).replace(ours, "\"format\":7,\"tool\":\"9.0.0\"");
        fs::write(&path, text.as_bytes()).unwrap();
        let error = read::<Content>(&path).unwrap_err();
        let reason = "written by repoformer 9.0.0 in format 7; this is repoformer";
        assert!(error.to_string().contains(reason), "{error}");
        assert!(error.hint().unwrap().to_string().contains("cache folder"));
        assert!(matches!(state(&path, &identity), ArtifactState::Damaged(_)));
    }

    #[test]
    fn jsonl_artifacts_have_their_header_beside_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rg1-ws-20.jsonl");
        let identity = Identity::new("prompts").input("tasks", "d");
        assert_eq!(state_jsonl(&path, &identity), ArtifactState::Missing);
        let text = b"{}\n".repeat(AT_ONCE);
        let make = |sink: &mut LineSink| {
            text.chunks(1_000).try_for_each(|part| sink.write(part))?;
            let totals = [("tokens".to_owned(), 7)].into();
            Ok(LineTotals { records: 1, totals })
        };
        let header = write_lines(&path, &identity, make).unwrap();
        assert_eq!((header.bytes, header.checksum), (text.len() as u64, digest(&text)));
        assert!(fs::read(&path).unwrap() == text);
        assert_eq!(read_jsonl_header(&path).unwrap().totals["tokens"], 7);
        assert!(matches!(state_jsonl(&path, &identity), ArtifactState::Current(_)));
        fs::write(&path, b"{}").unwrap();
        assert!(matches!(state_jsonl(&path, &identity), ArtifactState::Damaged(_)));
    }
}
