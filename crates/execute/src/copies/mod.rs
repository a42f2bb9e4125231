//! Copies of repositories in which tests run; the user's repositories are never written to.
//!
//! A copy is made once, set up once and kept for later runs. Its stamp contains digests of the repository's content, of the setup command,
//! and of the copy's content after the setup; a copy that has changed since is rebuilt. Checking this takes as long as reading the copy:
//! 0.8 s of processor time at each start for 1.1 GB in 30,000 cached files.
//!
//! If each run writes to a separate layer above the copy, the copy never changes and serves all workers. Otherwise every worker has a copy
//! of its own, and a second one that stays unchanged; after each run, everything that was changed, created or removed is restored, so that
//! no run influences another.

mod folder;
mod snapshot;

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use repoformer_store::artifact::write_file;
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_store::seal;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use serde::{Deserialize, Serialize};

use self::folder::{copy_folder, digest, empty, remove, remove_special_modes};
use self::snapshot::{Snapshot, restore};
use super::command::{NamedPaths, paths_in};
use super::guard::{Files, Guard, HiddenPlace, Limits, RunOrder, RunOutcome, secret_places};
use super::space::retry_when_full;

/// Copies of repositories, made on demand.
#[derive(Debug)]
pub struct Copies<'a> {
    repos_dir: PathBuf,
    work_dir: PathBuf,
    /// Files and folders that do not belong to a repository even if they are inside one: those of this program, and keys.
    apart: Vec<PathBuf>,
    guard: &'a Guard,
    setup: Setup,
    /// Number of parallel runs.
    pub(super) workers: usize,
    repositories: Vec<CopySource>,
    /// Files and folders that contain answers: the repositories and their copies, this program's own files, the user's files.
    answers: Vec<PathBuf>,
    /// Conditions of all runs, in addition to their command, text and repository.
    pub(super) surroundings: String,
    /// Lock held while copies are in use.
    _lock: files::File,
}

/// Commands that set up copies.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Command of each repository, in the order of the repositories; `None` if there is nothing to do.
    pub commands: Vec<Option<String>>,
    /// Time limit for one command, in seconds.
    pub seconds: f64,
}

#[derive(Debug)]
struct CopySource {
    name: String,
    digest: OnceLock<Result<String, String>>,
    /// Copies: one per worker, or one for all.
    copies: Vec<OnceLock<Result<Copy, CopyFailure>>>,
}

/// A copy that tests can be run in.
#[derive(Debug)]
pub struct Copy {
    pub(super) folder: PathBuf,
    scratch: PathBuf,
    /// Unchanged copy and state to restore after a run, if necessary.
    pristine: Option<(PathBuf, std::sync::Mutex<Snapshot>)>,
}

/// Reason why a repository has no copy in which tests can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyFailure {
    /// Explanation.
    pub reason: Message,
    /// End of the setup's output.
    pub output: String,
}

/// Folders of [`Copies`].
#[derive(Debug, Clone, Copy)]
pub struct CopyFolders<'a> {
    /// The user's repositories.
    pub repos_dir: &'a Path,
    /// The copies.
    pub work_dir: &'a Path,
    /// This program's own files, which are never copied.
    pub cache: &'a Path,
    /// Files with answers: tasks with their reference texts, predictions, tests, results. Some may be created later.
    pub answers: &'a [&'a Path],
}

