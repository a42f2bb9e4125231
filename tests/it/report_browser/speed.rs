//! A large report: what it weighs, and how long the browser takes. Times are printed and never judged: `--nocapture`.

use super::browser::Browser;
use super::{sample, shown};

#[test]
#[ignore = "needs Chromium"]
#[allow(clippy::print_stdout)] // a measurement
fn five_thousand_tasks_of_four_systems() {
    let report = sample::report(5000, 4);
    let begin = std::time::Instant::now();
    let page = report.page();
    println!(
        "page: {:.2} MB, made in {:.2} s",
        page.len() as f64 / 1e6,
        begin.elapsed().as_secs_f64()
    );
    for kind in ["summary", "tasks-", "lines-"] {
        let mark = format!("id=\"{kind}");
        let blocks =
            page.split("<script type=\"text/plain\" ").filter(|block| block.starts_with(&mark));
        let bytes: usize = blocks.map(str::len).sum();
        println!("{kind}: {:.2} MB", bytes as f64 / 1e6);
    }
    let mut browser = Browser::start();
    browser.look(1440, 900, false);
    browser.open(&page, "");
    assert_eq!(shown(&mut browser), "5,000 tasks");
    let paint = browser.eval("performance.getEntriesByType('paint').map(({name, startTime}) => `${name} ${Math.round(startTime)} ms`).join(', ')");
    println!("{paint}; list ready {:.0} ms", browser.number("window.reportReady"));

    let typed = "(() => { const query = document.getElementById('query'); const times = [];
        for (const text of ['r', 're', 'ret', 'retu', 'return', 'return s', 'return se', '']) {
          const begin = performance.now(); query.value = text; query.dispatchEvent(new Event('input'));
          document.body.offsetHeight; times.push(Math.round(10 * (performance.now() - begin)) / 10); }
        return times.join(' ') + ' ms'; })()";
    println!("filter, a keystroke with layout: {}", browser.eval(typed));

    let opened = "(async () => { const times = []; const pane = document.getElementById('task');
        for (let at = 0; at < 12; at += 1) {
          const begin = performance.now(); const place = (at * 7919) % 5000;
          location.hash = `#task=${encodeURIComponent(IDS[place])}`;
          await new Promise((done) => { const watch = () => pane.dataset.shown === String(place) ? done() : setTimeout(watch, 0); watch(); });
          pane.offsetHeight; times.push(Math.round(performance.now() - begin)); }
        return times.join(' ') + ' ms'; })()";
    let ids: Vec<&str> = report.tasks.iter().map(|task| &*task.id).collect();
    browser.eval(&format!("window.IDS = {}; true", serde_json::to_string(&ids).unwrap()));
    println!("open a task anywhere, with layout: {}", browser.eval(opened));
    let elements = browser.number("document.querySelectorAll('.row').length");
    assert!(elements < 60.0, "{elements} rows are elements");

    let better = report.changes(2).better;
    browser.eval("location.hash = '#outcome=better'");
    browser.until(
        "document.querySelector('#outcomes .better').getAttribute('aria-pressed') === 'true'",
    );
    assert!(shown(&mut browser).replace(',', "").starts_with(&better.to_string()));
    browser.screenshot("five-thousand", false);
    browser.assert_quiet();
}

/// Whoever opens 100,000 tasks can work with the list before the browser has read the page to its end. `OPENING=10` opens the page
/// ten times.
#[test]
#[ignore = "needs Chromium"]
#[allow(clippy::print_stdout)] // a measurement
fn a_list_of_a_hundred_thousand_tasks_does_not_wait_for_the_whole_page() {
    let report = sample::report(100_000, 2);
    let page = report.page();
    println!("page: {:.1} MB", page.len() as f64 / 1e6);
    let times = std::env::var("OPENING").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let mut browser = Browser::start();
    browser.look(1440, 900, false);
    for _ in 0..times {
        browser.open(&page, "");
        assert_eq!(shown(&mut browser), "100,000 tasks");
        assert!(browser.number("document.querySelectorAll('.row').length") > 5.0);
        let [painted, ready, read] = [
            "performance.getEntriesByName('first-contentful-paint')[0].startTime",
            "window.reportReady",
            "performance.getEntriesByType('navigation')[0].domInteractive",
        ]
        .map(|time| browser.number(time));
        println!("first paint {painted:.0} ms; list ready {ready:.0} ms; page read {read:.0} ms");
        // 0: not yet.
        assert!(read == 0.0 || ready < read, "the list waits for the whole page");
    }
    browser.assert_quiet();
}
