//! The report's page, that of `policy sweep` and that of `serve`, in a real browser. These tests need Chromium and are run by
//!
//! ```sh
//! apt-get install chromium        # or CHROMIUM=/path/to/chrome
//! cargo test --features serve --test it -- --ignored report_browser
//! REPORT_SCREENSHOTS=shots cargo test --features serve --test it -- --ignored report_browser    # and look at the pictures
//! ```

mod browser;
#[cfg(feature = "serve")]
mod decisions;
mod hostile;
mod look;
mod sample;
mod speed;
mod sweep;

use browser::Browser;
use repoformer_evaluate::report::{ReportContents, System, TaskOutcome};
use repoformer_evaluate::statistics::Changes;

/// A window with the page of a report, read by daylight.
fn opened(report: &ReportContents, place: &str) -> Browser {
    let mut browser = Browser::start();
    browser.look(1440, 900, false);
    browser.open(&report.page(), place);
    browser
}

/// Text under the list: the number of tasks it shows.
fn shown(browser: &mut Browser) -> String {
    browser.text("#count")
}

fn wait_for_task(browser: &mut Browser, task: usize) {
    browser.until(&format!("document.getElementById('task').dataset.shown === '{task}'"));
}

#[test]
#[ignore = "needs Chromium"]
fn tables_figures_and_counts_are_the_reports() {
    let report = sample::report(540, 4);
    let mut browser = opened(&report, "");
    assert_eq!(browser.text("h1"), report.title);
    let Changes { better, worse, .. } = report.changes(2);
    let finding = browser.text(".finding");
    let wanted = format!(
        "gt is better than none on {better} of 540 tasks and worse on {worse}: ES (repocoder) +"
    );
    assert!(finding.starts_with(&wanted), "{finding}");
    assert_eq!(browser.number("document.querySelectorAll('.systems tbody tr').length"), 4.0);
    // Three histograms of which one shows, and four further figures.
    assert_eq!(browser.number("document.querySelectorAll('svg.plot').length"), 7.0);
    assert_eq!(
        browser.number("document.querySelectorAll('[data-gain-of]:not([hidden])').length"),
        1.0
    );
    assert_eq!(browser.text("#outcomes .better b"), better.to_string());
    assert_eq!(browser.text("#outcomes .worse b"), worse.to_string());
    assert_eq!(shown(&mut browser), "540 tasks");
    let rows = browser.number("document.querySelectorAll('.row').length");
    assert!((5.0..60.0).contains(&rows), "{rows} rows are elements");
    browser.assert_quiet();
}

#[test]
#[ignore = "needs Chromium"]
fn filters_leave_the_tasks_that_they_name() {
    let report = sample::report(540, 4);
    let mut browser = opened(&report, "");
    browser.click("#outcomes .worse");
    let Changes { worse, .. } = report.changes(2);
    assert_eq!(shown(&mut browser), format!("{worse} of 540 tasks"));
    let signs =
        "[...document.querySelectorAll('.row .sign')].every((sign) => sign.matches('.worse'))";
    assert_eq!(browser.eval(signs), true);
    browser.press("Escape");
    assert_eq!(shown(&mut browser), "540 tasks");
    // The column of +10 holds the gains above 0 and up to 20.
    let small = (0..540)
        .filter_map(|task| report.gain(2, task))
        .filter(|gain| (1e-9..=0.2 + 1e-9).contains(gain));
    let small = small.count();
    browser.eval("document.querySelector('[data-pick=\"system=2&bucket=g\"]').dispatchEvent(new MouseEvent('click', {bubbles: true}))");
    assert_eq!(shown(&mut browser), format!("{small} of 540 tasks"));
    assert_eq!(browser.text(".picked"), "gain 0 to +20 ✕\u{fe0e}");
    browser.click(".picked");
    // Words of the search stand in the id, the path or the target, in any order and case.
    browser.press("/");
    for key in ["R", "e", "t", "u", "r", "n", " ", "s", "e", "l", "f"] {
        browser.press(key);
    }
    let holds = |task: &&repoformer_evaluate::report::ReportTask| {
        let all = format!("{}\n{}/{}\n{}", task.id, task.repository, task.path, task.target)
            .to_lowercase();
        all.contains("return") && all.contains("self")
    };
    let found = report.tasks.iter().filter(holds).count();
    assert!(found > 0);
    assert_eq!(shown(&mut browser), format!("{found} of 540 tasks"));
    browser.press("Escape");
    browser.eval("{ const choice = document.getElementById('repository'); choice.value = 'tidewatch'; choice.dispatchEvent(new Event('change')); }");
    let own = report.tasks.iter().filter(|task| task.repository == "tidewatch").count();
    assert_eq!(shown(&mut browser), format!("{own} of 540 tasks"));
    browser.assert_quiet();
}

