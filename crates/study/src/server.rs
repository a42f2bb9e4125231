//! Model that completes, and the server that runs it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use repoformer_core::completion::{Api, CompletionRequest};
use repoformer_models::endpoint::{
    ConnectionSettings, DEFAULT_KEY_VARIABLE, Endpoint, POLICY_KEY_VARIABLE, mask_keys_of,
};
use repoformer_models::server::{SendSettings, changing_template};
use repoformer_pipeline::{AskedServer, Completion, Messages, Server, file_name};
use repoformer_store::error::Error;
use repoformer_text::counts::list_first;
use repoformer_text::message;
use repoformer_text::message::Message;

use crate::choices::completion;
use crate::fail;
use crate::settings::{DECLARED, SettingValue, Settings, StyleName};

/// Returns the model that completes: the embedded one, or a server's. `seed` is the seed of the first sample. If `by_batch`, no
/// server is asked.
pub fn model(settings: &Settings, seed: Option<u64>, by_batch: bool) -> Result<Completion> {
    let mut completion = completion(settings)?;
    // The server may be given only for vectors.
    let is_named = settings.endpoint.is_flag() && settings.embedding_model.is_none();
    if !completion.is_embedded() || is_named || by_batch {
        if settings.max_lines.is_chosen() {
            return fail(
                message![
                    &DECLARED.max_lines,
                    " works only with the embedded model; limit a model on a server by tokens and stop texts"
                ],
                message![
                    "use ",
                    &DECLARED.max_tokens,
                    " and ",
                    &DECLARED.stop,
                    "; scores cut completions to the target's lines"
                ],
            );
        }
        let asking = asking(settings, &completion.model, seed);
        let connected =
            ServerAddress { url: settings.endpoint.as_deref(), key_variable: DEFAULT_KEY_VARIABLE };
        completion.server = Some(server(settings, asking, connected, by_batch)?);
        completion.max_lines = None;
    } else if let Some(setting) = settings.chosen_for_server() {
        return fail(
            message![setting, " works only with a model on a server; the embedded model is in use"],
            message![
                "name the server and its model with ",
                &DECLARED.endpoint,
                " and ",
                &DECLARED.model,
                ", or leave it out"
            ],
        );
    }
    if completion.is_embedded() && completion.server.is_some() {
        return fail("no model of the server is named", name_model(&completion));
    }
    completion.check()?;
    Ok(completion)
}

/// Returns a hint to name the model, with the models that the server lists.
fn name_model(completion: &Completion) -> Message {
    let asked = completion.server.as_ref().and_then(|server| server.asked.as_ref());
    let models = asked.and_then(|asked| asked.endpoint.greet().ok()).unwrap_or_default();
    let mut hint = message!["name it with ", &DECLARED.model];
    if !models.is_empty() {
        hint = message![hint, format!("; the server has {}", list_first(&models, MODELS))];
    }
    hint
}

/// Number of the server's models that a hint lists.
const MODELS: usize = 10;

/// Returns the model that policies ask, on a server whose key is in another variable than the completion server's key.
pub fn policy_model(settings: &Settings, own: &PolicyServer) -> Result<Completion> {
    let variable = POLICY_KEY_VARIABLE;
    let key = std::env::var_os(variable).is_some_and(|key| !key.is_empty());
    if !key && std::env::var_os(DEFAULT_KEY_VARIABLE).is_some_and(|key| !key.is_empty()) {
        return fail(
            format!(
                "{DEFAULT_KEY_VARIABLE} is for the completion server, but {variable} is not set"
            ),
            format!(
                "set {variable} to the key of the policy's server, or to any text if it needs no key"
            ),
        );
    }
    let asking = CompletionRequest {
        api: Api::Completions,
        temperature: 0.0,
        samples: 1,
        ..asking(settings, &own.model, None)
    };
    let connected = ServerAddress { url: Some(&own.url), key_variable: variable };
    let server = server(settings, asking, connected, false)?;
    Ok(Completion {
        model: own.model.clone(),
        max_tokens: *settings.max_tokens,
        max_lines: None,
        server: Some(server),
    })
}

/// Model that policies ask, other than the one that completes.
pub struct PolicyServer {
    /// Address of the server.
    pub url: String,
    /// Name of the model.
    pub model: String,
    /// Layout of the prompts on which it was trained.
    pub style: StyleName,
}

/// Returns the requests to a model.
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

/// Address of a server, and the variable of its key if it is not the usual one.
struct ServerAddress<'a> {
    url: Option<&'a str>,
    key_variable: &'static str,
}

