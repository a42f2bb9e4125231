//! The README's pipeline by hand, run as it stands there.

use std::path::Path;
use std::process::Command;

#[test]
fn the_pipeline_by_hand_runs_as_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let (_, section) = readme.split_once("## The pipeline by hand").unwrap();
    // The second block goes on with what the first one made.
    let blocks: Vec<&str> = section
        .split("```sh\n")
        .skip(1)
        .take(2)
        .map(|block| block.split("```").next().unwrap())
        .collect();
    let script = format!("{}\n(\n{})>chunks.txt\n", blocks[0], blocks[1]);
    let dir = tempfile::tempdir().unwrap();
    // Twenty tasks a repository do as well as two hundred.
    let script = script.replace("--per-repo 200", "--per-repo 20");
    std::os::unix::fs::symlink(root.join("data/repos"), dir.path().join("repos")).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_repoformer")).parent().unwrap();
    let path = std::env::join_paths([binary, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let output = Command::new("sh")
        .args(["-euc", &script])
        .current_dir(dir.path())
        .env_clear()
        .env("PATH", path)
        .output()
        .unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    let rows: Vec<Vec<&str>> =
        stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    let all: Vec<&str> =
        rows.iter().filter(|row| row.get(1) == Some(&"all")).map(|row| row[0]).collect();
    assert_eq!(all, ["none", "rg1", "rg-rg", "gt"], "{stdout}");
    assert!(
        rows.iter().filter(|row| row.get(1) == Some(&"all")).all(|row| row[2] == "60"),
        "{stdout}"
    );
    let chunks = std::fs::read_to_string(dir.path().join("chunks.txt")).unwrap();
    let rows = |first: &str| {
        let rows = chunks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.filter(|row| row[0] == first).count()
    };
    // The head, four modes, and the profile's six policies.
    assert_eq!(rows("tasks"), 1 + 4 + 6, "{chunks}");
    // Two queries, a row for each of three repositories and one for all.
    assert_eq!((rows("jaccard"), rows("bm25")), (8, 8), "{chunks}");
    for written in ["prompts.jsonl", "with-context.jsonl"] {
        let written = std::fs::read_to_string(dir.path().join(written)).unwrap();
        assert_eq!(written.lines().count(), 60);
    }
}
