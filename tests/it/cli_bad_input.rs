//! Repositories whose files cannot be read, or change while they are read. What is said of bad
//! repositories and tasks otherwise stands in `tests/cmd/bad_input`.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Place, Ran};

#[cfg(unix)]
#[test]
fn a_socket_is_left_out() {
    let place = Place::new();
    let socket = std::os::unix::net::UnixListener::bind(place.path("repos/alpha/socket.py"));
    place
        .stage_within(&["window"], 20)
        .partly()
        .says(&["error: repos/alpha/socket.py: left out: not a regular file"]);
    drop(socket);
}

#[cfg(unix)]
#[test]
fn files_and_folders_without_the_right_to_read_them() {
    use std::fs::{Permissions, read, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("repos/alpha/secret.py", "x = 1\n");
    place.write("repos/alpha/closed/a.py", "x = 1\n");
    for path in ["repos/alpha/secret.py", "repos/alpha/closed"] {
        set_permissions(place.path(path), Permissions::from_mode(0o000)).unwrap();
    }
    if read(place.path("repos/alpha/secret.py")).is_err() {
        place.stage(&["window"]).partly().says(&[
            "error: repos/alpha/secret.py: left out: cannot be read: Permission denied",
            "error: repos/alpha/closed: left out: cannot be read: Permission denied",
            "17 records in 6 artifacts (written)",
        ]);
    }
    // The temporary folder must be removable again.
    set_permissions(place.path("repos/alpha/closed"), Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn files_that_come_and_go_while_they_are_read() {
    let place = Place::new();
    let file = |n: usize| place.path(&format!("repos/alpha/passing_{n}.py"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for n in 0..200 {
                    std::fs::write(file(n), "x = 1\n").unwrap();
                }
                for n in 0..200 {
                    std::fs::remove_file(file(n)).unwrap();
                }
            }
        });
        for _ in 0..15 {
            let ran = place.stage_within(&["window", "--mode", "rg1"], 60);
            let errors: Vec<&str> =
                ran.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
            let named = |line: &&str| {
                line.starts_with("error: repos/alpha/passing_")
                    && line.ends_with("it vanished while the repository was read")
            };
            assert!(errors.iter().all(named), "{}", ran.stderr);
            assert_eq!(ran.code, Some(i32::from(!errors.is_empty())), "{}", ran.stderr);
        }
        done.store(true, Ordering::Relaxed);
    });
    place.stage(&["run"]).done();
    let undisturbed = Place::new();
    undisturbed.stage(&["run"]).done();
    crate::support::assert_same(&place.files("cache"), &undisturbed.files("cache"));
}

#[test]
fn arguments_that_are_not_utf8_are_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let place = Place::empty();
    for flag in ["--bogus", "--benchmark"] {
        let output =
            place.command(&["run", flag]).arg(OsStr::from_bytes(b"\xff")).output().unwrap();
        Ran::of(output).failed().says(&["error: "]);
    }
}