/// Each mark of the figures and of the table leads to as many tasks as it says.
#[test]
#[ignore = "needs Chromium"]
fn every_mark_leads_to_its_tasks() {
    let mut browser = opened(&sample::report(540, 4), "");
    let followed = browser.eval(
        "[...document.querySelectorAll('[data-pick]:not(:disabled)')].filter(({dataset}) => !dataset.pick.startsWith('length')).map((mark) => { \
           mark.dispatchEvent(new MouseEvent('click', {bubbles: true})); \
           const told = (mark.getAttribute('aria-label') ?? mark.title).match(/([\\d,]+) tasks?,|n = ([\\d,]+)/); \
           return [mark.dataset.pick, told[1] ?? told[2], document.getElementById('count').textContent.split(' ')[0]]; })",
    );
    let followed = followed.as_array().unwrap();
    // Of three systems: three counts, up to eleven columns, three bars and up to four groups each.
    assert!((30..=63).contains(&followed.len()), "{}", followed.len());
    for mark in followed {
        assert_eq!(mark[1], mark[2], "{}", mark[0]);
    }
    let length = browser.eval(
        "(() => { const mark = document.querySelector('[data-pick=\"length=1\"]'); mark.dispatchEvent(new MouseEvent('click', {bubbles: true})); \
           return mark.getAttribute('aria-label'); })()",
    );
    // The first system has a prediction for every task, so that its mark counts them all.
    let told = length
        .as_str()
        .unwrap()
        .split("n = ")
        .nth(1)
        .unwrap()
        .split(':')
        .next()
        .unwrap()
        .to_owned();
    assert_eq!(shown(&mut browser), format!("{told} of 540 tasks"));
    browser.assert_quiet();
}

#[test]
#[ignore = "needs Chromium"]
fn tasks_are_sorted_by_a_heading() {
    let report = sample::report(540, 4);
    let mut browser = opened(&report, "");
    browser.click("[data-sort=gain]");
    let most = (0..540).filter_map(|task| report.gain(2, task)).fold(f64::MIN, f64::max);
    assert_eq!(browser.text(".row .gain span"), format!("+{:.1}", most * 100.0));
    browser.click("[data-sort=gain]");
    let least = (0..540).filter_map(|task| report.gain(2, task)).fold(f64::MAX, f64::min);
    assert_eq!(browser.text(".row .gain span"), format!("−{:.1}", -least * 100.0));
    browser.click("[data-sort=gain]");
    assert_eq!(browser.text(".row .name b"), report.tasks[0].id);
    browser.assert_quiet();
}

/// A report of one task, whose prediction differs from its target as told.
fn one_task(target: &str, prediction: &str, raw: Option<&str>) -> ReportContents<'static> {
    let mut report = sample::report(1, 2);
    report.tasks[0].target = target.to_owned().into();
    for system in &mut report.systems {
        let outcome = system.outcomes[0].as_mut().unwrap();
        (outcome.prediction, outcome.raw) = (prediction.into(), raw.map(Into::into));
    }
    report
}

