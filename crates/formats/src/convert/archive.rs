//! Repositories in a tar archive, such as a Python source distribution or an archive of a commit.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::path::{Component, Path};

use repoformer_core::repository::corpus::{RepositoryFolders, signs};
use repoformer_core::repository::record::{Folders, WriteOutcome};
use repoformer_store::error::{Error, Result, keep};
use repoformer_store::jsonl::is_tar;
use tar::{Entry, EntryType};

use super::stream::{Conversion, finish};

/// Greatest size of an extracted file; no source file is larger.
const LONGEST: u64 = 64 << 20;
/// Greatest total size of all entries, which stops reading an endless archive.
const MOST: u64 = 16 << 30;
/// Greatest number of entries: more than any repository has. Entries without bytes, such as folders and links, would not reach
/// [`MOST`].
const MOST_ENTRIES: usize = 1_000_000;
/// Greatest number of bytes between the content of two entries: headers, and the long names and extended attributes, which are
/// read into memory.
const LONGEST_HEADERS: u64 = 1 << 20;

/// Writes the files of an archive to `dir`: as one repository, named like the archive, or each top-level folder as one, by the
/// rule for folders ([`Checkout`](repoformer_core::repository::corpus::Checkout)). Links and devices are left out.
///
/// # Errors
/// The archive cannot be read, or a folder cannot be written; no new folders exist then.
pub(crate) fn to_folders(path: &Path, input: Box<dyn BufRead>, dir: &Path) -> Result<Conversion> {
    let refused =
        |reason: String| Error::Repository { path: path.to_owned(), reason: reason.into() };
    let mut folders = Folders::create(dir)?;
    let mut conversion = Conversion::default();
    let (mut left_out, mut bytes) = (BTreeMap::new(), 0u64);
    let (is_at_end, left) = (Cell::new(false), Cell::new(LONGEST_HEADERS));
    let cannot_read = |e| match left.get() {
        0 => {
            refused(format!("has a name or attributes of more than {} MiB", LONGEST_HEADERS >> 20))
        }
        _ => Error::reading(path, "read this archive", e),
    };
    let mut archive = tar::Archive::new(BoundedInput { input, is_at_end: &is_at_end, left: &left });
    for (number, entry) in archive.entries().map_err(cannot_read)?.enumerate() {
        let mut entry = entry.map_err(cannot_read)?;
        if number == MOST_ENTRIES {
            return Err(refused(format!("holds more than {MOST_ENTRIES} entries")));
        }
        let kind = entry.header().entry_type();
        // For a sparse file, the header states the size of the extracted file; the archive contains fewer bytes.
        let size =
            if kind.is_gnu_sparse() { entry.header().entry_size() } else { Ok(entry.size()) };
        let size = size.map_err(cannot_read)?;
        bytes = bytes.saturating_add(size);
        if bytes > MOST {
            return Err(refused(format!("holds more than {} GiB", MOST >> 30)));
        }
        left.set(size + LONGEST_HEADERS);
        if !(kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse()) {
            if let Some(noun) = noun(kind) {
                *left_out.entry(noun).or_insert(0) += 1;
            }
            continue;
        }
        let name = entry.path().map_err(cannot_read)?.into_owned();
        let shown = name.display().to_string();
        let file = match place(&name) {
            _ if is_sparse(&mut entry).map_err(cannot_read)? => {
                Err("is left out: sparse files are not supported; make the archive without them")
            }
            place => place,
        };
        let file = match file {
            Ok(file) => file,
            Err(reason) => {
                keep(&mut conversion.problems, path, refused(format!("'{shown}' {reason}")));
                continue;
            }
        };
        let mut content = Vec::new();
        entry.by_ref().take(LONGEST + 1).read_to_end(&mut content).map_err(cannot_read)?;
        if content.len() as u64 > LONGEST {
            let reason = format!("'{shown}' is left out: longer than {} MiB", LONGEST >> 20);
            keep(&mut conversion.problems, path, refused(reason));
            continue;
        }
        if let WriteOutcome::Refused(reason) = folders.unpack(&file, &content)? {
            keep(&mut conversion.problems, path, refused(reason));
        }
    }
    let rest = archive.into_inner();
    if is_at_end.get() {
        let reason =
            "has no end marker, so it is truncated and files may be missing; download it again";
        conversion.problems.push(refused(reason.into()));
    } else if has_data(rest, &left).map_err(cannot_read)? {
        let reason = "data after its end marker, such as a second archive, is left out; pass each archive separately";
        conversion.problems.push(refused(reason.into()));
    }
    let left_out =
        left_out.into_iter().map(|(noun, count): (&str, usize)| format_count(count, noun));
    let left_out = left_out.collect::<Vec<_>>().join(", ");
    if !left_out.is_empty() {
        conversion.warnings.push(format!("{}: left out: {left_out}", path.display()).into());
    }
    distribute(path, &mut folders, &mut conversion)?;
    finish(folders, path, dir, &mut conversion)?;
    Ok(conversion)
}

