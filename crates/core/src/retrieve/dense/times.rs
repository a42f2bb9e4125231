//! How long a server took for the vectors of queries, each alone in its request: a log beside the vectors.

use std::path::{Path, PathBuf};

use repoformer_store::append_log::{AppendLog, LogKind};
use repoformer_store::error::Result;
use repoformer_text::message::UserChoice;
use rustc_hash::FxHashMap;
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

/// Seconds by the digest of the text.
type Seconds = FxHashMap<Digest, f64>;

/// The times of one model's vectors, open for more.
#[derive(Debug)]
pub struct EmbeddingTimes {
    log: AppendLog,
    seconds: Seconds,
}

impl EmbeddingTimes {
    /// Opens the times of a store's vectors, or begins them.
    ///
    /// # Errors
    /// The file cannot be read and written, or another process writes to it.
    pub fn open(store: &Path) -> Result<Self> {
        let mut seconds = Seconds::default();
        let log =
            AppendLog::open(&path_of(store), LOG, |line, _| take(line, &mut seconds).is_some())?;
        Ok(Self { log, seconds })
    }

    /// Reads the times of a store's vectors; none where there is no file of them.
    pub fn read(store: &Path) -> FxHashMap<Digest, f64> {
        let (path, mut seconds) = (path_of(store), Seconds::default());
        if path.exists() {
            // Where nothing can be read, no time is known.
            let _ = AppendLog::read(&path, LOG, |line, _| take(line, &mut seconds).is_some());
        }
        seconds
    }

    /// Whether the time of this text's vector is known.
    pub fn contains(&self, digest: &Digest) -> bool {
        self.seconds.contains_key(digest)
    }

    /// Adds a time.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&mut self, digest: Digest, seconds: f64) -> Result<()> {
        let line = Line { digest: digest.to_hex().to_string(), seconds };
        self.log.append(serde_json::to_vec(&line).unwrap_or_default())?;
        self.seconds.insert(digest, seconds);
        Ok(())
    }
}

/// `<model>.times.jsonl`, beside `<model>.vectors`.
fn path_of(store: &Path) -> PathBuf {
    store.with_extension("times.jsonl")
}

fn take(line: &[u8], seconds: &mut Seconds) -> Option<()> {
    let line: Line = serde_json::from_slice(line).ok()?;
    let digest = Digest::from_hex(&line.digest).ok()?;
    seconds.insert(digest, line.seconds);
    Some(())
}