impl<'a> Copies<'a> {
    /// Prepares copies of these repositories, without making any yet.
    ///
    /// # Errors
    /// A folder does not exist or cannot be created, copies would be inside a repository, or another evaluation uses them.
    pub fn new(
        folders: CopyFolders<'_>,
        repositories: &[String],
        guard: &'a Guard,
        setup: Setup,
        workers: usize,
    ) -> Result<Self> {
        let real = |path: &Path| {
            files::canonicalize(path).map_err(|e| Error::reading(path, "find this folder", e))
        };
        let work_dir = folders.work_dir;
        files::create_dir_all(work_dir)
            .map_err(|e| Error::writing(work_dir, "create this folder for copies", e))?;
        let slots = if guard.enclosure.layered { 1 } else { workers };
        let source = |name: &String| CopySource {
            name: name.clone(),
            digest: OnceLock::new(),
            copies: (0..slots).map(|_| OnceLock::new()).collect(),
        };
        let (repos_dir, work_dir) = (real(folders.repos_dir)?, real(work_dir)?);
        let cache = files::canonicalize(folders.cache).ok();
        let is_in_cache = cache.as_ref().is_some_and(|cache| work_dir.starts_with(cache));
        let inside = repositories.iter().find(|name| work_dir.starts_with(repos_dir.join(name)));
        if work_dir == repos_dir || (inside.is_some() && !is_in_cache) {
            let reason = format!(
                "{}: the copies would be inside the folder of repositories",
                work_dir.display()
            );
            let hint = message![
                "choose a ",
                UserChoice::WorkFolder,
                " outside the folder of repositories"
            ];
            return Err(Error::execution(reason, hint));
        }
        let lock = lock(&work_dir)?;
        let of_both = |name| [repos_dir.join(name), work_dir.join(name)];
        let answers = repositories.iter().flat_map(of_both).chain(cache.clone());
        let answers = answers.chain(folders.answers.iter().filter_map(|path| whereabouts(path)));
        let answers = answers.collect();
        // Copies lie elsewhere than what is hidden: they lack the user's files of answers, and the places of keys.
        let mut apart = vec![work_dir.clone()];
        apart.extend(cache);
        apart.extend(folders.answers.iter().filter_map(|path| whereabouts(path)));
        apart.extend(secret_places().into_iter().filter_map(|path| files::canonicalize(path).ok()));
        let is_below = |path: &Path, root: &Path| path != root && path.starts_with(root);
        apart.retain(|path| repositories.iter().any(|name| is_below(path, &repos_dir.join(name))));
        Ok(Self {
            repos_dir,
            work_dir,
            apart,
            guard,
            setup,
            workers,
            repositories: repositories.iter().map(source).collect(),
            answers,
            surroundings: surroundings(guard),
            _lock: lock,
        })
    }

    /// Returns the command that sets up a repository's copies.
    pub(super) fn setup_command(&self, repository: usize) -> Option<&str> {
        self.setup.commands.get(repository)?.as_deref()
    }

    /// Returns whether all workers share one copy.
    pub fn is_shared(&self) -> bool {
        self.guard.enclosure.layered
    }

