//! Copies of repositories that tests are run in, never the user's own.
//!
//! A copy is made once, set up once (`--setup-cmd`) and kept for the next time: its stamp is a digest of the repository's
//! content and of the setup command. Where runs get a layer of their own above it, nothing ever changes a copy, and one
//! serves all workers. Elsewhere every worker has one, beside a second that stays as it is, and after each run what
//! changed, appeared or vanished is put back, so that no run influences another.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use super::guard::{Files, Guard, Limits, Order, Outcome};
use crate::artifact::write_file;
use crate::error::{Error, Result};

/// Where copies come from and lie.
#[derive(Debug)]
pub struct Copies<'a> {
    repos_dir: PathBuf,
    work_dir: PathBuf,
    /// Folders that are no part of a repository though they may lie in one: this program's own.
    apart: Vec<PathBuf>,
    guard: &'a Guard,
    /// The command that sets one up, by repository, and the seconds that it may take.
    setup: Setup,
    workers: usize,
    repositories: Vec<Source>,
}

/// How a copy is set up.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// For each repository, in their order; none where nothing is to be done.
    pub commands: Vec<Option<String>>,
    /// Seconds that it may take.
    pub seconds: f64,
}

#[derive(Debug)]
struct Source {
    name: String,
    digest: OnceLock<Result<String, String>>,
    /// One a worker, or one for all.
    copies: Vec<OnceLock<Result<Copy, Broken>>>,
}

/// A copy that tests can be run in.
#[derive(Debug)]
pub struct Copy {
    folder: PathBuf,
    scratch: PathBuf,
    /// What it looks like when nothing was run in it, where that must be restored.
    pristine: Option<(PathBuf, std::sync::Mutex<Snapshot>)>,
}

/// Why a repository has no copy that tests can be run in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// In words.
    pub reason: String,
    /// The end of what its setup printed.
    pub output: String,
}

/// What to run in a copy.
#[derive(Debug, Clone, Default)]
pub struct Errand {
    /// For `sh -c`.
    pub command: String,
    /// Files and what they are to hold.
    pub texts: Vec<(String, String)>,
    /// Variables to set.
    pub environment: Vec<(String, String)>,
    /// A file of the copy to read afterwards.
    pub collect: Option<String>,
}

