//! Tests against servers that answer like the ones people run.

use repoformer_testing::{ReceivedRequest, TestServer, ok, refusal};
use serde_json::json;

use super::*;
use crate::endpoint::test_client::client;

/// Returns an answer in the chat format, as llama.cpp sends it.
fn numbered(id: u64, text: &str, logprob: f64) -> Vec<u8> {
    let token =
        json!({"id": id, "token": text, "bytes": [], "logprob": logprob, "top_logprobs": []});
    let choice = json!({"text": text, "index": 0, "logprobs": {"content": [token]}, "finish_reason": "stop"});
    ok(&json!({"choices": [choice]}))
}

/// Returns an answer in the original format, as vLLM and OpenAI send it.
fn named(text: &str, logprob: f64) -> Vec<u8> {
    let logprobs = json!({"tokens": [text], "token_logprobs": [logprob], "top_logprobs": null, "text_offset": [0]});
    let choice = json!({"text": text, "index": 0, "logprobs": logprobs, "finish_reason": "length"});
    ok(&json!({"choices": [choice]}))
}

fn has(request: &ReceivedRequest, field: &str) -> bool {
    request.body.get(field).is_some()
}

const CC: u64 = 49_153;

fn token() -> NextToken {
    NextToken { text: "<cc>".into(), id: CC }
}

/// Returns the probabilities of `<cc>` after these prompts, as read from the server's answers.
fn probabilities(server: &TestServer, prompts: &[&str]) -> Vec<Result<f64, String>> {
    let (endpoint, token) = (client(server), token());
    let prober = Prober::new(&endpoint, "m", &token);
    let logprob = |prompt: &&str| {
        let samples = prober.ask(prompt).map_err(|error| error.to_string())?.samples;
        assert_eq!(samples[0].tokens[0].id, Some(CC));
        Ok(samples[0].tokens[0].logprob)
    };
    prompts.iter().map(logprob).collect()
}

#[test]
fn a_bias_forces_the_token_and_its_own_probability_is_read() {
    let server = TestServer::start(|_, request| {
        assert_eq!(request.body["max_tokens"], 1);
        if !has(request, "logit_bias") {
            return numbered(9, "x", -0.1);
        }
        assert_eq!(request.body["logit_bias"], json!({"49153": 100}));
        numbered(CC, "", -23.5)
    });
    assert_eq!(probabilities(&server, &["a", "b"]), [Ok(-23.5), Ok(-23.5)]);
    assert_eq!(server.requests().len(), 4, "one for the probability, one for the likeliest token");
    let (endpoint, token) = (client(&server), token());
    let answer = Prober::new(&endpoint, "m", &token).ask("c").unwrap();
    assert!(!token.is(&answer.samples[0].tokens[1]));
}

#[test]
fn vllm_names_tokens_by_number_and_openai_refuses_the_field() {
    let vllm = TestServer::start(|_, request| {
        assert!(has(request, "return_tokens_as_token_ids"));
        named("token_id:49153", -2.0)
    });
    assert_eq!(probabilities(&vllm, &["a"]), [Ok(-2.0)]);
    let openai = TestServer::start(|_, request| {
        if has(request, "return_tokens_as_token_ids") {
            refusal("400 Bad Request", "Unrecognized request argument supplied")
        } else {
            named("<cc>", -2.0)
        }
    });
    assert_eq!(probabilities(&openai, &["a", "b"]), [Ok(-2.0), Ok(-2.0)]);
    assert_eq!(openai.requests().len(), 5, "the way is found once");
    let other = TestServer::start(|_, _| named("token_id:7", -2.0));
    let error = probabilities(&other, &["a"]).remove(0).unwrap_err();
    assert!(error.contains("wrote the token \"token_id:7\" instead"), "{error}");
}

#[test]
fn what_is_read_after_forcing_is_no_probability() {
    // Log-probabilities of the biased distribution, as some servers are configured to return.
    let forced =
        |request: &ReceivedRequest| has(request, "logit_bias") || has(request, "allowed_token_ids");
    let server = TestServer::start(move |_, request| {
        if forced(request) {
            return named("token_id:49153", -0.0001);
        }
        if !has(request, "prompt_logprobs") {
            return named("x", -0.4);
        }
        assert_eq!(request.body["prompt"], "a<cc>");
        let last = json!({"49153": {"logprob": -3.25, "rank": 5, "decoded_token": "<cc>"}, "7": {"logprob": -0.4}});
        ok(&json!({"choices": [{"text": "y", "index": 0, "prompt_logprobs": [null, last]}]}))
    });
    assert_eq!(probabilities(&server, &["a"]), [Ok(-3.25)]);
}

