//! Bag-of-words vectors: the set of token ids of each window (RepoCoder's one-gram vectors).

use rayon::prelude::*;
use repoformer_store::artifact::{Column, Columns, Payload, check_offsets};
use repoformer_store::error::Result;
use repoformer_store::progress::Work;
use repoformer_text::tokenize::{IdSet, LineTokens, P50k, PieceCache};

use crate::repository::fragment::RepoFragments;
use crate::repository::parallel;
use crate::retrieve::query::{Queries, Query};

/// Token sets in one buffer; each is a sorted run of distinct ids.
///
/// The ids of `p50k_base` fit in sixteen bits, which halves the memory, the file size and the time to read it. If a larger id
/// is added, the buffer switches to thirty-two bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSets {
    /// Set i is `first[i]..first[i + 1]`.
    first: Vec<u32>,
    tokens: Tokens,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Tokens {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

/// One token set, stored in a [`TokenSets`] or in a slice: distinct ids, ascending.
///
/// ```
/// use repoformer_core::retrieve::vector::TokenSet;
/// let set = TokenSet::Narrow(&[3, 50_256]);
/// assert_eq!((set.len(), set.iter().max()), (2, Some(50_256)));
/// ```
#[derive(Debug, Clone, Copy)]
pub enum TokenSet<'a> {
    /// Ids of a buffer in which all ids are below 65,536.
    Narrow(&'a [u16]),
    /// Any ids.
    Wide(&'a [u32]),
}

impl<'a> TokenSet<'a> {
    /// Returns the number of tokens.
    pub fn len(self) -> usize {
        match self {
            Self::Narrow(ids) => ids.len(),
            Self::Wide(ids) => ids.len(),
        }
    }

    /// Returns true if the set has no tokens.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Iterates over the ids in ascending order. A hot loop matches on the slices instead.
    pub fn iter(self) -> impl Iterator<Item = u32> + use<'a> {
        let (narrow, wide): (&[u16], &[u32]) = match self {
            Self::Narrow(ids) => (ids, &[]),
            Self::Wide(ids) => (&[], ids),
        };
        narrow.iter().map(|id| u32::from(*id)).chain(wide.iter().copied())
    }
}

/// Compares ids; sets with the same ids in different widths are equal.
impl PartialEq for TokenSet<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Default for TokenSets {
    fn default() -> Self {
        Self { first: vec![0], tokens: Tokens::Narrow(Vec::new()) }
    }
}

impl TokenSets {
    /// Computes the sets of a repository's fragments, in order. A file is tokenized once, and its tokens are split by fragment.
    pub fn of_fragments(fragments: &RepoFragments, tokenizer: &P50k) -> Self {
        let runs = fragments_by_file(fragments);
        // A few parts per thread keep all threads busy until the end. A single part needs no merge.
        let threads = rayon::current_num_threads();
        let jobs = if threads == 1 { 1 } else { 8 * threads };
        let longest = runs.len().div_ceil(jobs).max(1);
        let work = Work::new(format!("vectorize {}", fragments.repository), "files", runs.len());
        let parts: Vec<SetRun> = runs
            .par_chunks(longest)
            .map_init(<(PieceCache, IdSet)>::default, |state, runs| {
                let part = SetRun::of_fragments(fragments, runs, tokenizer, state);
                work.advance(runs.len());
                part
            })
            .collect();
        Self::concatenate(parts)
    }

    /// Computes the sets of queries, in order.
    pub fn of_queries(queries: &Queries, tokenizer: &P50k) -> Self {
        let of_some = |queries: &[Query]| {
            let mut part = SetRun::default();
            for query in queries {
                let mut ids = tokenizer.encode(&query.text);
                ids.sort_unstable();
                ids.dedup();
                part.tokens.extend_from_slice(&ids);
                part.ends.push(part.tokens.len());
            }
            part
        };
        Self::concatenate(parallel::map(queries.queries.chunks(64), of_some))
    }

    /// Appends a set: distinct ids in ascending order.
    ///
    /// # Panics
    /// All sets together would have more than 4,294,967,295 tokens.
    pub fn push(&mut self, set: impl IntoIterator<Item = u32>) {
        for id in set {
            match (&mut self.tokens, u16::try_from(id)) {
                (Tokens::Narrow(tokens), Ok(id)) => tokens.push(id),
                (Tokens::Wide(tokens), _) => tokens.push(id),
                (Tokens::Narrow(tokens), Err(_)) => {
                    let widened = tokens.iter().map(|id| u32::from(*id));
                    self.tokens = Tokens::Wide(widened.chain([id]).collect());
                }
            }
        }
        self.first.push(offset(self.token_count()));
    }

    fn concatenate(parts: Vec<SetRun>) -> Self {
        let mut first =
            Vec::with_capacity(1 + parts.iter().map(|part| part.ends.len()).sum::<usize>());
        let total: usize = parts.iter().map(|part| part.tokens.len()).sum();
        first.push(0);
        let mut tokens: Vec<u16> = Vec::new();
        for part in parts {
            let base = tokens.len();
            first.extend(part.ends.iter().map(|end| offset(base + end)));
            if base == 0 {
                tokens = part.tokens;
                tokens.reserve_exact(total - tokens.len());
            } else {
                tokens.extend_from_slice(&part.tokens);
            }
        }
        Self { first, tokens: Tokens::Narrow(tokens) }
    }

    /// Returns the number of sets.
    pub fn len(&self) -> usize {
        self.first.len() - 1
    }

    /// Returns true if there are no sets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns one set, ascending.
    ///
    /// # Panics
    /// The set does not exist.
    pub fn get(&self, index: usize) -> TokenSet<'_> {
        let range = self.first[index] as usize..self.first[index + 1] as usize;
        match &self.tokens {
            Tokens::Narrow(tokens) => TokenSet::Narrow(&tokens[range]),
            Tokens::Wide(tokens) => TokenSet::Wide(&tokens[range]),
        }
    }

    /// Iterates over all sets in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = TokenSet<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Returns the number of ids in all sets.
    pub fn token_count(&self) -> usize {
        self.tokens().len()
    }

    /// Returns the ids of all sets, one set after another.
    pub fn tokens(&self) -> TokenSet<'_> {
        match &self.tokens {
            Tokens::Narrow(tokens) => TokenSet::Narrow(tokens),
            Tokens::Wide(tokens) => TokenSet::Wide(tokens),
        }
    }

    /// Returns the offsets of the sets: set i is `offsets()[i]..offsets()[i + 1]` of [`tokens`](Self::tokens).
    pub fn offsets(&self) -> &[u32] {
        &self.first
    }
}

