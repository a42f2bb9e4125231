//! A stage of the pipeline: what it did, the artifacts that it needs, and whether they are current.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use repoformer_core::repository::parallel;
use repoformer_core::retrieve::Retrieval;
use repoformer_store::artifact::{
    self, Columns, Header, Identity, LineSink, LineTotals, Payload, State,
};
use repoformer_store::error::{Access, Error, Result};
use repoformer_store::files;
use repoformer_store::readings;
use repoformer_text::message;
use repoformer_text::message::{Message, StageRun};

use super::experiment::Experiment;
use super::plan::{Foreseen, Plan, Planned, Verdict};

/// Work that a stage did.
#[derive(Debug, Default)]
pub struct StageReport {
    /// Artifacts written.
    pub built: usize,
    /// Artifacts found current and left alone.
    pub current: usize,
    /// Records in all of them.
    pub records: u64,
    /// Artifacts that were stale or damaged and so rebuilt.
    pub rebuilt: Vec<Rebuilt>,
    /// Warnings.
    pub warnings: Vec<Message>,
    /// Tasks that do not fit the files that they name, and were worked on all the same.
    pub misfits: Vec<Error>,
    /// Records and files that were skipped.
    pub problems: Vec<Error>,
    /// The artifacts, in the order of the work.
    pub outputs: Vec<PathBuf>,
    /// In a dry run, the artifacts that would be made or are current; then none is in the numbers above.
    pub planned: Vec<Planned>,
    plan: Option<Plan>,
}

/// An artifact that was stale or damaged and so rebuilt.
#[derive(Debug)]
pub struct Rebuilt {
    /// Its path.
    pub path: PathBuf,
    /// Why: `repository changed`, `damaged: …`.
    pub reason: String,
    /// Whether it was stale, rather than damaged.
    pub is_stale: bool,
    /// Whether the reason is another artifact that was made again before, rather than something outside the cache.
    pub follows: bool,
}

/// Name of the predictions' artifact in the identity of queries that were made of it.
pub(super) const PREDICTIONS_FILE: &str = "predictions-file";

/// Whether an input is an artifact of the cache, rather than a file of the user.
fn is_artifact(input: &str, identity: &Identity) -> bool {
    match input {
        "repository" | "tasks" | "vector texts" => false,
        "predictions" => {
            identity.kind == "scores" || identity.parameters.contains_key(PREDICTIONS_FILE)
        }
        // Search takes the cache's vectors, and `vectorize` those of a file.
        "vectors" => identity.kind == Retrieval::KIND,
        _ => true,
    }
}

impl std::fmt::Display for Rebuilt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, reason, is_stale, .. } = self;
        match is_stale {
            true => write!(f, "{}: stale ({reason}), rebuilt", path.display()),
            false => write!(f, "{}: {reason}; rebuilt", path.display()),
        }
    }
}

impl StageReport {
    /// Nothing done yet.
    pub(super) fn of(experiment: &Experiment) -> Self {
        Self { plan: experiment.plan.clone(), ..Self::default() }
    }

    /// Whether nothing is to be done.
    pub(super) fn is_dry(&self) -> bool {
        self.plan.is_some()
    }

    /// Adds what another did.
    pub fn merge(&mut self, other: Self) {
        self.built += other.built;
        self.current += other.current;
        self.records += other.records;
        self.rebuilt.extend(other.rebuilt);
        self.warnings.extend(other.warnings);
        self.misfits.extend(other.misfits);
        self.problems.extend(other.problems);
        self.outputs.extend(other.outputs);
        self.planned.extend(other.planned);
    }

    /// Adds a warning.
    pub(super) fn warn(&mut self, warning: impl Into<Message>) {
        self.warnings.push(warning.into());
    }

    fn note(&mut self, path: &Path, identity: &Identity, state: &State) {
        let (reason, is_stale) = match state {
            // The others are often due to the first.
            State::Stale(differences) => (differences.first().map(ToString::to_string), true),
            State::Damaged(reason) => (Some(reason.clone()), false),
            State::Missing | State::Current(_) => return,
        };
        let reason = reason.unwrap_or_default();
        let input = reason.strip_suffix(" changed").filter(|_| is_stale);
        let follows = input.is_some_and(|input| is_artifact(input, identity));
        self.rebuilt.push(Rebuilt { path: path.to_owned(), reason, is_stale, follows });
    }

    fn done(&mut self, path: PathBuf, header: &Header, built: bool) {
        self.built += usize::from(built);
        self.current += usize::from(!built);
        self.records += header.records;
        self.outputs.push(path);
    }

    /// Whether [`ensure`](Self::ensure) would build an artifact.
    pub(super) fn builds<T: Payload>(&self, path: &Path, identity: &Identity) -> bool {
        !self.is_dry() && !matches!(artifact::state::<T>(path, identity), State::Current(_))
    }

