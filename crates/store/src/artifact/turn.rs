//! Turns: if several processes need the same artifact, one builds it and the others wait.

use std::path::{Path, PathBuf};

use super::replace::{create_folder, folder_of, temporary_name};
use super::store::digest;
use crate::files::{self, File, TryLockError};

/// Turn of a process to build an artifact; it ends when this value is dropped.
///
/// A turn is a lock on a hidden file next to the artifact. If the file system has no locks, every process has a turn.
#[derive(Debug)]
pub struct Turn(Option<(PathBuf, File)>);

impl Turn {
    /// Takes the turn to build the artifact at `path`; returns `None` if another process has it.
    pub fn try_take(path: &Path) -> Option<Self> {
        Self::lock(path, |file| match file.try_lock() {
            Ok(()) => Lock::Held,
            Err(TryLockError::WouldBlock) => Lock::Busy,
            Err(TryLockError::Error(_)) => Lock::None,
        })
    }

    /// Waits for the turn to build the artifact at `path`.
    ///
    /// The caller must not hold another turn: two processes waiting for each other would wait forever.
    pub fn wait(path: &Path) -> Self {
        let wait = |file: &File| if file.lock().is_ok() { Lock::Held } else { Lock::None };
        Self::lock(path, wait).unwrap_or(Self(None))
    }

    fn lock(path: &Path, lock: impl Fn(&File) -> Lock) -> Option<Self> {
        let folder = folder_of(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let place = folder.join(temporary_name(&digest(name.as_bytes())));
        // Writing the artifact will report a problem with the folder.
        let _ = create_folder(folder);
        loop {
            let Some(file) = open(&place) else { return Some(Self(None)) };
            match lock(&file) {
                Lock::Busy => return None,
                Lock::None => return Some(Self(None)),
                // The previous holder may have removed the file, and another process may have created a new one.
                Lock::Held if is_at(&file, &place) => return Some(Self(Some((place, file)))),
                Lock::Held => {}
            }
        }
    }
}

/// Outcome of locking a file.
enum Lock {
    Held,
    /// Another process holds it.
    Busy,
    /// The file system has no locks.
    None,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some((place, _)) = &self.0 {
            // A file that stays is later removed like an abandoned temporary file.
            let _ = files::remove_file(place);
        }
    }
}

/// Opens the lock file of a turn; `None` if something else has its path.
fn open(place: &Path) -> Option<File> {
    match files::symlink_metadata(place) {
        // Opening a pipe would wait for its reader.
        Ok(there) if !there.is_file() => None,
        _ => File::open_or_create(place).ok(),
    }
}

/// Returns true if an open file is the one at a path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |metadata: files::Metadata| (metadata.dev(), metadata.ino());
    let there = files::symlink_metadata(path).ok().map(of);
    there.is_some() && there == file.metadata().ok().map(of)
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn one_has_the_turn_at_a_time_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/x.bin");
        let (inside, made) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let turn = Turn::wait(&path);
                    assert!(Turn::try_take(&path).is_none());
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    if !path.exists() {
                        made.fetch_add(1, Ordering::SeqCst);
                        std::fs::write(&path, "x").unwrap();
                    }
                    std::thread::sleep(std::time::Duration::from_millis(2));
                    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                    drop(turn);
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
        let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn where_nothing_can_be_written_everyone_has_a_turn() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(Turn::try_take(&file.join("x.bin")).is_some());
        drop(Turn::wait(&file.join("x.bin")));
    }
}
