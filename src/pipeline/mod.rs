//! The stages: each reads typed artifacts, calls a pure function of the core, and writes a typed artifact.
//!
//! A stage does nothing where its artifact is current, rebuilds one that is stale or damaged and says why, and
//! names the command that makes an upstream artifact which is missing.

mod chunks;
mod complete;
mod eval;
mod executed;
mod kept;
mod layout;
mod prompt;
pub mod report;
mod search;
mod selective;
mod serve;
mod vectorize;
mod window;
mod windows;

pub use chunks::{
    ChunkSettings, DenseSource, Notice, PromptLayout, RightContexts, dense_texts,
    retrieval_quality, trec_run, write_beir,
};
pub use complete::{
    Completion, Predictions, artifact_text, cached_predictions, check_asked_alike, complete,
    complete_file, count_predictions,
};
pub use eval::{Evaluation, evaluate, own_postprocess, scores};
pub use executed::{Executed, read_executed};
pub use layout::{ChunkNames, Layout, file_name};
pub use prompt::{PromptTotals, prompt, prompt_totals};
pub use search::{SearchTime, search, search_time};
pub use selective::{Selective, forget_chosen, selective, write_chosen};
pub use serve::{
    Asked, BatchRead, BatchWritten, Latency, PromptText, Server, TokenQuestion,
    cached_probabilities, latencies, probabilities, read_batch, write_batch,
};
pub use vectorize::{vectorize_queries, vectorize_repositories};
pub use window::{window_queries, window_repositories};

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use crate::error::{Access, Error, Result};
use crate::prompt::Budget;
use crate::repository::corpus::{self, Walk};
use crate::repository::window::WindowShape;
use crate::retrieve::HoleGuard;
use crate::store::artifact::{
    self, Columns, Header, Identity, LineSink, LineTotals, Payload, State,
};
use crate::task::TaskSet;
use crate::text::language::Language;

/// What a stage works on: a data set, its parameters, and where artifacts lie.
#[derive(Debug)]
pub struct Experiment {
    /// One folder a repository.
    pub repos_dir: PathBuf,
    /// The repositories that take part, sorted.
    pub repositories: Vec<String>,
    /// The benchmark's tasks, those of other repositories included; without them only the repositories are windowed and vectorized.
    pub tasks: Option<TaskSet>,
    /// Where artifacts lie.
    pub layout: Layout,
    /// Which files of a folder count.
    pub walk: Walk,
    /// How chunks are searched and shown, where chunks are searched instead of windows.
    pub chunks: Option<ChunkSettings>,
    /// How the hole is kept out of prompts.
    pub guard: HoleGuard,
    /// What bounds the retrieved part of a prompt.
    pub budget: Budget,
}

/// What a stage did.
#[derive(Debug, Default)]
pub struct Report {
    /// Artifacts written.
    pub built: usize,
    /// Artifacts found current and left alone.
    pub current: usize,
    /// Records in all of them.
    pub records: u64,
    /// What a person should know: artifacts that were stale or damaged and so rebuilt, tasks that do not fit.
    pub warnings: Vec<String>,
    /// What was stepped over.
    pub problems: Vec<Error>,
    /// The artifacts, in the order of the work.
    pub outputs: Vec<PathBuf>,
}

impl Report {
    /// Adds what another did.
    pub fn merge(&mut self, other: Self) {
        self.built += other.built;
        self.current += other.current;
        self.records += other.records;
        self.warnings.extend(other.warnings);
        self.problems.extend(other.problems);
        self.outputs.extend(other.outputs);
    }

    fn note(&mut self, path: &Path, state: &State) {
        match state {
            State::Stale(reason) => self
                .warnings
                .push(format!("{}: stale ({reason}), rebuilt", path.display())),
            State::Damaged(reason) => self
                .warnings
                .push(format!("{}: {reason}; rebuilt", path.display())),
            State::Missing | State::Current(_) => {}
        }
    }

    fn done(&mut self, path: PathBuf, header: &Header, built: bool) {
        self.built += usize::from(built);
        self.current += usize::from(!built);
        self.records += header.records;
        self.outputs.push(path);
    }

