//! Reading and writing artifacts. The only place that knows how a payload is encoded.
//!
//! A binary artifact is a line `repoformer artifact`, a line of JSON (the [`Header`]) and the payload
//! (bincode). A JSONL artifact is an ordinary file with its header in a file beside it. Both are written to a
//! temporary file in the same folder, synced and renamed, so that a reader never sees half of one.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use super::Payload;
use super::header::{FORMAT, Header, Identity, JsonLines};
use crate::error::{Error, Result};

const MAGIC: &[u8] = b"repoformer artifact\n";
/// A header is a few hundred bytes; whatever is longer is none.
const LONGEST_HEADER: u64 = 1 << 20;
/// What a payload may ask to allocate while it is decoded: a damaged length must not take the machine's memory.
/// Payloads are checksummed before, so this bounds only what a crafted file can do.
const LARGEST_PAYLOAD: usize = 1 << 36;

fn encoding() -> impl bincode::config::Config {
    bincode::config::standard()
        .with_fixed_int_encoding()
        .with_limit::<LARGEST_PAYLOAD>()
}

/// How an artifact on disk relates to the one that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Missing,
    /// It is the one.
    Current(Box<Header>),
    /// It was made from something else, or by another version; the reason.
    Stale(String),
    /// It cannot be read; the reason.
    Damaged(String),
}

/// BLAKE3 of some bytes, in hex.
pub fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Writes an artifact; returns its header.
///
/// # Errors
/// The folder or file cannot be written; nothing is left behind then.
pub fn write<T: Payload>(path: &Path, identity: &Identity, payload: &T) -> Result<Header> {
    let encoded = bincode::serde::encode_to_vec(payload, encoding()).map_err(|e| {
        Error::writing(
            path,
            "write this artifact",
            std::io::Error::other(e.to_string()),
        )
    })?;
    let header = Header::new(identity, payload.records(), &encoded);
    let json = serde_json::to_vec(&header)
        .map_err(|e| Error::writing(path, "write this artifact", e.into()))?;
    write_parts(path, &[MAGIC, &json, b"\n", &encoded])?;
    Ok(header)
}

/// Writes a JSONL artifact and, beside it, its header.
///
/// # Errors
/// As [`write()`].
pub fn write_jsonl(path: &Path, identity: &Identity, lines: &JsonLines) -> Result<Header> {
    let mut header = Header::new(identity, lines.records, &lines.text);
    header.totals.clone_from(&lines.totals);
    let mut json = serde_json::to_vec_pretty(&header)
        .map_err(|e| Error::writing(path, "write this artifact", e.into()))?;
    json.push(b'\n');
    // The header goes first: it speaks of one text alone, so that beside an old one or none it only has it made again.
    // A text without header would be taken for somebody's own when an interrupted run is taken up again.
    write_file(&header_path(path), &json)?;
    write_file(path, &lines.text)?;
    Ok(header)
}

/// Writes a file whole or not at all, creating its folder.
///
/// # Errors
/// The folder or file cannot be written; nothing is left behind then.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    write_parts(path, &[bytes])
}

fn write_parts(path: &Path, parts: &[&[u8]]) -> Result<()> {
    // A link is written through; renaming over it would put a file in its place.
    let target = fs::canonicalize(path).ok().filter(|_| path.is_symlink());
    let path = target.as_deref().unwrap_or(path);
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder)
        .map_err(|e| Error::writing(folder, "create this folder to write into it", e))?;
    // A device or pipe (`/dev/full`, `/dev/stdout`) can only be written through.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        let mut file = File::options()
            .write(true)
            .open(path)
            .map_err(|e| Error::writing(path, "write this file", e))?;
        return write_all(&mut file, parts).map_err(|e| Error::writing(path, "write this file", e));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".writing-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut temporary = builder
        .tempfile_in(folder)
        .map_err(|e| Error::writing(folder, "write into this folder", e))?;
    write_all(temporary.as_file_mut(), parts)
        .and_then(|()| temporary.as_file().sync_all())
        .map_err(|e| Error::writing(path, "write this file", e))?;
    temporary
        .persist(path)
        .map_err(|e| Error::writing(path, "write this file", e.error))?;
    Ok(())
}

fn write_all(file: &mut File, parts: &[&[u8]]) -> std::io::Result<()> {
    parts.iter().try_for_each(|part| file.write_all(part))
}

/// Where the header of an artifact without one of its own lies: `x.jsonl` → `.x.header.json`, hidden, so that a folder
/// lists and globs as its artifacts alone.
pub fn header_path(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{stem}.header.json"))
}

fn damaged(path: &Path, reason: impl Into<String>) -> Error {
    let hint = "run the command that makes it again; it is rebuilt".into();
    Error::Artifact {
        path: path.to_owned(),
        reason: format!("damaged: {}", reason.into()),
        hint,
    }
}

/// Reads an artifact's header alone.
///
/// # Errors
/// It cannot be opened, is no artifact, or is of another format version.
pub fn read_header(path: &Path) -> Result<Header> {
    open(path).map(|(header, _)| header)
}

