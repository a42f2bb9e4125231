//! Progress bars on a terminal, here the pseudo-terminal of `script`.

use std::time::Duration;

use serde_json::Value;

use crate::support::completion;
use crate::support::server::server;
use crate::support::{Place, task};

const BAR: char = '░';

/// Output of a command on a terminal.
fn on_a_terminal(place: &Place, command: &str) -> String {
    let terminal = format!("script --quiet --return --command '{command}' /dev/null");
    let ran = place.shell_with(&terminal, &[("TERM", "xterm"), ("COLUMNS", "120")]).done();
    ran.stdout
}

/// Twelve tasks more, each with another line.
fn add_tasks(place: &Place) {
    let main = place.read("repos/beta/main.py");
    let tasks: Vec<Value> =
        (5..17).map(|line| task(&format!("more/{line}"), "beta/main.py", &main, 0, line)).collect();
    place.add_tasks(&tasks);
}

#[test]
fn long_work_has_a_bar_with_rate_and_time_left_on_a_terminal_alone() {
    let place = Place::new();
    add_tasks(&place);
    for stage in ["window", "vectorize", "search", "prompt"] {
        place.stage(&[stage]).done();
    }
    let (url, _) = server(|_| {
        std::thread::sleep(Duration::from_millis(90));
        completion("\nx = 1")
    });
    let complete = |journal: &str, more: &str| {
        format!(
            "repoformer complete --prompts cache/prompts/tasks/none-one-gram-ws-20-ss-2.jsonl --endpoint {url} --model m \
             --concurrency 1 --journal {journal} -o {journal}.out {more}"
        )
    };
    // Fifteen answers take 1.35 s.
    let shown = on_a_terminal(&place, &complete("a", ""));
    assert!(shown.contains("complete none-one-gram-ws-20-ss-2.jsonl "), "{shown}");
    let numbers = shown.split(BAR).next_back().unwrap();
    assert!(numbers.contains("/15 prompts, ") && numbers.contains("/s, "), "{shown}");
    assert!(numbers.contains(" s left"), "{shown}");
    // It is gone at the end: the last line is cleared before the message.
    let end = shown.rsplit("\u{1b}[2K").next().unwrap();
    assert!(end.contains("complete: 15 predictions") && !end.contains(BAR), "{end:?}");
    for (journal, more) in [("b", "--no-progress"), ("c", "--quiet")] {
        let shown = on_a_terminal(&place, &complete(journal, more));
        assert!(!shown.contains(BAR) && !shown.contains(" left"), "{shown}");
        assert_eq!(place.read(&format!("{journal}.out")), place.read("a.out"));
    }
    let off = place.shell(&complete("d", "")).done();
    assert!(!off.stderr.contains(BAR) && !off.stderr.contains('\u{1b}'), "{}", off.stderr);
    assert_eq!(place.read("d.out"), place.read("a.out"));
}

#[test]
fn files_are_read_with_a_bar_where_that_takes_long() {
    let place = Place::new();
    // A pipe that is written to slowly.
    let slow = "for n in 1 2 3 4 5 6 7 8 9 10; do cat tasks.jsonl; sleep 0.1; done | repoformer validate -";
    let shown = on_a_terminal(&place, slow);
    let bytes = shown.split("reading standard input ").nth(1).unwrap().split('\r').next().unwrap();
    assert!(bytes.contains(" KiB, ") && bytes.contains(" KiB/s"), "{shown}");
    let short = on_a_terminal(&place, "repoformer validate tasks.jsonl");
    assert!(!short.contains("reading"), "{short}");
}

/// Standard output does not depend on what the terminal shows.
#[test]
fn a_run_says_what_its_stages_took() {
    let place = Place::new();
    let first = place.stage(&["run"]).done();
    let again = place.stage(&["run"]).done();
    let times = |said: &str| said.lines().last().unwrap().to_owned();
    let (first, again) = (times(&first.stderr), times(&again.stderr));
    let names: Vec<&str> = first.split(" · ").map(|part| part.split(' ').next().unwrap()).collect();
    let stages =
        ["window", "vectorize", "search", "prompt", "complete", "rg-rg", "scores", "total"];
    assert_eq!(names, stages);
    assert!(!first.contains("current") && first.matches(" s").count() >= stages.len(), "{first}");
    let current = again.split(" · ").filter(|part| part.ends_with(" current"));
    assert_eq!(current.count(), stages.len() - 1, "{again}");
    place.stage(&["run", "--quiet"]).done().silent_on("total");
}
