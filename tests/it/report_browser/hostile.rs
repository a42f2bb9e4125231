//! Texts that would like to be more than texts.

use std::sync::Arc;

use repoformer_evaluate::report::{
    Chart, ChartPage, IndexPage, Line, PageLink, PageTable, ReportContents, ShownFragment,
    TaskOutcome,
};

use super::browser::Browser;
use super::{sample, wait_for_task};

/// Ends scripts, comments and data, runs scripts, hides and turns text around.
const HOSTILE: &str = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>\
    <!-- --><![CDATA[ {{title}} \0 \u{1} \u{2028} \u{202e}desrever\u{202c} \u{feff} \u{200b} \u{2029}\u{2066}\u{61c} \
    &lt; \" ' ` ${1} \\ javascript:window.broken=1";

/// A report in which every text is hostile.
fn report() -> ReportContents<'static> {
    let mut report = sample::report(12, 2);
    let hostile = || HOSTILE.to_owned();
    report.title = hostile();
    report.tool_version = hostile();
    report.notes = vec![hostile()];
    report.provenance = vec![(hostile(), hostile())];
    report.measures[0].title = hostile();
    report.measures[1].metric = hostile();
    for (at, task) in report.tasks.iter_mut().enumerate() {
        task.id = format!("{at} {HOSTILE}").into();
        (task.repository, task.path, task.language) =
            (hostile().into(), hostile().into(), hostile().into());
        (task.target, task.left_context, task.right_context) =
            (hostile().into(), hostile().into(), Some(hostile().into()));
    }
    for system in &mut report.systems {
        system.name += HOSTILE;
        system.settings = vec![(hostile(), system.name.clone())];
        for outcome in system.outcomes.iter_mut().flatten() {
            (outcome.raw, outcome.status) = (Some(hostile()), Some(hostile()));
            outcome.prediction = format!("x{HOSTILE}\r\ny");
            let (path, text): (Arc<str>, Arc<str>) = (HOSTILE.into(), HOSTILE.into());
            let (first_line, score) = (Some(3), Some(f64::INFINITY));
            outcome.fragments = vec![ShownFragment { path, first_line, score, text }];
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
    let hidden = [
        '\0', '\u{1}', '\u{2028}', '\u{202e}', '\u{202c}', '\u{feff}', '\u{200b}', '\u{2029}',
        '\u{2066}', '\u{61c}',
    ];
    for hidden in hidden {
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

/// Should a text ever become markup, the policy still stops it: no script, no style, no picture.
#[test]
#[ignore = "needs Chromium"]
fn the_policy_stops_markup_that_got_through() {
    let markup = "<script>window.broken = 1</script><img src=\"data:,\" onerror=\"window.broken = 1\">\
        <p id=\"painted\" style=\"color: rgb(1, 2, 3)\">x</p><style>#painted { color: rgb(1, 2, 3) }</style>\
        <iframe srcdoc=\"<script>parent.broken = 1</script>\"></iframe><script src=\"data:text/javascript,broken=1\"></script>\
        <form action=\"x\"><input></form><base href=\"https://example.invalid/\"></main>";
    let report = sample::report(12, 2);
    let pages = [report.page(), ChartPage::default().html(), IndexPage::default().html()];
    let mut browser = Browser::start();
    for page in pages {
        assert!(page.contains("</main>"));
        browser.show("injected.html", &page.replace("</main>", markup));
        assert_eq!(browser.eval("window.broken === undefined"), true);
        let colour = browser.eval("getComputedStyle(document.getElementById('painted')).color");
        assert_ne!(colour, "rgb(1, 2, 3)");
        assert!(browser.eval("document.baseURI").as_str().unwrap().starts_with("file:"));
        assert!(browser.refusals() >= 5, "the browser refuses what was injected");
    }
    // Nor can the page's own script make markup of a text.
    browser.open(&report.page(), "");
    let made = browser.eval(
        "(() => { try { document.body.innerHTML = 'x'; return 'made'; } catch { return 'refused'; } })()",
    );
    assert_eq!(made, "refused");
}

/// Pages without tasks, with hostile texts in every place.
#[test]
#[ignore = "needs Chromium"]
fn texts_stay_texts_in_pages_without_tasks() {
    let hostile = || HOSTILE.to_owned();
    let lines = vec![Line { name: hostile(), points: vec![(0.0, 30.0), (100.0, 40.0)] }];
    let chart = Chart {
        name: "chart".into(),
        title: hostile(),
        caption: hostile(),
        lines,
        ..Chart::default()
    };
    let table = PageTable { title: hostile(), rows: vec![vec![hostile()], vec![hostile()]] };
    let page = ChartPage {
        title: hostile(),
        finding: hostile(),
        tables: vec![table],
        note: hostile(),
        charts: vec![chart],
    };
    let finding = report().finding();
    let link =
        |path: &str| PageLink { title: hostile(), path: path.into(), finding: finding.clone() };
    let links = vec![link("javascript:window.broken=1"), link(HOSTILE)];
    let index = IndexPage { title: hostile(), links };
    let mut browser = Browser::start();
    browser.look(1280, 900, false);
    for page in [page.html(), index.html()] {
        browser.show("plain.html", &page);
        let title = browser.text("h1");
        assert!(title.contains("</script>") && title.contains("⟨U+202E⟩desrever"), "{title}");
        assert_eq!(browser.number("document.scripts.length + document.images.length"), 0.0);
        let links = "[...document.links].every((link) => link.protocol === 'file:')";
        assert_eq!(browser.eval(links), true);
        assert_eq!(browser.eval("window.broken === undefined"), true);
        browser.assert_quiet();
    }
    for (name, svg) in page.figures() {
        browser.show(&name, &svg);
        assert_eq!(browser.number("document.querySelectorAll('script, image').length"), 0.0);
        browser.assert_quiet();
    }
}

/// Names of the script's own objects are names like any other.
#[test]
#[ignore = "needs Chromium"]
fn names_of_the_scripts_objects_are_plain_names() {
    let mut report = sample::report(4, 2);
    let names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
    for (task, name) in report.tasks.iter_mut().zip(names) {
        for text in [&mut task.id, &mut task.repository, &mut task.path, &mut task.language] {
            *text = name.into();
        }
    }
    for (system, name) in report.systems.iter_mut().zip(names) {
        system.name = name.into();
        for outcome in system.outcomes.iter_mut().flatten() {
            outcome.status = Some(name.into());
        }
    }
    let mut browser = Browser::start();
    browser.look(1280, 900, false);
    for (at, name) in names.into_iter().enumerate() {
        browser.open(&report.page(), &format!("#task={name}&sort={name}&system=constructor"));
        wait_for_task(&mut browser, at);
        assert_eq!(browser.text("#task h3"), name);
        assert_eq!(browser.number("document.querySelectorAll('.context .hole').length"), 1.0);
        browser.assert_quiet();
    }
}

/// Texts that are slow to compare, or that are longer than what is shown of them.
#[test]
#[ignore = "needs Chromium"]
fn texts_made_to_be_slow_open_in_seconds() {
    let lines = |line: &dyn Fn(usize) -> String| (0..3000).map(line).collect::<String>();
    let wide = |at: usize| format!("{:a$}{at}{:2000}\n", "", "", a = at % 7);
    let words = |salt: usize| {
        move |at: usize| {
            let word = |n: usize| format!("w{} ", (at * 31 + n * salt) % 977);
            (0..400).map(word).collect::<String>() + "\n"
        }
    };
    let texts = [
        (lines(&wide), lines(&|at| wide(at + 1))),
        (lines(&words(7)), lines(&words(11))),
        ("\u{202e}".repeat(2_000_000), lines(&|_| "\u{200b}".repeat(2000) + "\n")),
        (" ".repeat(1_000_000) + "x", " ".repeat(500_000) + &"\t".repeat(500_000) + "x"),
    ];
    let mut report = sample::report(texts.len(), 2);
    for (at, (target, prediction)) in texts.iter().enumerate() {
        report.tasks[at].target = target.clone().into();
        if let Some(outcome) = &mut report.systems[1].outcomes[at] {
            outcome.prediction = prediction.clone();
        }
    }
    let mut browser = Browser::start();
    browser.look(1280, 900, false);
    browser.open(&report.page(), "#system=rg1");
    for at in 0..texts.len() {
        let begin = std::time::Instant::now();
        browser.click(&format!("#row-{at}"));
        wait_for_task(&mut browser, at);
        let seconds = begin.elapsed().as_secs_f64();
        assert!(seconds < 20.0, "text {at} opens in {seconds:.1} s");
        // White space at a line's ends is not compared.
        let agree = browser.number("document.querySelectorAll('.agreement').length");
        assert_eq!(agree, f64::from(u8::from(at == 3)));
        assert!(at == 3 || browser.text("#prediction").contains("more lines of the prediction"));
        browser.assert_quiet();
    }
}

/// Agreement is of the whole texts: what differs beyond the shown part differs.
#[test]
#[ignore = "needs Chromium"]
fn texts_that_differ_beyond_what_is_shown_do_not_agree() {
    let mut report = sample::report(2, 2);
    let long = "x".repeat(3000);
    let many = "x = 1\n".repeat(2500);
    for (at, text) in [long, many].into_iter().enumerate() {
        report.tasks[at].target = format!("{text}a").into();
        if let Some(outcome) = &mut report.systems[1].outcomes[at] {
            outcome.prediction = format!("{text}b");
        }
    }
    let mut browser = Browser::start();
    browser.look(1280, 900, false);
    browser.open(&report.page(), "#system=rg1");
    for at in 0..2 {
        browser.click(&format!("#row-{at}"));
        wait_for_task(&mut browser, at);
        assert_eq!(browser.number("document.querySelectorAll('.agreement').length"), 0.0);
    }
    browser.assert_quiet();
}

#[test]
#[ignore = "needs Chromium"]
fn endless_texts_are_cut() {
    let mut report = sample::report(2, 2);
    let endless = "word ".repeat(2_000_000); // 10 MB in one line
    report.tasks[0].left_context = endless.clone().into();
    report.tasks[0].target = format!("target {endless}").into();
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
