//! Output file requested by the user: written atomically, and compressed if its name requests it.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::replace::Replacement;
use crate::error::{Error, Result};
use crate::zstandard;

/// Temporary file until it is [finished](Self::finish); if dropped before, it is removed. A name that ends in `.gz` or `.zst`
/// selects compression; the same content always gives the same bytes.
pub struct OutputFile {
    path: PathBuf,
    encoder: Encoder,
}

enum Encoder {
    Plain(BufWriter<Replacement>),
    Gzip(flate2::write::GzEncoder<BufWriter<Replacement>>),
    Zstd(zstandard::Encoder),
}

impl OutputFile {
    /// Creates the temporary file, and its folder if necessary.
    ///
    /// # Errors
    /// The folder cannot be created or written, the file is an input of this program, or the name ends in `.zst` and the build lacks
    /// the feature `zstd`.
    pub fn create(path: &Path) -> Result<Self> {
        let file = BufWriter::with_capacity(1 << 16, Replacement::for_output(path)?);
        let encoder = match path.extension().and_then(|end| end.to_str()) {
            Some("gz") => {
                Encoder::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default()))
            }
            Some("zst") => Encoder::Zstd(zstandard::encoder(path, file)?),
            _ => Encoder::Plain(file),
        };
        Ok(Self { path: path.to_owned(), encoder })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The bytes cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = match &mut self.encoder {
            Encoder::Plain(file) => file.write_all(bytes),
            Encoder::Gzip(file) => file.write_all(bytes),
            Encoder::Zstd(file) => file.write_all(bytes),
        };
        written.map_err(|e| Error::writing(&self.path, "write this file", e))
    }

    /// Syncs the file and moves it into place.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<()> {
        let cannot_write = |e| Error::writing(&self.path, "write this file", e);
        let file = match self.encoder {
            Encoder::Plain(file) => Ok(file),
            Encoder::Gzip(file) => file.finish(),
            Encoder::Zstd(file) => file.finish(),
        };
        let file = file.and_then(|file| file.into_inner().map_err(io::IntoInnerError::into_error));
        file.map_err(cannot_write)?.finish()
    }
}

#[cfg(feature = "zstd")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_name_says_is_written_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        for (name, magic) in [
            ("a.jsonl", &b"{\"a\""[..]),
            ("a.jsonl.gz", &[0x1f, 0x8b]),
            ("a.jsonl.zst", &[0x28, 0xb5, 0x2f, 0xfd]),
        ] {
            let path = dir.path().join(name);
            let mut twice = Vec::new();
            for _ in 0..2 {
                let mut file = OutputFile::create(&path).unwrap();
                file.write(b"{\"a\": 1}\n").unwrap();
                file.write(&[]).unwrap();
                file.write(b"{\"a\": 2}\n").unwrap();
                file.finish().unwrap();
                twice.push(std::fs::read(&path).unwrap());
            }
            assert!(twice[0].starts_with(magic), "{name}");
            assert_eq!(twice[0], twice[1], "{name}");
            assert_eq!(crate::jsonl::read(&path).unwrap(), b"{\"a\": 1}\n{\"a\": 2}\n");
            drop(OutputFile::create(&path).unwrap());
            assert_eq!(std::fs::read(&path).unwrap(), twice[0], "{name}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    }
}
