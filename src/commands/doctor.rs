//! `doctor`: checks this machine and the settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use indicatif::HumanBytes;
use repoformer_core::retrieve::Level;
use repoformer_models::endpoint::{ConnectionSettings, DEFAULT_KEY_VARIABLE, Endpoint};
use repoformer_pipeline::{Condition, IN_CONTEXT};
use repoformer_store::error::{Access, Error};
use repoformer_store::program::program;
use repoformer_study::settings::Invocation;
use repoformer_text::message;
use repoformer_text::message::Message;
use repoformer_text::names::did_you_mean;
use repoformer_text::visible::visible_in_line;
use serde_json::{Map, Value, json};

use super::cache;
use crate::output::{self, error_and_hint, list_first, print_text, screen, write_data};
use crate::settings::{DECLARED, Settings};
use crate::table::{ReportFormat, json_text};

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Folder of the cached artifacts [default: from the settings, or data/cache]
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Configuration file (TOML) [default: repoformer.toml in the working folder, if it exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Named set of settings
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Server whose APIs and models to list; REPOFORMER_API_KEY holds its key [default: from the settings]
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Model that the server must have [default: from the settings]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Fail if tests cannot run in full isolation, as `eval --exec --isolation required` does
    #[arg(long)]
    exec: bool,
    /// Format of the findings
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: ReportFormat,
}

/// Finding about one subject.
struct Finding {
    /// Name of the finding, also of its object in JSON.
    name: &'static str,
    text: String,
    fields: Value,
    /// Reason why a requested feature cannot be used, and a hint.
    problem: Option<(String, Option<String>)>,
}

impl Finding {
    fn new(name: &'static str, text: String, fields: Value) -> Self {
        Self { name, text, fields, problem: None }
    }

    fn from_error(name: &'static str, text: String, fields: Value, error: &anyhow::Error) -> Self {
        Self { problem: Some(error_and_hint(error)), ..Self::new(name, text, fields) }
    }
}

pub(crate) fn run(args: &DoctorArgs) -> Result<()> {
    #[cfg(target_os = "linux")]
    repoformer_execute::guard::enter_scope();
    let (configuration, settings) = configuration(args)?;
    let mut findings = vec![version(), instructions(), threads(&settings), configuration];
    findings.push(check_cache(&settings));
    findings.extend(disk(&settings));
    findings.push(sandbox(args.exec));
    findings.push(python(args.exec));
    findings.push(server(args, &settings));
    match args.format {
        ReportFormat::Text => print_text(&findings.iter().map(line).collect::<String>())?,
        ReportFormat::Json => {
            let fields = findings.iter().map(|finding| (finding.name.to_owned(), fields(finding)));
            let all = Value::Object(fields.collect::<Map<_, _>>());
            write_data(Path::new("-"), json_text(&all))?;
        }
    }
    for (reason, hint) in findings.iter().filter_map(|finding| finding.problem.as_ref()) {
        output::count_failure(reason);
        hint.iter().for_each(|hint| output::failed_hint(hint));
    }
    Ok(())
}

fn line(finding: &Finding) -> String {
    let mut lines = finding.text.lines();
    let first = format!("{:<14} {}\n", finding.name, lines.next().unwrap_or_default());
    lines.fold(first, |text, line| text + &format!("{:<14} {line}\n", ""))
}

fn fields(finding: &Finding) -> Value {
    let mut fields = finding.fields.clone();
    fields["usable"] = finding.problem.is_none().into();
    if let Some((reason, _)) = &finding.problem {
        fields["problem"] = reason.as_str().into();
    }
    fields
}

fn version() -> Finding {
    let (version, system) = (env!("CARGO_PKG_VERSION"), std::env::consts::OS);
    let machine = std::env::consts::ARCH;
    let program = std::env::current_exe().map(|path| path.display().to_string()).ok();
    let text = format!("{version} for {machine} {system}, {}", program.as_deref().unwrap_or("?"));
    let fields =
        json!({"version": version, "machine": machine, "system": system, "program": program});
    Finding::new("repoformer", text, fields)
}

fn instructions() -> Finding {
    let all: Vec<String> = Level::available().map(|level| level.to_string()).collect();
    let best = Level::best().to_string();
    let text = format!("search uses {best} instructions; this processor has {}", all.join(", "));
    Finding::new("instructions", text, json!({"in_use": best, "available": all}))
}

