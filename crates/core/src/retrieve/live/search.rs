//! Search of all layers.

use std::sync::Arc;

use repoformer_text::tokenize::PieceCache;

use super::layer::only;
use super::{LayerPlace, Snapshot, View};
use crate::repository::fragment::{FragmentPlace, RepoFragments};
use crate::retrieve::index::{self, SearchScratch, TokenSetIndex, WindowHit as Overlap, Windows};
use crate::retrieve::query::Query;
use crate::retrieve::search::{RankedFragments, Score};
use crate::retrieve::vector::{TokenSet, TokenSets};
use crate::retrieve::visibility::{HoleGuard, Visibility, distance};

/// Buffers of one thread, reused for all queries.
#[derive(Debug, Default)]
pub struct LiveScratch {
    index: SearchScratch,
    pieces: PieceCache,
}

/// Fragments retrieved for one query.
#[derive(Debug)]
pub struct LiveHits {
    /// The retrieved fragments and their files, together with the query's file, as a repository of only these files.
    pub excerpt: RepoFragments,
    /// The hits, with the numbers of the excerpt's fragments.
    pub found: RankedFragments,
}

/// A retrieved fragment.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayerHit {
    pub(super) layer: u32,
    pub(super) fragment: u32,
    pub(super) score: Score,
}

/// A hit in a layer, with the data that order it among all hits.
struct RankedHit {
    overlap: Overlap,
    key: u64,
    layer: u32,
}

impl Snapshot {
    /// Searches with a query of a current file.
    pub fn search(self: &Arc<Self>, query: &Query, scratch: &mut LiveScratch) -> LiveHits {
        let seen = Arc::new(QueryView { hole: self.hole(query), snapshot: Arc::clone(self) });
        let k = self.settings.top_k;
        let mut ranked = Vec::new();
        let mut size = 0;
        for (at, view) in (0..).zip(&self.views) {
            let LiveScratch { index: scratch, pieces } = &mut *scratch;
            let vocabulary = &self.settings.vocabulary;
            let sets = view.layer.set_of_query(&query.text, vocabulary, pieces);
            size = only(&sets).len() as u32;
            let file = view.layer.place_of(&query.path);
            let windows = LayerView { seen: Arc::clone(&seen), at, sets, k, file };
            let hits = index::search_together(windows, scratch);
            ranked.extend(hits.into_iter().map(|overlap| RankedHit {
                key: seen.key(at, overlap.window),
                overlap,
                layer: at,
            }));
        }
        ranked.sort_by(|a, b| {
            let product = |one: &RankedHit, other: &RankedHit| {
                u64::from(one.overlap.overlap) * u64::from(other.overlap.union.max(1))
            };
            product(b, a).cmp(&product(a, b)).then(b.key.cmp(&a.key))
        });
        ranked.truncate(k);
        let missing = k - ranked.len();
        if missing > 0 {
            seen.fill(missing, size, &mut ranked);
        }
        let by_value = matches!(self.settings.visibility, Visibility::OtherFiles { .. });
        let hits = ranked.iter().map(|RankedHit { overlap, layer, .. }| {
            let (overlap, union, window) = (overlap.overlap, overlap.union, overlap.window);
            let exact = Score::Jaccard { overlap, union };
            let score = match by_value {
                true if overlap == 0 => Score::Value(0.0),
                true => Score::Value(exact.value()),
                false => exact,
            };
            LayerHit { layer: *layer, fragment: window, score }
        });
        let hits: Vec<LayerHit> = hits.collect();
        self.excerpt(query, &hits)
    }

    fn hole(&self, query: &Query) -> LiveHole {
        let own = self.find(&query.path);
        let same = own.map(|(at, file)| self.views[at as usize].layer.same[file as usize]);
        LiveHole {
            path: query.path.clone(),
            own,
            same,
            context_start: query.context_start,
            visibility: self.settings.visibility,
        }
    }

    /// Calls `visit` with the current places of a fragment until `visit` returns false; the places in a layer are in order.
    pub(super) fn each_place(
        &self,
        layer: u32,
        fragment: u32,
        mut visit: impl FnMut(LayerPlace) -> bool,
    ) {
        let first = &self.views[layer as usize];
        if !first.each_place(layer, fragment, &mut visit) {
            return;
        }
        for (at, view) in (layer + 1..).zip(&self.views[layer as usize + 1..]) {
            let Some(here) = view.shared.here.get(&(layer, fragment)) else { continue };
            if !view.each_place(at, *here, &mut visit) {
                return;
            }
        }
    }

    /// Returns the rank of a place's file, and its line: the reference program's order.
    pub(super) fn order(&self, place: LayerPlace) -> (u32, u32) {
        let rank = &self.views[place.layer as usize].rank;
        (rank[place.place.file as usize], place.place.number)
    }

    /// Returns the first place of a fragment.
    fn first_place(&self, layer: u32, fragment: u32) -> Option<LayerPlace> {
        let mut first: Option<((u32, u32), LayerPlace)> = None;
        self.each_place(layer, fragment, |place| {
            let order = self.order(place);
            if first.is_none_or(|(known, _)| order < known) {
                first = Some((order, place));
            }
            true
        });
        first.map(|(_, place)| place)
    }

