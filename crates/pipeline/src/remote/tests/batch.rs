//! Batches of completions.

use repoformer_core::completion::Api;
use serde_json::json;

use super::*;
use crate::tests::MODES;
use crate::{BatchOf, BatchSummary, PromptText, complete_file, read_batch, write_batch};

/// Returns the answer of a batch endpoint to a request.
fn batch_answer(request: &Value, text: &str) -> Value {
    let body = json!({"choices": [{"index": 0, "text": text, "finish_reason": "length"}]});
    json!({"id": "batch_1", "custom_id": request["custom_id"], "error": null,
        "response": {"status_code": 200, "request_id": "r", "body": body}})
}

fn of_modes(place: &TestCache, modes: &[Mode]) -> Vec<PromptText> {
    modes.iter().map(|mode| PromptText::of_mode(&place.experiment, *mode).unwrap()).collect()
}

/// Returns the requests of a batch, with its summary.
fn requests(prompts: &[PromptText], completion: &Completion) -> (Vec<Value>, BatchSummary) {
    let mut lines = Vec::new();
    let summary = write_batch(prompts, completion, BatchOf::Completions, &mut |line| {
        lines.extend_from_slice(line);
        Ok(())
    });
    (parse(&lines), summary.unwrap())
}

#[test]
fn a_batch_goes_out_and_comes_back_in_any_order() {
    let place = TestCache::with_prompts();
    let (prompts, completion) = (of_modes(&place, &MODES), without_server(place.dir.path()));
    let (requests_of_all, summary) = requests(&prompts, &completion);
    assert_eq!((summary.requests, summary.others), (4, 0));
    let ids: Vec<&str> =
        requests_of_all.iter().map(|request| request["custom_id"].as_str().unwrap()).collect();
    assert!(ids[0].starts_with("row-0-of-none-"), "{ids:?}");
    assert!(ids[3].starts_with("row-1-of-rg1-"), "{ids:?}");
    let request = &requests_of_all[0];
    assert_eq!((&request["method"], &request["url"]), (&json!("POST"), &json!("/v1/completions")));
    assert_eq!(request["body"]["max_tokens"], 8);

    let answer = |(number, request)| batch_answer(request, &format!("\nanswer_{number}()"));
    let mut answers: Vec<Value> = requests_of_all.iter().enumerate().map(answer).rev().collect();
    // One fails, one belongs to another user, so that an answer is missing, and one line is broken.
    answers[0] = json!({"id": "b", "custom_id": ids[3], "response": null, "error": {"code": "batch_expired", "message": "too late"}});
    answers[1]["custom_id"] = "row-4-of-rg1-0123456789abcdef".into();
    let [file, more] = ["answers.jsonl", "more.jsonl"].map(|name| place.dir.path().join(name));
    write(&file, &answers);
    fs::write(&file, fs::read_to_string(&file).unwrap() + "{\"custom_id\": \"row-0\n").unwrap();
    let read = |files: &[_], completion: &Completion| {
        read_batch(files, &prompts, completion, BatchOf::Completions).unwrap()
    };
    let first = read(std::slice::from_ref(&file), &completion);
    assert_eq!((first.answers, first.failed, first.problems.len()), (2, 1, 2));
    assert_said(
        &first.problems,
        &[
            "answers.jsonl:2: the answer to \"row-4-of-rg1-0123456789abcdef\" belongs to none of these prompts",
            "answers.jsonl:5: ",
        ],
    );
    let report = complete_modes(&place, &MODES, &completion);
    assert_said(&report.problems, &["task west/0: too late", "task east/0: it has no answer yet"]);
    assert_eq!(texts(&predictions(&place, Mode::Without)), ["answer_0()", "answer_1()"]);
    assert_eq!(predictions(&place, Mode::LeftContext).len(), 0);

    // A server completes the prompts that a batch left open, except those that failed in the batch.
    let server = TestServer::start_without_models(|_| repoformer_testing::completion("x"));
    let other = change_server(with_server(place.dir.path(), &server), |own| {
        let journal = place.dir.path().join("other.jsonl");
        fs::copy(&own.journal, &journal).unwrap();
        (own.journal, own.has_own_journal) = (journal, true);
    });
    let report = complete_modes(&place, &MODES, &other);
    assert_said(&report.problems, &["too late"]);
    assert_unsaid(&report.problems, "no answer yet");
    assert_eq!(server.requests().len(), 1);

    // Only open requests are written again.
    let (rest, summary) = requests(&prompts, &completion);
    assert_eq!((summary.requests, summary.others), (2, 2));
    assert_eq!(rest, requests_of_all[2..]);
    let answers: Vec<Value> = rest.iter().map(|request| batch_answer(request, "x = 1")).collect();
    write(&more, &answers);
    read(&[file.clone(), more.clone()], &completion);
    // A later failure does not undo an answer.
    read(&[file], &completion);
    let report = complete_modes(&place, &MODES, &completion);
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert_eq!(MODES.map(|mode| predictions(&place, mode).len()), [2, 2]);
    // Of two answers to a request, the first counts.
    let twice = place.dir.path().join("twice.jsonl");
    let answers = ["y = 1", "y = 2", "y = 1"].map(|text| batch_answer(&requests_of_all[0], text));
    write(&twice, &answers);
    let found = read(&[twice], &completion);
    assert_eq!((found.answers, found.problems.len()), (2, 1));
    assert_said(&found.problems, &["twice.jsonl:2: another answer to the same request is at "]);
    // With other settings, the requests differ.
    let stopped = change_server(completion, |own| own.asking.stop.push(";".into()));
    assert_said(&read(&[more], &stopped).problems, &["other settings"]);
    assert_said(&complete_modes(&place, &MODES, &stopped).problems, &["it has no answer yet"]);
}