#[test]
#[ignore = "needs Chromium"]
fn an_open_task_shows_what_differs_and_what_was_retrieved() {
    let target = "    return self.store.load(path_20)\n    # done";
    let report = one_task(
        target,
        "    return self.store.load(path_21)\n    # done",
        Some("    return self.store.load(path_21)\n    # done\n\ndef f():"),
    );
    let mut browser = opened(&report, "");
    browser.click(".row");
    wait_for_task(&mut browser, 0);
    // One character of the first line differs; the second line stands once.
    assert_eq!(browser.text(".only-target"), "0");
    assert_eq!(browser.text(".only-predicted"), "1");
    assert_eq!(browser.number("document.querySelectorAll('.diff .line').length"), 3.0);
    assert_eq!(browser.text(".diff .both code").trim(), "# done");
    browser.press("v");
    browser.until("document.querySelector('.diff.beside') !== null");
    browser.eval("document.querySelector('.raw').open = true");
    let struck =
        "[...document.querySelectorAll('.raw .struck')].map((span) => span.textContent).join('')";
    assert_eq!(browser.eval(struck), "def f():");
    assert_eq!(browser.number("document.querySelectorAll('.fragment').length"), 10.0);
    let first = &report.systems[1].outcomes[0].as_ref().unwrap().fragments[0];
    let place = format!("{}:{}", first.path, first.first_line.unwrap() + 1);
    let shown = browser.eval("document.querySelector('.fragment summary code').textContent");
    assert_eq!(shown, place.as_str());
    let code = "[...document.querySelectorAll('.fragment:first-of-type .code code')].map((code) => code.textContent).join('\\n') + '\\n'";
    assert_eq!(browser.eval(code), &*first.text);
    let hole = browser.eval("document.querySelector('.context .hole code').textContent.trim()");
    assert_eq!(hole, "return self.store.load(path_20)");
    browser.assert_quiet();
}

/// By hand: the signature and the last line agree, one line is missing, one differs in a name and a number, one was added.
#[test]
#[ignore = "needs Chromium"]
fn a_function_stands_beside_its_prediction() {
    let target = "    def total(self, parcels: List[Parcel]) -> Money:\n        \"\"\"The price of all parcels.\"\"\"\n        \
        total = Money(0, self.currency)\n        for parcel in parcels:\n            total += self.price(parcel, weight=10)\n        \
        log.debug(total)\n        return total\n";
    let prediction = "    def total(self, parcels: List[Parcel]) -> Money:\n        total = Money(0, self.currency)\n        \
        for parcel in parcels:\n            total += self.cost(parcel, weight=12)\n            count += 1\n        return total\n";
    let report = one_task(target, prediction, None);
    let mut browser = Browser::start();
    browser.look(1760, 1000, false);
    browser.open(&report.page(), "");
    browser.click(".row");
    wait_for_task(&mut browser, 0);
    assert_eq!(browser.number("document.querySelectorAll('.diff.beside').length"), 1.0);
    let marked = |browser: &mut Browser, name: &str| {
        let script = format!(
            "[...document.querySelectorAll('.diff .line')].map((line) => [...line.querySelectorAll('.{name}')].map((span) => span.textContent).join('')).filter(Boolean)"
        );
        browser.eval(&script)
    };
    let missing = ["\"\"\"The price of all parcels.\"\"\"", "price0", "log.debug(total)"];
    assert_eq!(marked(&mut browser, "only-target"), serde_json::json!(missing));
    assert_eq!(marked(&mut browser, "only-predicted"), serde_json::json!(["cost2", "count += 1"]));
    assert_eq!(browser.number("document.querySelectorAll('.diff .absent').length"), 3.0);
    browser.screenshot("function-beside", false);
    browser.press("v");
    browser.until("document.querySelector('.diff.below') !== null");
    browser.screenshot("function-below", false);
    browser.assert_quiet();
}

