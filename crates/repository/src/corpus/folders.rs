//! Finds the repositories in a folder of repositories.

use std::path::Path;

use foldhash::HashSet;
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_text::language::Language;
use repoformer_text::message;
use repoformer_text::message::UserChoice;
use walkdir::WalkDir;

use super::checkout::CONTROL;
use super::part::{count_sources, is_cache, is_hidden, leads_out};
use super::reading::identity;

/// Folders directly below a folder of repositories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositoryFolders {
    /// Names of the repositories, in code-point order.
    pub names: Vec<String>,
    /// Names of the folders without a source file of any language, in code-point order.
    pub without_source: Vec<String>,
    /// Names of the folders that look like caches of this program, but hold source files, in code-point order.
    pub caches_with_source: Vec<String>,
}

impl RepositoryFolders {
    /// Lists the folders below `repos_dir`, except hidden ones, `__pycache__`, `*.egg-info` and caches of this program.
    ///
    /// # Errors
    /// `repos_dir` cannot be listed, or none of its folders is a repository.
    pub fn below(repos_dir: &Path) -> Result<Self> {
        let mut found = Self::default();
        for name in folder_names(repos_dir)? {
            let folder = repos_dir.join(&name);
            if is_by_product(&name) {
                continue;
            }
            if is_cache(&folder) {
                let is_source = |file: &Path| {
                    file.file_name().is_some_and(|name| is_source(&name.to_string_lossy()))
                };
                if count_sources(&folder, is_source) > 0 {
                    found.caches_with_source.push(name);
                }
                continue;
            }
            let holds_source = holds_source(&folder);
            if holds_source { &mut found.names } else { &mut found.without_source }.push(name);
        }
        if found.names.is_empty() {
            let reason = "contains no folder with source files";
            return Err(not_repositories(repos_dir, reason));
        }
        Ok(found)
    }
}

/// Returns the folders directly below `repos_dir`, except hidden ones and [foreign links](foreign_links), in code-point order.
///
/// # Errors
/// `repos_dir` cannot be listed or contains no folder.
pub fn folder_names(repos_dir: &Path) -> Result<Vec<String>> {
    folder_names_with(repos_dir, &[])
}

/// Returns the folders of [`folder_names`], and the foreign links that the user names.
///
/// # Errors
/// The same as for [`folder_names`].
pub fn folder_names_with(repos_dir: &Path, named: &[String]) -> Result<Vec<String>> {
    let mut names = all_folders(repos_dir)?;
    let foreign = foreign_among(repos_dir, &names);
    names.retain(|name| foreign.binary_search(name).is_err() || named.contains(name));
    if names.is_empty() {
        return Err(not_repositories(repos_dir, "contains no folder"));
    }
    Ok(names)
}

/// Returns the folders directly below `repos_dir`, except hidden ones, in code-point order.
fn all_folders(repos_dir: &Path) -> Result<Vec<String>> {
    let cannot_list = |e| Error::reading(repos_dir, "list the repositories folder", e);
    let mut names = Vec::new();
    for entry in files::read_dir(repos_dir).map_err(cannot_list)? {
        let entry = entry.map_err(cannot_list)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') && entry.path().is_dir() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns the links below `repos_dir` that lead out of it, if `repos_dir` is under version control: somebody else may have made them,
/// so they are repositories only if the user names them.
pub fn foreign_links(repos_dir: &Path) -> Vec<String> {
    foreign_among(repos_dir, &all_folders(repos_dir).unwrap_or_default())
}

fn foreign_among(repos_dir: &Path, names: &[String]) -> Vec<String> {
    let links: Vec<String> =
        names.iter().filter(|name| is_link_out(repos_dir, name)).cloned().collect();
    let real = files::canonicalize(repos_dir).unwrap_or_else(|_| repos_dir.to_owned());
    let is_controlled = || {
        let mut folders = real.ancestors();
        folders.any(|folder| CONTROL.iter().any(|mark| folder.join(mark).exists()))
    };
    if links.is_empty() || !is_controlled() { Vec::new() } else { links }
}

/// Returns true if a folder below `repos_dir` is a link that leads out of it.
pub fn is_link_out(repos_dir: &Path, name: &str) -> bool {
    let path = repos_dir.join(name);
    // Most folders are no links.
    path.is_symlink()
        && files::canonicalize(repos_dir).is_ok_and(|real| leads_out(&real, &path).is_some())
}

/// Returns the error for a folder without repositories.
fn not_repositories(path: &Path, reason: &str) -> Error {
    let reason =
        message![reason, "; a ", UserChoice::RepositoriesFolder, " holds one folder for each"];
    Error::Repository { path: path.to_owned(), reason }
}

/// Returns true if a folder with this name is a by-product of Python.
fn is_by_product(name: &str) -> bool {
    name == "__pycache__" || name.ends_with(".egg-info")
}

/// Returns true if a folder contains a source file of any language, or something that may be one: a link out of the folder,
/// which is not followed here, or an entry that cannot be listed. Hidden files and caches of this program do not count.
fn holds_source(folder: &Path) -> bool {
    let real = files::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let mut entries = WalkDir::new(folder).follow_links(true).into_iter();
    // Links may lead to a folder in exponentially many ways.
    let mut met = HashSet::default();
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let is_link = error.path().is_some_and(Path::is_symlink);
                if error.loop_ancestor().is_none() && !is_link {
                    return true;
                }
                continue;
            }
        };
        let is_folder = entry.file_type().is_dir();
        let is_own = || is_folder && entry.depth() > 0 && is_cache(entry.path());
        let mut is_repeat = || is_folder && !met.insert(identity(entry.path()));
        if is_hidden(&entry) || is_own() || is_repeat() {
            if is_folder {
                entries.skip_current_dir();
            }
            continue;
        }
        let leads_out = || entry.path_is_symlink() && leads_out(&real, entry.path()).is_some();
        let is_source = !is_folder && is_source(&entry.file_name().to_string_lossy());
        if is_source || is_folder && entry.depth() > 0 && leads_out() {
            return true;
        }
    }
    false
}

