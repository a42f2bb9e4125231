//! The guard's own process.

use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, close, setsid};

use super::order::{RunOrder, RunOutcome};
use super::processes::SUBCOMMAND;
use super::{enclose, group, launch, priority, supervise};

/// Serves one order: reads it from standard input (a line of JSON), runs it and writes its outcome (a line of JSON) to standard output. For
/// stage `enclosed` (or `enclosed-with-network`), the guard first enters new namespaces and starts itself a second time as their first
/// process (`inside`); `open` does neither. Stage `command` becomes the order's command, and `sweep` removes the program's control groups
/// after its end. This function must be called before any thread is started.
///
/// # Errors
/// The order is invalid, or the outcome cannot be written.
pub fn serve(stage: &str) -> io::Result<()> {
    if stage == "command" {
        return launch::serve();
    }
    // An interrupt at the terminal ends the program; its guards then end the commands and themselves. A new session also keeps commands
    // from reading or typing at the terminal.
    if stage != "inside" {
        let _ = setsid();
        close_inherited();
    }
    if stage == "sweep" {
        return group::sweep();
    }
    let outcome = match stage {
        "enclosed" => outside(false),
        "enclosed-with-network" => outside(true),
        "inside" => Some(inside()?),
        "open" => {
            priority::rise();
            Some(carry_out(true)?)
        }
        other => Some(RunOutcome::from_refusal(format!("unknown guard stage '{other}'"))),
    };
    let Some(outcome) = outcome else {
        return Ok(()); // the inner guard has written it
    };
    let mut line = serde_json::to_vec(&outcome)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    stdout.flush()
}

/// Closes files that were open when the program was started, because a command would inherit them.
fn close_inherited() {
    let names = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // The list includes the folder that is read here, which is closed once the list is complete.
    let numbers: Vec<i32> = numbers.filter(|&number| number > 2).collect();
    for number in numbers {
        let _ = close(number);
    }
}

/// Starts the inner guard, which reads the order and writes the outcome itself, unless it is killed.
fn outside(network: bool) -> Option<RunOutcome> {
    priority::rise();
    if let Err(refusal) = enclose::leave(network) {
        return Some(RunOutcome::from_refusal(refusal));
    }
    // Processes of the same user in the namespaces must not access the guard.
    if let Err(error) = prctl::set_dumpable(false) {
        return Some(RunOutcome::from_refusal(format!("the guard: {error}")));
    }
    // Set this only after entering the namespaces: gaining privileges there would reset it.
    if let Err(error) = prctl::set_pdeathsig(Signal::SIGKILL) {
        return Some(RunOutcome::from_refusal(format!("the guard: {error}")));
    }
    match Command::new("/proc/self/exe").args([SUBCOMMAND, "inside"]).status() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(RunOutcome { signal: status.signal(), ..RunOutcome::default() }),
        Err(error) => Some(RunOutcome::from_refusal(format!("the inner guard: {error}"))),
    }
}

/// Runs the first process of the namespaces, whose end also ends all others.
fn inside() -> io::Result<RunOutcome> {
    if Pid::this() != Pid::from_raw(1) {
        return Ok(RunOutcome::from_refusal("not the first process of a namespace"));
    }
    // The outer guard waits for this one; if the outer one is killed, this one must end.
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    carry_out(false)
}

fn carry_out(open: bool) -> io::Result<RunOutcome> {
    let mut line = Vec::new();
    // Read nothing beyond the end of the line: the rest of the stream is watched for its end.
    let mut stdin = io::stdin().lock();
    stdin.read_until(b'\n', &mut line)?;
    let order: RunOrder = serde_json::from_slice(&line)?;
    let view = if open { enclose::View::open(&order) } else { enclose::mount_view(&order) };
    let view = match view {
        Ok(view) => view,
        Err(refusal) => return Ok(RunOutcome::from_refusal(refusal)),
    };
    drop(stdin);
    let abandoned = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&abandoned);
    thread::spawn(move || {
        // Nothing is ever written to the stream; it closes when the program that gave the order ends.
        let mut rest = [0; 16];
        while matches!(io::stdin().lock().read(&mut rest), Ok(1..)) {}
        flag.store(true, Ordering::Relaxed);
    });
    let (open_parts, notes) = (view.open.clone(), view.notes.clone());
    let outcome = supervise::run(&order, view, !open, &abandoned);
    Ok(RunOutcome { open: open_parts, notes, ..outcome })
}
