//! Turns: of several processes that need the same artifact, one makes it and the others wait.

use std::path::{Path, PathBuf};

use super::replace::{create_folder, folder_of, temporary_name};
use super::store::digest;
use crate::files::{self, File, TryLockError};

/// A process's turn to make an artifact, which ends with this value. Threads of one process take none at the same time.
///
/// A lock on a hidden file beside the artifact stands for it. Where the file system has no locks, everyone has a turn.
#[derive(Debug)]
pub struct Turn {
    held: Option<(PathBuf, File)>,
    has_waited: bool,
}

impl Turn {
    /// Waits for the turn to make the artifact at `path`; `wait` is called first if another process has it.
    pub fn take(path: &Path, wait: impl Fn()) -> Self {
        let folder = folder_of(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let place = folder.join(temporary_name(&digest(name.as_bytes())));
        let mut has_waited = false;
        // Whoever writes the artifact says what is wrong with the folder.
        let _ = create_folder(folder);
        loop {
            let Some(file) = open(&place) else {
                return Self { held: None, has_waited };
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    if !has_waited {
                        wait();
                    }
                    has_waited = true;
                    if file.lock().is_err() {
                        return Self { held: None, has_waited };
                    }
                }
                Err(TryLockError::Error(_)) => return Self { held: None, has_waited },
            }
            // The one before removed the file, and another may have made a new one.
            if is_at(&file, &place) {
                return Self { held: Some((place, file)), has_waited };
            }
        }
    }

    /// Whether another process had the turn before: what it made may be there now.
    pub fn has_waited(&self) -> bool {
        self.has_waited
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some((place, _)) = &self.held {
            // One that stays is removed as a temporary file that nobody holds.
            let _ = files::remove_file(place);
        }
    }
}

/// Opens the file of a turn; `None` where something else lies in its place.
fn open(place: &Path) -> Option<File> {
    match files::symlink_metadata(place) {
        // A pipe would wait for its reader.
        Ok(there) if !there.is_file() => None,
        _ => File::open_or_create(place).ok(),
    }
}

/// Whether an open file is the one at a path.
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
                    let turn = Turn::take(&path, || ());
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
        assert!(!Turn::take(&file.join("x.bin"), || ()).has_waited());
    }
}
