//! Settings from flags, environment, file and profile, in this order of precedence, each with its source.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use repoformer::text::distance::levenshtein;

use crate::args::SettingFlags;
use crate::output::hinted;

/// The profiles and configurations that the program carries.
const BUNDLED: [(&str, &str); 5] = [
    ("demo", include_str!("../../../configs/demo.toml")),
    ("repocoder", include_str!("../../../configs/repocoder.toml")),
    (
        "repoformer-paper",
        include_str!("../../../configs/repoformer-paper.toml"),
    ),
    (
        "repoformer-release",
        include_str!("../../../configs/repoformer-release.toml"),
    ),
    (
        "crosscodeeval",
        include_str!("../../../configs/crosscodeeval.toml"),
    ),
];

/// Every key, in the order of `--show-settings`, and its default.
const KEYS: [(&str, Option<&str>); 18] = [
    ("repos-dir", None),
    ("repo", None),
    ("tasks", None),
    ("benchmark", None),
    ("cache-dir", Some("data/cache")),
    ("mode", None),
    ("profile", None),
    ("threads", Some("0")),
    ("window-size", Some("20")),
    ("slice-size", Some("2")),
    ("center", Some("half")),
    ("tokenizer", Some("p50k_base")),
    ("vectorizer", None),
    ("ranker", Some("jaccard")),
    ("top-k", Some("20")),
    ("max-blocks", Some("10")),
    ("max-prompt-tokens", Some("2000")),
    ("hole-guard", Some("strict")),
];
/// Keys of chunks, Repoformer's manner.
const CHUNK_KEYS: [(&str, Option<&str>); 24] = [
    ("unit", Some("windows")),
    ("language", None),
    ("walk", Some("glob")),
    ("chunk-size", Some("20")),
    ("chunk-stride", Some("10")),
    ("query", None),
    ("query-lines", Some("20")),
    ("align", Some("auto")),
    ("ties", Some("nearest")),
    ("max-files", None),
    ("max-chunks", None),
    ("fragment-paths", Some("repository")),
    ("prompt-style", None),
    ("right-context", Some("yes")),
    ("max-left-tokens", None),
    ("max-right-tokens", Some("512")),
    ("max-cross-file-tokens", Some("512")),
    ("endpoint", None),
    ("embedding-model", None),
    ("embedding-batch", Some("64")),
    ("embedding-concurrency", Some("2")),
    ("embedding-timeout", Some("600")),
    ("vectors", None),
    ("vector-texts", None),
];
/// Keys that only chunks know.
const CHUNKS_ONLY: [&str; 5] = [
    "chunk-size",
    "chunk-stride",
    "ties",
    "max-files",
    "max-chunks",
];
/// Keys that only windows know.
const WINDOWS_ONLY: [&str; 4] = ["window-size", "slice-size", "center", "hole-guard"];
/// Keys that hold a number where they are set.
const NUMBERS: [&str; 3] = ["max-files", "max-chunks", "max-left-tokens"];
/// Keys that only the stage of completion reads.
const MODEL_KEYS: [(&str, Option<&str>); 2] =
    [("model", Some("in-context")), ("max-tokens", Some("500"))];

/// Keys that only `run` reads.
const POLICY_KEYS: [(&str, Option<&str>); 2] = [("policy", None), ("policy-model", None)];

fn keys() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    KEYS.into_iter()
        .chain(CHUNK_KEYS)
        .chain(MODEL_KEYS)
        .chain(POLICY_KEYS)
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Default,
    Profile(String),
    File(PathBuf),
    Environment(String),
    Flag,
}

impl Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Profile(name) => write!(f, "profile {name}"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag => f.write_str("command line"),
        }
    }
}

/// One value: a list, of length 1 for most keys.
#[derive(Debug, Clone)]
struct Setting {
    values: Vec<String>,
    source: Source,
}

/// The settings in force.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, Setting>,
}

