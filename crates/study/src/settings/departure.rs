//! Chosen settings that contradict a paper's profile.

use std::fmt;

use serde_json::{Value, json};

use super::declaration::{Effect, Group, Setting};
use super::declared::{Paper, find_setting};
use super::resolved::{PaperProfile, Settings};
use super::value::{SettingSource, SettingValue, StyleName};

/// Setting that contradicts the profile in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure {
    /// Key of the setting.
    pub key: &'static str,
    /// Value in force.
    pub value: String,
    /// Value in the profile, or in the paper.
    pub usual: String,
}

impl Departure {
    /// Lists departures in one line: `not as in profile crosscodeeval: metrics = repocoder instead of crosscodeeval`.
    pub fn line(what: &str, departures: &[Self]) -> String {
        let each: Vec<String> = departures.iter().map(Self::to_string).collect();
        format!("not as {what}: {}", each.join(", "))
    }

    /// Returns `{"setting", "value", "usual"}`.
    pub fn to_record(&self) -> Value {
        json!({"setting": self.key, "value": self.value, "usual": self.usual})
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} instead of {}", self.key, self.value, self.usual)
    }
}

impl PaperProfile {
    /// Returns true if the paper fixes the setting.
    fn fixes(&self, setting: &Setting) -> bool {
        match setting.effect {
            Effect::Always => true,
            Effect::IfInProfile => {
                let entry = self.settings.entry(setting);
                entry.is_some_and(|entry| matches!(entry.source(), SettingSource::Profile(_)))
            }
            Effect::Layout => self.paper.has_one_layout(),
            Effect::Never => false,
        }
    }
}

impl Settings {
    /// Returns the name of the paper's profile in force.
    pub fn paper_profile(&self) -> Option<&'static str> {
        self.paper_profile.as_ref().map(|profile| profile.name)
    }

    /// Returns the paper whose profile is in force.
    pub fn paper(&self) -> Option<Paper> {
        self.paper_profile.as_ref().map(|profile| profile.paper)
    }

    /// Returns the chosen settings that contradict the paper's profile in force. A setting with several values to compare, such
    /// as rankers, is not a contradiction.
    pub fn departures(&self) -> Vec<Departure> {
        self.entries().into_iter().filter_map(|entry| self.departure(entry)).collect()
    }

    /// Returns the departure of a setting, if its value was chosen and contradicts the profile in force.
    fn departure(&self, entry: &dyn SettingValue) -> Option<Departure> {
        // Values that a subcommand sets were not chosen by anybody.
        let is_chosen =
            !entry.is_default() && !matches!(entry.source(), SettingSource::Subcommand(_));
        is_chosen.then(|| self.departure_of(entry.setting(), &entry.texts()))?
    }

    /// Returns the departure of these values, if they contradict the profile in force.
    fn departure_of(&self, setting: &'static Setting, values: &[String]) -> Option<Departure> {
        let profile = self.paper_profile.as_ref().filter(|profile| profile.fixes(setting))?;
        let is_varied = values.len() > 1 && setting.group != Group::Scores;
        // Tasks with their contexts attached are not completed by a model here, so they have no layout.
        let is_varied = is_varied
            || setting.effect == Effect::Layout && *self.prompt_style == StyleName::Attach;
        let usual = profile.settings.entry(setting).map_or_else(Vec::new, SettingValue::texts);
        let usual = match &usual[..] {
            [] => setting.default_text.unwrap_or("not set").to_owned(),
            usual => usual.join(","),
        };
        let departure = Departure { key: setting.key, value: values.join(","), usual };
        (!is_varied && departure.value != departure.usual).then_some(departure)
    }

    /// Returns the departures of a command that uses only the settings for which `is_used` returns true.
    pub fn departures_among(&self, is_used: impl Fn(&Setting) -> bool) -> Vec<Departure> {
        let used = self.entries().into_iter().filter(|entry| is_used(entry.setting()));
        used.filter_map(|entry| self.departure(entry)).collect()
    }

    /// Returns the departures of these settings; a flag of the command itself may replace a setting.
    pub fn departures_with(&self, flags: &[(&'static Setting, Option<&str>)]) -> Vec<Departure> {
        let departure = |(setting, flag): &(&'static Setting, Option<&str>)| match flag {
            Some(value) => self.departure_of(setting, &[(*value).to_owned()]),
            None => self.departure(self.entry(setting)?),
        };
        flags.iter().filter_map(departure).collect()
    }

    /// Returns the departures for tasks of any kind.
    pub fn departures_of_kinds(&self) -> Vec<Departure> {
        let mut all = self.departures();
        let of_functions = self.of_functions().departures();
        let more: Vec<_> = of_functions.into_iter().filter(|one| !all.contains(one)).collect();
        all.extend(more);
        all
    }

    /// Returns the departure of the setting with this key from its usual value.
    pub fn departure_from(&self, key: &str, usual: &str) -> Option<Departure> {
        let setting = find_setting(key)?;
        let value = self.entry(setting)?.texts().join(",");
        (value != usual).then(|| Departure { key: setting.key, value, usual: usual.to_owned() })
    }

    /// Returns the line that names the departures from the paper's profile in force, if there are any.
    pub fn departure_line(&self) -> Option<String> {
        self.line_of(&self.departures())
    }

    /// Returns the line that names these departures from the paper's profile in force, if there are any.
    pub fn line_of(&self, departures: &[Departure]) -> Option<String> {
        let profile = self.paper_profile().filter(|_| !departures.is_empty())?;
        Some(Departure::line(&format!("in profile {profile}"), departures))
    }
}
