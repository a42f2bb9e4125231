//! Notes: what lies beside the artifacts to save a later run work, and nothing else depends on.
//!
//! A note depends on the machine and on what ran before, so it lies in a hidden folder of its own that may be deleted at
//! any time. One that is missing, damaged or of another version is as good as none, and one that cannot be written costs
//! time alone: neither is an error.

use std::path::Path;

use serde::{Serialize, de::DeserializeOwned};

use super::header::FORMAT;
use super::replace::replace_file;

fn encoding() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<{ 1 << 32 }>()
}

/// The first bytes of a note: what its content must hash to.
const DIGEST: usize = blake3::OUT_LEN;

fn digest(content: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&FORMAT.to_le_bytes());
    hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
    hasher.update(content);
    hasher.finalize()
}

/// Reads a note; `None` where there is none to be trusted.
pub fn read_note<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let bytes = std::fs::read(path).ok()?;
    let (wanted, content) = bytes.split_at_checked(DIGEST)?;
    if digest(content) != *wanted {
        return None;
    }
    let (note, _) = bincode::serde::decode_from_slice(content, encoding()).ok()?;
    Some(note)
}

/// Writes a note where that is possible.
pub fn write_note<T: Serialize>(path: &Path, note: &T) {
    if let Ok(content) = bincode::serde::encode_to_vec(note, encoding()) {
        let _ = replace_file(path, &[digest(&content).as_bytes(), &content], false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_back_and_a_damaged_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes/x");
        write_note(&path, &("a", vec![1_u32, 2]));
        let back: Option<(String, Vec<u32>)> = read_note(&path);
        assert_eq!(back, Some(("a".into(), vec![1, 2])));
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            std::fs::write(&path, &changed).unwrap();
            assert_eq!(read_note::<(String, Vec<u32>)>(&path), None, "byte {at}");
            std::fs::write(&path, &bytes[..at]).unwrap();
            assert_eq!(read_note::<(String, Vec<u32>)>(&path), None, "cut at {at}");
        }
        // Nowhere to write is no error.
        write_note(&path.join("below/a/file"), &1_u8);
    }
}