impl Settings {
    /// Resolves them all.
    pub(crate) fn resolve(flags: &SettingFlags) -> Result<Self> {
        let mut settings = Self::default();
        for (key, default) in keys() {
            if let Some(default) = default {
                settings.set(key, vec![default.to_owned()], Source::Default);
            }
        }
        let config = flags
            .config
            .clone()
            .or_else(|| variable("config").map(|(_, path)| path.into()));
        let file = config.as_deref().map(read_file).transpose()?;
        let profile = flags
            .profile
            .clone()
            .or_else(|| variable("profile").map(|(_, value)| value))
            .or_else(|| {
                let named = file.as_ref()?.iter().find(|(key, _)| *key == "profile")?;
                named.1.first().cloned()
            });
        if let Some(name) = &profile {
            for (key, values) in read_profile(name)? {
                settings.set(key, values, Source::Profile(name.clone()));
            }
        }
        for (key, values) in file.into_iter().flatten() {
            settings.set(
                key,
                values,
                Source::File(config.clone().unwrap_or_default()),
            );
        }
        for (key, _) in keys() {
            if let Some((name, value)) = variable(key) {
                settings.set(key, split_list(key, &value), Source::Environment(name));
            }
        }
        for (key, values) in flag_values(flags) {
            settings.set(key, values, Source::Flag);
        }
        settings.follow();
        Ok(settings)
    }

    /// Sets what follows from the unit where nobody chose it: RepoCoder's choices for windows, Repoformer's for chunks.
    fn follow(&mut self) {
        let is_chunks = self.text("unit") == Some("chunks");
        let vectorizer = match is_chunks && !self.is_chosen("tokenizer") {
            true => "words",
            false => "one-gram",
        };
        let (query, style) = match is_chunks {
            true => ("last-n-lines", "plain"),
            false => ("window", "repocoder"),
        };
        for (key, value) in [
            ("vectorizer", vectorizer),
            ("query", query),
            ("prompt-style", style),
        ] {
            if self.text(key).is_none() {
                self.set(key, vec![value.to_owned()], Source::Default);
            }
        }
    }

    fn set(&mut self, key: &'static str, values: Vec<String>, source: Source) {
        self.values.insert(key, Setting { values, source });
    }

    /// Puts a folder before the relative paths of a configuration, for data that lies elsewhere than here.
    pub(crate) fn move_paths(&mut self, root: &Path) {
        for key in ["repos-dir", "tasks"] {
            if let Some(setting) = self.values.get_mut(key) {
                for value in &mut setting.values {
                    *value = root.join(&*value).to_string_lossy().into_owned();
                }
            }
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
    pub(crate) fn parsed<T: FromStr>(&self, key: &str) -> Result<T>
    where
        T::Err: Display,
    {
        let text = self
            .text(key)
            .ok_or_else(|| anyhow!("--{key} is not set"))?;
        text.parse()
            .map_err(|e| anyhow!("{key} = {text:?} ({}): {e}", self.source(key)))
    }

    /// The values of a key, parsed.
    pub(crate) fn parsed_list<T: FromStr>(&self, key: &str) -> Result<Vec<T>>
    where
        T::Err: Display,
    {
        let parse = |text: &String| {
            text.parse()
                .map_err(|e| anyhow!("{key} ({}): {e}", self.source(key)))
        };
        self.list(key).iter().map(parse).collect()
    }

    /// The value of a key that may not be set, parsed.
    pub(crate) fn parsed_option<T: FromStr>(&self, key: &str) -> Result<Option<T>>
    where
        T::Err: Display,
    {
        let is_set = self.text(key).is_some();
        is_set.then(|| self.parsed(key)).transpose()
    }

    /// A key that was chosen for this one run and that this way of cutting files does not know.
    pub(crate) fn chosen_of_other_unit(&self, is_chunks: bool) -> Option<&'static str> {
        let others: &[&'static str] = if is_chunks {
            &WINDOWS_ONLY
        } else {
            &CHUNKS_ONLY
        };
        others.iter().copied().find(|key| self.is_chosen(key))
    }

    /// Whether the value was chosen for this one run.
    pub(crate) fn is_chosen(&self, key: &str) -> bool {
        let setting = self.values.get(key);
        setting
            .is_some_and(|setting| matches!(setting.source, Source::Flag | Source::Environment(_)))
    }

    /// A key beside these that stands on the command line.
    pub(crate) fn flag_beside(&self, known: &[&str]) -> Option<&'static str> {
        let is_flag = |setting: &Setting| setting.source == Source::Flag;
        let mut flags = self.values.iter().filter(|(_, setting)| is_flag(setting));
        let other = flags.find(|(key, _)| !known.contains(key));
        other.map(|(key, _)| *key)
    }

