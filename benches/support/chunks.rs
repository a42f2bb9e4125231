//! Repoformer's chunks of the corpus, and queries of twenty non-blank lines from files that are not in the chunks.

use std::sync::LazyLock;

use repoformer_core::repository::corpus::SourceFile;
use repoformer_core::retrieve::rank::RankQuery;

use super::corpus::REPOSITORY;
use super::growth::{QUERIES, shuffled};

const LINES: usize = 20;
const STRIDE: usize = 10;
/// Numbers of chunks in the collections, if the corpus has as many.
const SIZES: [usize; 2] = [5_000, 50_000];

pub struct Chunks {
    /// Text of each chunk, and the number of its file.
    chunks: Vec<(String, usize)>,
    queries: Vec<String>,
}

pub static CHUNKS: LazyLock<Chunks> = LazyLock::new(|| {
    let files = shuffled(&REPOSITORY.files);
    let lines = |file: &SourceFile| -> Vec<String> {
        let lines = file.text.split('\n').filter(|line| !line.trim().is_empty());
        lines.map(str::to_owned).collect()
    };
    let held_out = QUERIES.min(files.len() / 8).max(1);
    let (held_out, kept) = files.split_at(held_out);
    let cut = |(number, file): (usize, &&SourceFile)| {
        let lines = lines(file);
        let starts = (0..lines.len()).step_by(STRIDE);
        let text = |start: usize| lines[start..lines.len().min(start + LINES)].join("\n");
        starts.map(|start| (text(start), number)).collect::<Vec<_>>()
    };
    let held_out: Vec<Vec<String>> =
        held_out.iter().map(|file| lines(file)).filter(|l| l.len() > LINES).collect();
    let query = |number: usize| {
        let lines = &held_out[number % held_out.len()];
        let start = number * 37 % (lines.len() - LINES);
        lines[start..start + LINES].join("\n")
    };
    Chunks {
        chunks: kept.iter().enumerate().flat_map(cut).collect(),
        queries: (0..QUERIES).map(query).collect(),
    }
});

/// Returns the sizes for which the corpus has enough chunks; for a smaller corpus, the number of all its chunks.
pub fn sizes() -> Vec<usize> {
    let all = CHUNKS.chunks.len();
    let fitting: Vec<_> = SIZES.into_iter().filter(|size| *size <= all).collect();
    if fitting.is_empty() { vec![all] } else { fitting }
}

impl Chunks {
    /// Returns the texts of the first `size` chunks.
    pub fn texts(&self, size: usize) -> Vec<&str> {
        self.chunks[..size].iter().map(|(text, _)| text.as_str()).collect()
    }

    /// Returns the texts of the queries.
    pub fn queries(&self) -> &[String] {
        &self.queries
    }

    /// Returns a query that ends at its hole.
    pub fn query(&self, number: usize) -> RankQuery<'_> {
        let lines = self.queries[number % self.queries.len()].split('\n').collect();
        RankQuery { lines, hole: LINES, ..RankQuery::default() }
    }

    /// Returns candidate lists, each without the chunks of one file.
    pub fn priorities(&self, size: usize) -> Vec<Vec<u32>> {
        let files = self.chunks[size - 1].1 + 1;
        let without = |file: usize| {
            let place = |(place, (_, own)): (u32, &(String, usize))| {
                if *own == file { u32::MAX } else { place }
            };
            (0..).zip(&self.chunks[..size]).map(place).collect()
        };
        (0..files).step_by(files.div_ceil(8)).map(without).collect()
    }
}
