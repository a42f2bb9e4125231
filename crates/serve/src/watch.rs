//! Watches the repository's files for changes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use notify::event::ModifyKind;
use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use repoformer_core::repository::corpus::{self, GIT_EXCLUDE, GIT_IGNORE, Walk, lists_outside};
use repoformer_pipeline::Messages;
use repoformer_store::files;

use crate::error::{Result, ServeError};
use crate::live::LiveRepository;

/// Idle time after which changes are read, because editors write a file in several steps.
const QUIET: Duration = Duration::from_millis(10);
/// Longest time that changes wait for further ones.
const LONGEST: Duration = Duration::from_millis(100);
/// Interval at which the repository's folder is checked, even without events.
const AGAIN: Duration = Duration::from_secs(1);

/// Handle of a watch that is being followed, until it is dropped.
#[derive(Debug)]
pub struct Watcher(#[expect(dead_code, reason = "held, not read")] Arc<Mutex<RecommendedWatcher>>);

/// Watch on a repository; its events are queued until it is followed.
#[derive(Debug)]
pub struct Watch {
    watcher: RecommendedWatcher,
    events: Receiver<notify::Result<Event>>,
    places: Places,
    messages: Arc<dyn Messages>,
}

/// Folders and ignore files that are watched.
#[derive(Debug)]
struct Places {
    /// The repository's folder as given by the user, which may be a link.
    given: PathBuf,
    /// The folder after resolving links.
    folder: PathBuf,
    /// Identity of the folder on disk; `None` if it is not watched.
    identity: Option<u64>,
    /// Ignore files outside the folder.
    lists: Vec<PathBuf>,
}

impl Watch {
    /// Begins to watch a folder and the ignore files that apply to it.
    ///
    /// # Errors
    /// The folder cannot be watched.
    pub fn begin(folder: &Path, walk: Walk, messages: Arc<dyn Messages>) -> Result<Self> {
        let (sender, events) = mpsc::channel();
        let given = folder.to_owned();
        // Paths in events begin with the folder as it is named here.
        let folder = files::canonicalize(folder)
            .map_err(ServeError::system(format!("{}: cannot be opened", folder.display())))?;
        let identity = Some(corpus::identity(&folder));
        // Links may lead anywhere; a file with several names is read again under all of them.
        let config = Config::default().with_follow_symlinks(false);
        // Ignore files that are only read, above all by this program.
        let pass = move |event: notify::Result<Event>| {
            let is_access = event.as_ref().is_ok_and(|event| event.kind.is_access());
            // Sending fails once nobody follows the watch.
            let _ = (!is_access).then(|| sender.send(event));
        };
        let mut watcher = RecommendedWatcher::new(pass, config)
            .map_err(ServeError::system("cannot watch files"))?;
        let failed =
            ServeError::system(format!("{}: cannot be watched for changes", folder.display()));
        watcher.watch(&folder, RecursiveMode::Recursive).map_err(failed)?;
        let lists = if walk == Walk::Git { lists_outside(&folder) } else { Vec::new() };
        let folders: BTreeSet<&Path> = lists.iter().filter_map(|list| list.parent()).collect();
        for of_lists in folders {
            if let Err(error) = watcher.watch(of_lists, RecursiveMode::NonRecursive) {
                let what = "ignore files in this folder are not watched for changes";
                messages.detail(&format!("{}: {what}: {error}", of_lists.display()));
            }
        }
        let places = Places { given, folder, identity, lists };
        Ok(Self { watcher, events, places, messages })
    }

    /// Reads changes until the watcher is dropped.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn follow(self, live: Arc<LiveRepository>) -> Result<Watcher> {
        let Self { watcher, events, mut places, messages } = self;
        let watcher = Arc::new(Mutex::new(watcher));
        let weak = Arc::downgrade(&watcher);
        std::thread::Builder::new()
            .name("watch".into())
            .spawn(move || follow(&live, &weak, &mut places, &events, &*messages))
            .map_err(ServeError::system("cannot start a thread"))?;
        Ok(Watcher(watcher))
    }
}

/// Changed files, or the whole repository.
#[derive(Debug, Default)]
struct Changes {
    paths: BTreeSet<PathBuf>,
    all: bool,
    /// Whether the repository's folder itself was moved or removed, even if another one has taken its place.
    is_moved: bool,
}

impl Changes {
    fn add(&mut self, event: notify::Result<Event>, folder: &Path) {
        match event {
            Ok(event) => {
                let leaves = matches!(
                    event.kind,
                    EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
                );
                self.is_moved |= leaves && event.paths.iter().any(|path| path == folder);
                self.all |= event.need_rescan();
                self.paths.extend(event.paths);
            }
            // Events may have been lost.
            Err(_) => self.all = true,
        }
    }
}