    fn source(&self, key: &str) -> String {
        self.values
            .get(key)
            .map_or_else(|| "not set".into(), |setting| setting.source.to_string())
    }

    /// The lines of `--show-settings`: TOML, with each value's source as a comment.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |(key, _): (&'static str, _)| match self.values.get(key) {
            Some(setting) => format!(
                "{:<48} # {}",
                format!("{key} = {}", toml_value(key, &setting.values)),
                setting.source
            ),
            None => format!("{:<48} # not set", format!("# {key} =")),
        };
        keys().map(line).collect()
    }
}

fn is_list(key: &str) -> bool {
    matches!(
        key,
        "repo" | "mode" | "tasks" | "policy" | "policy-model" | "window-size" | "slice-size"
    )
}

fn is_number(key: &str) -> bool {
    NUMBERS.contains(&key)
        || keys()
            .any(|(k, default)| k == key && default.is_some_and(|text| text.parse::<u64>().is_ok()))
}

fn toml_value(key: &str, values: &[String]) -> String {
    let quoted = |value: &String| {
        if is_number(key) && value.parse::<u64>().is_ok() {
            value.clone()
        } else {
            toml::Value::from(value.as_str()).to_string()
        }
    };
    let all: Vec<String> = values.iter().map(quoted).collect();
    if is_list(key) && !(is_number(key) && all.len() == 1) {
        format!("[{}]", all.join(", "))
    } else {
        all.join(", ")
    }
}

fn split_list(key: &str, value: &str) -> Vec<String> {
    if matches!(key, "mode" | "repo" | "window-size" | "slice-size") {
        value
            .split(',')
            .map(|part| part.trim().to_owned())
            .collect()
    } else {
        vec![value.to_owned()]
    }
}

fn variable(key: &str) -> Option<(String, String)> {
    let name = format!("REPOFORMER_{}", key.replace('-', "_").to_uppercase());
    let value = std::env::var(&name)
        .ok()
        .filter(|value| !value.is_empty())?;
    Some((name, value))
}

fn flag_values(flags: &SettingFlags) -> Vec<(&'static str, Vec<String>)> {
    let chunks = &flags.chunks;
    let single = [
        ("repos-dir", &flags.repos_dir),
        ("benchmark", &flags.benchmark),
        ("cache-dir", &flags.cache_dir),
        ("profile", &flags.profile),
        ("threads", &flags.threads),
        ("center", &flags.center),
        ("tokenizer", &flags.tokenizer),
        ("vectorizer", &flags.vectorizer),
        ("ranker", &flags.ranker),
        ("top-k", &flags.top_k),
        ("max-blocks", &flags.max_blocks),
        ("max-prompt-tokens", &flags.max_prompt_tokens),
        ("hole-guard", &flags.hole_guard),
        ("unit", &chunks.unit),
        ("language", &chunks.language),
        ("walk", &chunks.walk),
        ("chunk-size", &chunks.chunk_size),
        ("chunk-stride", &chunks.chunk_stride),
        ("query", &chunks.query),
        ("query-lines", &chunks.query_lines),
        ("align", &chunks.align),
        ("ties", &chunks.ties),
        ("max-files", &chunks.max_files),
        ("max-chunks", &chunks.max_chunks),
        ("fragment-paths", &chunks.fragment_paths),
        ("prompt-style", &chunks.prompt_style),
        ("right-context", &chunks.right_context),
        ("max-left-tokens", &chunks.max_left_tokens),
        ("max-right-tokens", &chunks.max_right_tokens),
        ("max-cross-file-tokens", &chunks.max_cross_file_tokens),
        ("endpoint", &chunks.endpoint),
        ("embedding-model", &chunks.embedding_model),
        ("embedding-batch", &chunks.embedding_batch),
        ("embedding-concurrency", &chunks.embedding_concurrency),
        ("embedding-timeout", &chunks.embedding_timeout),
        ("vectors", &chunks.vectors),
        ("vector-texts", &chunks.vector_texts),
        ("model", &flags.model),
        ("max-tokens", &flags.max_tokens),
    ];
    let lists = [
        ("repo", &flags.repo),
        ("window-size", &flags.window_size),
        ("slice-size", &flags.slice_size),
        ("tasks", &flags.tasks),
        ("mode", &flags.mode),
    ];
    let single = single
        .into_iter()
        .filter_map(|(key, value)| Some((key, vec![value.clone()?])));
    let lists = lists
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(key, list)| (key, list.clone()));
    single.chain(lists).collect()
}

