//! `window`: repositories → fragments and right contexts; tasks → queries.

use repoformer_core::repository::corpus::{Repository, SourceFile};
use repoformer_core::repository::fragment::{FragmentFile, RepoFragments, digest_of_files};
use repoformer_core::retrieve::query::{Made, hole_lines};
use repoformer_core::retrieve::{Mode, Queries, QueryForm, QuerySettings};
use repoformer_core::task::TaskSet;
use repoformer_evaluate::predictions::JoinedPredictions;
use repoformer_store::artifact::{
    Header, Identity, Payload, digest_parts, header_path, jsonl_header,
};
use repoformer_store::error::{Error, Result};
use repoformer_text::message;
use repoformer_text::message::{Message, StageRun, UserChoice};

use super::contexts::{RightContexts, misfit, open_contexts, right_context};
use super::experiment::Experiment;
use super::fragments::OpenFragments;
use super::stage::{
    PREDICTIONS_FILE, StageReport, Unread, check_digest, check_input, check_parameters, check_read,
    for_each_repository, not_made,
};

/// Cuts the repositories.
///
/// # Errors
/// An artifact cannot be written.
pub fn window_repositories(experiment: &Experiment) -> Result<StageReport> {
    for_each_repository(experiment, "window", |repository, report| {
        cut_repository(experiment, repository, report)
    })
}

fn cut_repository(experiment: &Experiment, name: &str, report: &mut StageReport) -> Result<()> {
    let language = experiment.layout.language;
    let reading = Repository::read_with(&experiment.repos_dir, name, language, experiment.walk)?;
    report.problems.extend(reading.skipped);
    let repository = reading.repository;
    if repository.files.is_empty() {
        let none = format!("holds no {} file that can be read", language.title());
        let reason = message![
            none,
            ", so nothing can be retrieved from it; put its files there, or choose other ",
            UserChoice::Repositories,
            " or another language"
        ];
        report.problems.push(Error::Repository { path: experiment.repos_dir.join(name), reason });
    }
    let long_lines = repository.files.iter().filter_map(long_line);
    report.warnings.extend(long_lines.map(Message::from));
    let tasks = experiment.tasks.as_deref().filter(|_| experiment.takes_right_contexts());
    let contexts = tasks.map(|tasks| {
        let (contexts, misfit) = RightContexts::of(tasks, &repository);
        report.misfits.extend(misfit);
        // Fragments may keep no blank lines, and right contexts have them.
        let sources = repository.files.iter().flat_map(|file| [&*file.path, &*file.text]);
        (tasks, contexts, digest_parts(sources))
    });
    let cut = experiment.layout.cut;
    let files = FragmentFile::of_files(repository.files, cut);
    let identity = experiment
        .cut(Identity::new(RepoFragments::KIND))
        .parameter("repository", name)
        .parameter("walk", experiment.walk)
        .input("repository", digest_of_files(&files));
    let path = experiment.layout.repo_windows(name);
    report.ensure(path, &identity, |_| {
        Ok(RepoFragments::cut_files(name.into(), files, language, cut))
    })?;
    if let Some((tasks, contexts, digest)) = contexts {
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

/// Makes the queries of each mode that retrieves; rg-rg needs `predictions`.
///
/// # Errors
/// Fragments are missing, an artifact cannot be written, or rg-rg is asked for without predictions.
pub fn window_queries(
    experiment: &Experiment,
    modes: &[Mode],
    predictions: Option<&JoinedPredictions>,
) -> Result<StageReport> {
    let modes: Vec<Mode> = modes.iter().copied().filter(|m| m.retrieves()).collect();
    let mut report = for_each_repository(experiment, "queries of", |repository, report| {
        if modes.is_empty() {
            return Ok(());
        }
        let mut fragments = OpenFragments::open(experiment, repository)?;
        let header = fragments.header.clone();
        let of_it = experiment.tasks()?.of_repository(repository);
        let mut contexts = match experiment.takes_right_contexts() {
            true => Some(open_contexts(experiment, repository)?),
            false => None,
        };
        let path = predictions.and_then(|joined| joined.cached.as_deref());
        let are_planned = fragments.is_planned()
            || contexts.as_ref().is_some_and(|contexts| contexts.columns.is_none())
            || path.is_some_and(|path| experiment.is_planned(path));
        let contexts_header = contexts.as_ref().map(|contexts| contexts.header.clone());
        let mut read = None;
        if !are_planned {
            let fragments = fragments.read_files(|outline| {
                of_it.filter_map(|task| Some(outline.file_index(&task.path)? as u32)).collect()
            })?;
            if experiment.retrieval.form == QueryForm::Window {
                report.misfits.extend(misfits(experiment.tasks()?, fragments));
            }
            let contexts = contexts.as_mut().map(|contexts| contexts.read(None)).transpose()?;
            read = Some((fragments, contexts.unwrap_or_default()));
        }
        let sources = Sources {
            repository,
            header: &header,
            contexts: contexts_header.as_ref(),
            read: read.as_ref().map(|(fragments, contexts)| (*fragments, contexts)),
            predictions,
        };
        modes.iter().try_for_each(|mode| sources.make(experiment, *mode, report))
    })?;
    if let Some(empty @ 1..) = predictions.map(|joined| joined.empty) {
        report.warn(format!("{empty} of the predictions are empty texts"));
    }
    Ok(report)
}

/// Sources of one repository's queries.
struct Sources<'a> {
    repository: &'a str,
    /// Header of its fragments.
    header: &'a Header,
    /// Header of its right contexts, where they are taken.
    contexts: Option<&'a Header>,
    /// Its fragments and right contexts; `None` in a dry run that would make one of the sources first.
    read: Option<(&'a RepoFragments, &'a RightContexts)>,
    predictions: Option<&'a JoinedPredictions>,
}

impl Sources<'_> {
    fn make(&self, experiment: &Experiment, mode: Mode, report: &mut StageReport) -> Result<()> {
        let tasks = experiment.tasks()?;
        let settings = QuerySettings {
            mode,
            form: experiment.form(mode),
            length: experiment.retrieval.query_lines,
        };
        let repository = self.repository;
        let mut identity = query_identity(experiment, settings)
            .parameter("repository", repository)
            .parameter("benchmark", &experiment.layout.benchmark)
            .input("tasks", query_tasks(tasks, settings.form, repository))
            .input("fragments", &*self.header.checksum);
        let contexts = self.contexts.filter(|_| settings.form.uses_right_context());
        if let Some(header) = contexts {
            identity = identity.input("right contexts", &*header.checksum);
        }
        let samples = match (mode, self.predictions) {
            (Mode::Prediction, Some(joined)) => {
                identity = of_artifact(experiment, joined, identity)?;
                if let Some(revision) = joined.cut.revision() {
                    identity = identity
                        .parameter("cut", &joined.cut)
                        .parameter("rule of answers", revision);
                }
                let planned = joined.cached.as_deref().and_then(|path| experiment.planned(path));
                let digest = planned.map(|header| header.checksum);
                let digest = digest.unwrap_or_else(|| joined.digest(tasks, repository));
                identity = identity.input("predictions", digest);
                Some(joined.predictions.as_slice())
            }
            (Mode::Prediction, None) => {
                let reason = "mode rg-rg searches with predictions: name their file".into();
                return Err(Error::Parameter { name: "predictions", reason });
            }
            _ => None,
        };
        let mut made = None;
        if let Some((fragments, contexts)) = self.read {
            let right = contexts.map();
            let right_of = |task| right_context(task, &right);
            let Made { queries, skipped } =
                Queries::make(settings, tasks, fragments, right_of, samples);
            // Making queries is cheap, and its complaints are due whether or not the artifact is current.
            report.problems.extend(skipped);
            made = Some(queries);
        }
        let path = experiment.layout.query_windows(mode, repository);
        report.ensure(path, &identity, |_| made.ok_or_else(|| not_made(Queries::KIND)))?;
        Ok(())
    }
}

