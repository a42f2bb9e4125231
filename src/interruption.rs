//! Signals: the message of an interruption, and those that must not be ignored.

use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use crate::bars;
use crate::output::{announce, fail};

/// Sets that Ctrl-C says that what is finished is kept, from here on.
pub(crate) fn keeps_artifacts() {
    let text = "finished work is in the cache; run the same command to resume";
    set_interruption_message(Some(text.into()));
}

/// Message of an interruption.
static INTERRUPTION_MESSAGE: Mutex<Option<String>> = Mutex::new(None);

/// Sets the message that Ctrl-C prints before the program ends; returns the one before.
pub(crate) fn set_interruption_message(text: Option<String>) -> Option<String> {
    static ONCE: std::sync::Once = std::sync::Once::new();
    let is_set = text.is_some();
    let mut message = INTERRUPTION_MESSAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = std::mem::replace(&mut *message, text);
    drop(message);
    if is_set && !ignores_interruptions() {
        // Without a handler the program ends silently, which loses nothing either.
        ONCE.call_once(|| drop(ctrlc::set_handler(end)));
    }
    before
}

/// Whether the parent process had the program ignore Ctrl-C, as a shell script does with background jobs.
fn ignores_interruptions() -> bool {
    const SIGINT: u32 = 2;
    is_ignored(SIGINT)
}

/// Refuses to start if the parent process ignores the ends of child processes, as this program then does, too: it would wait for
/// ever for those that it starts.
pub(crate) fn check_children() -> Result<()> {
    const SIGCHLD: u32 = 17;
    if !is_ignored(SIGCHLD) {
        return Ok(());
    }
    fail(
        "the signal CHLD is ignored, so that this program cannot wait for those that it starts",
        "start it with `env --default-signal=CHLD repoformer …`",
    )
}

/// Whether a signal of Linux is ignored.
fn is_ignored(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

fn end() {
    bars::end();
    let text = INTERRUPTION_MESSAGE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = &*text {
        announce(""); // below what the terminal shows of the key
        announce(&format!("interrupted; {text}"));
    }
    // A shell ends its loop only if Ctrl-C ended the program itself. What takes the program's place has no handler.
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        let _ = std::process::Command::new("/bin/sh").args(["-c", "kill -INT $$"]).exec();
    }
    // The status that shells report of a program that Ctrl-C ends.
    std::process::exit(130);
}
