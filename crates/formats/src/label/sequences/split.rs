//! Splits repositories into training, validation and test. No repository, and no instance, is in two splits.

use foldhash::HashMap;
use repoformer_store::error::{Error, Result};
use repoformer_text::counts::format_count;
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use repoformer_core::label::{InstanceKind, Label};
use repoformer_core::repository::Shard;

/// Split of the training data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Split {
    /// Data to train on.
    Train,
    /// Data for choosing settings.
    Validation,
    /// Data for measuring the result.
    Test,
}

impl Split {
    /// All splits.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    /// Returns the name of the split's files, as in Hugging Face `datasets`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

/// Fractions of the repositories that are held out, between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Proportions {
    /// Fraction for validation.
    pub validation: f64,
    /// Fraction for tests.
    pub test: f64,
}

impl Proportions {
    /// Returns the number of repositories for tests, and for validation.
    ///
    /// # Errors
    /// No repository is left to train on.
    pub(super) fn of(&self, repositories: usize) -> Result<[usize; 2]> {
        let count = |share: f64| {
            let rounded = (share * repositories as f64).round() as usize;
            if share > 0.0 { rounded.max(1) } else { 0 }
        };
        let (test, validation) = (count(self.test), count(self.validation));
        if test + validation < repositories {
            return Ok([test, validation]);
        }
        Err(Error::from_refusal(
            format!(
                "{validation} for validation and {test} for tests leave none of {} for training",
                format_count(repositories as u64, "repository")
            ),
            message!["label more, or ", UserChoice::NothingHeldOut],
        ))
    }

    /// Returns true if a split is requested.
    pub(super) fn wants(&self, split: Split) -> bool {
        match split {
            Split::Train => true,
            Split::Validation => self.validation > 0.0,
            Split::Test => self.test > 0.0,
        }
    }
}

/// Returns the repository of an instance, from its record or from the first part of its file's path; `None` if neither names
/// one. For `owner/name/…` this is the owner: a split by owners is also a split by repositories.
pub(super) fn repository_of(label: &Label) -> Option<&str> {
    let said = label.record.get("metadata").and_then(|m| m.get("repository")?.as_str());
    let path = label.filename.trim_start_matches("./");
    let first = path.split_once('/').map(|(first, _)| first);
    let is_name = |name: &&str| !name.is_empty();
    said.filter(is_name).or(first.filter(is_name))
}

/// Instance in a file of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Occurrence {
    /// Digest of the instance.
    pub(super) instance: [u8; 16],
    pub(super) kind: Option<InstanceKind>,
    /// Number of its file.
    pub(super) file: u16,
    /// Number of its line, from 1.
    pub(super) line: u32,
    /// Number of its repository.
    pub(super) repository: u32,
}

/// Repository among the labels.
#[derive(Debug)]
struct LabelledRepository {
    number: u32,
    /// Least digest of its instances, which additional instances rarely change.
    least: [u8; 16],
    /// Sum of the digests, to distinguish repositories with the same least digest.
    sum: u128,
}

/// Result of the first reading of the labels: repositories, and 32 bytes per instance.
#[derive(Debug, Default)]
pub(super) struct Occurrences {
    repositories: HashMap<String, LabelledRepository>,
    instances: Vec<Occurrence>,
}