    /// Returns a digest of a repository's files: names, types, contents, and which files are executable.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn digest(&self, repository: usize) -> Result<String, String> {
        let source = &self.repositories[repository];
        let digest = source.digest.get_or_init(|| {
            let root = self.repos_dir.join(&source.name);
            digest(&root, &self.apart).map_err(|e| format!("{}: {e}", root.display()))
        });
        digest.clone()
    }

    /// Returns a worker's copy of a repository, made and set up if necessary.
    ///
    /// # Errors
    /// The copy cannot be made or set up.
    pub fn of(&self, repository: usize, worker: usize) -> Result<&Copy, &CopyFailure> {
        let source = &self.repositories[repository];
        let slot = if source.copies.len() == 1 { 0 } else { worker };
        let made = source.copies[slot].get_or_init(|| self.make(repository, slot));
        made.as_ref()
    }

    /// Runs an order in a copy and restores the copy.
    ///
    /// # Errors
    /// No guard can be started, or the copy cannot be restored.
    pub fn run(&self, copy: &Copy, order: RunOrder) -> Result<RunOutcome> {
        let temporary = if self.guard.enclosure.enclosed {
            "/tmp".to_owned()
        } else {
            copy.scratch.to_string_lossy().into_owned()
        };
        let variables = [
            ("TMPDIR", temporary.as_str()),
            // No run may find compiled files of another one, and sets must have the same order in every run.
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("PYTHONHASHSEED", "0"),
            // Summaries are read as plain text.
            ("NO_COLOR", "1"),
            ("PY_COLORS", "0"),
        ];
        let mut order =
            RunOrder { folder: copy.folder.clone(), scratch: copy.scratch.clone(), ..order };
        order.hidden = hidden_places(&self.answers, &order.named, &self.repos_dir);
        check_in_place(&copy.folder)
            .map_err(|e| Error::writing(&copy.folder, "run tests here", e))?;
        order.beside = self.workers.saturating_sub(1);
        order.environment.extend(variables.map(|(name, value)| (name.into(), value.into())));
        let outcome = self.guard.run(order)?;
        if let Some((pristine, snapshot)) = &copy.pristine {
            let mut snapshot = snapshot.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            retry_when_full(self.workers > 1, || {
                let restored = restore(&copy.folder, pristine, &mut snapshot)
                    .and_then(|()| empty(&copy.scratch));
                restored.map_err(|e| Error::writing(&copy.folder, "restore this copy", e))
            })?;
        }
        Ok(outcome)
    }

    fn make(&self, repository: usize, slot: usize) -> Result<Copy, CopyFailure> {
        let name = &self.repositories[repository].name;
        let broken = |reason: String| CopyFailure { reason: reason.into(), output: String::new() };
        let of_source = self.digest(repository).map_err(broken)?;
        let place = self.work_dir.join(name).join(slot.to_string());
        // In a separate folder, because the repository may be named like another part.
        let (folder, pristine) = (place.join("repository").join(name), place.join("pristine"));
        let (scratch, stamp_path) = (place.join("scratch"), place.join("stamp.json"));
        let command = self.setup_command(repository).map(str::to_owned);
        let stamp = Stamp {
            repository: of_source,
            setup: command.clone(),
            layered: self.is_shared(),
            files: String::new(),
            pristine: None,
            snapshot: Snapshot::default(),
        };
        let known = files::read_companion(&stamp_path)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Stamp>(&bytes).ok())
            .filter(|known| known.same_as(&stamp) && folder.is_dir());
        let at = |path: &Path, e: io::Error| broken(format!("{}: {e}", path.display()));
        let taken_up = known.and_then(|known| match known.take_up(&folder, &pristine) {
            Ok(snapshot) => Some(snapshot),
            Err(reason) => {
                seal::make_again(&place, &reason);
                None
            }
        });
        let snapshot = match taken_up {
            Some(snapshot) => snapshot,
            None => {
                if !is_room(&place) {
                    return Err(CopyFailure {
                        reason: no_room_reason(&place),
                        output: String::new(),
                    });
                }
                make_room(&place).map_err(|e| at(&place, e))?;
                files::create_dir_all(&folder).map_err(|e| at(&folder, e))?;
                let from = self.repos_dir.join(name);
                let copy = |from: &Path, to: &Path, without: &[PathBuf]| {
                    copy_folder(from, to, without).map_err(|e| {
                        // The incomplete copy may have filled the disk.
                        let _ = remove(&place);
                        at(to, e)
                    })
                };
                copy(&from, &folder, &self.apart)?;
                // The copy must contain the files by which results are identified.
                let now = digest(&from, &self.apart).map_err(|e| at(&from, e))?;
                if now != stamp.repository {
                    let from = from.display();
                    return Err(broken(format!("{from}: it changed while it was copied")));
                }
                if let Some(command) = command {
                    empty(&scratch).map_err(|e| at(&scratch, e))?;
                    self.set_up(&folder, &scratch, command)?;
                    check_in_place(&folder).map_err(|e| at(&folder, e))?;
                    remove_special_modes(&folder).map_err(|e| at(&folder, e))?;
                }
                let mut snapshot = Snapshot::default();
                if !self.is_shared() {
                    files::create_dir_all(&pristine).map_err(|e| at(&pristine, e))?;
                    copy(&folder, &pristine, &[])?;
                    snapshot = Snapshot::from_folder(&folder).map_err(|e| at(&folder, e))?;
                }
                let of = |folder: &Path| digest(folder, &[]).map_err(|e| at(folder, e));
                let files = of(&folder)?;
                let pristine = if self.is_shared() { None } else { Some(of(&pristine)?) };
                let stamp = Stamp { snapshot, files, pristine, ..stamp };
                let bytes = serde_json::to_vec(&stamp).unwrap_or_default();
                write_file(&stamp_path, &bytes)
                    .map_err(|e| CopyFailure { reason: e.message(), output: String::new() })?;
                stamp.snapshot
            }
        };
        make_private(&place).map_err(|e| at(&place, e))?;
        empty(&scratch).map_err(|e| at(&scratch, e))?;
        let kept = (!self.is_shared()).then(|| (pristine, snapshot.into()));
        Ok(Copy { folder, scratch, pristine: kept })
    }

    /// Returns the folders that contain the user's repositories (their folder, and targets of its links outside), and the folder of the
    /// copies.
    fn protected_folders(&self) -> Vec<PathBuf> {
        let entries = files::read_dir(&self.repos_dir).into_iter().flatten().flatten();
        let named = self.repositories.iter().map(|source| self.repos_dir.join(&source.name));
        let real = entries.map(|entry| entry.path()).chain(named).map(files::canonicalize);
        let mut elsewhere: Vec<PathBuf> = real.flatten().collect();
        elsewhere.retain(|path| !path.starts_with(&self.repos_dir) && path.is_dir());
        elsewhere.sort();
        elsewhere.dedup();
        [vec![self.repos_dir.clone()], elsewhere, vec![self.work_dir.clone()]].concat()
    }

    fn set_up(&self, folder: &Path, scratch: &Path, command: String) -> Result<(), CopyFailure> {
        let broken = |reason: Message, output: &str| CopyFailure {
            reason,
            output: tail(output, 2000).to_owned(),
        };
        let order = RunOrder {
            command,
            folder: folder.to_owned(),
            limits: Limits {
                wall_seconds: self.setup.seconds,
                cpu_seconds: f64::from(u32::MAX),
                memory_mb: u64::from(u32::MAX),
                disk_mb: u64::from(u32::MAX),
                processes: 1 << 14,
            },
            network: true,
            files: Files::Open { protected: self.protected_folders() },
            scratch: scratch.to_owned(),
            ..RunOrder::default()
        };
        let outcome = self.guard.run(order).map_err(|e| broken(e.message(), ""))?;
        let setup = message!["the ", UserChoice::SetupCommand];
        match (&outcome.refused, outcome.exit_code) {
            (None, Some(0)) => Ok(()),
            (Some(reason), _) => Err(broken(setup.then(format!(" cannot run: {reason}")), "")),
            (None, code) => {
                let reason = match code {
                    Some(code) => setup.then(format!(" ended with exit code {code}")),
                    None => message![
                        setup,
                        " did not end within the ",
                        UserChoice::SetupTimeLimit,
                        format!(" of {} seconds, or was killed", self.setup.seconds)
                    ],
                };
                Err(broken(reason, &outcome.output))
            }
        }
    }
}