    /// Leaves a current artifact alone, and builds and writes any other.
    fn ensure<T: Payload>(
        &mut self,
        path: PathBuf,
        identity: &Identity,
        build: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<Header> {
        let state = artifact::state::<T>(&path, identity);
        self.settle(path, state, |report, path| {
            artifact::write(path, identity, &build(report)?)
        })
    }

    /// The same for a JSONL artifact.
    fn ensure_jsonl(
        &mut self,
        path: PathBuf,
        identity: &Identity,
        build: impl FnOnce(&mut Self, &mut LineSink) -> Result<LineTotals>,
    ) -> Result<Header> {
        let state = artifact::state_jsonl(&path, identity);
        self.settle(path, state, |report, path| {
            artifact::write_lines(path, identity, |sink| build(report, sink))
        })
    }

    fn settle(
        &mut self,
        path: PathBuf,
        state: State,
        make: impl FnOnce(&mut Self, &Path) -> Result<Header>,
    ) -> Result<Header> {
        if let State::Current(header) = state {
            self.done(path, &header, false);
            return Ok(*header);
        }
        self.note(&path, &state);
        let header = make(self, &path)?;
        self.done(path, &header, true);
        Ok(header)
    }
}

/// An artifact that an earlier stage makes, of which the header is read and the content only when it is needed.
struct Unread<T> {
    header: Header,
    columns: Columns,
    /// What makes it again.
    command: String,
    content: PhantomData<T>,
}

impl<T: Payload> Unread<T> {
    /// # Errors
    /// It is missing, or its header is damaged.
    fn open(path: &Path, command: &str) -> Result<Self> {
        if !path.exists() {
            return Err(missing(path, T::KIND, command));
        }
        let (header, mut columns) =
            artifact::open(path).map_err(|error| made_again(error, command))?;
        columns.close();
        Ok(Self {
            header,
            columns,
            command: command.to_owned(),
            content: PhantomData,
        })
    }

    /// Reads it, where it must have `count` records.
    ///
    /// # Errors
    /// It is damaged or cannot be read.
    fn read(&mut self, count: Option<usize>) -> Result<T> {
        let content = T::from_columns(&mut self.columns);
        self.columns.close();
        let fits = content.and_then(|content| {
            let records = content.records();
            match (content.check(), count) {
                (Err(reason), _) => Err(self.columns.damaged(reason)),
                (Ok(()), Some(count)) if count != records => {
                    let reason = format!("it has {records} records where {count} are needed");
                    Err(self.columns.damaged(reason))
                }
                (Ok(()), _) => Ok(content),
            }
        });
        fits.map_err(|error| made_again(error, &self.command))
    }
}

/// The same for the header of a JSONL artifact.
fn require_jsonl(path: &Path, kind: &str, command: &str) -> Result<Header> {
    if !path.exists() {
        return Err(missing(path, kind, command));
    }
    artifact::read_jsonl_header(path).map_err(|error| made_again(error, command))
}

/// A damaged artifact, with the command that mends it.
fn made_again(error: Error, command: &str) -> Error {
    match error {
        Error::Artifact { path, reason, .. } => Error::Artifact {
            path,
            reason,
            hint: format!("make it again with `repoformer {command}`"),
        },
        other => other,
    }
}

fn missing(path: &Path, kind: &str, command: &str) -> Error {
    Error::Artifact {
        path: path.to_owned(),
        reason: format!("the {kind} are missing"),
        hint: format!("make them with `repoformer {command}` and the same data set flags"),
    }
}

/// That an artifact was made from the one that is there now.
fn check_input(
    path: &Path,
    header: &Header,
    input: &str,
    upstream: &Header,
    command: &str,
) -> Result<()> {
    check_digest(path, header, input, &upstream.checksum, command)
}

/// The same for what is no artifact: tasks.
fn check_digest(
    path: &Path,
    header: &Header,
    input: &str,
    digest: &str,
    command: &str,
) -> Result<()> {
    if header
        .identity
        .inputs
        .get(input)
        .is_some_and(|made_from| made_from == digest)
    {
        return Ok(());
    }
    Err(stale(
        path,
        format!("made from other {input} than are there now"),
        command,
    ))
}

/// That an artifact was made with the parameter in force, where its file's name does not tell.
fn check_parameter(
    path: &Path,
    header: &Header,
    (name, wanted): (&str, impl ToString),
    command: &str,
) -> Result<()> {
    let wanted = wanted.to_string();
    match header.identity.parameters.get(name) {
        Some(value) if *value != wanted => Err(stale(
            path,
            format!("{name} was {value}, is {wanted}"),
            command,
        )),
        _ => Ok(()),
    }
}

fn stale(path: &Path, reason: String, command: &str) -> Error {
    Error::Artifact {
        path: path.to_owned(),
        reason: format!("stale: {reason}"),
        hint: format!("make it again with `repoformer {command}` and the same settings"),
    }
}

impl Experiment {
    /// Settles which repositories take part: those named, or those that the tasks name, or all folders. A named
    /// repository without a folder takes no part and is reported, with the number of tasks that this costs.
    ///
    /// # Errors
    /// The repositories folder cannot be listed, or none takes part.
    pub fn settle_repositories(
        repos_dir: &Path,
        named: &[String],
        mut tasks: Option<&mut TaskSet>,
    ) -> Result<(Vec<String>, Vec<Error>)> {
        let there = corpus::repository_names(repos_dir)?;
        if let Some(tasks) = &mut tasks {
            tasks.name_folders(&there);
        }
        let wanted = match &tasks {
            _ if !named.is_empty() => {
                let mut names = named.to_vec();
                names.sort_unstable();
                names.dedup();
                names
            }
            Some(tasks) => tasks.repositories(),
            None => there.clone(),
        };
        // A name that is not UTF-8 is listed with replacement characters, under which no folder is found.
        let (found, lost): (Vec<_>, Vec<_>) = wanted
            .into_iter()
            .partition(|name| there.contains(name) && repos_dir.join(name).is_dir());
        let mut problems = Vec::new();
        for name in lost {
            let of_it = tasks
                .as_ref()
                .map_or(0, |set| set.of_repository(&name).count());
            let cost = match of_it {
                0 => String::new(),
                1 => ", so that 1 task cannot be carried out".into(),
                n => format!(", so that {n} tasks cannot be carried out"),
            };
            let reason = format!(
                "there is no such repository folder{cost}; put it there, or choose others with --repo"
            );
            problems.push(Error::Repository {
                path: repos_dir.join(&name),
                reason,
            });
        }
        if found.is_empty() {
            let none = Error::Repository {
                path: repos_dir.into(),
                reason: "holds none of the repositories".into(),
            };
            return Err(problems.into_iter().next().unwrap_or(none));
        }
        Ok((found, problems))
    }

