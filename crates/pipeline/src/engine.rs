//! Decides whether artifacts are current, stale or damaged, and why; makes them, or plans them in a dry run.
//!
//! A stage describes its [`Artifact`]: the path, the identity, and the stage that makes it. The stage passes a function that
//! makes the content, and the engine decides whether to call it. A dry run makes the same decisions but no artifacts; artifacts
//! that would be made replace the existing ones in later decisions.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use foldhash::HashMap;
use repoformer_store::artifact::{
    self, ArtifactState, Columns, Header, Identity, LineSink, LineTotals, Payload, Turn,
    header_path,
};
use repoformer_store::error::{Error, Result};
use repoformer_text::message;
use repoformer_text::message::StageRun;

use super::experiment::Experiment;
use super::plan::{Plan, PlanVerdict, PlannedArtifact, Requests, is_planned};
use super::stage::{RebuiltArtifact, StageReport, made_again, missing, remove, stale};

/// An artifact of the cache.
pub(super) trait Artifact {
    /// Content of the artifact.
    type Content;

    /// Returns the path of the artifact.
    fn path(&self, experiment: &Experiment) -> PathBuf;

    /// Returns the stage that makes the artifact.
    fn making_stage(&self, experiment: &Experiment) -> StageRun;

    /// Returns the identity of the artifact, as far as the settings, the tasks and other artifacts determine it.
    ///
    /// # Errors
    /// An input of the artifact is missing or stale.
    fn identity(&self, engine: &mut Engine<'_>) -> Result<Identity>;

    /// Returns a reason to make the artifact again although it is current.
    ///
    /// # Errors
    /// Something cannot be read.
    fn flaw(&self, _: &Experiment, _: &Header) -> Result<Option<Flaw>> {
        Ok(None)
    }

    /// Returns the cost of making the artifact, as far as it can be known in advance.
    ///
    /// # Errors
    /// Something cannot be read.
    fn cost(&self, _: &Experiment) -> Result<Cost> {
        Ok(Cost::default())
    }
}

/// Cost of making an artifact: requests, and a file of measured times.
#[derive(Debug, Default)]
pub(super) struct Cost {
    /// Requests to a server.
    pub(super) requests: Requests,
    /// A file of times that is written next to the artifact.
    pub(super) times: Option<Times>,
}

/// A file of times.
#[derive(Debug)]
pub(super) struct Times {
    pub(super) path: PathBuf,
    /// Kind of file, in words.
    pub(super) kind: &'static str,
    /// True if something will certainly be measured.
    pub(super) are_certain: bool,
}

/// Outcome of a request for an artifact.
pub(super) enum Outcome {
    /// The artifact was current.
    Current(Header),
    /// The artifact was made.
    Made(Header),
    /// A dry run decided about the artifact.
    Decided(Header),
}

impl Outcome {
    /// Returns the header of the artifact, existing or planned.
    pub(super) fn header(&self) -> &Header {
        match self {
            Self::Current(header) | Self::Made(header) | Self::Decided(header) => header,
        }
    }
}

/// A reason to make a current artifact again.
pub(super) enum Flaw {
    /// A file next to the artifact is damaged, or belongs to another artifact.
    Beside { path: PathBuf, reason: String },
    /// More of the content is available now.
    Incomplete { there: u64, wanted: u64 },
}

/// Forms of artifacts.
trait Form {
    fn state(path: &Path, identity: &Identity) -> ArtifactState;

    fn read_header(path: &Path) -> Option<Header>;
}

/// Columns in one file.
struct Binary<T>(PhantomData<T>);

impl<T: Payload> Form for Binary<T> {
    fn state(path: &Path, identity: &Identity) -> ArtifactState {
        artifact::state::<T>(path, identity)
    }

    fn read_header(path: &Path) -> Option<Header> {
        artifact::read_header(path).ok()
    }
}

/// Lines of JSON, with a header file next to them.
pub(super) struct Lines;

impl Form for Lines {
    fn state(path: &Path, identity: &Identity) -> ArtifactState {
        artifact::state_jsonl(path, identity)
    }

    fn read_header(path: &Path) -> Option<Header> {
        artifact::jsonl_header(path).ok()
    }
}

/// The artifacts of an experiment, as one thread of a stage sees them, and a report of its work on them.
pub(super) struct Engine<'e> {
    pub(super) experiment: &'e Experiment,
    pub(super) report: StageReport,
    /// Headers of the artifacts that are inputs of others.
    headers: HashMap<PathBuf, Header>,
    /// True if it waits for artifacts that another process makes.
    waits: bool,
    /// True if it met such an artifact and did not wait, so that the work must be done again later.
    pub(super) is_postponed: bool,
}

