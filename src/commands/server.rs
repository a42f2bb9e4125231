//! The model that completes, and the server that has it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use repoformer_core::completion::{Api, CompletionRequest};
use repoformer_models::endpoint::{
    ConnectionSettings, DEFAULT_KEY_VARIABLE, Endpoint, POLICY_KEY_VARIABLE,
};
use repoformer_models::server::{Sending, changing_template};
use repoformer_pipeline::{Asked, Completion, Server, file_name};
use repoformer_store::error::Error;

use super::session::completion;
use crate::bars;
use crate::output::{announce, fail, note, warning};
use crate::settings::{Entry, Settings, StyleName};

/// The model that completes: the embedded one, or a server's. `seed` is the first sample's; by batch, no server is asked.
pub(super) fn model(settings: &Settings, seed: Option<u64>, by_batch: bool) -> Result<Completion> {
    let mut completion = completion(settings)?;
    // A server may be there for vectors alone.
    let is_named = settings.endpoint.is_flag() && settings.embedding_model.is_none();
    if !completion.is_embedded() || is_named || by_batch {
        if settings.max_lines.is_chosen() {
            return fail(
                "--max-lines is for the embedded model; a model on a server is limited by tokens and stop texts",
                "use --max-tokens and --stop; scores cut completions to the target's lines",
            );
        }
        let asking = asking(settings, &completion.model, seed);
        let connected = Connected { url: settings.endpoint.as_deref(), key_variable: None };
        completion.server = Some(server(settings, asking, connected, by_batch)?);
        completion.max_lines = None;
    } else if let Some(key) = settings.chosen_for_server() {
        return fail(
            format!("--{key} is for a model on a server; the embedded model is in use"),
            "name the server and its model with --endpoint and --model, or leave it out",
        );
    }
    completion.check()?;
    Ok(completion)
}

/// The model that policies ask, on a server whose key is in another variable than the completion server's.
pub(super) fn policy_model(settings: &Settings, own: &PolicyServer) -> Result<Completion> {
    let variable = POLICY_KEY_VARIABLE;
    let key = std::env::var_os(variable).is_some_and(|key| !key.is_empty());
    if !key && std::env::var_os(DEFAULT_KEY_VARIABLE).is_some_and(|key| !key.is_empty()) {
        return fail(
            format!("{DEFAULT_KEY_VARIABLE} is the completion server's, and {variable} is not set"),
            format!(
                "set {variable} to the key of the policy's server; any text, where it needs none"
            ),
        );
    }
    let asking = CompletionRequest {
        api: Api::Completions,
        temperature: 0.0,
        samples: 1,
        ..asking(settings, &own.model, None)
    };
    let key_variable = key.then(|| variable.to_owned());
    let connected = Connected { url: Some(&own.url), key_variable };
    let server = server(settings, asking, connected, false)?;
    Ok(Completion {
        model: own.model.clone(),
        max_tokens: *settings.max_tokens,
        max_lines: None,
        server: Some(server),
    })
}

/// A model that policies ask, other than the one that completes.
pub(super) struct PolicyServer {
    pub(super) url: String,
    pub(super) model: String,
    pub(super) style: StyleName,
}

/// Requests to a model.
fn asking(settings: &Settings, model: &str, seed: Option<u64>) -> CompletionRequest {
    CompletionRequest {
        api: *settings.api,
        temperature: *settings.temperature,
        top_p: *settings.top_p,
        seed,
        stop: settings.stop.to_vec(),
        samples: *settings.samples,
        ending: *settings.prompt_end,
        instruction: settings.instruction.get().clone(),
        ..CompletionRequest::new(model, 1)
    }
}

/// Address of a server, and the variable of its key if it is another than usual.
struct Connected<'a> {
    url: Option<&'a str>,
    key_variable: Option<String>,
}

fn server(
    settings: &Settings,
    asking: CompletionRequest,
    connected: Connected<'_>,
    by_batch: bool,
) -> Result<Server> {
    check(&asking)?;
    let model = asking.model.as_str();
    let journal = settings.journal.get().clone().unwrap_or_else(|| {
        // One process writes to a journal at a time.
        let shard = settings.shard.map_or(String::new(), |shard| format!(".{}", shard.file_name()));
        let folder = settings.cache_dir.join("journal");
        folder.join(format!("{}{shard}.jsonl", file_name(model)))
    });
    let mut asked = None;
    if !by_batch {
        let endpoint = endpoint(settings, model, connected)?;
        let sending =
            Sending { connections: *settings.concurrency, retry_failed: *settings.retry_failed };
        asked = Some(Asked { endpoint, sending });
    }
    let until = settings.until.unwrap_or_default();
    Ok(Server { asking, until, journal, has_own_journal: settings.journal.is_some(), asked })
}

