//! The probability of a token after each prompt.

use repoformer_testing::{next_token, ok};
use repoformer_text::message::{MessagePart, UserChoice};
use serde_json::json;

use super::*;
use crate::{
    BatchOf, BatchSummary, Predictions, PromptText, TokenQuestion, probabilities, read_batch,
    write_batch,
};

/// Returns a question about the token that requests retrieval.
fn question(id: Option<u64>) -> TokenQuestion {
    TokenQuestion { text: "<cc>".into(), id, after: Some("<eof>".into()) }
}

/// Returns the token as records contain it.
fn next(logprob: f64, is_likeliest: bool) -> Value {
    json!({"text": "<cc>", "id": 49_153, "logprob": logprob, "probability": libm::exp(logprob), "is_likeliest": is_likeliest})
}

/// Computes the probabilities after prompts; returns the records, too.
fn find_probabilities(
    prompts: &PromptText,
    completion: &Completion,
    question: &TokenQuestion,
) -> (Vec<Value>, Predictions) {
    let mut lines = Vec::new();
    let found = probabilities(prompts, completion, question, &mut |line| {
        lines.extend_from_slice(line);
        Ok(())
    });
    (parse(&lines), found.unwrap())
}

#[test]
fn the_probability_of_a_token_behind_each_prompt() {
    let place = TestCache::with_prompts();
    let prompts = PromptText::of_mode(&place.experiment, Mode::Without).unwrap();
    let server = TestServer::start_without_models(|request| match &*request.path {
        "/tokenize" => ok(&json!({"tokens": [49_153]})),
        _ if request.body.get("logit_bias").is_none() => next_token(8, -1.2),
        _ => next_token(49_153, -1.5),
    });
    let completion = with_server(place.dir.path(), &server);
    let (records, found) = find_probabilities(&prompts, &completion, &question(None));
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!((records.len(), found.records), (2, 2));
    assert_eq!(records[1]["next_token"], next(-1.5, false));
    assert_eq!(records[1]["metadata"]["task_id"], "west/0");
    let asked = server.requests();
    assert_eq!(asked.len(), 5);
    assert!(asked[1..].iter().all(|request| request.prompt().ends_with("\n<eof>")), "{asked:?}");
    let biases: Vec<&Value> =
        asked.iter().filter_map(|request| request.body.get("logit_bias")).collect();
    assert_eq!(biases, [&json!({"49153": 100}); 2]);
    // Each prompt is requested once.
    let (again, _) = find_probabilities(&prompts, &completion, &question(None));
    assert_eq!((again, server.requests().len()), (records, asked.len() + 1));
}

#[test]
fn a_server_that_returns_no_probability_is_named() {
    let place = TestCache::with_prompts();
    let prompts = PromptText::of_mode(&place.experiment, Mode::Without).unwrap();
    let server = TestServer::start_without_models(|request| match &*request.path {
        "/tokenize" => refusal("404 Not Found", "no such page"),
        _ => completion("x"),
    });
    let completion = with_server(place.dir.path(), &server);
    let error = probabilities(&prompts, &completion, &question(None), &mut |_| Ok(()));
    let error = error.unwrap_err();
    assert!(error.to_string().contains("does not say which token"), "{error}");
    let is_number = |part: &MessagePart| *part == MessagePart::Choice(UserChoice::TokenNumber);
    assert!(error.hint().unwrap().parts().iter().any(is_number), "{error:?}");
    let numbered = TokenQuestion { text: "<cc>".into(), id: Some(7), after: None };
    let (records, found) = find_probabilities(&prompts, &completion, &numbered);
    assert!(records.is_empty(), "{records:?}");
    let said = ["does not return the probability of token 7", "wrote the token 3 \"x\" instead"];
    assert_said(&found.problems, &said);
}

#[test]
fn a_batch_asks_for_the_probability_of_a_token() {
    let dir = tempfile::tempdir().unwrap();
    let [path, file] = ["prompts.jsonl", "a.jsonl"].map(|name| dir.path().join(name));
    write(&path, &["a", "b", "c"].map(|name| json!({"prompt": format!("{name} = 1\n")})));
    let prompts = [PromptText::of_file(&path).unwrap()];
    let completion = with_bound(without_server(dir.path()), CompletionBound::Tokens);
    let requests = |question: &TokenQuestion| {
        let mut lines = Vec::new();
        let summary = write_batch(&prompts, &completion, BatchOf::Token(question), &mut |line| {
            lines.extend_from_slice(line);
            Ok(())
        })?;
        Ok((parse(&lines), summary))
    };
    let counts = |summary: &BatchSummary| (summary.requests, summary.others);
    let read = |of: BatchOf<'_>| {
        read_batch(std::slice::from_ref(&file), &prompts, &completion, of).unwrap()
    };
    let error: Error = requests(&question(None)).unwrap_err();
    assert!(error.to_string().contains("token-id: must be given"), "{error}");
    let numbered = question(Some(49_153));
    let (written, summary) = requests(&numbered).unwrap();
    assert_eq!(counts(&summary), (3, 0));
    let body = &written[2]["body"];
    assert_eq!(body["prompt"], "c = 1\n<eof><cc>");
    assert_eq!((&body["prompt_logprobs"], &body["max_tokens"]), (&json!(1), &json!(1)));
    // The likeliest token is another one, this one, or one with the same probability; and a prompt ends with another token.
    let told = |request: &Value, last: Value| {
        let choice = json!({"index": 0, "text": "x", "prompt_logprobs": [null, last]});
        json!({"custom_id": request["custom_id"], "error": null,
            "response": {"status_code": 200, "body": {"choices": [choice]}}})
    };
    let one = |logprob: f64, text: &str| json!({"logprob": logprob, "decoded_token": text});
    let lasts = [
        json!({"49153": one(-2.5, "<cc>"), "8": one(-1.0, "x")}),
        json!({"49153": one(-0.5, "<cc>")}),
        json!({"7": one(-0.5, "c"), "8": one(-0.1, "x")}),
    ];
    let mut answers: Vec<Value> =
        written.iter().zip(lasts).map(|(request, last)| told(request, last)).collect();
    write(&file, &answers);
    let first = read(BatchOf::Token(&numbered));
    assert_eq!((first.answers, first.failed), (2, 1));
    let (records, found) = find_probabilities(&prompts[0], &completion, &numbered);
    assert_said(&found.problems, &["the text is not one token there"]);
    let tokens: Vec<&Value> = records.iter().map(|record| &record["next_token"]).collect();
    assert_eq!((found.records, tokens), (2, vec![&next(-2.5, false), &next(-0.5, true)]));
    // Another token is another question, and a completion is no answer to it.
    for of in [BatchOf::Token(&question(Some(7))), BatchOf::Completions] {
        assert_said(&read(of).problems, &["belongs to none of these prompts"]);
    }
    // Another batch answers a failed request.
    answers[2] = told(&written[2], json!({"49153": one(-0.7, "<cc>"), "8": one(-0.7, "x")}));
    write(&file, &answers);
    read(BatchOf::Token(&numbered));
    let (records, found) = find_probabilities(&prompts[0], &completion, &numbered);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!(records[2]["next_token"], next(-0.7, true));
    assert_eq!(counts(&requests(&numbered).unwrap().1), (0, 3));
}