impl<'e> Engine<'e> {
    pub(super) fn new(experiment: &'e Experiment) -> Self {
        Self {
            experiment,
            report: StageReport::default(),
            headers: HashMap::default(),
            waits: true,
            is_postponed: false,
        }
    }

    /// Returns an engine that never waits for another process, for use in one of several threads. A waiting thread may hold up
    /// another thread that has a turn, and two processes could wait for each other.
    pub(super) fn without_waiting(experiment: &'e Experiment) -> Self {
        Self { waits: false, ..Self::new(experiment) }
    }

    /// Makes an artifact, unless it is current.
    ///
    /// # Errors
    /// An input of the artifact is missing or stale, the artifact cannot be written, or `make` returns an error.
    pub(super) fn make<A: Artifact<Content: Payload>>(
        &mut self,
        artifact: &A,
        make: impl FnOnce(&mut Self) -> Result<A::Content>,
    ) -> Result<Outcome> {
        let identity = artifact.identity(self)?;
        self.settle::<Binary<A::Content>, A>(artifact, &identity, |engine, path| {
            artifact::write(path, &identity, &make(engine)?)
        })
    }

    /// Makes an artifact, unless it is current. The content is made in any case, for the problems that are reported meanwhile.
    ///
    /// # Errors
    /// The same as for [`make`](Self::make).
    pub(super) fn make_and_report<A: Artifact<Content: Payload>>(
        &mut self,
        artifact: &A,
        make: impl FnOnce(&mut Self) -> Result<A::Content>,
    ) -> Result<Outcome> {
        let identity = artifact.identity(self)?;
        // A dry run has not made the inputs, so they cannot be read.
        let content =
            if is_planned(&identity) { Err(not_made(A::Content::KIND)) } else { Ok(make(self)?) };
        self.settle::<Binary<A::Content>, A>(artifact, &identity, |_, path| {
            artifact::write(path, &identity, &content?)
        })
    }

    /// Makes an artifact of lines, unless it is current.
    ///
    /// # Errors
    /// The same as for [`make`](Self::make).
    pub(super) fn make_lines<A: Artifact<Content = Lines>>(
        &mut self,
        artifact: &A,
        make: impl FnOnce(&mut Self, &mut LineSink) -> Result<LineTotals>,
    ) -> Result<Outcome> {
        let identity = artifact.identity(self)?;
        self.settle::<Lines, A>(artifact, &identity, |engine, path| {
            artifact::write_lines(path, &identity, |sink| make(engine, sink))
        })
    }

    /// True if [`make`](Self::make) would make an artifact now.
    ///
    /// # Errors
    /// An input of the artifact is missing or stale.
    pub(super) fn makes<A: Artifact<Content: Payload>>(&mut self, artifact: &A) -> Result<bool> {
        if self.experiment.plan.is_some() {
            return Ok(false);
        }
        let identity = artifact.identity(self)?;
        let path = artifact.path(self.experiment);
        Ok(match artifact::state::<A::Content>(&path, &identity) {
            ArtifactState::Current(header) => artifact.flaw(self.experiment, &header)?.is_some(),
            ArtifactState::Missing | ArtifactState::Stale(_) | ArtifactState::Damaged(_) => true,
        })
    }

    fn settle<F: Form, A: Artifact>(
        &mut self,
        artifact: &A,
        identity: &Identity,
        make: impl FnOnce(&mut Self, &Path) -> Result<Header>,
    ) -> Result<Outcome> {
        let path = artifact.path(self.experiment);
        let outcome = match &self.experiment.plan {
            Some(plan) => Outcome::Decided(self.decide::<F, A>(plan, artifact, &path, identity)?),
            None => self.ensure::<F, A>(artifact, &path, identity, make)?,
        };
        self.headers.insert(path, outcome.header().clone());
        Ok(outcome)
    }

    /// Decides about an artifact in a dry run; returns its existing or planned header.
    fn decide<F: Form, A: Artifact>(
        &mut self,
        plan: &Plan,
        artifact: &A,
        path: &Path,
        identity: &Identity,
    ) -> Result<Header> {
        let state = |identity: &Identity| F::state(path, identity);
        let (mut verdict, mut header) = plan.decide(path, identity, F::read_header(path), state);
        if verdict == PlanVerdict::Current
            && path.exists()
            && let Some(flaw) = artifact.flaw(self.experiment, &header)?
        {
            (verdict, header) = (flaw.verdict(), plan.add(path, identity));
        }
        let Cost { requests, times } = artifact.cost(self.experiment)?;
        let requests = match verdict {
            PlanVerdict::Current => Requests::None,
            _ => requests,
        };
        let kind = header.identity.kind.clone();
        let times = times.and_then(|times| times.plan(&verdict, &kind, path));
        let planned = PlannedArtifact { path: path.to_owned(), kind, verdict, requests };
        self.report.planned.push(planned);
        self.report.planned.extend(times);
        Ok(header)
    }

