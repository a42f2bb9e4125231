//! From flags to a model on a server.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow};
use repoformer::complete::server::{Api, CompletionRequest, Ending, Sending};
use repoformer::endpoint::{self, Endpoint};
use repoformer::error::Error;
use repoformer::pipeline::file_name;
use repoformer::pipeline::{self, Completion, Server};

use super::session::completion;
use crate::args::{ServerArgs, SettingFlags};
use crate::config::Settings;
use crate::output::{announce, hinted};

/// What a command was told of its model.
pub(super) struct Asked<'a> {
    pub(super) flags: &'a SettingFlags,
    pub(super) server: &'a ServerArgs,
    /// Seed of the samples.
    pub(super) seed: Option<u64>,
    /// Whether answers come from a batch, so that no server is asked.
    pub(super) by_batch: bool,
}

/// The model that completes: the embedded one, or one on a server.
pub(super) fn model(
    asked: &Asked<'_>,
    settings: &Settings,
    max_lines: Option<usize>,
) -> Result<Completion> {
    let mut completion = completion(settings, max_lines)?;
    // A server may be there for vectors alone.
    let is_named =
        asked.flags.chunks.endpoint.is_some() && settings.text("embedding-model").is_none();
    if !completion.is_embedded() || is_named || asked.by_batch {
        completion.server = Some(server(asked, settings, &completion.model)?);
        if max_lines.is_some() {
            return Err(hinted(
                anyhow!(
                    "--max-lines is for the embedded model; a server's knows tokens and texts that end a completion"
                ),
                "use --max-tokens and --stop; scores cut completions to the target's lines by themselves",
            ));
        }
    } else if let Some(flag) = asked.server.given() {
        return Err(hinted(
            anyhow!("{flag} is for a model on a server, and the embedded one completes"),
            "name the server and its model with --endpoint and --model, or leave the flag out",
        ));
    }
    completion.check()?;
    Ok(completion)
}

fn server(asked: &Asked<'_>, settings: &Settings, model: &str) -> Result<Server> {
    let of = asked.server;
    check(of)?;
    let named = |name: &Option<String>| name.as_deref().map(str::to_owned);
    let asking = CompletionRequest {
        api: named(&of.api).map_or(Ok(Api::default()), |name| name.parse())?,
        temperature: of.temperature.unwrap_or(0.0),
        top_p: of.top_p,
        seed: asked.seed,
        stop: of.stop.clone(),
        samples: of.samples.unwrap_or(1).max(1),
        ending: named(&of.prompt_end).map_or(Ok(Ending::default()), |name| name.parse())?,
        instruction: of.instruction.clone(),
        ..CompletionRequest::new(model, 1)
    };
    let journal = match &of.journal {
        Some(path) => path.clone(),
        None => {
            let cache = Path::new(settings.text("cache-dir").unwrap_or("data/cache"));
            let name = format!("{}.jsonl", file_name(model));
            cache.join("journal").join(name)
        }
    };
    let sending = Sending {
        connections: of.concurrency.unwrap_or(4).max(1),
        retry_failed: of.retry_failed,
    };
    let asked = match asked.by_batch {
        true => None,
        false => Some(pipeline::Asked {
            endpoint: endpoint(of, settings, model)?,
            sending,
        }),
    };
    Ok(Server {
        asking,
        journal,
        has_own_journal: of.journal.is_some(),
        asked,
    })
}

/// What would not do what it says.
fn check(of: &ServerArgs) -> Result<()> {
    let is_greedy = of.temperature.unwrap_or(0.0) == 0.0;
    if is_greedy && of.samples.unwrap_or(1) > 1 {
        return Err(hinted(
            anyhow!("--samples asks for several completions, and greedy ones are all the same"),
            "add --temperature 1",
        ));
    }
    if of
        .temperature
        .is_some_and(|temperature| !(0.0..=100.0).contains(&temperature))
    {
        return Err(hinted(
            anyhow!("--temperature must be 0 or more"),
            "choose another",
        ));
    }
    if of.top_p.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
        return Err(hinted(
            anyhow!("--top-p must be more than 0 and at most 1"),
            "choose another",
        ));
    }
    for (flag, number) in [("--samples", of.samples), ("--concurrency", of.concurrency)] {
        if number == Some(0) {
            return Err(hinted(
                anyhow!("{flag} must be at least 1"),
                "choose another",
            ));
        }
    }
    if of.stop.iter().any(String::is_empty) {
        return Err(hinted(
            anyhow!("--stop is empty, and would end every completion where it begins"),
            "leave it out; is a variable of the shell not set?",
        ));
    }
    Ok(())
}

fn endpoint(of: &ServerArgs, settings: &Settings, model: &str) -> Result<Endpoint> {
    let Some(url) = settings.text("endpoint") else {
        return Err(hinted(
            anyhow!("--model {model} is not the embedded one, and --endpoint is not set"),
            "name the server that has it, such as --endpoint http://localhost:8080",
        ));
    };
    let seconds = of.request_timeout.unwrap_or(600.0);
    if !(seconds > 0.0 && seconds < 1e9) {
        return Err(hinted(
            anyhow!("--request-timeout must be more than 0 seconds"),
            "choose another",
        ));
    }
    let connection = endpoint::ConnectionSettings {
        timeout: Duration::from_secs_f64(seconds),
        ..endpoint::ConnectionSettings::patient()
    };
    Ok(Endpoint::new(url, connection)?.on_retry(announce))
}

/// Work that answers are kept of: an interruption is told how to go on, and so is an error.
pub(super) fn resumable<T>(
    completion: &Completion,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T> {
    let Some(server) = &completion.server else {
        return Ok(work()?);
    };
    let text = format!(
        "what was answered is kept in {}: the same command goes on from there",
        server.journal.display()
    );
    tell_at_interruption(Some(text.clone()));
    let done = work();
    tell_at_interruption(None);
    done.map_err(|error| {
        // A wrong address or key is no interruption.
        if server.journal.metadata().is_ok_and(|file| file.len() > 0) {
            announce(&text);
        }
        error.into()
    })
}

/// What an interruption is told.
static LAST_WORDS: Mutex<Option<String>> = Mutex::new(None);

/// Has Ctrl-C say this before the program ends.
fn tell_at_interruption(text: Option<String>) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    let is_told = text.is_some();
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = text;
    if is_told && !ignores_interruptions() {
        // Without a handler the program ends silently, which loses nothing either.
        ONCE.call_once(|| drop(ctrlc::set_handler(end)));
    }
}

/// Whether whoever started the program has it go on at Ctrl-C, as a shell's script does with what runs beside it.
fn ignores_interruptions() -> bool {
    const SIGINT: u32 = 2;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (SIGINT - 1)) != 0)
}

fn end() {
    let text = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = &*text {
        announce(&format!("\ninterrupted; {text}"));
    }
    // What shells report of a program that Ctrl-C ends.
    std::process::exit(130);
}
