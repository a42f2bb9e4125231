//! A dry run: every stage decides as usual which artifacts are current, but makes none.
//!
//! Later stages treat an artifact that would have been made as if it existed, with a header whose checksum marks it as planned.
//! An artifact that has such an input and is otherwise current is made again only if the input turns out different.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::{HashMap, HashSet};
use repoformer_store::artifact::{ArtifactState, Difference, Header, Identity};
use repoformer_text::counts::part;
use serde_json::{Value, json};

/// The artifacts that a dry run would have made so far.
#[derive(Debug, Clone, Default)]
pub struct Plan(Arc<Mutex<HashMap<PathBuf, Header>>>);

/// An artifact of a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedArtifact {
    /// Path of the artifact.
    pub path: PathBuf,
    /// Kind of content: `prompts`.
    pub kind: String,
    /// Decision about the artifact.
    pub verdict: PlanVerdict,
    /// Requests that a server would get.
    pub requests: Requests,
}

/// Requests that a server gets for an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Requests {
    /// None, or their number is not stated.
    #[default]
    None,
    /// So many.
    Known(usize),
    /// Their number depends on prompts that are not made yet.
    Open,
}

impl Requests {
    /// Returns the number of requests, if it is known.
    pub fn as_known(self) -> Option<usize> {
        match self {
            Self::Known(number) => Some(number),
            Self::None | Self::Open => None,
        }
    }
}

/// Decision of a dry run about an artifact, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanVerdict {
    /// The artifact is current.
    Current,
    /// The artifact is missing.
    Missing,
    /// The artifact was made with other settings or inputs.
    Stale(Vec<Difference>),
    /// The artifact cannot be read.
    Damaged(String),
    /// Some prompts lack a prediction that is available now.
    Incomplete {
        /// Number of predictions.
        there: u64,
        /// Number of prompts.
        prompts: u64,
    },
    /// The artifact is current if these inputs, given by name, turn out unchanged.
    Upstream(Vec<(String, PathBuf)>),
    /// The file is written each time.
    EachTime,
    /// The file is written under a condition, given in words, that is not known before.
    Perhaps(&'static str),
}

impl PlanVerdict {
    /// Returns the name, such as `stale`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Missing => "missing",
            Self::Stale(_) => "stale",
            Self::Damaged(_) => "damaged",
            Self::Incomplete { .. } => "incomplete",
            Self::Upstream(_) => "upstream",
            Self::EachTime => "each-time",
            Self::Perhaps(_) => "perhaps",
        }
    }

    /// Returns why the artifact would be made; `None` if it would not be.
    pub fn reason(&self) -> Option<String> {
        Some(match self {
            Self::Current => return None,
            Self::Missing => "missing".into(),
            Self::Stale(differences) => {
                let all: Vec<String> = differences.iter().map(ToString::to_string).collect();
                all.join(", ")
            }
            Self::Damaged(reason) => reason.clone(),
            Self::Incomplete { there, prompts } => {
                let missing = prompts - there;
                part(missing as usize, *prompts as usize, "prompt", ["has", "have"])
                    + " no prediction"
            }
            Self::Upstream(inputs) => {
                let mut names: Vec<&str> = inputs.iter().map(|(name, _)| name.as_str()).collect();
                names.dedup();
                let noun = if names.len() == 1 { "its input" } else { "one of its inputs" };
                format!("rebuilt if {noun} changes: {}", names.join(", "))
            }
            Self::EachTime => "always written".into(),
            Self::Perhaps(condition) => format!("written if {condition}"),
        })
    }
}

impl PlannedArtifact {
    /// Returns the entry for a file that is no artifact.
    pub fn file(path: PathBuf, kind: &str, verdict: PlanVerdict) -> Self {
        Self { path, kind: kind.to_owned(), verdict, requests: Requests::None }
    }

