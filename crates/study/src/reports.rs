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
    /// Names of the run's benchmarks.
    names: Vec<String>,
    links: Vec<PageLink>,
}

impl Reports {
    /// Creates the reports of the benchmarks with these names in a folder.
    ///
    /// # Errors
    /// Another page has the name of the page that links them.
    pub fn new(folder: &Option<PathBuf>, settings: &Settings, names: Vec<String>) -> Result<Self> {
        let folder = report_folder(folder.as_ref(), settings)?;
        let reports = Self { folder, names, links: Vec::new() };
        if let Some(index) = reports.index()?.filter(|index| is_anothers(index))
            && reports.names.len() > 1
        {
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

    /// Returns the path of the page that links the reports, if there are several.
    pub fn index(&self) -> Result<Option<PathBuf>> {
        let count = self.names.len() + self.earlier()?.len();
        Ok((count > 1).then(|| page_in(&self.folder)))
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

    /// Returns the links to reports of earlier runs in the folder, by name.
    fn earlier(&self) -> Result<Vec<PageLink>> {
        let mut links = Vec::new();
        let Ok(entries) = files::read_dir(&self.folder) else { return Ok(links) };
        for entry in entries {
            let folder = entry?.path();
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !self.names.contains(&name)
                && page_in(&folder).exists()
                && let Some((title, finding)) = read_result(&folder)
            {
                links.push(PageLink { title, path: format!("{name}/index.html"), finding });
            }
        }
        links.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(links)
    }

    /// Writes the page that links the reports, if there are several; returns its path.
    pub fn write(&self) -> Result<Option<PathBuf>> {
        let Some(index) = self.index()?.filter(|index| !is_anothers(index)) else {
            return Ok(None);
        };
        let links = self.links.iter().cloned().chain(self.earlier()?).collect();
        write_file(&index, IndexPage { title: INDEX.into(), links }.html().as_bytes())?;
        Ok(Some(index))
    }
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
    let marks = ["content=\"repoformer ", &format!("<title>{INDEX}</title>")];
    marks.iter().all(|mark| text.contains(mark))
}
