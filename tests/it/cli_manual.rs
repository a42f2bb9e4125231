//! The manual pages and the scripts of shells that the program writes.

use std::process::Command;

use crate::support::Place;

/// Needs `mandoc` and `man`.
#[test]
#[ignore = "run by .ci/shells, which installs what it needs"]
fn manual_pages_are_read_without_warnings() {
    let place = Place::empty();
    place.shell("repoformer manual man");
    let pages: Vec<_> = std::fs::read_dir(place.path("man")).unwrap().collect();
    assert!(pages.len() > 30, "{}", pages.len());
    for page in pages {
        let page = page.unwrap().path();
        let lint = Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).arg(&page).output();
        let lint = lint.unwrap();
        assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stdout));
        let read = Command::new("man").args(["--warnings=all", "-l"]).arg(&page).output().unwrap();
        let text = String::from_utf8_lossy(&read.stdout);
        assert!(read.status.success() && read.stderr.is_empty(), "{read:?}");
        assert!(text.contains("SYNOPSIS") && text.contains("--verbose"), "{text}");
    }
}

/// Needs `fish` and `zsh`. `complete -C` answers as the shell does when the tabulator key is pressed.
#[test]
#[ignore = "run by .ci/shells, which installs what it needs"]
fn other_shells_read_their_scripts_and_complete() {
    let place = Place::new();
    place.shell("mkdir 'my repos'");
    for (line, wanted) in [
        ("window --mode rg1,", "rg1,none\nrg1,rg-rg\nrg1,gt\nrg1,given\n"),
        ("eval --tasks ta", "tasks.jsonl\n"),
        ("run --profile repoc", "repocoder\n"),
        ("window --repos-dir my\\\\ re", "my repos/\n"),
    ] {
        let ran = place.shell(&format!(
            "repoformer completions fish > script && fish -c 'source script; complete -C \"repoformer {line}\"'"
        ));
        assert_eq!((ran.stdout.as_str(), ran.code), (wanted, Some(0)), "{line}: {}", ran.stderr);
    }
    let ran = place.shell(
        "repoformer completions zsh > script && zsh -f -c 'autoload -U compinit; compinit -u; source ./script; \
         echo $_comps[repoformer]'",
    );
    assert!(ran.stdout.contains("repoformer"), "{} {}", ran.stdout, ran.stderr);
}