fn read_profile(name: &str) -> Result<Vec<(&'static str, Vec<String>)>> {
    let own = Path::new("configs").join(format!("{name}.toml"));
    if own.is_file() {
        return read_file(&own);
    }
    match BUNDLED.iter().find(|(bundled, _)| *bundled == name) {
        Some((_, text)) => parse(text, &format!("profile {name}")),
        None => {
            let names = BUNDLED.map(|(name, _)| name).join(", ");
            Err(hinted(
                anyhow!("there is no profile {name:?}"),
                format!(
                    "bundled: {names}; an own one is configs/{name}.toml in the current folder"
                ),
            ))
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<(&'static str, Vec<String>)>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{}: cannot read this configuration", path.display()))?;
    parse(&text, &path.display().to_string())
}

fn parse(text: &str, name: &str) -> Result<Vec<(&'static str, Vec<String>)>> {
    let table: toml::Table = text
        .parse()
        .map_err(|e: toml::de::Error| anyhow!("{name}: {}", e.to_string().trim_end()))?;
    let mut settings = Vec::new();
    for (key, value) in &table {
        let Some((known, _)) = keys().find(|(known, _)| known == key) else {
            return Err(unknown_key(key, name));
        };
        let scalar = |value: &toml::Value| match value {
            toml::Value::String(text) => Ok(text.clone()),
            toml::Value::Integer(number) => Ok(number.to_string()),
            other => bail!(
                "{name}: {key} must be a text or a whole number, not {}",
                other.type_str()
            ),
        };
        let values = match value {
            toml::Value::Array(list) if is_list(key) => {
                list.iter().map(scalar).collect::<Result<_>>()?
            }
            single => vec![scalar(single)?],
        };
        settings.push((known, values));
    }
    Ok(settings)
}

fn unknown_key(key: &str, name: &str) -> anyhow::Error {
    let nearest = keys()
        .map(|(known, _)| known)
        .min_by_key(|known| levenshtein::distance(key, known));
    hinted(
        anyhow!("{name}: unknown key '{key}'"),
        format!("the nearest known key is '{}'", nearest.unwrap_or_default()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_beat_the_file_which_beats_the_profile() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        std::fs::write(
            &path,
            "profile = \"repocoder\"\ntop-k = 7\nwindow-size = 10\nmode = [\"rg1\", \"gt\"]\n",
        )
        .unwrap();
        let flags = SettingFlags {
            config: Some(path),
            window_size: vec!["30".into()],
            ..SettingFlags::default()
        };
        let settings = Settings::resolve(&flags).unwrap();
        assert_eq!(
            settings.text("hole-guard"),
            Some("reference"),
            "the profile's"
        );
        assert_eq!(settings.parsed::<usize>("top-k").unwrap(), 7, "the file's");
        assert_eq!(
            settings.parsed::<usize>("window-size").unwrap(),
            30,
            "the flag's"
        );
        assert_eq!(settings.list("mode"), ["rg1", "gt"]);
        assert!(
            settings
                .lines()
                .iter()
                .any(|line| line.starts_with("window-size = 30 ")
                    && line.ends_with("# command line"))
        );
    }

    #[test]
    fn an_unknown_key_names_the_nearest() {
        let error = parse("windowsize = 3", "c.toml").unwrap_err();
        assert_eq!(
            crate::output::describe(&error),
            [
                "error: c.toml: unknown key 'windowsize'",
                "hint: the nearest known key is 'window-size'"
            ]
        );
    }

    #[test]
    fn bundled_files_hold_known_keys_only() {
        for (name, text) in BUNDLED {
            parse(text, name).unwrap();
        }
    }
}
