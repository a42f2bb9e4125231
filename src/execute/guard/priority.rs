//! Priorities: a guard comes before the command that it watches, and the machine's other work too.
//!
//! A command that starts processes as fast as it can would otherwise keep its own guard from ending it.

use std::io;
use std::process::{Child, Command};
use std::thread;

use super::calls::Filters;
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

/// Starts a command with this niceness, and with filters of its system calls.
pub(super) fn spawn(
    mut command: Command,
    niceness: i32,
    filters: Option<Filters>,
) -> io::Result<Child> {
    // Both belong to a thread, and what the thread starts has them from the first instruction on.
    let start = move || {
        setpriority_process(None, niceness)?;
        filters.iter().try_for_each(Filters::set)?;
        command.spawn()
    };
    thread::spawn(start).join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
}
