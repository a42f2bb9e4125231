//! Conditions under which systems were run and scored: a comparison of numbers is fair if these are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use repoformer_core::completion::Api;
use repoformer_store::artifact::parameters;
use repoformer_store::error::Result;

use super::origin::Origin;

/// Settings of completions that a comparison holds fixed, by their names in headers. The model is not among them, since models
/// are compared.
const FIXED: [&str; 8] = [
    "instruction", "max-lines", "max-tokens", "prompt-end", "stop", "temperature", "top-p", "until",
];

/// Settings that the records of a server's predictions repeat, each with the value from the header.
const REPEATED: [&str; 6] =
    ["instruction", "max-tokens", "prompt-end", "temperature", "top-p", "until"];

/// Reads the parameters of predictions from their header, or else from their records; empty if neither has them.
///
/// # Errors
/// The predictions or their header cannot be read.
pub fn read_parameters(path: &Path) -> Result<BTreeMap<String, String>> {
    let recorded = parameters(path)?;
    if !recorded.is_empty() || !path.is_file() {
        return Ok(recorded);
    }
    let mut said = Origin::read(path)?.settings();
    said.retain(|name, _| REPEATED.contains(&name.as_str()));
    Ok(said)
}

/// Returns true if the header or a record of the predictions names the chat API. Returns false for a file that cannot be read
/// twice.
///
/// # Errors
/// The file or its header cannot be read.
pub fn are_chat_answers(path: &Path) -> Result<bool> {
    const API: &str = "api";
    let chat = Api::Chat.name();
    let recorded = parameters(path)?;
    match recorded.get(API) {
        Some(api) => Ok(api == chat),
        None if recorded.is_empty() && path.is_file() => {
            Ok(Origin::read(path)?.of(API).any(|api| api == chat))
        }
        None => Ok(false),
    }
}

/// Reads the parameters that predictions share with the predictions of other shards: [`read_parameters`], the model, and the
/// mode and style of their prompts.
///
/// # Errors
/// The predictions or their header cannot be read.
pub fn common(path: &Path) -> Result<BTreeMap<String, String>> {
    let mut known = read_parameters(path)?;
    known.extend(Origin::read(path)?.of_prompts());
    Ok(known)
}

/// Conditions of one system, as far as they are known, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions(BTreeMap<String, String>);

impl Conditions {
    /// Returns the conditions from the parameters of predictions; without parameters, no condition is known.
    pub fn of_predictions(parameters: &BTreeMap<String, String>) -> Self {
        let mut conditions = Self::default();
        for name in FIXED {
            match parameters.get(name) {
                Some(value) => conditions.set(name, value),
                // The embedded model is always greedy, and records no temperature.
                None if name == "temperature" && !parameters.is_empty() => conditions.set(name, 0),
                None => {}
            }
        }
        conditions
    }

    /// Adds a condition.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.0.insert(name.to_owned(), value.to_string());
    }

    /// Adds the cut of predictions before a metric.
    pub fn set_cut(&mut self, metric: &str, recipe: impl ToString) {
        self.set(&format!("cut for {metric}"), recipe);
    }

    /// Adds the largest number of samples of a task, if it is known.
    pub fn set_samples(&mut self, samples: usize) {
        if samples > 0 {
            self.set("samples", samples);
        }
    }
}

/// Describes the known conditions in which systems differ, one text per condition.
///
/// ```
/// use repoformer_evaluate::conditions::{Conditions, differences};
/// let header = |temperature: &str| [("temperature".to_owned(), temperature.to_owned())].into();
/// let [warm, cold] = ["0.8", "0"].map(|value| Conditions::of_predictions(&header(value)));
/// let systems = [("none", &warm), ("rg1", &cold), ("gt", &cold), ("theirs", &Conditions::default())];
/// assert_eq!(differences(&systems), ["temperature: 0.8 (none), 0 (rg1, gt)"]);
/// ```
pub fn differences(systems: &[(&str, &Conditions)]) -> Vec<String> {
    let names: BTreeSet<&String> = systems.iter().flat_map(|(_, known)| known.0.keys()).collect();
    let mut differences = Vec::new();
    for name in names {
        let mut values: Vec<(&str, Vec<&str>)> = Vec::new();
        for (system, known) in systems {
            let Some(value) = known.0.get(name) else { continue };
            match values.iter_mut().find(|(other, _)| other == value) {
                Some((_, of)) => of.push(system),
                None => values.push((value, vec![system])),
            }
        }
        if values.len() > 1 {
            let values = values.iter().map(|(value, of)| format!("{value} ({})", of.join(", ")));
            differences.push(format!("{name}: {}", values.collect::<Vec<_>>().join(", ")));
        }
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Predictions from other programs have no header, and may have been made with several settings.
    #[test]
    fn every_record_says_how_it_was_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.jsonl");
        let line = |temperature: f64| {
            format!(
                "{{\"task_id\": \"a\", \"pred\": \"x\", \"asked\": {{\"temperature\": {temperature:?}, \"max_tokens\": 8}}}}\n"
            )
        };
        let made = |temperatures: &[f64]| {
            std::fs::write(&path, temperatures.iter().copied().map(line).collect::<String>())
                .unwrap();
            read_parameters(&path).unwrap()
        };
        let greedy = made(&[0.0, 0.0]);
        assert_eq!(
            (&*greedy["temperature"], &*greedy["max-tokens"]),
            ("0", "8"),
            "as headers write"
        );
        let [both, one] = [made(&[0.0, 0.8]), greedy].map(|made| Conditions::of_predictions(&made));
        assert_eq!(
            differences(&[("a", &both), ("b", &one)]),
            ["temperature: 0 and 0.8 (a), 0 (b)"]
        );
    }
}
