//! A server's key: read from the environment, sent to its server alone, and masked in all that comes back.

use std::borrow::Cow;
use std::env::VarError;

use rustc_hash::FxHashSet;
use serde_json::Value;
use ureq::http::HeaderValue;

use super::DEFAULT_KEY_VARIABLE;
use super::address::{MASK, masked};
use crate::error::{Error, Result};

/// Length of a part of a key that is masked as the whole is. Shorter keys are words, such as `EMPTY`, which completions may
/// contain.
const PART: usize = 12;

/// Words in the names of a URL's parameters that hold keys.
const KEY_WORDS: [&str; 6] = ["key", "token", "secret", "sig", "pass", "auth"];

/// A server's key, from the environment or in the query of its URL.
#[derive(Clone)]
pub(super) struct Key {
    /// Empty where the URL alone holds keys.
    secret: String,
    header: Option<HeaderValue>,
    /// Each part of every key, as it is and as a URL has it; none of a short one.
    parts: FxHashSet<[u8; PART]>,
}

impl Key {
    /// Reads the key from the named variable, or from the default one.
    pub(super) fn from_environment(
        url: &str,
        named: Option<&str>,
        variable: impl Fn(&str) -> Result<String, VarError>,
    ) -> Result<Option<Self>> {
        let name = named.unwrap_or(DEFAULT_KEY_VARIABLE);
        let wrong = |reason: String| Error::Endpoint {
            url: masked(url),
            reason,
            hint: format!("set {name} to the server's key, and nothing else"),
            status: None,
        };
        let not = |what: &str| wrong(format!("the environment variable {name} {what}"));
        let value = match variable(name) {
            Ok(value) => value,
            Err(VarError::NotPresent) if named.is_none() => return Ok(None),
            Err(VarError::NotPresent) => return Err(not("is not set")),
            Err(_) => return Err(not("is not UTF-8")),
        };
        let secret = value.trim();
        if secret.is_empty() {
            return if named.is_none() { Ok(None) } else { Err(not("is empty")) };
        }
        Self::new(secret).ok_or_else(|| not("contains characters that no key has")).map(Some)
    }

    /// A key of ASCII characters other than blanks.
    pub(super) fn new(secret: &str) -> Option<Self> {
        let mut header = HeaderValue::from_str(&format!("Bearer {secret}"))
            .ok()
            .filter(|_| secret.bytes().all(|byte| byte.is_ascii_graphic()))?;
        header.set_sensitive(true);
        let mut key =
            Self { secret: secret.into(), header: Some(header), parts: FxHashSet::default() };
        key.add(secret);
        key.add(&url_encoded(secret));
        Some(key)
    }

    /// A key with those that the query of a URL holds (`?api-key=…`): servers repeat them, too.
    pub(super) fn with_query(key: Option<Self>, query: &str) -> Option<Self> {
        let pairs = query.trim_start_matches('?').split('&');
        let secrets: Vec<&str> = pairs
            .filter_map(|pair| pair.split_once('='))
            .filter(|(name, value)| {
                let name = name.to_ascii_lowercase();
                value.len() >= PART && KEY_WORDS.iter().any(|word| name.contains(word))
            })
            .map(|(_, value)| value)
            .collect();
        if secrets.is_empty() {
            return key;
        }
        let none = || Self { secret: String::new(), header: None, parts: FxHashSet::default() };
        let mut key = key.unwrap_or_else(none);
        for secret in secrets {
            key.add(secret);
            key.add(&url_decoded(secret));
        }
        Some(key)
    }

    fn add(&mut self, secret: &str) {
        let parts = secret.as_bytes().windows(PART);
        self.parts.extend(parts.filter_map(|part| <[u8; PART]>::try_from(part).ok()));
    }

    /// The header that carries it; none where the URL does.
    pub(super) fn header(&self) -> Option<&HeaderValue> {
        self.header.as_ref()
    }

    /// A message without the key, however short it is, and without long parts of it.
    pub(super) fn masked(&self, message: &[u8]) -> Vec<u8> {
        let mut is_secret = vec![false; message.len()];
        if !self.secret.is_empty() {
            for found in memchr::memmem::find_iter(message, self.secret.as_bytes()) {
                is_secret[found..found + self.secret.len()].fill(true);
            }
        }
        self.mark_parts(message, &mut is_secret);
        without(message, &is_secret)
    }

