//! Size of an answer that a request can call for: a server may send what it likes, and it must not fill the memory.

use serde_json::Value;

/// Bytes of an answer whatever was asked: a list of models, a page that explains an error.
const ANY: u64 = 16 << 20;
/// Bytes of a vector: 16,384 numbers of 32 characters.
const VECTOR: u64 = 16_384 * 32;
/// Bytes of a token with what a server tells about it: up to twenty others with their bytes, or an event of its own.
const TOKEN: u64 = 8 << 10;

/// Greatest number of bytes that the answer to a request may have.
pub(super) fn longest(body: Option<&Value>) -> u64 {
    let Some(body) = body else { return ANY };
    let number = |name: &str| body.get(name).and_then(Value::as_u64);
    let texts = body.get("input").and_then(Value::as_array).map_or(0, Vec::len) as u64;
    let tokens =
        ["max_tokens", "max_completion_tokens", "n_predict"].into_iter().filter_map(number).max();
    let samples = number("n").unwrap_or(1).max(1);
    let written = tokens.unwrap_or(0).saturating_mul(samples).saturating_mul(TOKEN);
    // Tokens of a text, or its echo, with a probability of each.
    let of_prompt =
        ["prompt", "content", "input"].into_iter().filter_map(|name| body.get(name)?.as_str());
    let read = of_prompt.map(|text| text.len() as u64 * 64).sum::<u64>();
    ANY.saturating_add(texts.saturating_mul(VECTOR)).saturating_add(written).saturating_add(read)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_asked_for_bounds_the_answer() {
        assert_eq!(longest(None), ANY);
        assert_eq!(longest(Some(&json!({"input": ["a", "b"]}))), ANY + 2 * VECTOR);
        let body = json!({"prompt": "ab", "max_tokens": 10, "n": 3});
        assert_eq!(longest(Some(&body)), ANY + 30 * TOKEN + 128);
        assert_eq!(longest(Some(&json!({"max_tokens": u64::MAX, "n": 9}))), u64::MAX);
    }
}