/// Returns true if anything but zeros, which fill the last record of an archive, follows the end marker.
fn has_data(mut input: impl Read, left: &Cell<u64>) -> io::Result<bool> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        left.set(LONGEST_HEADERS);
        match input.read(&mut bytes)? {
            0 => return Ok(false),
            count if bytes[..count].iter().any(|byte| *byte != 0) => return Ok(true),
            _ => {}
        }
    }
}

/// Turns the unpacked files into one repository, or each folder into one.
fn distribute(path: &Path, folders: &mut Folders, conversion: &mut Conversion) -> Result<()> {
    let refused =
        |reason: String| Error::Repository { path: path.to_owned(), reason: reason.into() };
    if !folders.unpacked_folder().exists() && folders.describe_left_out().next().is_some() {
        let reason = "contains only files of version control, which are left out; make an archive \
                      of the other files, for example with `git archive`";
        conversion.problems.push(refused(reason.into()));
        return Ok(());
    }
    let (shown, signs) = (path.display(), signs(&folders.unpacked_folder(), folders.controls()));
    if !signs.is_empty() {
        let (name, signs) = (name_of(path), signs.join(", "));
        match folders.adopt(&name, "")? {
            Ok(files) => conversion.records += files,
            Err(reason) => conversion.problems.push(refused(reason)),
        }
        conversion.notes.push(format!(
            "{shown}: used as one repository, '{name}', because it has {signs}; unpack the archive \
             yourself if its folders are repositories"
        ).into());
        return Ok(());
    }
    let Ok(found) = RepositoryFolders::below(&folders.unpacked_folder()) else {
        let reason = "contains no source files";
        conversion.problems.push(refused(reason.into()));
        return Ok(());
    };
    let mut are_adopted = true;
    for name in &found.names {
        match folders.adopt(name, name)? {
            Ok(files) => conversion.records += files,
            Err(reason) => {
                conversion.problems.push(refused(reason));
                are_adopted = false;
            }
        }
    }
    let rest = folders.count_left()?;
    if rest > 0 && are_adopted {
        let (count, names) = (format_count(rest, "file"), found.names.join(", "));
        let warning = format!("{shown}: left out: {count} outside its repositories, {names}");
        conversion.warnings.push(warning.into());
    }
    Ok(())
}

/// Returns the name of the repository that an archive contains.
fn name_of(archive: &Path) -> String {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let ends = [".tar.gz", ".tgz", ".tar.zst", ".tar"];
    let stem = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    if stem == "-" { "stdin" } else { stem }.to_owned()
}

/// Returns the path of a file relative to the archive's root; the error is the reason why it has none.
fn place(name: &Path) -> Result<String, &'static str> {
    let mut names = Vec::new();
    for part in name.components() {
        match part {
            Component::Normal(name) => {
                let name = name.to_str().ok_or("is left out: its name is not UTF-8; rename it")?;
                names.push(name);
            }
            Component::CurDir => {}
            _ => return Err("leads out of the archive"),
        }
    }
    Ok(names.join("/"))
}

