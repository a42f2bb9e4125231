//! A small page with a table and line charts, without tasks.

use super::ReportFinding;
use super::figures::Medium;
use super::figures::chart::{self, Chart};
use super::page::{plain_policy, plain_style};
use super::text::escape;

/// Page with tables and charts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChartPage {
    /// Heading.
    pub title: String,
    /// Main result, in a sentence or two.
    pub finding: String,
    /// Tables, next to each other if there is room.
    pub tables: Vec<PageTable>,
    /// Explanation of the tables' columns.
    pub note: String,
    /// Charts, in order.
    pub charts: Vec<Chart>,
}

/// Table of a page.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageTable {
    /// Title; empty for none.
    pub title: String,
    /// Heading row, then the other rows.
    pub rows: Vec<Vec<String>>,
}

impl ChartPage {
    /// Returns the page as HTML, in UTF-8; it needs no other file and runs no script.
    ///
    /// ```
    /// use repoformer_evaluate::report::{Chart, ChartPage, Line};
    /// let line = Line { name: "random".into(), points: vec![(0.0, 30.0), (100.0, 40.0)] };
    /// let chart = Chart { name: "budget".into(), lines: vec![line], ..Chart::default() };
    /// let page = ChartPage { title: "A < B".into(), charts: vec![chart], ..ChartPage::default() };
    /// assert!(page.html().contains("<h1>A &lt; B</h1>") && page.html().contains("<svg"));
    /// assert_eq!(page.figures()[0].0, "budget.svg");
    /// ```
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let figure = |(number, chart): (usize, &Chart)| {
            let (_, svg) = chart::draw(chart, Medium::Page)?;
            let caption = escape(&chart.caption);
            Some(format!(
                "<figure class=\"plate\">{svg}<figcaption><b>Figure {number}.</b> {caption}</figcaption></figure>\n"
            ))
        };
        let figures: String = (1..).zip(&self.charts).filter_map(figure).collect();
        let tables: String = self.tables.iter().map(PageTable::html).collect();
        let main = format!(
            "<section class=\"measure-width\">\n<div class=\"tables\">\n{tables}</div>\n\
             <p>{}</p>\n</section>\n<section class=\"measure-width\">\n<div class=\"plates\">\n{figures}</div>\n</section>\n",
            escape(&self.note),
        );
        document(&title, &escape(&self.finding), &main)
    }

    /// Returns the charts as files: names (`budget.svg`) and contents.
    pub fn figures(&self) -> Vec<(String, String)> {
        let drawn = self.charts.iter().filter_map(|chart| chart::draw(chart, Medium::File));
        drawn.map(|(name, svg)| (format!("{name}.svg"), svg)).collect()
    }
}

impl PageTable {
    fn html(&self) -> String {
        let title = escape(&self.title);
        let label = if title.is_empty() { "Table" } else { &title };
        let mut html = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">\n<table>\n"
        );
        if !title.is_empty() {
            html += &format!("<caption>{title}</caption>\n");
        }
        for (number, row) in self.rows.iter().enumerate() {
            let tag = if number == 0 { "th" } else { "td" };
            html += "<tr>";
            for cell in row {
                html += &format!("<{tag}>{}</{tag}>", escape(cell));
            }
            html += "</tr>\n";
        }
        html + "</table>\n</div>\n"
    }
}

/// Page that links others.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IndexPage {
    /// Heading.
    pub title: String,
    /// Links to the pages, in order.
    pub links: Vec<PageLink>,
}

/// Link to a page.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageLink {
    /// Title of the page.
    pub title: String,
    /// Path, relative to the page that links it: `line/index.html`.
    pub path: String,
    /// Main result.
    pub finding: ReportFinding,
}

impl IndexPage {
    /// Returns the page as HTML, in UTF-8; it runs no script.
    ///
    /// ```
    /// use repoformer_evaluate::report::{IndexPage, PageLink, ReportFinding};
    /// let finding = ReportFinding::default();
    /// let link = PageLink { title: "A < B".into(), path: "a b/index.html".into(), finding };
    /// let page = IndexPage { title: "Reports".into(), links: vec![link] };
    /// assert!(page.html().contains("<a href=\"a%20b/index.html\">A &lt; B</a>"));
    /// ```
    pub fn html(&self) -> String {
        let item = |PageLink { title, path, finding }: &PageLink| {
            let finding = finding.html();
            format!("<li><a href=\"{}\">{}</a>: {finding}</li>\n", url(path), escape(title))
        };
        let items: String = self.links.iter().map(item).collect();
        let main = format!("<section class=\"measure-width\">\n<ul>\n{items}</ul>\n</section>\n");
        document(&escape(&self.title), "", &main)
    }
}

/// Returns a relative path in the form used in links: characters other than unreserved ones and `/` are percent-encoded, and so
/// is a colon in the first folder.
fn url(path: &str) -> String {
    let mut url = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                url.push(char::from(byte));
            }
            other => url += &format!("%{other:02X}"),
        }
    }
    url
}

/// Returns a page without scripts; its parts are HTML.
fn document(title: &str, finding: &str, main: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"generator\" content=\"repoformer {}\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>{}</style>\n</head>\n<body>\n\
         <header class=\"head\">\n<p class=\"kicker\"><span>Repository-level code completion</span></p>\n\
         <h1>{title}</h1>\n<p class=\"finding\">{finding}</p>\n</header>\n<main>\n{main}</main>\n</body>\n</html>\n",
        plain_policy(),
        env!("CARGO_PKG_VERSION"),
        plain_style(),
    )
}
