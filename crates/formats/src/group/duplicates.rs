//! Repositories that repeat others, and the choice of which to keep.

use std::collections::BTreeMap;

use foldhash::HashSet;
use repoformer_text::named;
use serde::{Deserialize, Serialize};

use super::min_hash::{Signature, Signer, clusters};
use super::repositories::GroupedRepository;

/// Duplicates to drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dedup {
    /// None.
    None,
    /// Repositories with the same paths and texts.
    Exact,
    /// Repositories with the same paths and texts, and repositories with nearly the same texts.
    Near,
}

named! {
    Dedup, "duplicates":
    None = "none",
    Exact = "exact",
    Near = "near",
}

/// Facts about a repository that reveal duplicates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) stars: u64,
    pub(super) files: u64,
    pub(super) digest: String,
    /// Signature of all texts, in the order of their paths, separated by line ends; `None` if near duplicates are not sought,
    /// or if the texts are too short for a signature.
    signature: Option<Signature>,
}

impl Facts {
    pub(super) fn new(repository: &GroupedRepository, dedup: Dedup) -> Self {
        let sign = || {
            let mut signer = Signer::default();
            repository.files.iter().for_each(|(_, text)| signer.add(text));
            signer.finish()
        };
        Self {
            signature: if dedup == Dedup::Near { sign() } else { None },
            name: repository.name.clone(),
            stars: repository.stars,
            files: repository.files.len() as u64,
            digest: repository.digest(),
        }
    }

    /// Returns the order of preference: most stars, then most files, then first name.
    fn rank(&self) -> impl Ord + '_ {
        (std::cmp::Reverse(self.stars), std::cmp::Reverse(self.files), &self.name)
    }
}

/// Dropped repository or file, and its original or task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Duplicate {
    pub(super) repo_name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) filepath: Option<String>,
    pub(super) reason: Reason,
    pub(super) of: String,
}

/// Reason why a repository or file is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reason {
    /// Another repository has the same paths and texts.
    ExactDuplicate,
    /// Another repository has nearly the same texts.
    NearDuplicate,
    /// A task uses the repository, or the file contains its target.
    Contaminated,
}

/// Returns the repositories to drop, ordered by name.
pub(super) fn duplicates(mut all: Vec<Facts>, dedup: Dedup) -> Vec<Duplicate> {
    let mut dropped = Vec::new();
    if dedup == Dedup::None {
        return dropped;
    }
    let mut same: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, facts) in all.iter().enumerate() {
        same.entry(&facts.digest).or_default().push(place);
    }
    for group in same.into_values() {
        drop_all_but_one(&all, group, Reason::ExactDuplicate, &mut dropped);
    }
    if dedup == Dedup::Near {
        let gone: HashSet<&str> = dropped.iter().map(|one| &*one.repo_name).collect();
        let stays: Vec<bool> = all.iter().map(|facts| !gone.contains(&*facts.name)).collect();
        let (mut places, mut signatures) = (Vec::new(), Vec::new());
        for (place, facts) in all.iter_mut().enumerate().filter(|(place, _)| stays[*place]) {
            if let Some(signature) = facts.signature.take() {
                places.push(place);
                signatures.push(signature);
            }
        }
        for cluster in clusters(&signatures) {
            let group = cluster.into_iter().map(|number| places[number]).collect();
            drop_all_but_one(&all, group, Reason::NearDuplicate, &mut dropped);
        }
    }
    dropped.sort();
    dropped
}

fn drop_all_but_one(
    all: &[Facts],
    mut group: Vec<usize>,
    reason: Reason,
    dropped: &mut Vec<Duplicate>,
) {
    group.sort_by(|one, other| all[*one].rank().cmp(&all[*other].rank()));
    let Some((kept, others)) = group.split_first() else { return };
    dropped.extend(others.iter().map(|place| Duplicate {
        repo_name: all[*place].name.clone(),
        filepath: None,
        reason,
        of: all[*kept].name.clone(),
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
            signature: None,
        };
        let all = [
            facts("d/x", 1, 2, "1"),
            facts("c/x", 5, 2, "1"),
            facts("b/x", 5, 2, "1"),
            facts("a/y", 0, 1, "2"),
        ];
        let found = duplicates(all.to_vec(), Dedup::Exact);
        let found: Vec<_> = found.iter().map(|one| (&*one.repo_name, &*one.of)).collect();
        assert_eq!(found, [("c/x", "b/x"), ("d/x", "b/x")]);
        assert!(duplicates(all.to_vec(), Dedup::None).is_empty());
    }

    /// An exact duplicate names its original, whatever its cluster; a kept repository is named once.
    #[test]
    fn of_a_cluster_of_near_duplicates_one_stays() {
        let facts = |name: &str, stars, text: &str| {
            let grouped = GroupedRepository {
                name: name.into(),
                stars,
                files: vec![("a.py".into(), text.into())],
                ..GroupedRepository::default()
            };
            Facts::new(&grouped, Dedup::Near)
        };
        let text: String = (0..300).map(|n| format!("{:x} ", n * n * 7919)).collect();
        let all = vec![
            facts("a/x", 1, &text),
            facts("b/x", 2, &format!("{text} and a few words more")),
            facts("c/x", 0, &text),
            facts("d/short", 0, "a b c d"),
            facts("e/short", 0, "a b c e"),
        ];
        let found = duplicates(all.clone(), Dedup::Near);
        let found: Vec<_> =
            found.iter().map(|one| (&*one.repo_name, one.reason, &*one.of)).collect();
        let near = ("a/x", Reason::NearDuplicate, "b/x");
        assert_eq!(found, [near, ("c/x", Reason::ExactDuplicate, "a/x")]);
        assert_eq!(duplicates(all, Dedup::Exact).len(), 1);
    }
}
