//! Settings: declared once, given by flags, the environment, a file or a profile.

mod declaration;
mod declared;
mod flags;
mod listed;
mod resolved;

pub(crate) use declaration::Given;
pub(crate) use flags::SettingFlags;
pub(crate) use listed::Listed;
pub(crate) use resolved::Settings;
