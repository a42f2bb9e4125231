//! Runs one command so that it does no harm and leaves nothing behind.
//!
//! Every run has a guard: the program starts itself again ([`serve`], a hidden subcommand), passes a [`RunOrder`] to it on standard input
//! and reads a [`RunOutcome`] from its standard output. The guard
//!
//! - **isolates** the command if the system allows it (`enclose`): the command has its own processes and messages, no network, and a view
//!   of the file system that is read-only except for the copy, the home folder and the temporary folders, whose changes are kept in memory
//!   of limited size and discarded with the run. This needs no privilege, only user namespaces;
//! - **filters** its system calls (`calls`): calls that namespaces leave open fail, and so do calls that reach the guard;
//! - **limits** it (`group`): in a control group, the kernel counts its memory, processes and processor time;
//! - **watches** it (`supervise`): the kernel's counts or, without a control group, the values in `/proc`; wall time, disk, and output, of
//!   which only the head and the tail are kept. A value that cannot be read counts as a limit that was reached;
//! - **ends** every process that is left, even a daemon, when the command ends or when the program that gave the order ends, even by `kill
//!   -9`, because the guard's standard input then closes.
//!
//! Watching and ending also work without namespaces: orphans become children of the guard, which finds them through `/proc`, or of the
//! program if the guard is killed. A process that outlives the program removes its control groups (`group`).

mod calls;
mod client;
mod disk;
mod enclose;
mod group;
mod launch;
mod mounts;
mod order;
mod output;
mod priority;
mod processes;
mod report;
mod run_files;
mod scope;
mod secrets;
mod serve;
mod sockets;
mod supervise;
mod usage;
mod watch;

pub use client::{Counter, Enclosure, Guard};
pub use group::RunGroup;
pub use order::{Files, HiddenPlace, Limits, RunEnd, RunOrder, RunOutcome};
pub use processes::SUBCOMMAND;
pub use report::Report;
pub use scope::enter_scope;
pub use serve::serve;

/// Returns the existing files and folders that usually contain keys, in this user's home folder (for root, in all users') and in the system's
/// folders.
pub fn secret_places() -> Vec<std::path::PathBuf> {
    secrets::secret_places(&secrets::homes())
}
