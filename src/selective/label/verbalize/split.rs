//! Which repository is for what: training, validation or test. No repository, and no instance, is for two.

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::selective::label::Label;

/// What a sequence is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Split {
    /// The model learns it.
    Train,
    /// Settings are chosen by it.
    Validation,
    /// The result is measured on it.
    Test,
}

impl Split {
    /// All, in the order of their names here.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    /// The name of its files, which is what Hugging Face `datasets` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

/// Shares of the repositories that are held out, between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proportions {
    /// For validation.
    pub validation: f64,
    /// For tests.
    pub test: f64,
}

impl Proportions {
    /// How many of so many repositories are for tests, and for validation.
    ///
    /// # Errors
    /// They leave none to train on.
    pub(super) fn of(&self, repositories: usize) -> Result<[usize; 2]> {
        let count = |share: f64| match share > 0.0 {
            true => ((share * repositories as f64).round() as usize).max(1),
            false => 0,
        };
        let (test, validation) = (count(self.test), count(self.validation));
        if test + validation < repositories {
            return Ok([test, validation]);
        }
        Err(Error::Parameter {
            name: "validation",
            reason: format!(
                "{validation} for validation and {test} for tests leave none of {} to train on; label more, or hold \
                 none out with --validation 0 --test 0",
                match repositories {
                    1 => "1 repository".into(),
                    n => format!("{n} repositories"),
                }
            ),
        })
    }

    /// Whether a split is asked for.
    pub(super) fn wants(&self, split: Split) -> bool {
        match split {
            Split::Train => true,
            Split::Validation => self.validation > 0.0,
            Split::Test => self.test > 0.0,
        }
    }
}

/// The repository of an instance, as its record says or as its file's path begins; `None` where neither names one. Of
/// `owner/name/…` it is the owner: splits by owners are splits by repositories as well.
pub(super) fn repository_of(label: &Label) -> Option<&str> {
    let said = label
        .record
        .get("metadata")
        .and_then(|m| m.get("repository")?.as_str());
    let path = label.filename.trim_start_matches("./");
    let first = path.split_once('/').map(|(first, _)| first);
    let is_name = |name: &&str| !name.is_empty();
    said.filter(is_name).or(first.filter(is_name))
}

/// What the first reading of the labels finds: names of repositories, and 20 bytes an instance.
#[derive(Debug, Default)]
pub(super) struct Occurrences {
    repositories: FxHashMap<String, u32>,
    /// What an instance is, and the number of its repository.
    instances: Vec<([u8; 16], u32)>,
}

impl Occurrences {
    /// Whether nothing was noted.
    pub(super) fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    /// Notes an instance of a repository.
    pub(super) fn note(&mut self, instance: [u8; 16], repository: &str) {
        let next = self.repositories.len() as u32;
        let number = match self.repositories.get(repository) {
            Some(number) => *number,
            None => *self
                .repositories
                .entry(repository.to_owned())
                .or_insert(next),
        };
        self.instances.push((instance, number));
    }
}

/// What each repository is for.
#[derive(Debug, Default)]
pub(super) struct Plan {
    repositories: FxHashMap<String, Split>,
    /// Of each instance that occurs in several splits, the one where it stays: where it is held out furthest.
    shared: FxHashMap<[u8; 16], Split>,
}

impl Plan {
    /// Assigns repositories: ordered by a digest of seed and name, the first are for tests, the next for validation, the rest for
    /// training. Another repository more moves at most those at the two borders.
    ///
    /// # Errors
    /// There are too few of them for the splits that are asked for.
    pub(super) fn of(found: Occurrences, shares: Proportions, seed: u64) -> Result<Self> {
        let mut names: Vec<(String, u32)> = found.repositories.into_iter().collect();
        names.sort_by_cached_key(|(name, _)| {
            let seeded = [&seed.to_le_bytes()[..], name.as_bytes()].concat();
            (*blake3::hash(&seeded).as_bytes(), name.clone())
        });
        let [test, validation] = shares.of(names.len())?;
        let mut splits = vec![Split::Train; names.len()];
        for (at, (_, number)) in names[..test + validation].iter().enumerate() {
            let is_test = at < test;
            splits[*number as usize] = if is_test {
                Split::Test
            } else {
                Split::Validation
            };
        }
        let mut instances = found.instances;
        instances.sort_unstable();
        let mut shared = FxHashMap::default();
        for same in instances.chunk_by(|(one, _), (other, _)| one == other) {
            let of = |(_, number): &([u8; 16], u32)| splits[*number as usize];
            let (nearest, furthest) = (same.iter().map(of).min(), same.iter().map(of).max());
            if let (true, Some(furthest)) = (nearest != furthest, furthest) {
                shared.insert(same[0].0, furthest);
            }
        }
        let repositories = names
            .into_iter()
            .map(|(name, number)| (name, splits[number as usize]));
        Ok(Self {
            repositories: repositories.collect(),
            shared,
        })
    }

    /// How many repositories are for what.
    pub(super) fn repositories(&self, split: Split) -> usize {
        self.repositories
            .values()
            .filter(|of| **of == split)
            .count()
    }

    /// What an instance of a repository is for; `None` where the same one is held out further.
    pub(super) fn place(&self, instance: [u8; 16], repository: &str) -> Option<Split> {
        let split = *self.repositories.get(repository)?;
        let stays = self.shared.get(&instance).copied().unwrap_or(split);
        (stays == split).then_some(split)
    }
}

/// What makes two instances the same: target, left and right context.
pub(super) fn digest(label: &Label) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    for text in [&label.prompt, &label.ground_truth, &label.right_context] {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}
