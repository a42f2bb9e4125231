//! `window`: cuts repositories into fragments and right contexts, and makes queries from tasks.

use repoformer_core::repository::corpus::{Repository, SourceFile};
use repoformer_core::repository::fragment::{FragmentFile, RepoFragments, digest_of_files};
use repoformer_store::artifact::digest_parts;
use repoformer_store::error::{Error, Result};
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};

use super::contexts::{RightContexts, TakenContexts};
use super::engine::Engine;
use super::experiment::Experiment;
use super::fragments::Fragments;
use super::layout::Layout;
use super::stage::{StageReport, for_each_repository};

/// Cuts the repositories into fragments.
///
/// # Errors
/// An artifact cannot be written.
pub fn window_repositories(experiment: &Experiment) -> Result<StageReport> {
    for_each_repository(experiment, "window", cut_repository)
}

fn cut_repository(name: &str, engine: &mut Engine<'_>) -> Result<()> {
    let experiment = engine.experiment;
    let Layout { language, cut, .. } = experiment.layout;
    let reading = Repository::read_with(&experiment.repos_dir, name, language, experiment.walk)?;
    engine.report.problems.extend(reading.skipped);
    let repository = reading.repository;
    if repository.files.is_empty() {
        let none = format!("contains no readable {} file", language.title());
        let reason = message![
            none,
            ", so nothing can be retrieved from it; add its files, or choose other ",
            UserChoice::Repositories,
            " or another language"
        ];
        let path = experiment.repos_dir.join(name);
        engine.report.problems.push(Error::Repository { path, reason });
    }
    let long_lines = repository.files.iter().filter_map(long_line);
    engine.report.warnings.extend(long_lines.map(Message::from));
    let tasks = experiment.tasks.as_deref().filter(|_| experiment.takes_right_contexts());
    let contexts = tasks.map(|tasks| {
        let (contexts, misfit) = RightContexts::new(tasks, &repository);
        engine.report.misfits.extend(misfit);
        // Fragments may keep no blank lines, but right contexts contain them.
        let sources = repository.files.iter().flat_map(|file| [&*file.path, &*file.text]);
        (contexts, digest_parts(sources))
    });
    let files = FragmentFile::of_files(repository.files, cut);
    let fragments = Fragments { repository: name, files: Some(digest_of_files(&files)) };
    engine.make(&fragments, |_| Ok(RepoFragments::cut_files(name.into(), files, language, cut)))?;
    if let Some((contexts, digest)) = contexts {
        let taken = TakenContexts { repository: name, files: Some(digest) };
        engine.make(&taken, |_| Ok(contexts))?;
    }
    Ok(())
}

/// A line with more bytes than this fits into no prompt of any model.
const LONG_LINE: usize = 1 << 20;

/// Returns a warning for a file with a line that no prompt can hold.
fn long_line(file: &SourceFile) -> Option<String> {
    if file.text.len() <= LONG_LINE {
        return None;
    }
    let lines = file.lines();
    let mut lines = lines.iter().zip(1..);
    let (line, number) = lines.find(|(line, _)| line.len() > LONG_LINE)?;
    let (path, length) = (&file.path, line.len());
    Some(format!(
        "{path}:{number}: the line has {length} bytes, so its windows are searched, but fit into no prompt; exclude the file if it is data"
    ))
}