    pub(super) fn path(&self, place: LayerPlace) -> &str {
        let files = &self.views[place.layer as usize].layer.fragments.files;
        &files[place.place.file as usize].path
    }
}

impl View {
    /// Calls `visit` with the places of a fragment in this layer; returns true if `visit` always returned true.
    fn each_place(
        &self,
        at: u32,
        fragment: u32,
        visit: &mut impl FnMut(LayerPlace) -> bool,
    ) -> bool {
        let mut places = self.layer.fragments.places(fragment as usize);
        places.all(|place| {
            self.replaced[place.file as usize] || visit(LayerPlace { layer: at, place })
        })
    }
}

/// Hole of a query, among the layers.
struct LiveHole {
    path: String,
    /// Layer and number of the hole's file.
    own: Option<(u32, u32)>,
    same: Option<u64>,
    context_start: u32,
    visibility: Visibility,
}

/// Fragments as a query sees them.
struct QueryView {
    snapshot: Arc<Snapshot>,
    hole: LiveHole,
}

impl QueryView {
    fn is_own(&self, place: LayerPlace, guard: HoleGuard) -> bool {
        let LayerPlace { layer, place: FragmentPlace { file, .. } } = place;
        match guard {
            HoleGuard::Reference => self.hole.own == Some((layer, file)),
            HoleGuard::Strict => {
                let same = self.snapshot.views[layer as usize].layer.same[file as usize];
                self.hole.same == Some(same)
            }
        }
    }

    /// Returns true if a fragment of a layer may be retrieved.
    fn allows(&self, at: u32, fragment: u32) -> bool {
        let shared = &self.snapshot.views[at as usize].shared;
        if shared.is_elsewhere.get(fragment as usize) == Some(&true) {
            return false;
        }
        match self.hole.visibility {
            Visibility::Guarded(guard) => {
                let mut is_allowed = false;
                self.snapshot.each_place(at, fragment, |place| {
                    is_allowed =
                        place.place.end <= self.hole.context_start || !self.is_own(place, guard);
                    !is_allowed
                });
                is_allowed
            }
            // A fragment belongs to the file in which it occurs first.
            Visibility::OtherFiles { .. } => {
                let first = self.snapshot.first_place(at, fragment);
                first.is_some_and(|place| !self.is_own(place, HoleGuard::Strict))
            }
        }
    }

    /// Returns the key of a fragment among equally similar ones: the greater comes first.
    fn key(&self, at: u32, fragment: u32) -> u64 {
        let Some(first) = self.snapshot.first_place(at, fragment) else { return 0 };
        let (rank, number) = self.snapshot.order(first);
        match self.hole.visibility {
            Visibility::Guarded(_) => u64::from(rank) << 32 | u64::from(number),
            Visibility::OtherFiles { .. } => {
                let far = distance(self.snapshot.path(first), &self.hole.path).min(0xFFF) as u64;
                let place = far << 52 | u64::from(rank) << 26 | u64::from(number);
                u64::MAX - place
            }
        }
    }

    /// Adds fragments without a common term, the first in order.
    fn fill(&self, missing: usize, size: u32, ranked: &mut Vec<RankedHit>) {
        let mut kept: Vec<(u32, u32)> =
            ranked.iter().map(|one| (one.layer, one.overlap.window)).collect();
        kept.sort_unstable();
        let mut others = Vec::new();
        let views = &self.snapshot.views;
        for (at, view) in (0..).zip(views) {
            for window in 0..view.layer.fragments.len() as u32 {
                if kept.binary_search(&(at, window)).is_err() && self.allows(at, window) {
                    others.push((self.key(at, window), at, window));
                }
            }
        }
        others.sort_unstable_by(|a, b| b.cmp(a));
        for (key, layer, window) in others.into_iter().take(missing) {
            let terms = views[layer as usize].layer.terms_of(window);
            let overlap = Overlap { window, overlap: 0, union: size + terms };
            ranked.push(RankedHit { overlap, key, layer });
        }
    }
}

/// Fragments of a layer as a query sees them.
struct LayerView {
    seen: Arc<QueryView>,
    at: u32,
    /// Terms of the query, with the layer's numbers.
    sets: TokenSets,
    k: usize,
    /// File near which the search begins.
    file: u32,
}

impl index::Search for LayerView {
    fn index(&self) -> &TokenSetIndex {
        &self.seen.snapshot.views[self.at as usize].layer.index
    }

    fn query(&self) -> TokenSet<'_> {
        only(&self.sets)
    }

    fn k(&self) -> usize {
        self.k
    }

    fn is_before(&self, window: u32) -> bool {
        let fragments = &self.seen.snapshot.views[self.at as usize].layer.fragments;
        fragments.first_place(window as usize).file < self.file
    }
}

impl Windows for LayerView {
    fn allows(&self, window: u32) -> bool {
        self.seen.allows(self.at, window)
    }

    fn key(&self, window: u32) -> u64 {
        self.seen.key(self.at, window)
    }

    fn bound(&self, _: u32) -> u64 {
        u64::MAX
    }
}
