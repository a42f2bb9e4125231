//! `window`: repositories → repository windows; tasks → query windows.

use super::{Experiment, Report, check_parameter, for_each_repository, require};
use crate::artifact::{Header, Identity, Payload};
use crate::corpus::{Repository, SourceFile};
use crate::error::{Error, Result};
use crate::predictions::Joined;
use crate::query::{Mode, QueryWindows, fits, hole_lines};
use crate::task::TaskSet;
use crate::window::RepoWindows;

/// Cuts the repositories.
///
/// # Errors
/// An artifact cannot be written.
pub fn window_repositories(experiment: &Experiment) -> Result<Report> {
    for_each_repository(experiment, |repository, report| {
        cut_repository(experiment, repository, report)
    })
}

/// Cuts the query windows of each mode that retrieves; rg-rg needs `predictions`.
///
/// # Errors
/// Repository windows are missing, an artifact cannot be written, or rg-rg is asked for without predictions.
pub fn window_queries(
    experiment: &Experiment,
    modes: &[Mode],
    predictions: Option<&Joined>,
) -> Result<Report> {
    let mut report = for_each_repository(experiment, |repository, report| {
        let windows = repo_windows(experiment, repository)?;
        report
            .warnings
            .extend(misfits(experiment.tasks()?, &windows.1));
        modes
            .iter()
            .filter(|mode| mode.retrieves())
            .try_for_each(|mode| cut_queries(experiment, *mode, &windows, predictions, report))
    })?;
    if let Some(empty @ 1..) = predictions.map(|joined| joined.empty) {
        report
            .warnings
            .push(format!("{empty} of the predictions are empty texts"));
    }
    Ok(report)
}

fn cut_repository(experiment: &Experiment, name: &str, report: &mut Report) -> Result<()> {
    let reading = Repository::read(&experiment.repos_dir, name)?;
    report.problems.extend(reading.skipped);
    let repository = reading.repository;
    if repository.files.is_empty() {
        let path = experiment.repos_dir.join(name);
        let reason =
            "holds no Python file that can be read, so nothing can be retrieved from it; put its files there, or choose others with --repo"
                .into();
        report.problems.push(Error::Repository { path, reason });
    }
    report.warnings.extend(long_lines(&repository));
    let shape = experiment.shape();
    let identity = experiment
        .shaped(Identity::new(RepoWindows::KIND))
        .parameter("repository", name)
        .input("repository", repository.digest());
    report.ensure(experiment.layout.repo_windows(name), &identity, |_| {
        Ok(RepoWindows::cut(repository, shape))
    })
}

fn cut_queries(
    experiment: &Experiment,
    mode: Mode,
    (header, windows): &(Header, RepoWindows),
    predictions: Option<&Joined>,
    report: &mut Report,
) -> Result<()> {
    let (tasks, repository) = (experiment.tasks()?, windows.repository.as_str());
    let mut identity = experiment
        .shaped(Identity::new(QueryWindows::KIND))
        .parameter("repository", repository)
        .parameter("benchmark", &experiment.layout.benchmark)
        .parameter("mode", mode)
        .input("tasks", tasks.hole_digest(repository))
        .input("windows", &*header.checksum);
    let cut = match (mode, predictions) {
        (Mode::Prediction, Some(joined)) => {
            identity = identity.input("predictions", joined.digest(tasks, repository));
            QueryWindows::cut_with_predictions(tasks, &joined.predictions, windows)
        }
        (Mode::Prediction, None) => {
            let reason = "mode rg-rg searches with predictions: name their file".into();
            return Err(Error::Parameter {
                name: "predictions",
                reason,
            });
        }
        _ => QueryWindows::cut(mode, tasks, windows),
    };
    // Cutting is cheap, and its complaints are due whether or not the artifact is current.
    report.problems.extend(cut.skipped);
    report.ensure(
        experiment.layout.query_windows(mode, repository),
        &identity,
        |_| Ok(cut.queries),
    )
}

/// A line of more bytes than this fits no prompt of any model.
const LONG_LINE: usize = 1 << 20;

/// A warning for each file with a line that no prompt can hold.
fn long_lines(repository: &Repository) -> Vec<String> {
    let of_file = |file: &SourceFile| {
        let (number, line) = file
            .text
            .split('\n')
            .enumerate()
            .find(|(_, line)| line.len() > LONG_LINE)?;
        let (path, number, length) = (&file.path, number + 1, line.len());
        Some(format!(
            "{path}:{number}: a line of {length} bytes: its windows are searched, but fit no prompt; leave the file out if it is data"
        ))
    };
    let large = repository
        .files
        .iter()
        .filter(|file| file.text.len() > LONG_LINE);
    large.filter_map(of_file).collect()
}

/// A warning where tasks do not fit their files.
fn misfits(tasks: &TaskSet, windows: &RepoWindows) -> Option<String> {
    let of_it = tasks
        .tasks
        .iter()
        .filter(|task| task.repository == windows.repository);
    let mut misfits =
        of_it.filter(|task| hole_lines(task, windows).is_ok_and(|lines| !fits(task, lines)));
    let first = misfits.next()?;
    Some(format!(
        "{}:{}: task {}: its prompt does not end where its hole begins, line {} (from 0) of {}; {} more tasks of {} do not \
         fit either; if they were made from another version of the repository, what is retrieved may hold their targets",
        tasks.path.display(),
        first.line,
        first.id,
        first.line_no,
        first.path,
        misfits.count(),
        windows.repository,
    ))
}

/// A repository's windows as the `window` stage left them.
pub(super) fn repo_windows(
    experiment: &Experiment,
    repository: &str,
) -> Result<(Header, RepoWindows)> {
    let path = experiment.layout.repo_windows(repository);
    let (header, windows) = require::<RepoWindows>(&path, "window")?;
    check_parameter(
        &path,
        &header,
        ("center", experiment.shape().center),
        "window",
    )?;
    Ok((header, windows))
}