/// Returns an offset into the buffer; it must not overflow silently.
fn offset(tokens: usize) -> u32 {
    u32::try_from(tokens)
        .expect("the fragments of one repository have more than 4,294,967,295 tokens")
}

/// Sets of consecutive fragments.
#[derive(Default)]
struct SetRun {
    ends: Vec<usize>,
    tokens: Vec<u16>,
}

impl SetRun {
    fn of_fragments(
        fragments: &RepoFragments,
        runs: &[(usize, std::ops::Range<usize>)],
        tokenizer: &P50k,
        (cache, seen): &mut (PieceCache, IdSet),
    ) -> Self {
        let mut part = Self::default();
        for (file, range) in runs {
            let lines = &fragments.files[*file].lines;
            let text = lines.text();
            let tokens = LineTokens::new(tokenizer, cache, text);
            for window in range.clone() {
                let place = fragments.first_place(window);
                let bytes = lines.byte_range(place.start as usize, place.end as usize);
                let (start, end) = (bytes.start, bytes.end);
                tokens.set_into(text, start, end, cache, seen, &mut part.tokens);
                part.ends.push(part.tokens.len());
            }
        }
        part
    }
}

/// Returns the runs of fragments whose first place is in the same file. Fragments are in file order, so each file has one run.
fn fragments_by_file(fragments: &RepoFragments) -> Vec<(usize, std::ops::Range<usize>)> {
    let mut runs: Vec<(usize, std::ops::Range<usize>)> = Vec::new();
    for window in 0..fragments.len() {
        let file = fragments.first_place(window).file as usize;
        match runs.last_mut() {
            Some((last, range)) if *last == file => range.end = window + 1,
            _ => runs.push((file, window..window + 1)),
        }
    }
    runs
}

const FIRST: &str = "first";
const NARROW: &str = "16-bit tokens";
const WIDE: &str = "32-bit tokens";

impl Payload for TokenSets {
    const KIND: &'static str = "one-gram vectors";

    fn records(&self) -> usize {
        self.len()
    }

    fn columns(&self) -> Result<Vec<Column<'_>>, String> {
        let tokens = match &self.tokens {
            Tokens::Narrow(tokens) => Column::numbers(NARROW, tokens),
            Tokens::Wide(tokens) => Column::numbers(WIDE, tokens),
        };
        Ok(vec![Column::numbers(FIRST, &self.first), tokens])
    }

    fn from_columns(columns: &mut Columns) -> Result<Self> {
        let first = columns.numbers(FIRST)?;
        let tokens = if columns.has(NARROW) {
            Tokens::Narrow(columns.numbers(NARROW)?)
        } else {
            Tokens::Wide(columns.numbers(WIDE)?)
        };
        Ok(Self { first, tokens })
    }

    fn check(&self) -> Result<(), String> {
        check_offsets(&self.first, self.token_count())?;
        let ascending = match &self.tokens {
            Tokens::Narrow(tokens) => is_ascending(&self.first, tokens),
            Tokens::Wide(tokens) => is_ascending(&self.first, tokens),
        };
        if ascending { Ok(()) } else { Err("a token set is not in ascending order".into()) }
    }
}