fn open(path: &Path) -> Result<(Header, BufReader<File>)> {
    let file = File::open(path).map_err(|e| Error::reading(path, "open this artifact", e))?;
    let mut reader = BufReader::new(file);
    let mut magic = Vec::new();
    let cannot_read = |e| Error::reading(path, "read this artifact", e);
    reader
        .by_ref()
        .take(MAGIC.len() as u64)
        .read_to_end(&mut magic)
        .map_err(cannot_read)?;
    if magic != MAGIC {
        let hint = "name a file that a stage wrote below the cache folder, or run that stage again";
        return Err(Error::Artifact {
            path: path.to_owned(),
            reason: "damaged, or no artifact: it does not begin as one of repoformer's does".into(),
            hint: hint.into(),
        });
    }
    let mut json = Vec::new();
    reader
        .by_ref()
        .take(LONGEST_HEADER)
        .read_until(b'\n', &mut json)
        .map_err(cannot_read)?;
    Ok((parse_header(path, &json)?, reader))
}

fn parse_header(path: &Path, json: &[u8]) -> Result<Header> {
    // The version is looked at alone first: a later format may hold other fields.
    let value: serde_json::Value = serde_json::from_slice(json)
        .map_err(|_| damaged(path, "its header is no JSON or cut off"))?;
    if value["format"].as_u64() != Some(u64::from(FORMAT)) {
        let reason = format!(
            "written by repoformer {} in format {}; this is repoformer {} with format {FORMAT}",
            value["tool"].as_str().unwrap_or("?"),
            value["format"],
            env!("CARGO_PKG_VERSION"),
        );
        let hint = "run the command that makes it again, or use another --cache-dir".into();
        return Err(Error::Artifact {
            path: path.to_owned(),
            reason,
            hint,
        });
    }
    serde_json::from_value(value).map_err(|e| damaged(path, format!("its header: {e}")))
}

fn read_payload(path: &Path) -> Result<(Header, Vec<u8>)> {
    let (header, mut reader) = open(path)?;
    let mut payload = Vec::with_capacity(header.bytes.min(1 << 32) as usize);
    reader
        .read_to_end(&mut payload)
        .map_err(|e| Error::reading(path, "read this artifact", e))?;
    if payload.len() as u64 != header.bytes {
        return Err(damaged(
            path,
            format!(
                "{} bytes of payload where {} were written",
                payload.len(),
                header.bytes
            ),
        ));
    }
    if digest(&payload) != header.checksum {
        return Err(damaged(path, "its checksum does not match"));
    }
    Ok((header, payload))
}

/// Reads an artifact whole and checks it.
///
/// # Errors
/// It is missing, damaged, of another format version, or holds something else than a `T`.
pub fn read<T: Payload>(path: &Path) -> Result<(Header, T)> {
    let (header, payload) = read_payload(path)?;
    if header.identity.kind != T::KIND {
        let reason = format!(
            "holds {}, where {} are wanted",
            header.identity.kind,
            T::KIND
        );
        return Err(Error::Artifact {
            path: path.to_owned(),
            reason,
            hint: "name another file".into(),
        });
    }
    let (value, used): (T, usize) = bincode::serde::decode_from_slice(&payload, encoding())
        .map_err(|e| damaged(path, format!("its payload cannot be decoded: {e}")))?;
    if used != payload.len() {
        return Err(damaged(path, "its payload is longer than its records"));
    }
    value.check().map_err(|e| damaged(path, e))?;
    Ok((header, value))
}

/// How the file at `path` relates to the artifact with this identity; its checksum is verified.
pub fn state(path: &Path, identity: &Identity) -> State {
    compare(path, identity, read_payload(path).map(|(header, _)| header))
}

/// The same for a JSONL artifact.
pub fn state_jsonl(path: &Path, identity: &Identity) -> State {
    compare(path, identity, read_jsonl_header(path))
}

fn compare(path: &Path, identity: &Identity, header: Result<Header>) -> State {
    match header {
        Ok(header) if header.tool != env!("CARGO_PKG_VERSION") => {
            State::Stale(format!("it was written by repoformer {}", header.tool))
        }
        Ok(header) => match header.identity.difference(identity) {
            None => State::Current(Box::new(header)),
            Some(difference) => State::Stale(difference),
        },
        Err(_) if !path.exists() => State::Missing,
        Err(Error::Artifact { reason, .. }) => State::Damaged(reason),
        Err(error) => State::Damaged(error.to_string()),
    }
}