/// Name of the file that marks a folder in which copies are made and removed.
const MARK: &str = "copy-of-repoformer";

/// Returns whether a copy can be made at a path: content that is not a copy is never removed.
fn is_room(place: &Path) -> bool {
    let is_empty = || files::read_dir(place).is_ok_and(|mut entries| entries.next().is_none());
    files::symlink_metadata(place).is_err() || place.join(MARK).is_file() || is_empty()
}

/// Returns the reason why a copy cannot be made at a path.
fn no_room_reason(place: &Path) -> Message {
    message![
        format!(
            "{}: contains files that are not a copy and will not be removed; choose another ",
            place.display()
        ),
        UserChoice::WorkFolder
    ]
}

/// Checks that no part of a folder's path became a link: a setup command could have replaced a folder above the copies.
fn check_in_place(folder: &Path) -> io::Result<()> {
    if files::canonicalize(folder)? == folder {
        return Ok(());
    }
    Err(io::Error::other("a part of its path became a link"))
}

/// Denies other users access to a folder, because their changes there would become test results.
fn make_private(folder: &Path) -> io::Result<()> {
    files::set_permissions(folder, files::Permissions::from_mode(0o700))
}

/// Creates an empty folder for a copy, if [possible](is_room).
fn make_room(place: &Path) -> io::Result<()> {
    remove(place)?;
    files::create_dir_all(place)?;
    make_private(place)?;
    files::write(place.join(MARK), "")
}

