//! Log of a command's stages: the work and time of each, or its plan.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use foldhash::{HashMap, HashSet};
use repoformer_evaluate::table::{NamedColumn, Printable, Table, columns, or_dash};
use repoformer_pipeline::{Experiment, Plan, PlanVerdict, PlannedArtifact, Requests, StageReport};
use repoformer_store::frame::ColumnType::{Integer, Text};
use repoformer_text::counts::{group, plural};
use repoformer_text::visible::visible_in_line;
use serde_json::{Value, json};

use crate::choices::label;

/// Work that the stages of a command did, or would do.
#[derive(Debug, Default)]
pub struct StageLog {
    plan: Option<Plan>,
    lists_all: bool,
    /// Artifacts of each stage and benchmark, in the order of the work.
    planned: Vec<Stage>,
    /// Paths of the planned artifacts of each benchmark.
    known: HashMap<Option<String>, HashSet<PathBuf>>,
    times: Vec<StageTime>,
}

#[derive(Debug)]
struct Stage {
    name: &'static str,
    label: String,
    benchmark: Option<String>,
    artifacts: Vec<PlannedArtifact>,
}

/// Time of all stages with the same name.
#[derive(Debug)]
struct StageTime {
    name: &'static str,
    took: Duration,
    /// True if all their artifacts were current.
    is_current: bool,
}

impl StageLog {
    /// Creates a log. In a dry run, its text lists all artifacts for a reason, or only the first.
    pub fn new(is_dry: bool, lists_all: bool) -> Self {
        Self { plan: is_dry.then(Plan::default), lists_all, ..Self::default() }
    }

    /// Returns true if this is a dry run.
    pub fn is_dry(&self) -> bool {
        self.plan.is_some()
    }

    /// Makes the stages of an experiment do nothing if this is a dry run.
    pub fn begin(&self, experiment: &mut Experiment) {
        experiment.plan.clone_from(&self.plan);
    }

    /// Runs a stage and reports it.
    pub fn stage(
        &mut self,
        name: &'static str,
        experiment: &Experiment,
        work: impl FnOnce() -> Result<StageReport>,
    ) -> Result<()> {
        let report = self.time(name, || {
            let report = work()?;
            let is_current = report.built == 0;
            Ok((report, is_current))
        })?;
        self.tell(name, experiment, report);
        Ok(())
    }

    /// Does named work and measures its time; the work also returns whether everything was current.
    pub fn time<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<(T, bool)>,
    ) -> Result<T> {
        let begin = Instant::now();
        let (done, is_current) = work()?;
        let took = begin.elapsed();
        match self.times.iter_mut().find(|time| time.name == name) {
            Some(time) => {
                time.took += took;
                time.is_current &= is_current;
            }
            None => self.times.push(StageTime { name, took, is_current }),
        }
        Ok(done)
    }

    /// Prints the work of a stage, or keeps its plan.
    pub fn tell(&mut self, name: &'static str, experiment: &Experiment, report: StageReport) {
        let label = label(name, experiment);
        if !self.is_dry() {
            return experiment.messages.stage(&label, &report);
        }
        experiment.messages.remarks(&report);
        self.add(name, experiment, report.planned);
    }

    /// Adds artifacts of a dry run, without duplicates.
    pub fn add(
        &mut self,
        name: &'static str,
        experiment: &Experiment,
        mut artifacts: Vec<PlannedArtifact>,
    ) {
        let benchmark = experiment.tasks.as_deref().map(|_| experiment.name.clone());
        // A policy's own model repeats stages.
        if let Some(known) = self.known.get(&benchmark) {
            artifacts.retain(|one| !known.contains(&one.path));
        }
        self.push(Stage { name, label: label(name, experiment), benchmark, artifacts });
    }

    /// Adds files of a dry run that belong to no benchmark.
    pub fn add_files(&mut self, name: &'static str, artifacts: Vec<PlannedArtifact>) {
        self.push(Stage { name, label: name.to_owned(), benchmark: None, artifacts });
    }

    fn push(&mut self, stage: Stage) {
        let known = self.known.entry(stage.benchmark.clone()).or_default();
        known.extend(stage.artifacts.iter().map(|one| one.path.clone()));
        match self.planned.last_mut() {
            _ if stage.artifacts.is_empty() => {}
            Some(last) if last.label == stage.label => last.artifacts.extend(stage.artifacts),
            _ => self.planned.push(stage),
        }
    }

    /// Returns the time of each stage: `window 0.4 s · vectorize current · total 0.6 s`.
    pub fn times(&self, total: Duration) -> String {
        let seconds = |took: Duration| format!("{:.1} s", took.as_secs_f64());
        let mut parts: Vec<String> = Vec::new();
        for StageTime { name, took, is_current } in &self.times {
            let time = if *is_current { "current".to_owned() } else { seconds(*took) };
            parts.push(format!("{name} {time}"));
        }
        parts.push(format!("total {}", seconds(total)));
        parts.join(" · ")
    }

    fn each(&self) -> impl Iterator<Item = (&Stage, &PlannedArtifact)> {
        self.planned
            .iter()
            .flat_map(|stage| stage.artifacts.iter().map(move |artifact| (stage, artifact)))
    }
}

