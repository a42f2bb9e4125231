//! Programs of others.

use std::ffi::OsStr;
use std::process::Command;

/// A program of others, which gets none of this program's variables: keys are among them, and other processes of the same user can
/// read its environment.
pub fn program(path: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(path);
    let own =
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("REPOFORMER_"));
    own.for_each(|(name, _)| {
        command.env_remove(name);
    });
    command
}