    fn shape(&self) -> WindowShape {
        self.layout.shape
    }

    /// Which files of a repository's folder count.
    fn files(&self) -> (Language, Walk) {
        (self.layout.language, self.walk)
    }

    /// An identity with the parameters of the windows.
    fn shaped(&self, identity: Identity) -> Identity {
        let WindowShape {
            window_size,
            slice_size,
            center,
        } = self.shape();
        identity
            .parameter("window-size", window_size)
            .parameter("slice-size", slice_size)
            .parameter("center", center)
    }

    /// The tasks, which most stages cannot do without.
    ///
    /// # Errors
    /// There are none.
    pub fn tasks(&self) -> Result<&TaskSet> {
        self.tasks.as_ref().ok_or(Error::Parameter {
            name: "tasks",
            reason: "this stage needs a task file; name it with --tasks".into(),
        })
    }
}

/// Runs a stage's work for each repository, in parallel, and merges the reports in the repositories' order.
fn for_each_repository(
    experiment: &Experiment,
    work: impl Fn(&str, &mut Report) -> Result<()> + Sync,
) -> Result<Report> {
    use rayon::prelude::*;
    let reports: Vec<(Report, Result<()>)> = experiment
        .repositories
        .par_iter()
        .map(|repository| {
            let mut report = Report::default();
            let outcome = work(repository, &mut report);
            (report, outcome)
        })
        .collect();
    let mut all = Report::default();
    let mut failed = None;
    for (report, outcome) in reports {
        all.merge(report);
        if let Err(error) = outcome {
            // One repository that cannot be read costs no other; what no repository can do without ends the stage.
            match error {
                Error::Repository { .. }
                | Error::Io {
                    access: Access::Read,
                    ..
                } => all.problems.push(error),
                _ => failed = failed.or(Some(error)),
            }
        }
    }
    failed.map_or(Ok(all), Err)
}
