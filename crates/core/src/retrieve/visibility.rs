//! Visibility: which fragments a query may see, and which of them comes first where scores are equal.

use std::collections::HashMap;

use repoformer_text::named;
use serde::{Deserialize, Serialize};

use super::query::Query;
use crate::repository::fragment::{FragmentPlace, RepoFragments};
use crate::task::Task;

/// A fragment that a query does not see.
const UNSEEN: u32 = u32::MAX;

/// Which fragments a query may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// All but those that lie in the hole's file behind the prompt's start (RepoCoder). The later fragment wins ties.
    Guarded(HoleGuard),
    /// Those of other files, the nearest files first (Repoformer).
    OtherFiles {
        /// Bounds on what is seen.
        limits: RankLimits,
        /// Order of equal scores.
        ties: Ties,
    },
}

impl Visibility {
    /// Names and values of what it consists of.
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

    /// Guard of the hole, the strict one where other files alone are seen.
    pub fn guard(self) -> HoleGuard {
        match self {
            Self::Guarded(guard) => guard,
            Self::OtherFiles { .. } => HoleGuard::Strict,
        }
    }

    /// Whether texts are sorted apart from names.
    pub fn sorts_texts_apart(self) -> bool {
        matches!(self, Self::OtherFiles { ties: Ties::Reference, .. })
    }
}

/// How far a hole is kept out of its own prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum HoleGuard {
    /// No line at or after the hole, and no line that the prompt already shows, is ever used: places are judged one
    /// by one, only the allowed ones are named and extended, extension stops at the prompt's start, and another
    /// name (a link) of the hole's file is the hole's file. A copy with the same content is another file: duplicated
    /// code is part of what retrieval finds.
    #[default]
    Strict,
    /// As the reference program: a window with one allowed place is used with all its places, and extended from the
    /// first, allowed or not — which prints the hole itself in a few tasks of a hundred.
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
    /// The fragments that it is a hole among.
    pub(super) fragments: &'a RepoFragments,
    guard: HoleGuard,
    /// The hole's file; `None` where the repository does not hold it.
    file: Option<u32>,
    /// First line that the prompt shows.
    context_start: u32,
}

impl<'a> HoleView<'a> {
    /// The hole of a task.
    pub fn for_task(task: &Task, fragments: &'a RepoFragments, guard: HoleGuard) -> Self {
        Self::new(&task.path, task.context_start, fragments, guard)
    }

    /// The hole that a query was cut for.
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

    /// Whether a place lies in the hole's own file.
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

    /// Whether a place is in another file, or ends where the prompt starts or before.
    #[inline]
    pub fn allows_place(&self, place: FragmentPlace) -> bool {
        place.end <= self.context_start || !self.is_own_file(place)
    }

    /// Whether a fragment may be retrieved: one of its places is allowed.
    #[inline]
    pub fn allows(&self, fragment: u32) -> bool {
        self.fragments.places(fragment as usize).any(|place| self.allows_place(place))
    }

    /// The places of a fragment that a prompt names, the first of which it extends.
    pub fn named_places(&self, fragment: u32) -> Vec<FragmentPlace> {
        let places = self.fragments.places(fragment as usize);
        match self.guard {
            HoleGuard::Reference => places.collect(),
            HoleGuard::Strict => places.filter(|place| self.allows_place(*place)).collect(),
        }
    }

    /// The first of a fragment's named places, its lines' source.
    #[inline]
    pub fn first_named_place(&self, fragment: u32) -> FragmentPlace {
        for place in self.fragments.places(fragment as usize) {
            if self.guard == HoleGuard::Reference || self.allows_place(place) {
                return place;
            }
        }
        self.fragments.first_place(fragment as usize)
    }

    /// The line of a place's file at which extension stops.
    pub fn last_line(&self, place: FragmentPlace) -> u32 {
        let count = self.fragments.files[place.file as usize].lines.count() as u32;
        if self.guard == HoleGuard::Strict && self.is_own_file(place) {
            count.min(self.context_start)
        } else {
            count
        }
    }
}