/// Returns the name of a kind of entry that is left out; folders and headers of archives are not counted.
fn noun(kind: EntryType) -> Option<&'static str> {
    match kind {
        EntryType::Directory | EntryType::XGlobalHeader | EntryType::XHeader => None,
        EntryType::Symlink | EntryType::Link => Some("link"),
        EntryType::Char | EntryType::Block => Some("device"),
        EntryType::Fifo => Some("named pipe"),
        _ => Some("entry of another kind"),
    }
}

/// Returns true if an entry is a sparse file. A GNU sparse file can be far larger than its bytes in the archive. A sparse file
/// in the pax format begins with a map of its parts, which the reader would take for its content. The bytes of all other
/// entries are stored in full, so that the limit on the expansion of compressed input applies to them.
fn is_sparse(entry: &mut Entry<'_, impl Read>) -> io::Result<bool> {
    if entry.header().entry_type().is_gnu_sparse() {
        return Ok(true);
    }
    let Some(fields) = entry.pax_extensions()? else { return Ok(false) };
    let keys = fields.flatten().map(|field| field.key_bytes().to_owned());
    Ok(keys.into_iter().any(|key| key.starts_with(b"GNU.sparse.")))
}

/// Input of which only a limited number of bytes is read. It also records whether it was read to its end, which does not happen
/// for a complete archive, since zeros precede the end.
struct BoundedInput<'a> {
    input: Box<dyn BufRead>,
    is_at_end: &'a Cell<bool>,
    left: &'a Cell<u64>,
}

impl Read for BoundedInput<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(io::Error::other("too long"));
        }
        let most = buffer.len().min(usize::try_from(self.left.get()).unwrap_or(usize::MAX));
        let read = self.input.read(&mut buffer[..most])?;
        self.left.set(self.left.get() - read as u64);
        self.is_at_end.set(self.is_at_end.get() || read == 0 && !buffer.is_empty());
        Ok(read)
    }
}

fn format_count(count: usize, noun: &str) -> String {
    match (count, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "entry of another kind") => format!("{count} entries of other kinds"),
        _ => format!("{count} {noun}s"),
    }
}

