//! Files that git ignores. The patterns are in `.gitignore` of the repository's folders and of the folders above, up to the
//! root of the work tree, in `.git/info/exclude`, and in the user's own list (`core.excludesFile`).
//!
//! Git's index is not read: a tracked file is also left out if a pattern matches it.

use std::io::{self, BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::HashMap;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};
use repoformer_store::error::{Error, Result};
use repoformer_store::{files, inputs};

/// Name of a folder's list of patterns.
pub const GIT_IGNORE: &str = ".gitignore";
/// Path of a clone's own list.
pub const GIT_EXCLUDE: &str = ".git/info/exclude";

/// Greatest total size in bytes of the lists that are read for a repository. Patterns become an automaton of up to 1200 bytes
/// for each byte.
const MOST: u64 = 1 << 18;

/// Git's rules for the files of one repository.
#[derive(Debug)]
pub(super) struct GitRules {
    root: PathBuf,
    /// Lists of the folders above, of the clone and of the user, each with the path from the root of its patterns to the
    /// repository. The first list that matches a path decides.
    outer: Vec<(Gitignore, PathBuf)>,
    /// Lists that apply in the repository's folders, by the folder's path relative to the repository's root.
    folders: Mutex<HashMap<PathBuf, Arc<[FolderList]>>>,
    reading: Mutex<ListReading>,
}

/// List of a folder in the repository.
#[derive(Debug, Clone)]
struct FolderList {
    rules: Arc<Gitignore>,
    /// Path of the folder relative to the repository's root.
    folder: PathBuf,
}

/// Greatest number of lists that apply in a folder: its own list and the lists of the folders above.
const MOST_LISTS: usize = 64;

/// State of reading the lists.
#[derive(Debug)]
struct ListReading {
    problems: Vec<Error>,
    /// Number of bytes that further lists may have.
    left: u64,
}

impl GitRules {
    /// Reads the rules for a repository's folder. The lists of subfolders are read when the walk enters them.
    pub(super) fn new(root: &Path) -> Result<Self> {
        let mut reading = ListReading { problems: Vec::new(), left: MOST };
        let lists = outer_lists(root).into_iter();
        let mut outer: Vec<_> =
            lists.map(|list| (reading.read(&list.path, &list.allowed), list.way)).collect();
        outer.retain(|(rules, _)| !rules.is_empty());
        let reading = Mutex::new(reading);
        Ok(Self { root: root.to_owned(), outer, folders: Mutex::default(), reading })
    }

    /// Returns true if a file or folder of the repository is ignored, given that its parent folder is not.
    pub(super) fn ignore(&self, below: &Path, is_folder: bool) -> bool {
        let lists = self.lists_in(below.parent().unwrap_or(Path::new("")));
        let own = lists.iter().map(|FolderList { rules, folder }| {
            decide(rules, below.strip_prefix(folder).unwrap_or(below), is_folder)
        });
        let outer =
            self.outer.iter().map(|(rules, way)| decide(rules, &way.join(below), is_folder));
        own.chain(outer).flatten().next().unwrap_or(false)
    }

    /// Returns true if a file of the repository, or a folder that contains it, is ignored.
    pub(super) fn ignore_within(&self, below: &Path, is_folder: bool) -> bool {
        let mut names: Vec<&Path> = below.ancestors().collect();
        names.pop(); // The repository itself.
        // Git treats a link as a file, whatever its target.
        let is_link = |name: &Path| {
            let found = files::symlink_metadata(self.root.join(name));
            found.is_ok_and(|found| found.file_type().is_symlink())
        };
        let is_folder = |name: &Path| if name == below { is_folder } else { !is_link(name) };
        names.iter().rev().any(|name| self.ignore(name, is_folder(name)))
    }

    /// Returns the errors for lines that cannot be parsed and lists that cannot be read, and forgets them.
    pub(super) fn take_problems(&self) -> Vec<Error> {
        std::mem::take(&mut self.reading.lock().unwrap_or_else(PoisonError::into_inner).problems)
    }

