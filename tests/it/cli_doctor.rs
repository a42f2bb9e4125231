//! `doctor` and servers: which API answers, which models there are, and what fails the check.

use serde_json::{Value, json};

use crate::support::Place;
use crate::support::server::{Answer, ok, refusal, server_listing};

/// Findings of `doctor` about a server that has completions alone, its exit code and its messages.
fn found(models: Answer, completions: Answer, flags: &str) -> (Value, Option<i32>, String) {
    let (url, _) = server_listing(models, move |request| match request.path.as_str() {
        "/v1/completions" => completions.clone(),
        _ => refusal("404 Not Found", "no such page"),
    });
    let place = Place::empty();
    let line = format!("repoformer doctor --format json --endpoint {url} {flags}");
    let ran = place.shell_with(&line, &[("REPOFORMER_API_KEY", "SECRET")]);
    assert!(!ran.stdout.contains("SECRET") && !ran.stderr.contains("SECRET"), "{}", ran.stdout);
    let mut findings: Value = serde_json::from_str(&ran.stdout).unwrap();
    (findings["server"].take(), ran.code, ran.stderr)
}

fn models() -> Answer {
    ok(&json!({"data": [{"id": "starcoder-1b"}, {"id": "other"}]}))
}

/// A request without its fields, as servers refuse it.
fn incomplete() -> Answer {
    refusal("400 Bad Request", "you must provide a model parameter")
}

#[test]
fn the_apis_and_models_of_a_server_are_told() {
    let (server, code, messages) = found(models(), incomplete(), "--model other");
    assert_eq!(server["apis"], json!(["completions"]));
    assert_eq!(server["models"], json!(["starcoder-1b", "other"]));
    assert_eq!((&server["key_is_set"], &server["usable"]), (&json!(true), &json!(true)));
    assert_eq!((code, messages.as_str()), (Some(0), ""));
}

#[test]
fn a_model_that_the_server_lacks_fails_the_check() {
    let (server, code, messages) = found(models(), incomplete(), "--model starcoder-2b");
    assert_eq!((code, &server["usable"]), (Some(1), &json!(false)));
    assert!(messages.contains("has no model 'starcoder-2b'"), "{messages}");
    assert!(messages.contains("hint: did you mean 'starcoder-1b'?"), "{messages}");
}

#[test]
fn a_refused_key_and_a_server_without_a_known_api_fail_the_check() {
    let refused = refusal("401 Unauthorized", "invalid key SECRET");
    let (_, code, messages) = found(models(), refused, "");
    assert_eq!(code, Some(1));
    assert!(messages.contains("401"), "{messages}");
    let missing = || refusal("404 Not Found", "no such page");
    let (server, code, messages) = found(missing(), missing(), "");
    assert_eq!((code, &server["apis"]), (Some(1), &json!([])));
    assert!(messages.contains("has no API that this program uses"), "{messages}");
}

/// The home folder and another mount below the folder of temporary files: neither hinders the other.
#[test]
fn a_mount_among_temporary_files_does_not_hinder_isolation() {
    let place = Place::empty();
    let found = |before: &str| {
        let line = "HOME=\"$PWD/home\" repoformer doctor --format json";
        let ran = place.shell(&format!("mkdir -p home m && unshare -Urm sh -c '{before} {line}'"));
        let findings: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        findings["sandbox"]["processes_and_files"].clone()
    };
    // Without namespaces there is no isolation to test.
    if found("") == true {
        assert_eq!(found("mount -t tmpfs none m &&"), true);
    }
}

/// At a terminal the program draws its progress, by a thread; its guards do not.
#[test]
fn a_terminal_does_not_hinder_isolation() {
    let place = Place::empty();
    let found = |line: &str| {
        let ran = place.shell(line);
        let findings: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        findings["sandbox"]["processes_and_files"].clone()
    };
    let plain = found("repoformer doctor --format json");
    assert_eq!(found("script -qec 'repoformer doctor --format json' /dev/null </dev/null"), plain);
}

/// A stand-in for systemd starts what it is told, and refuses a flag that older ones lack: the program is started anew once, where
/// the user lingers and no group can be made.
#[test]
fn a_user_who_lingers_gets_a_scope_of_systemd() {
    const SYSTEMD: &str = "#!/bin/sh
echo \"$*\" >> \"$CALLS\"
case \"$*\" in *expand*) exit 1;; esac
while [ \"$1\" != -- ]; do shift; done
shift
exec \"$@\"
";
    let place = Place::empty();
    place.write("bin/systemd-run", SYSTEMD);
    let none = "mount -t tmpfs none /sys/fs/cgroup";
    let linger = "mkdir -p /var/lib/systemd && mount -t tmpfs none /var/lib/systemd && mkdir /var/lib/systemd/linger && \
                  touch /var/lib/systemd/linger/root";
    let calls = |before: &str| {
        let line = format!(
            "chmod +x bin/* && rm -f calls && CALLS=\"$PWD/calls\" PATH=\"$PWD/bin:$PATH\" \
             unshare -Urm sh -c '{before} && repoformer doctor --format json'; cat calls >&2"
        );
        let ran = place.shell(&line);
        let found: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        (found["sandbox"]["limits_counted_by"].clone(), ran.stderr)
    };
    // Without namespaces there is no such system to make.
    if calls(none).0 == "guard" {
        let scope = "--user --scope --quiet --property=Delegate=yes";
        let (_, called) = calls(&format!("{none} && {linger}"));
        let lines: Vec<&str> = called.lines().filter(|line| line.contains("--scope")).collect();
        let [refused, trial, again] = lines[..] else { panic!("{called}") };
        assert_eq!(refused, format!("{scope} --expand-environment=no -- true"));
        assert_eq!(trial, format!("{scope} -- true"));
        assert!(again.starts_with(&format!("{scope} -- /")), "{again}");
        assert!(again.ends_with("doctor --format json"), "{again}");
        assert!(!calls(none).1.contains("--scope"));
    }
}

/// Python looks for modules in its working folder first, which may be a stranger's.
#[test]
fn doctor_starts_programs_in_the_root_folder() {
    let place = Place::empty();
    place.write("bin/python3", "#!/bin/sh\npwd > \"${0%/*}/../seen\"\necho Python 3\n");
    let line = "chmod +x bin/* && PATH=\"$PWD/bin:$PATH\" repoformer doctor >&2; cat seen";
    assert_eq!(place.shell(line).stdout, "/\n");
}

/// Programs of others get none of the variables, keys among them.
#[test]
fn doctor_hands_no_key_to_the_programs_that_it_starts() {
    let place = Place::empty();
    place.write("bin/python3", "#!/bin/sh\nenv > \"${0%/*}/../seen\"\necho Python 3\n");
    let line = "chmod +x bin/* && PATH=\"$PWD/bin:$PATH\" REPOFORMER_API_KEY=sk-0123456789abcdef repoformer doctor; cat seen";
    let ran = place.shell(line);
    assert!(ran.stdout.contains("PATH="), "{}", ran.stdout);
    assert!(!ran.stdout.contains("sk-0123456789"), "{}", ran.stdout);
}