/// Refuses combinations that would not do what they say.
fn check(asking: &CompletionRequest) -> Result<()> {
    if asking.temperature == 0.0 && asking.samples > 1 {
        return fail(
            "--samples asks for several completions, but greedy ones are all alike",
            "add --temperature 1",
        );
    }
    if asking.stop.iter().any(String::is_empty) {
        return fail(
            "--stop is empty, and would end every completion before its first token",
            "leave it out; is a shell variable not set?",
        );
    }
    Ok(())
}

fn endpoint(settings: &Settings, model: &str, connected: Connected<'_>) -> Result<Endpoint> {
    let Connected { url, key_variable } = connected;
    let Some(url) = url else {
        return fail(
            format!("--endpoint is not set, and model {model} is not the embedded one"),
            "name the server that has it, such as --endpoint http://localhost:8080",
        );
    };
    let timeout = Duration::from_secs_f64(*settings.request_timeout);
    let connection = ConnectionSettings { timeout, key_variable, ..ConnectionSettings::patient() };
    Ok(Endpoint::new(url, connection)?.on_retry(|text| note(text)))
}

/// Checks that a server answers that is about to be asked, before the work that comes first, and warns where it lists other
/// models alone. A server of which answers are kept was there, and may not be needed again.
pub(super) fn greet(completion: &Completion) -> Result<()> {
    let Some(Server { asked: Some(Asked { endpoint, .. }), journal, asking, .. }) =
        &completion.server
    else {
        return Ok(());
    };
    if journal.metadata().is_ok_and(|file| file.len() > 0) {
        return Ok(());
    }
    check_model(endpoint, (&completion.model, asking.api), &endpoint.greet()?);
    Ok(())
}

/// Warns where a server lists other models alone, or changes the prompts of this one.
pub(super) fn check_model(endpoint: &Endpoint, (model, api): (&str, Api), models: &[String]) {
    let latest = format!("{model}:latest");
    if !models.is_empty() && !models.iter().any(|known| known == model || *known == latest) {
        warning(format!(
            "{}: lists no model '{model}', but {}",
            endpoint.url("/v1/models"),
            models[..models.len().min(5)].join(", ")
        ));
        return;
    }
    if api == Api::Completions
        && !models.is_empty()
        && let Some(template) = changing_template(endpoint, model)
    {
        let template = template.lines().next().unwrap_or_default();
        let begin: String = template.chars().take(60).collect();
        warning(format!(
            "{}: Ollama puts prompts for '{model}' into the template '{begin}…', so that it does not see them as they are; make a model \
             of it with the template {{{{ .Prompt }}}} and a num_ctx that holds the prompts (`ollama create`)",
            endpoint.url("/api/show"),
        ));
    }
}

/// Sets that Ctrl-C says that what is finished is kept, from here on.
pub(super) fn keeps_artifacts() {
    let text = "what is finished is in the cache: the same command resumes there";
    set_interruption_message(Some(text.into()));
}

/// Runs work whose answers are kept: after an interruption or an error, a message says how to resume.
pub(super) fn resumable<T>(
    completion: &Completion,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T> {
    let Some(server) = &completion.server else {
        return Ok(work()?);
    };
    let text =
        format!("{} keeps the answers: the same command resumes there", server.journal.display());
    let before = set_interruption_message(Some(text.clone()));
    let done = work();
    set_interruption_message(before);
    done.map_err(|error| {
        // A wrong address or key is no interruption.
        if server.journal.metadata().is_ok_and(|file| file.len() > 0) {
            announce(&text);
        }
        error.into()
    })
}

/// Message of an interruption.
static INTERRUPTION_MESSAGE: Mutex<Option<String>> = Mutex::new(None);

/// Sets the message that Ctrl-C prints before the program ends; returns the one before.
fn set_interruption_message(text: Option<String>) -> Option<String> {
    static ONCE: std::sync::Once = std::sync::Once::new();
    let is_set = text.is_some();
    let mut message = INTERRUPTION_MESSAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = std::mem::replace(&mut *message, text);
    drop(message);
    if is_set && !ignores_interruptions() {
        // Without a handler the program ends silently, which loses nothing either.
        ONCE.call_once(|| drop(ctrlc::set_handler(end)));
    }
    before
}

/// Whether the parent process had the program ignore Ctrl-C, as a shell script does with background jobs.
fn ignores_interruptions() -> bool {
    const SIGINT: u32 = 2;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (SIGINT - 1)) != 0)
}

fn end() {
    bars::end();
    let text = INTERRUPTION_MESSAGE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = &*text {
        announce(""); // below what the terminal shows of the key
        announce(&format!("interrupted; {text}"));
    }
    // A shell ends its loop only if Ctrl-C ended the program itself. What takes the program's place has no handler.
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        let _ = std::process::Command::new("/bin/sh").args(["-c", "kill -INT $$"]).exec();
    }
    // The status that shells report of a program that Ctrl-C ends.
    std::process::exit(130);
}
