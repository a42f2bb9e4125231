//! Completions, probabilities and likelihoods by a model on a server.

mod batch;
mod completions;
mod files;
mod plan;
mod probability;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use repoformer_core::completion::{CompletionRequest, Ending};
use repoformer_core::retrieve::Mode;
use repoformer_models::endpoint::{ConnectionSettings, Endpoint};
use repoformer_models::server::SendSettings;
use repoformer_store::error::Error;
use repoformer_testing::{TestServer, completion, refusal, token_completion};
use serde_json::Value;

use crate::tests::TestCache;
use crate::{AskedServer, Completion, CompletionBound, Server, StageReport, complete};

/// Name of the model.
const MODEL: &str = "tiny";

/// Returns completions by a model whose server is not asked, with a journal in a folder.
fn without_server(folder: &Path) -> Completion {
    let asking =
        CompletionRequest { ending: Ending::BeforeWhitespace, ..CompletionRequest::new(MODEL, 8) };
    let server = Server {
        asking,
        until: CompletionBound::Lines,
        journal: folder.join("journal/tiny.jsonl"),
        has_own_journal: false,
        asked: None,
    };
    Completion { model: MODEL.into(), max_tokens: 8, max_lines: None, server: Some(server) }
}

/// Returns completions by a model on a server, with a journal in a folder.
fn with_server(folder: &Path, server: &TestServer) -> Completion {
    let endpoint = Endpoint::new(&server.url(), ConnectionSettings::default()).unwrap();
    let sending = SendSettings { connections: 4, retry_failed: false };
    change_server(without_server(folder), |own| own.asked = Some(AskedServer { endpoint, sending }))
}

fn change_server(mut completion: Completion, change: impl FnOnce(&mut Server)) -> Completion {
    change(completion.server.as_mut().unwrap());
    completion
}

fn with_bound(completion: Completion, bound: CompletionBound) -> Completion {
    change_server(completion, |server| server.until = bound)
}

fn change_sending(completion: Completion, change: impl FnOnce(&mut SendSettings)) -> Completion {
    change_server(completion, |server| change(&mut server.asked.as_mut().unwrap().sending))
}

/// Starts a server whose model writes these tokens.
fn token_server(tokens: &'static [&'static str]) -> TestServer {
    TestServer::start_without_models(move |request| token_completion(request, tokens))
}

/// Starts a server that refuses prompts with a word until its flag is set.
fn refusing_server(word: &'static str) -> (TestServer, Arc<AtomicBool>) {
    let is_sound = Arc::new(AtomicBool::new(false));
    let sound = Arc::clone(&is_sound);
    let server = TestServer::start_without_models(move |request| {
        if request.prompt().contains(word) && !sound.load(Ordering::SeqCst) {
            refusal("400 Bad Request", "exceeds the available context size")
        } else {
            completion("\nx = 1")
        }
    });
    (server, is_sound)
}

/// Completes the prompts of modes.
fn complete_modes(place: &TestCache, modes: &[Mode], completion: &Completion) -> StageReport {
    complete(&place.experiment, modes, completion).unwrap()
}

/// Returns the records of the predictions of a mode.
fn predictions(place: &TestCache, mode: Mode) -> Vec<Value> {
    records(&place.experiment.paths().predictions(mode, MODEL))
}

/// Returns the texts of the first completions in records.
fn texts(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["choices"][0]["text"].as_str().unwrap()).collect()
}

/// Removes a folder of a cache.
fn remove(place: &TestCache, folder: &str) {
    fs::remove_dir_all(place.experiment.layout.cache.join(folder)).unwrap();
}

/// Keeps only the first answer in a journal.
fn keep_one_answer(completion: &Completion) {
    let path = &completion.server.as_ref().unwrap().journal;
    let journal = fs::read_to_string(path).unwrap();
    fs::write(path, journal.split_inclusive('\n').next().unwrap()).unwrap();
}

/// Reads the records of a file of JSON lines.
fn records(path: &Path) -> Vec<Value> {
    parse(&fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// Parses JSON lines.
fn parse(lines: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(lines).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Writes records as JSON lines.
fn write(path: &Path, records: &[Value]) {
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    fs::write(path, lines).unwrap();
}

/// Checks that a problem contains all of these texts.
fn assert_said(problems: &[Error], texts: &[&str]) {
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    for text in texts {
        assert!(said.iter().any(|one| one.contains(text)), "not said: {text}\n{said:#?}");
    }
}

/// Checks that no problem contains a text.
fn assert_unsaid(problems: &[Error], text: &str) {
    let is_said = |problem: &Error| problem.to_string().contains(text);
    assert!(!problems.iter().any(is_said), "said: {text}\n{problems:#?}");
}