    /// Returns the lists that apply in a folder of the repository, the nearest first.
    fn lists_in(&self, folder: &Path) -> Arc<[FolderList]> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = folders.get(folder) {
            return Arc::clone(known);
        }
        let mut lists: Arc<[FolderList]> = Arc::new([]);
        let mut unknown = Vec::new();
        for above in folder.ancestors() {
            if let Some(known) = folders.get(above) {
                lists = Arc::clone(known);
                break;
            }
            unknown.push(above);
        }
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        for folder in unknown.into_iter().rev() {
            let path = self.root.join(folder).join(GIT_IGNORE);
            let rules = reading.read(&path, &ListPlace::Path);
            if lists.len() == MOST_LISTS && !rules.is_empty() {
                let reason = format!(
                    "{MOST_LISTS} ignore files of parent folders already apply here; the patterns \
                     of this file are not used"
                );
                reading.problems.push(Error::SourceFile { path, reason: reason.into() });
            } else if !rules.is_empty() {
                let own = FolderList { rules: Arc::new(rules), folder: folder.to_owned() };
                lists = [own].into_iter().chain(lists.iter().cloned()).collect();
            }
            folders.insert(folder.to_owned(), Arc::clone(&lists));
        }
        lists
    }
}

/// Location at which a list may be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ListPlace {
    /// Only at its path; git ignores a link in the work tree, since it could lead anywhere.
    Path,
    /// In this folder, without links.
    Folder(PathBuf),
    /// Anywhere, since it is the user's own.
    Anywhere,
}

impl ListPlace {
    fn allows(&self, path: &Path, place: &Path) -> bool {
        match self {
            Self::Path => {
                let folder = path.parent().and_then(|folder| files::canonicalize(folder).ok());
                folder
                    .zip(path.file_name())
                    .is_some_and(|(folder, name)| place == folder.join(name))
            }
            Self::Folder(folder) => place.starts_with(folder),
            Self::Anywhere => true,
        }
    }
}

/// List of patterns outside of the repository's folders.
#[derive(Debug)]
struct OuterList {
    path: PathBuf,
    allowed: ListPlace,
    /// Path from the root of its patterns to the repository.
    way: PathBuf,
}

/// Returns the lists of the folders above a repository, of the clone and of the user, whether or not they exist. The first list
/// that matches a path decides.
fn outer_lists(root: &Path) -> Vec<OuterList> {
    let real = files::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let tree = real.ancestors().find(|folder| folder.join(".git").exists());
    let way = |folder| real.strip_prefix(folder).unwrap_or(Path::new("")).to_owned();
    let mut lists = Vec::new();
    if let Some(tree) = tree {
        let above = real.ancestors().skip(1).take_while(|folder| folder.starts_with(tree));
        lists.extend(above.map(|folder| OuterList {
            path: folder.join(GIT_IGNORE),
            allowed: ListPlace::Path,
            way: way(folder),
        }));
        lists.extend(git_folder_of(tree).map(|folder| OuterList {
            path: folder.join("info/exclude"),
            allowed: ListPlace::Folder(folder),
            way: way(tree),
        }));
    }
    let of_user = gitconfig_excludes_path();
    lists.extend(of_user.map(|path| OuterList {
        path,
        allowed: ListPlace::Anywhere,
        way: way(tree.unwrap_or(&real)),
    }));
    lists
}

/// Returns the paths of the lists of ignored files outside of a repository's folder, whether or not they exist: the lists of
/// the folders above, of the clone and of the user. For a link, its target is included, too.
pub fn lists_outside(root: &Path) -> Vec<PathBuf> {
    let real = files::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let mut paths = Vec::new();
    for OuterList { path, allowed, .. } in outer_lists(root) {
        // Use the folder's name that file system events will use.
        let folder = path.parent().and_then(|folder| files::canonicalize(folder).ok());
        let named = folder.zip(path.file_name()).map(|(folder, name)| folder.join(name));
        let led = files::canonicalize(&path).ok().filter(|_| allowed != ListPlace::Path);
        paths.extend(named.into_iter().chain(led).filter(|path| !path.starts_with(&real)));
    }
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Returns whether the last pattern that matches a path ignores it; `None` if no pattern matches.
fn decide(rules: &Gitignore, path: &Path, is_folder: bool) -> Option<bool> {
    match rules.matched(path, is_folder) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

/// Returns the git folder of a work tree, without links. If `.git` is a file, as in a linked work tree or a submodule, it names
/// the git folder, which must belong to the work tree: it must name the work tree, or be inside the `.git` of a folder above. A git
/// folder inside the work tree must not name a clone outside. Otherwise, whoever created the tree could have any file read as a list.
fn git_folder_of(tree: &Path) -> Option<PathBuf> {
    let line = |path: PathBuf| {
        let file = files::File::open_in_place(path).ok()??.file;
        let mut line = String::new();
        io::BufReader::new(file.take(MOST)).read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    };
    let own = files::canonicalize(tree.join(".git")).ok()?;
    if own.is_dir() {
        return own.starts_with(tree).then_some(own);
    }
    let named = line(own.clone())?;
    let folder =
        files::canonicalize(tree.join(named.strip_prefix("gitdir:")?.trim_start())).ok()?;
    let back = line(folder.join("gitdir")).map(|back| folder.join(back));
    let is_worktree = back.and_then(|back| files::canonicalize(back).ok()) == Some(own);
    if is_worktree {
        let common = folder.join(line(folder.join("commondir"))?);
        let common = files::canonicalize(common).ok().filter(|common| folder.starts_with(common));
        return common.filter(|common| common.starts_with(tree) || !folder.starts_with(tree));
    }
    let is_submodule = tree.ancestors().skip(1).any(|above| folder.starts_with(above.join(".git")));
    is_submodule.then_some(folder)
}

/// Escapes the braces of a pattern, which are ordinary characters for git.
fn with_literal_braces(line: &str) -> String {
    let mut literal = String::new();
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '{' | '}' => literal.extend(['[', c, ']']),
            '\\' => literal.extend([Some(c), rest.next()].into_iter().flatten()),
            '[' => {
                // The first character of a class may be a closing bracket.
                let class = rest.as_str();
                let begin = class.find(|c| c != '!' && c != '^').unwrap_or(class.len());
                let first = class[begin..].chars().next().map_or(0, char::len_utf8);
                let end = class[begin + first..].find(']').map(|end| begin + first + end + 1);
                let (class, behind) = class.split_at(end.unwrap_or(0));
                literal.push(c);
                literal.push_str(class);
                rest = behind.chars();
            }
            _ => literal.push(c),
        }
    }
    literal
}