    /// Returns `artifact, kind, state, reason[, differences][, upstream][, requests]`.
    pub fn to_record(&self) -> Value {
        let mut record = json!({
            "artifact": self.path.display().to_string(),
            "kind": self.kind,
            "state": self.verdict.name(),
            "reason": self.verdict.reason(),
        });
        if let PlanVerdict::Stale(differences) = &self.verdict {
            record["differences"] = differences.iter().map(Difference::to_record).collect();
        }
        if let PlanVerdict::Upstream(inputs) = &self.verdict {
            let of_input = |(name, path): &(String, PathBuf)| json!({"input": name, "artifact": path.display().to_string()});
            record["upstream"] = inputs.iter().map(of_input).collect();
        }
        if let Some(requests) = self.requests.as_known() {
            record["requests"] = requests.into();
        }
        record
    }
}

/// Start of the digest of content that does not exist yet; paths follow.
const PLANNED: &str = "planned: ";

/// Returns the digest of content with parts that have these checksums, if a part is only planned; otherwise `None`.
pub(super) fn planned_digest<'c>(checksums: impl Iterator<Item = &'c str>) -> Option<String> {
    let paths: BTreeSet<&str> = checksums.flat_map(planned_paths).collect();
    let paths: Vec<&str> = paths.into_iter().collect();
    (!paths.is_empty()).then(|| format!("{PLANNED}{}", paths.join("\n")))
}

/// Returns the paths of the planned artifacts that a digest stands for.
fn planned_paths(digest: &str) -> impl Iterator<Item = &str> {
    digest.strip_prefix(PLANNED).into_iter().flat_map(|paths| paths.split('\n'))
}

/// True if an input of an artifact does not exist yet.
pub(super) fn is_planned(identity: &Identity) -> bool {
    identity.inputs.values().any(|digest| digest.starts_with(PLANNED))
}

impl Plan {
    /// Returns the header that an artifact would have, if the dry run would make it.
    pub(super) fn get(&self, path: &Path) -> Option<Header> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    /// Adds an artifact that would be made.
    pub(super) fn add(&self, path: &Path, identity: &Identity) -> Header {
        let header = Header::from_plan(identity, format!("{PLANNED}{}", path.display()));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(path.to_owned(), header.clone());
        header
    }

    /// Decides about an artifact by its `state` for an identity; `recorded` is the header of the existing artifact.
    pub(super) fn decide(
        &self,
        path: &Path,
        identity: &Identity,
        recorded: Option<Header>,
        state: impl Fn(&Identity) -> ArtifactState,
    ) -> (PlanVerdict, Header) {
        if let Some(header) = self.get(path) {
            // An earlier stage of this run would have made it.
            let differences = header.identity.differences(identity);
            return if differences.is_empty() {
                (PlanVerdict::Current, header)
            } else {
                (PlanVerdict::Stale(differences), self.add(path, identity))
            };
        }
        // The planned inputs are not known yet. They count as unchanged, as long as there is no other reason to make the
        // artifact.
        let mut as_they_were = identity.clone();
        let mut upstream: Vec<(String, PathBuf)> = Vec::new();
        let mut known: HashSet<PathBuf> = HashSet::default();
        for (name, digest) in &mut as_they_were.inputs {
            let paths: Vec<PathBuf> = planned_paths(digest).map(PathBuf::from).collect();
            let before = recorded.as_ref().and_then(|header| header.identity.inputs.get(name));
            if let (false, Some(before)) = (paths.is_empty(), before) {
                digest.clone_from(before);
            }
            let new = paths.into_iter().filter(|path| known.insert(path.clone()));
            upstream.extend(new.map(|path| (name.clone(), path)));
        }
        let verdict = match state(&as_they_were) {
            ArtifactState::Current(header) if upstream.is_empty() => {
                return (PlanVerdict::Current, *header);
            }
            ArtifactState::Current(_) => PlanVerdict::Upstream(upstream),
            ArtifactState::Missing => PlanVerdict::Missing,
            ArtifactState::Stale(differences) => PlanVerdict::Stale(differences),
            ArtifactState::Damaged(reason) => PlanVerdict::Damaged(reason),
        };
        (verdict, self.add(path, identity))
    }
}