/// Reads the first bytes of a file. Returns whether they begin an archive, and the file with these bytes put back.
pub(crate) fn recognise(
    path: &Path,
    mut input: Box<dyn BufRead>,
) -> Result<(bool, Box<dyn BufRead>)> {
    let mut start = Vec::new();
    let read = input.by_ref().take(512).read_to_end(&mut start);
    read.map_err(|e| Error::reading(path, "read this file", e))?;
    if start.starts_with(b"PK\x03\x04") {
        let (reason, hint) = ("a zip archive", "unpack it, or use the .tar.gz");
        return Err(Error::Form {
            path: path.to_owned(),
            reason: reason.into(),
            hint: hint.into(),
        });
    }
    let is_archive = is_tar(&start);
    Ok((is_archive, Box::new(std::io::Cursor::new(start).chain(input))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: EntryType, name: &str, size: u64) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.set_path(name).unwrap();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_cksum();
        header.as_bytes().to_vec()
    }

    fn reason(archive: impl BufRead + 'static) -> String {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let result = to_folders(Path::new("x.tar"), Box::new(archive), &out);
        let made = std::fs::read_dir(&out).map_or(0, Iterator::count);
        assert_eq!(made, 0, "no repository is made");
        result.unwrap_err().to_string()
    }

    /// The reader keeps a name, and extended attributes, in memory, even if they are endless.
    #[test]
    fn headers_without_end_are_refused() {
        for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
            let header = io::Cursor::new(entry(kind, "long", 1 << 33));
            let error = reason(io::BufReader::new(header.chain(io::repeat(b'x'))));
            assert!(error.contains("a name or attributes of more than 1 MiB"), "{error}");
        }
    }

    #[test]
    fn entries_without_end_are_refused() {
        let folder = entry(EntryType::Directory, "a", 0);
        let folders = io::Cursor::new(folder.repeat(MOST_ENTRIES + 1));
        assert!(reason(folders).contains("holds more than 1000000 entries"));
        let file = entry(EntryType::Regular, "a.py", 1 << 50);
        assert!(reason(io::Cursor::new(file)).contains("holds more than 16 GiB"));
        let link = entry(EntryType::Symlink, "a", MOST + 1);
        assert!(reason(io::Cursor::new(link)).contains("holds more than 16 GiB"));
    }

    #[test]
    fn data_after_the_end_are_named() {
        let block = |text: &str| [text.as_bytes(), &vec![0; 512 - text.len()]].concat();
        let file = |name: &str| [entry(EntryType::Regular, name, 6), block("x = 1\n")].concat();
        let end = vec![0; 1024];
        let padded = [file("r/a.py"), end.clone(), vec![0; 200_000]].concat();
        for (archive, is_named) in [
            (padded.clone(), false),
            ([&padded[..], &file("r/b.py"), &end].concat(), true),
            ([file("r/a.py"), end, b"x".to_vec()].concat(), true),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let output = dir.path().join("out");
            let input = Box::new(io::Cursor::new(archive));
            let conversion = to_folders(Path::new("r.tar"), input, &output).unwrap();
            assert_eq!(conversion.records, 1);
            let problems = conversion.problems.iter().map(ToString::to_string);
            let named = problems.filter(|told| told.contains("data after its end marker")).count();
            assert_eq!(named == 1, is_named);
        }
    }

    /// 60 MiB of holes before six bytes, and a file in the pax format, next to a file that is not sparse.
    #[test]
    fn sparse_files_are_left_out_and_named() {
        let size = 60 << 20;
        let mut sparse = tar::Header::new_gnu();
        sparse.set_path("r/hole.py").unwrap();
        sparse.set_entry_type(EntryType::GNUSparse);
        sparse.set_size(512);
        let gnu = sparse.as_gnu_mut().unwrap();
        let octal = |number: usize| format!("{number:011o}\0");
        gnu.sparse[0].offset.copy_from_slice(octal(size - 512).as_bytes());
        gnu.sparse[0].numbytes.copy_from_slice(octal(512).as_bytes());
        gnu.realsize.copy_from_slice(octal(size).as_bytes());
        sparse.set_cksum();
        let fields = "22 GNU.sparse.major=1\n";
        let block = |text: &str| [text.as_bytes(), &vec![0; 512 - text.len()]].concat();
        let entries = [
            sparse.as_bytes().to_vec(),
            block("x = 1\n"),
            entry(EntryType::XHeader, "pax", fields.len() as u64),
            block(fields),
            entry(EntryType::Regular, "r/pax.py", 6),
            block("1\n0\n6\n"),
            entry(EntryType::Regular, "r/setup.py", 6),
            block("x = 2\n"),
            vec![0; 1024],
        ];
        let dir = tempfile::tempdir().unwrap();
        let input = Box::new(io::Cursor::new(entries.concat()));
        let conversion = to_folders(Path::new("x.tar"), input, &dir.path().join("out")).unwrap();
        let problems: Vec<String> = conversion.problems.iter().map(Error::to_string).collect();
        for (problem, name) in problems.iter().zip(["r/hole.py", "r/pax.py"]) {
            let start = format!("x.tar: '{name}' is left out: sparse files");
            assert!(problem.starts_with(&start), "{problem}");
        }
        assert_eq!((conversion.records, problems.len()), (1, 2));
        assert_eq!(std::fs::read(dir.path().join("out/r/setup.py")).unwrap(), b"x = 2\n");
    }
}
