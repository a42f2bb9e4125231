//! Settings: declared once, given by flags, the environment, a file or a profile.

mod declaration;
mod declared;
mod flags;
mod resolved;

pub(crate) use declaration::{Given, Listed};
pub(crate) use flags::SettingFlags;
pub(crate) use resolved::{Settings, check_environment};
