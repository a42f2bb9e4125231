//! The settings in force: defaults, then a profile, a file, the environment and flags, each beating the ones before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, anyhow};
use repoformer_store::files;
use repoformer_text::visible::is_hidden;

use super::declaration::{Given, Group, Setting, Values, variable};
use super::declared::{BundledProfile, KEY_VARIABLES, Paper, SETTINGS, bundled, declared};
use super::flags::SettingFlags;
use super::sources::{FOUND_BY_ITSELF, FileSettings, environment, parse, read_file, read_profile};
use crate::output::fail;

/// Origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Default,
    /// The default of a subcommand.
    Subcommand(&'static str),
    Profile(String),
    File(PathBuf),
    Environment,
    Flag,
}

/// The values of a setting: one, unless it is a list.
#[derive(Debug, Clone)]
struct Sourced {
    values: Vec<String>,
    source: Source,
}

impl Sourced {
    /// The values of a key, with names instead of aliases.
    fn of(key: &str, values: &[String], source: Source) -> Self {
        let named = |value: &String| match declared(key) {
            Some(setting) => setting.canonical(value),
            None => value.clone(),
        };
        Self { values: values.iter().map(named).collect(), source }
    }
}

/// The settings in force.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, Sourced>,
    /// Those that take the place of others for tasks whose holes are function bodies.
    of_functions: BTreeMap<&'static str, Sourced>,
    /// Whether the subcommand scores predictions.
    scores: bool,
    /// The bundled profile of a paper that is in force.
    pub(super) paper_profile: Option<PaperProfile>,
    /// Whether the subcommand completes prompts.
    completes: bool,
}

/// A paper's profile alone: the settings of a run that chooses nothing else.
#[derive(Debug, Clone)]
pub(super) struct PaperProfile {
    pub(super) name: &'static str,
    pub(super) paper: Paper,
    pub(super) settings: Box<Settings>,
}

impl PaperProfile {
    /// Returns the bundled profile of a name, if it is a paper's.
    fn bundled(name: &str) -> Result<Option<Self>> {
        let profile = bundled(name).and_then(|profile| Some((profile, profile.paper?)));
        let Some((&BundledProfile { name, text, .. }, paper)) = profile else {
            return Ok(None);
        };
        let mut settings = Settings::defaults();
        settings.set_file(&parse(text, name)?, &Source::Profile(name.into()));
        settings.follow_unit();
        settings.set("postprocess", vec!["own".into()], Source::Default);
        Ok(Some(Self { name, paper, settings: Box::new(settings) }))
    }
}

impl Settings {
    /// Resolves all settings.
    pub(crate) fn resolve(flags: &SettingFlags) -> Result<Self> {
        Self::with_presets(flags, "", Given::new())
    }

    /// Resolves the settings of a subcommand that has flags of its own: those of the environment and of files.
    pub(crate) fn without_flags() -> Result<Self> {
        let settings = Self::resolve(&SettingFlags::default())?;
        settings.check_shard(&SettingFlags::default())?;
        Ok(settings)
    }

    /// Resolves the settings of a subcommand that has flags of its own, `--shard` among them.
    pub(crate) fn of_shard(shard: Option<&str>) -> Result<Self> {
        Self::resolve(&SettingFlags::of(shard.map(|shard| ("shard", vec![shard.to_owned()]))))
    }

    /// Refuses a shard where the subcommand works on all repositories.
    pub(crate) fn check_shard(&self, flags: &SettingFlags) -> Result<()> {
        match self.text("shard") {
            Some(shard) if !flags.has_shards => fail(
                format!(
                    "{} is {shard}, and this command works on all repositories",
                    variable("shard")
                ),
                "unset it, or run a command that has --shard",
            ),
            _ => Ok(()),
        }
    }

    /// The defaults, and what the environment and flags set: no file and no profile.
    ///
    /// # Errors
    /// The environment has an unknown variable.
    pub(crate) fn without_files(flags: &SettingFlags) -> Result<Self> {
        let mut settings = Self::defaults();
        settings.set_all(&environment()?, &Source::Environment);
        settings.set_all(&flags.given, &Source::Flag);
        Ok(settings)
    }

    /// The defaults alone.
    pub(super) fn defaults() -> Self {
        let mut settings = Self::default();
        for setting in SETTINGS {
            if let Some(default) = setting.default {
                settings.set(setting.key, vec![default.to_owned()], Source::Default);
            }
        }
        settings
    }

