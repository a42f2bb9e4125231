//! Results brought up to date: after a few files of a repository changed, only their windows are compared with the
//! queries, and only queries that lost a window are searched for anew. The results are those of a search from scratch.

use rayon::prelude::*;

use super::{Found, Hit, Hole, Index, Retrieval, Scratch};
use crate::repository::window::{Change, RepoWindows};
use crate::retrieve::query::{QueryWindow, QueryWindows};
use crate::retrieve::vector::{TokenSet, TokenSets};

/// Up to this many queries, comparing each with every window costs less than an index.
const FEW: usize = 12;

impl Retrieval {
    /// The results for windows and queries as they are now, where these are the results for the same queries before the
    /// `change`, and the numbers of the queries that lost a window, which [`search_again`](Self::search_again) must
    /// complete. `fresh` are the vectors of the new windows alone, in their order.
    ///
    /// The best among the windows that stayed are known: those of before, as long as all of them stayed, in the same
    /// order, since staying windows keep theirs.
    pub fn changed(
        &self,
        change: &Change,
        windows: &RepoWindows,
        fresh: &TokenSets,
        (queries, query_vectors): (&QueryWindows, &TokenSets),
    ) -> (Self, Vec<usize>) {
        let new: Vec<u32> = change.new_windows(windows.len()).collect();
        let work = self.found.par_iter().zip(&queries.windows).enumerate();
        let found = work.map(|(i, (found, query))| {
            let kept = kept(&found.hits, change)?;
            let sets = new.iter().copied().zip(fresh.iter());
            Some(self.best((windows, query), kept, query_vectors.get(i), sets))
        });
        let hits: Vec<Option<Vec<Hit>>> = found.collect();
        let numbered = hits.iter().enumerate();
        let lost = numbered.filter(|(_, hits)| hits.is_none()).map(|(i, _)| i);
        let lost = lost.collect();
        let with = |(found, hits): (&Found, Option<Vec<Hit>>)| Found {
            hits: hits.unwrap_or_default(),
            ..*found
        };
        let changed = Self {
            repository: self.repository.clone(),
            windows: windows.len() as u32,
            found: self.found.iter().zip(hits).map(with).collect(),
            ..*self
        };
        (changed, lost)
    }

    /// Searches anew with the queries of these numbers.
    pub fn search_again(
        &mut self,
        lost: &[usize],
        windows: &RepoWindows,
        vectors: &TokenSets,
        (queries, query_vectors): (&QueryWindows, &TokenSets),
    ) {
        let index = (lost.len() > FEW).then(|| Index::new(vectors));
        let k = self.top_k as usize;
        let search = |scratch: &mut Scratch, &i: &usize| {
            let (query, set) = (&queries.windows[i], query_vectors.get(i));
            let hole = Hole::of_query(query, windows, self.guard);
            match &index {
                Some(index) => index.search(set, k, |window| hole.allows(window), scratch),
                None => self.best((windows, query), Vec::new(), set, (0..).zip(vectors.iter())),
            }
        };
        let hits: Vec<Vec<Hit>> = lost.par_iter().map_init(Scratch::default, search).collect();
        for (i, hits) in lost.iter().zip(hits) {
            self.found[*i].hits = hits;
        }
    }

    /// The best of hits that are in order and of more windows, each compared with the query.
    fn best<'a>(
        &self,
        (windows, query): (&RepoWindows, &QueryWindow),
        mut hits: Vec<Hit>,
        query_set: TokenSet<'_>,
        sets: impl Iterator<Item = (u32, TokenSet<'a>)>,
    ) -> Vec<Hit> {
        let (k, marked) = (self.top_k as usize, Marked::new(query_set));
        let hole = Hole::of_query(query, windows, self.guard);
        for (window, set) in sets {
            let overlap = marked.overlap(set);
            let hit = Hit {
                window,
                overlap,
                union: (query_set.len() + set.len()) as u32 - overlap,
            };
            let full = hits.len() >= k;
            let worse = full && hits.last().is_none_or(|worst| worst.ranks_before(&hit));
            if worse || !hole.allows(window) {
                continue;
            }
            hits.truncate(k - usize::from(full));
            let at = hits.partition_point(|kept| kept.ranks_before(&hit));
            hits.insert(at, hit);
        }
        hits
    }
}

/// The hits by their numbers now; `None` if one is gone.
fn kept(hits: &[Hit], change: &Change) -> Option<Vec<Hit>> {
    let moved = |hit: &Hit| {
        let window = change.kept(hit.window)?;
        Some(Hit { window, ..*hit })
    };
    hits.iter().map(moved).collect()
}

