//! A report of an experiment: one page of HTML that holds all of it, and its figures as SVG.
//!
//! [`Report`] is what was measured, gathered by the caller; [`Report::page`] and [`Report::figures`] are pure functions of
//! it: the same report gives the same bytes, and neither clock, file nor network is looked at.
//!
//! The page tells what Repoformer's paper tells of each model: the means (table 1), on how many tasks retrieval helps, harms
//! and does nothing, and by how much (figures 3, 6 and 10). Then it shows the tasks themselves, every one: target and
//! prediction with what differs, what was retrieved, and the code around the hole. It needs no network and no other file, so it
//! can be attached, archived and opened decades later.
//!
//! - [`model`](Report): the input.
//! - [`Report::gain`]: gains over the baseline; `group`: tasks by length and by what was retrieved.
//! - `figures`: one file a figure, over a small writer of SVG that serves page and file.
//! - `data`: tasks and texts as compressed blocks; texts repeat, so lines are kept once.
//! - [`ChartPage`]: a smaller page, of a table and charts of lines.
//! - `page`: the tables, and the page's skeleton, style and scripts as files of their own.
//!
//! ```
//! use repoformer::report::{Measure, Outcome, Report, System, Task};
//! let measure = Measure { metric: "repocoder".into(), value: "es".into(), title: "edit similarity".into() };
//! let task = Task { id: "demo/0".into(), target: "return x".into(), language: "python".into(), ..Task::default() };
//! let system = |name: &str, prediction: &str, es| System {
//!     name: name.into(),
//!     n: 1,
//!     outcomes: vec![Some(Outcome { prediction: prediction.into(), values: vec![es], ..Outcome::default() })],
//!     ..System::default()
//! };
//! let report = Report {
//!     title: "A demonstration".into(),
//!     measures: vec![measure],
//!     tasks: vec![task],
//!     systems: vec![system("none", "return y", 0.875), system("rg1", "return x", 1.0)],
//!     baseline: Some(0),
//!     ..Report::default()
//! };
//! assert_eq!(report.changes(1).better, 1);
//! assert!(report.page().contains("<h1>A demonstration</h1>"));
//! let names: Vec<String> = report.figures().into_iter().map(|(name, _)| name).collect();
//! assert_eq!(names, ["means.svg", "gain-rg1.svg", "outcomes.svg", "es-by-length.svg"]);
//! ```

mod chart;
mod data;
mod figures;
mod gain;
mod group;
mod model;
mod page;
mod text;

pub use crate::prompt::shown::Fragment;
pub use chart::{Chart, ChartPage, Line};
pub use model::{Comparison, Mean, Measure, Outcome, Report, System, Task};

/// The compared system whose mean of the main measure is highest, the first of equals; an oracle only where there is nothing
/// else, and without a baseline the best of all.
fn best(report: &Report) -> Option<usize> {
    let mean = |system: &System| {
        system
            .means
            .get(report.main)
            .map_or(f64::NEG_INFINITY, |m| m.mean)
    };
    let mut all: Vec<(usize, &System)> = match report.compared().next() {
        Some(_) => report.compared().collect(),
        None => report.systems.iter().enumerate().collect(),
    };
    if all.iter().any(|(_, system)| !system.is_oracle) {
        all.retain(|(_, system)| !system.is_oracle);
    }
    let best = all
        .into_iter()
        .reduce(|best, next| match mean(next.1) > mean(best.1) {
            true => next,
            false => best,
        });
    best.map(|(system, _)| system)
}

impl Report {
    /// The report as one page of HTML, in UTF-8.
    pub fn page(&self) -> String {
        page::page(self)
    }

    /// The figures as files of their own: names (`gain-rg1.svg`) and contents. A figure that would be empty is left out.
    pub fn figures(&self) -> Vec<(String, String)> {
        let files = figures::files(self).into_iter();
        files
            .map(|(name, svg)| (format!("{name}.svg"), svg))
            .collect()
    }
}

#[cfg(test)]
mod tests;
