//! Labelled instances from which policies learn and over which they are swept.

use std::path::{Path, PathBuf};

use repoformer_core::policy::model::{CalibrationMethod, LearnedPolicy, PolicyModel, train};
use repoformer_core::policy::{Examples, Measure, Policy};
use repoformer_store::error::{Error, Result};
use repoformer_store::files;
use repoformer_store::remark::Remark;
use repoformer_text::counts::{group, subject};
use repoformer_text::message;
use repoformer_text::message::UserChoice;

/// Files of labels whose curves are drawn together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSet {
    /// Name of the set, if it has one.
    pub name: Option<String>,
    /// Its files.
    pub files: Vec<PathBuf>,
}

impl LabelSet {
    /// Returns the sets of the files `NAME=FILE`, in the order of their first files; files without a name form one set. If the
    /// whole text is an existing path, the file has no name.
    pub fn list(given: &[PathBuf]) -> Vec<Self> {
        let mut sets: Vec<Self> = Vec::new();
        for path in given {
            let (name, file) = Self::parse(path);
            match sets.iter_mut().find(|set| set.name == name) {
                Some(set) => set.files.push(file),
                None => sets.push(Self { name, files: vec![file] }),
            }
        }
        sets
    }

    fn parse(path: &Path) -> (Option<String>, PathBuf) {
        match path.to_str().map(files::split_name) {
            Some((Some(name), file)) => (Some(name.to_owned()), file.into()),
            _ => (None, path.to_owned()),
        }
    }
}

/// Reads labelled instances for some policies by a measure, or by the measure of the labels. Instances whose query contained
/// the target are left out if a policy looks at the fragments, unless `keeps_targets` is set.
///
/// # Errors
/// A file cannot be read, its labels have two models, metrics or kinds of fragments, or no instance is left.
pub fn read_labels(
    files: &[PathBuf],
    policies: &[Policy],
    measure: Option<Measure>,
    keeps_targets: bool,
    tell: &dyn Fn(Remark),
) -> Result<Examples> {
    let mut examples = Examples::read(files, measure)?;
    tell(Remark::Problems(std::mem::take(&mut examples.problems)));
    for (missing, count) in &examples.unjudged {
        let instances = subject(*count, "instance", ["is", "are"]);
        let reason = format!("{instances} left out: not labelled (no {missing})");
        tell(Remark::Failed(reason.into()));
    }
    for (repeats, what) in [
        (
            &examples.repeated,
            ["repeats an id of its repository", "repeat an id of their repository"],
        ),
        (
            &examples.contradicting,
            ["is repeated with another label", "are repeated with another label"],
        ),
    ] {
        if let Some(first) = repeats.first() {
            let instances = subject(repeats.len(), "instance", what);
            let warning = format!("{instances} (first {first}); each counts");
            tell(Remark::Warning(warning.into()));
        }
    }
    let knowing = examples.all.iter().filter(|e| e.query_has_target).count();
    let looking: Vec<&str> =
        policies.iter().filter(|one| one.looks_at_fragments()).map(|one| one.name()).collect();
    if knowing > 0 && !looking.is_empty() {
        let (count, names) = (group(knowing), looking.join(", "));
        tell(Remark::Note(if keeps_targets {
            let done = format!("kept, although their fragments reveal the target to {names}");
            format!("{count} instances whose query contained the target are {done}").into()
        } else {
            let done = format!("left out, because their fragments reveal the target to {names}");
            message![format!("{count} "), UserChoice::TargetQueries, format!(" are {done}")]
        }));
        if keeps_targets {
            // These instances count like any other.
            examples.all.iter_mut().for_each(|example| example.query_has_target = false)
        } else {
            examples.all.retain(|example| !example.query_has_target)
        }
    }
    if examples.all.is_empty() && knowing > 0 {
        return Err(Error::from_refusal(
            "the query of every labelled instance contained the target",
            message!["add labels other than ", UserChoice::TargetQueries],
        ));
    }
    if examples.all.is_empty() {
        let by = match measure {
            Some(Measure::Similarity) => " by edit similarity",
            _ => "",
        };
        return Err(Error::from_refusal(
            "these files contain no labelled instances",
            message![UserChoice::JudgeInstances, by],
        ));
    }
    Ok(examples)
}

/// Trains a policy on the instances that have the necessary data; the others are left out.
///
/// # Errors
/// No instance has the data, or retrieval helped all or none of them.
pub fn train_on(
    mut examples: Examples,
    kind: LearnedPolicy,
    method: CalibrationMethod,
    tell: &dyn Fn(Remark),
) -> Result<PolicyModel> {
    let lacking = Policy::from(kind).lacking();
    let all = examples.all.len();
    examples.all.retain(|example| kind.has_data(example));
    match all - examples.all.len() {
        0 => {}
        count if count == all => {
            return Err(Error::from_refusal(
                message!["every instance lacks ", lacking],
                message![
                    "train ",
                    UserChoice::PolicyLearned,
                    ", which needs neither fragments nor probabilities"
                ],
            ));
        }
        count => {
            let instances =
                subject(count, "instance", ["is left out: it lacks ", "are left out: they lack "]);
            let reason = message![instances, lacking];
            tell(Remark::Failed(reason));
        }
    }
    let policy = train(&examples, kind, method)?;
    if let [only] = &policy.training.repositories[..] {
        let warning = format!(
            "all instances belong to one repository ({only}), so held-out quality is measured on \
             the training repository"
        );
        tell(Remark::Warning(warning.into()));
    }
    Ok(policy)
}