fn server(
    settings: &Settings,
    asking: CompletionRequest,
    connected: ServerAddress<'_>,
    by_batch: bool,
) -> Result<Server> {
    check(&asking)?;
    let model = asking.model.as_str();
    let journal = settings.journal.get().clone().unwrap_or_else(|| {
        // Only one process writes to a journal at a time.
        let shard = settings.shard.map_or(String::new(), |shard| format!(".{}", shard.file_name()));
        let folder = settings.cache_dir.join("journal");
        folder.join(format!("{}{shard}.jsonl", file_name(model)))
    });
    let mut asked = None;
    if !by_batch {
        let endpoint = endpoint(settings, model, connected)?;
        let sending = SendSettings {
            connections: *settings.concurrency,
            retry_failed: *settings.retry_failed,
        };
        asked = Some(AskedServer { endpoint, sending });
    } else if let Some(url) = connected.url {
        // The answers come from files.
        mask_keys_of(url);
    }
    let until = settings.until.unwrap_or_default();
    Ok(Server { asking, until, journal, has_own_journal: settings.journal.is_some(), asked })
}

/// Rejects combinations that would not have the intended effect.
fn check(asking: &CompletionRequest) -> Result<()> {
    if asking.temperature == 0.0 && asking.samples > 1 {
        return fail(
            message![
                &DECLARED.samples,
                " asks for several completions, but greedy completions are all the same"
            ],
            message!["add ", &DECLARED.temperature, " 1"],
        );
    }
    if asking.stop.iter().any(String::is_empty) {
        return fail(
            message![
                &DECLARED.stop,
                " is empty, so every completion would end before its first token"
            ],
            "leave it out; is a shell variable not set?",
        );
    }
    Ok(())
}

fn endpoint(settings: &Settings, model: &str, connected: ServerAddress<'_>) -> Result<Endpoint> {
    let ServerAddress { url, key_variable } = connected;
    let Some(url) = url else {
        return fail(
            message![&DECLARED.endpoint, format!(" is not set, but model {model} needs a server")],
            message![
                "name the server that has the model, such as ",
                &DECLARED.endpoint,
                " http://localhost:8080"
            ],
        );
    };
    let timeout = Duration::from_secs_f64(*settings.request_timeout);
    let connection = ConnectionSettings { timeout, key_variable, ..ConnectionSettings::patient() };
    let messages = Arc::clone(&settings.messages);
    Ok(Endpoint::new(url, connection)?.on_notice(move |notice| messages.server(notice)))
}

/// Checks that a server answers, before the work that precedes the first request, and warns if the server lists only other
/// models. If answers of a server are kept, it is not checked, since it may not be needed again.
pub fn greet(completion: &Completion, messages: &dyn Messages) -> Result<()> {
    let Some(Server { asked: Some(AskedServer { endpoint, .. }), journal, asking, .. }) =
        &completion.server
    else {
        return Ok(());
    };
    if journal.metadata().is_ok_and(|file| file.len() > 0) {
        return Ok(());
    }
    check_model(endpoint, (&completion.model, asking.api), &endpoint.greet()?, messages);
    Ok(())
}

/// Warns if a server lists only other models, or changes the prompts of this one.
pub fn check_model(
    endpoint: &Endpoint,
    (model, api): (&str, Api),
    models: &[String],
    messages: &dyn Messages,
) {
    let latest = format!("{model}:latest");
    if !models.is_empty() && !models.iter().any(|known| known == model || *known == latest) {
        messages.warning(
            format!(
                "{}: lists no model '{model}', but {}",
                endpoint.url("/v1/models"),
                models[..models.len().min(5)].join(", ")
            )
            .into(),
        );
        return;
    }
    if api == Api::Completions
        && !models.is_empty()
        && let Some(template) = changing_template(endpoint, model)
    {
        let template = template.lines().next().unwrap_or_default();
        let begin: String = template.chars().take(60).collect();
        messages.warning(format!(
            "{}: Ollama wraps prompts for '{model}' in the template '{begin}…', so the model does not see them unchanged; create a model \
             from it (`ollama create`) with the template {{{{ .Prompt }}}} and a num_ctx large enough for the prompts",
            endpoint.url("/api/show"),
        ).into());
    }
}

/// Runs work whose answers are kept; after an interruption or an error, a message explains how to resume.
pub fn resumable<T>(
    completion: &Completion,
    messages: &dyn Messages,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T> {
    let Some(server) = &completion.server else {
        return Ok(work()?);
    };
    let text =
        format!("{} keeps the answers; run the same command to resume", server.journal.display());
    let before = messages.on_interruption(Some(text.clone()));
    let done = work();
    messages.on_interruption(before);
    done.map_err(|error| {
        // A wrong address or key is not an interruption.
        if server.journal.metadata().is_ok_and(|file| file.len() > 0) {
            messages.announce(&text);
        }
        error.into()
    })
}
