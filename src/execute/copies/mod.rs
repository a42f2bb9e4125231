//! Copies of repositories that tests are run in, never the user's own.
//!
//! A copy is made once, set up once (`--setup-cmd`) and kept for the next time: its stamp is a digest of the repository's
//! content and of the setup command. Where runs get a layer of their own above it, nothing ever changes a copy, and one
//! serves all workers. Elsewhere every worker has one, beside a second that stays as it is, and after each run what
//! changed, appeared or vanished is put back, so that no run influences another.

mod folder;
mod snapshot;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use self::folder::{copy_folder, digest, empty, remove};
use self::snapshot::{Snapshot, restore};
use super::guard::{Files, Guard, Limits, Order, Outcome};
use crate::error::{Error, Result};
use crate::store::artifact::write_file;

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
    surroundings: String,
    /// Held as long as copies are used.
    _lock: fs::File,
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
    /// A folder is not there or cannot be made, copies would lie in a repository, or another evaluation uses them.
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
        let (repos_dir, work_dir) = (real(repos_dir)?, real(work_dir)?);
        let cache = fs::canonicalize(cache).ok();
        let is_in_cache = cache
            .as_ref()
            .is_some_and(|cache| work_dir.starts_with(cache));
        let inside = repositories
            .iter()
            .find(|name| work_dir.starts_with(repos_dir.join(name)));
        if work_dir == repos_dir || (inside.is_some() && !is_in_cache) {
            return Err(Error::Execution {
                reason: format!(
                    "{}: copies would lie among what they are made from",
                    work_dir.display()
                ),
                hint: "name a folder apart from the repositories with --work-dir".into(),
            });
        }
        let lock = lock(&work_dir)?;
        let mut apart = vec![work_dir.clone()];
        apart.extend(cache);
        Ok(Self {
            repos_dir,
            work_dir,
            apart,
            guard,
            setup,
            workers,
            repositories: repositories.iter().map(source).collect(),
            surroundings: surroundings(guard),
            _lock: lock,
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

    /// What all runs depend on beside their own command, text and repository.
    pub(super) fn surroundings(&self) -> &str {
        &self.surroundings
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
                make_room(&place).map_err(|e| at(&place, e))?;
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

/// Marks a folder as one that copies are made in, and removed from.
const MARK: &str = "copy-of-repoformer";

/// An empty place for a copy. What was there is removed where it was a copy, and only there.
fn make_room(place: &Path) -> io::Result<()> {
    let mark = place.join(MARK);
    let is_empty = || fs::read_dir(place).is_ok_and(|mut entries| entries.next().is_none());
    if fs::symlink_metadata(place).is_ok() && !mark.is_file() && !is_empty() {
        let reason = "holds something else than a copy, which is left as it is; name another folder with --work-dir";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
    }
    remove(place)?;
    fs::create_dir_all(place)?;
    fs::write(mark, "")
}

/// Keeps other evaluations away from the copies of a folder.
fn lock(work_dir: &Path) -> Result<fs::File> {
    let path = work_dir.join(".lock");
    let file = fs::File::create(&path).map_err(|e| Error::writing(&path, "create this file", e))?;
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Err(Error::Execution {
            reason: format!(
                "{}: another evaluation uses these copies",
                work_dir.display()
            ),
            hint: "wait for its end, or name other places with --work-dir and --exec-results"
                .into(),
        }),
        // Where a file system knows no locks there are none.
        _ => Ok(file),
    }
}

/// What commands are enclosed by, and the variables that choose programs and libraries.
fn surroundings(guard: &Guard) -> String {
    let enclosure = guard.enclosure();
    let names = [
        "PATH",
        "PYTHONPATH",
        "PYTHONHOME",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "NODE_PATH",
        "JAVA_HOME",
        "LD_LIBRARY_PATH",
    ];
    let values =
        names.map(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()));
    let network = guard.has_network() || !enclosure.network_off;
    serde_json::json!([enclosure.enclosed, network, values]).to_string()
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
