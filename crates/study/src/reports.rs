//! Reports of a run, one for each benchmark.

use std::path::{Path, PathBuf};

use anyhow::Result;
use repoformer_evaluate::report::{IndexPage, PageLink};
use repoformer_pipeline::{Experiment, Messages};
use repoformer_store::artifact::write_file;
use repoformer_store::files;
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use crate::choices::page_in;
use crate::fail;
use crate::report::WrittenReport;
use crate::settings::Settings;

/// Returns the folder to which reports and figures are written.
pub fn report_folder(given: Option<&PathBuf>, settings: &Settings) -> Result<PathBuf> {
    Ok(match given {
        Some(folder) => folder.clone(),
        None => settings.cache_dir.join("report"),
    })
}

/// Reports of a run, and the page that links them if there are several.
pub struct Reports {
    /// Folder with a folder for each benchmark.
    pub folder: PathBuf,
    count: usize,
    links: Vec<PageLink>,
}

impl Reports {
    /// Creates the reports of `count` benchmarks in a folder.
    ///
    /// # Errors
    /// Another page has the name of the page that links them.
    pub fn new(folder: &Option<PathBuf>, settings: &Settings, count: usize) -> Result<Self> {
        let folder = report_folder(folder.as_ref(), settings)?;
        let reports = Self { folder, count, links: Vec::new() };
        let other = reports.index().filter(|index| index.exists() && !is_own_index(index));
        if let Some(index) = other {
            return fail(
                message![
                    format!("{}: a ", index.display()),
                    UserChoice::ReportOfRun,
                    " would overwrite this page"
                ],
                "name another folder, since a page that links the reports is written to this one",
            );
        }
        Ok(reports)
    }

    /// Returns the path of the page that links several reports.
    pub fn index(&self) -> Option<PathBuf> {
        (self.count > 1).then(|| page_in(&self.folder))
    }

    /// Adds a report.
    pub fn add(
        &mut self,
        experiment: &Experiment,
        WrittenReport { page, title, finding }: WrittenReport,
    ) {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        let path = format!("{}/{name}", experiment.name);
        self.links.push(PageLink { title, path, finding });
    }

    /// Writes the page that links the reports, if there are several; returns its path.
    pub fn write(&self, messages: &dyn Messages) -> Result<Option<PathBuf>> {
        let Some(index) = self.index() else {
            // Otherwise, findings of an earlier run would be next to the report that was just written.
            let stale = page_in(&self.folder);
            if is_own_index(&stale) {
                files::remove_file(&stale)?;
                let text = format!(
                    "{}: removed, since it links reports of an earlier run",
                    stale.display()
                );
                messages.note(text.into());
            }
            return Ok(None);
        };
        let page = IndexPage { title: INDEX.into(), links: self.links.clone() };
        write_file(&index, page.html().as_bytes())?;
        Ok(Some(index))
    }
}

/// Title of the page that links the reports of a run.
const INDEX: &str = "Reports of a run";

/// Returns true if an existing page links reports.
fn is_own_index(page: &Path) -> bool {
    let text = files::read_companion(page).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let marks = ["content=\"repoformer ", &format!("<title>{INDEX}</title>")];
    marks.iter().all(|mark| text.contains(mark))
}