    /// Returns the artifact if it is current; otherwise makes it.
    fn ensure<F: Form, A: Artifact>(
        &mut self,
        artifact: &A,
        path: &Path,
        identity: &Identity,
        make: impl FnOnce(&mut Self, &Path) -> Result<Header>,
    ) -> Result<Outcome> {
        if let ArtifactState::Current(header) = self.state::<F, A>(artifact, path, identity)? {
            self.report.count(path.to_owned(), &header, false);
            return Ok(Outcome::Current(*header));
        }
        let _turn = self.turn(path)?;
        // Another process may have made it in between.
        Ok(match self.state::<F, A>(artifact, path, identity)? {
            ArtifactState::Current(header) => {
                self.report.count(path.to_owned(), &header, false);
                Outcome::Current(*header)
            }
            state => {
                self.report.note(path, identity, &state);
                let header = make(self, path)?;
                self.report.count(path.to_owned(), &header, true);
                Outcome::Made(header)
            }
        })
    }

    /// Takes the turn to make an artifact, which another process may hold.
    ///
    /// # Errors
    /// Another process holds the turn, and this engine does not wait.
    fn turn(&mut self, path: &Path) -> Result<Turn> {
        if let Some(turn) = Turn::try_take(path) {
            return Ok(turn);
        }
        if !self.waits {
            self.is_postponed = true;
            return Err(Error::artifact(
                path,
                "another process is building it",
                "wait until it is done",
            ));
        }
        let text = format!("{}: waiting for another process that is building it", path.display());
        self.experiment.messages.note(text.into());
        Ok(Turn::wait(path))
    }

    /// Returns the state of an artifact; an artifact with a flaw is removed, and so missing.
    fn state<F: Form, A: Artifact>(
        &mut self,
        artifact: &A,
        path: &Path,
        identity: &Identity,
    ) -> Result<ArtifactState> {
        let state = F::state(path, identity);
        let flaw = match &state {
            ArtifactState::Current(header) => artifact.flaw(self.experiment, header)?,
            ArtifactState::Missing | ArtifactState::Stale(_) | ArtifactState::Damaged(_) => None,
        };
        let beside = header_path(path);
        match flaw {
            None => return Ok(state),
            Some(Flaw::Beside { path: file, reason }) => {
                remove(&[path, &beside, &file])?;
                let rebuilt =
                    RebuiltArtifact { path: file, reason, is_stale: false, follows: false };
                self.report.rebuilt.push(rebuilt);
            }
            Some(Flaw::Incomplete { .. }) => remove(&[path, &beside])?,
        }
        Ok(ArtifactState::Missing)
    }

    /// Returns the header of an artifact that is the input of another one.
    ///
    /// # Errors
    /// The artifact is missing, damaged or stale; the error names the stage that makes it.
    pub(super) fn header<A: Artifact<Content: Payload>>(&mut self, artifact: &A) -> Result<Header> {
        if let Some(header) = self.headers.get(&artifact.path(self.experiment)) {
            return Ok(header.clone());
        }
        Ok(self.need(artifact)?.header)
    }

    /// Returns an artifact that is the input of another one, without reading its content yet.
    ///
    /// # Errors
    /// The artifact is missing, damaged or stale; the error names the stage that makes it.
    pub(super) fn need<A: Artifact<Content: Payload>>(
        &mut self,
        artifact: &A,
    ) -> Result<LazyArtifact<A::Content>> {
        let wanted = artifact.identity(self)?;
        let (path, step) = (artifact.path(self.experiment), artifact.making_stage(self.experiment));
        let unread = LazyArtifact::open(self.experiment, &path, &step)?;
        check(&path, &unread.header, &wanted, &step)?;
        self.headers.insert(path, unread.header.clone());
        Ok(unread)
    }

    /// Remembers a header that was already checked for an artifact.
    pub(super) fn assume<A: Artifact>(&mut self, artifact: &A, header: Header) {
        self.headers.insert(artifact.path(self.experiment), header);
    }
}