fn threads(settings: &Settings) -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let asked = *settings.threads;
    let used = if asked == 0 { cores } else { asked };
    let text = format!("{used} in use; {cores} cores");
    Finding::new("threads", text, json!({"in_use": used, "cores": cores}))
}

/// Returns the settings in force; if they contain an error, only the settings of flags and the environment.
fn configuration(args: &DoctorArgs) -> Result<(Finding, Settings)> {
    let path = |path: &PathBuf| path.to_string_lossy().into_owned();
    let given = [
        (&DECLARED.cache_dir, args.cache_dir.as_ref().map(path)),
        (&DECLARED.config, args.config.as_ref().map(path)),
        (&DECLARED.profile, args.profile.clone()),
        (&DECLARED.endpoint, args.endpoint.clone()),
        (&DECLARED.model, args.model.clone()),
    ];
    let given = given.into_iter().filter_map(|(setting, value)| Some((setting, vec![value?])));
    let flags = Invocation::giving(given);
    Ok(match Settings::resolve(&flags, screen()) {
        Ok(settings) => {
            let (file, profile) = (settings.config.as_deref(), settings.profile.as_deref());
            let mut text = match file {
                Some(file) => visible_in_line(&file.display().to_string()).into_owned(),
                None => {
                    "no file; repoformer.toml in the working folder is read if it exists".into()
                }
            };
            text += &profile.map_or(String::new(), |profile| format!("; profile {profile}"));
            let chosen = settings.chosen_keys();
            if !chosen.is_empty() {
                text += &format!("; set: {}", chosen.join(", "));
            }
            let fields = json!({"file": file, "profile": profile, "set": chosen});
            (Finding::new("configuration", text, fields), settings)
        }
        Err(error) => {
            let finding =
                Finding::from_error("configuration", "is invalid".into(), json!({}), &error);
            (finding, Settings::without_files(&flags)?)
        }
    })
}

fn check_cache(settings: &Settings) -> Finding {
    let path = settings.cache_dir.display().to_string();
    let cache = visible_in_line(&path);
    let (folder, files) = match cache::files(settings) {
        Ok(found) => found,
        Err(error) => {
            return Finding::from_error(
                "cache",
                format!("{cache}: cannot be read"),
                json!({}),
                &error,
            );
        }
    };
    let is_there = folder.is_dir();
    // The folder, or its nearest existing parent.
    let place = std::path::absolute(&folder).unwrap_or_default();
    let place = place.ancestors().find(|above| above.exists()).unwrap_or(&folder);
    let writable = tempfile::tempfile_in(place).map_err(|reason| Error::Io {
        path: place.to_owned(),
        access: Access::Write,
        action: "write into this folder",
        reason,
    });
    let count = |is_one: fn(&Condition) -> bool| {
        files.iter().filter(|file| is_one(&file.condition)).count()
    };
    let (stale, damaged) = (
        count(|one| matches!(one, Condition::Stale(_))),
        count(|one| matches!(one, Condition::Damaged(_))),
    );
    let foreign = count(|one| *one == Condition::Foreign);
    let temporary = count(|one| *one == Condition::Temporary);
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    let text = if is_there {
        format!(
            "{cache}: {}; {stale} stale, {damaged} damaged, {temporary} temporary, {foreign} from other programs",
            cache::total(&files)
        )
    } else {
        format!("{cache}: does not exist yet")
    };
    let fields = json!({
        "folder": path, "exists": is_there, "entries": files.len(), "bytes": bytes, "stale": stale,
        "damaged": damaged, "temporary": temporary, "foreign": foreign,
    });
    match writable {
        Ok(_) => Finding::new("cache", text, fields),
        Err(error) => Finding::from_error("cache", text, fields, &error.into()),
    }
}

/// Returns the free space at the cache folder or its nearest existing parent.
#[cfg(target_os = "linux")]
fn disk(settings: &Settings) -> Option<Finding> {
    let cache = std::path::absolute(settings.cache_dir.get()).ok()?;
    let folder = cache.ancestors().find(|folder| folder.is_dir())?;
    let system = nix::sys::statvfs::statvfs(folder).ok()?;
    let free = system.blocks_available() as u64 * system.fragment_size() as u64;
    let shown = folder.display().to_string();
    let text = format!("{} free at {}", HumanBytes(free), visible_in_line(&shown));
    Some(Finding::new("disk", text, json!({"folder": shown, "free_bytes": free})))
}

