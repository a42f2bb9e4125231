//! Repositories that are others again: which of them stays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::repositories::Grouped;
use crate::error::named;

/// Which duplicates are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dedup {
    /// None.
    None,
    /// Repositories with the same paths and texts.
    Exact,
}

named! {
    Dedup, "duplicates":
    None = "none",
    Exact = "exact",
}

/// A repository, as far as duplicates show by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) stars: u64,
    pub(super) files: u64,
    pub(super) digest: String,
}

impl Facts {
    pub(super) fn of(repository: &Grouped) -> Self {
        Self {
            name: repository.name.clone(),
            stars: repository.stars,
            files: repository.files.len() as u64,
            digest: repository.digest(),
        }
    }

    /// Order of what stays: the most stars, then the most files, then the first name.
    fn rank(&self) -> impl Ord + '_ {
        (std::cmp::Reverse(self.stars), std::cmp::Reverse(self.files), &self.name)
    }
}

/// Something that is dropped, and what it repeats.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Dropped {
    pub(super) repo_name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) filepath: Option<String>,
    pub(super) reason: Reason,
    pub(super) of: String,
}

/// Why something is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reason {
    /// Another repository has the same paths and texts.
    ExactDuplicate,
}

/// The repositories to drop, in the order of their names.
pub(super) fn duplicates(all: &[Facts], dedup: Dedup) -> Vec<Dropped> {
    let mut dropped = Vec::new();
    if dedup == Dedup::None {
        return dropped;
    }
    let mut same: BTreeMap<&str, Vec<&Facts>> = BTreeMap::new();
    for facts in all {
        same.entry(&facts.digest).or_default().push(facts);
    }
    for group in same.into_values() {
        drop_all_but_one(group, Reason::ExactDuplicate, &mut dropped);
    }
    dropped.sort();
    dropped
}

fn drop_all_but_one(mut group: Vec<&Facts>, reason: Reason, dropped: &mut Vec<Dropped>) {
    group.sort_by(|one, other| one.rank().cmp(&other.rank()));
    let Some((kept, others)) = group.split_first() else { return };
    dropped.extend(others.iter().map(|facts| Dropped {
        repo_name: facts.name.clone(),
        filepath: None,
        reason,
        of: kept.name.clone(),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_known_of_equal_repositories_stays() {
        let facts = |name: &str, stars, files, digest: &str| Facts {
            name: name.into(),
            stars,
            files,
            digest: digest.into(),
        };
        let all = [
            facts("d/x", 1, 2, "1"),
            facts("c/x", 5, 2, "1"),
            facts("b/x", 5, 2, "1"),
            facts("a/y", 0, 1, "2"),
        ];
        let found = duplicates(&all, Dedup::Exact);
        let found: Vec<_> = found.iter().map(|one| (&*one.repo_name, &*one.of)).collect();
        assert_eq!(found, [("c/x", "b/x"), ("d/x", "b/x")]);
        assert!(duplicates(&all, Dedup::None).is_empty());
    }
}
