//! The page of `policy sweep`: its tables fit, and every line can be told from the others.

use super::browser::Browser;
use crate::cli_policy::labels;
use crate::support::{Place, jsonl};
use serde_json::json;

/// A page with every policy: the labels have all signals.
fn page() -> String {
    let place = Place::empty();
    let mut all = labels(0..3);
    for (at, label) in all.iter_mut().enumerate() {
        label["entropy"] = json!((at * 7 % 13) as f64 / 5.0);
        label["cc_probability"] = json!((at * 5 % 11) as f64 / 11.0);
        label["cc_likeliest"] = json!(at % 3 == 0);
    }
    place.write("labels.jsonl", jsonl(&all));
    let times = ["--retrieval-ms", "sparse=30", "--retrieval-ms", "dense=300"];
    let sweep = [
        "policy", "sweep", "--labels", "labels.jsonl", "--report", "page", "--generation-ms",
        "300", "--decision-ms", "20",
    ];
    place.run(&[&sweep[..], &times].concat()).done();
    place.read("page/index.html")
}

#[test]
#[ignore = "needs Chromium"]
fn tables_fit_and_lines_differ() {
    let page = page();
    let mut browser = Browser::start();
    for (width, dark) in [(390, false), (768, true), (1280, false), (1600, false)] {
        browser.look(width, 1000, dark);
        browser.show("sweep.html", &page);
        let wide = browser.number("document.documentElement.scrollWidth");
        assert!(wide <= f64::from(width), "{wide} at {width}");
        let cut = browser.number(
            "[...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth).length",
        );
        assert!(width < 768 || cut == 0.0, "{cut} tables are wider than their box at {width}");
        // Names in a legend leave room for each other.
        let collisions = browser.eval(COLLISIONS);
        assert_eq!(collisions, json!([]), "at {width}");
        browser.screenshot(&format!("sweep-{width}"), true);
    }
    // Of the ten policies that choose, each has a line of its own colour, with marks of its legend's form.
    let lines = browser.eval(LINES);
    let lines = lines.as_array().unwrap();
    assert_eq!(lines.len(), 10, "{lines:?}");
    let colours: std::collections::BTreeSet<&str> =
        lines.iter().map(|line| line["colour"].as_str().unwrap()).collect();
    assert_eq!(colours.len(), 10, "{lines:?}");
    for line in lines {
        assert!(line["marks"].as_u64().unwrap() >= 2, "{line}");
    }
    browser.assert_quiet();
}

/// Pairs of texts of a legend that overlap.
const COLLISIONS: &str = r#"(() => {
  const found = [];
  for (const plot of document.querySelectorAll("svg.plot")) {
    const texts = [...plot.querySelectorAll(":scope > text[font-size='12']")].map((text) => [text.textContent, text.getBoundingClientRect()]);
    for (const [at, [name, box]] of texts.entries())
      for (const [other, its] of texts.slice(at + 1))
        if (box.left < its.right && its.left < box.right && box.top + 3 < its.bottom && its.top + 3 < box.bottom) found.push(`${name}, ${other}`);
  }
  return found;
})()"#;

/// Lines of the first figure: their colour, and how many marks of it lie in the plot.
const LINES: &str = r#"(() => {
  const plot = document.querySelector("svg.plot");
  const lines = [...plot.querySelectorAll("path[fill=none][class^=stroke-series]")];
  return lines.map((line) => {
    const series = [...line.classList].find((name) => name.startsWith("stroke-series")).slice(7);
    return {colour: getComputedStyle(line).stroke, marks: plot.querySelectorAll(`g .fill-${series}`).length};
  });
})()"#;
