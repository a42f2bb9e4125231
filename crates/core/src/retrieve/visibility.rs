//! Visibility: the fragments that a query may see, and their order if scores are equal.

use std::collections::HashMap;

use repoformer_text::named;
use serde::{Deserialize, Serialize};

use super::query::Query;
use crate::repository::fragment::{FragmentPlace, RepoFragments};
use crate::task::Task;

/// Rank of a fragment that a query does not see.
const UNSEEN: u32 = u32::MAX;

/// Fragments that a query may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// All fragments except those in the hole's file after the prompt's start (RepoCoder). The later fragment wins ties.
    Guarded(HoleGuard),
    /// The fragments of other files, the nearest files first (Repoformer).
    OtherFiles {
        /// Limits on the visible fragments.
        limits: RankLimits,
        /// Order of equal scores.
        ties: Ties,
    },
}

impl Visibility {
    /// Returns the names and values of the parameters.
    pub fn parameters(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Guarded(guard) => vec![("hole-guard", guard.to_string())],
            Self::OtherFiles { limits, ties } => vec![
                ("ties", ties.to_string()),
                ("max-files", limits.files.to_string()),
                ("max-chunks", limits.chunks.to_string()),
            ],
        }
    }

    /// Returns the guard of the hole: the strict one if only other files are visible.
    pub fn guard(self) -> HoleGuard {
        match self {
            Self::Guarded(guard) => guard,
            Self::OtherFiles { .. } => HoleGuard::Strict,
        }
    }

    /// Returns true if texts are sorted separately from names.
    pub fn sorts_texts_apart(self) -> bool {
        matches!(self, Self::OtherFiles { ties: Ties::Reference, .. })
    }
}

/// Guard that keeps a hole out of its own prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum HoleGuard {
    /// No line at or after the hole, and no line that the prompt already shows, is ever used. Each place is judged separately:
    /// only allowed places are named and extended, and extension stops at the prompt's start. Another name (a link) of the
    /// hole's file counts as the hole's file. A copy with the same content counts as another file: retrieval may return
    /// duplicated code.
    #[default]
    Strict,
    /// As in the reference program, a window with at least one allowed place is used with all its places, and is extended from
    /// the first place, allowed or not. In a few percent of the tasks, the prompt then shows the hole itself.
    Reference,
}

named! {
    HoleGuard, "hole guard":
    Strict = "strict",
    Reference = "reference",
}

/// A task's hole among the fragments of its repository.
#[derive(Debug, Clone, Copy)]
pub struct HoleView<'a> {
    /// Fragments of the hole's repository.
    pub(super) fragments: &'a RepoFragments,
    guard: HoleGuard,
    /// The hole's file; `None` if the repository does not contain it.
    file: Option<u32>,
    /// First line that the prompt shows.
    context_start: u32,
}

impl<'a> HoleView<'a> {
    /// Returns the view of a task's hole.
    pub fn for_task(task: &Task, fragments: &'a RepoFragments, guard: HoleGuard) -> Self {
        Self::new(&task.path, task.context_start, fragments, guard)
    }

    /// Returns the view of the hole that a query was made for.
    pub fn of_query(query: &Query, fragments: &'a RepoFragments, guard: HoleGuard) -> Self {
        Self::new(&query.path, query.context_start as usize, fragments, guard)
    }

    fn new(
        path: &str,
        context_start: usize,
        fragments: &'a RepoFragments,
        guard: HoleGuard,
    ) -> Self {
        let file = fragments.file_index(path).map(|index| index as u32);
        let context_start = context_start as u32;
        Self { fragments, guard, file, context_start }
    }

    /// Returns true if a place is in the hole's own file.
    #[inline]
    pub fn is_own_file(&self, place: FragmentPlace) -> bool {
        let Some(file) = self.file else { return false };
        match self.guard {
            HoleGuard::Reference => place.file == file,
            HoleGuard::Strict => {
                self.fragments.files[place.file as usize].same_as
                    == self.fragments.files[file as usize].same_as
            }
        }
    }

    /// Returns true if a place is in another file, or ends at or before the prompt's start.
    #[inline]
    pub fn allows_place(&self, place: FragmentPlace) -> bool {
        place.end <= self.context_start || !self.is_own_file(place)
    }