#[cfg(not(target_os = "linux"))]
fn disk(_: &Settings) -> Option<Finding> {
    None
}

#[cfg(target_os = "linux")]
fn sandbox(is_asked: bool) -> Finding {
    use repoformer_execute::guard::{Counter, Guard};

    let tried = tempfile::tempdir().map_err(anyhow::Error::new).and_then(|folder| {
        let program = super::eval_exec::PROGRAM.into();
        Ok(Guard::try_out(program, &folder.path().canonicalize()?, true, false)?.enclosure)
    });
    let enclosure = match tried {
        Ok(enclosure) => enclosure,
        Err(error) => {
            let text = "tests cannot be run".to_owned();
            return if is_asked {
                Finding::from_error("sandbox", text, json!({}), &error)
            } else {
                Finding::new("sandbox", format!("{text}: {error:#}"), json!({}))
            };
        }
    };
    let limits = match enclosure.counter {
        Counter::Kernel => {
            "limits: a control group counts memory, processes and processor time of each run"
        }
        Counter::Guard => {
            "limits: no control group can be created, so memory, processes and processor time of each run are summed from /proc; \
             for a control group, run as root, under `systemd-run --user --scope -p Delegate=yes`, or after `loginctl enable-linger`"
        }
    };
    let layer = if enclosure.layered {
        "files that a run writes are discarded"
    } else {
        "copies are restored after each run; disk use is monitored, but not limited"
    };
    let mut text = format!("{}; {layer}\n{limits}", enclosure.describe());
    enclosure.open.iter().for_each(|open| text += &format!("\nnot isolated: {open}"));
    let fields = json!({
        "processes_and_files": enclosure.enclosed, "layered": enclosure.layered,
        "network_off": enclosure.network_off, "open": enclosure.open,
        "limits_counted_by": enclosure.counter,
        "user_namespaces": kernel("user/max_user_namespaces"),
    });
    let open = Message::join(enclosure.open.clone(), "; ");
    let error = anyhow::Error::new(message!["exec: runs cannot be isolated here: ", open]);
    if is_asked && !enclosure.open.is_empty() {
        Finding::from_error("sandbox", text, fields, &error)
    } else {
        Finding::new("sandbox", text, fields)
    }
}

