//! Limits on the size of an answer, computed from its request, so that no server can fill the memory.

use serde_json::Value;

/// Size of an answer: its bytes and the number of its JSON values, each of which takes one or two hundred bytes of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) values: u64,
}

/// Size allowed for every answer, such as a list of models or a page that explains an error.
pub(super) const ANY: Size = Size { bytes: 16 << 20, values: 1 << 18 };
/// Size of a vector: 16,384 numbers of 32 characters.
const VECTOR: Size = Size { bytes: 16_384 * 32, values: 16_384 + 16 };
/// Size of a generated token with its details: up to twenty alternatives with their bytes, or a separate event.
const TOKEN: Size = Size { bytes: 8 << 10, values: 512 };
/// Size per byte of a prompt, for its tokens or its echo, each with a probability.
const OF_PROMPT: Size = Size { bytes: 64, values: 16 };

impl Size {
    fn plus(self, other: Self, times: u64) -> Self {
        let plus = |one: u64, more: u64| one.saturating_add(more.saturating_mul(times));
        Self { bytes: plus(self.bytes, other.bytes), values: plus(self.values, other.values) }
    }
}

/// Returns the maximum size of the answer to a request.
pub(super) fn greatest(body: Option<&Value>) -> Size {
    let Some(body) = body else { return ANY };
    let number = |name: &str| body.get(name).and_then(Value::as_u64);
    let texts = body.get("input").and_then(Value::as_array).map_or(0, Vec::len) as u64;
    let tokens =
        ["max_tokens", "max_completion_tokens", "n_predict"].into_iter().filter_map(number).max();
    let samples = number("n").unwrap_or(1).max(1);
    let written = tokens.unwrap_or(0).saturating_mul(samples);
    let of_prompt =
        ["prompt", "content", "input"].into_iter().filter_map(|name| body.get(name)?.as_str());
    let read = of_prompt.map(|text| text.len() as u64).sum();
    ANY.plus(VECTOR, texts).plus(TOKEN, written).plus(OF_PROMPT, read)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_asked_for_bounds_the_answer() {
        assert_eq!(greatest(None), ANY);
        assert_eq!(greatest(Some(&json!({"input": ["a", "b"]}))), ANY.plus(VECTOR, 2));
        let body = json!({"prompt": "ab", "max_tokens": 10, "n": 3});
        let size = greatest(Some(&body));
        assert_eq!(size.bytes, ANY.bytes + 30 * TOKEN.bytes + 128);
        assert_eq!(size.values, ANY.values + 30 * TOKEN.values + 32);
        let all = greatest(Some(&json!({"max_tokens": u64::MAX, "n": 9})));
        assert_eq!(all, Size { bytes: u64::MAX, values: u64::MAX });
    }
}
