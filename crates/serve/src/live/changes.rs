//! Files that changed on disk.

use std::sync::Arc;

use foldhash::HashSet;
use repoformer_core::repository::fragment::FragmentFile;
use repoformer_core::repository::parallel;
use repoformer_core::retrieve::live::LiveFile;
use repoformer_store::error::{Error, Result};

use super::{LiveRepository, lock};

/// Files that were read again after a change.
#[derive(Debug, Default)]
pub(crate) struct ChangedFiles {
    /// Paths of new files and of files whose text changed.
    pub(crate) read: Vec<String>,
    /// Paths of removed files.
    pub(crate) removed: Vec<String>,
    /// Errors of files that cannot be read, which were removed from the index.
    pub(crate) problems: Vec<Error>,
}

/// Returns whether a path is a folder or is inside it; every path is inside the folder with the empty name.
fn is_within(path: &str, folder: &str) -> bool {
    let below = path.strip_prefix(folder);
    below.is_some_and(|below| folder.is_empty() || below.is_empty() || below.starts_with('/'))
}

impl LiveRepository {
    /// Reads files that may have changed, given by paths from the folder of repositories on.
    ///
    /// # Errors
    /// The repository's folder cannot be opened.
    pub(crate) fn refresh(&self, paths: &[String]) -> Result<ChangedFiles> {
        let _one_at_a_time = lock(&self.changing);
        let before = self.snapshot();
        let mut paths: HashSet<&str> = paths.iter().map(String::as_str).collect();
        // A file with several names changes under all of them.
        let same = |path: &&str| before.file(path).map(|(_, same)| same);
        let changed: HashSet<u64> = paths.iter().filter_map(same).collect();
        let names = before.files().filter(|(_, same)| changed.contains(same));
        let names: Vec<String> = names.map(|(file, _)| file.path.clone()).collect();
        paths.extend(names.iter().map(String::as_str));
        let mut paths: Vec<&str> = paths.into_iter().collect();
        paths.sort_unstable();
        let cut = self.experiment.layout.cut;
        let listing = self.listing()?;
        let read = parallel::map(&paths, |path| {
            listing.read(path).map(|read| {
                let (source, same) = read?;
                Some(LiveFile { file: FragmentFile::new(source, cut), same })
            })
        });
        let (mut changed, mut files) = (ChangedFiles::default(), Vec::new());
        for (path, read) in paths.into_iter().zip(read) {
            let known = before.file(path);
            match read {
                Ok(Some(file)) => {
                    let is_known = known.is_some_and(|(known, same)| {
                        known.digest == file.file.digest
                            && known.bytes == file.file.bytes
                            && same == file.same
                    });
                    if !is_known {
                        changed.read.push(path.to_owned());
                        files.push(file);
                    }
                    continue;
                }
                Ok(None) => {}
                Err(error) => changed.problems.push(error),
            }
            if known.is_some() {
                changed.removed.push(path.to_owned());
            }
        }
        if !files.is_empty() || !changed.removed.is_empty() {
            let next = before.with(files, &changed.removed);
            *lock(&self.settled) = Arc::new(next);
        }
        Ok(changed)
    }

    /// Reads files that may have changed, given by paths from the repository's folder on, and all files below the folders among these
    /// paths. The empty path means the whole repository.
    ///
    /// # Errors
    /// The repository's folder cannot be opened or listed.
    pub(crate) fn refresh_below(&self, names: &[String]) -> Result<ChangedFiles> {
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        // A listed folder already covers the paths inside it.
        names.dedup_by(|name, folder| is_within(name, folder));
        let whole = |name: &&str| match *name {
            "" => self.name.clone(),
            name => format!("{}/{name}", self.name),
        };
        let paths: Vec<String> = names.iter().map(whole).collect();
        let folders: HashSet<&str> = paths.iter().map(String::as_str).collect();
        let is_below = |path: &str| {
            let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
            ends.into_iter().any(|end| folders.contains(&path[..end]))
        };
        let snapshot = self.snapshot();
        let known = snapshot.files().map(|(file, _)| &*file.path);
        let mut all: Vec<String> = known.filter(|path| is_below(path)).map(str::to_owned).collect();
        let listing = self.listing()?;
        let is_folder = |path: &str| self.experiment.repos_dir.join(path).is_dir();
        let folders = names.iter().zip(&paths).filter(|(_, path)| is_folder(path));
        let listed: Option<Vec<_>> = folders
            .map(|(name, _)| if name.is_empty() { None } else { listing.below(name) })
            .collect();
        let found = match listed {
            Some(found) => found.into_iter().flatten().collect(),
            None => listing.all()?.0,
        };
        all.extend(found.into_iter().map(|file| file.path).filter(|path| is_below(path)));
        all.extend(paths.iter().filter(|path| **path != self.name).cloned());
        // If folders are links, a new file may have another path that takes precedence.
        let endings = self.experiment.layout.language.extensions();
        let is_new = |path: &String| {
            endings.iter().any(|ending| path.ends_with(ending)) && snapshot.file(path).is_none()
        };
        if all.iter().any(is_new) && snapshot.has_links() {
            all.extend(listing.all()?.0.into_iter().map(|file| file.path).filter(is_new));
        }
        self.refresh(&all)
    }
}

#[cfg(test)]
mod tests {
    /// As the commit of somebody else could do while the repository is served.
    #[cfg(unix)]
    #[test]
    fn a_repository_that_becomes_a_link_out_of_its_folder_is_not_read() {
        use std::os::unix::fs::symlink;

        use super::super::super::tests::{Shop, lines};

        let shop = Shop::new(&[("a.py", &lines("row", 0..9))]);
        let repos = shop.dir.path().join("repos");
        let secret = shop.dir.path().join("secret");
        std::fs::create_dir(&secret).unwrap();
        std::fs::write(secret.join("s.py"), lines("password", 0..9)).unwrap();
        std::fs::rename(repos.join("shop"), repos.join("other")).unwrap();
        symlink("../secret", repos.join("shop")).unwrap();
        let error = shop.live.refresh_below(&[String::new()]).unwrap_err();
        assert!(error.to_string().contains("a link that leads out"), "{error}");
        let paths = || -> Vec<String> {
            shop.live.snapshot().files().map(|(file, _)| file.path.clone()).collect()
        };
        assert_eq!(paths(), ["shop/a.py"]);
        // A link within the folder may be followed.
        std::fs::remove_file(repos.join("shop")).unwrap();
        symlink("other", repos.join("shop")).unwrap();
        std::fs::write(repos.join("other/b.py"), lines("row", 0..9)).unwrap();
        shop.live.refresh_below(&[String::new()]).unwrap();
        assert_eq!(paths(), ["shop/a.py", "shop/b.py"]);
    }
}
