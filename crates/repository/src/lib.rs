//! Repositories: their files, the definitions in the files, and the fragments into which each file is cut.
//!
//! - [`corpus`]: a folder → its source files of one language, in a fixed order, and the skipped files with reasons.
//! - [`fragment`]: a file → overlapping windows or chunks.
//! - [`definitions`]: the places that define the names in a file.
//! - [`history`]: a Git repository's commits and the lines that they add.
//! - [`record`]: a repository's files as lines of JSON, and back.
//! - [`parallel`]: processing of many files, repositories or tasks at once. [`Shard`]: a part of them, for one of several
//!   machines.
//!
//! ```
//! use repoformer_repository::corpus::{Repository, SourceFile};
//! use repoformer_repository::fragment::{Cut, RepoFragments, WindowShape};
//! use repoformer_text::language::Language;
//!
//! let text = "x = 1\n".repeat(40);
//! let file = SourceFile { path: "demo/a.py".into(), text, same_as: 0 };
//! let repository = Repository { name: "demo".into(), files: vec![file] };
//! let cut = Cut::Windows(WindowShape::default());
//! let windows = RepoFragments::cut(repository, Language::Python, cut);
//! assert!(!windows.texts().is_empty());
//! ```

#![forbid(unsafe_code)]

pub mod corpus;
pub mod definitions;
pub mod fragment;
pub mod history;
pub mod parallel;
pub mod record;
mod shard;

pub use shard::Shard;
