//! Bounds on reading a commit: trees of a few kilobytes that refer to each other can represent any number of files.

use std::fmt;

use foldhash::HashMap;
use repoformer_store::error::Result;
use repoformer_text::lines::Lines;

use super::git::{Git, Object, ObjectReader};

/// Greatest number of files of a tree, in any language.
const MOST_ENTRIES: u64 = 1_000_000;
/// Greatest total length in bytes of their paths.
const MOST_PATH_BYTES: u64 = 256 << 20;
/// Greatest depth of nested folders, which is git's own limit.
pub(super) const MOST_DEPTH: usize = 2048;
/// Greatest number of files of a language in a commit.
pub(super) const MOST_FILES: usize = 200_000;
/// Greatest size in bytes of one of these files.
const MOST_FILE_BYTES: u64 = 16 << 20;
/// Greatest total size in bytes of these files.
const MOST_BYTES: u64 = 1 << 30;
/// Greatest total number of lines of these files.
const MOST_LINES: usize = 20_000_000;
/// Greatest total size in bytes of files that repeat another file of the commit: all can refer to one object.
const MOST_COPIED_BYTES: u64 = 128 << 20;

/// Bound that a commit exceeds, or form that git cannot read; in either case, the commit is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Git cannot read it.
    Form,
    /// Depth of nested folders; a folder that contains itself exceeds it, too.
    Depth,
    /// Number of files in the tree.
    Entries,
    /// Total length in bytes of their paths.
    PathBytes,
    /// Number of files of the language.
    Files,
    /// Size in bytes of one of these files.
    FileBytes,
    /// Total size in bytes of these files.
    Bytes,
    /// Total number of lines of these files.
    Lines,
    /// Total size in bytes of files that repeat others.
    CopiedBytes,
    /// Size in bytes of the changes of the whole history up to this commit.
    Changes,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "git cannot read its files, which are damaged",
            Self::Depth => "its folders are nested more than 2,048 deep",
            Self::Entries => "it has more than 1,000,000 files",
            Self::PathBytes => "the paths of its files have more than 256 MiB",
            Self::Files => "it has more than 200,000 source files",
            Self::FileBytes => "it has a source file of more than 16 MiB",
            Self::Bytes => "its source files have more than 1 GiB",
            Self::Lines => "its source files have more than 20,000,000 lines",
            Self::CopiedBytes => "its source files have more than 128 MiB of copies",
            Self::Changes => "the changes since it have more than 1 GiB, and 1 MiB for each commit",
        })
    }
}

/// Commit that is skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedCommit {
    /// Object id, in hexadecimal.
    pub id: String,
    /// Bound that it exceeds.
    pub bound: Bound,
}

impl fmt::Display for SkippedCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "commit {}: {}", self.id.get(..12).unwrap_or(&self.id), self.bound)
    }
}

/// Result of a read, or the bound that it exceeds.
pub type BoundedResult<T> = std::result::Result<T, Bound>;

/// Number of bytes of source files so far.
#[derive(Debug, Default)]
pub(super) struct ByteCount {
    bytes: u64,
    copied: u64,
}

impl ByteCount {
    /// Adds a text that several files contain.
    pub(super) fn add(&mut self, bytes: u64, files: u64) -> BoundedResult<()> {
        let copied = bytes.saturating_mul(files.saturating_sub(1));
        self.copied = self.copied.saturating_add(copied);
        self.bytes = self.bytes.saturating_add(bytes).saturating_add(copied);
        match () {
            () if bytes > MOST_FILE_BYTES => Err(Bound::FileBytes),
            () if self.copied > MOST_COPIED_BYTES => Err(Bound::CopiedBytes),
            () if self.bytes > MOST_BYTES => Err(Bound::Bytes),
            () => Ok(()),
        }
    }
}

/// Number of lines of source files so far.
#[derive(Debug, Default)]
pub(super) struct LineCount(usize);

impl LineCount {
    /// Adds a text that several files contain.
    pub(super) fn add(&mut self, text: &str, files: usize) -> BoundedResult<()> {
        self.0 = self.0.saturating_add(Lines::new(text).count().saturating_mul(files));
        if self.0 > MOST_LINES { Err(Bound::Lines) } else { Ok(()) }
    }
}

/// Size of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TreeSize {
    files: u64,
    path_bytes: u64,
    /// Depth of nested folders.
    depth: usize,
    /// Whether the tree, or a folder in it, cannot be read by git as a tree.
    is_damaged: bool,
}

impl TreeSize {
    const EMPTY: Self = Self { files: 0, path_bytes: 0, depth: 0, is_damaged: false };
    /// Size with more files than any bound.
    const ENDLESS: Self = Self { files: u64::MAX, path_bytes: u64::MAX, ..Self::EMPTY };
    /// Size deeper than any bound.
    const BOTTOMLESS: Self = Self { depth: usize::MAX, ..Self::EMPTY };
    const DAMAGED: Self = Self { is_damaged: true, ..Self::EMPTY };

    fn add_file(&mut self, name: &[u8]) {
        self.files = self.files.saturating_add(1);
        self.path_bytes = self.path_bytes.saturating_add(name.len() as u64 + 1);
    }

    fn add_folder(&mut self, name_bytes: u64, folder: Self) {
        let names = folder.files.saturating_mul(name_bytes + 1);
        self.files = self.files.saturating_add(folder.files);
        self.path_bytes = self.path_bytes.saturating_add(folder.path_bytes).saturating_add(names);
        self.depth = self.depth.max(folder.depth.saturating_add(1));
        self.is_damaged |= folder.is_damaged;
    }

