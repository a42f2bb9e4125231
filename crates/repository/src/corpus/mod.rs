//! Repositories: reads the files of one language in a folder, decoded and in a fixed order.
//!
//! The rules are RepoCoder's (`glob("**/*.py", recursive=True)`, text mode), applied to each
//! [`Language`](repoformer_text::language::Language) with its own extensions. Hidden files and folders are left out, symbolic
//! links are followed inside the repository, extensions are case-sensitive (`.d.ts` ends in `.ts`), and files that git ignores
//! count unless [`Walk::Git`] is chosen. RepoCoder uses the file system's order; this module uses the code-point order of the
//! paths.
//!
//! A link that leads out of its repository is skipped and reported; otherwise, the author of the repository could choose which
//! of the user's files a model sees. A cache of this program is not part of a repository.
//!
//! Files are UTF-8. A byte-order mark stays as U+FEFF at the start of the text, as with Python's `open`; many C# files have
//! one. A file that is not UTF-8 is skipped and reported, as in RepoCoder. CrossCodeEval's program would replace undecodable
//! bytes with U+FFFD, which no model should learn to write.

mod checkout;
mod folders;
#[cfg(feature = "gitignore")]
mod ignored;
#[cfg(not(feature = "gitignore"))]
#[path = "absent.rs"]
mod ignored;
mod listing;
mod names;
mod part;
mod reading;

pub use checkout::Checkout;
pub use checkout::signs;
pub use folders::{RepositoryFolders, folder_names, folder_names_with, foreign_links, is_link_out};
#[cfg(feature = "gitignore")]
pub use ignored::{GIT_EXCLUDE, GIT_IGNORE, lists_outside};
pub use listing::languages;
pub use listing::{Listing, SourcePath};
pub use names::is_folder_name;
pub use names::{
    PathError, abbreviate, file_of, is_git_head, is_version_control, path_names,
    path_names_with_repository,
};
pub use reading::identity;
pub use reading::{Bytes, decode, place_in, read_named};

use std::path::Path;

use repoformer_store::content::ContentDigest;
use repoformer_store::error::{Error, Result};
use repoformer_text::lines::Lines;
use repoformer_text::named;

/// Source file of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// `repository/folder/…/file.py`, with `/` on every system and an extension of its language.
    pub path: String,
    /// Text with `\r\n` and `\r` replaced by `\n`, as in Python's text mode.
    pub text: String,
    /// Index of the first file in the repository that is the same file on disk, if links give a file several names; otherwise
    /// the file's own index.
    pub same_as: u32,
}

/// Files of a repository in the code-point order of their paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// Name of the repository's folder.
    pub name: String,
    /// Files of the requested language.
    pub files: Vec<SourceFile>,
}

/// Repository as it was read, and the errors.
#[derive(Debug)]
pub struct RepositoryReading {
    /// Files that could be read.
    pub repository: Repository,
    /// Errors for the files and folders that could not be read.
    pub skipped: Vec<Error>,
}

impl SourceFile {
    /// Returns the file's lines, as Python's `str.splitlines` does.
    pub fn lines(&self) -> Lines {
        Lines::new(&self.text)
    }
}

/// Rule for which files of a folder count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Walk {
    /// RepoCoder's (`glob("**/*.py", recursive=True)`): hidden files and folders are left out, and links inside the repository
    /// are followed.
    #[default]
    Glob,
    /// Like RepoCoder's, but links that lead out of the repository are followed, too.
    GlobAnywhere,
    /// Repoformer's (`Path.rglob("*.py")`): hidden files and links to files inside the repository count; links to folders are
    /// not followed.
    Rglob,
    /// Like RepoCoder's, without the files that git ignores. Needs the feature `gitignore`.
    Git,
}

named! {
    Walk, "walk":
    Glob = "glob",
    GlobAnywhere = "glob-anywhere",
    Rglob = "rglob",
    Git = "git",
}

impl Repository {
    /// Returns the digest of the repository's files: their paths relative to its folder, and their texts.
    pub fn content_digest(&self) -> ContentDigest {
        let files = self.files.iter();
        ContentDigest::from_texts(files.flat_map(|file| {
            let below = file.path.find('/').map_or(0, |at| at + 1);
            [&file.path[below..], &file.text]
        }))
    }

    /// Returns the file with this `repository/…` path, by binary search.
    pub fn file(&self, path: &str) -> Option<&SourceFile> {
        Some(&self.files[self.file_index(path)?])
    }

