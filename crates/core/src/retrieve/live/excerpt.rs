//! Excerpts: the retrieved fragments as a small repository, from which prompts are built as from a whole one.

use foldhash::HashMap;

use super::search::LayerHit;
use super::{LayerPlace, LiveHits, Snapshot};
use crate::repository::fragment::{Cut, FragmentFile, FragmentPlace, RepoFragments};
use crate::retrieve::query::Query;
use crate::retrieve::search::{Hit, RankedFragments};

/// Number of a file in the excerpt, by its layer and its number in the layer.
type Numbers = HashMap<(u32, u32), u32>;

impl Snapshot {
    /// Returns the retrieved fragments, with all places and files that a prompt may show or name.
    pub(super) fn excerpt(&self, query: &Query, hits: &[LayerHit]) -> LiveHits {
        let places: Vec<Vec<LayerPlace>> = hits.iter().map(|hit| self.places(*hit)).collect();
        let all = places.iter().flatten().map(|place| (place.layer, place.place.file));
        let (files, numbers) = self.files_of(all.chain(self.find(&query.path)));
        let like = &self.views[0].layer.fragments;
        let (repository, kind) = (like.repository.clone(), (like.language, like.cut));
        let (excerpt, of_hit) = match like.cut {
            Cut::Windows(_) => {
                let (fragments, of_hit) = windows(&places, &numbers);
                let fragments = fragments.iter().map(Vec::as_slice);
                (RepoFragments::of_places(repository, files, kind, fragments), of_hit)
            }
            Cut::Chunks(_) => {
                let fragments = self.chunks(&numbers);
                let fragments = fragments.iter().map(std::slice::from_ref);
                let excerpt = RepoFragments::of_places(repository, files, kind, fragments);
                let number = |place: &LayerPlace| {
                    let file = numbers[&(place.layer, place.place.file)];
                    excerpt.find_chunk(file, place.place.number).unwrap_or_default()
                };
                let of_hit = places.iter().map(|places| number(&places[0])).collect();
                (excerpt, of_hit)
            }
        };
        let hits = hits.iter().zip(of_hit).map(|(hit, fragment): (&LayerHit, u32)| Hit {
            fragment,
            text_of: fragment,
            score: hit.score,
            definition: None,
        });
        let found = RankedFragments {
            row: query.row,
            sample: query.sample,
            seen: None,
            hits: hits.collect(),
        };
        LiveHits { excerpt, found }
    }

    /// Returns the places of a fragment, in order; at least one.
    fn places(&self, hit: LayerHit) -> Vec<LayerPlace> {
        let mut places = Vec::new();
        self.each_place(hit.layer, hit.fragment, |place| {
            places.push(place);
            true
        });
        places.sort_by_key(|place| self.order(*place));
        places
    }

    /// Returns the files in the order of their paths, and their numbers in this order.
    fn files_of(&self, files: impl Iterator<Item = (u32, u32)>) -> (Vec<FragmentFile>, Numbers) {
        let rank = |(at, file): &(u32, u32)| self.views[*at as usize].rank[*file as usize];
        let mut files: Vec<(u32, u32)> = files.collect();
        files.sort_unstable_by_key(rank);
        files.dedup();
        let same = |(at, file): (u32, u32)| self.views[at as usize].layer.same[file as usize];
        let mut first: HashMap<u64, u32> = HashMap::default();
        let taken = (0..).zip(&files).map(|(number, file)| {
            let fragments = &self.views[file.0 as usize].layer.fragments;
            FragmentFile {
                same_as: *first.entry(same(*file)).or_insert(number),
                ..fragments.files[file.1 as usize].clone()
            }
        });
        let taken = taken.collect();
        (taken, files.into_iter().zip(0..).collect())
    }

    /// Returns all chunks of some files, in order.
    fn chunks(&self, numbers: &Numbers) -> Vec<FragmentPlace> {
        let mut files: Vec<_> = numbers.iter().collect();
        files.sort_unstable_by_key(|(_, number)| **number);
        let of_file = |((at, from), number): (&(u32, u32), &u32)| {
            let fragments = &self.views[*at as usize].layer.fragments;
            let file = *number;
            let chunks = fragments.of_file(*from);
            chunks.map(move |chunk| FragmentPlace { file, ..fragments.first_place(chunk as usize) })
        };
        files.into_iter().flat_map(of_file).collect()
    }
}

/// Returns the retrieved windows in first-seen order, with their places in the excerpt, and the number of each hit among them.
fn windows(places: &[Vec<LayerPlace>], numbers: &Numbers) -> (Vec<Vec<FragmentPlace>>, Vec<u32>) {
    let within = |place: &LayerPlace| FragmentPlace {
        file: numbers[&(place.layer, place.place.file)],
        ..place.place
    };
    let mut fragments: Vec<(Vec<FragmentPlace>, usize)> = (places.iter().enumerate())
        .map(|(hit, places)| (places.iter().map(within).collect(), hit))
        .collect();
    fragments.sort_by_key(|(places, _): &(Vec<FragmentPlace>, usize)| {
        (places[0].file, places[0].number)
    });
    let mut of_hit = vec![0; places.len()];
    for (fragment, (_, hit)) in (0..).zip(&fragments) {
        of_hit[*hit] = fragment;
    }
    (fragments.into_iter().map(|(places, _)| places).collect(), of_hit)
}
