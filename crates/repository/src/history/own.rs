//! Folder that git uses as the repository's own: it has our settings, the id of one commit, and links to the repository's
//! objects. Nothing else that the author of the repository wrote reaches git: no settings, attributes, branches, or lists of
//! other files to read.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use repoformer_store::artifact::TemporaryFolder;
use repoformer_store::error::{Error, Result};
use repoformer_store::files;

use super::links::HistoryPath;
use super::refs::Tip;

/// Ids of the empty tree, in SHA-1 and in SHA-256.
const NO_FILES: [&str; 2] = [
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
];

/// Folder that git uses as the repository's own; it is removed when this value is dropped.
#[derive(Debug)]
pub(super) struct OwnFolder {
    folder: TemporaryFolder,
    is_sha256: bool,
    is_shallow: bool,
}

impl OwnFolder {
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn make(place: &HistoryPath, tip: &Tip) -> Result<Self> {
        let temporary = std::env::temp_dir();
        let at_once = || -> io::Result<Self> {
            let folder = TemporaryFolder::create(&temporary)?;
            // Anyone who could write there could choose git's settings.
            #[cfg(unix)]
            files::set_permissions(
                folder.path(),
                std::os::unix::fs::PermissionsExt::from_mode(0o700),
            )?;
            let is_sha256 = tip.id.len() == 64;
            write(folder.path(), place, tip, is_sha256)?;
            let is_shallow = tip.shallow.as_ref().is_some_and(|list| !list.is_empty());
            Ok(Self { folder, is_sha256, is_shallow })
        };
        at_once().map_err(|e| Error::writing(&temporary, "write a folder for git here", e))
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns true if the history ends before its first commit.
    pub(super) fn is_shallow(&self) -> bool {
        self.is_shallow
    }

    /// Returns the id of the empty tree.
    pub(super) fn tree_without_files(&self) -> &'static str {
        NO_FILES[usize::from(self.is_sha256)]
    }
}

fn write(own: &Path, place: &HistoryPath, tip: &Tip, is_sha256: bool) -> io::Result<()> {
    files::write(own.join("HEAD"), format!("{}\n", tip.id))?;
    files::write(
        own.join("config"),
        if is_sha256 {
            "[core]\n\tbare = true\n\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n"
        } else {
            "[core]\n\tbare = true\n\trepositoryFormatVersion = 0\n"
        },
    )?;
    files::create_dir(own.join("refs"))?;
    if let Some(list) = &tip.shallow {
        files::write(own.join("shallow"), list)?;
    }
    let mut alternates = String::new();
    for (number, from) in place.objects.iter().enumerate() {
        let name = if number == 0 { "objects".to_owned() } else { format!("objects-{number}") };
        link_objects(from, &own.join(&name))?;
        if number > 0 {
            let _ = writeln!(alternates, "../{name}");
        }
    }
    files::create_dir_all(own.join("objects/info"))?;
    files::write(own.join("objects/info/alternates"), alternates)
}

/// Creates a folder of objects that has the packs and loose objects of another, and nothing else.
fn link_objects(from: &Path, to: &Path) -> io::Result<()> {
    files::create_dir_all(to.join("pack"))?;
    let link = |folder: &str, is_wanted: &dyn Fn(&Path, &str) -> bool| -> io::Result<()> {
        for entry in files::read_dir(from.join(folder))? {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
            if name.to_str().is_some_and(|name| is_wanted(&path, name)) {
                files::symlink(path.canonicalize()?, to.join(folder).join(name))?;
            }
        }
        Ok(())
    };
    link("", &|path, name| {
        name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) && path.is_dir()
    })?;
    if from.join("pack").is_dir() {
        link("pack", &|path, name| {
            [".pack", ".idx"].iter().any(|end| name.ends_with(end)) && path.is_file()
        })
    } else {
        Ok(())
    }
}
