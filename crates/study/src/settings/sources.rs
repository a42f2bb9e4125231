//! Settings from the environment, from files and from profiles.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use repoformer_models::endpoint::mask_keys_of;
use repoformer_store::error::{Access, Error};
use repoformer_store::files;
use repoformer_text::message;
use repoformer_text::message::{Message, UserChoice};
use repoformer_text::names::{did_you_mean, nearest};

use super::declaration::{AllowedValues, Group, PREFIX, Setting, SettingTexts, variable};
use super::declared::{DECLARED, SETTINGS, find_bundled, find_setting, profiles};
use crate::fail;

/// File of settings that is read if no other is named.
pub(super) const FOUND_BY_ITSELF: &str = "repoformer.toml";

/// Variable through which a shell asks for completions.
pub const COMPLETION: &str = "REPOFORMER_COMPLETE";

/// Variables that are not settings: the server's keys, the marks of test runs and of shell completion, and the variables of the
/// project's own tests.
const OTHER_VARIABLES: [&str; 13] = [
    "API_KEY", "POLICY_API_KEY", "SERVE_TOKEN", "RUN", "COMPLETE", "CORPORA", "CORPUS",
    "EMBEDDINGS", "EMBEDDINGS_MODEL", "FIXTURES", "LABELS", "NLTK_WORDS", "NLTK_38_WORDS",
];

/// Contents of a file of settings.
#[derive(Debug, Default)]
pub(super) struct FileSettings {
    pub(super) all: SettingTexts,
    /// Section `[function]`.
    pub(super) of_functions: SettingTexts,
}

/// Rejects environment variables that look like settings but are not.
pub fn check_environment() -> Result<()> {
    environment().map(drop)
}

/// Returns the settings that the environment gives.
pub(super) fn environment() -> Result<SettingTexts> {
    let mut found = SettingTexts::default();
    for (name, value) in std::env::vars_os() {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        if OTHER_VARIABLES.contains(&rest) || value.is_empty() {
            continue;
        }
        let Some(setting) = SETTINGS.iter().copied().find(|one| variable(one.key) == name) else {
            let names: Vec<String> = SETTINGS.iter().map(|one| variable(one.key)).collect();
            let names = names.iter().map(|name| &name[PREFIX.len()..]);
            return fail(
                format!("unknown environment variable {name}"),
                suggest(rest, names, PREFIX, "variable"),
            );
        };
        found.insert(setting, setting.split(&value));
    }
    Ok(found)
}

/// Returns a hint with the setting that was probably meant; if none is similar, with the nearest one and the list of all.
fn suggest<'n>(
    given: &str,
    known: impl Iterator<Item = &'n str> + Clone,
    prefix: &str,
    noun: &str,
) -> Message {
    if let Some(name) = repoformer_text::names::suggest(given, known.clone()) {
        return format!("did you mean '{prefix}{name}'?").into();
    }
    let nearest = nearest(given, known).unwrap_or_default();
    message![
        format!("the most similar {noun} is '{prefix}{nearest}'; see the "),
        UserChoice::ListOfSettings
    ]
}

/// Returns the path of the user's profile with a name.
pub(super) fn own_profile(name: &str) -> PathBuf {
    Path::new("configs").join(format!("{name}.toml"))
}

pub(super) fn read_profile(name: &str) -> Result<FileSettings> {
    let own = own_profile(name);
    // No file takes the place of a bundled profile: somebody else may have written it.
    match find_bundled(name) {
        Some(profile) => parse(profile.text, &format!("profile {name}")),
        None if own.is_file() => read_file(&own),
        None => {
            let names = profiles();
            fail(
                format!("unknown profile '{name}'; known: {}", names.join(", ")),
                did_you_mean(name, names.iter().map(String::as_str)).unwrap_or_else(|| {
                    format!(
                        "for a profile of your own, write configs/{name}.toml in the working folder"
                    )
                }),
            )
        }
    }
}

/// Returns the values of a setting in the text of a bundled profile.
pub fn profile_values(text: &str, setting: &Setting) -> Option<Vec<String>> {
    parse(text, "profile").ok()?.all.get(setting).map(<[String]>::to_vec)
}

pub(super) fn read_file(path: &Path) -> Result<FileSettings> {
    let text = files::read_to_string(path).map_err(|reason| Error::Io {
        path: path.to_owned(),
        access: Access::Read,
        action: "read this configuration",
        reason,
    })?;
    parse(&text, &path.display().to_string())
}

/// Masks the keys in URLs of the working folder's settings file, in answers that a command reads. A file that cannot be parsed is
/// ignored, because such a command does not use its settings.
pub fn mask_found_keys() {
    let path = Path::new(FOUND_BY_ITSELF);
    let text = path.is_file().then(|| files::read_to_string(path).ok()).flatten();
    let table: toml::Table = text.and_then(|text| text.parse().ok()).unwrap_or_default();
    let of_functions = table.get(FUNCTIONS).and_then(toml::Value::as_table);
    let values = table.values().chain(of_functions.into_iter().flat_map(toml::Table::values));
    values.filter_map(toml::Value::as_str).for_each(mask_keys_of);
}

