//! Runs one command so that it does no harm and leaves nothing behind.
//!
//! Every run has a guard: the program starts itself again ([`serve`], a hidden subcommand), passes it a [`RunOrder`] on
//! standard input and reads a [`RunOutcome`] from its standard output. The guard
//!
//! - **encloses** the command if the system allows it (`enclose`): its own processes, network (none), messages, and a view of
//!   the file system that is read-only except for the copy, the home folder and the temporary folders, whose changes are
//!   kept in memory of limited size and vanish with the run. It needs no privilege, only user namespaces;
//! - **filters** its system calls (`calls`): those that namespaces leave open fail, and those that reach the guard;
//! - **bounds** it (`group`): a control group, in which the kernel counts its memory, processes and processor time;
//! - **watches** it (`supervise`): what the kernel counts, or, without a control group, what `/proc` shows; wall time, disk, and
//!   output, of which only head and tail are kept. What cannot be read counts as a limit that was reached;
//! - **ends** every process that is left, even a daemon, when the command ends or the program that gave the order does, even
//!   by `kill -9`: then the guard's standard input closes.
//!
//! Without namespaces the last two still hold: orphans become children of the guard, which finds them through `/proc`, or of the
//! program if the guard is killed. The program's control groups are removed by a process that outlives it (`group`).

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