impl ListReading {
    /// Reads a list of patterns, if its location is allowed.
    fn read(&mut self, path: &Path, allowed: &ListPlace) -> Gitignore {
        let Self { problems, left } = self;
        let mut problem = |reason: String| {
            problems.push(Error::SourceFile { path: path.to_owned(), reason: reason.into() });
        };
        let found = match allowed {
            ListPlace::Path => files::symlink_metadata(path),
            _ => files::metadata(path),
        };
        if !found.is_ok_and(|metadata| metadata.is_file()) {
            return Gitignore::empty();
        }
        let read = files::File::open_in_place(path).and_then(|open| match open {
            Some(open) if allowed.allows(path, &open.place()?) => open.file.read_at_most(*left),
            _ => Err(io::Error::other("it is a link out of its folder")),
        });
        inputs::protect(path);
        let bytes = match read {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                problem(
                    "with this file, the repository's ignore files are longer than 256 KiB; the \
                     patterns of this file are not used"
                        .into(),
                );
                return Gitignore::empty();
            }
            Err(error) => {
                problem(format!("cannot be read, so its patterns are not used: {error}"));
                return Gitignore::empty();
            }
        };
        *left -= bytes.len() as u64;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut builder = GitignoreBuilder::new("");
        for (number, line) in text.lines().enumerate() {
            if let Err(error) = builder.add_line(None, &with_literal_braces(line)) {
                problem(format!("line {}: {error}; this pattern is not used", number + 1));
            }
        }
        builder.build().unwrap_or_else(|error| {
            problem(format!("{error}; its patterns are not used"));
            Gitignore::empty()
        })
    }
}

#[cfg(test)]
mod tests {
    use repoformer_text::language::Language;

    use super::*;
    use crate::corpus::{Listing, Repository, Walk};

    /// Files and their contents.
    const FILES: [(&str, &str); 22] = [
        (".gitignore", "/r/local.py\n# comment\n/a.py\n"),
        (
            "r/.gitignore",
            "\u{feff}build/\n*_pb2.py\n!kept_pb2.py\n/only_here.py\npages/**/made.py\nodd\\ name.py\nlinked\n",
        ),
        ("r/a.py", ""),
        ("r/local.py", ""),
        ("local.py", ""),
        ("r/build/b.py", ""),
        ("r/build/.gitignore", "!b.py\n"),
        ("r/d/build/c.py", ""),
        ("r/build.py", ""),
        ("r/x_pb2.py", ""),
        ("r/d/kept_pb2.py", ""),
        ("r/d/.gitignore", "kept_pb2.py\n!y_pb2.py\nown.py\n"),
        ("r/d/y_pb2.py", ""),
        ("r/d/own.py", ""),
        ("r/e/own.py", ""),
        ("r/only_here.py", ""),
        ("r/d/only_here.py", ""),
        ("r/pages/v/w/made.py", ""),
        ("r/odd name.py", ""),
        ("r/excluded.py", ""),
        ("r/f/excluded.py", ""),
        (".git/info/exclude", "/r/excluded.py\n"),
    ];