/// Returns true if a file with this name is a source file of any language.
pub(super) fn is_source(name: &str) -> bool {
    Language::of_path(name).is_some()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{Repository, Walk};
    use super::*;

    #[test]
    fn folders_that_cannot_be_repositories_are_left_out() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path();
        for path in [
            "b/deep/er/a.go", "a/x.py", "docs/index.txt", "__pycache__/a.py", "a.egg-info/a.py",
            ".git/hooks/a.py", "window/repos/notes.py", "top.py", "hidden/.venv/a.py",
        ] {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::create_dir(dir.join("empty")).unwrap();
        let found = RepositoryFolders::below(dir).unwrap();
        assert_eq!(found.names, ["a", "b", "window"]);
        assert_eq!(found.without_source, ["docs", "empty", "hidden"]);
        assert_eq!(folder_names(dir).unwrap().len(), 8);

        let refused = RepositoryFolders::below(&dir.join("docs")).unwrap_err().to_string();
        assert!(refused.contains("contains no folder;"), "{refused}");
        let refused = RepositoryFolders::below(&dir.join("b/deep/..")).unwrap();
        assert_eq!(refused.names, ["deep"]);
        fs::remove_file(dir.join("b/deep/er/a.go")).unwrap();
        let refused = RepositoryFolders::below(&dir.join("b")).unwrap_err().to_string();
        assert!(refused.contains("no folder with source files"), "{refused}");
    }

    /// Somebody else made the links of a clone.
    #[cfg(unix)]
    #[test]
    fn links_out_of_a_clone_are_no_repositories() {
        use std::os::unix::fs::symlink;
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().join("clone");
        for path in ["clone/own/setup.py", "private/setup.py"] {
            let path = temporary.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        symlink("../private", dir.join("private")).unwrap();
        symlink("own", dir.join("again")).unwrap();
        assert_eq!(folder_names(&dir).unwrap(), ["again", "own", "private"]);
        assert!(is_link_out(&dir, "private") && !is_link_out(&dir, "again"));
        assert_eq!(foreign_links(&dir), [""; 0]);
        for controlled in [dir.clone(), temporary.path().to_owned()] {
            fs::create_dir(controlled.join(".git")).unwrap();
            assert_eq!(folder_names(&dir).unwrap(), ["again", "own"]);
            assert_eq!(foreign_links(&dir), ["private"]);
            assert_eq!(folder_names_with(&dir, &["private".into()]).unwrap().len(), 3);
            fs::remove_dir(controlled.join(".git")).unwrap();
        }
        fs::create_dir(dir.join(".git")).unwrap();
        fs::remove_dir_all(dir.join("own")).unwrap();
        fs::remove_file(dir.join("again")).unwrap();
        assert_eq!(super::super::Checkout::find(&dir).unwrap().signs, [".git"]);
    }

    /// Anybody can write a file that begins like an artifact.
    #[test]
    fn source_files_in_a_forged_cache_are_reported() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path();
        for path in [
            "own/window/tasks/a.bin",
            "own/exec/tasks/copies/r/x.py",
            "own/predictions/p.jsonl",
            "forged/window/tasks/a",
            "forged/x.py",
            "r/x.py",
            "r/part/vector/tasks/a",
            "r/part/vector/y.py",
            "r/part/z.py",
            "r/kept/vector/tasks/a",
        ] {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let is_artifact =
                ["a", "a.bin"].map(Some).contains(&path.file_name().unwrap().to_str());
            fs::write(path, if is_artifact { "repoformer artifact\n" } else { "" }).unwrap();
        }
        let found = RepositoryFolders::below(dir).unwrap();
        assert_eq!(
            (found.names, found.caches_with_source),
            (vec!["r".into()], vec!["forged".into()])
        );
        for walk in [Walk::Glob, Walk::Rglob] {
            let read = Repository::read_with(dir, "r", Language::Python, walk).unwrap();
            let paths: Vec<&str> = read.repository.files.iter().map(|file| &*file.path).collect();
            let [problem] = &read.skipped[..] else { panic!("{:?}", read.skipped) };
            assert_eq!(paths, ["r/x.py"]);
            assert!(problem.to_string().contains("part: left out: "), "{problem}");
            assert!(problem.to_string().contains("has 2 source files"), "{problem}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_a_link_leads_to_counts_and_a_loop_ends() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path();
        for folder in ["linked", "led_out", "loop", "broken"] {
            fs::create_dir_all(dir.join(folder).join("d")).unwrap();
        }
        fs::write(dir.join("a.py"), "").unwrap();
        fs::write(dir.join("linked/script"), "").unwrap();
        let link = |to: &str, path: &str| {
            std::os::unix::fs::symlink(to, dir.join(path)).unwrap();
        };
        link("../script", "linked/d/b.py");
        link("../a.py", "led_out/b.py");
        link("../linked", "led_out/folder");
        link("..", "loop/d/up");
        link("nowhere", "broken/c.txt");
        let found = RepositoryFolders::below(dir).unwrap();
        assert_eq!(
            (found.names, found.without_source),
            (vec!["led_out".into(), "linked".into()], vec!["broken".into(), "loop".into()])
        );
    }
}
