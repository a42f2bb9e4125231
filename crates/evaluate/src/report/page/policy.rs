//! Scripts, style sheets and content security policy of every page: nothing is loaded or sent, and only the program's own
//! script and style sheets work.
//!
//! The digests are constants, like the scripts and style sheets: a test computes them and names the digests that are out of
//! date.

/// Style sheets: one for every page, and one for pages with tasks.
pub(super) const STYLES: [&str; 2] = [include_str!("page.css"), include_str!("tasks.css")];
/// Scripts, concatenated into one closure: a later file uses definitions of an earlier one.
pub(super) const SCRIPTS: [&str; 7] = [
    include_str!("script/store.js"),
    include_str!("script/diff.js"),
    include_str!("script/code.js"),
    include_str!("script/state.js"),
    include_str!("script/list.js"),
    include_str!("script/task.js"),
    include_str!("script/main.js"),
];

/// SHA-256, in base64, of the style sheet of a page with tasks.
const STYLE: &str = "MA8hq/P0NL2uZ9AXVebT4XoKQoOI0BOwTZxJJysUpZU=";
/// SHA-256 of the style sheet of a page without tasks.
const PLAIN_STYLE: &str = "ASzOl0y2/BK27SfW6aVroIUCLdgrihNZsPD+D+iG5Nc=";
/// SHA-256 of the script.
const SCRIPT: &str = "M1EOm+dnazBU6vA3mXjc1EUDKR3aiWB+W+iHdd0CAck=";

/// Returns the content of the `<style>` of a page with tasks.
pub(super) fn style() -> String {
    format!("\n{}", STYLES.concat())
}

/// Returns the content of the `<style>` of a page without tasks.
pub(in crate::report) fn plain_style() -> String {
    format!("\n{}", STYLES[0])
}

/// Returns the content of the `<script>`: one closure.
pub(super) fn script() -> String {
    format!("\n(() => {{\n\"use strict\";\n{}}})();\n", SCRIPTS.concat())
}

/// Returns the policy of a page with tasks. Not even the page's own script may turn text into markup.
pub(super) fn policy() -> String {
    format!(
        "{}; script-src 'sha256-{SCRIPT}'; require-trusted-types-for 'script'; trusted-types 'none'",
        of_style(STYLE)
    )
}

/// Returns the policy of a page without tasks: no script works.
pub(in crate::report) fn plain_policy() -> String {
    of_style(PLAIN_STYLE)
}

/// Returns the policy of a page with this style sheet. The empty icon, a data URL, is the only thing that a page requests.
fn of_style(digest: &str) -> String {
    format!(
        "default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
}