impl Copy {
    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl<'a> Copies<'a> {
    /// Of these repositories; nothing is done yet. `cache` is this program's own folder, which is copied nowhere.
    ///
    /// # Errors
    /// A folder is not there or cannot be made.
    pub fn new(
        (repos_dir, work_dir, cache): (&Path, &Path, &Path),
        repositories: &[String],
        guard: &'a Guard,
        setup: Setup,
        workers: usize,
    ) -> Result<Self> {
        let real = |path: &Path| {
            fs::canonicalize(path).map_err(|e| Error::reading(path, "find this folder", e))
        };
        fs::create_dir_all(work_dir)
            .map_err(|e| Error::writing(work_dir, "create this folder for copies", e))?;
        let slots = if guard.enclosure().layered {
            1
        } else {
            workers
        };
        let source = |name: &String| Source {
            name: name.clone(),
            digest: OnceLock::new(),
            copies: (0..slots).map(|_| OnceLock::new()).collect(),
        };
        let work_dir = real(work_dir)?;
        let mut apart = vec![work_dir.clone()];
        apart.extend(fs::canonicalize(cache));
        Ok(Self {
            repos_dir: real(repos_dir)?,
            work_dir,
            apart,
            guard,
            setup,
            workers,
            repositories: repositories.iter().map(source).collect(),
        })
    }

    /// How many runs there may be at a time.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The command that sets a repository's copies up.
    pub(super) fn setup_command(&self, repository: usize) -> Option<&str> {
        self.setup.commands.get(repository)?.as_deref()
    }

    /// Whether tests are meant to use the network.
    pub(super) fn has_network(&self) -> bool {
        self.guard.has_network()
    }

    /// Whether all workers run in one copy.
    pub fn is_shared(&self) -> bool {
        self.guard.enclosure().layered
    }

    /// A digest of a repository's files: names, kinds, content.
    ///
    /// # Errors
    /// A file cannot be read, in words.
    pub fn digest(&self, repository: usize) -> Result<String, String> {
        let source = &self.repositories[repository];
        let digest = source.digest.get_or_init(|| {
            let root = self.repos_dir.join(&source.name);
            digest(&root, &self.apart).map_err(|e| format!("{}: {e}", root.display()))
        });
        digest.clone()
    }

    /// A worker's copy of a repository, made and set up where it is not yet.
    ///
    /// # Errors
    /// It cannot be made or set up.
    pub fn of(&self, repository: usize, worker: usize) -> Result<&Copy, &Broken> {
        let source = &self.repositories[repository];
        let slot = if source.copies.len() == 1 { 0 } else { worker };
        let made = source.copies[slot].get_or_init(|| self.make(repository, slot));
        made.as_ref()
    }

    /// Runs a test command in a copy, which is as before afterwards.
    ///
    /// # Errors
    /// No guard can be started, or the copy cannot be restored.
    pub fn run(&self, copy: &Copy, errand: &Errand, limits: Limits) -> Result<Outcome> {
        let mut environment = errand.environment.clone();
        let temporary = match self.guard.enclosure().enclosed {
            true => "/tmp".to_owned(),
            false => copy.scratch.to_string_lossy().into_owned(),
        };
        environment.push(("TMPDIR".into(), temporary));
        // What one run compiles no other may find; and the order of sets is that of every run.
        environment.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
        environment.push(("PYTHONHASHSEED".into(), "0".into()));
        let order = Order {
            command: errand.command.clone(),
            folder: copy.folder.clone(),
            texts: errand.texts.clone(),
            environment,
            limits,
            network: false,
            files: self.guard.files(),
            scratch: copy.scratch.clone(),
            collect: errand.collect.clone(),
        };
        let outcome = self.guard.run(&order)?;
        if let Some((pristine, snapshot)) = &copy.pristine {
            let mut snapshot = snapshot
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let restored =
                restore(&copy.folder, pristine, &mut snapshot).and_then(|()| empty(&copy.scratch));
            restored.map_err(|e| Error::writing(&copy.folder, "restore this copy", e))?;
        }
        Ok(outcome)
    }

    fn make(&self, repository: usize, slot: usize) -> Result<Copy, Broken> {
        let name = &self.repositories[repository].name;
        let broken = |reason: String| Broken {
            reason,
            output: String::new(),
        };
        let digest = self.digest(repository).map_err(broken)?;
        let place = self.work_dir.join(name).join(slot.to_string());
        let (folder, pristine) = (place.join(name), place.join("pristine"));
        let (scratch, stamp_path) = (place.join("scratch"), place.join("stamp.json"));
        let command = self.setup.commands.get(repository).cloned().flatten();
        let stamp = Stamp {
            repository: digest,
            setup: command.clone(),
            layered: self.is_shared(),
            snapshot: Snapshot::default(),
        };
        let known = fs::read(&stamp_path)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Stamp>(&bytes).ok())
            .filter(|known| known.same_as(&stamp) && folder.is_dir());
        let at = |path: &Path, e: io::Error| broken(format!("{}: {e}", path.display()));
        let mut snapshot = match known {
            Some(known) => known.snapshot,
            None => {
                remove(&place).map_err(|e| at(&place, e))?;
                fs::create_dir_all(&folder).map_err(|e| at(&folder, e))?;
                let from = self.repos_dir.join(name);
                copy_folder(&from, &folder, &self.apart).map_err(|e| at(&folder, e))?;
                if let Some(command) = command {
                    self.set_up(&folder, &scratch, command)?;
                }
                let mut snapshot = Snapshot::default();
                if !self.is_shared() {
                    fs::create_dir_all(&pristine).map_err(|e| at(&pristine, e))?;
                    copy_folder(&folder, &pristine, &[]).map_err(|e| at(&pristine, e))?;
                    snapshot = Snapshot::of(&folder).map_err(|e| at(&folder, e))?;
                }
                let stamp = Stamp { snapshot, ..stamp };
                let bytes = serde_json::to_vec(&stamp).unwrap_or_default();
                write_file(&stamp_path, &bytes).map_err(|e| broken(e.to_string()))?;
                stamp.snapshot
            }
        };
        empty(&scratch).map_err(|e| at(&scratch, e))?;
        let mut kept = None;
        if !self.is_shared() {
            // An interrupted run may have left it as it was in the middle.
            restore(&folder, &pristine, &mut snapshot).map_err(|e| at(&folder, e))?;
            kept = Some((pristine, snapshot.into()));
        }
        Ok(Copy {
            folder,
            scratch,
            pristine: kept,
        })
    }