#[test]
fn a_token_that_is_likeliest_is_read_where_nothing_is_forced() {
    let server = TestServer::start(|number, request| match (number, has(request, "logit_bias")) {
        // The same value whether forced or not …
        (0 | 1, _) => numbered(CC, "", -0.25),
        // … and after a value below one half, no further checks are needed.
        (_, true) => numbered(CC, "", if number == 2 { -1.5 } else { -0.1 }),
        // The token that is likeliest instead.
        (3, false) => numbered(9, "x", -0.4),
        (_, false) => panic!("no more checks are needed"),
    });
    let found = probabilities(&server, &["a", "b", "c"]);
    assert_eq!(found, [Ok(-0.25), Ok(-1.5), Ok(-0.1)]);
}

#[test]
fn a_server_that_tells_nothing_is_refused_with_what_it_said() {
    // Ollama accepts the bias and ignores it; llama-cpp-python returns no probabilities of special tokens.
    let ignoring = TestServer::start(|_, _| numbered(9, "def", -0.1));
    let empty = json!({"text": "", "index": 0, "finish_reason": "stop",
        "logprobs": {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}});
    let silent = TestServer::start(move |_, _| ok(&json!({"choices": [empty.clone()]})));
    for (server, said) in [
        (&ignoring, "logit_bias: the server wrote the token 9 \"def\" instead"),
        (&silent, "logit_bias: the answer has no log-probability"),
    ] {
        let error = probabilities(server, &["a"]).remove(0).unwrap_err();
        let token = "probability of token 49153 (\"<cc>\")";
        for part in [token, said, "allowed_token_ids: ", "prompt_logprobs: "] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}

#[test]
fn a_prompt_that_is_too_long_says_nothing_of_the_server() {
    let server = TestServer::start(|_, request| {
        if request.body["prompt"] == "long" {
            refusal("400 Bad Request", "exceeds the available context size")
        } else {
            numbered(CC, "", -1.0)
        }
    });
    let found = probabilities(&server, &["long", "a", "long"]);
    assert_eq!(found[1], Ok(-1.0));
    for place in [0, 2] {
        let error = found[place].as_ref().unwrap_err();
        assert!(error.contains("context size"), "{error}");
    }
}

#[test]
fn a_token_is_found_by_its_text() {
    let of = |answer: Vec<u8>| {
        let server = TestServer::start(move |_, _| answer.clone());
        let found = NextToken::find(&client(&server), "m", "<cc>");
        let request = server.requests().remove(0);
        assert_eq!((&*request.method, &*request.path), ("POST", "/tokenize"));
        assert_eq!(request.body["content"], "<cc>");
        assert_eq!(request.body["parse_special"], true);
        found
            .map(|token| token.id)
            .map_err(|error| (error.to_string(), error.hint().unwrap().to_string()))
    };
    // llama.cpp without and with pieces, vLLM, and TGI.
    for answer in [
        json!({"tokens": [49153]}),
        json!({"tokens": [{"id": 49153, "piece": "<cc>"}]}),
        json!({"count": 1, "max_model_len": 8, "tokens": [49153]}),
        json!([{"id": 49153, "text": "<cc>", "start": 0, "stop": 4}]),
    ] {
        assert_eq!(of(ok(&answer)), Ok(CC));
    }
    for (answer, reason) in [
        (ok(&json!({"tokens": [44, 536, 46]})), "3 tokens of this model ([44, 536, 46])"),
        (refusal("404 Not Found", "Not Found"), "does not say which token \"<cc>\" is"),
        (ok(&json!({"a": 1})), "contains no tokens"),
    ] {
        let (error, hint) = of(answer).unwrap_err();
        assert!(error.contains(reason) && hint.contains("token number"), "{error}; {hint}");
    }
    let other = NextToken { id: 2, ..token() };
    assert_ne!(Prober::key("m", &token(), "a"), Prober::key("m", &other, "a"));
}
