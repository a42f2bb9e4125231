//! Texts that would like to be more than texts.

use std::sync::Arc;

use repoformer::report::{Fragment, Report, TaskOutcome};

use super::browser::Browser;
use super::{sample, wait_for_task};

/// Ends scripts, comments and data, runs scripts, hides and turns text around.
const HOSTILE: &str = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>\
    <!-- --><![CDATA[ {{title}} \0 \u{1} \u{2028} \u{202e}desrever\u{202c} \u{feff} \u{200b} &lt; \" ' ` ${1} \\";

/// A report in which every text is hostile.
fn report() -> Report {
    let mut report = sample::report(12, 2);
    let hostile = || HOSTILE.to_owned();
    report.title = hostile();
    report.tool_version = hostile();
    report.notes = vec![hostile()];
    report.provenance = vec![(hostile(), hostile())];
    report.measures[0].title = hostile();
    report.measures[1].metric = hostile();
    for (at, task) in report.tasks.iter_mut().enumerate() {
        task.id = format!("{at} {HOSTILE}");
        (task.repository, task.path, task.language) = (hostile(), hostile(), hostile());
        (task.target, task.left_context, task.right_context) =
            (hostile(), hostile(), Some(hostile()));
    }
    for system in &mut report.systems {
        system.name += HOSTILE;
        system.settings = vec![(hostile(), system.name.clone())];
        for outcome in system.outcomes.iter_mut().flatten() {
            (outcome.raw, outcome.status) = (Some(hostile()), Some(hostile()));
            outcome.prediction = format!("x{HOSTILE}\r\ny");
            let (path, text): (Arc<str>, Arc<str>) = (HOSTILE.into(), HOSTILE.into());
            let (first_line, score) = (Some(3), Some(f64::INFINITY));
            outcome.fragments = vec![Fragment { path, first_line, score, text }];
        }
    }
    report
}

#[test]
#[ignore = "needs Chromium"]
fn texts_stay_texts() {
    let report = report();
    let mut browser = Browser::start();
    browser.look(1280, 900, false);
    browser.open(&report.page(), "");
    browser.click(".row");
    wait_for_task(&mut browser, 0);
    assert_eq!(browser.eval("window.broken === undefined"), true);
    assert_eq!(browser.number("document.images.length"), 0.0);
    let title = browser.text("h1");
    assert!(
        title.contains("<script>window.broken = 1</script>") && title.contains("⟨U+202E⟩desrever"),
        "{title}"
    );
    // Every character of the prediction is there, the hidden ones by their names.
    let code = browser.eval(
        "[...document.querySelectorAll('.diff .predicted code')].map((code) => code.textContent)",
    );
    let mut wanted = format!("x{HOSTILE}␍");
    for hidden in ['\0', '\u{1}', '\u{2028}', '\u{202e}', '\u{202c}', '\u{feff}', '\u{200b}'] {
        wanted = wanted.replace(hidden, &format!("⟨U+{:04X}⟩", u32::from(hidden)));
    }
    assert_eq!(code[0], wanted);
    assert_eq!(code[1], "y");
    browser.assert_quiet();
    browser.screenshot("hostile", true);
    // The address brings it back, whatever the id is made of.
    let place = browser.eval("location.hash").as_str().unwrap().to_owned();
    browser.open(&report.page(), &place);
    wait_for_task(&mut browser, 0);
    browser.assert_quiet();
}

#[test]
#[ignore = "needs Chromium"]
fn endless_texts_are_cut() {
    let mut report = sample::report(2, 2);
    let endless = "word ".repeat(2_000_000); // 10 MB in one line
    report.tasks[0].left_context = endless.clone();
    report.tasks[0].target = format!("target {endless}");
    let outcome = TaskOutcome {
        prediction: format!("prediction {endless}"),
        raw: Some("a\n".repeat(1_000_000)),
        values: vec![0.0, 0.5],
        ..TaskOutcome::default()
    };
    report.systems[1].outcomes[0] = Some(outcome);
    let mut browser = Browser::start();
    browser.look(1280, 900, false);
    browser.open(&report.page(), "#task=");
    browser.click(".row");
    wait_for_task(&mut browser, 0);
    assert!(browser.text(".diff .cut-off").ends_with(" more characters"));
    assert!(browser.number("document.getElementById('task').textContent.length") < 200_000.0);
    browser.assert_quiet();
}