/// Reads a number from the kernel's settings.
#[cfg(target_os = "linux")]
fn kernel(name: &str) -> Option<u64> {
    std::fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?.trim().parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn sandbox(is_asked: bool) -> Finding {
    let text = "`eval --exec` needs Linux".to_owned();
    let error = anyhow::anyhow!("exec: tests can run only on Linux");
    if is_asked {
        Finding::from_error("sandbox", text, json!({}), &error)
    } else {
        Finding::new("sandbox", text, json!({}))
    }
}

fn python(is_asked: bool) -> Finding {
    let asked = |words: &[&str]| {
        // In another folder, Python would import modules of that folder instead of the installed ones.
        let output = program("python3").args(words).current_dir("/").output().ok()?;
        let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        let text = String::from_utf8_lossy(&text).lines().next()?.trim().to_owned();
        output.status.success().then_some(text)
    };
    let python = asked(&["--version"]);
    let pytest = python.as_ref().and_then(|_| asked(&["-m", "pytest", "--version"]));
    let text = match (&python, &pytest) {
        (None, _) => "python3 was not found; tests of Python repositories need it".to_owned(),
        (Some(python), None) => {
            format!("{python}, without pytest; tests that need pytest fail")
        }
        (Some(python), Some(pytest)) => format!("{python}, {pytest}"),
    };
    let fields = json!({"python": python, "pytest": pytest});
    let error = anyhow::anyhow!("exec: python3 was not found");
    if is_asked && python.is_none() {
        Finding::from_error("python", text, fields, &error)
    } else {
        Finding::new("python", text, fields)
    }
}

/// Names and paths of APIs. If a server has an API, it rejects a request without a prompt, or answers it with one token.
const APIS: [(&str, &str); 3] = [
    ("completions", "/v1/completions"),
    ("chat", "/v1/chat/completions"),
    ("embeddings", "/v1/embeddings"),
];

fn server(args: &DoctorArgs, settings: &Settings) -> Finding {
    let has_key = std::env::var_os(DEFAULT_KEY_VARIABLE).is_some_and(|key| !key.is_empty());
    let key = format!("{DEFAULT_KEY_VARIABLE} is {}", if has_key { "set" } else { "not set" });
    let Some(url) = settings.endpoint.as_deref() else {
        let text = format!("not checked, since --endpoint is not set; {key}");
        return Finding::new("server", text, json!({"endpoint": null, "key_is_set": has_key}));
    };
    let second = Duration::from_secs;
    let connection = ConnectionSettings {
        timeout: second(20),
        connect_timeout: second(5),
        retries: 0,
        ..ConnectionSettings::default()
    };
    let endpoint = Endpoint::new(url, connection);
    let asked = endpoint.and_then(|endpoint| endpoint.greet().map(|_| endpoint));
    let endpoint = match asked {
        Ok(endpoint) => endpoint,
        Err(error) => {
            let text = format!("does not answer; {key}");
            let fields = json!({"answers": false, "key_is_set": has_key});
            return Finding::from_error("server", text, fields, &error.into());
        }
    };
    let shown = endpoint.url("/v1");
    let (mut is_listed, mut models, mut refusal) = (false, Vec::new(), None);
    match endpoint.get_json("/v1/models") {
        Ok(answer) => {
            let list = answer["data"].as_array().cloned();
            is_listed = list.is_some();
            let list = list.unwrap_or_default();
            let ids = list.iter().filter_map(|model| Some(model["id"].as_str()?.to_owned()));
            models = ids.collect();
        }
        Err(error) => refusal = Some(error),
    }
    let (mut apis, mut refused) = (Vec::new(), None);
    // Some servers have no API for a request that names no model.
    let chosen = Some(settings.model.as_str()).filter(|model| *model != IN_CONTEXT);
    let request = match chosen.or(models.first().map(String::as_str)) {
        Some(model) => json!({"model": model, "max_tokens": 1}),
        None => json!({}),
    };
    for (name, path) in APIS {
        let error = endpoint.post_json(path, &request).err();
        // A server without the API returns 404, 405 or 501, a page, or no answer.
        let status = error.as_ref().map_or(Some(200), status);
        if status.is_some_and(|status| ![404, 405, 501].contains(&status)) {
            apis.push(name);
        }
        let status = status.unwrap_or_default();
        refused = refused.or(error.filter(|_| [401, 403].contains(&status)));
    }
    let listed = match (models.len(), &refusal) {
        (0, Some(error)) => format!("models not listed ({})", visible_in_line(&error.to_string())),
        (count, _) => {
            let names = models.iter().map(|name| visible_in_line(name));
            format!("{count} models: {}", list_first(names, 5))
        }
    };
    let names = if apis.is_empty() { "none known".into() } else { apis.join(", ") };
    let text = format!("{shown} answers; APIs: {names}; {key}\n{listed}");
    let fields = json!({
        "endpoint": shown, "answers": true, "apis": apis, "models": models, "key_is_set": has_key,
    });
    let without_key = |error: &Error| matches!(status(error), Some(401 | 403));
    let refused = refusal.filter(without_key).or(refused).map(anyhow::Error::from);
    let is_none = args.endpoint.is_some() && apis.is_empty();
    let none = is_none.then(|| anyhow::anyhow!("{shown}: has no API that this program uses"));
    let missing = || missing_model(settings, is_listed.then_some(&models)?, &shown);
    let problem = refused.or_else(missing).or(none);
    match problem {
        Some(error) => Finding::from_error("server", text, fields, &error),
        None => Finding::new("server", text, fields),
    }
}

/// Returns the status of a server's answer; `None` without an answer.
fn status(error: &Error) -> Option<u16> {
    match error {
        Error::Endpoint { status, .. } => *status,
        Error::FailedAnswer { .. } => Some(200),
        _ => None,
    }
}

/// Returns an error if the server does not list the requested model.
fn missing_model(settings: &Settings, models: &[String], url: &str) -> Option<anyhow::Error> {
    let model = Some(settings.model.as_str()).filter(|model| *model != IN_CONTEXT)?;
    if models.iter().any(|known| known == model) {
        return None;
    }
    let error = anyhow::anyhow!("{url}: has no model '{model}'");
    let hint = did_you_mean(model, models.iter().map(String::as_str));
    Some(match hint {
        Some(hint) => output::add_hint(error, hint),
        None => error,
    })
}
