//! Numbers that the paper states about its figures.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

/// Number that the paper states about a figure.
#[derive(Debug, Deserialize)]
pub(super) struct Fact {
    figure: u8,
    claim: String,
    unit: String,
    #[serde(rename = "where")]
    place: String,
    #[serde(flatten)]
    rest: BTreeMap<String, toml::Value>,
}

#[derive(Debug, Deserialize)]
struct Facts {
    #[serde(rename = "fact")]
    facts: Vec<Fact>,
}

impl Fact {
    /// Returns the fact as a line.
    pub(super) fn words(&self) -> String {
        let text = |value: &toml::Value| match value {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let about = ["model", "policy", "threshold", "dataset", "task"].iter();
        let about = about.filter_map(|key| self.rest.get(*key).map(text)).collect::<Vec<_>>();
        let about =
            if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
        let bound = [
            ("value", ""),
            ("about", "about "),
            ("at_least", "at least "),
            ("at_most", "at most "),
        ];
        let number = bound
            .iter()
            .find_map(|(key, words)| Some(format!("{words}{}", text(self.rest.get(*key)?))));
        let (claim, unit, place) = (&self.claim, &self.unit, &self.place);
        format!("- {claim}{about}: {} {unit} [{place}]", number.unwrap_or_default())
    }

    pub(super) fn record(&self) -> Value {
        let mut record = json!({
            "figure": format!("figure-{}", self.figure), "paper": self.claim, "unit": self.unit, "where": self.place,
        });
        for (key, value) in &self.rest {
            record[key] = json!(value);
        }
        record
    }
}

/// Returns the facts of a figure.
pub(super) fn facts(figure: u8) -> Result<Vec<Fact>> {
    let text = include_str!("../../data/paper/figures.toml");
    let all: Facts = toml::from_str(text).context("data of the figures")?;
    Ok(all.facts.into_iter().filter(|fact| fact.figure == figure).collect())
}
