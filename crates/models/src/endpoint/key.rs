//! A server's key: read from the environment, sent to its server alone, and masked in all that comes back.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::env::VarError;
use std::fmt;
use std::sync::{Arc, LazyLock};

use repoformer_store::error::{Error, Result};
use serde_json::Value;
use ureq::http::HeaderValue;

use super::address::{MASK, masked};
use super::escapes::{Encoding, Reader};
use super::{DEFAULT_KEY_VARIABLE, POLICY_KEY_VARIABLE};

/// Length of a part of a key that is masked as the whole is. Shorter keys are words, such as `EMPTY`, which completions may
/// contain.
const PART: usize = 12;

/// Words in the names of a URL's parameters that hold no keys: their values are words that completions may contain. Any other may be
/// one (`api-key`, `sig`, Azure's `code`).
const WORDS_OF_NO_KEY: [&str; 5] = ["version", "model", "deployment", "region", "organization"];

/// A server's key, from the environment or in the query of its URL.
#[derive(Clone, Default)]
pub(super) struct Key {
    /// Empty where the URL alone holds keys.
    secret: String,
    header: Option<HeaderValue>,
    /// Each part of every key: as it is, as a URL has it, in hexadecimal digits, in base64 and in base32, with and without the signs
    /// between letters and digits; none of a short one.
    parts: BTreeSet<[u8; PART]>,
    /// Which beginnings of a part there are, by their hashes.
    beginnings: Vec<u64>,
    /// Whether a number may hold a part.
    has_numbers: bool,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
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
            hint: format!("set {name} to the server's key, and nothing else").into(),
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
        let mut key = Self { secret: secret.into(), header: Some(header), ..Self::default() };
        key.add(secret);
        key.add_parts(&url_encoded(secret));
        Some(key)
    }

    /// A key with those that the query of a URL holds (`?api-key=…`): servers repeat them, too.
    pub(super) fn with_query(key: Option<Self>, query: &str) -> Option<Self> {
        let pairs = query.trim_start_matches('?').split('&');
        let secrets: Vec<&str> = pairs
            .filter_map(|pair| pair.split_once('='))
            .filter(|(name, value)| {
                let name = name.to_ascii_lowercase();
                value.len() >= PART && !WORDS_OF_NO_KEY.iter().any(|word| name.contains(word))
            })
            .map(|(_, value)| value)
            .collect();
        if secrets.is_empty() {
            return key;
        }
        let mut key = key.unwrap_or_default();
        for secret in secrets {
            key.add(secret);
            key.add(&url_decoded(secret));
        }
        Some(key)
    }

    /// Adds a key in all its forms. In base64 it may begin at any of three places of a group, in base32 at any of five.
    fn add(&mut self, secret: &str) {
        self.add_parts(secret);
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.add_parts(&hex);
        self.add_parts(&hex.to_uppercase());
        for at in 0..secret.len().min(5) {
            let [base64, base32] =
                [BASE64, BASE32].map(|signs| encoded(&secret.as_bytes()[at..], signs));
            self.add_parts(&base64);
            self.add_parts(&base64.replace('+', "-").replace('/', "_"));
            self.add_parts(&base32);
            self.add_parts(&base32.to_lowercase());
        }
    }

    fn add_parts(&mut self, form: &str) {
        let is_of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let bare: String = form.chars().filter(char::is_ascii_alphanumeric).collect();
        self.beginnings.resize(1 << 10, 0);
        for part in [form, &bare].into_iter().flat_map(|form| form.as_bytes().windows(PART)) {
            self.has_numbers |= part.iter().all(is_of_number);
            self.parts.extend(<[u8; PART]>::try_from(part));
            let (word, bit) = place(part);
            self.beginnings[word] |= bit;
        }
    }

    fn is_part(&self, text: &[u8]) -> bool {
        let (word, bit) = place(text);
        self.beginnings[word] & bit != 0 && self.parts.contains(text)
    }

    /// The header that carries it; none where the URL does.
    pub(super) fn header(&self) -> Option<&HeaderValue> {
        self.header.as_ref()
    }

    /// A message without the key, however short it is, and without long parts of it.
    pub(super) fn masked(&self, message: &[u8]) -> Vec<u8> {
        without(message, &self.marks(message, &self.secret), false)
    }

    /// A text of a server without long parts of the key; the text itself if there are none.
    pub(super) fn masked_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if text.len() < PART {
            return Cow::Borrowed(text);
        }
        let is_secret = self.marks(text.as_bytes(), "");
        if !is_secret.contains(&true) {
            return Cow::Borrowed(text);
        }
        Cow::Owned(to_text(without(text.as_bytes(), &is_secret, false)))
    }

    /// Masks long parts of the key in every text, name, number and list of an answer. Returns whether there were any.
    pub(super) fn mask(&self, answer: &mut Value) -> bool {
        match answer {
            Value::String(text) => match self.masked_text(text) {
                Cow::Owned(masked) => {
                    *text = masked;
                    true
                }
                Cow::Borrowed(_) => false,
            },
            Value::Array(values) => {
                let any = values.iter_mut().fold(false, |any, one| self.mask(one) | any);
                if !self.is_spelled_by(values) {
                    return any;
                }
                *answer = MASK.into();
                true
            }
            Value::Object(fields) => {
                let is_named =
                    fields.keys().any(|name| matches!(self.masked_text(name), Cow::Owned(_)));
                if is_named {
                    let named = std::mem::take(fields).into_iter();
                    let named =
                        named.map(|(name, value)| (self.masked_text(&name).into_owned(), value));
                    *fields = named.collect();
                }
                fields.values_mut().fold(is_named, |any, one| self.mask(one) | any)
            }
            Value::Number(number) if self.has_numbers => {
                let is_secret = matches!(self.masked_text(&number.to_string()), Cow::Owned(_));
                if is_secret {
                    *answer = Value::Null;
                }
                is_secret
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Whether a list's texts and numbers, each of which may be a list of one, spell a long part of the key.
    fn is_spelled_by(&self, values: &[Value]) -> bool {
        /// No byte of a key.
        const NONE: &str = "999";
        if values.len() < 2 || self.parts.is_empty() {
            return false;
        }
        let (mut text, mut count) = (String::new(), 0);
        for mut value in values {
            count += 1;
            while let Value::Array(inner) = value
                && let [one] = &inner[..]
            {
                value = one;
            }
            match value {
                Value::String(one) => text += one,
                Value::Number(number) => match number.as_f64() {
                    Some(whole) if whole.fract() == 0.0 && (0.0..128.0).contains(&whole) => {
                        text += &(whole as u8).to_string();
                    }
                    _ if number.is_f64() => {
                        count -= 1;
                        text += NONE;
                    }
                    _ => text += &number.to_string(),
                },
                _ => text += NONE,
            }
            text.push(',');
        }
        // Most long lists are the fractions of an embedding.
        count > 1 && matches!(self.masked_text(&text), Cow::Owned(_))
    }

    /// Whether some bytes hold a long part of the key, as it is.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        !self.parts.is_empty() && bytes.windows(PART).any(|part| self.is_part(part))
    }

    /// Which bytes of a whole text belong to long parts of the key, or to the text `whole`: as they are, and as encodings write them.
    fn marks(&self, text: &[u8], whole: &str) -> Vec<bool> {
        let mut is_secret = vec![false; text.len()];
        for encoding in Encoding::ALL.into_iter().filter(|encoding| encoding.may_be_in(text)) {
            // Two numbers may be in any message.
            let is_exact = matches!(encoding, Encoding::Plain | Encoding::Escapes);
            let whole = if is_exact { whole } else { "" };
            self.mark(&mut Reader::new(encoding), text, true, whole, &mut is_secret);
        }
        is_secret
    }

    /// Marks what a reader finds in a text from where it was, and leaves it the characters that may begin a part.
    fn mark(
        &self,
        reader: &mut Reader,
        text: &[u8],
        is_whole: bool,
        whole: &str,
        is_secret: &mut [bool],
    ) {
        let mut has_more = true;
        while has_more {
            has_more = reader.read(text, is_whole);
            let mut fill = |from, to| {
                let (from, to) = reader.range(from, to);
                is_secret[from..to].fill(true);
            };
            if !whole.is_empty() {
                for found in memchr::memmem::find_iter(&reader.bytes, whole.as_bytes()) {
                    fill(found, found + whole.len());
                }
            }
            if !self.parts.is_empty() {
                for (at, part) in reader.bytes.windows(PART).enumerate() {
                    if self.is_part(part) {
                        fill(at + reader.shown(), at + PART);
                    }
                }
            }
            reader.keep(PART.max(whole.len()) - 1);
        }
    }

    /// Where the end of a text begins that may become a long part of the key, once more follows: there are so many characters, each of
    /// a bounded length.
    fn settled(&self, reader: &Reader) -> usize {
        let (length, shown) = (reader.bytes.len(), reader.shown());
        let mut places = 0..length.saturating_sub(shown);
        let begins = places.find(|at| self.begins_part(&reader.bytes[*at..]));
        reader.start(begins.map_or(length, |at| at + shown))
    }

    fn begins_part(&self, text: &[u8]) -> bool {
        let mut least = [0; PART];
        least[..text.len()].copy_from_slice(text);
        self.parts.range(least..).next().is_some_and(|part| part.starts_with(text))
    }
}

/// Keys in the environment: a server's answer may also come in a file, without a connection that knows the key.
static OWN: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let names = [DEFAULT_KEY_VARIABLE, POLICY_KEY_VARIABLE];
    let values = names.into_iter().filter_map(|name| std::env::var(name).ok());
    values.filter_map(|value| Key::new(value.trim())).collect()
});

