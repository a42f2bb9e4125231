//! Parts of many repositories, which work of several machines shares out.

/// Part `index` of `count` of the repositories. A repository's folder name alone determines its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Index, from 0.
    pub index: u64,
    /// Number of parts, at least 1.
    pub count: u64,
}

impl Shard {
    /// All repositories.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// The part of `count` to which a repository belongs.
    pub fn of(repository: &str, count: u64) -> Self {
        let digest = blake3::hash(repository.as_bytes());
        let number = digest.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Self { index: number % count, count }
    }

    /// Whether a repository belongs to this part.
    pub fn holds(self, repository: &str) -> bool {
        Self::of(repository, self.count) == self
    }
}