/// Returns the absolute path of a file or folder that exists or may be created later; `None` for pipes and devices.
fn whereabouts(path: &Path) -> Option<PathBuf> {
    match files::canonicalize(path) {
        Ok(path) => (path.is_file() || path.is_dir()).then_some(path),
        Err(_) => std::path::absolute(path).ok().filter(|path| !path.exists()),
    }
}

/// Locks the copies in a folder against other evaluations.
fn lock(work_dir: &Path) -> Result<files::File> {
    let path = work_dir.join(".lock");
    let file = files::File::open_or_create(&path)
        .map_err(|e| Error::writing(&path, "create this file", e))?;
    // Anybody who can open it could lock it.
    let owner = files::Permissions::from_mode(0o600);
    files::set_permissions(&path, owner)
        .map_err(|e| Error::writing(&path, "protect this file", e))?;
    match file.try_lock() {
        Err(files::TryLockError::WouldBlock) => Err(Error::execution(
            format!("{}: another evaluation uses these copies", work_dir.display()),
            message![
                "wait until it ends, or choose another ",
                UserChoice::WorkFolder,
                " and another ",
                UserChoice::ResultsFile
            ],
        )),
        // Some file systems do not support locks.
        _ => Ok(file),
    }
}

/// Returns the values of the variables that select programs and libraries.
fn variables() -> [Option<String>; 8] {
    let names = [
        "PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "NODE_PATH",
        "JAVA_HOME", "LD_LIBRARY_PATH",
    ];
    names.map(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
}

/// Describes the isolation of the commands and the variables that select programs and libraries.
fn surroundings(guard: &Guard) -> String {
    let enclosure = &guard.enclosure;
    let network = guard.network || !enclosure.network_off;
    serde_json::json!([enclosure.enclosed, network, enclosure.filtered, variables()]).to_string()
}

/// Returns the files and folders with answers to hide. Paths that the user's command or a variable names stay visible, such as an
/// environment in a repository: if a path is inside such a folder, its first component inside the folder stays; if it is the folder itself,
/// the whole folder stays. A path filled in with the repository's name keeps only parts of this repository, because somebody else may have
/// chosen the name.
fn hidden_places(answers: &[PathBuf], named: &NamedPaths, repos_dir: &Path) -> Vec<HiddenPlace> {
    let of_variables: Vec<PathBuf> =
        variables().iter().flatten().flat_map(|value| paths_in(value)).collect();
    let own = repos_dir.join(&named.repository);
    let hide = |answer: &PathBuf| {
        let of_own = named.with_repository.iter();
        let of_own = of_own.filter(|path| *answer == own && !named.paths.contains(path));
        let named = of_variables.iter().chain(&named.paths).chain(of_own);
        let below = named.filter_map(|path| path.strip_prefix(answer).ok());
        let parts: Option<Vec<PathBuf>> =
            below.map(|rest| Some(answer.join(rest.components().next()?))).collect();
        parts.map(|kept| HiddenPlace { path: answer.clone(), kept })
    };
    answers.iter().filter_map(hide).collect()
}

/// Returns at most the last `bytes` bytes of a text, without splitting a character.
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
    /// Digest of the copy.
    files: String,
    /// Digest of the second copy, if it exists.
    pristine: Option<String>,
    snapshot: Snapshot,
}

