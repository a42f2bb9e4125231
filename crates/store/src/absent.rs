//! Replacement for Zstandard in a build without it.

use std::convert::Infallible;
use std::io::{self, BufRead, BufWriter, Write};
use std::path::Path;

use crate::artifact::Replacement;
use crate::error::{Error, Result};

/// Compressed output. This build lacks the feature `zstd`, so no such output exists.
pub(crate) struct Encoder(Infallible);

impl Encoder {
    pub(crate) fn finish(self) -> io::Result<BufWriter<Replacement>> {
        match self.0 {}
    }
}

impl Write for Encoder {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

fn lacking(path: &Path) -> Error {
    let reason = "compressed with zstd: this build lacks the feature `zstd`".to_owned();
    let hint =
        "use gzip (`.gz`), or add `zstd` to the features of the dependency `repoformer-core`"
            .into();
    Error::Form { path: path.to_owned(), reason, hint }
}

pub(crate) fn encoder(path: &Path, _file: BufWriter<Replacement>) -> Result<Encoder> {
    Err(lacking(path))
}

pub(crate) fn decoder<R: BufRead>(path: &Path, _input: R) -> Result<io::Empty> {
    Err(lacking(path))
}
