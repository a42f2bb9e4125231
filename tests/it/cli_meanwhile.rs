//! Meanwhile: files that change while they are read, other programs on the same cache, clocks that jump.
//!
//! `MEANWHILE=all cargo test --locked --test it -- meanwhile --nocapture` changes a file before each call that reads or looks, and
//! starts more programs; without it, some.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

use crate::support::{Place, Ran, assert_same, jsonl, source, task};

type Files = BTreeMap<String, Vec<u8>>;

const RUN: [&str; 7] = ["run", "--mode", "none,rg1,rg-rg", "-o", "scores.json", "--format", "json"];

fn all() -> bool {
    std::env::var_os("MEANWHILE").is_some()
}

/// Artifacts that a run left, and its scores without measured times.
fn results(place: &Place) -> Files {
    let mut files = place.files("cache");
    let text = place.read("scores.json");
    // The checksum is of the times, too.
    let is_same = |line: &&str| !line.contains("_ms\"") && !line.contains("\"record_checksum\"");
    let kept: String = text.split_inclusive('\n').filter(is_same).collect();
    files.insert("scores.json".into(), kept.into_bytes());
    files
}

/// Results of a run in a folder of its own, in the state that `change` makes.
fn undisturbed(change: &str) -> Files {
    let place = changeable();
    place.shell(change).done();
    place.stage(&RUN).done();
    results(&place)
}

/// A folder with two states of a source file and of the task file.
fn changeable() -> Place {
    let place = Place::new();
    let (one, other) = (place.read("repos/beta/pkg/help.py"), source("depot", 14));
    place.write("one.py", one);
    place.write("other.py", &other);
    let tasks = place.read("tasks.jsonl");
    let view = place.read("repos/alpha/view.py");
    place.write("one.jsonl", &tasks);
    place.write("other.jsonl", tasks + &jsonl(&[task("alpha/2", "alpha/view.py", &view, 3, 11)]));
    place
}

/// Ways to change a file, each with that back.
const CHANGES: [[&str; 2]; 3] = [
    ["cat other.py > repos/beta/pkg/help.py", "cat one.py > repos/beta/pkg/help.py"],
    ["cat other.jsonl > tasks.jsonl", "cat one.jsonl > tasks.jsonl"],
    ["cp other.jsonl new && mv new tasks.jsonl", "cp one.jsonl new && mv new tasks.jsonl"],
];

/// A file changes before one call for files after another: the run gives the results of one of the two states, or says that the
/// file changed; and nothing in its cache is taken for what it is not by a run in either state.
#[test]
fn a_file_that_changes_while_it_is_read_is_noticed_or_read_whole() {
    let one = undisturbed("true");
    let (mut places, mut refused) = (0, 0);
    for [change, back] in CHANGES {
        let other = undisturbed(change);
        let step = if all() { 1 } else { 301 };
        for number in (1..).step_by(step) {
            let place = changeable();
            let ran = disturbed(&place, number, change);
            if !ran.stderr.contains("fault ") {
                break;
            }
            places += 1;
            let at = format!("{change}, call {number}: {}", ran.stderr);
            assert!(!ran.stderr.contains("panicked"), "{at}");
            match ran.code {
                Some(0 | 1) => {}
                Some(2) => {
                    refused += 1;
                    assert!(ran.stderr.contains("changed") || ran.stderr.contains("stale"), "{at}");
                }
                _ => panic!("{at}"),
            }
            // Whatever was cached in between: each state has its own results.
            place.stage(&RUN).done();
            assert_eq!(different(&results(&place), &other), None, "{at}");
            place.shell(back).done();
            place.stage(&RUN).done();
            assert_eq!(different(&results(&place), &one), None, "{at}");
            // The other way round, so that what was cached in between is met by the first state.
            let place = changeable();
            disturbed(&place, number, change);
            place.shell(back).done();
            place.stage(&RUN).done();
            assert_eq!(different(&results(&place), &one), None, "{at}");
        }
    }
    eprintln!("{places} changes, {refused} refused");
    assert!(places > 5);
}

fn disturbed(place: &Place, number: usize, change: &str) -> Ran {
    let mut command = place.command(&place.args(&RUN));
    command.env("REPOFORMER_THREADS", "1").env("FAULTY_COMMAND", change);
    Ran::new(command.env("FAULTY_CALL", format!("meanwhile:{number}")).output().unwrap())
}

