//! Priorities: a guard has a higher priority than its command, and so does the machine's other work.
//!
//! A command that starts processes as fast as it can would otherwise keep its own guard from ending it.

use std::io;

use rustix::process::{getpriority_process, setpriority_process};

/// Niceness of a command relative to the program: with one process each, the command gets a tenth of the time.
const NICER: i32 = 10;
/// Niceness of the least important processes.
const LAST: i32 = 19;
/// Niceness of the most important processes.
const FIRST: i32 = -20;

/// Returns the niceness for the commands of this program.
pub(super) fn of_commands() -> i32 {
    getpriority_process(None).map_or(NICER, |own| (own + NICER).min(LAST))
}

/// Gives this process, a guard, the highest priority if permitted, as for the system's root. Otherwise it keeps the priority of the program
/// that started it.
pub(super) fn rise() {
    let _ = setpriority_process(None, FIRST);
}

/// Sets the niceness of this process.
pub(super) fn set(niceness: i32) -> io::Result<()> {
    Ok(setpriority_process(None, niceness)?)
}
