//! Formats of benchmark tasks.

use repoformer_text::named;

/// The format of a task's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Format {
    /// RepoCoder's benchmark: holes are whole lines, and the ground truth is in `metadata`.
    #[default]
    RepoEval,
    /// RepoEval as Repoformer's program reads it: with the right context, and with the hole after the line's indent.
    Repoformer,
    /// CrossCodeEval: holes begin within a line, and the cross-file context is a text and a list.
    CrossCodeEval,
    /// CrossCodeLongEval: like CrossCodeEval, but without a place in a repository.
    CrossCodeLongEval,
    /// RepoBench v1.1; read-only.
    RepoBench,
    /// ReccEval; read-only.
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
    /// Returns true if tasks can also be written in this format.
    pub fn is_written(self) -> bool {
        !matches!(self, Self::RepoBench | Self::ReccEval)
    }
}
