//! Settings in force: defaults, then a profile, a file, the environment and flags, each of which overrides the ones before.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use repoformer_core::retrieve::QueryForm;
use repoformer_pipeline::{Messages, NoMessages};
use repoformer_store::files;
use repoformer_text::message;
use repoformer_text::visible::is_hidden;

use super::declaration::{self, Group, Invocation, Setting, SettingTexts, variable};
use super::declared::{
    BundledProfile, DECLARED, KEY_VARIABLES, Paper, SettingValues, find_bundled,
};
use super::sources::{
    FOUND_BY_ITSELF, FileSettings, environment, own_profile, parse, read_file, read_profile,
};
use super::value::{FragmentUnit, SettingSource, SettingValue, StyleName, Vectorizer};
use crate::fail;

impl SettingValues {
    /// Returns the value of a setting.
    pub fn entry(&self, setting: &Setting) -> Option<&dyn SettingValue> {
        self.entries().into_iter().find(|entry| entry.setting() == setting)
    }

    fn put(&mut self, setting: &Setting, texts: &[String], source: &SettingSource) -> Result<()> {
        let mut entries = self.entries_mut().into_iter();
        let entry = entries.find(|entry| entry.setting() == setting);
        entry.map_or(Ok(()), |entry| entry.put(texts, source))
    }

    /// Prepends a folder to the relative paths of a configuration, for data in another folder.
    pub fn move_paths(&mut self, root: &Path) {
        self.repos_dir.replace(self.repos_dir.as_ref().map(|dir| root.join(dir)));
        self.tasks.replace(self.tasks.iter().map(|file| root.join(file)).collect());
    }

    /// Sets another folder of repositories, and the repositories in use; both settings keep the source of the folder.
    pub fn use_repositories(&mut self, dir: &Path, named: &[String]) {
        self.repos_dir.replace(Some(dir.to_owned()));
        if !named.is_empty() {
            self.repo.replace_from(named.to_vec(), self.repos_dir.source());
        }
    }

    /// Sets values that depend on the unit, unless the user chose them: RepoCoder's values for windows, Repoformer's for
    /// chunks.
    fn follow_unit(&mut self) {
        let is_chunks = *self.unit == FragmentUnit::Chunks;
        let words = is_chunks && self.tokenizer.is_default();
        self.vectorizer.follow(if words { Vectorizer::Words } else { Vectorizer::OneGram });
        self.query.follow(if is_chunks { QueryForm::LastLines } else { QueryForm::Window });
        self.prompt_style.follow(if is_chunks {
            StyleName::Style("plain".into())
        } else {
            StyleName::RepoCoder
        });
    }
}

/// Settings in force.
#[derive(Debug, Clone)]
pub struct Settings {
    values: SettingValues,
    /// Values for tasks whose holes are function bodies.
    of_functions: SettingValues,
    /// Settings whose values differ for those tasks.
    differing: Vec<&'static Setting>,
    /// True if the subcommand scores predictions.
    scores: bool,
    /// Bundled profile of a paper that is in force.
    pub(super) paper_profile: Option<PaperProfile>,
    /// True if the subcommand completes prompts.
    completes: bool,
    /// Receiver of messages from the code that uses the settings.
    pub messages: Arc<dyn Messages>,
}

impl Deref for Settings {
    type Target = SettingValues;

    fn deref(&self) -> &SettingValues {
        &self.values
    }
}

/// Settings of only a paper's profile, as in a run that chooses nothing else.
#[derive(Debug, Clone)]
pub(super) struct PaperProfile {
    pub(super) name: &'static str,
    pub(super) paper: Paper,
    pub(super) settings: Box<Settings>,
}

impl PaperProfile {
    /// Returns the bundled profile with this name, if it belongs to a paper.
    fn from_profile(name: &str) -> Result<Option<Self>> {
        let profile = find_bundled(name).and_then(|profile| Some((profile, profile.paper?)));
        let Some((&BundledProfile { name, text, .. }, paper)) = profile else {
            return Ok(None);
        };
        let mut settings = Settings::defaults()?;
        settings.put_file(&parse(text, name)?, &SettingSource::Profile(name.into()))?;
        settings.change(SettingValues::follow_unit);
        settings.put(&DECLARED.postprocess, &["own".into()], &SettingSource::Default)?;
        Ok(Some(Self { name, paper, settings: Box::new(settings) }))
    }
}

