//! What a task sees of its repository: the chunks of other files, in an order that settles ties.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::repository::chunk::RepoChunks;

/// A chunk that a task does not see.
const UNSEEN: u32 = u32::MAX;

/// How far apart two files are: the separators in both paths, once their common folders are taken off.
///
/// ```
/// use repoformer::retrieve::chunks::distance;
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
pub struct Limits {
    /// Files, the nearest first.
    pub files: usize,
    /// Chunks of them, in their order.
    pub chunks: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            files: usize::MAX,
            chunks: usize::MAX,
        }
    }
}

/// In which order chunks of equal score come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Order {
    /// The nearer file first, then the file's path, then the earlier chunk.
    #[default]
    Nearest,
    /// As the released program, which sorts scores with names and scores with texts, each on its own: the greater name
    /// (`p|9` before `p|10`), and beside it whatever text comes at that place by the greater text.
    Reference,
}

impl std::str::FromStr for Order {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "nearest" => Ok(Self::Nearest),
            "reference" => Ok(Self::Reference),
            other => Err(format!("'{other}' is neither nearest nor reference")),
        }
    }
}

impl std::fmt::Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nearest => "nearest",
            Self::Reference => "reference",
        })
    }
}

/// Works out what the tasks of a repository see.
#[derive(Debug)]
pub struct Neighbourhood<'a> {
    chunks: &'a RepoChunks,
    limits: Limits,
    /// Rank of each chunk by its name and by its text, the greater first, where ties follow the reference.
    reference: Option<(Vec<u32>, Vec<u32>)>,
}

/// What the tasks of one file see: for each chunk its place among equals, or [`u32::MAX`] where it is not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The place of its name.
    pub priority: Vec<u32>,
    /// The place of its text, where that is sorted on its own.
    pub text_priority: Option<Vec<u32>>,
    /// How many chunks are seen.
    pub seen: usize,
}

impl<'a> Neighbourhood<'a> {
    /// Of a repository.
    pub fn new(chunks: &'a RepoChunks, limits: Limits, order: Order) -> Self {
        let reference = || {
            let names: Vec<String> = (0..chunks.len()).map(|chunk| chunks.name(chunk)).collect();
            let by_name = descending(chunks.len(), |chunk| &*names[chunk]);
            (
                by_name,
                descending(chunks.len(), |chunk| chunks.text(chunk)),
            )
        };
        Self {
            chunks,
            limits,
            reference: (order == Order::Reference).then(reference),
        }
    }

    /// What a task in this file sees: every file but this one, links to it included.
    pub fn sight(&self, path: &str) -> Sight {
        let own = self.chunks.file_index(path);
        let same = own.map(|file| self.chunks.files[file as usize].same_as);
        // The released program knows no links: another name is another file.
        let is_own = |file: u32| match self.reference {
            Some(_) => own == Some(file),
            None => Some(self.chunks.files[file as usize].same_as) == same,
        };
        let mut files: Vec<u32> = (0..self.chunks.files.len() as u32)
            .filter(|file| !is_own(*file))
            .collect();
        let distances = self.distances(path);
        // Files lie in the order of their paths already, and the sort keeps it.
        files.sort_by_key(|file| distances[*file as usize]);
        files.truncate(self.limits.files);
        let seen = files.iter().flat_map(|file| self.chunks.of_file(*file));
        let (mut priority, mut count) = (vec![UNSEEN; self.chunks.len()], 0);
        for chunk in seen.take(self.limits.chunks) {
            priority[chunk as usize] = count;
            count += 1;
        }
        let mut text_priority = None;
        if let Some((by_name, by_text)) = &self.reference {
            text_priority = Some(masked(by_text, &priority));
            priority = masked(by_name, &priority);
        }
        Sight {
            priority,
            text_priority,
            seen: count as usize,
        }
    }

    /// The distance of every file; those of one folder share it.
    fn distances(&self, path: &str) -> Vec<usize> {
        let mut of_folder: HashMap<&str, usize> = HashMap::new();
        let files = self.chunks.files.iter();
        files
            .map(|file| {
                let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
                *of_folder
                    .entry(folder)
                    .or_insert_with(|| distance(&file.path, path))
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
    pairs
        .map(|(rank, seen)| if *seen == UNSEEN { UNSEEN } else { *rank })
        .collect()
}