    /// Returns true if a fragment may be retrieved: one of its places is allowed.
    #[inline]
    pub fn allows(&self, fragment: u32) -> bool {
        self.fragments.places(fragment as usize).any(|place| self.allows_place(place))
    }

    /// Returns the places of a fragment that a prompt names; the prompt extends the first.
    pub fn named_places(&self, fragment: u32) -> Vec<FragmentPlace> {
        let places = self.fragments.places(fragment as usize);
        match self.guard {
            HoleGuard::Reference => places.collect(),
            HoleGuard::Strict => places.filter(|place| self.allows_place(*place)).collect(),
        }
    }

    /// Returns the first of a fragment's named places, from which its lines are taken.
    #[inline]
    pub fn first_named_place(&self, fragment: u32) -> FragmentPlace {
        for place in self.fragments.places(fragment as usize) {
            if self.guard == HoleGuard::Reference || self.allows_place(place) {
                return place;
            }
        }
        self.fragments.first_place(fragment as usize)
    }

    /// Returns the line of a place's file at which extension stops.
    pub fn last_line(&self, place: FragmentPlace) -> u32 {
        let count = self.fragments.files[place.file as usize].lines.count() as u32;
        if self.guard == HoleGuard::Strict && self.is_own_file(place) {
            count.min(self.context_start)
        } else {
            count
        }
    }
}

/// Returns the distance between two files: the number of separators in both paths after their common folders.
///
/// ```
/// use repoformer_core::retrieve::distance;
/// assert_eq!(distance("r/a.py", "r/b.py"), 0);
/// assert_eq!(distance("r/x/a.py", "r/b.py"), 1);
/// assert_eq!(distance("r/x/a.py", "r/y/z/b.py"), 3);
/// assert_eq!(distance("r/xy/a.py", "r/x/b.py"), 2, "folders count whole");
/// ```
pub fn distance(one: &str, other: &str) -> usize {
    let folders = |path: &str| path.matches('/').count();
    let common = one.split('/').zip(other.split('/'));
    let shared = common.take_while(|(a, b)| a == b).count();
    // A file name is never a common folder.
    let shared = shared.min(folders(one)).min(folders(other));
    folders(one) + folders(other) - 2 * shared
}

/// Limits on the fragments that are ranked. The released program has limits; by default there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankLimits {
    /// Maximum number of files, the nearest first.
    pub files: usize,
    /// Maximum number of chunks in these files, in order.
    pub chunks: usize,
}

impl Default for RankLimits {
    fn default() -> Self {
        Self { files: usize::MAX, chunks: usize::MAX }
    }
}

/// Order of chunks with equal scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Ties {
    /// Nearer files come first, then files in the order of their paths, then earlier chunks.
    #[default]
    Nearest,
    /// As in the released program, which sorts names and texts separately by score. Of equal scores, the greater name comes
    /// first (`p|9` before `p|10`), and so does the greater text. Name and text of the same rank are shown together.
    Reference,
}

named! {
    Ties, "ties":
    Nearest = "nearest",
    Reference = "reference",
}

/// The fragments of a repository as its queries see them.
#[derive(Debug)]
pub struct View<'a> {
    fragments: &'a RepoFragments,
    visibility: Visibility,
    /// `first[f]..first[f + 1]` are the fragments whose first place is in file f.
    first: Vec<u32>,
    /// Ranks of each chunk by its name and by its text, the greater first, if ties follow the reference program.
    reference: Option<(Vec<u32>, Vec<u32>)>,
}

/// Fragments that a query sees, with the rank of each among equal scores; [`u32::MAX`] if the query does not see the fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleFragments {
    /// Rank of each fragment, or of its name if texts are sorted separately.
    pub priority: Vec<u32>,
    /// Rank of each fragment's text, if texts are sorted separately.
    pub text_priority: Option<Vec<u32>>,
    /// Number of visible fragments.
    pub count: usize,
}