    /// A text of a server without long parts of the key; the text itself if there are none.
    pub(super) fn masked_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut is_secret = vec![false; text.len()];
        self.mark_parts(text.as_bytes(), &mut is_secret);
        if !is_secret.contains(&true) {
            return Cow::Borrowed(text);
        }
        // Keys are ASCII, so no character is split.
        Cow::Owned(String::from_utf8_lossy(&without(text.as_bytes(), &is_secret)).into_owned())
    }

    /// Masks long parts of the key in every text and name of an answer.
    pub(super) fn mask(&self, answer: &mut Value) {
        match answer {
            Value::String(text) => {
                if let Cow::Owned(masked) = self.masked_text(text) {
                    *text = masked;
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.mask(value)),
            Value::Object(fields) => {
                if fields.keys().any(|name| matches!(self.masked_text(name), Cow::Owned(_))) {
                    let named = std::mem::take(fields).into_iter();
                    let named =
                        named.map(|(name, value)| (self.masked_text(&name).into_owned(), value));
                    *fields = named.collect();
                }
                fields.values_mut().for_each(|value| self.mask(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn mark_parts(&self, text: &[u8], is_secret: &mut [bool]) {
        if self.parts.is_empty() {
            return;
        }
        for (at, part) in text.windows(PART).enumerate() {
            if self.parts.contains(part) {
                is_secret[at..at + PART].fill(true);
            }
        }
    }
}

/// A text as the query of a URL has it.
fn url_encoded(text: &str) -> String {
    let mut url = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                url.push(char::from(byte));
            }
            other => url += &format!("%{other:02X}"),
        }
    }
    url
}

/// The ASCII text of a URL's value; what is no encoding stays.
fn url_decoded(value: &str) -> String {
    let mut pieces = value.split('%');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let byte = piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(u8::is_ascii) {
            Some(byte) => {
                text.push(char::from(byte));
                text += &piece[2..];
            }
            None => {
                text.push('%');
                text += piece;
            }
        }
    }
    text
}

/// A text with each marked run replaced.
fn without(text: &[u8], is_secret: &[bool]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for (at, byte) in text.iter().enumerate() {
        match is_secret[at] {
            false => out.push(*byte),
            true if at == 0 || !is_secret[at - 1] => out.extend_from_slice(MASK.as_bytes()),
            true => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_key_and_long_parts_of_it_are_masked() {
        let key = Key::new("sk-0123456789abcdef").unwrap();
        let text = |text| key.masked_text(text).into_owned();
        assert_eq!(text("é sk-0123456789abcdef é"), "é *** é");
        assert_eq!(text("it ends with 456789abcdef."), "it ends with ***.");
        assert_eq!(text("sk-01234567 is short"), "sk-01234567 is short");
        assert_eq!(key.masked(b"sk-0123456789abcdefsk-0123456789abcdef!"), b"***!");
        let mut answer =
            json!({"a sk-0123456789abcdef": [1, "x", {"b": "0123456789ab"}], "c": null});
        key.mask(&mut answer);
        assert_eq!(answer, json!({"a ***": [1, "x", {"b": "***"}], "c": null}));
        // A word that completions may contain is masked in messages alone.
        let word = Key::new("EMPTY").unwrap();
        assert_eq!(
            (&*word.masked_text("EMPTY"), &*word.masked(b"wrong key EMPTY")),
            ("EMPTY", &b"wrong key ***"[..])
        );
    }

    #[test]
    fn keys_in_urls_are_masked_in_both_forms() {
        let key =
            Key::with_query(None, "?api-version=2024-10-21-preview&api-key=ab%2Bcdefghijklm%2Fn")
                .unwrap();
        assert_eq!(key.header(), None);
        let text = |text| key.masked_text(text).into_owned();
        assert_eq!(text("no ab+cdefghijklm/n here"), "no *** here");
        assert_eq!(text("?api-key=ab%2Bcdefghijklm%2Fn"), "?api-key=***");
        assert_eq!(text("2024-10-21-preview"), "2024-10-21-preview");
        assert_eq!(key.masked(b"x ab+cdefghijklm/n"), b"x ***");
        assert!(Key::with_query(None, "?key=short&api-version=2024-10-21-preview").is_none());
        // A key of the environment in a URL.
        let key = Key::with_query(Key::new("sk-live+0a1b/2c3d"), "").unwrap();
        assert_eq!(key.masked_text("?key=sk-live%2B0a1b%2F2c3d."), "?key=***.");
    }

    proptest! {
        #[test]
        fn no_part_of_a_key_stays(secret in "[a-c]{1,30}", text in "[a-cé]{0,60}", cut in 0usize..30) {
            let key = Key::new(&secret).unwrap();
            let text = format!("{text}{}{text}", &secret[cut.min(secret.len())..]);
            let shown = key.masked_text(&text);
            for part in secret.as_bytes().windows(PART) {
                prop_assert!(!shown.contains(str::from_utf8(part).unwrap()), "{shown}");
            }
            prop_assert!(memchr::memmem::find(&key.masked(text.as_bytes()), secret.as_bytes()).is_none());
        }
    }
}
