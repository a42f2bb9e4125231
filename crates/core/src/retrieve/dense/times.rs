//! Times that a server took for the vectors of queries, each in a request of its own: a log next to the vectors.

use std::path::{Path, PathBuf};

use foldhash::HashMap;
use repoformer_store::append_log::{AppendLog, LogKind};
use repoformer_store::error::Result;
use repoformer_text::message::UserChoice;
use serde::{Deserialize, Serialize};

use super::text::Digest;

const LOG: LogKind = LogKind {
    begin: "{\"digest\":",
    line: "a time of a vector",
    file: UserChoice::CacheFolder,
    remark: "",
    writer: "run",
};

/// One line of the log.
#[derive(Serialize, Deserialize)]
struct Line {
    digest: String,
    seconds: f64,
}

/// Seconds by digest of the text.
type Seconds = HashMap<Digest, f64>;

/// Times of one model's vectors, open for more times.
#[derive(Debug)]
pub struct EmbeddingTimes {
    log: AppendLog,
    seconds: Seconds,
}

impl EmbeddingTimes {
    /// Opens the times of a store's vectors, or creates an empty log.
    ///
    /// # Errors
    /// The file cannot be read and written, or another process writes to it.
    pub fn open(store: &Path) -> Result<Self> {
        let mut seconds = Seconds::default();
        let log =
            AppendLog::open(&path_of(store), LOG, |line, _| take(line, &mut seconds).is_some())?;
        Ok(Self { log, seconds })
    }

    /// Reads the times of a store's vectors; empty if the log does not exist.
    pub fn read(store: &Path) -> HashMap<Digest, f64> {
        let (path, mut seconds) = (path_of(store), Seconds::default());
        if path.exists() {
            // If the log cannot be read, no times are known.
            let _ = AppendLog::read(&path, LOG, |line, _| take(line, &mut seconds).is_some());
        }
        seconds
    }

    /// Returns true if the time of this text's vector is known.
    pub fn contains(&self, digest: &Digest) -> bool {
        self.seconds.contains_key(digest)
    }

    /// Adds a time.
    ///
    /// # Errors
    /// The time cannot be written.
    pub fn keep(&mut self, digest: Digest, seconds: f64) -> Result<()> {
        let line = Line { digest: digest.to_hex().to_string(), seconds };
        self.log.append(serde_json::to_vec(&line).unwrap_or_default())?;
        self.seconds.insert(digest, seconds);
        Ok(())
    }
}

/// Returns `<model>.times.jsonl`, which is next to `<model>.vectors`.
fn path_of(store: &Path) -> PathBuf {
    store.with_extension("times.jsonl")
}

fn take(line: &[u8], seconds: &mut Seconds) -> Option<()> {
    let line: Line = serde_json::from_slice(line).ok()?;
    let digest = Digest::from_hex(&line.digest).ok()?;
    seconds.insert(digest, line.seconds);
    Some(())
}
