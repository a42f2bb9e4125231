//! Bag-of-words vectors: the set of token ids of each window (RepoCoder's one-gram vectors).

use rayon::prelude::*;

use crate::artifact::{Column, Columns, Payload, check_offsets};
use crate::error::Result;
use crate::query::QueryWindows;
use crate::tokenize::{IdSet, LineTokens, P50k, PieceCache};
use crate::window::{Change, RepoWindows};

/// Token sets in one buffer: each a sorted run of distinct ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSets {
    /// `first[i]..first[i + 1]` is set i.
    first: Vec<u32>,
    tokens: Vec<u32>,
}

impl Default for TokenSets {
    fn default() -> Self {
        Self {
            first: vec![0],
            tokens: Vec::new(),
        }
    }
}

impl TokenSets {
    /// The sets of a repository's windows, in their order. A file is tokenized once and sliced by window.
    pub fn of_windows(windows: &RepoWindows, tokenizer: &P50k) -> Self {
        let by_file = windows_by_file(windows);
        let parts: Vec<Self> = by_file
            .into_par_iter()
            .map_init(
                <(PieceCache, IdSet)>::default,
                |(cache, seen), (file, range)| {
                    let lines = &windows.files[file].lines;
                    let tokens = LineTokens::new(tokenizer, cache, lines.text());
                    let (mut sets, mut ids) = (Self::default(), Vec::new());
                    for window in range {
                        let place = windows.first_place(window);
                        let bytes = lines.byte_range(place.start as usize, place.end as usize);
                        ids.clear();
                        tokens.set_into(
                            lines.text(),
                            bytes.start,
                            bytes.end,
                            cache,
                            seen,
                            &mut ids,
                        );
                        sets.push(ids.iter().map(|id| u32::from(*id)));
                    }
                    sets
                },
            )
            .collect();
        Self::concatenate(parts)
    }

    /// The sets of a repository that was cut again, from those before and the texts of the `new` windows alone.
    pub fn changed(
        &self,
        change: &Change,
        windows: &RepoWindows,
        new: &[u32],
        tokenizer: &P50k,
    ) -> Self {
        let (mut sets, mut cache, mut ids) = (Self::default(), PieceCache::new(), Vec::new());
        let (mut new, mut seen) = (new.iter().peekable(), IdSet::new());
        let mut push_new = |sets: &mut Self, end: u32| {
            while let Some(window) = new.next_if(|window| **window < end) {
                let mut all = Vec::new();
                tokenizer.encode_into(windows.text(*window as usize), &mut cache, &mut all);
                seen.insert_all(&all);
                ids.clear();
                seen.drain_into(&mut ids);
                sets.push(ids.iter().map(|id| u32::from(*id)));
            }
        };
        for run in &change.same {
            push_new(&mut sets, run.new);
            for old in run.old..run.old + run.count {
                sets.push(self.get(old as usize).iter().copied());
            }
        }
        push_new(&mut sets, u32::MAX);
        sets
    }

    /// The sets of query windows, in their order.
    pub fn of_queries(queries: &QueryWindows, tokenizer: &P50k) -> Self {
        let sets: Vec<Vec<u16>> = queries
            .windows
            .par_iter()
            .map(|query| {
                let mut ids = tokenizer.encode(&query.text);
                ids.sort_unstable();
                ids.dedup();
                ids
            })
            .collect();
        let mut all = Self::default();
        for ids in sets {
            all.push(ids.into_iter().map(u32::from));
        }
        all
    }

    /// Appends a set: distinct ids in ascending order.
    pub fn push(&mut self, set: impl IntoIterator<Item = u32>) {
        self.tokens.extend(set);
        self.first.push(self.tokens.len() as u32);
    }

    fn concatenate(parts: Vec<Self>) -> Self {
        let mut all = Self {
            first: Vec::with_capacity(1 + parts.iter().map(Self::len).sum::<usize>()),
            tokens: Vec::with_capacity(parts.iter().map(|part| part.tokens.len()).sum()),
        };
        all.first.push(0);
        for part in parts {
            let base = all.tokens.len() as u32;
            all.first
                .extend(part.first[1..].iter().map(|end| base + end));
            all.tokens.extend_from_slice(&part.tokens);
        }
        all
    }

    /// Number of sets.
    pub fn len(&self) -> usize {
        self.first.len() - 1
    }

    /// Whether there is no set.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One set, ascending.
    pub fn get(&self, index: usize) -> &[u32] {
        &self.tokens[self.first[index] as usize..self.first[index + 1] as usize]
    }

    /// All sets in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Number of ids in all sets.
    pub fn token_count(&self) -> usize {
        self.tokens.len()
    }
}

/// Runs of windows whose first place is in the same file; windows are in file order, so each file has one run.
fn windows_by_file(windows: &RepoWindows) -> Vec<(usize, std::ops::Range<usize>)> {
    let mut runs: Vec<(usize, std::ops::Range<usize>)> = Vec::new();
    for window in 0..windows.len() {
        let file = windows.first_place(window).file as usize;
        match runs.last_mut() {
            Some((last, range)) if *last == file => range.end = window + 1,
            _ => runs.push((file, window..window + 1)),
        }
    }
    runs
}

impl Payload for TokenSets {
    const KIND: &'static str = "one-gram vectors";

    fn records(&self) -> usize {
        self.len()
    }

    fn columns(&self) -> Result<Vec<Column<'_>>, String> {
        Ok(vec![
            Column::numbers("first", &self.first),
            Column::numbers("tokens", &self.tokens),
        ])
    }

    fn from_columns(columns: &mut Columns) -> Result<Self> {
        Ok(Self {
            first: columns.numbers("first")?,
            tokens: columns.numbers("tokens")?,
        })
    }

    fn check(&self) -> Result<(), String> {
        check_offsets(&self.first, self.tokens.len())?;
        let ascending = self.iter().all(|set| set.is_sorted_by(|a, b| a < b));
        if ascending {
            Ok(())
        } else {
            Err("a token set is not in ascending order".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::{Repository, SourceFile};
    use crate::window::WindowShape;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sliced_sets_equal_the_sets_of_each_windows_text(
            texts in prop::collection::vec("[ab_.'s\t \n\u{a0}é]{0,80}", 0..4), w in 1_usize..6,
        ) {
            let file = |(i, text): (usize, &String)| SourceFile {
                path: format!("r/{i}.py"), text: text.clone(), same_as: i as u32,
            };
            let files = texts.iter().enumerate().map(file).collect();
            let shape = WindowShape { window_size: w, ..WindowShape::default() };
            let windows = RepoWindows::cut(Repository { name: "r".into(), files }, shape);
            let p50k = P50k::new();
            let sets = TokenSets::of_windows(&windows, &p50k);
            prop_assert_eq!(sets.len(), windows.len());
            for window in 0..windows.len() {
                let ids: std::collections::BTreeSet<u32> =
                    p50k.encode(windows.text(window)).into_iter().map(u32::from).collect();
                prop_assert_eq!(sets.get(window), ids.into_iter().collect::<Vec<_>>());
            }
        }
    }
}
