//! `window` in the manner of chunks: repositories → chunks, and the right contexts of tasks that do not carry them.

use super::super::{Experiment, Report, for_each_repository};
use super::contexts::RightContexts;
use super::shaped;
use crate::error::{Error, Result};
use crate::repository::chunk::{RepoChunks, digest_of_files};
use crate::repository::corpus::Repository;
use crate::store::artifact::{Identity, Payload};

/// Cuts the repositories.
///
/// # Errors
/// An artifact cannot be written.
pub(in crate::pipeline) fn index_repositories(experiment: &Experiment) -> Result<Report> {
    for_each_repository(experiment, |repository, report| {
        index_one(experiment, repository, report)
    })
}

fn index_one(experiment: &Experiment, name: &str, report: &mut Report) -> Result<()> {
    let settings = experiment.of_chunks()?;
    let language = experiment.layout.language;
    let reading = Repository::read_with(&experiment.repos_dir, name, experiment.files())?;
    report.problems.extend(reading.skipped);
    let repository = reading.repository;
    if repository.files.is_empty() {
        let title = language.title();
        let reason = format!(
            "holds no {title} file that can be read, so nothing can be retrieved from it; put its files there, choose \
             others with --repo, or another --language"
        );
        report.problems.push(Error::Repository {
            path: experiment.repos_dir.join(name),
            reason,
        });
    }
    let digest = digest_of_files(&repository.files);
    let identity = shaped(experiment, settings, Identity::new(RepoChunks::KIND))
        .parameter("repository", name)
        .parameter("walk", experiment.walk)
        .input("repository", &*digest);
    let contexts = experiment.tasks.as_ref().map(|tasks| {
        let (contexts, warning) = RightContexts::of(tasks, &repository);
        report.warnings.extend(warning);
        (tasks, contexts)
    });
    let path = experiment.layout.repo_windows(name);
    report.ensure(path, &identity, |_| {
        Ok(RepoChunks::cut(repository, language, settings.shape))
    })?;
    if let Some((tasks, contexts)) = contexts {
        let identity = Identity::new(RightContexts::KIND)
            .parameter("repository", name)
            .parameter("language", language)
            .parameter("walk", experiment.walk)
            .input("repository", digest)
            .input("tasks", tasks.digest_of(name));
        let path = experiment.layout.right_contexts(name);
        report.ensure(path, &identity, |_| Ok(contexts))?;
    }
    Ok(())
}
