//! Completions of a file of prompts.

use serde_json::json;

use super::*;
use crate::complete_file;

/// Folder with a file of prompts.
struct PromptFile {
    dir: tempfile::TempDir,
}

impl PromptFile {
    fn new(names: &[&str]) -> Self {
        let file = Self { dir: tempfile::tempdir().unwrap() };
        file.write(names);
        file
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("prompts.jsonl")
    }

    fn write(&self, names: &[&str]) {
        write(&self.path(), &prompts(names));
    }

    /// Returns settings for completions of all tokens, one request after another.
    fn completion(&self, server: &TestServer) -> Completion {
        let completion =
            change_sending(with_server(self.dir.path(), server), |sending| sending.connections = 1);
        with_bound(completion, CompletionBound::Tokens)
    }
}

/// Returns prompts of equal size, longer than the read-ahead.
fn prompts(names: &[&str]) -> Vec<Value> {
    let prompt = |name: &&str| {
        let metadata = json!({"task_id": name, "more": "x".repeat(1 << 20)});
        json!({"prompt": format!("{name} = "), "metadata": metadata})
    };
    names.iter().map(prompt).collect()
}

fn ids(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["metadata"]["task_id"].as_str().unwrap()).collect()
}

/// Prompts are read in the order in which they are sent.
#[test]
fn what_failed_is_asked_for_after_what_is_new() {
    let file = PromptFile::new(&["b", "view"]);
    let (server, is_sound) = refusing_server("view");
    let completion = file.completion(&server);
    let first = complete_file(&file.path(), &completion, None, &mut |_| Ok(())).unwrap();
    assert_eq!((first.records, first.problems.len()), (1, 1));
    is_sound.store(true, Ordering::SeqCst);
    file.write(&["view", "b", "c", "d"]);
    let completion = change_sending(completion, |sending| sending.retry_failed = true);
    let mut lines = Vec::new();
    let emit = &mut |line: &[u8]| {
        lines.extend_from_slice(line);
        Ok(())
    };
    let second = complete_file(&file.path(), &completion, None, emit).unwrap();
    assert!(second.problems.is_empty(), "{:?}", second.problems);
    let asked = server.requests();
    let asked: Vec<&str> = asked.iter().map(|request| &request.prompt()[..1]).collect();
    assert_eq!(asked, ["b", "v", "c", "d", "v"]);
    assert_eq!(ids(&parse(&lines)), ["view", "b", "c", "d"]);
}

/// Prompts are read again when they are sent, and when the answers are written next to them.
#[test]
fn prompts_that_change_meanwhile_get_no_others_answers() {
    let file = PromptFile::new(&["a", "b", "c", "d"]);
    let path = file.path();
    let server = TestServer::start_without_models(move |request| {
        write(&path, &prompts(&["d", "c", "b", "a"]));
        completion(&format!("{}()", &request.prompt()[..1]))
    });
    let completion = file.completion(&server);
    let mut lines = Vec::new();
    let mut run = || {
        complete_file(&file.path(), &completion, None, &mut |line| {
            lines.extend_from_slice(line);
            Ok(())
        })
    };
    let error = run().unwrap_err();
    assert!(error.to_string().contains("prompts.jsonl: was changed while"), "{error}");
    assert!(error.hint().unwrap().to_string().contains("the same command"), "{error:?}");
    // Answers stay, each for its own prompt; nothing was written before.
    assert_eq!(run().unwrap().records, 4);
    let records = parse(&lines);
    assert_eq!(ids(&records), ["d", "c", "b", "a"]);
    assert_eq!(texts(&records), ["d()", "c()", "b()", "a()"]);
    assert_eq!(server.requests().len(), 4);
}