/// Returns true if every run of tokens between two offsets ascends: the tokens then descend only at the ends of runs. All
/// tokens are compared in one pass without branches, which the compiler vectorizes.
fn is_ascending<N: Copy + Ord>(first: &[u32], tokens: &[N]) -> bool {
    let descends = |(one, next): (&N, &N)| u32::from(one >= next);
    let in_all = |part: (&[N], &[N])| -> u32 { part.0.iter().zip(part.1).map(descends).sum() };
    let next = tokens.get(1..).unwrap_or_default();
    let chunks = tokens.chunks(1 << 12).zip(next.chunks(1 << 12));
    let all: u64 = chunks.map(in_all).map(u64::from).sum();
    let ends = first.windows(2).filter(|pair| pair[0] < pair[1]);
    let ends = ends.map(|pair| pair[1] as usize);
    let at_ends = ends.filter(|end| *end < tokens.len() && tokens[end - 1] >= tokens[*end]);
    all == at_ends.count() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use repoformer_store::artifact::{self, Identity};
    use repoformer_text::language::Language;

    use super::*;
    use crate::repository::corpus::{Repository, SourceFile};
    use crate::repository::fragment::{Cut, WindowShape};

    proptest! {
        #[test]
        fn sets_that_do_not_ascend_are_noticed(sets in prop::collection::vec(prop::collection::vec(0_u16..9, 0..5), 0..9)) {
            let mut first = vec![0];
            let tokens = sets.concat();
            for set in &sets {
                first.push(first[first.len() - 1] + set.len() as u32);
            }
            let ascending = sets.iter().all(|set| set.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(is_ascending(&first, &tokens), ascending);
        }

        #[test]
        fn sliced_sets_equal_the_sets_of_each_windows_text(
            texts in prop::collection::vec("[ab_.'s\t \n\u{a0}é]{0,80}", 0..4), w in 1_usize..6,
        ) {
            let file = |(i, text): (usize, &String)| SourceFile {
                path: format!("r/{i}.py"), text: text.clone(), same_as: i as u32,
            };
            let files = texts.iter().enumerate().map(file).collect();
            let shape = WindowShape { window_size: w, ..WindowShape::default() };
            let fragments = RepoFragments::cut(Repository { name: "r".into(), files }, Language::Python, Cut::Windows(shape));
            let p50k = P50k;
            let sets = TokenSets::of_fragments(&fragments, &p50k);
            prop_assert_eq!(sets.len(), fragments.len());
            for window in 0..fragments.len() {
                let ids: std::collections::BTreeSet<u32> =
                    p50k.encode(fragments.text(window)).into_iter().map(u32::from).collect();
                prop_assert_eq!(sets.get(window).iter().collect::<Vec<_>>(), ids.into_iter().collect::<Vec<_>>());
            }
        }
    }

    fn token_sets(sets: &[&[u32]]) -> TokenSets {
        let mut all = TokenSets::default();
        sets.iter().for_each(|set| all.push(set.iter().copied()));
        all
    }

    #[test]
    fn a_larger_id_widens_what_is_there_and_leaves_it_as_it_was() {
        let sets: [&[u32]; 4] = [&[1, 65_535], &[], &[2, 65_536, 70_000], &[3]];
        let narrow = token_sets(&sets[..2]);
        assert!(matches!(narrow.get(0), TokenSet::Narrow([1, 65_535])));
        let wide = token_sets(&sets);
        assert!(matches!(wide.get(0), TokenSet::Wide([1, 65_535])));
        assert_eq!(narrow.get(0), wide.get(0));
        assert_eq!((wide.len(), wide.token_count()), (4, 6));
        for (set, wanted) in wide.iter().zip(sets) {
            assert_eq!(set.iter().collect::<Vec<_>>(), wanted);
        }
    }

    #[test]
    fn both_widths_come_back_from_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sets.bin");
        for sets in [token_sets(&[&[1, 65_535], &[]]), token_sets(&[&[7, 1 << 20]])] {
            artifact::write(&path, &Identity::new(TokenSets::KIND), &sets).unwrap();
            assert_eq!(artifact::read::<TokenSets>(&path).unwrap().1, sets);
        }
    }
}