/// The tokens of a query, a bit each.
struct Marked(Vec<u64>);

impl Marked {
    fn new(query: TokenSet<'_>) -> Self {
        let last = query.iter().max().unwrap_or(0);
        let mut bits = vec![0; last as usize / 64 + 1];
        for id in query.iter() {
            bits[id as usize / 64] |= 1 << (id % 64);
        }
        Self(bits)
    }

    /// How many tokens of a set are marked.
    fn overlap(&self, set: TokenSet<'_>) -> u32 {
        match set {
            TokenSet::Narrow(ids) => ids.iter().map(|id| self.bit(u32::from(*id))).sum(),
            TokenSet::Wide(ids) => ids.iter().map(|id| self.bit(*id)).sum(),
        }
    }

    fn bit(&self, id: u32) -> u32 {
        let word = self.0.get(id as usize / 64).copied().unwrap_or(0);
        (word >> (id % 64) & 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::window::{WindowFile, WindowShape};
    use crate::retrieve::HoleGuard;
    use crate::retrieve::query::{Mode, QueryWindow};
    use crate::store::artifact::{self, Identity, Payload, write_columns};
    use crate::text::tokenize::P50k;
    use proptest::prelude::*;

    fn cut(texts: &std::collections::BTreeMap<u8, String>) -> RepoWindows {
        let file = |(n, (name, text)): (usize, (&u8, &String))| {
            WindowFile::new(format!("r/{name}.py"), n as u32, text.clone())
        };
        let files = texts.iter().enumerate().map(file).collect();
        let shape = WindowShape {
            window_size: 3,
            ..WindowShape::default()
        };
        RepoWindows::cut_files("r".into(), files, shape)
    }

    fn queries(texts: &[(u8, String)]) -> QueryWindows {
        let query = |(row, (file, text)): (usize, &(u8, String))| QueryWindow {
            row: row as u32,
            sample: 0,
            task_id: "t".into(),
            path: format!("r/{file}.py"),
            line_no: 4,
            context_start: 2,
            start: 2,
            end: 4,
            text: text.clone(),
        };
        QueryWindows {
            repository: "r".into(),
            mode: Mode::LeftContext,
            shape: WindowShape::default(),
            windows: texts.iter().enumerate().map(query).collect(),
        }
    }

    proptest! {
        #[test]
        fn equals_a_search_from_scratch(
            before in prop::collection::btree_map(0_u8..8, "[a-e \n]{0,40}", 0..7),
            after in prop::collection::btree_map(0_u8..8, "[a-e \n]{0,40}", 0..4),
            dropped in 0_u8..12, k in 1_usize..6, reference: bool,
            asked in prop::collection::vec((0_u8..8, "[a-e \n]{0,12}"), 1..20),
        ) {
            let p50k = P50k::new();
            let old = cut(&before);
            let mut texts = before;
            texts.extend(after);
            texts.remove(&dropped);
            let new = cut(&texts);
            let queries = queries(&asked);
            let query_vectors = TokenSets::of_queries(&queries, &p50k);
            let guard = if reference { HoleGuard::Reference } else { HoleGuard::Strict };
            let search = |windows: &RepoWindows, vectors: &TokenSets| {
                Retrieval::search(windows, vectors, &queries, &query_vectors, (k, guard))
            };
            let (vectors, wanted_vectors) = (TokenSets::of_windows(&old, &p50k), TokenSets::of_windows(&new, &p50k));
            // A hole's file that comes or goes is another query.
            let stays = |path: &str| old.file_index(path).is_some() == new.file_index(path).is_some();
            prop_assume!(queries.windows.iter().all(|query| stays(&query.path)));
            let change = Change::between(("a", &old), ("b", &new));
            let numbers: Vec<u32> = change.new_windows(new.len()).collect();
            let fresh = TokenSets::of_these(&new, &numbers, &p50k);
            let dir = tempfile::tempdir().unwrap();
            let (path, identity) = (dir.path().join("v"), Identity::new(TokenSets::KIND));
            let put_together = vectors.changed(&change, &fresh).unwrap();
            write_columns(&path, &identity, put_together.len(), &put_together.columns()).unwrap();
            prop_assert_eq!(&artifact::read::<TokenSets>(&path).unwrap().1, &wanted_vectors);
            let both = (&queries, &query_vectors);
            let (mut changed, lost) = search(&old, &vectors).changed(&change, &new, &fresh, both);
            changed.search_again(&lost, &new, &wanted_vectors, both);
            prop_assert_eq!(changed, search(&new, &wanted_vectors));
        }
    }
}