pub(super) fn parse(text: &str, name: &str) -> Result<FileSettings> {
    let mut table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
        // The line may hold a key, so it is not repeated.
        let before = e.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        anyhow!("{name}:{line}: not TOML: {}", e.message())
    })?;
    let of_functions = match table.remove(FUNCTIONS) {
        Some(toml::Value::Table(section)) => read_table(&section, name)?,
        Some(_) => bail!("{name}: {FUNCTIONS} must be a section, [{FUNCTIONS}]"),
        None => SettingTexts::default(),
    };
    let is_of_all = |setting: &&Setting| {
        setting.group == Group::DataSet
            || [&DECLARED.unit, &DECLARED.model, &DECLARED.endpoint].contains(setting)
    };
    let settings = of_functions.iter().map(|(setting, _)| setting);
    if let Some(Setting { key, .. }) = settings.into_iter().find(is_of_all) {
        return fail(
            format!("{name}: '{key}' cannot depend on the kind of the tasks"),
            format!("set it outside [{FUNCTIONS}]"),
        );
    }
    Ok(FileSettings { all: read_table(&table, name)?, of_functions })
}

/// Section of a file for tasks whose holes are function bodies.
const FUNCTIONS: &str = "function";

/// Returns the settings of a table.
fn read_table(table: &toml::Table, name: &str) -> Result<SettingTexts> {
    let mut found = SettingTexts::default();
    for (key, value) in table {
        let Some(setting) = find_setting(key).filter(|setting| setting.in_files) else {
            let known = SETTINGS.iter().filter(|setting| setting.in_files);
            return fail(
                format!("{name}: unknown key '{key}'"),
                suggest(key, known.map(|setting| setting.key), "", "key"),
            );
        };
        let values = match value {
            toml::Value::Array(list) if setting.is_list() => {
                list.iter().map(|value| scalar(setting, value, name)).collect::<Result<_>>()?
            }
            single => setting.split(&scalar(setting, single, name)?),
        };
        found.insert(setting, values);
    }
    Ok(found)
}

/// Returns one value of a file as text.
fn scalar(setting: &Setting, value: &toml::Value, name: &str) -> Result<String> {
    let expected = match (value, &setting.values) {
        (toml::Value::String(text), _) => return Ok(text.clone()),
        (toml::Value::Integer(number), _) => return Ok(number.to_string()),
        (toml::Value::Float(number), AllowedValues::Number(..)) => return Ok(number.to_string()),
        (toml::Value::Boolean(is), AllowedValues::Switch) => {
            return Ok(if *is { "yes" } else { "no" }.into());
        }
        (_, AllowedValues::Whole(_)) => "a whole number",
        (_, AllowedValues::Number(..)) => "a number",
        (_, AllowedValues::Switch) => "true or false",
        _ => "a text",
    };
    bail!("{name}: {} must be {expected}, not {}", setting.key, value.type_str())
}

#[cfg(test)]
mod tests {
    use super::super::declared::{BUNDLED, BundledProfile, DECLARED, SETTINGS};
    use super::*;

    /// Languages and the papers' tables are only listed; yes and no need no words.
    #[test]
    fn every_known_value_is_explained() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-+.@".contains(c);
        let is_listed =
            |setting: &&&Setting| ["language", "paper", "paper-dataset"].contains(&setting.key);
        let mut missing = Vec::new();
        for setting in SETTINGS.iter().filter(|setting| !is_listed(setting)) {
            let help = match setting.key {
                // Refers to the other prompt style.
                "policy-prompt-style" => DECLARED.prompt_style.help,
                _ => setting.help,
            };
            let words: Vec<&str> =
                help.split(|c| !is_word(c)).map(|word| word.trim_end_matches('.')).collect();
            missing.extend(setting.names().into_iter().filter_map(|name| {
                let is_plain = ["yes", "no"].contains(&name.as_str());
                (!is_plain && !words.contains(&name.as_str()))
                    .then(|| format!("{}: {name}", setting.key))
            }));
        }
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn bundled_files_hold_known_keys_and_values() {
        for BundledProfile { name, text, .. } in &BUNDLED {
            let file = parse(text, name).unwrap();
            for (setting, values) in file.all.iter().chain(file.of_functions.iter()) {
                values.iter().for_each(|value| setting.check(value, name).unwrap());
            }
        }
    }

    #[test]
    fn other_variables_are_not_settings() {
        for name in OTHER_VARIABLES {
            let name = format!("{PREFIX}{name}");
            assert!(SETTINGS.iter().all(|setting| variable(setting.key) != name));
        }
    }
}
