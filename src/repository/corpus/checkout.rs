//! Recognises a repository where a folder of repositories was meant.

use std::path::{Path, PathBuf};

/// Files and folders that lie in the root of one repository.
const SIGNS: [&str; 12] = [
    ".git", "pyproject.toml", "setup.py", "setup.cfg", "package.json", "Cargo.toml", "go.mod",
    "pom.xml", "build.gradle", "build.gradle.kts", ".hg", "PKG-INFO",
];

/// Folder that is one repository, and not a folder of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// Folder that holds it.
    pub parent: PathBuf,
    /// Its name in that folder.
    pub name: String,
    /// What shows that it is one, such as `.git` and `pyproject.toml`.
    pub signs: Vec<&'static str>,
}

impl Checkout {
    /// Recognises a repository by what lies in its root. A folder with nothing but `.git` is a folder of repositories under
    /// version control if each of its folders is a repository itself.
    pub fn of(folder: &Path) -> Option<Self> {
        let signs = signs(folder);
        if signs.is_empty() || (signs == [".git"] && holds_repositories(folder)) {
            return None;
        }
        let (parent, name) = match (folder.parent(), folder.file_name()) {
            (Some(parent), Some(name)) => (parent.to_owned(), name.to_owned()),
            // As `.` and `..`.
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

fn signs(folder: &Path) -> Vec<&'static str> {
    SIGNS.into_iter().filter(|sign| folder.join(sign).exists()).collect()
}

/// Whether each folder in it is a repository, of which there are some.
fn holds_repositories(folder: &Path) -> bool {
    let names = super::repository_names(folder).unwrap_or_default();
    !names.is_empty() && names.iter().all(|name| !signs(&folder.join(name)).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
        let of = |path: &str| Checkout::of(&dir.join(path));
        assert_eq!(of("."), None);
        let one = of("one").unwrap();
        assert_eq!((&*one.name, &one.signs[..]), ("one", &["pyproject.toml"][..]));
        assert_eq!(one.parent, dir);
        assert_eq!(of("two").unwrap().signs, [".git", "setup.py"]);
        assert_eq!(of("one/."), of("one"));
        assert_eq!((of("one/src"), of("nothing")), (None, None));
        // Under version control, and still a folder of repositories; with a folder that is none, no longer.
        write(".git/HEAD");
        assert_eq!(Checkout::of(&dir), None);
        write("three/a.py");
        assert_eq!(Checkout::of(&dir).unwrap().signs, [".git"]);
    }
}
