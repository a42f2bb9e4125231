//! The formats that benchmarks give their tasks in.

use std::fmt;
use std::str::FromStr;

/// The format of a task's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Format {
    /// RepoCoder's benchmark: holes are whole lines, the ground truth stands in `metadata`.
    #[default]
    RepoEval,
    /// RepoEval as Repoformer's program reads it: with the right context, the hole behind the line's indent.
    Repoformer,
    /// CrossCodeEval: holes within a line, the cross-file context as a text and a list.
    CrossCodeEval,
    /// CrossCodeLongEval: the same without a place in a repository.
    CrossCodeLongEval,
    /// RepoBench v1.1; only read.
    RepoBench,
    /// ReccEval; only read.
    ReccEval,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 6] = [
        Self::RepoEval,
        Self::Repoformer,
        Self::CrossCodeEval,
        Self::CrossCodeLongEval,
        Self::RepoBench,
        Self::ReccEval,
    ];

    /// The name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::RepoEval => "repoeval",
            Self::Repoformer => "repoformer",
            Self::CrossCodeEval => "crosscodeeval",
            Self::CrossCodeLongEval => "crosscodelongeval",
            Self::RepoBench => "repobench",
            Self::ReccEval => "recceval",
        }
    }

    /// Whether tasks can be written in it too.
    pub fn is_written(self) -> bool {
        !matches!(self, Self::RepoBench | Self::ReccEval)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|format| format.name() == name);
        named.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown task format '{name}'; known: {names}")
        })
    }
}
