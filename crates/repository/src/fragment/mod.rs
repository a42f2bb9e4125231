//! Fragments: ranges of lines into which the files of a repository are cut. They are the corpus that retrieval searches.
//!
//! Files are [cut](Cut) into windows or chunks. A file's text is stored once; a fragment is a range of its lines. Windows with
//! equal text are one fragment with several places; every chunk is a separate fragment.

mod cut;
mod payload;
mod shape;

pub use cut::WindowTexts;
pub use cut::{FragmentFile, FragmentPlace, RepoFragments};
pub use payload::TextRanges;
pub use shape::{Center, ChunkShape, Cut, WindowShape};

/// Returns the digest of the input of fragments: the files' names and lines, and which files are the same on disk.
pub fn digest_of_files(files: &[FragmentFile]) -> String {
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(&(file.path.len() as u64).to_le_bytes());
        hasher.update(file.path.as_bytes());
        hasher.update(&file.same_as.to_le_bytes());
        hasher.update(&(file.lines.count() as u64).to_le_bytes());
        hasher.update(&file.digest);
    }
    hasher.finalize().to_hex().to_string()
}

/// Returns a file's path as prompts name it: relative to its repository.
///
/// ```
/// assert_eq!(repoformer_repository::fragment::path_in_repository("r/a/b.py"), "a/b.py");
/// ```
pub fn path_in_repository(path: &str) -> &str {
    path.split_once('/').map_or(path, |(_, rest)| rest)
}