/// The first file that differs.
fn different(found: &Files, wanted: &Files) -> Option<String> {
    let names = found.keys().chain(wanted.keys());
    { names }.find(|name| found.get(*name) != wanted.get(*name)).cloned()
}

/// A file of several reads that grows or is written anew in between is told of, and one that is replaced is read as it was.
#[test]
fn no_mix_of_two_states_is_read() {
    let place = Place::empty();
    let text = source("wide", 400);
    let tasks = |count: usize, begin: usize| -> String {
        let one = |number| task(&format!("r/{number}"), "r/wide.py", &text, begin, begin + 60);
        jsonl(&(0..count).map(one).collect::<Vec<_>>())
    };
    place.write("one.jsonl", tasks(200, 0));
    place.write("other.jsonl", tasks(150, 100));
    let stats = ["stats", "tasks.jsonl", "--format", "csv"];
    let state = |path: &str| {
        place.shell(&format!("cp {path} tasks.jsonl")).done();
        place.run(&stats).done().stdout
    };
    let states = ["one.jsonl", "other.jsonl"].map(state);
    assert_ne!(states[0], states[1]);
    let mut refused = [0; 3];
    let changes = [
        "tail -n 1 one.jsonl >> tasks.jsonl",
        "cat other.jsonl > tasks.jsonl",
        "cp other.jsonl new && mv new tasks.jsonl",
    ];
    for (change, refused) in changes.into_iter().zip(&mut refused) {
        for number in 1.. {
            place.shell("cp one.jsonl tasks.jsonl").done();
            let mut command = place.command(&stats);
            command.env("FAULTY_COMMAND", change);
            command.env("FAULTY_CALL", format!("meanwhile:{number}"));
            let ran = Ran::new(command.output().unwrap());
            if !ran.stderr.contains("fault ") {
                break;
            }
            if ran.code == Some(0) {
                // A line more is a state of its own, if it was there from the first read on.
                let is_more = change.contains(">> ") && ran.stdout.contains(",201,");
                assert!(
                    is_more || states.contains(&ran.stdout),
                    "{change}, {number}: {}",
                    ran.stdout
                );
            } else {
                assert!(ran.stderr.contains("it changed while it was read"), "{}", ran.stderr);
                *refused += 1;
            }
        }
    }
    assert!(refused[0] > 1 && refused[1] > 1 && refused[2] == 0, "{refused:?}");
}

/// An artifact is replaced by that of other settings between two looks at it: no predictions of the one prompts come under the
/// name of the others.
#[test]
fn predictions_are_of_the_prompts_that_they_are_kept_under() {
    let place = Place::new();
    let stages = |place: &Place, tokens: &str| {
        for stage in ["window", "vectorize", "search", "prompt"] {
            place.stage(&[stage, "--mode", "rg1", "--max-prompt-tokens", tokens]).done();
        }
    };
    stages(&place, "200");
    place.shell("mkdir small && cp -r cache/prompts/tasks/. small").done();
    stages(&place, "2000");
    place.shell("mkdir large && cp -r cache/prompts/tasks/. large").done();
    let complete = ["complete", "--mode", "rg1", "--max-prompt-tokens", "2000"];
    place.stage(&complete).done();
    let wanted = place.files("cache/predictions");
    let swap = "cp -r small/. cache/prompts/tasks";
    let mut swapped = 0;
    for number in 1.. {
        place.shell("rm -r cache/predictions; cp -r large/. cache/prompts/tasks").done();
        let mut command = place.command(&place.args(&complete));
        command.env("FAULTY_COMMAND", swap).env("FAULTY_CALL", format!("meanwhile:{number}"));
        let ran = Ran::new(command.output().unwrap());
        if !ran.stderr.contains("fault ") {
            break;
        }
        swapped += 1;
        match ran.code {
            Some(0) => assert_same(&place.files("cache/predictions"), &wanted),
            Some(2) => assert_eq!(place.count("cache/predictions"), 0, "{}", ran.stderr),
            _ => panic!("{}", ran.stderr),
        }
    }
    assert!(swapped > 5);
}