    fn set_up(&self, folder: &Path, scratch: &Path, command: String) -> Result<(), Broken> {
        let broken = |reason: String, output: &str| Broken {
            reason,
            output: tail(output, 2000).to_owned(),
        };
        let order = Order {
            command,
            folder: folder.to_owned(),
            texts: Vec::new(),
            environment: Vec::new(),
            limits: Limits {
                wall_seconds: self.setup.seconds,
                cpu_seconds: f64::from(u32::MAX),
                memory_mb: u64::from(u32::MAX),
                disk_mb: u64::from(u32::MAX),
                processes: 1 << 14,
            },
            network: true,
            files: Files::Open {
                protected: self.repos_dir.clone(),
            },
            scratch: scratch.to_owned(),
            collect: None,
        };
        let outcome = self
            .guard
            .run(&order)
            .map_err(|e| broken(e.to_string(), ""))?;
        match (&outcome.refused, outcome.exit_code) {
            (None, Some(0)) => Ok(()),
            (Some(reason), _) => Err(broken(format!("--setup-cmd: {reason}"), "")),
            (None, Some(code)) => Err(broken(
                format!("--setup-cmd ended with exit code {code}"),
                &outcome.output,
            )),
            (None, None) => {
                let seconds = self.setup.seconds;
                Err(broken(
                    format!(
                        "--setup-cmd did not end within {seconds} seconds (--setup-timeout), or was ended"
                    ),
                    &outcome.output,
                ))
            }
        }
    }
}

/// The last bytes of a text, from a character on.
pub(super) fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[derive(Debug, Serialize, Deserialize)]
struct Stamp {
    repository: String,
    setup: Option<String>,
    layered: bool,
    snapshot: Snapshot,
}

impl Stamp {
    fn same_as(&self, other: &Self) -> bool {
        (&self.repository, &self.setup, self.layered)
            == (&other.repository, &other.setup, other.layered)
    }
}

/// What the system says of every path of a folder.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Snapshot {
    entries: BTreeMap<PathBuf, Entry>,
}

/// A change of anything changes the time of its entry, which no program can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    inode: u64,
    mode: u32,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Entry {
    fn of(metadata: &fs::Metadata) -> Self {
        let is_folder = metadata.is_dir();
        // The size and times of a folder tell of its entries, which tell of themselves.
        let unless_folder = |pair| if is_folder { (0, 0) } else { pair };
        Self {
            inode: metadata.ino(),
            mode: metadata.mode(),
            size: if is_folder { 0 } else { metadata.size() },
            modified: unless_folder((metadata.mtime(), metadata.mtime_nsec())),
            changed: unless_folder((metadata.ctime(), metadata.ctime_nsec())),
        }
    }
}

impl Snapshot {
    fn of(folder: &Path) -> io::Result<Self> {
        let mut entries = BTreeMap::new();
        for entry in WalkDir::new(folder).min_depth(1) {
            let entry = entry?;
            let path = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            entries.insert(path.to_owned(), Entry::of(&entry.metadata()?));
        }
        Ok(Self { entries })
    }
}

