//! Page that lists every setting.

use repoformer_study::settings::{
    AllowedValues, Arity, BUNDLED, BundledProfile, Group, SETTINGS, Setting, expected_whole,
    profile_values, variable,
};

const HEAD: &str = "\
# Every setting

<!-- generated: by `repoformer manual DIR --format markdown`; change crates/study/src/settings/declared.rs instead -->

After this page you can set every setting, and know which value it has if you do not.

A setting is a flag (`--top-k 10`), an environment variable (`REPOFORMER_TOP_K=10`) and a key of a configuration file
(`top-k = 10`). Flags beat the environment, which beats the file, which beats the profile, which beats the defaults below.
`--show-settings` prints each value and its source.

A configuration file is TOML. `--config FILE` names one; without it, `repoformer.toml` of the working folder is
read, except by `serve` and `lsp`.
A list is an array (`mode = [\"none\", \"rg1\"]`), or text with commas in flags and variables. The section `[function]` holds
the settings of tasks whose holes are function bodies.

Two variables are not settings, because a key belongs in no file: `REPOFORMER_API_KEY` is the key of the server at
`endpoint`, `REPOFORMER_POLICY_API_KEY` that of the server at `policy-endpoint`.
";

/// Returns the page, from the declarations.
pub(crate) fn settings_page() -> String {
    let mut page = format!("{HEAD}\n");
    let mut group: Option<Group> = None;
    for setting in SETTINGS {
        if group != Some(setting.group) {
            page += &format!(
                "- [{0}](#{1}): ",
                setting.group.heading(),
                anchor(setting.group.heading())
            );
            let same = SETTINGS.iter().filter(|other| other.group == setting.group);
            let links = same.map(|other| format!("[`{0}`](#{0})", other.key));
            page += &(links.collect::<Vec<_>>().join(", ") + "\n");
            group = Some(setting.group);
        }
    }
    group = None;
    for setting in SETTINGS {
        if group != Some(setting.group) {
            page += &format!("\n## {}\n", setting.group.heading());
            group = Some(setting.group);
        }
        page += &section(setting);
    }
    page
}

fn section(setting: &Setting) -> String {
    let help = setting.help.replace('<', "\\<");
    let facts = list_facts(setting);
    let facts: String = facts.iter().map(|(name, text)| format!("- {name}: {text}\n")).collect();
    format!("\n### `{}`\n\n{help}.\n\n{facts}", setting.key)
}

/// Returns the text that `help SETTING` prints.
pub(crate) fn explain(setting: &Setting) -> String {
    let facts = list_facts(setting);
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let facts = facts.iter().map(|(name, text)| format!("{name:width$}  {text}\n"));
    format!("{}: {}.\n\n{}", setting.key, setting.help, facts.collect::<String>())
}

/// Returns the names and the facts that describe a setting.
fn list_facts(setting: &Setting) -> Vec<(&'static str, String)> {
    let Setting { key, value_name, .. } = setting;
    let value = if value_name.is_empty() { String::new() } else { format!(" <{value_name}>") };
    let mut flags = format!("`--{key}{value}`");
    if let Some(alias) = setting.alias {
        flags += &format!(" or `--{alias}{value}`");
    }
    let default = match (setting.default_text, setting.default) {
        (Some(words), _) => words.to_owned(),
        (None, Some(value)) => format!("`{value}`"),
        (None, None) => "none".into(),
    };
    let of_profiles = BUNDLED.iter().filter(|profile| profile.paper.is_some());
    let of_profiles: Vec<String> = of_profiles
        .filter_map(|BundledProfile { name, text, .. }| {
            Some(format!("`{}` in {name}", profile_values(text, setting)?.join(",")))
        })
        .collect();
    let list = |names: &[&str]| {
        let name = |command: &&str| match *command {
            "all" => "`label all`".to_owned(),
            other => format!("`{other}`"),
        };
        names.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let key = if setting.in_files { format!("`{key}`") } else { "none".into() };
    let facts = [
        ("Flag", flags),
        ("Variable", format!("`{}`", variable(setting.key))),
        ("Key in files", key),
        ("Values", format!("{}{}", values(setting), several(setting))),
        ("Default", default),
        ("In profiles", of_profiles.join(", ")),
        (
            "Only if",
            setting.only_for.map(|unit| format!("`unit = \"{unit}\"`")).unwrap_or_default(),
        ),
        ("Commands", list(setting.commands)),
        ("Not for", list(setting.not_for)),
    ];
    facts.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

fn values(setting: &Setting) -> String {
    let names =
        || setting.names().iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match &setting.values {
        AllowedValues::Text if setting.value_name.contains('|') => {
            "a name, or the path of a file".into()
        }
        AllowedValues::Text if setting.value_name.contains("FILE") => "the path of a file".into(),
        AllowedValues::Text if setting.value_name == "DIR" => "the path of a folder".into(),
        AllowedValues::Text => "text".into(),
        AllowedValues::Whole(bounds) => expected_whole(bounds),
        AllowedValues::Number(_, expected) => (*expected).into(),
        AllowedValues::OneOf(_) => names(),
        AllowedValues::OneOfOr(_, _, others) => format!("{}, or {others}", names()),
        AllowedValues::Switch => {
            "`true` or `false` in files, `yes` or `no` in the environment".into()
        }
    }
}

fn several(setting: &Setting) -> &'static str {
    match setting.arity {
        Arity::One => "",
        Arity::Names | Arity::Paths => "; for several, repeat the flag or separate them by commas",
        Arity::Texts => "; for several, repeat the flag",
    }
}

fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}
