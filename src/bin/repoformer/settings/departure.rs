//! Chosen settings that contradict the profile of a paper.

use std::fmt;

use anyhow::Result;
use serde_json::{Value, json};

use super::declaration::{Group, Setting};
use super::declared::{BUNDLED, SETTINGS, declared};
use super::resolved::{Settings, Source};
use super::sources::parse;

/// A setting that contradicts the profile in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) key: &'static str,
    pub(crate) value: String,
    /// Value in the profile, or in the paper.
    pub(crate) usual: String,
}

impl Departure {
    /// Names departures in a line: `not as in profile crosscodeeval: metrics = repocoder instead of crosscodeeval`.
    pub(crate) fn line(what: &str, departures: &[Self]) -> String {
        let each: Vec<String> = departures.iter().map(Self::to_string).collect();
        format!("not as {what}: {}", each.join(", "))
    }

    /// Returns `{"setting", "value", "usual"}`.
    pub(crate) fn to_record(&self) -> Value {
        json!({"setting": self.key, "value": self.value, "usual": self.usual})
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} instead of {}", self.key, self.value, self.usual)
    }
}

/// A paper's profile by itself: the settings of a run that chooses nothing else.
#[derive(Debug, Clone)]
pub(super) struct PaperProfile {
    name: &'static str,
    pub(super) settings: Box<Settings>,
}

impl Settings {
    /// Name of the paper's profile in force.
    pub(crate) fn paper_profile(&self) -> Option<&'static str> {
        self.paper_profile.as_ref().map(|profile| profile.name)
    }

    /// Chosen settings that contradict the paper's profile in force. Settings whose several values are compared with each other,
    /// such as rankers, are no contradiction.
    pub(crate) fn departures(&self) -> Vec<Departure> {
        let Some(PaperProfile { settings: profile, .. }) = &self.paper_profile else {
            return Vec::new();
        };
        let departure = |setting: &'static Setting| {
            let key = setting.key;
            let value = self.list(key);
            let is_varied = value.len() > 1 && setting.group != Group::Scores;
            // A layout is the model's, unless it is the paper itself.
            let is_models = key == "prompt-style" && profile.text(key) != Some("repocoder");
            let is_alike = value == profile.list(key) || is_varied;
            // What a subcommand demands is its own.
            let is_chosen =
                !self.is_default(key) && !matches!(self.origin(key), Some(Source::Subcommand(_)));
            if !setting.shapes_results(profile.is_profiles(key))
                || !is_chosen
                || is_alike
                || is_models
            {
                return None;
            }
            let usual = match profile.list(key) {
                [] => setting.default_text.unwrap_or("not set").to_owned(),
                values => values.join(","),
            };
            Some(Departure { key, value: value.join(","), usual })
        };
        SETTINGS.iter().filter_map(departure).collect()
    }

    /// Departures for tasks of any kind.
    pub(crate) fn departures_of_kinds(&self) -> Vec<Departure> {
        let mut all = self.departures();
        let of_functions = self.of_functions().departures();
        all.extend(of_functions.into_iter().filter(|one| !self.departures().contains(one)));
        all
    }

    /// The departure from a value that a key usually has.
    pub(crate) fn departure_from(&self, key: &str, usual: &str) -> Option<Departure> {
        let (key, value) = (declared(key)?.key, self.list(key).join(","));
        (value != usual).then(|| Departure { key, value, usual: usual.to_owned() })
    }

    /// The line that names the departures from the paper's profile in force, if there are any.
    pub(crate) fn departure_line(&self) -> Option<String> {
        let departures = self.departures();
        let profile = self.paper_profile().filter(|_| !departures.is_empty())?;
        Some(Departure::line(&format!("in profile {profile}"), &departures))
    }

    /// Whether a profile sets the value.
    fn is_profiles(&self, key: &str) -> bool {
        matches!(self.origin(key), Some(Source::Profile(_)))
    }
}

/// The settings of a bundled profile by itself, if it is a paper's.
pub(super) fn paper_profile(name: &str) -> Result<Option<PaperProfile>> {
    let mut papers = BUNDLED.iter().filter(|(name, _)| *name != "demo");
    let Some((name, text)) = papers.find(|(bundled, _)| *bundled == name) else {
        return Ok(None);
    };
    let mut settings = Settings::defaults();
    settings.set_file(&parse(text, name)?, &Source::Profile((*name).into()));
    settings.follow_unit();
    settings.set("postprocess", vec!["own".into()], Source::Default);
    Ok(Some(PaperProfile { name, settings: Box::new(settings) }))
}
