//! The page of `serve`: the last decisions, whatever the files are called, and no other site's page may read them.

use serde_json::json;

use super::browser::Browser;
use crate::cli_serve::{Serving, text_answer};
use crate::support::Place;
use crate::support::server::{ok, server};

#[test]
#[ignore = "needs Chromium"]
fn decisions_are_listed_and_no_other_page_reads_them() {
    let place = Place::empty();
    let code = "def total(items):\n    return sum(item.price for item in items)\n";
    let hostile = "<img src=x onerror=alert(1)>.py";
    place.write(&format!("repos/shop/{hostile}"), format!("import a\n{code}"));
    place.write("repos/shop/b.py", "x = 1\n");
    let (url, _) = server(|_| ok(&text_answer("x")));
    let serving = Serving::start(
        &place,
        &["--repos-dir", "repos", "--repo", "shop", "--endpoint", &url, "--no-watch"],
    );
    for number in 0..3 {
        let body = json!({"prompt": format!("{code}y{number} = "), "filepath": "b.py"});
        assert_eq!(serving.post("/v1/completions", &body).0, 200);
    }
    let mut browser = Browser::start();
    browser.look(1280, 900, false);
    browser.visit(&format!("http://{}/", serving.address));
    browser.until("document.querySelectorAll('#rows tr').length === 3");
    let summary = browser.text("#summary");
    assert!(summary.starts_with("3 requests, 3 of them with retrieval."), "{summary}");
    // Of a request that ended before its prompt.
    assert_eq!(browser.eval("number(taken({ms: {whole: 1}}), 2)"), "–");
    browser.click("#rows summary");
    let first = browser.text("#rows li");
    assert!(first.starts_with(hostile), "{first}");
    assert_eq!(browser.number("document.querySelectorAll('img').length"), 0.0);
    let wide = browser.number("document.documentElement.scrollWidth");
    assert!(wide <= 1280.0, "{wide}");
    assert_eq!(browser.refusals(), 0);
    browser.screenshot("decisions", false);
    // A page of another origin: its request is refused, and it could not read the answer.
    browser.show("other.html", "<p>another page</p>");
    let read = format!(
        "fetch('http://{0}/debug/decisions').then(() => 'read', () => 'refused')",
        serving.address
    );
    assert_eq!(browser.eval(&read), "refused");
}