/// Displays the artifacts of a dry run.
impl Printable for StageLog {
    fn table(&self) -> Table {
        let head = ["stage", "benchmark", "artifact", "kind", "state", "reason", "requests"];
        let mut table = Table::new(head);
        for (stage, PlannedArtifact { path, kind, verdict, requests }) in self.each() {
            table.row(vec![
                stage.name.to_owned(),
                or_dash(stage.benchmark.clone()),
                path.display().to_string(),
                kind.clone(),
                verdict.name().to_owned(),
                or_dash(verdict.reason()),
                or_dash(requests.as_known().map(|requests| requests.to_string())),
            ]);
        }
        table
    }

    /// Returns a line for each stage, followed by one for each reason, with the first artifact or all.
    fn text(&self) -> String {
        let mut text = String::new();
        for Stage { label, artifacts, .. } in &self.planned {
            text += &format!("{}: {}\n", visible_in_line(label), counts(artifacts.iter()));
            let known = artifacts.iter().filter_map(|one| one.requests.as_known());
            let requests: Option<usize> = known.reduce(|sum, one| sum + one);
            if let Some(requests) = requests {
                let noun = plural(requests, "request");
                let is_open = |one: &&PlannedArtifact| one.requests == Requests::Open;
                text += &match artifacts.iter().filter(is_open).count() {
                    0 => format!("  {} {noun} to the server\n", group(requests)),
                    open => format!(
                        "  at least {} {noun} to the server; more are possible for {open} {}, whose prompts are not built yet\n",
                        group(requests),
                        plural(open, "artifact")
                    ),
                };
            }
            // By reason, in the order of the first artifacts.
            let mut reasons: Vec<(String, Vec<&PlannedArtifact>)> = Vec::new();
            let mut place_of: BTreeMap<String, usize> = BTreeMap::new();
            for artifact in artifacts {
                let Some(reason) = artifact.verdict.reason() else { continue };
                let place = *place_of.entry(reason.clone()).or_insert(reasons.len());
                if place == reasons.len() {
                    reasons.push((reason, Vec::new()));
                }
                reasons[place].1.push(artifact);
            }
            for (reason, artifacts) in reasons {
                let shown = if self.lists_all { artifacts.len() } else { 1 };
                for (number, artifact) in artifacts.iter().take(shown).enumerate() {
                    let others = match artifacts.len() - shown {
                        n @ 1.. if number + 1 == shown => format!(" and {n} more"),
                        _ => String::new(),
                    };
                    let line = format!("  {}{others}: {reason}", artifact.path.display());
                    text += &(visible_in_line(&line) + "\n");
                }
            }
        }
        text += &format!("in all: {}\n", counts(self.each().map(|(_, artifact)| artifact)));
        text
    }

    fn lines(&self) -> Box<dyn Iterator<Item = Value> + '_> {
        Box::new(self.each().map(|(stage, artifact)| {
            let mut record = json!({"stage": stage.name, "benchmark": stage.benchmark});
            if let (Value::Object(record), Value::Object(artifact)) =
                (&mut record, artifact.to_record())
            {
                record.extend(artifact);
            }
            record
        }))
    }

    fn columns(&self) -> Vec<NamedColumn> {
        let names = [
            "stage", "benchmark", "artifact", "kind", "state", "reason", "differences", "upstream",
        ];
        columns(Text, names).chain(columns(Integer, ["requests"])).collect()
    }
}

/// Returns counts such as `2 to make, 1 that may change, 3 current`.
fn counts<'p>(artifacts: impl Iterator<Item = &'p PlannedArtifact>) -> String {
    let (mut make, mut may_change, mut current, mut perhaps) = (0, 0, 0, 0);
    for artifact in artifacts {
        match artifact.verdict {
            PlanVerdict::Current => current += 1,
            PlanVerdict::Upstream(_) => may_change += 1,
            PlanVerdict::Perhaps(_) => perhaps += 1,
            _ => make += 1,
        }
    }
    let parts = [
        (make, "to build"),
        (may_change, "to build if their inputs change"),
        (perhaps, "that may be built"),
        (current, "current"),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> =
        parts.map(|(count, what)| format!("{} {what}", group(count))).collect();
    if parts.is_empty() { "nothing to build".into() } else { parts.join(", ") }
}
