//! Distinguishes one repository from a folder of repositories, by the entries of the folder:
//!
//! 1. A folder with a project's file, such as `pyproject.toml`, is one repository.
//! 2. A folder with `.git` or `.hg`, a source file, or a folder `src` or `tests` is one repository, unless each repository in
//!    it has a project's file or version control of its own.
//! 3. Any other folder is a folder of repositories.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use repoformer_store::files;

use super::folders::{RepositoryFolders, is_source};

/// Files in the root of a project.
const PROJECT: [&str; 10] = [
    "pyproject.toml", "setup.py", "setup.cfg", "package.json", "Cargo.toml", "go.mod", "pom.xml",
    "build.gradle", "build.gradle.kts", "PKG-INFO",
];
/// Folders of version control.
pub(super) const CONTROL: [&str; 2] = [".git", ".hg"];
/// Folders that are often in the root of a repository, and rarely repositories themselves.
const PARTS: [&str; 2] = ["src", "tests"];

/// Folder that is one repository, not a folder of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// Folder that contains the repository.
    pub parent: PathBuf,
    /// Name of the repository in that folder.
    pub name: String,
    /// Signs that the folder is one repository, such as `.git` and `pyproject.toml`.
    pub signs: Vec<String>,
}

impl Checkout {
    /// Recognises a repository by the entries of its folder.
    pub fn find(folder: &Path) -> Option<Self> {
        let signs = signs(folder, &BTreeSet::new());
        if signs.is_empty() {
            return None;
        }
        let (parent, name) = match (folder.parent(), folder.file_name()) {
            (Some(parent), Some(name)) => (parent.to_owned(), name.to_owned()),
            // Paths such as `.` and `..`.
            _ => {
                let whole = folder.canonicalize().ok()?;
                (whole.parent()?.to_owned(), whole.file_name()?.to_owned())
            }
        };
        let parent = if parent.as_os_str().is_empty() { PathBuf::from(".") } else { parent };
        // A hidden name, or one that is not UTF-8, cannot name a repository.
        let name = name.into_string().ok().filter(|name| !name.starts_with('.'))?;
        Some(Self { parent, name, signs })
    }
}

/// Returns the files and folders that show that a folder is one repository; none for a folder of repositories. Paths in `also`
/// are treated as existing.
pub fn signs(folder: &Path, also: &BTreeSet<PathBuf>) -> Vec<String> {
    let marks = marks(folder, also);
    if marks.iter().any(|mark| !CONTROL.contains(mark)) {
        return marks.into_iter().map(Into::into).collect();
    }
    let signs = match marks.first() {
        Some(mark) => vec![(*mark).to_owned()],
        None => guess(folder).into_iter().collect(),
    };
    if signs.is_empty() || holds_repositories(folder, also) { Vec::new() } else { signs }
}

fn marks(folder: &Path, also: &BTreeSet<PathBuf>) -> Vec<&'static str> {
    let is_there = |path: PathBuf| path.exists() || also.contains(&path);
    CONTROL.into_iter().chain(PROJECT).filter(|mark| is_there(folder.join(mark))).collect()
}

/// Returns a source file directly in a folder, or a folder that is typical for the root of a repository.
fn guess(folder: &Path) -> Option<String> {
    let entries = files::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.path().is_file());
    let names = files.filter_map(|entry| entry.file_name().into_string().ok());
    let sources = names.filter(|name| !name.starts_with('.') && is_source(name));
    let part = || PARTS.into_iter().find(|part| folder.join(part).is_dir()).map(Into::into);
    sources.min().or_else(part)
}

/// Returns true if a folder contains repositories, and each of them has a project's file or version control of its own.
fn holds_repositories(folder: &Path, also: &BTreeSet<PathBuf>) -> bool {
    let names = RepositoryFolders::below(folder).unwrap_or_default().names;
    !names.is_empty() && names.iter().all(|name| !marks(&folder.join(name), also).is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_repository_shows_by_what_lies_in_its_root() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("all");
        let write = |path: &str| {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        for path in ["one/pyproject.toml", "one/src/a.py", "two/setup.py", "two/.git/HEAD"] {
            write(path);
        }
        let of = |path: &str| Checkout::find(&dir.join(path));
        assert_eq!(of("."), None);
        let one = of("one").unwrap();
        assert_eq!((&*one.name, &one.signs[..]), ("one", &["pyproject.toml".to_owned()][..]));
        assert_eq!(one.parent, dir);
        assert_eq!(of("two").unwrap().signs, [".git", "setup.py"]);
        assert_eq!(of("one/."), of("one"));
        assert_eq!(of("nothing"), None);
        // Despite version control or a script, this is a folder of repositories; it no longer is once one repository has no
        // mark.
        write("two/b.py");
        write(".git/HEAD");
        assert_eq!(Checkout::find(&dir), None);
        fs::remove_dir_all(dir.join(".git")).unwrap();
        write("download.py");
        write("notes/index.md");
        assert_eq!(Checkout::find(&dir), None);
        write("three/a.py");
        assert_eq!(Checkout::find(&dir).unwrap().signs, ["download.py"]);
        write(".git/HEAD");
        assert_eq!(Checkout::find(&dir).unwrap().signs, [".git"]);
    }

    #[test]
    fn source_files_and_parts_of_a_repository_show_one() {
        let temporary = tempfile::tempdir().unwrap();
        let signs_of = |paths: &str| {
            let dir = temporary.path().join(paths.replace(['/', ' '], "_"));
            for path in paths.split(' ') {
                let path = dir.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            Checkout::find(&dir).map(|one| one.signs.join(" ")).unwrap_or_default()
        };
        assert_eq!(signs_of("z.py __init__.py sub/a.py"), "__init__.py");
        assert_eq!(signs_of("Main.java com/A.java"), "Main.java");
        assert_eq!(signs_of("README.md src/a/b.py docs/c.txt"), "src");
        assert_eq!(signs_of("README.md tests/test_a.py a/b.py"), "tests");
        for several in [
            "README.md a/b.py c/d.py",
            "list.txt a/b.py",
            ".hidden.py a/b.py",
            "src.py/a.py b/c.py",
        ] {
            assert_eq!(signs_of(several), "", "{several}");
        }
    }
}
