//! Zstandard, for input files and outputs.

use std::io::{BufRead, BufWriter};
use std::path::Path;

use crate::artifact::Replacement;
use crate::error::{Error, Result};

/// Compression level; zstd's own default.
const LEVEL: i32 = 3;

/// Compressed output.
pub(crate) type Encoder = zstd::stream::write::Encoder<'static, BufWriter<Replacement>>;

/// Starts a compressed output.
pub(crate) fn encoder(path: &Path, file: BufWriter<Replacement>) -> Result<Encoder> {
    Encoder::new(file, LEVEL).map_err(|e| Error::writing(path, "write this zstd file", e))
}

/// Decompresses a file of one or more frames.
pub(crate) fn decoder<R: BufRead>(
    path: &Path,
    input: R,
) -> Result<zstd::stream::read::Decoder<'static, R>> {
    zstd::stream::read::Decoder::with_buffer(input)
        .map_err(|e| Error::reading(path, "read this zstd file", e))
}
