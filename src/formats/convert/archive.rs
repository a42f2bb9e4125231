//! Repositories out of a tar archive, such as a Python source distribution or an archive of a commit.

use std::io::{BufRead, Read};
use std::path::{Component, Path};

use super::stream::Conversion;
use crate::error::{Error, Result};
use crate::repository::record::Folders;
use crate::store::jsonl::is_tar;

/// Longest file that is taken: no source file is longer.
const LONGEST: u64 = 64 << 20;
/// Most bytes of all files together, which ends an archive that grows without end.
const MOST: u64 = 16 << 30;

/// Writes the files of an archive below `dir`: each folder at its top is a repository, and files at its top belong to one
/// named like the archive. Links are left out.
///
/// # Errors
/// The archive cannot be read, or a folder cannot be written; then there are no new folders.
pub(super) fn to_folders(path: &Path, input: Box<dyn BufRead>, dir: &Path) -> Result<Conversion> {
    let cannot_read = |e| Error::reading(path, "read this archive", e);
    let refused = |reason: String| Error::Repository { path: path.to_owned(), reason };
    let mut folders = Folders::create(dir)?;
    let mut conversion = Conversion::default();
    let (mut links, mut bytes) = (0, 0);
    let mut archive = tar::Archive::new(input);
    for entry in archive.entries().map_err(cannot_read)? {
        let mut entry = entry.map_err(cannot_read)?;
        let kind = entry.header().entry_type();
        links += usize::from(kind.is_symlink() || kind.is_hard_link());
        if !kind.is_file() {
            continue;
        }
        let name = entry.path().map_err(cannot_read)?.into_owned();
        let shown = name.display().to_string();
        let Some((folder, file)) = place(path, &name) else {
            conversion.problems.push(refused(format!("'{shown}' leads out of the archive")));
            continue;
        };
        let mut content = Vec::new();
        entry.by_ref().take(LONGEST + 1).read_to_end(&mut content).map_err(cannot_read)?;
        if content.len() as u64 > LONGEST {
            let reason = format!("'{shown}' is left out: longer than {} MiB", LONGEST >> 20);
            conversion.problems.push(refused(reason));
            continue;
        }
        bytes += content.len() as u64;
        if bytes > MOST {
            return Err(refused(format!("holds more than {} GiB of files", MOST >> 30)));
        }
        match folders.write(&folder, &file, &content)? {
            Ok(()) => conversion.records += 1,
            Err(reason) => conversion.problems.push(refused(reason)),
        }
    }
    if links > 0 {
        let links = if links == 1 { "1 link is".into() } else { format!("{links} links are") };
        conversion.warnings.push(format!("{}: {links} left out", path.display()));
    }
    if conversion.records > 0 {
        folders.finish()?;
    }
    Ok(conversion)
}

/// The repository's folder and the path in it; `None` for a path that leads elsewhere.
fn place(archive: &Path, name: &Path) -> Option<(String, String)> {
    let mut names = Vec::new();
    for part in name.components() {
        match part {
            Component::Normal(name) => names.push(name.to_str()?.to_owned()),
            Component::CurDir => {}
            _ => return None,
        }
    }
    let file = names.pop()?;
    if names.is_empty() {
        let name = archive.file_name()?.to_str()?;
        let ends = [".tar.gz", ".tgz", ".tar.zst", ".tar"];
        let stem = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        return Some((if name == "-" { "stdin" } else { stem }.to_owned(), file));
    }
    let folder = names.remove(0);
    names.push(file);
    Some((folder, names.join("/")))
}

/// Reads the first bytes of a file: whether they begin an archive, and the file with them put back.
pub(super) fn recognise(
    path: &Path,
    mut input: Box<dyn BufRead>,
) -> Result<(bool, Box<dyn BufRead>)> {
    let mut start = Vec::new();
    let read = input.by_ref().take(512).read_to_end(&mut start);
    read.map_err(|e| Error::reading(path, "read this file", e))?;
    if start.starts_with(b"PK\x03\x04") {
        let reason = "this is a zip archive; unpack it, or take the .tar.gz".into();
        return Err(Error::Repository { path: path.to_owned(), reason });
    }
    let is_archive = is_tar(&start);
    Ok((is_archive, Box::new(std::io::Cursor::new(start).chain(input))))
}
