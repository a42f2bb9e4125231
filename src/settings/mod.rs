//! Settings: declared once, given by flags, the environment, a file or a profile.

mod declaration;
mod declared;
mod departure;
mod flags;
mod page;
mod resolved;
mod sources;
mod value;

pub(crate) use declaration::{Completable, Listed, Setting};
pub(crate) use declared::{DECLARED, Declared, KEY_VARIABLES, Paper, completable, variable_of};
pub(crate) use departure::Departure;
pub(crate) use flags::{SHOW, SettingFlags};
pub(crate) use page::settings_page;
pub(crate) use resolved::Settings;
pub(crate) use sources::{COMPLETION, check_environment};
pub(crate) use value::{
    Entry, FragmentPaths, MetricName, OtherModel, PolicyName, StyleName, TokenizerName, Unit,
    Vectorizer,
};