/// Reads the header beside a JSONL artifact and checks that the file is the one it speaks of.
///
/// # Errors
/// Either is missing, damaged, or of another format version.
pub fn read_jsonl_header(path: &Path) -> Result<Header> {
    let beside = header_path(path);
    let text = fs::read(path).map_err(|e| Error::reading(path, "open this artifact", e))?;
    let json = fs::read(&beside).map_err(|e| Error::reading(&beside, "open this header", e))?;
    let header = parse_header(&beside, &json)?;
    if digest(&text) != header.checksum {
        return Err(damaged(
            path,
            "it is not the file that its header speaks of",
        ));
    }
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::{Repository, SourceFile};
    use crate::window::{RepoWindows, WindowShape};

    fn windows() -> RepoWindows {
        let file = |name: &str, text: &str| SourceFile {
            path: format!("r/{name}"),
            text: text.into(),
            same_as: 0,
        };
        let files = vec![
            file("a.py", "x = 1\n\ny = 2\n"),
            file("b.py", "\n"),
            file("c.py", ""),
        ];
        RepoWindows::cut(
            Repository {
                name: "r".into(),
                files,
            },
            WindowShape::default(),
        )
    }

    fn written() -> (tempfile::TempDir, PathBuf, Identity) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/w.bin");
        let identity = Identity::new(RepoWindows::KIND)
            .parameter("window-size", 20)
            .input("repository", "d");
        write(&path, &identity, &windows()).unwrap();
        (dir, path, identity)
    }

    #[test]
    fn what_is_written_is_read_back() {
        let (_dir, path, identity) = written();
        let (header, back) = read::<RepoWindows>(&path).unwrap();
        assert_eq!(back, windows());
        assert_eq!((header.records, &header.identity), (2, &identity));
        assert!(matches!(state(&path, &identity), State::Current(_)));
        let names: Vec<_> = fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(names, ["w.bin"], "nothing temporary is left");
    }

    #[test]
    fn every_damaged_byte_and_every_truncation_is_noticed() {
        let (_dir, path, identity) = written();
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x20;
            fs::write(&path, &changed).unwrap();
            assert!(
                !matches!(state(&path, &identity), State::Current(_))
                    || changed_only_spelling(&changed, &bytes),
                "byte {at}"
            );
            fs::write(&path, &bytes[..at]).unwrap();
            assert!(
                matches!(state(&path, &identity), State::Damaged(_)),
                "cut at {at}"
            );
            assert!(read::<RepoWindows>(&path).is_err());
        }
    }

    /// The record count and the case of a hex digit's letter are the only bytes of the header that decide nothing.
    fn changed_only_spelling(changed: &[u8], bytes: &[u8]) -> bool {
        let header = |bytes: &[u8]| {
            let json = bytes[MAGIC.len()..]
                .split(|b| *b == b'\n')
                .next()
                .unwrap()
                .to_vec();
            let mut header: Header = serde_json::from_slice(&json).unwrap();
            header.records = 0;
            header
        };
        header(changed) == header(bytes)
    }

    #[test]
    fn stale_artifacts_say_why() {
        let (_dir, path, identity) = written();
        let other = Identity::new(RepoWindows::KIND)
            .parameter("window-size", 10)
            .input("repository", "d");
        assert_eq!(
            state(&path, &other),
            State::Stale("window-size was 20, is 10".into())
        );
        assert_eq!(
            state(&path, &identity.input("repository", "e")),
            State::Stale("repository changed".into())
        );
    }

    #[test]
    fn another_version_is_named_with_the_way_out() {
        let (_dir, path, identity) = written();
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes).replace(
            &format!("\"format\":{FORMAT},\"tool\":\"0.1.0\""),
            "\"format\":7,\"tool\":\"9.0.0\"",
        );
        fs::write(&path, text.as_bytes()).unwrap();
        let error = read::<RepoWindows>(&path).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("written by repoformer 9.0.0 in format 7; this is repoformer"),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("--cache-dir"));
        assert!(matches!(state(&path, &identity), State::Damaged(_)));
    }

    #[test]
    fn jsonl_artifacts_have_their_header_beside_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rg1-ws-20.jsonl");
        let identity = Identity::new("prompts").input("tasks", "d");
        assert_eq!(state_jsonl(&path, &identity), State::Missing);
        let lines = JsonLines {
            text: b"{}\n".to_vec(),
            records: 1,
            totals: [("tokens".to_owned(), 7)].into(),
        };
        write_jsonl(&path, &identity, &lines).unwrap();
        assert_eq!(read_jsonl_header(&path).unwrap().totals["tokens"], 7);
        assert!(matches!(state_jsonl(&path, &identity), State::Current(_)));
        fs::write(&path, b"{}").unwrap();
        assert!(matches!(state_jsonl(&path, &identity), State::Damaged(_)));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_written_through_and_folders_are_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (file, folder) = (dir.path().join("file"), dir.path().join("folder"));
        fs::write(&file, b"old").unwrap();
        fs::create_dir(&folder).unwrap();
        for (link, to) in [("to-file", &file), ("to-folder", &folder)] {
            std::os::unix::fs::symlink(to, dir.path().join(link)).unwrap();
        }
        write_file(&dir.path().join("to-file"), b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(dir.path().join("to-file").is_symlink());
        for path in ["to-folder", "folder"] {
            assert!(write_file(&dir.path().join(path), b"x").is_err());
        }
        assert!(folder.is_dir() && dir.path().join("to-folder").is_symlink());
    }

    #[test]
    fn a_folder_that_cannot_be_written_names_itself_and_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, b"").unwrap();
        let error = write_file(&file.join("sub/x.bin"), b"x").unwrap_err();
        assert!(
            error.to_string().contains("cannot create this folder"),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("--cache-dir"));
    }
}