impl Settings {
    /// Returns the files from which settings can come, whether they exist or not: a server's key may be in them.
    pub fn files(&self) -> Vec<PathBuf> {
        let profile = self.profile.as_ref().map(|name| own_profile(name));
        let found = Some(PathBuf::from(FOUND_BY_ITSELF));
        [self.config.get().clone(), found, profile].into_iter().flatten().collect()
    }

    /// Resolves all settings.
    pub fn resolve(flags: &Invocation, messages: Arc<dyn Messages>) -> Result<Self> {
        Self::with_presets(flags, messages, |_| ())
    }

    /// Resolves the settings of a subcommand with flags of its own, from the environment and files.
    pub fn without_flags(messages: Arc<dyn Messages>) -> Result<Self> {
        let settings = Self::resolve(&Invocation::default(), messages)?;
        settings.check_shard(&Invocation::default())?;
        Ok(settings)
    }

    /// Resolves the settings of a subcommand with flags of its own, including `--shard`.
    pub fn of_shard(shard: Option<&str>, messages: Arc<dyn Messages>) -> Result<Self> {
        let given = shard.map(|shard| (&DECLARED.shard, vec![shard.to_owned()]));
        Self::resolve(&Invocation::giving(given), messages)
    }

    /// Rejects a shard if the subcommand works on all repositories.
    pub fn check_shard(&self, flags: &Invocation) -> Result<()> {
        match *self.shard {
            Some(shard) if !flags.has_shards => fail(
                format!(
                    "{} is {shard}, but this command works on all repositories",
                    variable(DECLARED.shard.key)
                ),
                message!["unset it, or run a command that has ", &DECLARED.shard],
            ),
            _ => Ok(()),
        }
    }

    /// Returns the defaults and the settings from the environment and flags, without files and profiles. Invalid values are
    /// left out.
    ///
    /// # Errors
    /// The environment has an unknown variable.
    pub fn without_files(flags: &Invocation) -> Result<Self> {
        let mut settings = Self::defaults()?;
        let environment = environment()?;
        for (given, source) in
            [(&environment, SettingSource::Environment), (&flags.given, SettingSource::Flag)]
        {
            for (setting, texts) in given.iter() {
                // The caller has already reported the error.
                let _ = settings.put(setting, texts, &source);
            }
        }
        Ok(settings)
    }

    /// Returns only the defaults.
    pub fn defaults() -> Result<Self> {
        let values = SettingValues::usual()?;
        Ok(Self {
            of_functions: values.clone(),
            values,
            differing: Vec::new(),
            scores: false,
            paper_profile: None,
            completes: false,
            messages: Arc::new(NoMessages),
        })
    }