/// How far apart two files are: the separators in both paths, once their common folders are taken off.
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
    // A file is no folder of another.
    let shared = shared.min(folders(one)).min(folders(other));
    folders(one) + folders(other) - 2 * shared
}

/// Bounds on what is ranked, which the released program has and the default has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankLimits {
    /// Files, the nearest first.
    pub files: usize,
    /// Chunks of them, in their order.
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
    /// The nearer file first, then the file's path, then the earlier chunk.
    #[default]
    Nearest,
    /// As the released program, which sorts scores with names and scores with texts, each on its own: the greater name
    /// (`p|9` before `p|10`), and beside it whatever text comes at that place by the greater text.
    Reference,
}

named! {
    Ties, "ties":
    Nearest = "nearest",
    Reference = "reference",
}

/// Works out what the queries of a repository see.
#[derive(Debug)]
pub struct View<'a> {
    fragments: &'a RepoFragments,
    visibility: Visibility,
    /// `first[f]..first[f + 1]` are the fragments that occur first in file f.
    first: Vec<u32>,
    /// Rank of each chunk by its name and by its text, the greater first, where ties follow the reference.
    reference: Option<(Vec<u32>, Vec<u32>)>,
}

/// Fragments that a query sees: for each its place among equals, or [`u32::MAX`] where it is not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleFragments {
    /// The place of its name.
    pub priority: Vec<u32>,
    /// The place of its text, where that is sorted on its own.
    pub text_priority: Option<Vec<u32>>,
    /// Number of fragments seen.
    pub count: usize,
}

impl<'a> View<'a> {
    /// View of a repository's fragments.
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
        // A file without fragments ends where the one before it does.
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

    /// Queries with equal keys see the same fragments.
    pub fn key<'q>(&self, query: &'q Query) -> (&'q str, u32) {
        match self.visibility {
            Visibility::Guarded(_) => (&query.path, query.context_start),
            Visibility::OtherFiles { .. } => (&query.path, 0),
        }
    }

    /// Fragments that a query sees.
    pub fn of_query(&self, query: &Query) -> VisibleFragments {
        match self.visibility {
            Visibility::Guarded(guard) => {
                let hole = HoleView::of_query(query, self.fragments, guard);
                let count = self.fragments.len() as u32;
                let place = |fragment| match hole.allows(fragment) {
                    true => count - 1 - fragment,
                    false => UNSEEN,
                };
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

    /// Fragments of every file but this one, links to it included.
    fn other_files(&self, path: &str, limits: RankLimits) -> VisibleFragments {
        let files = &self.fragments.files;
        let own = self.fragments.file_index(path).map(|file| file as u32);
        let same = own.map(|file| files[file as usize].same_as);
        // The released program knows no links: another name is another file.
        let is_own = |file: u32| match self.reference {
            Some(_) => own == Some(file),
            None => Some(files[file as usize].same_as) == same,
        };
        let mut others: Vec<u32> = (0..files.len() as u32).filter(|file| !is_own(*file)).collect();
        let distances = self.distances(path);
        // Files lie in the order of their paths already, and the sort keeps it.
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
            text_priority = Some(masked(by_text, &priority));
            priority = masked(by_name, &priority);
        }
        VisibleFragments { priority, text_priority, count: count as usize }
    }

    /// The distance of every file; those of one folder share it.
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

/// The rank of each of so many things, the greatest key first.
fn descending<'k>(count: usize, key: impl Fn(usize) -> &'k str) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    order.sort_by(|a, b| key(*b as usize).cmp(key(*a as usize)));
    let mut ranks = vec![0; count];
    for (rank, thing) in (0..).zip(order) {
        ranks[thing as usize] = rank;
    }
    ranks
}

/// The ranks of what is seen.
fn masked(ranks: &[u32], seen: &[u32]) -> Vec<u32> {
    let pairs = ranks.iter().zip(seen);
    pairs.map(|(rank, seen)| if *seen == UNSEEN { UNSEEN } else { *rank }).collect()
}
