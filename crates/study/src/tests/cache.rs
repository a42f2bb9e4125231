//! Files of a cache that are damaged, missing or swapped between runs.

use std::collections::BTreeMap;
use std::fs;

use super::{SettingTexts, Study};
use crate::run::RunRequest;
use crate::settings::DECLARED;

type Files = BTreeMap<String, Vec<u8>>;

/// Name of a damage, and its effect on the bytes of a file.
type Damage = (&'static str, fn(&mut Vec<u8>));

fn ran(more: &[SettingTexts<'_>]) -> (Study, Files) {
    let study = Study::new("line", 3);
    study.run(more, RunRequest::default()).unwrap();
    let files = timeless(&study);
    (study, files)
}

/// Returns the files of the cache except measured times, which differ between two runs.
fn timeless(study: &Study) -> Files {
    let mut files = study.cached();
    files.retain(|name, _| !is_time(name));
    files
}

pub(super) fn is_time(name: &str) -> bool {
    name.starts_with("latency/") || name.ends_with(".time.json")
}

/// Runs again; returns the lines that explain why an artifact was rebuilt.
fn rerun(study: &Study, more: &[SettingTexts<'_>]) -> Vec<String> {
    let before = study.heard.lines().len();
    study.run(more, RunRequest::default()).unwrap();
    let lines = study.heard.lines().split_off(before);
    lines.into_iter().filter(|line| line.contains("rebuilt")).collect()
}

fn assert_same(found: &Files, wanted: &Files) {
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(wanted));
    let other = wanted.iter().find(|(name, bytes)| found[*name] != **bytes);
    assert!(other.is_none(), "{} is another", other.unwrap().0);
}

#[test]
fn each_damaged_file_is_made_again_and_named() {
    let (study, wanted) = ran(&[]);
    let damages: [Damage; 3] = [
        ("truncated", |bytes| bytes.truncate(bytes.len() / 2)),
        ("emptied", Vec::clear),
        ("a changed bit", |bytes| {
            let at = bytes.len() - 5;
            bytes[at] ^= 1;
        }),
    ];
    for (damage, change) in damages {
        for (name, bytes) in &wanted {
            let mut bytes = bytes.clone();
            change(&mut bytes);
            fs::write(study.path("cache").join(name), bytes).unwrap();
            let told = rerun(&study, &[]);
            // Damage of a header is reported for its artifact.
            let artifact = name.replace("/.", "/").replace(".header.json", "");
            assert!(told.iter().any(|line| line.contains(&artifact)), "{damage} {name}: {told:?}");
            assert_same(&timeless(&study), &wanted);
        }
    }
}

#[test]
fn each_missing_file_is_made_again_alone() {
    let (study, wanted) = ran(&[]);
    // Files that an interruption can leave out. The headers of predictions are written before the predictions, so that no
    // header alone is missing.
    let is_header = |name: &str| name.starts_with("predictions/") && name.ends_with(".header.json");
    for name in wanted.keys().filter(|name| !is_header(name)) {
        fs::remove_file(study.path("cache").join(name)).unwrap();
        rerun(&study, &[]);
        assert_same(&timeless(&study), &wanted);
    }
}

/// A complete file in the place of another is not damaged, but wrong.
#[test]
fn a_time_of_another_search_is_not_taken_for_its_own() {
    let modes = [(&DECLARED.mode, "rg1,gt")];
    let study = Study::new("line", 3);
    study.run(&modes, RunRequest::default()).unwrap();
    let files = study.cached();
    let times: Vec<&String> = files.keys().filter(|name| name.ends_with(".time.json")).collect();
    let path = study.path("cache").join(times[0]);
    fs::write(&path, &files[times[1]]).unwrap();
    let told = rerun(&study, &modes);
    let name = times[0].rsplit('/').next().unwrap();
    let is_told = |line: &String| line.contains(name) && line.contains("belongs to another search");
    assert!(told.iter().any(is_told), "{told:?}");
    assert_ne!(fs::read(&path).unwrap(), files[times[1]]);
    assert_eq!(rerun(&study, &modes), [""; 0]);
}
