//! Selection of the holes that become tasks: in random order, and without overlaps or repeated targets.

use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use foldhash::HashSet;
use repoformer_store::content::ContentDigest;

use super::context;
use super::kind::{Hole, Kind, Sampling};
use super::source::{LineClass, SampleSource};
use crate::repository::corpus::{Repository, SourceFile};
use crate::repository::history::Commit;

/// Mean number of lines of a chunk (algorithm 1).
pub(crate) const POISSON_MEAN: f64 = 3.0;

/// Maximum number of lines of a run, which is the number of lines of the chunks in algorithm 1.
const LONGEST: usize = 10;

/// Random numbers for one repository, seeded by its content and not by its name. The draws are implemented here, so that no
/// update of a dependency can change a benchmark.
pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    /// Creates the stream of a seed, a kind and a repository's content.
    pub(super) fn new(seed: u64, kind: Kind, repository: ContentDigest) -> Self {
        Self::from_what(b"repoformer sample 2\0", seed, kind.name(), repository)
    }

    /// Creates the stream for tasks from these commits.
    pub(super) fn for_commits(seed: u64, kind: Kind, commits: &[Commit]) -> Self {
        let ids = ContentDigest::from_texts(commits.iter().map(|commit| &*commit.id));
        Self::from_what(b"repoformer commits 2\0", seed, kind.name(), ids)
    }

    /// Creates the stream for the cursor in a hole.
    pub(super) fn for_cursor(seed: u64, kind: Kind, hole: ContentDigest) -> Self {
        Self::from_what(b"repoformer cursor 2\0", seed, kind.name(), hole)
    }

    /// Creates a stream for labelled data.
    pub(crate) fn for_labels(seed: u64, kind: &str, repository: ContentDigest) -> Self {
        Self::from_what(b"repoformer label 2\0", seed, kind, repository)
    }

    fn from_what(what: &[u8], seed: u64, kind: &str, content: ContentDigest) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(what);
        hasher.update(&seed.to_le_bytes());
        hasher.update(kind.as_bytes());
        hasher.update(b"\0");
        hasher.update(content.as_bytes());
        Self(ChaCha8Rng::from_seed(*hasher.finalize().as_bytes()))
    }

    /// Returns a uniform random number from 0 to `n` - 1; `n` must be at least 1.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let n = n as u64;
        // Numbers below 2⁶⁴ mod n would favour the small remainders.
        let uneven = n.wrapping_neg() % n;
        loop {
            let number = self.0.next_u64();
            if number >= uneven {
                return (number % n) as usize;
            }
        }
    }

    /// Returns a Poisson number with this mean, by inversion, clamped to 1..=[`LONGEST`]. The mean must be at most [`LONGEST`].
    pub(crate) fn length(&mut self, mean: f64) -> usize {
        let uniform = (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let (mut number, mut probability) = (0, probability_of_zero(mean));
        let mut cumulated = probability;
        while cumulated <= uniform && number < LONGEST {
            number += 1;
            probability *= mean / number as f64;
            cumulated += probability;
        }
        number.max(1)
    }
}

/// Returns e⁻ᵐ, the probability of 0 in a Poisson distribution with mean m, from the series of eᵐ: `exp` may differ between
/// platforms.
fn probability_of_zero(mean: f64) -> f64 {
    1.0 / (1..=60).rev().fold(1.0, |sum, n| 1.0 + mean / f64::from(n) * sum)
}

/// Drawing of holes, which decides whether a hole may be drawn.
pub(super) struct Draw<'a> {
    sampling: &'a Sampling,
    count_tokens: &'a CountTokens<'a>,
    /// Holes drawn so far: (file, first line) → line after the last line.
    drawn: BTreeMap<(usize, usize), usize>,
    ground_truths: HashSet<String>,
}

/// Function that returns the number of tokens of a text.
pub(super) type CountTokens<'c> = dyn Fn(&str) -> usize + Sync + 'c;

/// Tries the candidates in random order (Fisher–Yates) until enough are accepted.
pub(super) fn draw(
    repository: &Repository,
    sources: &[Option<SampleSource>],
    sampling: &Sampling,
    count_tokens: &CountTokens<'_>,
    mut candidates: Vec<Hole>,
) -> Vec<Hole> {
    let mut draw = Draw::new(sampling, count_tokens);
    let mut stream = Stream::new(sampling.seed, sampling.kind, repository.content_digest());
    let is_excluded = |file: &SourceFile| sampling.exclusions.hold(&file.path);
    let is_excluded: Vec<bool> = repository.files.iter().map(is_excluded).collect();
    let mut holes = Vec::new();
    for at in 0..candidates.len() {
        if holes.len() >= sampling.per_repository {
            break;
        }
        let other = at + stream.below(candidates.len() - at);
        candidates.swap(at, other);
        let mut hole = candidates[at];
        let Some(source) = &sources[hole.file] else {
            continue;
        };
        if sampling.kind == Kind::Chunk {
            hole.end = end_of_chunk(source, hole.start, stream.length(POISSON_MEAN));
        }
        if !is_excluded[hole.file] && draw.accepts(source, hole) {
            holes.push(hole);
        }
    }
    holes
}