impl Times {
    /// Returns the entry of this file in a dry run; `None` if the file will not be written.
    fn plan(self, of: &PlanVerdict, kind: &str, artifact: &Path) -> Option<PlannedArtifact> {
        let Self { path, kind: own, are_certain } = self;
        let upstream = || PlanVerdict::Upstream(vec![(kind.to_owned(), artifact.to_owned())]);
        let verdict = match of {
            PlanVerdict::Current if path.exists() => PlanVerdict::Current,
            PlanVerdict::Current => return None,
            _ if path.exists() => upstream(),
            PlanVerdict::Upstream(_) => upstream(),
            _ if are_certain => PlanVerdict::Missing,
            _ => PlanVerdict::Perhaps("the server's answers were timed"),
        };
        Some(PlannedArtifact::file(path, own, verdict))
    }
}

impl Flaw {
    fn verdict(self) -> PlanVerdict {
        match self {
            Self::Beside { reason, .. } => PlanVerdict::Damaged(reason),
            Self::Incomplete { there, wanted } => {
                PlanVerdict::Incomplete { there, prompts: wanted }
            }
        }
    }
}

/// Checks that an artifact was made with these settings from the current inputs; its identity may contain more.
///
/// # Errors
/// The artifact was made otherwise; the error names the first difference.
pub(super) fn check(
    path: &Path,
    header: &Header,
    wanted: &Identity,
    step: &StageRun,
) -> Result<()> {
    check_settings(path, header, wanted, step)?;
    let differs = |(name, digest): &(&String, &String)| {
        header.identity.inputs.get(*name).is_none_or(|made_from| made_from != *digest)
    };
    match wanted.inputs.iter().find(differs) {
        Some((name, _)) => {
            Err(stale(path, format!("built from a different version of its {name}"), step))
        }
        None => Ok(()),
    }
}

/// Checks that an artifact was made with these settings; it may have further ones.
///
/// # Errors
/// The settings differ; the error names the first difference.
pub(super) fn check_settings(
    path: &Path,
    header: &Header,
    wanted: &Identity,
    step: &StageRun,
) -> Result<()> {
    wanted.parameters.iter().try_for_each(|(name, wanted)| {
        match header.identity.parameters.get(name) {
            Some(value) if value == wanted => Ok(()),
            Some(value) => Err(stale(path, format!("{name} was {value}, is {wanted}"), step)),
            None => Err(stale(path, format!("{name} was not recorded, is {wanted}"), step)),
        }
    })
}

/// An artifact from an earlier stage, of which only the header was read; the content is read when it is needed.
pub(super) struct LazyArtifact<T> {
    pub(super) header: Header,
    /// Columns of the artifact; `None` in a dry run that would make it first.
    pub(super) columns: Option<Columns>,
    path: PathBuf,
    /// Stage that makes the artifact again.
    step: StageRun,
    content: PhantomData<T>,
}

impl<T: Payload> LazyArtifact<T> {
    /// # Errors
    /// The artifact is missing, or its header is damaged.
    fn open(experiment: &Experiment, path: &Path, step: &StageRun) -> Result<Self> {
        let (header, columns) = match experiment.planned_header(path) {
            Some(header) => (header, None),
            None if !path.exists() => return Err(missing(path, T::KIND, step)),
            None => {
                let opened = artifact::open(path).map_err(|error| made_again(error, step));
                let (header, mut columns) = opened?;
                columns.close();
                (header, Some(columns))
            }
        };
        Ok(Self {
            header,
            columns,
            path: path.to_owned(),
            step: step.clone(),
            content: PhantomData,
        })
    }

    /// Returns the error for a damaged content.
    pub(super) fn damage_error(&self, reason: String) -> Error {
        let hint = message!["rebuild it with ", &self.step];
        Error::Artifact { path: self.path.clone(), reason, hint }
    }

    /// Reads the content, which must have `count` records if a count is given.
    ///
    /// # Errors
    /// The content is damaged or cannot be read.
    pub(super) fn read(&mut self, count: Option<usize>) -> Result<T> {
        let Some(columns) = &mut self.columns else {
            return Err(not_made(T::KIND));
        };
        let content = T::from_columns(columns);
        columns.close();
        let fits = content.and_then(|content| {
            let records = content.records();
            match (content.check(), count) {
                (Err(reason), _) => Err(columns.damage_error(reason)),
                (Ok(()), Some(count)) if count != records => {
                    let reason = format!("it has {records} records instead of {count}");
                    Err(columns.damage_error(reason))
                }
                (Ok(()), _) => Ok(content),
            }
        });
        fits.map_err(|error| made_again(error, &self.step))
    }
}

/// Returns the error for content that a dry run would have made first.
pub(super) fn not_made(kind: &str) -> Error {
    Error::parameter("dry-run", format!("the {kind} do not exist yet, so they cannot be read"))
}