    /// Returns the index of the file with a path.
    pub fn file_index(&self, path: &str) -> Option<usize> {
        self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()
    }
}

/// Returns true if a file looks like test code, by the names that test runners look for. A hole in test code reveals little: a
/// test without assertions passes.
///
/// ```
/// use repoformer_repository::corpus::is_test_file;
/// assert!(is_test_file("tests/factories.py") && is_test_file("src/cart.spec.ts") && is_test_file("a/CartTest.java"));
/// assert!(!is_test_file("src/contest.py") && !is_test_file("latest/cart.ts"));
/// ```
pub fn is_test_file(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.split('.').next().unwrap_or(name);
    let in_tests =
        folders.split('/').any(|folder| matches!(folder, "test" | "tests" | "__tests__"));
    in_tests
        || stem.starts_with("test_")
        || stem == "conftest"
        || ["_test", "_tests", "Test", "Tests"].iter().any(|end| stem.ends_with(end))
        || [".test.", ".spec."].iter().any(|part| name.contains(part))
}

fn check_name(repos_dir: &Path, name: &str) -> Result<()> {
    if is_folder_name(name) {
        return Ok(());
    }
    let reason = format!("'{name}' is not the name of a folder directly below it");
    Err(Error::Repository { path: repos_dir.to_owned(), reason: reason.into() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use repoformer_text::language::Language;

    use super::*;

    fn repository(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = dir.path().join("r").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        dir
    }

    #[test]
    fn order_is_the_paths_code_points_and_hidden_files_stay_out() {
        let names =
            ["a/b.py", "a.py", "a b/c.py", "Z.py", ".h/x.py", "a/.x.py", "U.PY", "x.py/inner.py"];
        let dir = repository(&names.map(|name| (name, &b""[..])));
        let reading = Repository::read(dir.path(), "r", Language::Python).unwrap();
        let paths: Vec<_> = reading.repository.files.iter().map(|f| f.path.as_str()).collect();
        assert_eq!(paths, ["r/Z.py", "r/a b/c.py", "r/a.py", "r/a/b.py", "r/x.py/inner.py"]);
        assert!(reading.skipped.is_empty());
        assert!(reading.repository.file("r/a.py").is_some());
        assert!(reading.repository.file("r/.h/x.py").is_none());
    }

    #[test]
    fn each_language_has_its_own_files() {
        let names = "a.py b.java c.cs d.ts e.tsx f.d.ts g.TS h.js i.pyi j.jsx ts .k.cs l.tsx/m.java n.mts o.d.cts";
        let files = names.split(' ').map(|name| (name, "\u{feff}x".as_bytes()));
        let dir = repository(&files.collect::<Vec<_>>());
        let found = |language| {
            let repository = Repository::read(dir.path(), "r", language).unwrap().repository;
            let all_marked = repository.files.iter().all(|file| file.text == "\u{feff}x");
            assert!(all_marked, "a byte order mark stays");
            let paths = repository.files.into_iter().map(|file| file.path);
            paths.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found(Language::Python), "r/a.py");
        assert_eq!(found(Language::Java), "r/b.java r/l.tsx/m.java");
        assert_eq!(found(Language::CSharp), "r/c.cs");
        assert_eq!(found(Language::TypeScript), "r/d.ts r/e.tsx r/f.d.ts r/n.mts r/o.d.cts");
    }

    #[test]
    fn a_file_that_is_not_utf8_names_its_byte_and_line_and_loses_no_other() {
        let dir = repository(&[("a.py", b"x = 1\n"), ("b.py", b"# ok\n# caf\xe9\n")]);
        let reading = Repository::read(dir.path(), "r", Language::Python).unwrap();
        assert_eq!(reading.repository.files.len(), 1);
        let message = reading.skipped[0].to_string();
        assert!(message.contains("b.py") && message.contains("byte 10, line 2"), "{message}");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_remember_which_file_they_are() {
        let dir = repository(&[("m.py", b"x\n"), ("real/r.py", b"y\n")]);
        let root = dir.path().join("r");
        std::os::unix::fs::symlink("m.py", root.join("z.py")).unwrap();
        std::os::unix::fs::symlink("real", root.join("alias")).unwrap();
        fs::hard_link(root.join("m.py"), root.join("hard.py")).unwrap();
        std::os::unix::fs::symlink("nowhere.py", root.join("broken.py")).unwrap();
        std::os::unix::fs::symlink("..", root.join("real/loop")).unwrap();
        let reading = Repository::read(dir.path(), "r", Language::Python).unwrap();
        let files: Vec<_> =
            reading.repository.files.iter().map(|f| (f.path.as_str(), f.same_as)).collect();
        let paths = ["r/alias/r.py", "r/hard.py", "r/m.py", "r/real/r.py", "r/z.py"];
        assert!(files.into_iter().eq(paths.into_iter().zip([0, 1, 1, 0, 1])));
        assert!(reading.skipped.iter().any(|e| e.to_string().contains("broken.py")));
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_out_are_left_out_unless_asked_for() {
        let dir = repository(&[("m.py", b"x\n"), ("d/n.py", b"y\n")]);
        let outside = dir.path().join("outside");
        fs::create_dir_all(outside.join("deep")).unwrap();
        for name in ["s.py", "deep/t.py", "u.txt"] {
            fs::write(outside.join(name), "z\n").unwrap();
        }
        let root = dir.path().join("r");
        for (target, link) in [
            ("../outside/s.py", "a.py"),
            ("../outside", "folder"),
            ("../folder/deep", "d/chain"),
            ("a.py", "b.py"),
            ("..", "up"),
            ("../outside/u.txt", "u.txt"),
            ("m.py", "ours.py"),
            ("d", "also"),
        ] {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        let read = |walk| {
            let read = Repository::read_with(dir.path(), "r", Language::Python, walk).unwrap();
            let paths: Vec<String> =
                read.repository.files.into_iter().map(|file| file.path).collect();
            let said = read
                .skipped
                .iter()
                .filter(|error| error.to_string().contains("out of the repository"));
            (paths.join(" "), said.count())
        };
        assert_eq!(read(Walk::Glob), ("r/also/n.py r/d/n.py r/m.py r/ours.py".into(), 6));
        assert_eq!(read(Walk::Rglob), ("r/d/n.py r/m.py r/ours.py".into(), 2));
        let (all, said) = read(Walk::GlobAnywhere);
        assert!(all.contains("r/folder/deep/t.py") && all.contains("r/b.py") && said == 0, "{all}");
        for path in [
            "r/a.py", "r/folder/s.py", "r/d/chain/t.py", "r/../outside/s.py", "../outside/s.py",
            "/etc/passwd",
        ] {
            assert!(read_named(dir.path(), path).is_err(), "{path}");
        }
        assert_eq!(read_named(dir.path(), "r/also/n.py").unwrap(), "y\n");
    }

    /// Sixty links would show one file under 2^30 paths.
    #[cfg(unix)]
    #[test]
    fn links_to_the_same_folders_again_and_again_have_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("r");
        // The kernel follows at most 40 links in a path, and on a busy machine counts those of a path twice.
        const LEVELS: usize = 18;
        for level in 0..=LEVELS {
            let folder = root.join(format!("d{level}"));
            fs::create_dir_all(&folder).unwrap();
            if level < LEVELS {
                for name in ["a", "b"] {
                    let next = format!("../d{}", level + 1);
                    std::os::unix::fs::symlink(next, folder.join(name)).unwrap();
                }
            }
        }
        fs::write(root.join(format!("d{LEVELS}/x.py")), "x\n").unwrap();
        let list = |walk| Listing::new(dir.path(), "r", Language::Python, walk).unwrap().all();
        let (found, skipped) = list(Walk::Glob).unwrap();
        assert!((2_000..=20_001).contains(&found.len()), "{}", found.len());
        let [reason] = &skipped[..] else { panic!("{skipped:?}") };
        assert!(reason.to_string().contains("repeat more than 20,000"), "{reason}");
        let again = list(Walk::Glob).unwrap().0;
        let same = found.iter().zip(&again).all(|(one, other)| one.path == other.path);
        assert!(same && found.len() == again.len());
        assert_eq!(list(Walk::Rglob).unwrap().0.len(), 1);
        assert_eq!(RepositoryFolders::below(dir.path()).unwrap().names, ["r"]);
    }

    #[test]
    fn names_that_lead_out_of_the_folder_are_refused() {
        for name in ["..", ".", "a/b", "/etc", "", "a/..", "a/"] {
            assert!(!is_folder_name(name), "{name:?}");
        }
        assert!(is_folder_name("huggingface_diffusers"));
        assert!(Repository::read(Path::new("/tmp"), "../etc", Language::Python).is_err());
    }
}
