//! Settings on the command line: their flags, and the page that lists them.

mod flags;
mod page;

pub(crate) use flags::{SHOW, SettingFlags, ValueList};
pub(crate) use page::{explain, settings_page};
pub(crate) use repoformer_study::settings::{
    COMPLETION, DECLARED, Declarations, Departure, FlagCompletion, KEY_VARIABLES, MetricName,
    Paper, Setting, SettingValue, Settings, StyleName, check_environment, completable, variable_of,
};
