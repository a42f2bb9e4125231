//! A scope of the user's systemd, which is a control group delegated to this program.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use repoformer_store::program::program;

use super::group::Group;

/// Variable with the number of the process for which systemd was already asked.
const ASKED: &str = "IN_SCOPE_OF_REPOFORMER";

/// Restarts the program in a scope of the user's systemd if it cannot create a control group any other way. The process keeps its number
/// and arguments. Returns if a scope is not needed or not available.
///
/// Only for a user with lingering enabled (`loginctl enable-linger`): otherwise the user's systemd ends with the last session, and kills
/// runs that should outlive the session.
pub fn enter_scope() {
    let process = std::process::id().to_string();
    if std::env::var(ASKED).is_ok_and(|asked| asked == process) || !lingers() {
        return;
    }
    let Ok(own) = std::env::current_exe() else { return };
    if Group::make(own.as_os_str()).exists() {
        return;
    }
    // Arguments must not be expanded. Versions before 254 lack the flag, and expand nothing in a scope.
    for flag in [Some("--expand-environment=no"), None] {
        let scope = |mut command: Command, program: &Path| {
            command.args(["--user", "--scope", "--quiet", "--property=Delegate=yes"]);
            command.args(flag).arg("--").arg(program).env(ASKED, &process);
            command
        };
        let mut trial = scope(program("systemd-run"), Path::new("true"));
        let trial = trial.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if trial.status().is_ok_and(|status| status.success()) {
            // This returns only if nothing was started, in which case the guard counts. The process becomes this program again, so it keeps
            // all variables.
            let mut anew = scope(Command::new("systemd-run"), &own);
            let _ = anew.args(std::env::args_os().skip(1)).exec();
        }
    }
}

fn lingers() -> bool {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current()).ok().flatten();
    user.is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user.name).exists())
}
