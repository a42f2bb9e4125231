//! Packages that are folders, and the folder that an import path refers to.

use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use repoformer_text::language::{NameVisibility, TypeRules};

use super::unit::Unit;
use crate::definitions::found::FoundDefinitions;
use crate::definitions::rows::{Definition, SourcePaths, folder};

/// Returns the package that an import's path names: `b` for `host/a/b` and for `host/a/b/v2`.
fn package_of(path: &str) -> Option<&str> {
    let is_version = |part: &str| {
        let number = part.strip_prefix('v');
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut parts = path.split('/');
    // A module's path begins with a host, which has a dot.
    parts.next().filter(|host| host.contains('.'))?;
    parts.rfind(|part| !is_version(part))
}

/// Folders of a repository, and the prefix of its import paths.
pub(super) struct Folders<'a> {
    /// Folders by their [`folder`] name.
    folders: HashMap<String, Folder<'a>>,
    /// Length in bytes of the longest folder name.
    longest: usize,
    /// Path by which other repositories import the repository's own folder.
    module: Option<&'a str>,
}

/// Contents of a folder's files.
#[derive(Default)]
struct Folder<'a> {
    files: Vec<usize>,
    /// Functions and variables outside types.
    called: HashMap<&'a str, FoundDefinitions>,
    /// First file that declares each variable outside functions.
    variables: HashMap<&'a str, usize>,
}

impl<'a> Folder<'a> {
    /// Reads the names of the folder's files.
    fn read(&mut self, units: &'a [Arc<Unit>]) {
        let mut called: HashMap<&str, Vec<Definition>> = HashMap::default();
        for &file in &self.files {
            let unit = &units[file];
            for (name, rows, kind) in unit.all_called() {
                called.entry(name).or_default().push(Definition::new(file, rows, kind));
            }
            for name in unit.variables() {
                self.variables.entry(name).or_insert(file);
            }
        }
        let called = called.into_iter();
        self.called = called.map(|(name, found)| (name, found.into_iter().collect())).collect();
    }
}

impl<'a> Folders<'a> {
    /// Determines the path under which the repository is imported, since the files do not state it: the path under which most
    /// imports lead to one of its folders. Ties are broken alphabetically.
    pub(super) fn new(paths: &SourcePaths<'a>, rules: &TypeRules, units: &'a [Arc<Unit>]) -> Self {
        let mut folders: HashMap<String, Folder<'_>> = HashMap::default();
        for (number, file) in paths.files.iter().enumerate() {
            folders.entry(folder(file.path)).or_default().files.push(number);
        }
        if let NameVisibility::Folders = rules.visibility {
            folders.values_mut().for_each(|folder| folder.read(units));
        }
        let longest = folders.keys().map(String::len).max().unwrap_or(0);
        let of_root = folders.get(".").into_iter().flat_map(|root| &root.files);
        let of_root = of_root.map(|&file| &*units[file].package);
        let of_root: HashSet<&str> = of_root.collect();
        let mut votes: HashMap<&str, usize> = HashMap::default();
        for import in units.iter().flat_map(|unit| unit.imports.iter()) {
            let path = import.from.as_str();
            // Paths whose first name has no dot belong to the platform.
            let begins = path.match_indices('/').map(|(at, _)| at);
            let begins = begins.filter(|_| path.split('/').next().is_some_and(|n| n.contains('.')));
            let module = begins.filter(|&at| {
                let below = &path[at..];
                below.len() < longest && folders.contains_key([".", below].concat().as_str())
            });
            for at in module {
                *votes.entry(&path[..at]).or_default() += 1;
            }
            if package_of(path).is_some_and(|name| of_root.contains(name)) {
                *votes.entry(path).or_default() += 1;
            }
        }
        let most = votes.into_iter().max_by(|one, other| {
            let by_count = one.1.cmp(&other.1);
            by_count.then_with(|| other.0.cmp(one.0))
        });
        Self { folders, longest, module: most.map(|(module, _)| module) }
    }

    /// Returns the folder that an import refers to; `None` if the repository does not have it.
    pub(super) fn imported_folder(&self, path: &str) -> Option<&str> {
        let below = path.strip_prefix(self.module?)?;
        let is_folder = below.is_empty() || below.starts_with('/');
        if !is_folder || below.len() >= self.longest {
            return None;
        }
        let folder = [".", below].concat();
        self.folders.get_key_value(folder.as_str()).map(|(folder, _)| folder.as_str())
    }

    /// Returns the definitions of a function, or of a variable that is called, in the files of a folder.
    pub(super) fn find_called(&self, folder: &str, name: &str) -> FoundDefinitions {
        let found = self.folders.get(folder).and_then(|folder| folder.called.get(name));
        found.cloned().unwrap_or_default()
    }

    /// Returns the first file of a folder that declares a variable outside functions.
    pub(super) fn with_variable(&self, folder: &str, name: &str) -> Option<usize> {
        self.folders.get(folder)?.variables.get(name).copied()
    }
}
