//! The settings in force: defaults, then a profile, a file, the environment and flags, each beating the ones before.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, anyhow, bail};

use repoformer::error::{self, Access, Error, did_you_mean, nearest};
use repoformer::store::files;
use serde_json::{Value, json};

use super::declaration::{Given, Group, PREFIX, Setting, Values, variable};
use super::declared::{BUNDLED, KEY_VARIABLES, SETTINGS, declared, profiles};
use super::flags::SettingFlags;
use crate::output::fail;

/// The file of settings that is read where no other is named.
const FOUND_BY_ITSELF: &str = "repoformer.toml";

/// Variable by which a shell asks for completions.
pub(crate) const COMPLETION: &str = "REPOFORMER_COMPLETE";

/// Variables that are not settings: the server's key, the mark of test runs, that of completions, and what the project's own
/// tests read.
const OTHER_VARIABLES: [&str; 13] = [
    "API_KEY", "POLICY_API_KEY", "SERVE_TOKEN", "RUN", "COMPLETE", "CORPORA", "CORPUS",
    "EMBEDDINGS", "EMBEDDINGS_MODEL", "FIXTURES", "LABELS", "NLTK_WORDS", "NLTK_38_WORDS",
];

/// Origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
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

/// A setting that contradicts the profile in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) key: &'static str,
    pub(crate) value: String,
    /// Value in the profile, or in the paper.
    pub(crate) usual: String,
}

impl Departure {
    /// Names departures in a line: `not as in profile crosscodeeval: metrics = repocoder instead of crosscodeeval`.
    pub(crate) fn line(what: &str, departures: &[Self]) -> String {
        let each: Vec<String> = departures.iter().map(Self::to_string).collect();
        format!("not as {what}: {}", each.join(", "))
    }

    /// Returns `{"setting", "value", "usual"}`.
    pub(crate) fn to_record(&self) -> Value {
        json!({"setting": self.key, "value": self.value, "usual": self.usual})
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} instead of {}", self.key, self.value, self.usual)
    }
}

/// A paper's profile alone: the settings of a run that chooses nothing else.
#[derive(Debug, Clone)]
struct PaperProfile {
    name: &'static str,
    settings: Box<Settings>,
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
    paper_profile: Option<PaperProfile>,
    /// Whether the subcommand completes prompts.
    completes: bool,
}

/// Contents of a file of settings.
#[derive(Debug, Default)]
struct FileSettings {
    all: Given,
    /// Its section `[function]`.
    of_functions: Given,
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
    fn defaults() -> Self {
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
        settings.paper_profile = profile.map(|name| paper_profile(name)).transpose()?.flatten();
        Ok(settings)
    }

    fn set_all(&mut self, given: &Given, source: &Source) {
        for (key, values) in given {
            self.set(key, values.clone(), source.clone());
        }
    }

    fn set_file(&mut self, file: &FileSettings, source: &Source) {
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

    /// Name of the paper's profile in force.
    pub(crate) fn paper_profile(&self) -> Option<&'static str> {
        self.paper_profile.as_ref().map(|profile| profile.name)
    }