/// Masks long parts of the program's keys in an answer that was read from a file.
pub fn mask_keys(answer: &mut Value) {
    OWN.iter().for_each(|key| {
        key.mask(answer);
    });
}

/// Whether a text holds a long part of one of the program's keys.
pub fn holds_key(text: &str) -> bool {
    OWN.iter().any(|key| matches!(key.masked_text(text), Cow::Owned(_)))
}

/// Masks long parts of the key in a text that comes in pieces: what may become one waits for the next piece.
#[derive(Debug, Default)]
pub struct KeyMask {
    key: Option<Arc<Key>>,
    /// End of the text so far, which waits.
    held: String,
    /// Which bytes of it are part of a key, whatever follows.
    is_secret: Vec<bool>,
    readers: Vec<Reader>,
    /// Whether the text before it ends with a mask.
    is_behind_mask: bool,
}

impl KeyMask {
    pub(super) fn new(key: Option<Arc<Key>>) -> Self {
        let readers = if key.is_some() { Encoding::ALL.map(Reader::new).into() } else { vec![] };
        Self { key, readers, ..Self::default() }
    }

    /// Takes a piece of the text, and returns the next piece without the key.
    pub(crate) fn pass(&mut self, piece: &str) -> String {
        self.held += piece;
        self.release(false)
    }