    /// Keys that a file, the environment or a flag set.
    pub(crate) fn chosen(&self) -> Vec<&'static str> {
        let keys = SETTINGS.iter().map(|setting| setting.key);
        keys.filter(|key| !self.own(key).is_empty()).collect()
    }

    /// Resolves all settings for a subcommand with defaults of its own.
    pub(crate) fn with_presets(
        flags: &SettingFlags,
        subcommand: &'static str,
        presets: Given,
    ) -> Result<Self> {
        let environment = environment()?;
        let given = |key| flags.given.get(key).or_else(|| environment.get(key))?.first();
        let config = given("config").map(PathBuf::from).or_else(|| {
            let found = Path::new(FOUND_BY_ITSELF);
            found.is_file().then(|| found.to_owned())
        });
        let file = config.as_deref().map(read_file).transpose()?;
        let file = file.unwrap_or_default();
        let profile = given("profile").or_else(|| {
            let named = file.all.get("profile").or_else(|| presets.get("profile"));
            named?.first()
        });

        let SettingFlags { scores, completes, .. } = *flags;
        let mut settings = Self { scores, completes, ..Self::defaults() };
        settings.set_all(&presets, &Source::Subcommand(subcommand));
        if let Some(name) = profile {
            settings.set_file(&read_profile(name)?, &Source::Profile(name.clone()));
        }
        if let Some(path) = config {
            let name = path.to_string_lossy().into_owned();
            settings.set("config", vec![name], Source::Default);
            settings.set_file(&file, &Source::File(path));
        }
        settings.set_all(&environment, &Source::Environment);
        settings.set_all(&flags.given, &Source::Flag);
        settings.follow_unit();
        settings.check()?;
        files::confine(&settings.parsed::<PathBuf>("cache-dir")?);
        settings.paper_profile =
            profile.map(|name| PaperProfile::bundled(name)).transpose()?.flatten();
        Ok(settings)
    }

    fn set_all(&mut self, given: &Given, source: &Source) {
        for (key, values) in given {
            self.set(key, values.clone(), source.clone());
        }
    }

    pub(super) fn set_file(&mut self, file: &FileSettings, source: &Source) {
        self.set_all(&file.all, source);
        for (key, values) in &file.of_functions {
            self.of_functions.insert(key, Sourced::of(key, values, source.clone()));
        }
    }

    /// The settings for tasks whose holes are function bodies.
    pub(crate) fn of_functions(&self) -> Self {
        let mut settings = self.clone();
        settings.values.extend(self.of_functions.clone());
        if let Some(PaperProfile { settings, .. }) = &mut settings.paper_profile {
            **settings = settings.of_functions();
        }
        settings
    }

    /// Whether the subcommand completes prompts.
    pub(crate) fn completes(&self) -> bool {
        self.completes
    }

    /// Whether the subcommand scores predictions.
    pub(crate) fn scores(&self) -> bool {
        self.scores
    }

    /// Whether tasks of functions have settings of their own.
    pub(crate) fn has_functions(&self) -> bool {
        !self.of_functions.is_empty()
    }

    /// Sets a value for all tasks, those of functions included.
    pub(super) fn set(&mut self, key: &'static str, values: Vec<String>, source: Source) {
        self.of_functions.remove(key);
        self.values.insert(key, Sourced::of(key, &values, source));
    }

    /// Checks every value in force, wherever it came from.
    fn check(&self) -> Result<()> {
        for setting in SETTINGS {
            for sourced in [&self.values, &self.of_functions].map(|of| of.get(setting.key)) {
                for value in sourced.map_or(&[][..], |sourced| &sourced.values) {
                    setting.check(value, &self.source(setting.key))?;
                }
            }
        }
        Ok(())
    }

    /// Sets what a subcommand demands, whatever was given.
    pub(crate) fn fix(&mut self, key: &'static str, values: Vec<String>, subcommand: &'static str) {
        self.set(key, values, Source::Subcommand(subcommand));
    }

    /// These settings with the default of a subcommand for a key that has no value.
    #[cfg(feature = "serve")]
    pub(crate) fn with_default(
        &self,
        key: &'static str,
        value: &str,
        command: &'static str,
    ) -> Self {
        let mut with = self.clone();
        if !with.values.contains_key(key) {
            with.set(key, vec![value.to_owned()], Source::Subcommand(command));
        }
        with
    }

    /// These settings with the value of a command's own flag, if it was given.
    pub(crate) fn with_flag(&self, key: &'static str, value: Option<&str>) -> Self {
        let mut with = self.clone();
        if let Some(value) = value {
            with.set(key, vec![value.to_owned()], Source::Flag);
        }
        with
    }

    /// These settings with one of a key's values, which comes from where they came from.
    pub(crate) fn only(&self, key: &'static str, value: &str) -> Self {
        let mut one = self.clone();
        if let Some(setting) = one.values.get_mut(key) {
            setting.values = vec![value.to_owned()];
        }
        one
    }

    /// Puts a folder before the relative paths of a configuration, for data that lies in another folder.
    pub(crate) fn move_paths(&mut self, root: &Path) {
        for key in ["repos-dir", "tasks"] {
            if let Some(setting) = self.values.get_mut(key) {
                for value in &mut setting.values {
                    *value = root.join(&*value).to_string_lossy().into_owned();
                }
            }
        }
    }

    /// Sets another folder of repositories, and those of it that are used; both come from where the folder came from.
    pub(crate) fn use_repositories(&mut self, dir: &Path, named: Vec<String>) {
        let Some(source) = self.origin("repos-dir").cloned() else {
            return;
        };
        self.set("repos-dir", vec![dir.to_string_lossy().into_owned()], source.clone());
        if !named.is_empty() {
            self.set("repo", named, source);
        }
    }

    /// The values of a key, none where it is not set.
    pub(crate) fn list(&self, key: &str) -> &[String] {
        self.values.get(key).map_or(&[], |setting| &setting.values)
    }

    /// The value of a key.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.list(key).first().map(String::as_str)
    }

    /// The value of a key that has a default, parsed.
    pub(crate) fn parsed<T: FromStr<Err: Into<anyhow::Error>>>(&self, key: &str) -> Result<T> {
        let text = self.text(key).ok_or_else(|| anyhow!("{key} is not set"))?;
        self.parse(key, text)
    }

    /// The values of a key, parsed.
    pub(crate) fn parsed_list<T: FromStr<Err: Into<anyhow::Error>>>(
        &self,
        key: &str,
    ) -> Result<Vec<T>> {
        let values = self.list(key).iter();
        values.map(|text| self.parse(key, text)).collect()
    }

    /// The value of a key that may not be set, parsed.
    pub(crate) fn parsed_option<T: FromStr<Err: Into<anyhow::Error>>>(
        &self,
        key: &str,
    ) -> Result<Option<T>> {
        self.text(key).map(|text| self.parse(key, text)).transpose()
    }

    fn parse<T: FromStr<Err: Into<anyhow::Error>>>(&self, key: &str, text: &str) -> Result<T> {
        let source = self.source(key);
        text.parse()
            .map_err(|e: T::Err| e.into().context(format!("{key} '{text}' (from {source})")))
    }

    /// A setting that was chosen for this run and that this way of cutting files does not know.
    pub(crate) fn chosen_of_other_unit(&self) -> Option<&'static str> {
        let unit = self.text("unit");
        let is_other = |setting: &Setting| setting.only_for.is_some_and(|only| Some(only) != unit);
        self.first(|setting| is_other(setting) && self.is_chosen(setting.key))
    }

    /// Sets what follows from the unit where nobody chose it: RepoCoder's choices for windows, Repoformer's for chunks.
    pub(super) fn follow_unit(&mut self) {
        let is_chunks = self.text("unit") == Some("chunks");
        let words = is_chunks && self.is_default("tokenizer");
        let follow = [
            ("vectorizer", if words { "words" } else { "one-gram" }),
            ("query", if is_chunks { "last-n-lines" } else { "window" }),
            ("prompt-style", if is_chunks { "plain" } else { "repocoder" }),
        ];
        for (key, value) in follow {
            if self.text(key).is_none() {
                self.set(key, vec![value.to_owned()], Source::Default);
            }
        }
    }

    /// A setting of servers that was chosen for this run.
    pub(crate) fn chosen_for_server(&self) -> Option<&'static str> {
        self.first(|setting| setting.group == Group::Server && self.is_chosen(setting.key))
    }

    /// A setting of completions whose flag was given.
    pub(crate) fn completion_flag(&self) -> Option<&'static str> {
        let is_one = |setting: &Setting| setting.group == Group::Server || setting.key == "seed";
        self.first(|setting| is_one(setting) && self.is_flag(setting.key))
    }

    /// A given flag that a command does not use.
    pub(crate) fn unused_flag(&self, is_used: impl Fn(&str) -> bool) -> Option<&'static str> {
        self.first(|setting| self.is_flag(setting.key) && !is_used(setting.key))
    }

    fn first(&self, is_it: impl Fn(&Setting) -> bool) -> Option<&'static str> {
        SETTINGS.iter().find(|setting| is_it(setting)).map(|one| one.key)
    }

    pub(super) fn origin(&self, key: &str) -> Option<&Source> {
        self.values.get(key).map(|setting| &setting.source)
    }

    /// Whether the value was chosen for this run, on the command line or in the environment.
    pub(crate) fn is_chosen(&self, key: &str) -> bool {
        matches!(self.origin(key), Some(Source::Flag | Source::Environment))
    }

    /// Whether the value stands on the command line.
    pub(crate) fn is_flag(&self, key: &str) -> bool {
        self.origin(key) == Some(&Source::Flag)
    }

    /// The values of a key that stand on the command line, in the environment or in a file; a profile's do not count.
    pub(crate) fn own(&self, key: &str) -> &[String] {
        match self.origin(key) {
            Some(Source::Flag | Source::Environment | Source::File(_)) => self.list(key),
            _ => &[],
        }
    }

    /// Whether nobody chose the value.
    pub(super) fn is_default(&self, key: &str) -> bool {
        matches!(self.origin(key), None | Some(Source::Default))
    }

    /// The origin of a value, in words.
    fn source(&self, key: &str) -> String {
        match self.origin(key) {
            None => "not set".into(),
            Some(Source::Default) => "default".into(),
            Some(Source::Subcommand(name)) => (*name).into(),
            Some(Source::Profile(name)) => format!("profile {name}"),
            Some(Source::File(path)) => path.display().to_string(),
            Some(Source::Environment) => format!("environment {}", variable(key)),
            Some(Source::Flag) => "command line".into(),
        }
    }

    /// The lines of `--show-settings`: TOML, with each value's source as a comment.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |setting: &Setting| {
            let key = setting.key;
            let text = match self.values.get(key) {
                // Output is kept and passed on: in files, in logs of experiments.
                Some(known) if may_hold_key(setting, &known.values) => {
                    return format!(
                        "{:<48} # {}, not shown: its URL may hold a key",
                        format!("# {key} ="),
                        self.source(key)
                    );
                }
                Some(known) => format!("{key} = {}", toml_value(setting, &known.values)),
                None => format!("# {key} ="),
            };
            format!("{text:<48} # {}", self.source(key))
        };
        let settings = || SETTINGS.iter().filter(|setting| setting.in_files);
        let mut lines: Vec<String> = settings().map(line).collect();
        if self.has_functions() {
            lines.push("[function]".into());
            let own = self.of_functions();
            lines.extend(settings().filter_map(|setting| {
                let known = self.of_functions.get(setting.key)?;
                let text = format!("{} = {}", setting.key, toml_value(setting, &known.values));
                Some(format!("{text:<48} # {}", own.source(setting.key)))
            }));
        }
        lines
    }
}

