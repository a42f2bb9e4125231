//! Starting of other programs, such as git and Python.

use std::ffi::OsStr;
use std::process::Command;

/// Returns a command without this program's environment variables. Some of them hold keys, and other processes of the same user
/// can read the environment of the started program.
pub fn program(path: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(path);
    let own =
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REPOFORMER_"));
    own.for_each(|(name, _)| {
        command.env_remove(name);
    });
    command
}