impl Places {
    /// Returns whether the repository's folder has become a link out of the folder that holds it.
    fn given_leads_out(&self) -> bool {
        let (dir, name) = (self.given.parent(), self.given.file_name());
        dir.zip(name).is_some_and(|(dir, name)| corpus::is_link_out(dir, &name.to_string_lossy()))
    }

    /// Watches the repository's folder again if another one has taken its place; returns whether the whole folder must be read.
    fn follow(
        &mut self,
        is_moved: bool,
        watcher: &Mutex<RecommendedWatcher>,
        messages: &dyn Messages,
    ) -> bool {
        let found = files::canonicalize(&self.given).ok();
        let folder = found.filter(|_| !self.given_leads_out());
        let Some(folder) = folder else {
            if self.identity.take().is_some() {
                let what = if self.given_leads_out() {
                    "became a link out of its folder"
                } else {
                    "was removed"
                };
                let given = self.given.display();
                messages.warning(format!("{given}: {what}; waiting for it to return").into());
            }
            return false;
        };
        let identity = Some(corpus::identity(&folder));
        if !is_moved && identity == self.identity && folder == self.folder {
            return false;
        }
        let was_watched = self.identity.is_some();
        let mut watcher = watcher.lock().unwrap_or_else(PoisonError::into_inner);
        // Stop watching the previous folder.
        let _ = watcher.unwatch(&self.folder);
        match watcher.watch(&folder, RecursiveMode::Recursive) {
            Ok(()) => {
                (self.folder, self.identity) = (folder, identity);
                true
            }
            Err(error) => {
                self.identity = None;
                if was_watched {
                    let folder = folder.display();
                    let text = format!("{folder}: cannot be watched for changes: {error}");
                    messages.warning(text.into());
                }
                was_watched
            }
        }
    }
}

fn follow(
    live: &LiveRepository,
    watcher: &Weak<Mutex<RecommendedWatcher>>,
    places: &mut Places,
    events: &Receiver<notify::Result<Event>>,
    messages: &dyn Messages,
) {
    loop {
        let mut changes = Changes::default();
        match events.recv_timeout(AGAIN) {
            Ok(event) => changes.add(event, &places.folder),
            Err(RecvTimeoutError::Timeout) => {}
            // The watcher was dropped.
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let begin = Instant::now();
        while !changes.paths.is_empty() && begin.elapsed() < LONGEST {
            match events.recv_timeout(QUIET) {
                Ok(event) => changes.add(event, &places.folder),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        let Some(watcher) = watcher.upgrade() else { return };
        changes.all |= places.follow(changes.is_moved, &watcher, messages);
        drop(watcher);
        if places.folder.exists() {
            read(live, places, &changes, messages);
        }
    }
}

/// Returns the path of the file or folder whose files an event may have changed.
fn files_of(path: String, walk: Walk) -> Option<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    if walk == Walk::Git && name == GIT_IGNORE {
        return Some(folder.to_owned());
    }
    if walk == Walk::Git && path == GIT_EXCLUDE {
        return Some(String::new());
    }
    // Version control and caches write many files that do not belong to the repository.
    let is_hidden = path.split('/').any(|name| name.starts_with('.'));
    (walk == Walk::Rglob || !is_hidden).then_some(path)
}

fn read(live: &LiveRepository, places: &Places, changes: &Changes, messages: &dyn Messages) {
    let Places { folder, lists, .. } = places;
    let all = changes.all || lists.iter().any(|list| changes.paths.contains(list));
    let below = |path: &PathBuf| {
        let below = path.strip_prefix(folder).ok()?.to_str()?.replace('\\', "/");
        Some(if below.is_empty() { String::new() } else { below })
    };
    let walk = live.experiment().walk;
    let paths = changes.paths.iter().filter_map(below);
    let paths: Vec<String> = paths.filter_map(|path| files_of(path, walk)).collect();
    if paths.is_empty() && !all {
        return;
    }
    let changed =
        if all { live.refresh_below(&[String::new()]) } else { live.refresh_below(&paths) };
    match changed {
        Ok(changed) => {
            messages.problems(changed.problems);
            if !changed.read.is_empty() || !changed.removed.is_empty() {
                messages.detail(&format!(
                    "read {} changed files, {} are gone",
                    changed.read.len(),
                    changed.removed.len()
                ));
            }
        }
        Err(error) => messages.warning(error.message()),
    }
}