/// Whether it is a URL with a user name or a query.
fn may_hold_key(setting: &Setting, values: &[String]) -> bool {
    let is_url = KEY_VARIABLES.iter().any(|(key, _)| *key == setting.key);
    is_url && values.iter().any(|url| url.contains(['?', '@']))
}

fn toml_value(setting: &Setting, values: &[String]) -> String {
    let is_number = matches!(setting.values, Values::Whole(_) | Values::Number(..));
    let written = |value: &String| match () {
        () if is_number => value.clone(),
        () if value.contains(is_hidden) => escaped(value),
        () => toml::Value::from(value.as_str()).to_string(),
    };
    let all = values.iter().map(written).collect::<Vec<_>>().join(", ");
    // One value of what mostly has one.
    let is_one = values.len() == 1 && setting.default.is_some();
    if setting.is_list() && !is_one { format!("[{all}]") } else { all }
}

/// A string of TOML with hidden characters as escapes, which a file may hold and a terminal may show.
fn escaped(value: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c < ' ' || is_hidden(c) => format!("\\U{:08X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", value.chars().map(escape).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_settings_of_their_own_unless_somebody_chose_others() {
        let file = |text| parse(text, "x.toml").unwrap();
        let mut settings = Settings::default();
        let profile = Source::Profile("p".into());
        settings.set_file(
            &file(
                "max-tokens = 50\nquery-lines = 20\n[function]\nmax-tokens = 256\nquery-lines = 50",
            ),
            &profile,
        );
        assert_eq!(
            (settings.text("max-tokens"), settings.of_functions().text("max-tokens")),
            (Some("50"), Some("256"))
        );
        settings.set_file(&file("query-lines = 7"), &Source::File("x.toml".into()));
        settings.set("max-tokens", vec!["9".into()], Source::Flag);
        let own = settings.of_functions();
        assert_eq!((own.text("max-tokens"), own.text("query-lines")), (Some("9"), Some("7")));
        let error = parse("[function]\ntasks = \"t\"", "x.toml").unwrap_err().to_string();
        assert!(error.contains("'tasks' cannot depend on the tasks' kind"), "{error}");
    }

    #[test]
    fn defaults_are_valid_and_keys_differ() {
        let mut keys = std::collections::BTreeSet::new();
        for setting in SETTINGS {
            assert!(keys.insert(setting.key), "{}", setting.key);
            if let Some(default) = setting.default {
                setting.check(default, "default").unwrap();
            }
        }
    }
}
