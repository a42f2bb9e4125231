//! Shards: parts of many repositories, for work that is divided among several machines.

use std::fmt;
use std::str::FromStr;

/// Part `index` of `count` of the repositories. A repository's part depends only on its folder name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shard {
    /// 0-based index.
    pub index: u64,
    /// Number of parts, at least 1.
    pub count: u64,
}

impl Shard {
    /// All repositories.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Returns the part of `count` to which a repository belongs.
    pub fn containing(repository: &str, count: u64) -> Self {
        let digest = blake3::hash(repository.as_bytes());
        let number = digest.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Self { index: number % count, count }
    }

    /// Returns true if a repository belongs to this part.
    pub fn holds(self, repository: &str) -> bool {
        Self::containing(repository, self.count) == self
    }

    /// Returns all `count` parts, in order.
    pub fn all(count: u64) -> impl Iterator<Item = Self> {
        (0..count).map(move |index| Self { index, count })
    }

    /// Returns the name in a path: `shard-2-of-8`.
    pub fn file_name(self) -> String {
        format!("shard-{}-of-{}", self.index + 1, self.count)
    }
}

/// Displays `2/8` for the second of eight parts.
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.count)
    }
}

/// Error for a text that is not a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a shard as I/N, with I from 1 to N, such as 2/8 for the second of eight")]
pub struct ShardError;

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let numbers = text
            .split_once('/')
            .and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((index @ 1.., count)) if index <= count => Ok(Self { index: index - 1, count }),
            _ => Err(ShardError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_disjoint_and_together_all() {
        let names: Vec<String> = (0..100).map(|number| format!("owner_{number}")).collect();
        for count in [1, 2, 7, 300] {
            let held = |name: &String| Shard::all(count).filter(|shard| shard.holds(name)).count();
            assert!(names.iter().all(|name| held(name) == 1));
        }
    }

    #[test]
    fn texts() {
        let shard: Shard = "2/8".parse().unwrap();
        assert_eq!((shard.index, shard.count, shard.to_string()), (1, 8, "2/8".into()));
        assert_eq!(shard.file_name(), "shard-2-of-8");
        for bad in ["", "2", "0/8", "9/8", "1/0", "-1/2", "1/2/3", " 1/2"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }
}