#[test]
#[ignore = "needs Chromium"]
fn the_address_leads_to_a_task_and_its_filters() {
    let report = sample::report(540, 4);
    let worst = (0..540).find(|&task| report.gain(1, task).is_some_and(|gain| gain < 0.0)).unwrap();
    let id = report.tasks[worst].id.replace('/', "%2F");
    let place = format!("#task={id}&system=rg1&outcome=worse&sort=gain");
    let mut browser = opened(&report, &place);
    wait_for_task(&mut browser, worst);
    assert_eq!(browser.text("#task h3"), report.tasks[worst].id);
    assert_eq!(browser.text(".tabs [aria-selected=true] .tab-name"), "rg1");
    assert_eq!(shown(&mut browser), format!("{} of 540 tasks", report.changes(1).worse));
    assert_eq!(browser.eval("location.hash"), place.as_str());
    // Back and forth: opened from the list, closed by going back.
    browser.click("[data-close]");
    browser.until("document.getElementById('task').hidden");
    browser.click(".row");
    browser.until("!document.getElementById('task').hidden");
    browser.eval("history.back()");
    browser.until("document.getElementById('task').hidden");
    browser.assert_quiet();
}

#[test]
#[ignore = "needs Chromium"]
fn keys_walk_through_the_tasks() {
    let report = sample::report(540, 4);
    let mut browser = opened(&report, "");
    browser.eval("document.getElementById('list').focus()");
    for key in ["j", "ArrowDown", "j", "k", "Enter"] {
        browser.press(key);
    }
    wait_for_task(&mut browser, 2);
    browser.press("j");
    wait_for_task(&mut browser, 3);
    browser.press("2");
    browser.until(
        "document.querySelector('.tabs [aria-selected=true] .tab-name')?.textContent === 'rg1'",
    );
    browser.press("?");
    assert_eq!(browser.eval("document.getElementById('help').open"), true);
    browser.press("Escape");
    browser.until("!document.getElementById('help').open");
    browser.press("Escape");
    browser.until("document.getElementById('task').hidden");
    assert_eq!(browser.eval("document.activeElement.id"), "list");
    browser.assert_quiet();
}

#[test]
#[ignore = "needs Chromium"]
fn a_report_may_be_empty_or_of_one_system() {
    let mut browser = opened(&ReportContents::default(), "");
    assert_eq!(browser.text("#nothing"), "The report holds no tasks.");
    browser.screenshot("empty", true);
    browser.assert_quiet();

    let mut report = sample::report(40, 1);
    report.baseline = None;
    report.systems[0].outcomes[3] = None;
    sample::summarize(&mut report);
    browser.open(&report.page(), "");
    assert!(browser.text(".finding").starts_with("none on 39 of 40 tasks: ES (repocoder) "));
    assert_eq!(browser.number("document.querySelectorAll('#outcomes .better').length"), 0.0);
    assert_eq!(browser.text("#outcomes .missing b"), "1");
    browser.click("#outcomes .missing");
    browser.click(".row");
    wait_for_task(&mut browser, 3);
    assert_eq!(browser.text("#prediction .empty"), "none has no prediction for this task.");
    browser.screenshot("one-system", true);
    browser.assert_quiet();
}

#[test]
#[ignore = "needs Chromium"]
fn statuses_can_be_filtered() {
    let mut report = sample::report(30, 2);
    let fail = |outcome: &mut TaskOutcome, at: usize| {
        outcome.status = Some(if at.is_multiple_of(3) { "fail" } else { "pass" }.into())
    };
    for System { outcomes, .. } in &mut report.systems {
        outcomes
            .iter_mut()
            .enumerate()
            .for_each(|(at, outcome)| fail(outcome.as_mut().unwrap(), at));
    }
    let mut browser = opened(&report, "#status=fail");
    assert_eq!(shown(&mut browser), "10 of 30 tasks");
    browser.click(".row");
    wait_for_task(&mut browser, 0);
    assert_eq!(browser.text(".values .status"), "fail");
    browser.assert_quiet();
}
