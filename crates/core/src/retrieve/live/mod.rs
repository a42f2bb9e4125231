//! A repository during editing. Searches give the same results as a search of all its current files, without indexing all files
//! again.
//!
//! Its fragments are stored in [layers](Layer). The first layer has all files in the state in which the index was built. A
//! later layer has files that changed since, and replaces these files in the layers before it. A change creates a new layer of
//! the changed file and of the smaller layers after the first, so that the cost of a change depends on the size of its file.
//! Each query searches all layers and merges the results in the order in which a search of one index of all files would return
//! them:
//!
//! - A window whose text is also in an earlier layer is found in that layer, with the places of both.
//! - Equal scores are ordered by the files' paths and lines, or by their distance from the query's file.
//!
//! [`Snapshot`]s are immutable, so that a search never waits for a change.

mod excerpt;
mod layer;
mod search;
#[cfg(test)]
mod tests;

pub use layer::{Layer, LiveFile};
pub use search::{LiveHits, LiveScratch};

use std::sync::Arc;

use foldhash::HashMap;

use super::rank::Ranker;
use super::search::SearchSettings;
use super::visibility::{RankLimits, Ties, Visibility};
use crate::repository::fragment::{Cut, FragmentFile, FragmentPlace};

/// A layer after the first is merged with a new one unless it has more than this many times the new layer's lines. Any layer is
/// merged if most of its lines have been replaced.
const SHARE: usize = 2;
/// Maximum number of lines of a layer that is always merged.
const SMALL: usize = 4096;

/// Fragments of a repository at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    settings: Arc<SearchSettings>,
    /// Layers, oldest first.
    views: Vec<View>,
}

/// A layer, and the changes to its files since.
#[derive(Debug, Clone)]
struct View {
    layer: Arc<Layer>,
    /// Whether each file was replaced by a later layer, or removed.
    replaced: Vec<bool>,
    /// Rank of each file among all current files, by path.
    rank: Vec<u32>,
    shared: Arc<SharedWindows>,
}

/// Windows of a layer that an earlier layer also has.
#[derive(Debug, Default)]
struct SharedWindows {
    /// Whether each window is in an earlier layer; empty if none is.
    is_elsewhere: Vec<bool>,
    /// Window in this layer, by earlier layer and window in it.
    here: HashMap<(u32, u32), u32>,
}

/// A place in one of the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LayerPlace {
    layer: u32,
    place: FragmentPlace,
}

impl Snapshot {
    /// Returns the reason why a search with these settings cannot be kept up to date; `None` if it can.
    pub fn refusal(settings: &SearchSettings) -> Option<String> {
        let is_plain =
            |limits: RankLimits, ties| limits == RankLimits::default() && ties == Ties::Nearest;
        match settings.visibility {
            _ if settings.ranker != Ranker::Jaccard => {
                Some(format!("ranker {} is not kept up to date; known: jaccard", settings.ranker))
            }
            Visibility::OtherFiles { limits, ties } if !is_plain(limits, ties) => Some(
                "bounds on files and chunks, and the reference's order of ties, are not kept up to date".into(),
            ),
            _ => None,
        }
    }

    /// Creates a snapshot of one layer.
    pub fn new(base: Layer, settings: SearchSettings) -> Self {
        base.prepare();
        let view = View {
            replaced: vec![false; base.fragments.files.len()],
            rank: Vec::new(),
            shared: Arc::default(),
            layer: Arc::new(base),
        };
        let mut snapshot = Self { settings: Arc::new(settings), views: vec![view] };
        snapshot.rank();
        snapshot
    }

    /// Returns a snapshot with the files that changed or are new, and without the removed files.
    #[must_use]
    pub fn with(&self, changed: Vec<LiveFile>, removed: &[String]) -> Self {
        let mut next = self.clone();
        let changed_paths = changed.iter().map(|changed| &changed.file.path);
        for path in removed.iter().chain(changed_paths) {
            next.replace(path);
        }
        let mut files = changed;
        // A layer is dropped together with all layers above it, because these refer to its windows.
        while let Some(last) = next.views.last() {
            let [left, gone] = last.lines();
            let is_first = next.views.len() == 1;
            let is_merged = !files.is_empty() && !is_first;
            let new: usize = files.iter().map(|changed| changed.file.lines.count()).sum();
            if gone <= left && !(is_merged && (left <= SHARE * new || left <= SMALL)) {
                break;
            }
            let alive = last.alive().map(|(file, same)| LiveFile { file: file.clone(), same });
            files.extend(alive);
            next.views.pop();
        }
        let like = &self.views[0].layer.fragments;
        if next.views.is_empty() {
            next =
                Self::new(Layer::of_files(files, like, &self.settings), (*self.settings).clone());
        } else if !files.is_empty() {
            next.push(Arc::new(Layer::of_files(files, like, &self.settings)));
        }
        next.rank();
        next
    }

    /// Returns a snapshot with the unsaved text of a file in place of the saved one; `before` is the result for an earlier text
    /// of the file.
    #[must_use]
    pub fn with_open(&self, file: LiveFile, before: Option<&Self>) -> Self {
        let mut next = self.clone();
        let rank = next.rank_of(&file.file.path);
        next.replace(&file.file.path);
        let like = &self.views[0].layer.fragments;
        let before = before.and_then(|before| before.views.last()).map(|view| &*view.layer);
        let layer = Layer::of_edited(file, before, like, &self.settings);
        next.push(Arc::new(layer));
        if let Some(last) = next.views.last_mut() {
            last.rank = vec![rank];
        }
        next
    }