/// The owner of a repository swaps a file or its folder for a link to somebody's file, or for a pipe that nobody writes to, before
/// each call: nothing of the other file is kept, and nothing waits.
#[test]
fn what_takes_a_files_place_while_it_is_read_is_not_read() {
    let place = Place::new();
    place.write("outside/help.py", format!("SECRET = 1\n{}", source("secret", 30)));
    place.write("kept/help.py", source("open", 30));
    let back = "rm -rf repos/beta/pkg repos/beta/.git* cache; cp -r kept repos/beta/pkg";
    let window = ["window", "--walk", "git"];
    place.shell(back).done();
    place.stage(&window).done();
    let holds = |word: &str| {
        let contents = place.files("cache").into_values();
        contents.into_iter().any(|file| memchr::memmem::find(&file, word.as_bytes()).is_some())
    };
    assert!(holds("open") && !holds("SECRET"));
    for swap in [
        "ln -sf ../../../outside/help.py repos/beta/pkg/help.py",
        "rm repos/beta/pkg/help.py; mkfifo repos/beta/pkg/help.py",
        "rm -r repos/beta/pkg; ln -s ../../outside repos/beta/pkg",
        "ln -s ../../outside/help.py repos/beta/.gitignore",
        "mkfifo repos/beta/.gitignore repos/beta/.git",
    ] {
        let mut swapped = 0;
        for number in (1..).step_by(if all() { 1 } else { 3 }) {
            place.shell(back).done();
            let mut command = place.command(&place.args(&window));
            command.env("REPOFORMER_THREADS", "1").env("FAULTY_COMMAND", swap);
            command.env("FAULTY_CALL", format!("meanwhile:{number}"));
            let ran = Ran::new(command.output().unwrap());
            if !ran.stderr.contains("fault ") {
                break;
            }
            swapped += 1;
            assert!(matches!(ran.code, Some(0..=2)), "{swap}, call {number}: {}", ran.stderr);
            let is_shown = ran.stdout.contains("SECRET") || ran.stderr.contains("SECRET");
            assert!(!is_shown && !holds("SECRET"), "{swap}, call {number}: {}", ran.stderr);
        }
        assert!(swapped > 5, "{swap}: {swapped}");
    }
}

/// The manifest of scores has the digest of the tasks that were read, whatever lies there by then.
#[test]
fn a_manifest_is_of_what_was_read() {
    let place = changeable();
    place.stage(&["run", "--mode", "none"]).done();
    let predictions = place.named("cache/predictions/tasks", "none");
    let eval = [
        "eval", "--predictions", &predictions, "-o", "s.json", "--format", "json", "--missing",
        "zero",
    ];
    let states = ["one.jsonl", "other.jsonl"].map(|path| {
        place.shell(&format!("cp {path} tasks.jsonl")).done();
        place.stage(&eval).done();
        place.read("s.json")
    });
    assert_ne!(states[0], states[1]);
    let mut changes = 0;
    for number in 1.. {
        place.shell("cp one.jsonl tasks.jsonl; rm s.json").done();
        let mut command = place.command(&place.args(&eval));
        command.env("FAULTY_COMMAND", "cp other.jsonl new; mv new tasks.jsonl");
        command.env("FAULTY_CALL", format!("meanwhile:{number}"));
        let ran = Ran::new(command.output().unwrap());
        if !ran.stderr.contains("fault ") {
            break;
        }
        changes += 1;
        let is_one = ran.code == Some(0) && states.contains(&place.read("s.json"));
        assert!(is_one, "call {number}: {}", ran.stderr);
    }
    assert!(changes > 4, "{changes}");
}

