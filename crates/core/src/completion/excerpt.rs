//! The error in a server's response, and an excerpt for messages.

use serde_json::Value;

/// Number of characters of a response shown in messages.
pub const SHOWN: usize = 200;

/// Returns the message of an error that a server reports in JSON: in the field `error` or `errors`, by `"success": false`, or as vLLM's
/// object named `error`.
pub fn error_in(answer: &Value) -> Option<String> {
    if answer.get("object").is_some_and(|object| object == "error") {
        return Some(message_in(answer));
    }
    let is_none = |error: &&Value| {
        matches!(error, Value::Null | Value::Bool(false)) || **error == "" || **error == 0
    };
    let error = answer.get("error").filter(|error| !is_none(error));
    let of_several = |errors: &Value| match errors {
        Value::Array(errors) => errors.iter().find(|error| !is_none(error)).map(message_in),
        Value::Object(errors) if errors.is_empty() => None,
        other => (!is_none(&other)).then(|| message_in(other)),
    };
    error
        .map(message_in)
        .or_else(|| answer.get("errors").and_then(of_several))
        .or_else(|| (answer.get("success")? == &Value::Bool(false)).then(|| message_in(answer)))
}

/// Returns the message of a server's error, or its code if it has nothing else.
pub fn message_in(error: &Value) -> String {
    let places = ["/error/message", "/error", "/message", "/detail", "/detail/0/msg"];
    let found = places.iter().find_map(|place| error.pointer(place)?.as_str());
    let message = found.or(error.as_str()).filter(|message| !message.trim().is_empty());
    match message {
        Some(message) => excerpt(message.as_bytes()),
        None => excerpt(error.to_string().as_bytes()),
    }
}

/// Returns the beginning of a response, on one line.
pub fn excerpt(bytes: &[u8]) -> String {
    // A character has at most four bytes; the rest need not be decoded.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(8 * SHOWN)]);
    let text = text.split(|c: char| c.is_whitespace() || c.is_control());
    let text = text.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if bytes.len() > 8 * SHOWN => format!("{text}…"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_is_one_beside_choices_too() {
        let choices = json!([{"index": 0, "text": "x = 1", "finish_reason": "stop"}]);
        let of = |error: Value| error_in(&error);
        assert_eq!(
            of(json!({"object": "text_completion", "error": null, "choices": choices})),
            None
        );
        for none in [json!([]), json!({}), json!(null), json!([null])] {
            assert_eq!(of(json!({"errors": none, "success": true, "choices": choices})), None);
        }
        for answer in [
            json!({"errors": [{"message": "boom"}], "choices": choices}),
            json!({"errors": "boom", "success": false}),
            json!({"success": false, "message": "boom", "choices": choices}),
            json!({"object": "error", "message": "boom", "choices": choices}),
            json!({"error": {"message": "boom"}, "choices": choices}),
            json!({"error": "boom", "choices": choices}),
        ] {
            assert_eq!(of(answer).as_deref(), Some("boom"));
        }
    }
}
