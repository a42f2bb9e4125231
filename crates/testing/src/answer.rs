//! HTTP answers as bytes.

use serde_json::{Value, json};

use super::ReceivedRequest;

/// Returns an answer with a status line (`200 OK`), further header lines (`Retry-After: 1\r\n`) and a body.
pub fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Returns an answer with this JSON.
pub fn ok(body: &Value) -> Vec<u8> {
    answer("200 OK", "Content-Type: application/json\r\n", body.to_string())
}

/// Returns a stream of these events, followed by the `[DONE]` event.
pub fn events(events: &[Value]) -> Vec<u8> {
    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    answer("200 OK", "Content-Type: text/event-stream\r\n", text + "data: [DONE]\n\n")
}

/// Returns an error response, worded as OpenAI's servers word it.
pub fn refusal(status: &str, message: &str) -> Vec<u8> {
    refusal_with(status, "", message)
}

/// Returns an error response with further header lines.
pub fn refusal_with(status: &str, headers: &str, message: &str) -> Vec<u8> {
    answer(status, headers, json!({"error": {"message": message}}).to_string())
}

/// Returns a completion of one token.
pub fn completion(text: &str) -> Vec<u8> {
    let logprobs = json!({"content": [{"id": 3, "token": text, "logprob": -0.5}]});
    let choice = json!({"index": 0, "text": text, "finish_reason": "stop", "logprobs": logprobs});
    ok(&json!({"choices": [choice]}))
}

/// Returns a completion of one special token, which has no text, with its probability.
pub fn next_token(id: u64, logprob: f64) -> Vec<u8> {
    let logprobs = json!({"content": [{"id": id, "token": "", "logprob": logprob}]});
    let choice = json!({"index": 0, "text": "", "finish_reason": "stop", "logprobs": logprobs});
    ok(&json!({"choices": [choice]}))
}

/// Returns a completion of these tokens: as one event per token if the request asks for a stream, otherwise as one answer.
pub fn token_completion(request: &ReceivedRequest, tokens: &[&str]) -> Vec<u8> {
    let is_chat = request.path.contains("chat");
    let logprob = |token: &str| json!({"token": token, "logprob": -0.25 * token.len() as f64});
    let choice = |text: &str, tokens: &[&str], finish: Option<&str>, chat: &str| {
        let listed: Vec<Value> = tokens.iter().map(|token| logprob(token)).collect();
        let mut choice =
            json!({"index": 0, "finish_reason": finish, "logprobs": {"content": listed}});
        if is_chat {
            choice[chat] = json!({"content": text})
        } else {
            choice["text"] = json!(text)
        }
        json!({"choices": [choice]})
    };
    if request.body["stream"] != true {
        return ok(&choice(&tokens.concat(), tokens, Some("length"), "message"));
    }
    let parts = tokens.iter().map(|token| choice(token, &[*token], None, "delta"));
    let last = choice("", &[""], Some("length"), "delta");
    events(&parts.chain([last]).collect::<Vec<_>>())
}