    fn listed(dir: &Path) -> Vec<String> {
        let listing = Listing::new(dir, "r", Language::Python, Walk::Git).unwrap();
        let (found, problems) = listing.all().unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        let paths: Vec<String> = found.into_iter().map(|file| file.path).collect();
        for (file, _) in
            FILES.iter().filter(|(file, _)| file.starts_with("r/") && file.ends_with(".py"))
        {
            let is_read = listing.read(file).unwrap().is_some();
            assert_eq!(is_read, paths.iter().any(|path| path == file), "{file}");
        }
        for folder in ["d", "build", "pages/v"] {
            let within = format!("r/{folder}/");
            let below = listing.below(folder).unwrap().into_iter().map(|file| file.path);
            let wanted: Vec<&String> =
                paths.iter().filter(|path| path.starts_with(&within)).collect();
            let mut below: Vec<String> = below.collect();
            below.sort_unstable();
            assert_eq!(below.iter().collect::<Vec<_>>(), wanted, "{folder}");
        }
        paths
    }

    #[test]
    fn files_that_git_ignores_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in FILES {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = listed(dir.path());
        let wanted = "r/a.py r/build.py r/d/only_here.py r/d/y_pb2.py r/e/own.py r/f/excluded.py";
        assert_eq!(found.join(" "), wanted);
        // Git itself agrees.
        std::fs::remove_dir_all(dir.path().join(".git")).unwrap();
        let git = |args: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.arg("-C").arg(dir.path()).args(args).env("GIT_CONFIG_GLOBAL", "/dev/null");
            command.output().ok().map(|output| String::from_utf8(output.stdout).unwrap())
        };
        if git(&["init", "-q"]).is_some() {
            std::fs::create_dir_all(dir.path().join(".git/info")).unwrap();
            std::fs::write(dir.path().join(".git/info/exclude"), "/r/excluded.py\n").unwrap();
            let said = git(&["ls-files", "-co", "--exclude-standard", "r/*.py"]).unwrap();
            let mut said: Vec<&str> = said.lines().collect();
            said.sort_unstable();
            assert_eq!(said, found);
        }
        // Other walks find all files.
        let all = Repository::read(dir.path(), "r", Language::Python).unwrap();
        assert_eq!(all.repository.files.len(), 16);
    }

    #[test]
    fn braces_are_characters() {
        for (line, wanted) in [
            ("*.{py,js}", "*.[{]py,js[}]"),
            (r"\{a[{]}", r"\{a[{][}]"),
            ("[]{]{[!]}]}", "[]{][{][!]}][}]"),
            ("[{", "[[{]"),
            ("é\\", "é\\"),
        ] {
            assert_eq!(with_literal_braces(line), wanted, "{line}");
        }
    }

    /// In a linked work tree, whose `.git` is a file, with links to the user's lists and a link to a folder.
    #[cfg(unix)]
    #[test]
    fn lists_of_a_clone_elsewhere_and_links_are_those_of_git() {
        use std::os::unix::fs::symlink;

        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree/r");
        let write = |path: &Path, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(&tree.join(".gitignore"), "build/\nlatest\n*.{py,pyi}\n");
        for file in ["a.py", "b.py", "build/c.py", "other/d.py", "x.{py,pyi}/e.py"] {
            write(&tree.join(file), "");
        }
        symlink("build", tree.join("latest")).unwrap();
        symlink("other", tree.join("build2")).unwrap();
        write(&dir.path().join("main/.git/worktrees/w/commondir"), "../..\n");
        write(&dir.path().join("main/.git/worktrees/w/gitdir"), "../../../../tree/r/.git\n");
        write(&dir.path().join("main/.git/info/list"), "b.py\n");
        symlink("list", dir.path().join("main/.git/info/exclude")).unwrap();
        write(&tree.join(".git"), "gitdir: ../../main/.git/worktrees/w\n");
        let root = dir.path().join("tree");
        let listing = Listing::new(&root, "r", Language::Python, Walk::Git).unwrap();
        let (found, problems) = listing.all().unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        let found: Vec<&str> = found.iter().map(|file| &*file.path).collect();
        assert_eq!(found, ["r/a.py", "r/build2/d.py", "r/other/d.py"]);
        let real = dir.path().canonicalize().unwrap();
        let outside = lists_outside(&tree);
        let of_clone: Vec<_> = outside.iter().filter(|path| path.starts_with(&real)).collect();
        assert_eq!(
            of_clone,
            [&real.join("main/.git/info/exclude"), &real.join("main/.git/info/list")]
        );
        for file in ["a.py", "b.py", "build/c.py", "latest/c.py", "build2/d.py", "other/d.py"] {
            let path = format!("r/{file}");
            let is_read = listing.read(&path).unwrap().is_some();
            assert_eq!(is_read, found.contains(&&*path), "{file}");
        }
    }

    /// Otherwise, whoever created the tree could tell from the ignored files which lines another file has.
    #[cfg(unix)]
    #[test]
    fn lists_elsewhere_are_not_read() {
        use std::os::unix::fs::symlink;

        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("r");
        let reset = |name: &str| {
            let _ = std::fs::remove_dir_all(&tree);
            std::fs::create_dir_all(tree.join("evil")).unwrap();
            std::fs::write(tree.join("a.py"), "").unwrap();
            tree.join(name)
        };
        std::fs::create_dir_all(dir.path().join("other/info")).unwrap();
        std::fs::write(dir.path().join("other/info/exclude"), "a.py\n").unwrap();
        let is_read = || {
            let listing = Listing::new(dir.path(), "r", Language::Python, Walk::Git).unwrap();
            listing.all().unwrap().0.len() == 1
        };
        let git = reset(".git/info");
        std::fs::create_dir_all(&git).unwrap();
        symlink("../../../other/info/exclude", git.join("exclude")).unwrap();
        assert!(is_read(), "a link as the list");
        symlink("../other", reset(".git")).unwrap();
        assert!(is_read(), "a link as git's folder");
        std::fs::write(reset(".git"), "gitdir: ../other\n").unwrap();
        assert!(is_read(), "a folder elsewhere");
        std::fs::write(reset(".git"), "gitdir: evil\n").unwrap();
        std::fs::write(tree.join("evil/gitdir"), "../.git\n").unwrap();
        std::fs::write(tree.join("evil/commondir"), "../../other\n").unwrap();
        assert!(is_read(), "a clone elsewhere");
        std::fs::create_dir(dir.path().join("info")).unwrap();
        std::fs::write(dir.path().join("info/exclude"), "a.py\n").unwrap();
        std::fs::write(tree.join("evil/commondir"), "../..\n").unwrap();
        assert!(is_read(), "a folder above");
        std::fs::create_dir_all(reset(".git/info")).unwrap();
        std::fs::write(tree.join(".git/info/exclude"), "a.py\n").unwrap();
        assert!(!is_read(), "its own list");
    }

    #[test]
    fn patterns_that_are_not_used_are_reported_and_links_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("r");
        std::fs::create_dir_all(root.join("d")).unwrap();
        for file in ["a.py", "b.py", "d/c.py"] {
            std::fs::write(root.join(file), "").unwrap();
        }
        std::fs::write(root.join(".gitignore"), "a.py\n[z-b].py\n").unwrap();
        #[cfg(unix)]
        {
            std::fs::write(dir.path().join("outside"), "c.py\nb[\n").unwrap();
            std::os::unix::fs::symlink("../../outside", root.join("d/.gitignore")).unwrap();
        }
        let listing = Listing::new(dir.path(), "r", Language::Python, Walk::Git).unwrap();
        let (found, problems) = listing.all().unwrap();
        let found: Vec<&str> = found.iter().map(|file| &*file.path).collect();
        assert_eq!(found, ["r/b.py", "r/d/c.py"]);
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        let problem = problem.to_string();
        assert!(problem.contains("r/.gitignore") && problem.contains("line 2"), "{problem}");
        // One list that is too long, and three lists that are too long together.
        let too_long = || {
            let listing = Listing::new(dir.path(), "r", Language::Python, Walk::Git).unwrap();
            let (found, problems) = listing.all().unwrap();
            assert!(problems.iter().all(|one| one.to_string().contains("longer than 256 KiB")));
            (found.len(), problems.len())
        };
        std::fs::write(root.join(".gitignore"), vec![b'a'; 2 << 20]).unwrap();
        assert_eq!(too_long(), (3, 1));
        std::fs::write(root.join(".gitignore"), "a.py\n".repeat(20_000)).unwrap();
        for folder in ["x", "y"] {
            std::fs::create_dir(root.join(folder)).unwrap();
            std::fs::write(root.join(folder).join("e.py"), "").unwrap();
            std::fs::write(root.join(folder).join(".gitignore"), "e.py\n".repeat(20_000)).unwrap();
        }
        let (found, problems) = too_long();
        assert_eq!((found, problems), (3, 1), "the list of one of the folders is not used");
    }
}
