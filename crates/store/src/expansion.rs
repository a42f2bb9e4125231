//! Limits on the expansion of compressed input: a file of a few kilobytes must not fill the memory or the disk.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Greatest ratio of an input's expanded size to its compressed size; source text and records of source text stay below a
/// hundred.
pub(super) const MOST_TIMES: u64 = 500;
/// Number of bytes to which any input may expand.
pub(super) const ALWAYS: u64 = 64 << 20;

/// Input that counts the bytes read from it.
pub(super) struct MeteredInput<R> {
    input: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> MeteredInput<R> {
    /// Returns the input with its counter.
    pub(super) fn new(input: R) -> (Self, Arc<AtomicU64>) {
        let bytes = Arc::new(AtomicU64::new(0));
        (Self { input, bytes: Arc::clone(&bytes) }, bytes)
    }
}

impl<R: Read> Read for MeteredInput<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Output of a decoder; it fails if it grows out of proportion to the bytes read.
pub(super) struct ExpansionGuard<R> {
    decoder: R,
    compressed: Arc<AtomicU64>,
    bytes: u64,
}

impl<R: Read> ExpansionGuard<R> {
    /// Wraps a decoder; `compressed` counts the bytes of its input.
    pub(super) fn new(decoder: R, compressed: Arc<AtomicU64>) -> Self {
        Self { decoder, compressed, bytes: 0 }
    }
}

impl<R: Read> Read for ExpansionGuard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.decoder.read(buffer)?;
        self.bytes += read as u64;
        if self.bytes
            > ALWAYS.max(self.compressed.load(Ordering::Relaxed).saturating_mul(MOST_TIMES))
        {
            return Err(io::Error::other(format!(
                "it expands to more than {MOST_TIMES} times its size, unlike text; decompress it \
                 yourself if you trust it"
            )));
        }
        Ok(read)
    }
}

#[cfg(feature = "zstd")]
#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;

    use crate::jsonl;

    /// 80 MiB of spaces: more than any file may expand to, and a thousand times the size of the file.
    #[test]
    fn input_that_expands_without_measure_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let spaces = vec![b' '; 1 << 20];
        let level = flate2::Compression::best();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), level);
        let mut zstd = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        for _ in 0..80 {
            gzip.write_all(&spaces).unwrap();
            zstd.write_all(&spaces).unwrap();
        }
        for (name, bomb) in [("a.gz", gzip.finish().unwrap()), ("a.zst", zstd.finish().unwrap())] {
            let path = dir.path().join(name);
            std::fs::write(&path, bomb).unwrap();
            let error = |path: &Path| jsonl::read(path).unwrap_err().to_string();
            assert!(error(&path).contains("expands to more than 500 times its size"), "{name}");
            let records = jsonl::for_each(&path, |_, _| Ok(()));
            assert!(records.unwrap_err().to_string().contains("500 times"), "{name}");
        }
    }
}