    fn check(self) -> BoundedResult<()> {
        match () {
            () if self.is_damaged => Err(Bound::Form),
            () if self.depth > MOST_DEPTH => Err(Bound::Depth),
            () if self.files > MOST_ENTRIES => Err(Bound::Entries),
            () if self.path_bytes > MOST_PATH_BYTES => Err(Bound::PathBytes),
            () => Ok(()),
        }
    }
}

/// Id of an object, in hexadecimal.
type Id = String;

/// Tree whose folders are being counted.
#[derive(Debug)]
struct OpenTree {
    id: Id,
    size: TreeSize,
    /// Folders that are not yet counted, with the lengths of their names.
    folders: Vec<(u64, Id)>,
}

/// Sizes of trees: each tree is read only once, however often others refer to it.
#[derive(Debug)]
pub(super) struct TreeSizes {
    reader: ObjectReader,
    known: HashMap<Id, TreeSize>,
}

impl TreeSizes {
    pub(super) fn start(git: &Git) -> Result<Self> {
        Ok(Self { reader: ObjectReader::start(git)?, known: HashMap::default() })
    }

    /// Checks the tree of a commit.
    ///
    /// # Errors
    /// The tree cannot be read.
    pub(super) fn check(&mut self, commit: &str) -> Result<Result<(), SkippedCommit>> {
        let bounded = self.size(commit)?.check();
        Ok(bounded.map_err(|bound| SkippedCommit { id: commit.to_owned(), bound }))
    }

    /// Returns the kind of an object that exists but is not a commit; `None` for a commit or a missing object.
    ///
    /// # Errors
    /// The object cannot be read.
    pub(super) fn other_kind(&mut self, id: &str) -> Result<Option<String>> {
        Ok(match self.reader.read(id, 0)? {
            Object::Missing | Object::Damaged => None,
            Object::Tree(..) | Object::LongTree(_) => Some("tree".to_owned()),
            Object::Other(kind) => Some(kind).filter(|kind| kind != "commit"),
        })
    }

    fn size(&mut self, commit: &str) -> Result<TreeSize> {
        let mut open = Vec::new();
        let mut size = self.open(&format!("{commit}^{{tree}}"), &mut open)?;
        while let Some(tree) = open.last_mut() {
            let Some((name_bytes, id)) = tree.folders.last() else {
                size = tree.size;
                let id = std::mem::take(&mut tree.id);
                open.pop();
                self.known.insert(id, size);
                continue;
            };
            if let Some(size) = self.known.get(id) {
                tree.size.add_folder(*name_bytes, *size);
                tree.folders.pop();
                continue;
            }
            let id = id.clone();
            // The id of an object need not be the hash of its content.
            let is_circle = open.iter().any(|above| above.id == id);
            if is_circle || open.len() > MOST_DEPTH {
                // Each tree above a circle is bottomless; of a chain that is too long, the first tree is.
                let bottomless = if is_circle { open.len() } else { 1 };
                let bottomless = open.drain(..bottomless).map(|tree| tree.id);
                self.known.extend(bottomless.map(|id| (id, TreeSize::BOTTOMLESS)));
                return Ok(TreeSize::BOTTOMLESS);
            }
            self.open(&id, &mut open)?;
        }
        Ok(size)
    }

    /// Reads a tree, and opens it unless its size is known.
    fn open(&mut self, revision: &str, open: &mut Vec<OpenTree>) -> Result<TreeSize> {
        let (id, tree) = match self.reader.read(revision, MOST_PATH_BYTES)? {
            Object::Tree(id, content) => (id, content),
            Object::LongTree(id) => return Ok(self.note(id, TreeSize::ENDLESS)),
            Object::Other(_) | Object::Damaged => {
                return Ok(self.note(revision.to_owned(), TreeSize::DAMAGED));
            }
            Object::Missing => return Err(self.reader.lacks()),
        };
        if let Some(size) = self.known.get(&id) {
            return Ok(*size);
        }
        let (mut size, mut folders) = (TreeSize::EMPTY, Vec::new());
        let mut rest = &tree[..];
        while !rest.is_empty() {
            let Some(entry) = TreeEntry::read(&mut rest, id.len() / 2) else {
                return Ok(self.note(id, TreeSize::DAMAGED));
            };
            if entry.is_folder {
                let child = entry.id.iter().map(|byte| format!("{byte:02x}")).collect();
                folders.push((entry.name.len() as u64, child));
            } else {
                size.add_file(entry.name);
            }
        }
        open.push(OpenTree { id, size, folders });
        Ok(size)
    }

    fn note(&mut self, id: Id, size: TreeSize) -> TreeSize {
        self.known.insert(id, size);
        size
    }
}

/// Entry of a tree: `<mode> <name>`, a zero byte, and the bytes of an id.
struct TreeEntry<'t> {
    is_folder: bool,
    name: &'t [u8],
    id: &'t [u8],
}

impl<'t> TreeEntry<'t> {
    /// Reads the first entry of a tree's content and advances it; returns `None` for an entry that git cannot read.
    fn read(tree: &mut &'t [u8], id_bytes: usize) -> Option<Self> {
        let (head, rest) = tree.split_at_checked(memchr::memchr(0, tree)?)?;
        let (mode, name) = head.split_at_checked(memchr::memchr(b' ', head)?)?;
        let (name, id) = (&name[1..], rest.get(1..=id_bytes)?);
        *tree = &rest[1 + id_bytes..];
        let is_read = !mode.is_empty() && mode.iter().all(|digit| matches!(digit, b'0'..=b'7'));
        // Git keeps 16 bits; the first four are the kind.
        let mode = mode.iter().fold(0, |mode: u16, digit| (mode << 3) | u16::from(digit & 7));
        let is_folder = mode & 0o170_000 == 0o040_000;
        (is_read && !name.is_empty()).then_some(Self { is_folder, name, id })
    }
}
