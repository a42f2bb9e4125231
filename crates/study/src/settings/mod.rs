//! Settings: declared once, given by flags, the environment, a file or a profile, and typed after parsing.

mod declaration;
mod declared;
mod departure;
mod resolved;
mod sources;
mod value;

pub use declaration::{
    AllowedValues, Arity, FlagCompletion, Group, Invocation, OtherNames, Setting, SettingTexts,
    expected_whole, variable,
};
pub use declared::{
    BUNDLED, BundledProfile, DECLARED, Declarations, KEY_VARIABLES, Paper, SETTINGS, SettingValues,
    completable, variable_of,
};
pub use departure::Departure;
pub use resolved::Settings;
pub use sources::{COMPLETION, check_environment, mask_found_keys, profile_values};
pub use value::{
    FragmentPaths, FragmentUnit, MetricName, OtherModel, PolicyName, SettingSource, SettingValue,
    SourcedValue, StyleName, TokenizerName, Vectorizer,
};
