//! The guard's own process.

use std::ffi::OsString;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::{Order, Outcome, SUBCOMMAND, enclose, supervise};

/// Serves one order: reads it from standard input (a line of JSON), carries it out and writes its outcome (a line of JSON)
/// to standard output. Where `stage` is `enclosed` (or `enclosed-with-network`) the guard goes into namespaces of its own
/// first and starts itself a second time as their first process (`inside`); `open` does neither. It must be called before
/// any thread is started.
///
/// # Errors
/// The order is none, or nobody reads the outcome.
pub fn serve(stage: &str) -> io::Result<()> {
    let outcome = match stage {
        "enclosed" => outside(false),
        "enclosed-with-network" => outside(true),
        "inside" => Some(inside()?),
        "open" => Some(carry_out(true)?),
        other => Some(Outcome::refused(format!(
            "'{other}' is no stage of a guard"
        ))),
    };
    let Some(outcome) = outcome else {
        return Ok(()); // the one inside has told it
    };
    let mut line = serde_json::to_vec(&outcome)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    stdout.flush()
}

/// Starts the guard inside, which reads the order and tells the outcome itself, unless it is ended.
fn outside(network: bool) -> Option<Outcome> {
    if let Err(refusal) = enclose::leave(network) {
        return Some(Outcome::refused(refusal));
    }
    // What runs in the namespaces as the same user is not to reach it.
    if let Err(error) = prctl::set_dumpable(false) {
        return Some(Outcome::refused(format!("the guard: {error}")));
    }
    let program = OsString::from("/proc/self/exe");
    match Command::new(program).args([SUBCOMMAND, "inside"]).status() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(Outcome::lost(status.signal())),
        Err(error) => Some(Outcome::refused(format!("the guard inside: {error}"))),
    }
}

/// The first process of the namespaces: when it ends, so does every other.
fn inside() -> io::Result<Outcome> {
    if Pid::this() != Pid::from_raw(1) {
        let reason = "only the first process of a namespace may end all others of it";
        return Ok(Outcome::refused(reason));
    }
    // The outer guard is waited for; when it is ended, this one must be.
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    carry_out(false)
}

fn carry_out(open: bool) -> io::Result<Outcome> {
    let mut line = Vec::new();
    // Byte by byte: a reader ahead of the line's end would be one more thing to hand on.
    let mut stdin = io::stdin().lock();
    stdin.read_until(b'\n', &mut line)?;
    let order: Order = serde_json::from_slice(&line)?;
    let notes = match open {
        true => Vec::new(),
        false => match enclose::furnish(&order) {
            Ok(notes) => notes,
            Err(refusal) => return Ok(Outcome::refused(refusal)),
        },
    };
    drop(stdin);
    let abandoned = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&abandoned);
    thread::spawn(move || {
        // Nothing is ever said on it; it ends with the one who gave the order.
        let mut rest = [0; 16];
        while matches!(io::stdin().lock().read(&mut rest), Ok(1..)) {}
        flag.store(true, Ordering::Relaxed);
    });
    let outcome = supervise::run(&order, !open, &abandoned);
    Ok(Outcome { notes, ..outcome })
}
