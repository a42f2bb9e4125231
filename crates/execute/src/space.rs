//! Waits for disk space that a concurrent run has used up.

use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

use repoformer_store::error::{Error, Result};

/// Maximum number of attempts.
const ATTEMPTS: usize = 100;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Repeats an operation that fails for lack of disk space while other runs continue: the guard of a run that fills the disk ends the run,
/// and the run's files are then removed.
pub(crate) fn retry_when_full<T>(
    has_others: bool,
    mut attempt: impl FnMut() -> Result<T>,
) -> Result<T> {
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(error) if has_others && is_full(&error) => thread::sleep(PAUSE),
            result => return result,
        }
    }
    attempt()
}

fn is_full(error: &Error) -> bool {
    let kinds = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
    matches!(error, Error::Io { reason, .. } if kinds.contains(&reason.kind()))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_disk_that_another_run_filled_is_waited_for() {
        let fail = |kind: ErrorKind| Error::writing(Path::new("x"), "write", io::Error::from(kind));
        let attempts = |has_others: bool, kind: ErrorKind| {
            let mut count = 0;
            let result = retry_when_full(has_others, || {
                count += 1;
                if count < 3 { Err(fail(kind)) } else { Ok(()) }
            });
            (result.is_ok(), count)
        };
        assert_eq!(attempts(true, ErrorKind::StorageFull), (true, 3));
        assert_eq!(attempts(false, ErrorKind::StorageFull), (false, 1));
        assert_eq!(attempts(true, ErrorKind::PermissionDenied), (false, 1));
    }
}
