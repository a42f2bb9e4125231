//! Size of an answer that a request can call for: a server may send what it likes, and it must not fill the memory.

use serde_json::Value;

/// Size of an answer: its bytes, and the values of its JSON, each of which takes a hundred bytes of memory or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: u64,
    pub(super) values: u64,
}

/// Size of an answer whatever was asked: a list of models, a page that explains an error.
pub(super) const ANY: Size = Size { bytes: 16 << 20, values: 1 << 18 };
/// Size of a vector: 16,384 numbers of 32 characters.
const VECTOR: Size = Size { bytes: 16_384 * 32, values: 16_384 + 16 };
/// Size of a token with what a server tells about it: up to twenty others with their bytes, or an event of its own.
const TOKEN: Size = Size { bytes: 8 << 10, values: 512 };
/// Size for each byte of a prompt: its tokens, or its echo, with a probability of each.
const OF_PROMPT: Size = Size { bytes: 64, values: 16 };

impl Size {
    fn plus(self, other: Self, times: u64) -> Self {
        let plus = |one: u64, more: u64| one.saturating_add(more.saturating_mul(times));
        Self { bytes: plus(self.bytes, other.bytes), values: plus(self.values, other.values) }
    }
}

/// Greatest size that the answer to a request may have.
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
