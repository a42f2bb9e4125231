//! Signals: the message of an interruption, and the signals that must not be ignored.

use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use crate::bars;
use crate::output::{announce, fail};

/// Sets the message that finished work is kept, for interruptions from now on.
pub(crate) fn keeps_artifacts() {
    let text = "finished work is in the cache; run the same command to resume";
    set_interruption_message(Some(text.into()));
}

/// Message of an interruption.
static INTERRUPTION_MESSAGE: Mutex<Option<String>> = Mutex::new(None);

/// Sets the message that Ctrl-C prints before the program ends; returns the previous one.
pub(crate) fn set_interruption_message(text: Option<String>) -> Option<String> {
    static ONCE: std::sync::Once = std::sync::Once::new();
    let is_set = text.is_some();
    let mut message = INTERRUPTION_MESSAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = std::mem::replace(&mut *message, text);
    drop(message);
    if is_set && !ignores_interruptions() {
        // Without a handler, the program ends silently, and loses nothing either.
        ONCE.call_once(|| drop(ctrlc::set_handler(end)));
    }
    before
}

/// True if the parent process made the program ignore Ctrl-C, as a shell script does for background jobs.
fn ignores_interruptions() -> bool {
    const SIGINT: u32 = 2;
    is_ignored(SIGINT)
}

/// Refuses to start if the parent process ignores the signal CHLD. The program inherits this, and would wait forever for the
/// processes that it starts.
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

/// True if a Linux signal is ignored.
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
    // A shell ends its loop only if Ctrl-C killed the program, so a process without a handler replaces the program and kills
    // itself.
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        let _ = std::process::Command::new("/bin/sh").args(["-c", "kill -INT $$"]).exec();
    }
    // Status that shells report for a program killed by Ctrl-C.
    std::process::exit(130);
}