    /// Marks a file in all layers as replaced or removed.
    fn replace(&mut self, path: &str) {
        for view in &mut self.views {
            if let Some(file) = view.layer.fragments.file_index(path) {
                view.replaced[file] = true;
            }
        }
    }

    /// Adds a layer on top.
    fn push(&mut self, layer: Arc<Layer>) {
        let shared = match layer.fragments.cut {
            Cut::Windows(_) => self.find_shared(&layer),
            Cut::Chunks(_) => SharedWindows::default(),
        };
        let files = layer.fragments.files.len();
        self.views.push(View {
            layer,
            replaced: vec![false; files],
            rank: Vec::new(),
            shared: Arc::new(shared),
        });
    }

    /// Returns the windows of a new layer that an earlier layer also has.
    fn find_shared(&self, layer: &Layer) -> SharedWindows {
        let mut shared = SharedWindows::default();
        for window in 0..layer.fragments.len() {
            let text = layer.fragments.text(window);
            let earlier = self.views.iter().map(|view| view.layer.find(text));
            let found = (0..).zip(earlier).find_map(|(at, found)| Some((at, found?)));
            if let Some(place) = found {
                shared.is_elsewhere.resize(layer.fragments.len(), false);
                shared.is_elsewhere[window] = true;
                shared.here.insert(place, window as u32);
            }
        }
        shared
    }

    /// Ranks the current files by path, with room for one more file between any two.
    fn rank(&mut self) {
        let mut files: Vec<(&str, usize, usize)> = Vec::new();
        for (at, view) in self.views.iter().enumerate() {
            let all = view.layer.fragments.files.iter().enumerate();
            let there = all.filter(|(file, _)| !view.replaced[*file]);
            files.extend(there.map(|(number, file)| (&*file.path, at, number)));
        }
        if self.views.len() > 1 {
            files.sort_unstable();
        }
        let places: Vec<(usize, usize)> = files.iter().map(|(_, at, file)| (*at, *file)).collect();
        for view in &mut self.views {
            view.rank = vec![0; view.layer.fragments.files.len()];
        }
        for (rank, (at, file)) in (1..).zip(places) {
            self.views[at].rank[file] = 2 * rank;
        }
    }

    /// Returns the rank of a path; between the ranks of its neighbours if no file has the path.
    fn rank_of(&self, path: &str) -> u32 {
        let mut before = 0;
        for view in &self.views {
            let files = &view.layer.fragments.files;
            let end = files.partition_point(|file| &*file.path <= path);
            let last = (0..end).rev().find(|file| !view.replaced[*file]);
            match last {
                Some(file) if files[file].path == path => return view.rank[file],
                Some(file) => before = before.max(view.rank[file]),
                None => {}
            }
        }
        before + 1
    }

    /// Returns a current file and its identity on disk.
    pub fn file(&self, path: &str) -> Option<(&FragmentFile, u64)> {
        let (at, file) = self.find(path)?;
        let layer = &self.views[at as usize].layer;
        Some((&layer.fragments.files[file as usize], layer.same[file as usize]))
    }

    /// Returns the layer and the number of a current file.
    fn find(&self, path: &str) -> Option<(u32, u32)> {
        self.views.iter().enumerate().rev().find_map(|(at, view)| {
            let file = view.layer.fragments.file_index(path)?;
            (!view.replaced[file]).then_some((at as u32, file as u32))
        })
    }

    /// Returns the current files, in no particular order.
    pub fn files(&self) -> impl Iterator<Item = (&FragmentFile, u64)> {
        self.views.iter().flat_map(View::alive)
    }

    /// Returns true if a file has several names.
    pub fn has_links(&self) -> bool {
        let mut seen = foldhash::HashSet::default();
        self.files().any(|(_, same)| !seen.insert(same))
    }

    /// Returns the number of fragments in all layers, including replaced ones.
    pub fn fragments(&self) -> usize {
        self.views.iter().map(|view| view.layer.fragments.len()).sum()
    }

    /// Returns the number of layers, and the bytes of their indexes.
    pub fn size(&self) -> (usize, usize) {
        (self.views.len(), self.views.iter().map(|view| view.layer.bytes()).sum())
    }

    /// Returns the settings of searches.
    pub fn settings(&self) -> &SearchSettings {
        &self.settings
    }
}

impl View {
    /// Returns the number of lines in current files, and in replaced files.
    fn lines(&self) -> [usize; 2] {
        let mut lines = [0; 2];
        for ((file, _), replaced) in self.layer.files().zip(&self.replaced) {
            lines[usize::from(*replaced)] += file.lines.count();
        }
        lines
    }

    /// Returns the files that were not replaced.
    fn alive(&self) -> impl Iterator<Item = (&FragmentFile, u64)> {
        let replaced = self.replaced.iter();
        self.layer.files().zip(replaced).filter(|(_, replaced)| !**replaced).map(|(file, _)| file)
    }
}
