//! The formats that benchmarks give their tasks in.

use repoformer_text::named;

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

named! {
    Format, "task format":
    RepoEval = "repoeval",
    Repoformer = "repoformer",
    CrossCodeEval = "crosscodeeval",
    CrossCodeLongEval = "crosscodelongeval",
    RepoBench = "repobench",
    ReccEval = "recceval",
}

impl Format {
    /// Whether tasks can be written in it too.
    pub fn is_written(self) -> bool {
        !matches!(self, Self::RepoBench | Self::ReccEval)
    }
}