/// Makes a folder again what its snapshot says, from a copy of it, and brings the snapshot up to date.
fn restore(folder: &Path, pristine: &Path, snapshot: &mut Snapshot) -> io::Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    let mut walk = WalkDir::new(folder)
        .min_depth(1)
        .sort_by_file_name()
        .into_iter();
    while let Some(entry) = walk.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                // A folder that was closed to its owner.
                let Some(path) = error.path() else { continue };
                fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
                return restore(folder, pristine, snapshot);
            }
        };
        let path = entry
            .path()
            .strip_prefix(folder)
            .unwrap_or(entry.path())
            .to_owned();
        let is_folder = entry.file_type().is_dir();
        let now = Entry::of(&entry.metadata()?);
        match snapshot.entries.get(&path) {
            Some(before) if *before == now => {
                seen.insert(path);
            }
            Some(before) if is_folder && before.inode == now.inode => {
                fs::set_permissions(
                    entry.path(),
                    fs::Permissions::from_mode(before.mode & 0o7777),
                )?;
                seen.insert(path);
            }
            _ => {
                if is_folder {
                    walk.skip_current_dir();
                }
                remove(entry.path())?;
            }
        }
    }
    let lost: Vec<PathBuf> = snapshot
        .entries
        .keys()
        .filter(|path| !seen.contains(*path))
        .cloned()
        .collect();
    for path in lost {
        let to = folder.join(&path);
        copy_entry(&pristine.join(&path), &to, (pristine, folder))?;
        snapshot
            .entries
            .insert(path, Entry::of(&fs::symlink_metadata(&to)?));
    }
    Ok(())
}

/// An empty folder in this place.
fn empty(folder: &Path) -> io::Result<()> {
    remove(folder)?;
    fs::create_dir_all(folder)
}

/// Removes whatever is there, folders that were closed to their owner included.
fn remove(path: &Path) -> io::Result<()> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.is_dir() {
        return fs::remove_file(path);
    }
    if fs::remove_dir_all(path).is_ok() {
        return Ok(());
    }
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    fs::remove_dir_all(path)
}

/// Copies a folder's content into another, but for the folders `without`. Times, modes and links are kept; a link that
/// names a place in the folder by its full path leads to the same place of the copy.
fn copy_folder(from: &Path, to: &Path, without: &[PathBuf]) -> io::Result<()> {
    let from = &fs::canonicalize(from)?;
    let walk = WalkDir::new(from)
        .min_depth(1)
        .sort_by_file_name()
        .into_iter();
    for entry in walk.filter_entry(|entry| without.iter().all(|path| entry.path() != path)) {
        let entry = entry?;
        let path = entry.path().strip_prefix(from).unwrap_or(entry.path());
        copy_entry(entry.path(), &to.join(path), (from, to))?;
    }
    Ok(())
}

fn copy_entry(from: &Path, to: &Path, (root, copy): (&Path, &Path)) -> io::Result<()> {
    let metadata = fs::symlink_metadata(from)?;
    if metadata.is_dir() {
        fs::create_dir_all(to)?;
        return fs::set_permissions(
            to,
            fs::Permissions::from_mode(metadata.mode() & 0o7777 | 0o700),
        );
    }
    if metadata.is_symlink() {
        let target = fs::read_link(from)?;
        let absolute = from.parent().unwrap_or(root).join(&target);
        return match fs::canonicalize(&absolute) {
            Ok(real) if real.starts_with(root) && target.is_absolute() => {
                symlink(copy.join(real.strip_prefix(root).unwrap_or(&real)), to)
            }
            // What leads elsewhere, such as the interpreter of a virtual environment, or nowhere stays as it is.
            _ => symlink(&target, to),
        };
    }
    match metadata.is_file() {
        true => copy_file(from, to, &metadata),
        false => Ok(()), // sockets, pipes and devices are nobody's source
    }
}

fn copy_file(from: &Path, to: &Path, metadata: &fs::Metadata) -> io::Result<()> {
    fs::copy(from, to)?;
    let file = fs::File::open(to)?;
    file.set_modified(metadata.modified()?)
}

