//! The report's page in a real browser. These tests need Chromium and are run by
//!
//! ```sh
//! apt-get install chromium        # or CHROMIUM=/path/to/chrome
//! cargo test --test report_browser -- --ignored
//! REPORT_SCREENSHOTS=shots cargo test --test report_browser -- --ignored    # and look at the pictures
//! ```

#![allow(clippy::unwrap_used)] // what a test expects and does not get ends it

mod browser;
mod sample;

use browser::Browser;

#[test]
#[ignore = "needs Chromium"]
fn the_page_is_seen() {
    let mut browser = Browser::start();
    browser.look(1280, 900, false);
    browser.open(&sample::report(540, 4).page(), "");
    browser.screenshot("light-1280", true);
    browser.assert_quiet();
}