impl Occurrences {
    /// Returns true if there are no instances.
    pub(super) fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }

    /// Adds an instance of a repository.
    pub(super) fn note(&mut self, occurrence: Occurrence, repository: &str) {
        let instance = occurrence.instance;
        let digest = u128::from_le_bytes(instance);
        let number = match self.repositories.get_mut(repository) {
            Some(known) => {
                known.least = known.least.min(instance);
                known.sum = known.sum.wrapping_add(digest);
                known.number
            }
            None => {
                let number = self.repositories.len() as u32;
                let first = LabelledRepository { number, least: instance, sum: digest };
                self.repositories.insert(repository.to_owned(), first);
                number
            }
        };
        self.instances.push(Occurrence { repository: number, ..occurrence });
    }

    /// Returns the places of an instance that is in two files, and the number of such instances in the second file; `None` if no
    /// instance is in two files.
    pub(super) fn of_two_files(&mut self) -> Option<(Occurrence, Occurrence, usize)> {
        self.instances.sort_unstable();
        let same = |one: &Occurrence, other: &Occurrence| {
            (one.instance, one.kind) == (other.instance, other.kind)
        };
        let mut pairs = Vec::new();
        for alike in self.instances.chunk_by(same) {
            // Ordered by file.
            if let Some(other) = alike.iter().find(|other| other.file != alike[0].file) {
                pairs.push((alike[0], *other));
            }
        }
        let (one, other) = *pairs.iter().min_by_key(|(_, other)| (other.file, other.line))?;
        let count = pairs.iter().filter(|(_, second)| second.file == other.file).count();
        Some((one, other, count))
    }
}

/// Split of each repository.
#[derive(Debug, Default)]
pub(super) struct Plan {
    repositories: HashMap<String, Split>,
    /// Split in which an instance stays if it is in several: the last of train, validation and test.
    shared: HashMap<[u8; 16], Split>,
    /// Number of instances that their repository already contains.
    pub(super) repeated: usize,
}

impl Plan {
    /// Assigns repositories, ordered by a digest of the seed and their instances: the first are for tests, the next for
    /// validation, the rest for training. An additional repository moves at most the two at the borders.
    ///
    /// # Errors
    /// There are too few repositories for the requested splits.
    pub(super) fn new(found: Occurrences, shares: Proportions, seed: u64) -> Result<Self> {
        let mut names: Vec<(String, LabelledRepository)> = found.repositories.into_iter().collect();
        names.sort_by_cached_key(|(name, LabelledRepository { least, sum, .. })| {
            let seeded = [&seed.to_le_bytes()[..], least].concat();
            (*blake3::hash(&seeded).as_bytes(), *sum, name.clone())
        });
        let [test, validation] = shares.of(names.len())?;
        let mut splits = vec![Split::Train; names.len()];
        for (at, (_, repository)) in names[..test + validation].iter().enumerate() {
            let split = if at < test { Split::Test } else { Split::Validation };
            splits[repository.number as usize] = split;
        }
        let mut instances: Vec<([u8; 16], u32)> =
            found.instances.iter().map(|one| (one.instance, one.repository)).collect();
        instances.sort_unstable();
        let mut shared = HashMap::default();
        for same in instances.chunk_by(|(one, _), (other, _)| one == other) {
            let of = |(_, number): &([u8; 16], u32)| splits[*number as usize];
            let (nearest, furthest) = (same.iter().map(of).min(), same.iter().map(of).max());
            if let (true, Some(furthest)) = (nearest != furthest, furthest) {
                shared.insert(same[0].0, furthest);
            }
        }
        let all = instances.len();
        instances.dedup();
        let split = |(name, of): (String, LabelledRepository)| (name, splits[of.number as usize]);
        let repositories = names.into_iter().map(split);
        let repeated = all - instances.len();
        Ok(Self { repositories: repositories.collect(), shared, repeated })
    }

    /// Returns the number of a shard's repositories in a split.
    pub(super) fn repositories(&self, split: Split, shard: Option<Shard>) -> usize {
        let is_held = |name: &str| shard.is_none_or(|shard| shard.holds(name));
        self.repositories.iter().filter(|(name, of)| **of == split && is_held(name)).count()
    }

    /// Returns true if there are no repositories.
    pub(super) fn is_empty(&self) -> bool {
        self.repositories.is_empty()
    }

    /// Returns the split of an instance; `None` if the same instance stays in another split.
    pub(super) fn place(&self, instance: [u8; 16], repository: &str) -> Option<Split> {
        let split = *self.repositories.get(repository)?;
        let stays = self.shared.get(&instance).copied().unwrap_or(split);
        (stays == split).then_some(split)
    }
}

/// Returns a digest of target, left and right context, which identifies an instance.
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