    /// Leaves a current artifact alone, and builds and writes any other.
    pub(super) fn ensure<T: Payload>(
        &mut self,
        path: PathBuf,
        identity: &Identity,
        build: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<Header> {
        let state = |identity: &Identity| artifact::state::<T>(&path, identity);
        if let Some(plan) = &self.plan {
            let recorded = artifact::read_header(&path).ok();
            let (verdict, header) = plan.decide(&path, identity, recorded, state);
            return Ok(self.decided(path, verdict, header));
        }
        let state = state(identity);
        self.settle(path, identity, state, |report, path| {
            artifact::write(path, identity, &build(report)?)
        })
    }

    /// Leaves a current JSONL artifact alone, and builds and writes any other.
    pub(super) fn ensure_jsonl(
        &mut self,
        path: PathBuf,
        identity: &Identity,
        build: impl FnOnce(&mut Self, &mut LineSink) -> Result<LineTotals>,
    ) -> Result<Header> {
        let state = |identity: &Identity| artifact::state_jsonl(&path, identity);
        if let Some(plan) = &self.plan {
            let recorded = artifact::jsonl_header(&path).ok();
            let (verdict, header) = plan.decide(&path, identity, recorded, state);
            return Ok(self.decided(path, verdict, header));
        }
        let state = state(identity);
        self.settle(path, identity, state, |report, path| {
            artifact::write_lines(path, identity, |sink| build(report, sink))
        })
    }

    /// Decides about predictions of a server's model in a dry run.
    pub(super) fn foresee(
        &mut self,
        path: PathBuf,
        identity: &Identity,
        Foreseen { incomplete, requests }: Foreseen,
    ) -> Result<()> {
        match (&self.plan, incomplete) {
            (Some(plan), Some(verdict)) => {
                let header = plan.add(&path, identity);
                self.decided(path, verdict, header);
            }
            _ => {
                self.ensure_jsonl(path, identity, |_, _| Err(not_made("predictions")))?;
            }
        }
        if let Some(planned) = self.planned.last_mut()
            && planned.verdict != Verdict::Current
        {
            planned.requests = requests;
        }
        Ok(())
    }

    /// Adds to a dry run the times that are written with the artifact that was decided last; of some, it is not known before
    /// whether they will be measured.
    pub(super) fn foresee_times(&mut self, path: PathBuf, kind: &str, are_measured: bool) {
        let Some(of) = self.planned.last() else { return };
        let upstream = || Verdict::Upstream(vec![(of.kind.clone(), of.path.clone())]);
        let verdict = match &of.verdict {
            Verdict::Current if path.exists() => Verdict::Current,
            Verdict::Current => return,
            _ if path.exists() => upstream(),
            Verdict::Upstream(_) => upstream(),
            _ if are_measured => Verdict::Missing,
            _ => Verdict::Perhaps("the server's answers were timed"),
        };
        self.planned.push(Planned::file(path, kind, verdict));
    }

    fn decided(&mut self, path: PathBuf, verdict: Verdict, header: Header) -> Header {
        let kind = header.identity.kind.clone();
        self.planned.push(Planned { path, kind, verdict, requests: None });
        header
    }

    fn settle(
        &mut self,
        path: PathBuf,
        identity: &Identity,
        state: State,
        make: impl FnOnce(&mut Self, &Path) -> Result<Header>,
    ) -> Result<Header> {
        if let State::Current(header) = state {
            self.done(path, &header, false);
            return Ok(*header);
        }
        self.note(&path, identity, &state);
        let header = make(self, &path)?;
        self.done(path, &header, true);
        Ok(header)
    }
}

/// An artifact that an earlier stage makes, of which the header is read and the content only when it is needed.
pub(super) struct Unread<T> {
    pub(super) header: Header,
    /// `None` in a dry run that would make it first.
    pub(super) columns: Option<Columns>,
    /// Makes it again.
    step: StageRun,
    content: PhantomData<T>,
}

impl<T: Payload> Unread<T> {
    /// # Errors
    /// It is missing, or its header is damaged.
    pub(super) fn open(experiment: &Experiment, path: &Path, step: &StageRun) -> Result<Self> {
        let (header, columns) = match experiment.planned(path) {
            Some(header) => (header, None),
            None if !path.exists() => return Err(missing(path, T::KIND, step)),
            None => {
                let opened = artifact::open(path).map_err(|error| made_again(error, step));
                let (header, mut columns) = opened?;
                columns.close();
                (header, Some(columns))
            }
        };
        Ok(Self { header, columns, step: step.clone(), content: PhantomData })
    }