fn digest(root: &Path, without: &[PathBuf]) -> io::Result<String> {
    let root = &fs::canonicalize(root)?;
    let mut hasher = blake3::Hasher::new();
    let walk = WalkDir::new(root)
        .min_depth(1)
        .sort_by_file_name()
        .into_iter();
    for entry in walk.filter_entry(|entry| without.iter().all(|path| entry.path() != path)) {
        let entry = entry?;
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let (name, kind) = (path.as_os_str().as_encoded_bytes(), entry.file_type());
        let content = if kind.is_file() {
            fs::read(entry.path())?
        } else if kind.is_symlink() {
            fs::read_link(entry.path())?
                .into_os_string()
                .into_encoded_bytes()
        } else {
            Vec::new()
        };
        let mark = [u8::from(kind.is_dir()), u8::from(kind.is_symlink())];
        for part in [name, &mark, &content] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_run_does_is_undone() {
        let dir = tempfile::tempdir().unwrap();
        let (from, copy, pristine) = (
            dir.path().join("r"),
            dir.path().join("c"),
            dir.path().join("p"),
        );
        fs::create_dir_all(from.join("a/b")).unwrap();
        for (name, text) in [
            ("x.py", "x"),
            ("a/y.py", "y"),
            ("a/b/z.py", "z"),
            ("out.py", "o"),
        ] {
            fs::write(from.join(name), text).unwrap();
        }
        symlink("a/y.py", from.join("inside")).unwrap();
        symlink(from.join("x.py"), from.join("absolute")).unwrap();
        symlink("nowhere", from.join("broken")).unwrap();
        for to in [&copy, &pristine] {
            fs::create_dir(to).unwrap();
        }
        copy_folder(&from, &copy, &[]).unwrap();
        copy_folder(&copy, &pristine, &[]).unwrap();
        assert_eq!(
            fs::read_link(copy.join("absolute")).unwrap(),
            copy.join("x.py")
        );
        assert_eq!(
            fs::read_link(copy.join("broken")).unwrap(),
            Path::new("nowhere")
        );
        let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        assert_eq!(modified(&copy.join("x.py")), modified(&from.join("x.py")));

        let mut snapshot = Snapshot::of(&copy).unwrap();
        let before = digest(&copy, &[]).unwrap();
        for _ in 0..2 {
            let old = modified(&copy.join("x.py"));
            fs::write(copy.join("x.py"), "X").unwrap(); // the same size, and its time set back
            fs::File::open(copy.join("x.py"))
                .unwrap()
                .set_modified(old)
                .unwrap();
            fs::remove_dir_all(copy.join("a")).unwrap();
            fs::write(copy.join("a"), "a file now").unwrap();
            fs::create_dir_all(copy.join("new/deep")).unwrap();
            fs::write(copy.join("new/deep/f"), "").unwrap();
            fs::set_permissions(copy.join("new/deep"), fs::Permissions::from_mode(0o000)).unwrap();
            fs::remove_file(copy.join("inside")).unwrap();
            fs::set_permissions(copy.join("out.py"), fs::Permissions::from_mode(0o700)).unwrap();
            restore(&copy, &pristine, &mut snapshot).unwrap();
            assert_eq!(digest(&copy, &[]).unwrap(), before);
            assert_eq!(fs::read_to_string(copy.join("x.py")).unwrap(), "x");
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode(&copy.join("out.py")), mode(&pristine.join("out.py")));
            assert_eq!(snapshot, Snapshot::of(&copy).unwrap());
        }
    }

    #[test]
    fn a_digest_tells_content_names_and_kinds() {
        let dir = tempfile::tempdir().unwrap();
        let of = || digest(dir.path(), &[dir.path().join("work")]).unwrap();
        let mut seen = vec![of()];
        let mut changed = |path: &str, text: &str| {
            fs::write(dir.path().join(path), text).unwrap();
            let now = of();
            assert!(!seen.contains(&now), "{path} {text}");
            seen.push(now);
        };
        changed("a", "");
        changed("a", "b");
        changed("ab", "");
        fs::create_dir(dir.path().join("work")).unwrap();
        fs::write(dir.path().join("work/x"), "left out").unwrap();
        assert_eq!(&of(), seen.last().unwrap());
    }
}
