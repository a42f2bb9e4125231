//! Tasks drawn from repositories in folders, or from what commits of Git repositories added.

mod commits;
mod folders;

pub use commits::{CommitSampling, CommitTasks, HistoryTasks, NEAR};
pub use folders::{FolderSampling, FolderTasks, RepositoryTasks};