    /// Returns the keys that a file, the environment or a flag set.
    pub fn chosen_keys(&self) -> Vec<&'static str> {
        let is_own = |entry: &&dyn SettingValue| {
            matches!(
                entry.source(),
                SettingSource::Flag | SettingSource::Environment | SettingSource::File(_)
            ) && !entry.texts().is_empty()
        };
        self.entries().into_iter().filter(is_own).map(SettingValue::key).collect()
    }

    /// Resolves all settings for a subcommand with defaults of its own.
    pub fn with_presets(
        flags: &Invocation,
        messages: Arc<dyn Messages>,
        preset: impl Fn(&mut SettingValues),
    ) -> Result<Self> {
        let environment = environment()?;
        let given = |setting| {
            flags.given.get(setting).or_else(|| environment.get(setting))?.first().cloned()
        };
        let config = given(&DECLARED.config).map(PathBuf::from).or_else(|| {
            let found = Path::new(FOUND_BY_ITSELF);
            // Otherwise, somebody else's file could choose the server that receives the key and the code.
            let is_read = found.is_file() && !flags.edits;
            if found.is_file() && !is_read {
                let name = found.display();
                messages.warning(message![
                    format!("{name}: not read, since it comes with this folder and could choose servers and paths; "),
                    &DECLARED.config,
                    format!(" {name} reads it")
                ]);
            }
            is_read.then(|| found.to_owned())
        });
        let file = config.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let mut settings = Self { messages, ..Self::defaults()? };
        settings.change(preset);
        let named = || file.all.get(&DECLARED.profile)?.first().cloned();
        let profile =
            given(&DECLARED.profile).or_else(named).or_else(|| (*settings.profile).clone());

        (settings.scores, settings.completes) = (flags.scores, flags.completes);
        if let Some(name) = &profile {
            settings.put_file(&read_profile(name)?, &SettingSource::Profile(name.clone()))?;
        }
        if let Some(path) = config {
            let name = path.to_string_lossy().into_owned();
            settings.put(&DECLARED.config, &[name], &SettingSource::Default)?;
            settings.put_file(&file, &SettingSource::File(path))?;
        }
        settings.put_all(&environment, &SettingSource::Environment)?;
        settings.put_all(&flags.given, &SettingSource::Flag)?;
        settings.change(SettingValues::follow_unit);
        files::confine(&settings.cache_dir);
        settings.paper_profile =
            profile.map(|name| PaperProfile::from_profile(&name)).transpose()?.flatten();
        Ok(settings)
    }

    /// Sets a value for all tasks, including tasks of functions.
    fn put(&mut self, setting: &Setting, texts: &[String], source: &SettingSource) -> Result<()> {
        self.differing.retain(|one| *one != setting);
        self.values.put(setting, texts, source)?;
        self.of_functions.put(setting, texts, source)
    }

    fn put_all(&mut self, given: &SettingTexts, source: &SettingSource) -> Result<()> {
        given.iter().try_for_each(|(setting, texts)| self.put(setting, texts, source))
    }

    pub(super) fn put_file(&mut self, file: &FileSettings, source: &SettingSource) -> Result<()> {
        self.put_all(&file.all, source)?;
        file.of_functions.iter().try_for_each(|(setting, texts)| {
            self.differing.retain(|one| *one != setting);
            self.differing.push(setting);
            self.of_functions.put(setting, texts, source)
        })
    }

    /// Changes the values for all tasks, including tasks of functions.
    pub fn change(&mut self, change: impl Fn(&mut SettingValues)) {
        change(&mut self.values);
        change(&mut self.of_functions);
    }

    /// Returns the settings with a change for all tasks.
    pub fn with(&self, change: impl Fn(&mut SettingValues)) -> Self {
        let mut with = self.clone();
        with.change(change);
        with
    }

    /// Returns the settings for tasks whose holes are function bodies.
    pub fn of_functions(&self) -> Self {
        let mut settings = self.clone();
        settings.values = settings.of_functions.clone();
        if let Some(PaperProfile { settings, .. }) = &mut settings.paper_profile {
            **settings = settings.of_functions();
        }
        settings
    }

    /// Returns true if the subcommand completes prompts.
    pub fn completes(&self) -> bool {
        self.completes
    }

    /// Returns true if the subcommand scores predictions.
    pub fn scores(&self) -> bool {
        self.scores
    }

    /// Returns true if tasks of functions have settings of their own.
    pub fn has_functions(&self) -> bool {
        !self.differing.is_empty()
    }

    /// Returns a setting that was chosen for this run but does not apply to this way of cutting files.
    pub fn chosen_of_other_unit(&self) -> Option<&'static Setting> {
        let unit = self.unit.name();
        self.first(|one| one.setting().only_for.is_some_and(|only| only != unit) && one.is_chosen())
    }

    /// Returns a setting of servers that was chosen for this run.
    pub fn chosen_for_server(&self) -> Option<&'static Setting> {
        self.first(|one| one.setting().group == Group::Server && one.is_chosen())
    }

    /// Returns a setting of completions whose flag was given.
    pub fn completion_flag(&self) -> Option<&'static Setting> {
        let is_one =
            |setting: &Setting| setting.group == Group::Server || *setting == DECLARED.seed;
        self.first(|one| is_one(one.setting()) && one.is_flag())
    }

    /// Returns a given flag that a command does not use.
    pub fn unused_flag(&self, is_used: impl Fn(&Setting) -> bool) -> Option<&'static Setting> {
        self.first(|one| one.is_flag() && !is_used(one.setting()))
    }

    fn first(&self, is_it: impl Fn(&dyn SettingValue) -> bool) -> Option<&'static Setting> {
        self.entries().into_iter().find(|one| is_it(*one)).map(SettingValue::setting)
    }

    /// Returns the lines of `--show-settings`: TOML, with each value's source as a comment.
    pub fn lines(&self) -> Vec<String> {
        let line = |entry: &&dyn SettingValue| {
            let (setting, texts) = (entry.setting(), entry.texts());
            let (key, source) = (setting.key, entry.source().of(setting));
            let text = match *entry.source() {
                SettingSource::Unset => format!("# {key} ="),
                // Users keep this output and share it, in files and logs of experiments.
                _ if may_hold_key(setting, &texts) => {
                    return format!(
                        "{:<48} # {source}, not shown: its URL may hold a key",
                        format!("# {key} ="),
                    );
                }
                _ => format!("{key} = {}", toml_value(setting, &texts)),
            };
            format!("{text:<48} # {source}")
        };
        let in_files = |entry: &&dyn SettingValue| entry.setting().in_files;
        let mut lines: Vec<String> =
            self.entries().iter().filter(|e| in_files(e)).map(line).collect();
        if self.has_functions() {
            lines.push("[function]".into());
            let differs = |entry: &&&dyn SettingValue| self.differing.contains(&entry.setting());
            lines.extend(self.of_functions.entries().iter().filter(differs).map(line));
        }
        lines
    }
}

