//! Priorities: a guard comes before the command that it watches, and the machine's other work too.
//!
//! A command that starts processes as fast as it can would otherwise keep its own guard from ending it.

use std::io;

use rustix::process::{getpriority_process, setpriority_process};

/// How much nicer a command is than the program: of one process each, it gets a tenth of the time.
const NICER: i32 = 10;
/// Niceness of the least important processes.
const LAST: i32 = 19;
/// Niceness of the most important processes.
const FIRST: i32 = -20;

/// Returns the niceness for the commands of this program.
pub(super) fn of_commands() -> i32 {
    getpriority_process(None).map_or(NICER, |own| (own + NICER).min(LAST))
}

/// Gives this process, a guard, the highest priority, if it may have that: the system's root may. Others stay as important
/// as the program that started them.
pub(super) fn rise() {
    let _ = setpriority_process(None, FIRST);
}

/// Gives this process a niceness.
pub(super) fn set(niceness: i32) -> io::Result<()> {
    Ok(setpriority_process(None, niceness)?)
}