impl<'a> Draw<'a> {
    pub(super) fn new(sampling: &'a Sampling, count_tokens: &'a CountTokens<'a>) -> Self {
        let (drawn, ground_truths) = (BTreeMap::new(), HashSet::default());
        Self { sampling, count_tokens, drawn, ground_truths }
    }

    /// Accepts a hole if it may be drawn.
    pub(super) fn accepts(&mut self, source: &SampleSource, hole: Hole) -> bool {
        let ground_truth = source.lines.range(hole.start, hole.end).trim();
        let is_table = || source.are_tables(hole.start..hole.end);
        if self.sampling.exclusions.tables && is_table() {
            return false;
        }
        if self.overlaps(hole) || self.ground_truths.contains(ground_truth) {
            return false;
        }
        let enough = match self.sampling.kind {
            Kind::Line => (self.count_tokens)(ground_truth) >= self.sampling.min_tokens,
            // A chunk must not be brackets alone; Repoformer's chunks need a word.
            Kind::Chunk => ground_truth.contains(|c: char| c == '_' || c.is_alphanumeric()),
            Kind::Api | Kind::Function => true,
        };
        let line_before = context::prompt(&source.lines, hole.start - 1, hole.start);
        if !enough || (self.count_tokens)(line_before) > self.sampling.context_tokens {
            return false;
        }
        self.drawn.insert((hole.file, hole.start), hole.end);
        self.ground_truths.insert(ground_truth.to_owned());
        true
    }

    /// Returns true if a drawn hole shares a line with this one. Drawn holes are disjoint, so only the last one that begins
    /// before this one's end needs a check.
    fn overlaps(&self, hole: Hole) -> bool {
        let mut before = self.drawn.range((hole.file, 0)..(hole.file, hole.end));
        before.next_back().is_some_and(|(_, &end)| end > hole.start)
    }
}

/// Returns the end of the chunk (Repoformer, appendix D, algorithm 1) that begins at `start` and has `length` non-blank lines.
/// Comments and docstrings count as in algorithm 1, but the chunk ends after its last line of code.
///
/// To get varied training data, the algorithm clusters 10-line chunks, draws one chunk of each cluster, and draws a run of
/// Poisson(3) lines within it. A benchmark should reflect the distribution of the lines, so the run begins at any line of code
/// with the same probability.
pub(super) fn end_of_chunk(source: &SampleSource, start: usize, length: usize) -> usize {
    let mut end = start + 1;
    let mut left = length;
    for (line, class) in source.classes.iter().enumerate().skip(start) {
        match class {
            LineClass::Broken => break,
            LineClass::Blank => continue,
            LineClass::Code => end = line + 1,
            LineClass::Comment | LineClass::Prose => {}
        }
        left -= 1;
        if left == 0 {
            break;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> ContentDigest {
        ContentDigest::from_texts([text])
    }

    #[test]
    fn every_stream_is_its_own() {
        let numbers = |seed, kind, text: &str| {
            let mut stream = Stream::new(seed, kind, content(text));
            [0; 4].map(|_| stream.below(1000))
        };
        let first = numbers(0, Kind::Line, "r");
        assert_eq!(first, numbers(0, Kind::Line, "r"));
        assert_ne!(first, numbers(1, Kind::Line, "r"));
        assert_ne!(first, numbers(0, Kind::Api, "r"));
        assert_ne!(first, numbers(0, Kind::Line, "s"));
    }

    #[test]
    fn lengths_have_the_mean_that_is_asked_for() {
        assert_eq!(probability_of_zero(3.0), 0.049_787_068_367_863_944);
        // A length of 0 counts as 1, so e⁻ᵐ is added to the mean m. The maximum of 10 lowers the mean by less than 0.001 for
        // the first three. With mean 10, half of the lengths are cut to 10: 10 + e⁻¹⁰ - 10¹¹e⁻¹⁰/10! = 8.749.
        for (mean, wanted) in [(0.5, 1.1065), (1.0, 1.3679), (3.0, 3.0494), (10.0, 8.749)] {
            let mut stream = Stream::new(0, Kind::Chunk, content("r"));
            let total: usize = (0..100_000).map(|_| stream.length(mean)).sum();
            let drawn = total as f64 / 100_000.0;
            assert!((drawn - wanted).abs() < 0.02, "{mean}: {drawn}");
        }
    }

    #[test]
    fn numbers_are_even_and_lengths_are_poisson() {
        let mut stream = Stream::new(0, Kind::Chunk, content("r"));
        let mut counts = [0u32; 7];
        (0..70_000).for_each(|_| counts[stream.below(7)] += 1);
        // 10 000 of each, with a standard deviation of 93.
        assert!(counts.iter().all(|n| n.abs_diff(10_000) < 500), "{counts:?}");

        let mut lengths = [0u32; 11];
        (0..100_000).for_each(|_| lengths[stream.length(POISSON_MEAN)] += 1);
        // Poisson(3): P(0) + P(1) = 4e⁻³ = 0.19915, P(2) = P(3) = 4.5e⁻³ = 0.22404, P(4) = 0.16803, P(≥ 10) = 0.00110.
        for (length, wanted) in
            [(0, 0), (1, 19_915), (2, 22_404), (3, 22_404), (4, 16_803), (10, 110)]
        {
            assert!(lengths[length].abs_diff(wanted) < 600, "{length}: {lengths:?}");
        }
        assert!((50..200).contains(&lengths[10]));
    }
}
