//! Chosen settings that contradict the profile of a paper.

use std::fmt;

use serde_json::{Value, json};

use super::declaration::{Effect, Group, Setting};
use super::declared::{Paper, SETTINGS, declared};
use super::resolved::{PaperProfile, Settings, Source};

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

impl PaperProfile {
    /// True if the paper fixes the setting.
    fn fixes(&self, setting: &Setting) -> bool {
        match setting.effect {
            Effect::Always => true,
            Effect::IfInProfile => {
                matches!(self.settings.origin(setting.key), Some(Source::Profile(_)))
            }
            Effect::Layout => self.paper.has_one_layout(),
            Effect::Never => false,
        }
    }
}

impl Settings {
    /// Name of the paper's profile in force.
    pub(crate) fn paper_profile(&self) -> Option<&'static str> {
        self.paper_profile.as_ref().map(|profile| profile.name)
    }

    /// The paper whose profile is in force.
    pub(crate) fn paper(&self) -> Option<Paper> {
        self.paper_profile.as_ref().map(|profile| profile.paper)
    }

    /// Chosen settings that contradict the paper's profile in force. Settings whose several values are compared with each other,
    /// such as rankers, are no contradiction.
    pub(crate) fn departures(&self) -> Vec<Departure> {
        let Some(profile) = &self.paper_profile else {
            return Vec::new();
        };
        let departure = |setting: &'static Setting| {
            let key = setting.key;
            let (value, usual) = (self.list(key), profile.settings.list(key));
            let is_varied = value.len() > 1 && setting.group != Group::Scores;
            // Tasks with their contexts, which no model completes, have no layout.
            let is_varied = is_varied || setting.effect == Effect::Layout && value == ["attach"];
            // Nobody chose the values that a subcommand sets.
            let is_chosen =
                !self.is_default(key) && !matches!(self.origin(key), Some(Source::Subcommand(_)));
            let usual = match usual {
                [] => setting.default_text.unwrap_or("not set").to_owned(),
                usual => usual.join(","),
            };
            let departure = Departure { key, value: value.join(","), usual };
            (is_chosen && !is_varied && departure.value != departure.usual).then_some(departure)
        };
        let fixed = SETTINGS.iter().filter(|setting| profile.fixes(setting));
        fixed.filter_map(departure).collect()
    }

    /// Departures of a command that uses these settings alone.
    pub(crate) fn departures_among(&self, is_used: impl Fn(&str) -> bool) -> Vec<Departure> {
        let mut departures = self.departures();
        departures.retain(|departure| is_used(departure.key));
        departures
    }

    /// Departures for tasks of any kind.
    pub(crate) fn departures_of_kinds(&self) -> Vec<Departure> {
        let mut all = self.departures();
        let of_functions = self.of_functions().departures();
        let more: Vec<_> = of_functions.into_iter().filter(|one| !all.contains(one)).collect();
        all.extend(more);
        all
    }

    /// The departure from a value that a key usually has.
    pub(crate) fn departure_from(&self, key: &str, usual: &str) -> Option<Departure> {
        let (key, value) = (declared(key)?.key, self.list(key).join(","));
        (value != usual).then(|| Departure { key, value, usual: usual.to_owned() })
    }

    /// The line that names the departures from the paper's profile in force, if there are any.
    pub(crate) fn departure_line(&self) -> Option<String> {
        self.line_of(&self.departures())
    }

    /// The line that names these departures from the paper's profile in force, if there are any.
    pub(crate) fn line_of(&self, departures: &[Departure]) -> Option<String> {
        let profile = self.paper_profile().filter(|_| !departures.is_empty())?;
        Some(Departure::line(&format!("in profile {profile}"), departures))
    }
}