fn start(place: &Place, args: &[&str]) -> Child {
    let mut command = place.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Programs that are started at once on one cache: each does its work, or says why not; the cache is as after one alone.
#[test]
fn programs_on_one_cache_do_not_disturb_each_other() {
    let wanted = undisturbed("true");
    let rounds = if all() { 40 } else { 6 };
    let other = [
        "run", "--mode", "none,rg1", "--window-size", "10", "-o", "other.json", "--format", "json",
    ];
    let fewer = [
        "run", "--mode", "none,rg1", "--top-k", "3", "--max-tokens", "9", "-o", "fewer.json",
        "--format", "json",
    ];
    let prompts = ["prompt", "--mode", "rg1", "--max-prompt-tokens", "300"];
    let prune = ["cache", "prune", "--cache-dir", "cache", "--stage", "prompts,retrieval", "--yes"];
    let mut refused = 0;
    for round in 0..rounds {
        let place = changeable();
        let commands = [
            place.args(&RUN),
            place.args(&RUN),
            place.args(&other),
            place.args(&fewer),
            if round % 2 == 0 { place.args(&prompts) } else { prune.to_vec() },
        ];
        let started: Vec<Child> = commands.iter().map(|args| start(&place, args)).collect();
        for (child, args) in started.into_iter().zip(&commands) {
            let ran = Ran::new(child.wait_with_output().unwrap());
            let said = format!("{args:?}: {}", ran.stderr);
            assert!(!ran.stderr.contains("panicked"), "{said}");
            match ran.code {
                // A refusal names a file or folder of the cache, and a way out.
                Some(1 | 2) => {
                    assert!(ran.stderr.contains("error: cache"), "{said}");
                    refused += 1;
                }
                code => assert_eq!(code, Some(0), "{said}"),
            }
        }
        place.stage(&RUN).done();
        let found = results(&place);
        for (path, bytes) in &wanted {
            assert!(found.get(path) == Some(bytes), "round {round}: {path}");
        }
        assert!(!found.keys().any(|path| path.contains(".writing-")), "{:?}", found.keys());
    }
    eprintln!("{} programs, {refused} refused", 5 * rounds);
}

/// Equal commands at once all give the results of one alone, and each artifact is made by one of them.
#[test]
fn equal_programs_at_once_all_give_the_results_and_make_nothing_twice() {
    let wanted = undisturbed("true");
    let made = written(&changeable().stage(&RUN).done().stderr);
    for _ in 0..if all() { 40 } else { 5 } {
        let place = changeable();
        let args = place.args(&RUN);
        let started: Vec<Child> = (0..4).map(|_| start(&place, &args)).collect();
        let ended = started.into_iter().map(|child| child.wait_with_output().unwrap());
        let ran: Vec<Ran> = ended.map(|output| Ran::new(output).done()).collect();
        assert_eq!(different(&results(&place), &wanted), None);
        assert_eq!(ran.iter().map(|ran| written(&ran.stderr)).sum::<usize>(), made);
    }
}

/// Number of artifacts that a program says it wrote.
fn written(stderr: &str) -> usize {
    let of_line = |line: &str| -> Option<usize> {
        let (before, state) = line.split_once(" (")?;
        let number = |text: &str| text.rsplit(' ').next()?.parse().ok();
        match state.split_once(" written, ") {
            Some((written, _)) => number(written),
            None if state.starts_with("written") => number(before.rsplit_once(' ')?.0),
            None => None,
        }
    };
    stderr.lines().filter_map(of_line).sum()
}

/// The clock tells nobody what is current: files of the future and of the past are what their content says.
#[test]
fn clocks_may_jump() {
    let place = changeable();
    place.stage(&RUN).done();
    let wanted = results(&place);
    let set_all = |time: SystemTime| {
        for path in place.every_file().keys() {
            fs::File::open(place.path(path)).unwrap().set_modified(time).unwrap();
        }
    };
    let second = Duration::from_secs(1);
    let day = 86_400 * second;
    for time in [
        SystemTime::UNIX_EPOCH + second,
        SystemTime::now() + 40_000 * day, // beyond 2106, where 32 bits end
        SystemTime::now() - 365 * day,
    ] {
        set_all(time);
        let times = place.times("cache");
        let ran = place.stage(&RUN).done();
        assert!(!ran.stderr.contains("rebuilt"), "{}", ran.stderr);
        assert_eq!(different(&results(&place), &wanted), None);
        assert_eq!(times, place.times("cache"), "nothing is written again");
        // `cache list` shows the age of what comes from the future, too.
        place.run(&["cache", "list", "--cache-dir", "cache", "--files"]).done();
        // Another content with an older time.
        place.shell("cp other.py repos/beta/pkg/help.py").done();
        let file = fs::File::open(place.path("repos/beta/pkg/help.py")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + 2 * second).unwrap();
        let ran = place.stage(&RUN).done();
        assert!(ran.stderr.contains("repository changed"), "{}", ran.stderr);
        place.shell("cp one.py repos/beta/pkg/help.py").done();
        place.stage(&RUN).done();
        assert_eq!(different(&results(&place), &wanted), None);
    }
}

/// Each call for files fails in turn: what cannot be read is named, and never taken for somebody else's.
#[test]
fn pruning_tells_of_what_it_cannot_read() {
    let made = Place::new();
    made.stage(&["run", "--mode", "none,rg1"]).done();
    let prune = ["cache", "prune", "--cache-dir", "cache", "--stage", "window,scores", "--yes"];
    let mut failed = 0;
    for number in (1..).step_by(if all() { 1 } else { 3 }) {
        let place = Place::empty();
        place.shell(&format!("cp -r {}/. .", made.path("").display())).done();
        let mut command = place.command(&prune);
        let ran = Ran::new(command.env("FAULTY_CALL", format!("eio:{number}")).output().unwrap());
        if !ran.stderr.contains("fault ") {
            break;
        }
        let left = place.count("cache/window") + place.count("cache/scores");
        assert!(left == 0 || ran.code != Some(0), "call {number}: {left} left: {}", ran.stderr);
        let others = ["retrieval", "prompts", "predictions", "vector"];
        for stage in others.map(|stage| format!("cache/{stage}")) {
            assert_eq!(place.count(&stage), made.count(&stage), "{stage}");
        }
        failed += usize::from(ran.code == Some(1));
    }
    assert!(failed > 5, "{failed}");
}

/// An artifact that cannot be read makes nothing stale: others may be made from it.
#[test]
fn what_cannot_be_read_makes_nothing_stale() {
    let made = Place::new();
    made.stage(&["run", "--mode", "none,rg1"]).done();
    let named = ["--repos-dir", "repos", "--tasks", "tasks.jsonl"];
    let list = ["cache", "list", "--cache-dir", "cache", "--format", "json"];
    let mut unreadable = 0;
    for number in (1..).step_by(if all() { 1 } else { 5 }) {
        let mut command = made.command(&[&list[..], &named].concat());
        let ran = Ran::new(command.env("FAULTY_CALL", format!("eio:{number}")).output().unwrap());
        if !ran.stderr.contains("fault ") {
            break;
        }
        if ran.code == Some(2) {
            continue;
        }
        let files: Vec<serde_json::Value> = serde_json::from_str(&ran.stdout).unwrap();
        for file in &files {
            assert!(
                file["state"] != "stale" && file["state"] != "foreign",
                "call {number}: {file}"
            );
        }
        unreadable += files.iter().filter(|file| file["state"] == "unreadable").count();
    }
    assert!(unreadable > 5, "{unreadable}");
}

/// Killed before each call that changes files, in an empty place and among other repositories: the folders are not there or all
/// there, and the same command ends what was begun.
#[test]
fn repositories_appear_at_once_or_the_same_command_goes_on() {
    let place = Place::new();
    place.run(&["convert", "--repos-dir", "repos", "--to", "raw", "-o", "raw.jsonl"]).done();
    let convert = ["convert", "raw.jsonl", "--to", "repos", "-o", "written"];
    for is_new in [true, false] {
        let (mut halves, mut kills) = (0, 0);
        for number in 1.. {
            place.shell("rm -rf written .writing-*").done();
            if !is_new {
                place.write("written/other/x.py", "x = 1\n");
            }
            let mut command = place.command(&convert);
            let ran =
                Ran::new(command.env("FAULTY_CALL", format!("kill:{number}")).output().unwrap());
            if ran.code == Some(0) {
                break;
            }
            kills += 1;
            let there = ["alpha", "beta"].map(|name| place.path("written").join(name).exists());
            halves += usize::from(there[0] != there[1]);
            assert!(!is_new || there[0] == there[1], "call {number}: {there:?}");
            let again = place.run(&convert).done();
            let said = again.stderr.contains("already exists, with the same files");
            assert_eq!(said, there[0] || there[1], "{}", again.stderr);
            for path in ["alpha/store.py", "alpha/view.py", "beta/main.py", "beta/pkg/help.py"] {
                assert_eq!(
                    place.read(&format!("written/{path}")),
                    place.read(&format!("repos/{path}"))
                );
            }
            let left = place.every_file().into_keys().find(|path| path.contains(".writing-"));
            assert_eq!(left, None);
        }
        assert!(kills > 5 && (halves > 0) != is_new, "{kills} {halves}");
    }
    // Other files stay, and are told of.
    place.write("written/alpha/view.py", "mine\n");
    let ran = place.run(&convert).partly();
    assert!(
        ran.stderr.contains("written/alpha: already exists, with other files"),
        "{}",
        ran.stderr
    );
    assert_eq!(place.read("written/alpha/view.py"), "mine\n");
}
