//! Report of an experiment: one self-contained HTML page, and its figures as SVG.
//!
//! [`ReportContents`] has the results, collected by the caller. [`ReportContents::write_page`] and [`ReportContents::figures`] are
//! pure functions of these contents: they use neither clock, file nor network, and the same report gives the same bytes.
//!
//! The page has the same results as Repoformer's paper for each model: the means (table 1), the number of tasks that retrieval
//! helps, harms and does not change, and the size of the gains (figures 3, 6 and 10). It also shows every task: target and
//! prediction with their differences, the retrieved fragments, and the code around the hole. It needs no network and no other
//! file, so it can be attached, archived and opened decades later.
//!
//! - [`model`](ReportContents): the input.
//! - [`ReportContents::gain`]: gains over the baseline; `group`: tasks by length and by retrieved identifiers.
//! - `figures`: one module per figure, based on a small SVG writer for page and file.
//! - `data`: tasks and texts as compressed blocks; lines repeat, so each is stored once.
//! - [`ChartPage`]: a smaller page with a table and line charts; [`IndexPage`]: links to pages.
//! - `page`: the tables, and the page's skeleton, style and scripts as separate files.
//!
//! ```
//! use repoformer_evaluate::report::{ReportMeasure, TaskOutcome, ReportContents, System, ReportTask};
//! let measure = ReportMeasure { metric: "repocoder".into(), value: "es".into(), title: "edit similarity".into() };
//! let task = ReportTask { id: "demo/0".into(), target: "return x".into(), language: "python".into(), ..ReportTask::default() };
//! let system = |name: &str, prediction: &str, es| System {
//!     name: name.into(),
//!     n: 1,
//!     outcomes: vec![Some(TaskOutcome { prediction: prediction.into(), values: vec![es], ..TaskOutcome::default() })],
//!     ..System::default()
//! };
//! let report = ReportContents {
//!     title: "A demonstration".into(),
//!     measures: vec![measure],
//!     tasks: vec![task],
//!     systems: vec![system("none", "return y", 0.875), system("rg1", "return x", 1.0)],
//!     baseline: Some(0),
//!     ..ReportContents::default()
//! };
//! assert_eq!(report.changes(1).better, 1);
//! assert!(report.page().contains("<h1>A demonstration</h1>"));
//! let names: Vec<String> = report.figures().into_iter().map(|(name, _)| name).collect();
//! assert_eq!(names, ["means.svg", "gain-rg1.svg", "outcomes.svg", "es-by-length.svg"]);
//! ```

use std::io;

mod chart;
mod data;
mod figures;
mod gain;
mod group;
mod model;
mod page;
mod text;

pub use chart::{ChartPage, IndexPage, PageLink, PageTable};
pub use figures::chart::{Chart, ChartForm, Line};
pub use model::{
    BaselineComparison, ReportContents, ReportMeasure, ReportTask, System, TaskOutcome,
};
pub use page::finding::ReportFinding;
pub use repoformer_core::prompt::shown::ShownFragment;

impl ReportContents<'_> {
    /// Writes the report as one page of HTML, in UTF-8.
    ///
    /// # Errors
    /// The same as those of `out`.
    pub fn write_page(&self, out: &mut dyn io::Write) -> io::Result<()> {
        page::write(self, out)
    }

    /// Returns the page that [`write_page`](Self::write_page) writes.
    pub fn page(&self) -> String {
        let mut page = Vec::new();
        // Writing to memory cannot fail, and all pieces are UTF-8.
        let _ = self.write_page(&mut page);
        String::from_utf8(page).unwrap_or_default()
    }

    /// Returns the main result, in a sentence.
    pub fn finding(&self) -> ReportFinding {
        ReportFinding::new(self)
    }

    /// Returns the figures as files: names (`gain-rg1.svg`) and contents. Empty figures are left out.
    pub fn figures(&self) -> Vec<(String, String)> {
        let files = figures::files(self).into_iter();
        files.map(|(name, svg)| (format!("{name}.svg"), svg)).collect()
    }
}

#[cfg(test)]
mod tests;