    /// Returns the rest, once the text has ended.
    pub(crate) fn finish(&mut self) -> String {
        self.release(true)
    }

    fn release(&mut self, is_end: bool) -> String {
        let Some(key) = &self.key else { return std::mem::take(&mut self.held) };
        let text = self.held.as_bytes();
        self.is_secret.resize(text.len(), false);
        let mut end = text.len();
        for reader in &mut self.readers {
            key.mark(reader, text, is_end, "", &mut self.is_secret);
            if !is_end {
                end = end.min(key.settled(reader));
            }
        }
        let end = self.held.floor_char_boundary(end);
        let is_secret = &self.is_secret[..end];
        let passed = to_text(without(&text[..end], is_secret, self.is_behind_mask));
        self.is_behind_mask = is_secret.last().copied().unwrap_or(self.is_behind_mask);
        self.readers.iter_mut().for_each(|reader| reader.forget(end));
        self.is_secret.drain(..end);
        self.held.drain(..end);
        passed
    }
}

/// Where a table has the hash of a text's beginning.
fn place(text: &[u8]) -> (usize, u64) {
    let beginning = text.first_chunk::<4>().copied().unwrap_or_default();
    let hash = u32::from_le_bytes(beginning).wrapping_mul(0x9e37_79b1) >> 16;
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// Signs of base64 and base32 (RFC 4648, sections 4 and 6).
const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// A text in some signs, each of which has as many of its bits; without those that are left at its end.
fn encoded(bytes: &[u8], signs: &[u8]) -> String {
    let of_sign = signs.len().ilog2();
    let (mut bits, mut count, mut encoded) = (0u32, 0, String::new());
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        count += 8;
        while count >= of_sign {
            count -= of_sign;
            encoded.push(char::from(signs[(bits >> count) as usize % signs.len()]));
        }
    }
    encoded
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

/// A text with each marked run replaced; behind a mask, a run at its beginning is the rest of that.
fn without(text: &[u8], is_secret: &[bool], is_behind_mask: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut was_secret = is_behind_mask;
    for (byte, is_secret) in text.iter().zip(is_secret) {
        match is_secret {
            false => out.push(*byte),
            true if !was_secret => out.extend_from_slice(MASK.as_bytes()),
            true => {}
        }
        was_secret = *is_secret;
    }
    out
}

/// Keys are ASCII, so that no character was split.
fn to_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into())
}

#[cfg(test)]
mod tests;