/// Adds the cached predictions that queries are made of; what somebody brought is no artifact.
fn of_artifact(
    experiment: &Experiment,
    joined: &JoinedPredictions,
    identity: Identity,
) -> Result<Identity> {
    let Some(path) = &joined.cached else {
        return Ok(identity);
    };
    let header = match experiment.planned(path) {
        Some(header) => header,
        None if header_path(path).exists() => {
            let header = jsonl_header(path)?;
            check_read(path, &header)?;
            header
        }
        None => return Ok(identity),
    };
    let within = experiment.layout.within_cache(path);
    Ok(identity.parameter(PREDICTIONS_FILE, within).input(PREDICTIONS_FILE, header.checksum))
}

fn query_identity(experiment: &Experiment, settings: QuerySettings) -> Identity {
    let identity = experiment
        .cut(Identity::new(Queries::KIND))
        .parameter("mode", settings.mode)
        .parameter("query", settings.form);
    match settings.form {
        QueryForm::Window => identity,
        _ => identity.parameter("query-lines", settings.length),
    }
}

/// Digest of what queries are made of: windows of nothing but holes, others of the tasks' texts too.
fn query_tasks(tasks: &TaskSet, form: QueryForm, repository: &str) -> String {
    match form {
        QueryForm::Window => tasks.hole_digest(repository),
        _ => tasks.digest_of(repository),
    }
}

/// Queries as this stage left them: of the tasks and fragments that are there now.
pub(super) fn open_queries(
    experiment: &Experiment,
    mode: Mode,
    repository: &str,
    fragments: &Header,
) -> Result<Unread<Queries>> {
    let step = match mode {
        Mode::Prediction => StageRun::Any("rg-rg"),
        _ => StageRun::InMode("window", mode.name()),
    };
    let path = experiment.layout.query_windows(mode, repository);
    let queries = Unread::<Queries>::open(experiment, &path, &step)?;
    let settings = QuerySettings {
        mode,
        form: experiment.form(mode),
        length: experiment.retrieval.query_lines,
    };
    let tasks = query_tasks(experiment.tasks()?, settings.form, repository);
    check_digest(&path, &queries.header, "tasks", &tasks, &step)?;
    check_input(&path, &queries.header, "fragments", fragments, &step)?;
    let wanted = query_identity(experiment, settings);
    check_parameters(&path, &queries.header, &wanted, &step)?;
    Ok(queries)
}

/// A line of more bytes than this fits no prompt of any model.
const LONG_LINE: usize = 1 << 20;

/// A warning for a file with a line that no prompt can hold.
fn long_line(file: &SourceFile) -> Option<String> {
    if file.text.len() <= LONG_LINE {
        return None;
    }
    let lines = file.lines();
    let mut lines = lines.iter().zip(1..);
    let (line, number) = lines.find(|(line, _)| line.len() > LONG_LINE)?;
    let (path, length) = (&file.path, line.len());
    Some(format!(
        "{path}:{number}: a line of {length} bytes: its windows are searched, but fit no prompt; leave the file out if it is data"
    ))
}

/// An error where tasks do not fit their files.
fn misfits(tasks: &TaskSet, windows: &RepoFragments) -> Option<Error> {
    let of_it = tasks.of_repository(&windows.repository);
    let misfits = of_it.filter_map(|task| {
        let lines = hole_lines(task, windows).ok()?;
        Some((task, task.hole(lines.text()).err()?))
    });
    let harm = "what is retrieved for such tasks may hold their targets";
    misfit(tasks, &windows.repository, misfits.collect(), harm)
}