    /// Reads it, where it must have `count` records.
    ///
    /// # Errors
    /// It is damaged or cannot be read.
    pub(super) fn read(&mut self, count: Option<usize>) -> Result<T> {
        let Some(columns) = &mut self.columns else {
            return Err(not_made(T::KIND));
        };
        let content = T::from_columns(columns);
        columns.close();
        let fits = content.and_then(|content| {
            let records = content.records();
            match (content.check(), count) {
                (Err(reason), _) => Err(columns.damaged(reason)),
                (Ok(()), Some(count)) if count != records => {
                    let reason = format!("it has {records} records where {count} are needed");
                    Err(columns.damaged(reason))
                }
                (Ok(()), _) => Ok(content),
            }
        });
        fits.map_err(|error| made_again(error, &self.step))
    }
}

/// Content of an artifact that a dry run would have made first.
pub(super) fn not_made(kind: &str) -> Error {
    Error::parameter("dry-run", format!("the {kind} are not made, so they cannot be read"))
}

/// Reads the header of a JSONL artifact that an earlier stage makes.
pub(super) fn require_jsonl(
    experiment: &Experiment,
    path: &Path,
    kind: &str,
    step: &StageRun,
) -> Result<Header> {
    if let Some(header) = experiment.planned(path) {
        return Ok(header);
    }
    if !path.exists() {
        return Err(missing(path, kind, step));
    }
    artifact::read_jsonl_header(path).map_err(|error| made_again(error, step))
}

/// Checks that the lines which were read from a JSONL artifact are those of its header.
///
/// # Errors
/// They are not: another program wrote it anew in between.
pub(super) fn check_read(path: &Path, header: &Header) -> Result<()> {
    match readings::known(path)? {
        Some(content) if content.digest != header.checksum => Err(readings::changed(path)),
        _ => Ok(()),
    }
}

/// A damaged artifact, with the stage that mends it.
pub(super) fn made_again(error: Error, step: &StageRun) -> Error {
    match error {
        Error::Artifact { path, reason, .. } => {
            Error::Artifact { path, reason, hint: message!["make it again with ", step] }
        }
        other => other,
    }
}

pub(super) fn missing(path: &Path, kind: &str, step: &StageRun) -> Error {
    Error::Artifact {
        path: path.to_owned(),
        reason: format!("the {kind} are missing"),
        hint: message!["make them with ", step, " and the same data set"],
    }
}

/// Checks that the digest of an input matches the artifact that is there now.
pub(super) fn check_input(
    path: &Path,
    header: &Header,
    input: &str,
    upstream: &Header,
    step: &StageRun,
) -> Result<()> {
    check_digest(path, header, input, &upstream.checksum, step)
}

/// Checks that the digest of an input matches.
pub(super) fn check_digest(
    path: &Path,
    header: &Header,
    input: &str,
    digest: &str,
    step: &StageRun,
) -> Result<()> {
    if header.identity.inputs.get(input).is_some_and(|made_from| made_from == digest) {
        return Ok(());
    }
    Err(stale(path, format!("made from other {input} than are there now"), step))
}

/// Checks that an artifact was made with these parameters; it may have others.
pub(super) fn check_parameters(
    path: &Path,
    header: &Header,
    wanted: &Identity,
    step: &StageRun,
) -> Result<()> {
    wanted.parameters.iter().try_for_each(|(name, wanted)| {
        match header.identity.parameters.get(name) {
            Some(value) if value == wanted => Ok(()),
            Some(value) => Err(stale(path, format!("{name} was {value}, is {wanted}"), step)),
            None => Err(stale(path, format!("{name} is not recorded, is {wanted}"), step)),
        }
    })
}

pub(super) fn stale(path: &Path, reason: String, step: &StageRun) -> Error {
    Error::Artifact {
        path: path.to_owned(),
        reason: format!("stale: {reason}"),
        hint: message!["make it again with ", step, " and the same settings"],
    }
}

/// Removes files that are there. Of lines and their header, the header comes last: lines without one would be taken for
/// somebody's own.
///
/// # Errors
/// One cannot be removed.
pub(super) fn remove(files: &[&Path]) -> Result<()> {
    for file in files {
        match files::remove_file(file) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::writing(file, "remove this file", e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Does something for each repository, in parallel; the results are in the repositories' order.
///
/// # Errors
/// The first repository's error, whichever thread comes first.
pub(super) fn by_repository<T: Send>(
    experiment: &Experiment,
    work: impl Fn(&str) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let results = parallel::map(&experiment.repositories, |repository| work(repository));
    results.into_iter().collect()
}

/// Runs a stage's work for each repository, in parallel, and merges the reports in the repositories' order.
pub(super) fn for_each_repository(
    experiment: &Experiment,
    stage: &str,
    work: impl Fn(&str, &mut StageReport) -> Result<()> + Sync,
) -> Result<StageReport> {
    let progress = experiment.work(stage, "repositories", experiment.repositories.len());
    let reports = parallel::map(&experiment.repositories, |repository| {
        let mut report = StageReport::of(experiment);
        let outcome = work(repository, &mut report);
        progress.done(1);
        (report, outcome)
    });
    let mut all = StageReport::of(experiment);
    let mut failed = None;
    for (report, outcome) in reports {
        all.merge(report);
        if let Err(error) = outcome {
            // One repository that cannot be read costs no other; what no repository can do without ends the stage.
            match error {
                Error::Repository { .. } | Error::Io { access: Access::Read, .. } => {
                    all.problems.push(error)
                }
                _ => failed = failed.or(Some(error)),
            }
        }
    }
    failed.map_or(Ok(all), Err)
}