#[test]
fn a_batch_leaves_out_what_a_server_streamed() {
    let place = TestCache::with_prompts();
    let server = token_server(&["\n", "x = f(1)", "\n", "more"]);
    complete_modes(&place, &[Mode::Without], &with_server(place.dir.path(), &server));
    assert!(server.requests().iter().all(|request| request.body["stream"] == true));
    let streamed = predictions(&place, Mode::Without);
    let (prompts, completion) =
        (of_modes(&place, &[Mode::Without]), without_server(place.dir.path()));
    let (_, summary) = requests(&prompts, &completion);
    assert_eq!((summary.requests, summary.others), (0, 2));
    // One of them is lost.
    keep_one_answer(&completion);
    remove(&place, "predictions");
    let (request, summary) = requests(&prompts, &completion);
    assert_eq!((summary.requests, summary.others), (1, 1));
    assert!(request[0]["body"].get("stream").is_none(), "{request:?}");
    let file = place.dir.path().join("answer.jsonl");
    write(&file, &[batch_answer(&request[0], "\nx = f(1)\nmore")]);
    let read = read_batch(&[file], &prompts, &completion, BatchOf::Completions).unwrap();
    assert_eq!(read.answers, 1);
    assert!(complete_modes(&place, &[Mode::Without], &completion).problems.is_empty());
    assert_eq!(texts(&predictions(&place, Mode::Without)), texts(&streamed));
}

#[test]
fn a_batch_of_a_file_of_prompts() {
    let dir = tempfile::tempdir().unwrap();
    let [path, answers] = ["prompts.jsonl", "answers.jsonl"].map(|name| dir.path().join(name));
    let stopped = json!({"prompt": "b = ", "metadata": {"stop": ["<end>"]}});
    write(&path, &[json!({"prompt": "a = "}), stopped, json!({"prompt": 3})]);
    let completion = with_bound(without_server(dir.path()), CompletionBound::Tokens);
    let completion = change_server(completion, |own| own.asking.api = Api::Chat);
    let prompts = [PromptText::of_file(&path).unwrap()];
    let (requests, summary) = requests(&prompts, &completion);
    assert_eq!(summary.requests, 2);
    assert_said(&summary.problems, &["prompts.jsonl:3"]);
    assert_eq!(requests[1]["body"]["messages"][1]["content"], "b =");
    assert_eq!(requests[1]["url"], "/v1/chat/completions");
    let stops = [&requests[0], &requests[1]].map(|request| request["body"].get("stop"));
    assert_eq!(stops, [None, Some(&json!(["<end>"]))]);
    let message = json!({"role": "assistant", "content": " 1"});
    let body = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
    let answer = json!({"custom_id": requests[1]["custom_id"], "response": {"status_code": 200, "body": body}, "error": null});
    write(&answers, &[answer]);
    read_batch(&[answers], &prompts, &completion, BatchOf::Completions).unwrap();
    let mut lines = Vec::new();
    let found = complete_file(&path, &completion, None, &mut |line| {
        lines.extend_from_slice(line);
        Ok(())
    });
    let problems = found.unwrap().problems;
    assert_said(&problems, &["prompts.jsonl:1: task without id: it has no answer yet"]);
    let records = parse(&lines);
    assert_eq!((records.len(), &records[0]["prompt"]), (1, &json!("b = ")));
    assert_eq!(texts(&records), ["1"]);
}
