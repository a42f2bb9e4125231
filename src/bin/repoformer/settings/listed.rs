//! Values that help and completion scripts list.

use std::fmt::Display;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

/// Lists values in help and completion scripts. Any text passes: the check belongs to whoever parses the value, so that a
/// flag's error reads like a file's.
#[derive(Debug, Clone)]
pub(crate) struct Listed(pub(super) Vec<String>);

impl Listed {
    pub(crate) fn of<T: Display>(values: impl IntoIterator<Item = T>) -> Self {
        Self(values.into_iter().map(|value| value.to_string()).collect())
    }

    pub(crate) fn and(mut self, value: &str) -> Self {
        self.0.push(value.to_owned());
        self
    }
}

impl TypedValueParser for Listed {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}
