//! Tests against servers that answer like vLLM and others.

use repoformer_testing::{ReceivedRequest, TestServer, ok, refusal};
use serde_json::json;

use super::*;
use crate::endpoint::test_client::client;

/// Returns the words of a text, each with the blank space before it, and their numbers.
fn words(text: &str) -> Vec<(u64, String)> {
    let mut words: Vec<String> = Vec::new();
    for c in text.chars() {
        let begins = c.is_whitespace() && !words.last().is_some_and(|word| word.trim().is_empty());
        match words.last_mut().filter(|_| !begins) {
            Some(word) => word.push(c),
            None => words.push(c.into()),
        }
    }
    let number = |word: &str| word.bytes().map(u64::from).sum();
    words.into_iter().map(|word| (number(&word), word)).collect()
}

/// Answers like vLLM: each token's log-probability is its negated number, in hundredths.
fn vllm(request: &ReceivedRequest) -> Vec<u8> {
    if request.path.contains("/tokenize") {
        let numbers: Vec<u64> =
            words(request.body["prompt"].as_str().unwrap()).iter().map(|word| word.0).collect();
        return ok(&json!({"count": numbers.len(), "max_model_len": 99, "tokens": numbers}));
    }
    let numbers = request.body["prompt"].as_array().unwrap();
    let entry = |(place, number): (usize, &Value)| match place {
        0 => Value::Null,
        _ => {
            let code = number.as_u64().unwrap() as u32;
            let word = match code.checked_sub(32).and_then(char::from_u32) {
                Some(letter) if code > 128 => format!(" {letter}"),
                _ => char::from_u32(code).unwrap().to_string(),
            };
            let own =
                json!({"logprob": -(f64::from(code) / 100.0), "rank": 3, "decoded_token": word});
            json!({ number.to_string(): own })
        }
    };
    let found: Vec<Value> = numbers.iter().enumerate().map(entry).collect();
    ok(&json!({"choices": [{"text": "y", "index": 0, "prompt_logprobs": found}]}))
}

/// Answers like servers that echo a prompt and add one token.
fn echoing(request: &ReceivedRequest, first: &[&str]) -> Vec<u8> {
    if request.path.contains("/tokenize") {
        return refusal("404 Not Found", "no such path");
    }
    assert_eq!(request.body["echo"], true);
    let words = words(request.body["prompt"].as_str().unwrap());
    let texts = first.iter().copied().chain(words.iter().map(|word| word.1.as_str()));
    let texts: Vec<&str> = texts.chain([" more"]).collect();
    let logprob = |place: usize| if place == 0 { Value::Null } else { (-0.5).into() };
    let logprobs: Vec<Value> = (0..texts.len()).map(logprob).collect();
    let logprobs = json!({"tokens": texts, "token_logprobs": logprobs});
    ok(&json!({"choices": [{"text": "…", "index": 0, "logprobs": logprobs}]}))
}

fn logprobs(server: &TestServer, prompt: &str, text: &str) -> Result<Vec<f64>, String> {
    let endpoint = client(server);
    let answer = TextProber::new(&endpoint, "m").ask(prompt, text);
    let answer = answer.map_err(|error| error.to_string())?;
    Ok(answer.samples[0].tokens.iter().map(|token| token.logprob).collect())
}

#[test]
fn prompt_logprobs_are_those_of_the_texts_tokens() {
    let server = TestServer::start(|_, request| vllm(request));
    assert_eq!(logprobs(&server, "a b", " c d"), Ok(vec![-1.31, -1.32]));
    assert_eq!(server.requests().len(), 3);
    // The prompt's last space belongs to the next word, which is counted in full.
    assert_eq!(logprobs(&server, "a b ", "c d"), Ok(vec![-1.31, -1.32]));
    let error = logprobs(&server, "", "a").unwrap_err();
    assert!(error.contains("no token of the prompt stands before the text"), "{error}");
}

/// A server whose `/tokenize` truncates texts or uses the vocabulary of another model.
#[test]
fn tokens_of_another_text_have_no_likelihood() {
    for cut in [1, 2, 3] {
        let server = TestServer::start(move |_, request| {
            let mut request = request.clone();
            if request.path.contains("/tokenize") {
                let text = request.prompt().to_owned();
                let all = words(&text);
                let some = all.iter().take(cut).map(|word| word.1.as_str()).collect::<String>();
                request.body["prompt"] = some.into();
            }
            if request.body["prompt"].is_string() && !request.path.contains("/tokenize") {
                return refusal("404 Not Found", "no echo");
            }
            vllm(&request)
        });
        let error = logprobs(&server, "a", " b c d").unwrap_err();
        assert!(cut == 1 || error.contains("tokens are not those of the prompt"), "{cut}: {error}");
    }
}

#[test]
fn tokens_are_compared_by_their_visible_characters() {
    for (tokens, is_it) in [
        ("c d", true),
        ("b c d", true),
        ("\u{fffd}\u{fffd}c d", true),
        ("", true),
        ("d", false),
        ("x c d", false),
    ] {
        assert_eq!(is_of_text(tokens, "a b ", "c é d"), is_it, "{tokens}");
    }
}

#[test]
fn an_echo_is_read_where_nothing_else_is_known() {
    for first in [&[][..], &["<s>"]] {
        let server = TestServer::start(move |_, request| echoing(request, first));
        assert_eq!(logprobs(&server, "a b", " c d"), Ok(vec![-0.5, -0.5]));
        assert_eq!(logprobs(&server, "a b ", "c d"), Ok(vec![-0.5, -0.5]));
    }
}

#[test]
fn a_server_that_ignores_both_is_refused() {
    // llama.cpp's server tokenizes, but ignores the request for log-probabilities.
    let server = TestServer::start(|_, request| {
        if request.path.contains("/tokenize") {
            ok(&json!({"tokens": [1, 2, 3]}))
        } else {
            ok(
                &json!({"choices": [{"text": "y", "index": 0, "logprobs": {"tokens": ["y"], "token_logprobs": [-0.1]}}]}),
            )
        }
    });
    let error = logprobs(&server, "a b", " c").unwrap_err();
    for part in [
        "does not return the probabilities of a prompt",
        "prompt_logprobs: the answer has no such field",
        "echo: the tokens of the answer are not those of the prompt",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_long_prompt_says_nothing_of_the_server() {
    let server = TestServer::start(|_, request| match request.body["prompt"].as_array() {
        Some(numbers) if numbers.len() > 3 => {
            refusal("400 Bad Request", "This model's maximum context length is 3 tokens")
        }
        _ => vllm(request),
    });
    let endpoint = client(&server);
    let prober = TextProber::new(&endpoint, "m");
    assert!(prober.ask("a b c", " d").is_err());
    assert_eq!(prober.ask("a", " b").unwrap().samples[0].tokens.len(), 1);
}
