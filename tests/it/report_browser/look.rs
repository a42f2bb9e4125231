//! How the page looks: light and dark, wide and narrow, on paper; that it can be read, and that nothing sticks out.

use super::browser::Browser;
use super::{one_task, sample, wait_for_task};

#[test]
#[ignore = "needs Chromium"]
fn the_page_is_light_or_dark_as_the_reader_likes() {
    let mut browser = Browser::start();
    browser.look(1280, 900, true);
    browser.open(&sample::report(60, 2).page(), "");
    let brightness =
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]";
    assert!(browser.number(brightness) < 60.0);
    browser.click("#theme");
    assert!(browser.number(brightness) > 200.0);
    browser.click("#theme");
    assert!(browser.number(brightness) < 60.0);
    browser.assert_quiet();
}

/// The figures as files: each opens on its own, and asks for nothing.
#[test]
#[ignore = "needs Chromium"]
fn figures_open_on_their_own() {
    let figures = sample::report(540, 4).figures();
    assert_eq!(figures.len(), 7);
    let mut browser = Browser::start();
    browser.look(640, 360, false);
    for (name, svg) in figures {
        browser.show(&name, &svg);
        assert_eq!(browser.eval("document.documentElement.tagName"), "svg");
        assert_eq!(browser.number("document.querySelectorAll('parsererror').length"), 0.0);
        browser.screenshot(&name, false);
        browser.assert_quiet();
    }
}

/// Nothing is asserted of how it looks but that nothing sticks out; the pictures are for people.
#[test]
#[ignore = "needs Chromium"]
fn nothing_sticks_out_at_any_width() {
    let report = sample::report(540, 4);
    let task = (0..540).find(|&task| report.gain(2, task).is_some_and(|gain| gain > 0.1)).unwrap();
    let place = format!("#task={}", report.tasks[task].id.replace('/', "%2F"));
    let page = report.page();
    let mut browser = Browser::start();
    for (width, height, dark) in [
        (390, 844, false),
        (768, 1024, true),
        (1280, 900, false),
        (1600, 1000, true),
        (1600, 1000, false),
    ] {
        browser.look(width, height, dark);
        let light = if dark { "dark" } else { "light" };
        for (name, place) in [("page", ""), ("task", place.as_str())] {
            browser.open(&page, place);
            let wide = browser.number("document.documentElement.scrollWidth");
            assert!(wide <= f64::from(width), "{wide} at {width}");
            browser.screenshot(&format!("{name}-{width}-{light}"), place.is_empty());
            browser.assert_quiet();
        }
    }
    browser.open(&page, "");
    browser.look_printed(780, 1100);
    assert_eq!(browser.eval("document.getElementById('tasks').checkVisibility()"), false);
    browser.screenshot("page-printed", true);
}

/// Contrast by the formula of WCAG 2: at least 4.5 for everything that is read.
#[test]
#[ignore = "needs Chromium"]
fn every_text_can_be_read_by_day_and_by_night() {
    let report =
        one_task("return load(a_1, \"x\")  # 1", "return load(a_2)", Some("return load(a_2)\nx"));
    let page = report.page();
    let mut browser = Browser::start();
    for dark in [false, true] {
        browser.look(1440, 900, dark);
        browser.open(&page, "");
        browser.click(".row");
        wait_for_task(&mut browser, 0);
        let low = browser.eval(LOW_CONTRAST);
        assert_eq!(low, serde_json::json!([]), "dark: {dark}");
    }
}

/// Every distinct text colour with the ground behind it, where the two are too near each other.
const LOW_CONTRAST: &str = r#"(() => {
  const channel = (value) => { value /= 255; return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return rgba("white");
  };
  const low = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility() || element.closest("script, svg, .whose")) continue;
    const [a, b] = [light(rgba(getComputedStyle(element).color)), light(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5 && !element.closest(":disabled")) low.add(`${element.tagName}.${element.className} ${contrast.toFixed(2)}: ${node.data.trim().slice(0, 20)}`);
  }
  return [...low];
})()"#;