/// Returns true if the setting is a URL with a user name or a query.
fn may_hold_key(setting: &Setting, values: &[String]) -> bool {
    let is_url = KEY_VARIABLES.iter().any(|(of, _)| *of == setting);
    is_url && values.iter().any(|url| url.contains(['?', '@']))
}

fn toml_value(setting: &Setting, values: &[String]) -> String {
    let is_number = matches!(
        setting.values,
        declaration::AllowedValues::Whole(_) | declaration::AllowedValues::Number(..)
    );
    let written = |value: &String| match () {
        () if is_number => value.clone(),
        () if value.contains(is_hidden) => escape(value),
        () => toml::Value::from(value.as_str()).to_string(),
    };
    let all = values.iter().map(written).collect::<Vec<_>>().join(", ");
    // A list with a default usually has one value, which needs no brackets.
    let is_one = values.len() == 1 && setting.default.is_some();
    if setting.is_list() && !is_one { format!("[{all}]") } else { all }
}

/// Returns a TOML string with hidden characters escaped, for files and terminals.
fn escape(value: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c < ' ' || is_hidden(c) => format!("\\U{:08X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", value.chars().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::super::declared::{SETTINGS, find_setting};
    use super::*;

    #[test]
    fn functions_have_settings_of_their_own_unless_somebody_chose_others() {
        let file = |text| parse(text, "x.toml").unwrap();
        let mut settings = Settings::defaults().unwrap();
        let text =
            "max-tokens = 50\nquery-lines = 20\n[function]\nmax-tokens = 256\nquery-lines = 50";
        settings.put_file(&file(text), &SettingSource::Profile("p".into())).unwrap();
        assert_eq!((*settings.max_tokens, *settings.of_functions().max_tokens), (50, 256));
        let source = SettingSource::File("x.toml".into());
        settings.put_file(&file("query-lines = 7"), &source).unwrap();
        settings.put(&DECLARED.max_tokens, &["9".into()], &SettingSource::Flag).unwrap();
        let own = settings.of_functions();
        assert_eq!((*own.max_tokens, *own.query_lines), (9, 7));
        assert!(!settings.has_functions());
        let error = parse("[function]\ntasks = \"t\"", "x.toml").unwrap_err().to_string();
        assert!(error.contains("'tasks' cannot depend on the kind of the tasks"), "{error}");
    }

    #[test]
    fn a_wrong_value_is_refused_even_if_another_one_beats_it() {
        let mut settings = Settings::defaults().unwrap();
        let top_k = &DECLARED.top_k;
        let refused = settings.put(top_k, &["0".into()], &SettingSource::Environment).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "invalid top-k '0' (from environment REPOFORMER_TOP_K): expected a whole number from 1 to 4294967295"
        );
        settings.put(top_k, &["5".into()], &SettingSource::Flag).unwrap();
        assert!(settings.top_k.is_flag() && *settings.top_k == 5);
    }

    #[test]
    fn defaults_are_valid_and_keys_differ() {
        let mut keys = std::collections::BTreeSet::new();
        for setting in SETTINGS {
            assert!(keys.insert(setting.key), "{}", setting.key);
            assert!(find_setting(setting.key).is_some());
            if let Some(default) = setting.default {
                setting.check(default, "default").unwrap();
            }
        }
        Settings::defaults().unwrap();
    }
}
