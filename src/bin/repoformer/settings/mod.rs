//! Settings: declared once, given by flags, the environment, a file or a profile.

mod declaration;
mod declared;
mod flags;
mod page;
mod resolved;

pub(crate) use declaration::{Completable, Given, Listed};
pub(crate) use declared::{KEY_VARIABLES, POLICY_KEY_VARIABLE, completable, variable_of};
pub(crate) use flags::{SHOW, SettingFlags};
pub(crate) use page::settings_page;
pub(crate) use resolved::{COMPLETION, Departure, Settings, check_environment};
