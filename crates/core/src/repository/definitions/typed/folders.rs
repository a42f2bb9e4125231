//! Packages that are folders, and the folder that an import of a path means.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::unit::Unit;
use crate::repository::definitions::rows::{SourcePaths, folder};

/// The package that an import's path names: `b` of `host/a/b` and of `host/a/b/v2`.
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

/// The folders of a repository, and where the paths of its imports begin.
pub(super) struct Folders<'a> {
    /// Files of each [`folder`].
    files: FxHashMap<String, Vec<usize>>,
    /// Path by which others import the repository's own folder.
    module: Option<&'a str>,
}

impl<'a> Folders<'a> {
    /// The files do not say under which path a repository is imported: the path under which most imports lead to one of
    /// its folders; of equals the first in the order of the alphabet.
    pub(super) fn new(paths: &SourcePaths<'a>, units: &'a [Arc<Unit>]) -> Self {
        let mut files: FxHashMap<String, Vec<usize>> = FxHashMap::default();
        for (number, file) in paths.files.iter().enumerate() {
            files.entry(folder(file.path)).or_default().push(number);
        }
        let of_root = files.get(".").into_iter().flatten().map(|&file| &*units[file].package);
        let of_root: FxHashSet<&str> = of_root.collect();
        let mut votes: FxHashMap<&str, usize> = FxHashMap::default();
        for import in units.iter().flat_map(|unit| unit.imports.iter()) {
            let path = import.from.as_str();
            // Paths whose first name has no dot are the platform's.
            let begins = path.match_indices('/').map(|(at, _)| at);
            let begins = begins.filter(|_| path.split('/').next().is_some_and(|n| n.contains('.')));
            let module = begins.filter(|&at| {
                let folder = [".", &path[at..]].concat();
                files.contains_key(folder.as_str())
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
        Self { files, module: most.map(|(module, _)| module) }
    }

    /// The folder that an import means; `None` where it is not of the repository.
    pub(super) fn imported(&self, path: &str) -> Option<&str> {
        let below = path.strip_prefix(self.module?)?;
        let is_folder = below.is_empty() || below.starts_with('/');
        let folder = [".", below].concat();
        let found = self.files.get_key_value(folder.as_str());
        found.filter(|_| is_folder).map(|(folder, _)| folder.as_str())
    }

    /// Files of a folder.
    pub(super) fn files(&self, folder: &str) -> &[usize] {
        self.files.get(folder).map_or(&[], Vec::as_slice)
    }
}
