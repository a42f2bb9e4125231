//! Settings: declared once, given by flags, the environment, a file or a profile.

mod declaration;
mod declared;
mod flags;
mod page;
mod resolved;

pub(crate) use declaration::{Completable, Given, Listed};
pub(crate) use declared::completable;
pub(crate) use flags::SettingFlags;
pub(crate) use page::settings_page;
pub(crate) use resolved::{COMPLETION, Settings, check_environment};