    /// Chosen settings that contradict the paper's profile in force. Several values of a setting that a run compares, such as
    /// rankers, do not contradict it.
    pub(crate) fn departures(&self) -> Vec<Departure> {
        let Some(PaperProfile { settings: profile, .. }) = &self.paper_profile else {
            return Vec::new();
        };
        let departure = |setting: &'static Setting| {
            let key = setting.key;
            let value = self.list(key);
            let is_varied = value.len() > 1 && setting.group != Group::Scores;
            // The prompt style follows from the model, except RepoCoder's, which is part of the method.
            let is_models = key == "prompt-style" && profile.text(key) != Some("repocoder");
            let is_alike = value == profile.list(key) || is_varied;
            // A subcommand's own demands are no departures.
            let is_chosen =
                !self.is_default(key) && !matches!(self.origin(key), Some(Source::Subcommand(_)));
            if !setting.shapes_results(profile.is_profiles(key))
                || !is_chosen
                || is_alike
                || is_models
            {
                return None;
            }
            let usual = match profile.list(key) {
                [] => setting.default_text.unwrap_or("not set").to_owned(),
                values => values.join(","),
            };
            Some(Departure { key, value: value.join(","), usual })
        };
        SETTINGS.iter().filter_map(departure).collect()
    }

    /// Departures for tasks of any kind.
    pub(crate) fn departures_of_kinds(&self) -> Vec<Departure> {
        let mut all = self.departures();
        let of_functions = self.of_functions().departures();
        all.extend(of_functions.into_iter().filter(|one| !self.departures().contains(one)));
        all
    }

    /// The departure from a value that a key usually has.
    pub(crate) fn departure_from(&self, key: &str, usual: &str) -> Option<Departure> {
        let (key, value) = (declared(key)?.key, self.list(key).join(","));
        (value != usual).then(|| Departure { key, value, usual: usual.to_owned() })
    }

    /// The line that names the departures from the paper's profile in force, if there are any.
    pub(crate) fn departure_line(&self) -> Option<String> {
        let departures = self.departures();
        let profile = self.paper_profile().filter(|_| !departures.is_empty())?;
        Some(Departure::line(&format!("in profile {profile}"), &departures))
    }

    /// True if a profile sets the value.
    fn is_profiles(&self, key: &str) -> bool {
        matches!(self.origin(key), Some(Source::Profile(_)))
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
    fn set(&mut self, key: &'static str, values: Vec<String>, source: Source) {
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
    fn follow_unit(&mut self) {
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

    /// A flag that was given and is not one of these.
    pub(crate) fn flag_beside(&self, known: &[&str]) -> Option<&'static str> {
        self.first(|setting| self.is_flag(setting.key) && !known.contains(&setting.key))
    }

    fn first(&self, is_it: impl Fn(&Setting) -> bool) -> Option<&'static str> {
        SETTINGS.iter().find(|setting| is_it(setting)).map(|one| one.key)
    }

    fn origin(&self, key: &str) -> Option<&Source> {
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
    fn is_default(&self, key: &str) -> bool {
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
    let written = |value: &String| {
        if is_number { value.clone() } else { toml::Value::from(value.as_str()).to_string() }
    };
    let all = values.iter().map(written).collect::<Vec<_>>().join(", ");
    // One value of what mostly has one.
    let is_one = values.len() == 1 && setting.default.is_some();
    if setting.is_list() && !is_one { format!("[{all}]") } else { all }
}

/// Refuses environment variables that look like settings and are none.
pub(crate) fn check_environment() -> Result<()> {
    environment().map(drop)
}

/// The settings that the environment holds.
fn environment() -> Result<Given> {
    let mut found = Given::new();
    for (name, value) in std::env::vars_os() {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        let Some(rest) = name.strip_prefix(PREFIX) else {
            continue;
        };
        if OTHER_VARIABLES.contains(&rest) || value.is_empty() {
            continue;
        }
        let Some(setting) = SETTINGS.iter().find(|one| variable(one.key) == name) else {
            let names: Vec<String> = SETTINGS.iter().map(|one| variable(one.key)).collect();
            let names = names.iter().map(|name| &name[PREFIX.len()..]);
            return fail(
                format!("unknown environment variable {name}"),
                meant(rest, names, PREFIX, "variable"),
            );
        };
        found.insert(setting.key, setting.split(&value));
    }
    Ok(found)
}

/// Hint at the setting that was probably meant; where none is like it, the nearest, and where all are listed.
fn meant<'n>(
    given: &str,
    known: impl Iterator<Item = &'n str> + Clone,
    prefix: &str,
    noun: &str,
) -> String {
    if let Some(name) = error::meant(given, known.clone()) {
        return format!("did you mean '{prefix}{name}'?");
    }
    let nearest = nearest(given, known).unwrap_or_default();
    format!(
        "the nearest {noun} is '{prefix}{nearest}'; `repoformer run --show-settings` lists all settings"
    )
}

/// The settings of a bundled profile alone, if it is a paper's.
fn paper_profile(name: &str) -> Result<Option<PaperProfile>> {
    let mut papers = BUNDLED.iter().filter(|(name, _)| *name != "demo");
    let Some((name, text)) = papers.find(|(bundled, _)| *bundled == name) else {
        return Ok(None);
    };
    let mut settings = Settings::defaults();
    settings.set_file(&parse(text, name)?, &Source::Profile((*name).into()));
    settings.follow_unit();
    settings.set("postprocess", vec!["own".into()], Source::Default);
    Ok(Some(PaperProfile { name, settings: Box::new(settings) }))
}

fn read_profile(name: &str) -> Result<FileSettings> {
    let own = Path::new("configs").join(format!("{name}.toml"));
    if own.is_file() {
        return read_file(&own);
    }
    match BUNDLED.iter().find(|(bundled, _)| *bundled == name) {
        Some((_, text)) => parse(text, &format!("profile {name}")),
        None => {
            let names = profiles();
            fail(
                format!("unknown profile '{name}'; known: {}", names.join(", ")),
                did_you_mean(name, names.iter().map(String::as_str)).unwrap_or_else(|| {
                    format!("a profile of your own is configs/{name}.toml in the working folder")
                }),
            )
        }
    }
}

/// The values of a key in the text of a bundled profile.
pub(super) fn profile_values(text: &str, key: &str) -> Option<Vec<String>> {
    parse(text, "profile").ok()?.all.remove(key)
}

fn read_file(path: &Path) -> Result<FileSettings> {
    let text = files::read_to_string(path).map_err(|reason| Error::Io {
        path: path.to_owned(),
        access: Access::Read,
        action: "read this configuration",
        reason,
    })?;
    parse(&text, &path.display().to_string())
}

fn parse(text: &str, name: &str) -> Result<FileSettings> {
    let mut table: toml::Table = text
        .parse()
        .map_err(|e: toml::de::Error| anyhow!("{name}: {}", e.to_string().trim_end()))?;
    let of_functions = match table.remove(FUNCTIONS) {
        Some(toml::Value::Table(section)) => given(&section, name)?,
        Some(_) => bail!("{name}: {FUNCTIONS} must be a section, [{FUNCTIONS}]"),
        None => Given::new(),
    };
    let is_of_all = |key: &&&str| {
        let group = declared(key).map(|setting| setting.group);
        group == Some(Group::DataSet) || matches!(**key, "unit" | "model" | "endpoint")
    };
    if let Some(key) = of_functions.keys().find(is_of_all) {
        return fail(
            format!("{name}: '{key}' cannot depend on the tasks' kind"),
            format!("set it outside of [{FUNCTIONS}]"),
        );
    }
    Ok(FileSettings { all: given(&table, name)?, of_functions })
}

/// Section of a file with the settings of tasks whose holes are function bodies.
const FUNCTIONS: &str = "function";

/// The settings of a table.
fn given(table: &toml::Table, name: &str) -> Result<Given> {
    let mut found = Given::new();
    for (key, value) in table {
        let Some(setting) = declared(key).filter(|setting| setting.in_files) else {
            let known = SETTINGS.iter().filter(|setting| setting.in_files);
            return fail(
                format!("{name}: unknown key '{key}'"),
                meant(key, known.map(|setting| setting.key), "", "key"),
            );
        };
        let values = match value {
            toml::Value::Array(list) if setting.is_list() => {
                list.iter().map(|value| scalar(setting, value, name)).collect::<Result<_>>()?
            }
            single => setting.split(&scalar(setting, single, name)?),
        };
        found.insert(setting.key, values);
    }
    Ok(found)
}

/// One value of a file as text.
fn scalar(setting: &Setting, value: &toml::Value, name: &str) -> Result<String> {
    let expected = match (value, &setting.values) {
        (toml::Value::String(text), _) => return Ok(text.clone()),
        (toml::Value::Integer(number), _) => return Ok(number.to_string()),
        (toml::Value::Float(number), Values::Number(..)) => return Ok(number.to_string()),
        (toml::Value::Boolean(is), Values::Switch) => {
            return Ok(if *is { "yes" } else { "no" }.into());
        }
        (_, Values::Whole(_)) => "a whole number",
        (_, Values::Number(..)) => "a number",
        (_, Values::Switch) => "true or false",
        _ => "a text",
    };
    bail!("{name}: {} must be {expected}, not {}", setting.key, value.type_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_files_hold_known_keys_and_values() {
        for (name, text) in BUNDLED {
            let file = parse(text, name).unwrap();
            for (key, values) in file.all.into_iter().chain(file.of_functions) {
                for value in values {
                    declared(key).unwrap().check(&value, name).unwrap();
                }
            }
        }
    }

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

    #[test]
    fn other_variables_are_not_settings() {
        for name in OTHER_VARIABLES {
            let name = format!("{PREFIX}{name}");
            assert!(SETTINGS.iter().all(|setting| variable(setting.key) != name));
        }
    }
}
