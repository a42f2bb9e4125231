//! Metrics for Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Upper bounds of a histogram's buckets, in seconds.
const BOUNDS: [f64; 16] = [
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0,
];

/// Histogram of times.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    /// Sum in microseconds.
    sum: AtomicU64,
}

impl Histogram {
    pub(crate) fn add_ms(&self, ms: f64) {
        let seconds = ms / 1e3;
        for (bucket, bound) in self.buckets.iter().zip(BOUNDS) {
            if seconds <= bound {
                bucket.fetch_add(1, Relaxed);
            }
        }
        self.count.fetch_add(1, Relaxed);
        self.sum.fetch_add((ms * 1e3) as u64, Relaxed);
    }

    fn write(&self, name: &str, help: &str, out: &mut String) {
        let name = format!("repoformer_{name}_seconds");
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
        for (bucket, bound) in self.buckets.iter().zip(BOUNDS) {
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {}", bucket.load(Relaxed));
        }
        let count = self.count.load(Relaxed);
        let sum = self.sum.load(Relaxed) as f64 / 1e6;
        let _ = writeln!(
            out,
            "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}"
        );
    }
}

/// Counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Requests by protocol: OpenAI's, llama.cpp's, Tabby's, the language server's.
    pub(crate) requests: [AtomicU64; 4],
    pub(crate) retrieved: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) prompt_tokens: AtomicU64,
    pub(crate) cached_tokens: AtomicU64,
    pub(crate) written_tokens: AtomicU64,
    /// Times of decision and retrieval.
    pub(crate) preparing: Histogram,
    pub(crate) first_token: Histogram,
    pub(crate) whole: Histogram,
}

/// Size of the index.
pub(crate) struct IndexSize {
    pub(crate) fragments: usize,
    pub(crate) layers: usize,
    pub(crate) bytes: usize,
}

impl Metrics {
    pub(crate) fn text(&self, index: &IndexSize) -> String {
        let mut out = String::new();
        let name = "repoformer_requests_total";
        let _ = writeln!(out, "# HELP {name} Requests by protocol.\n# TYPE {name} counter");
        for (protocol, count) in ["openai", "infill", "tabby", "lsp"].iter().zip(&self.requests) {
            let _ = writeln!(out, "{name}{{protocol=\"{protocol}\"}} {}", count.load(Relaxed));
        }
        for (name, help, count) in [
            ("retrieved", "Requests whose prompt contains retrieved fragments.", &self.retrieved),
            ("cancelled", "Requests that the editor cancelled.", &self.cancelled),
            ("failed", "Requests that failed in the model's server.", &self.failed),
            ("refused", "Requests that were invalid or exceeded a limit.", &self.refused),
            ("prompt_tokens", "Tokens of prompts.", &self.prompt_tokens),
            (
                "cached_tokens",
                "Prompt tokens that the model's server had cached, if it reports them.",
                &self.cached_tokens,
            ),
            ("written_tokens", "Tokens of completions.", &self.written_tokens),
        ] {
            let name = format!("repoformer_{name}_total");
            let count = count.load(Relaxed);
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {count}");
        }
        for (name, help, value) in [
            ("fragments", "Fragments in the index.", index.fragments),
            ("layers", "Layers of the index.", index.layers),
            ("index_bytes", "Bytes of the index.", index.bytes),
        ] {
            let name = format!("repoformer_{name}");
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
        }
        self.preparing.write("preparing", "Decision and retrieval.", &mut out);
        self.first_token.write("first_token", "Request to first text.", &mut out);
        self.whole.write("completion", "Request to end of completion.", &mut out);
        out
    }
}
