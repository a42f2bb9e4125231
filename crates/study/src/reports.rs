//! Reports of a run, one for each benchmark.

use std::path::{Path, PathBuf};

use anyhow::Result;
use repoformer_evaluate::report::{IndexPage, PageLink};
use repoformer_pipeline::Experiment;
use repoformer_store::artifact::write_file;
use repoformer_store::files;
use repoformer_text::message;
use repoformer_text::message::UserChoice;

use crate::choices::page_in;
use crate::fail;
use crate::report::{WrittenReport, read_result};
use crate::settings::Settings;

/// Returns the folder to which reports and figures are written.
pub fn report_folder(given: Option<&PathBuf>, settings: &Settings) -> Result<PathBuf> {
    Ok(match given {
        Some(folder) => folder.clone(),
        None => settings.cache_dir.join("report"),
    })
}

/// Reports of a run, and the page that links all reports in their folder.
pub struct Reports {
    /// Folder with a folder for each benchmark.
    pub folder: PathBuf,
    /// Number of the run's benchmarks.
    count: usize,
    links: Vec<PageLink>,
    /// Links to reports of earlier runs in the folder.
    earlier: Vec<PageLink>,
}

impl Reports {
    /// Creates the reports of the benchmarks with these names in a folder.
    ///
    /// # Errors
    /// Another page has the name of the page that links them, or the folder cannot be listed.
    pub fn new(folder: &Option<PathBuf>, settings: &Settings, names: &[String]) -> Result<Self> {
        let folder = report_folder(folder.as_ref(), settings)?;
        let index = page_in(&folder);
        if names.len() > 1 && is_anothers(&index) {
            return fail(
                message![
                    format!("{}: a ", index.display()),
                    UserChoice::ReportOfRun,
                    " would overwrite this page"
                ],
                "name another folder, since a page that links the reports is written to this one",
            );
        }
        let earlier = earlier_links(&folder, names)?;
        Ok(Self { folder, count: names.len(), links: Vec::new(), earlier })
    }

    /// Returns the path of the page that links the reports, if there are several and no other page has its name.
    pub fn index(&self) -> Option<PathBuf> {
        let index = page_in(&self.folder);
        (self.count + self.earlier.len() > 1 && !is_anothers(&index)).then_some(index)
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
    pub fn write(&self) -> Result<Option<PathBuf>> {
        let Some(index) = self.index() else { return Ok(None) };
        let links = self.links.iter().chain(&self.earlier).cloned().collect();
        write_file(&index, IndexPage { title: INDEX.into(), links }.html().as_bytes())?;
        Ok(Some(index))
    }
}

/// Returns the links to the reports in a folder, except those with these names, by name.
fn earlier_links(folder: &Path, names: &[String]) -> Result<Vec<PageLink>> {
    let mut links = Vec::new();
    let Ok(entries) = files::read_dir(folder) else { return Ok(links) };
    for entry in entries {
        let report = entry?.path();
        let name = report.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !names.contains(&name)
            && page_in(&report).exists()
            && let Some((title, finding)) = read_result(&report)
        {
            links.push(PageLink { title, path: format!("{name}/index.html"), finding });
        }
    }
    links.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(links)
}

/// Title of the page that links reports.
const INDEX: &str = "Reports";

/// Returns true if a page exists that does not link reports.
fn is_anothers(page: &Path) -> bool {
    page.exists() && !is_own_index(page)
}

/// Returns true if an existing page links reports.
fn is_own_index(page: &Path) -> bool {
    let text = files::read_companion(page).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    // Earlier versions wrote "Reports of a run".
    let marks = ["content=\"repoformer ", &format!("<title>{INDEX}")];
    marks.iter().all(|mark| text.contains(mark))
}
