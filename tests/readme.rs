//! The README's pipeline by hand, run as it stands there.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

#[test]
fn the_pipeline_by_hand_runs_as_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let (_, section) = readme.split_once("## The pipeline by hand").unwrap();
    let script = section
        .split("```sh\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    // Twenty tasks a repository do as well as two hundred.
    let script = script.replace("--per-repo 200", "--per-repo 20");
    std::os::unix::fs::symlink(root.join("data/repos"), dir.path().join("repos")).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_repoformer"))
        .parent()
        .unwrap();
    let path = std::env::join_paths([binary, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let output = Command::new("sh")
        .args(["-euc", &script])
        .current_dir(dir.path())
        .env_clear()
        .env("PATH", path)
        .output()
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{stderr}");
    let rows: Vec<Vec<&str>> = stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let all: Vec<&str> = rows
        .iter()
        .filter(|row| row[1] == "all")
        .map(|row| row[0])
        .collect();
    assert_eq!(all, ["none", "rg1", "rg-rg", "gt"], "{stdout}");
    assert!(
        rows.iter()
            .filter(|row| row[1] == "all")
            .all(|row| row[2] == "60"),
        "{stdout}"
    );
}
