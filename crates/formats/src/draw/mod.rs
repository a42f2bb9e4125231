//! Tasks sampled from repositories in folders, or from lines that commits of Git repositories added.

mod commits;
mod folders;

pub use commits::{CommitSampling, CommitTasks, HistoryTasks, NEAR};
pub use folders::{FolderSampling, FolderTasks, RepositoryTasks};