impl Stamp {
    /// Undoes changes that runs made to a copy since the stamp; the error is the reason why the copy cannot be used.
    fn take_up(self, folder: &Path, pristine: &Path) -> Result<Snapshot, String> {
        let at = |path: &Path, e: io::Error| format!("{}: {e}", path.display());
        let mut snapshot = self.snapshot;
        if self.pristine.is_some() {
            // An interrupted run may have left changes.
            restore(folder, pristine, &mut snapshot).map_err(|e| at(folder, e))?;
        }
        let pristine = self.pristine.iter().map(|files| (pristine, files));
        for (folder, files) in pristine.chain([(folder, &self.files)]) {
            if digest(folder, &[]).map_err(|e| at(folder, e))? != *files {
                return Err(format!("{}: its files changed since it was made", folder.display()));
            }
        }
        Ok(snapshot)
    }

    fn same_as(&self, other: &Self) -> bool {
        (&self.repository, &self.setup, self.layered)
            == (&other.repository, &other.setup, other.layered)
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::{Template, Values};
    use super::*;

    /// Opening a pipe would wait for its other end.
    #[test]
    fn a_lock_is_a_regular_file_of_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join(".lock"), dir.path().join("other"));
        let _held = lock(dir.path()).unwrap();
        assert!(lock(dir.path()).is_err());
        std::fs::write(&other, "kept").unwrap();
        let put: [&dyn Fn(); 3] = [
            &|| nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            &|| std::os::unix::fs::symlink(&other, &path).unwrap(),
            &|| std::fs::create_dir(&path).unwrap(),
        ];
        for put in put {
            std::fs::remove_file(&path).unwrap();
            put();
            assert!(lock(dir.path()).is_err());
        }
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "kept");
    }

    #[test]
    fn answers_are_hidden_but_for_what_a_command_names() {
        let answers = [PathBuf::from("/work/repos/demo"), PathBuf::from("/work/tasks.jsonl")];
        let tests = ["=/work/tasks.jsonl=/work/repos/demo/x".to_owned()];
        let kept = |command: &str| {
            let template = Template::parse("test-cmd", command).unwrap();
            let values = Values { tests: &tests, repository: "demo", ..Values::default() };
            assert!(template.fill(values).contains("work"));
            let named = template.named_paths("demo");
            let found = hidden_places(&answers, &named, Path::new("/work/repos")).into_iter();
            found.map(|hidden| hidden.kept).collect::<Vec<_>>()
        };
        let nothing: Vec<PathBuf> = Vec::new();
        assert_eq!(
            kept("/work/repos/demo2/bin/python -m pytest"),
            [nothing.clone(), nothing.clone()]
        );
        let own = vec![PathBuf::from("/work/repos/demo/.venv")];
        assert_eq!(
            kept("'/work/repos/demo/.venv/bin/python' -m pytest"),
            [own.clone(), nothing.clone()]
        );
        assert_eq!(kept("cd /work/repos/demo; pytest"), std::slice::from_ref(&nothing));
        // The repository's author named the tests, and may have named the repository.
        assert_eq!(kept("pytest {tests}"), [nothing.clone(), nothing.clone()]);
        assert_eq!(
            kept("/work/repos/{repository}/.venv/bin/python {tests}"),
            [own, nothing.clone()]
        );
        let answers = [PathBuf::from("/work/cache"), PathBuf::from("/work/repos/cache")];
        let template =
            Template::parse("test-cmd", "/work/{repository}/x {task_id} {path}").unwrap();
        let named = template.named_paths("cache");
        assert_eq!(named.with_repository, [PathBuf::from("/work/cache/x")]);
        let found = hidden_places(&answers, &named, Path::new("/work/repos"));
        assert!(found.len() == 2 && found.iter().all(|hidden| hidden.kept.is_empty()));
    }
}