impl<'a> View<'a> {
    /// Returns the view of a repository's fragments.
    pub fn new(fragments: &'a RepoFragments, visibility: Visibility) -> Self {
        let reference = || {
            let names: Vec<String> =
                (0..fragments.len()).map(|chunk| fragments.name(chunk)).collect();
            let by_name = descending(fragments.len(), |chunk| &*names[chunk]);
            (by_name, descending(fragments.len(), |chunk| fragments.text(chunk)))
        };
        let mut first = vec![0; fragments.files.len() + 1];
        for fragment in 0..fragments.len() {
            first[fragments.first_place(fragment).file as usize + 1] = fragment as u32 + 1;
        }
        // A file without fragments ends at the same fragment as the file before it.
        for file in 1..first.len() {
            first[file] = first[file].max(first[file - 1]);
        }
        Self {
            fragments,
            visibility,
            first,
            reference: visibility.sorts_texts_apart().then(reference),
        }
    }

    /// Returns a key: queries with equal keys see the same fragments.
    pub fn key<'q>(&self, query: &'q Query) -> (&'q str, u32) {
        match self.visibility {
            Visibility::Guarded(_) => (&query.path, query.context_start),
            Visibility::OtherFiles { .. } => (&query.path, 0),
        }
    }

    /// Returns the fragments that a query sees.
    pub fn of_query(&self, query: &Query) -> VisibleFragments {
        match self.visibility {
            Visibility::Guarded(guard) => {
                let hole = HoleView::of_query(query, self.fragments, guard);
                let count = self.fragments.len() as u32;
                let place =
                    |fragment| if hole.allows(fragment) { count - 1 - fragment } else { UNSEEN };
                let priority: Vec<u32> = (0..count).map(place).collect();
                VisibleFragments {
                    count: priority.iter().filter(|place| **place != UNSEEN).count(),
                    priority,
                    text_priority: None,
                }
            }
            Visibility::OtherFiles { limits, .. } => self.other_files(&query.path, limits),
        }
    }

    /// Returns the fragments of every file except this one and, unless ties follow the reference program, the links to it.
    fn other_files(&self, path: &str, limits: RankLimits) -> VisibleFragments {
        let files = &self.fragments.files;
        let own = self.fragments.file_index(path).map(|file| file as u32);
        let same = own.map(|file| files[file as usize].same_as);
        // The released program does not resolve links: another name is another file.
        let is_own = |file: u32| match self.reference {
            Some(_) => own == Some(file),
            None => Some(files[file as usize].same_as) == same,
        };
        let mut others: Vec<u32> = (0..files.len() as u32).filter(|file| !is_own(*file)).collect();
        let distances = self.distances(path);
        // Files are already in the order of their paths, and the sort is stable.
        others.sort_by_key(|file| distances[*file as usize]);
        others.truncate(limits.files);
        let seen = others.iter().flat_map(|file| {
            let file = *file as usize;
            self.first[file]..self.first[file + 1]
        });
        let (mut priority, mut count) = (vec![UNSEEN; self.fragments.len()], 0);
        for fragment in seen.take(limits.chunks) {
            priority[fragment as usize] = count;
            count += 1;
        }
        let mut text_priority = None;
        if let Some((by_name, by_text)) = &self.reference {
            text_priority = Some(mask(by_text, &priority));
            priority = mask(by_name, &priority);
        }
        VisibleFragments { priority, text_priority, count: count as usize }
    }

    /// Returns the distance of every file, computed once per folder.
    fn distances(&self, path: &str) -> Vec<usize> {
        let mut of_folder: HashMap<&str, usize> = HashMap::new();
        let files = self.fragments.files.iter();
        files
            .map(|file| {
                let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
                *of_folder.entry(folder).or_insert_with(|| distance(&file.path, path))
            })
            .collect()
    }
}

/// Returns the rank of each item by its key, the greatest key first.
fn descending<'k>(count: usize, key: impl Fn(usize) -> &'k str) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    order.sort_by(|a, b| key(*b as usize).cmp(key(*a as usize)));
    let mut ranks = vec![0; count];
    for (rank, thing) in (0..).zip(order) {
        ranks[thing as usize] = rank;
    }
    ranks
}

/// Returns the ranks of the visible fragments.
fn mask(ranks: &[u32], seen: &[u32]) -> Vec<u32> {
    let pairs = ranks.iter().zip(seen);
    pairs.map(|(rank, seen)| if *seen == UNSEEN { UNSEEN } else { *rank }).collect()
}
