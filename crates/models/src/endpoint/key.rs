//! A server's key: read from the environment, sent only to its own server, and masked in every answer.

use std::borrow::Cow;
use std::env::VarError;
use std::ffi::OsString;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use repoformer_store::error::{Error, Result};
use serde_json::Value;
use ureq::http::HeaderValue;

use super::address::{MASK, mask_url, named_value};
use super::readings::{BATCH, LONGEST_STEP, Layers, Notation, Reader};
use super::request::is_given_up;
use super::{DEFAULT_KEY_VARIABLE, POLICY_KEY_VARIABLE};

/// Length from which a part of a key is masked like the whole key. Shorter keys are words, such as `EMPTY`, that completions may contain.
const PART: usize = 12;

/// Maximum number of bytes over which the characters of a part may be spread at equal distances.
const LONGEST_RUN: usize = 3000;

/// URL parameters that hold no keys: their values are words that completions may contain. Any other parameter may hold a key (`api-key`,
/// `sig`, Azure's `code`).
const NAMES_OF_NO_KEY: [&str; 5] = ["api-version", "api_version", "version", "model", "deployment"];

/// Key of a server, from the environment or from the query of its URL; or several keys that are masked together.
#[derive(Clone, Default)]
pub(super) struct Key {
    /// Keys that are masked in messages even if they are short; empty if all keys are from URLs.
    secrets: Vec<String>,
    header: Option<HeaderValue>,
    /// Every part of every key, sorted: as plain text, URL-encoded, in hexadecimal digits, in base64 and in base32, each with and without
    /// the characters other than letters and digits. Short keys have no parts.
    parts: Vec<[u8; PART]>,
    /// Hashes of all parts.
    wholes: HashedTexts,
    /// Hashes of the first four characters of all parts.
    beginnings: HashedTexts,
    /// Hashes of all sequences of four characters within parts.
    fours: HashedTexts,
    /// For each character, the characters that precede it in a part, one bit each.
    before: Vec<u128>,
    /// Whether a number may contain a part.
    has_numbers: bool,
    /// Whether a part contains characters other than letters and digits.
    has_signs: bool,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Key {
    /// Reads the key from a variable; `None` if the variable is not set or empty.
    pub(super) fn from_environment(
        url: &str,
        name: &str,
        variable: impl Fn(&str) -> Result<String, VarError>,
    ) -> Result<Option<Self>> {
        let wrong = |reason: String| Error::Endpoint {
            url: mask_url(url),
            reason,
            hint: format!("set {name} to the server's key, and nothing else").into(),
            status: None,
        };
        let not = |what: &str| wrong(format!("the environment variable {name} {what}"));
        let value = match variable(name) {
            Ok(value) => value,
            Err(VarError::NotPresent) => return Ok(None),
            Err(_) => return Err(not("is not UTF-8")),
        };
        let secret = value.trim();
        if secret.is_empty() {
            return Ok(None);
        }
        Self::new(secret)
            .ok_or_else(|| not("contains characters that keys cannot contain"))
            .map(Some)
    }

    /// Creates a key from ASCII characters other than white space and `\\`, without an HTML entity. No key has either (RFC 6750), and in a
    /// text that repeats one, it could not be told from an escape.
    pub(super) fn new(secret: &str) -> Option<Self> {
        let mut header = HeaderValue::from_str(&format!("Bearer {secret}")).ok().filter(|_| {
            let may_have_entity =
                secret.split_once('&').is_some_and(|(_, after)| after.contains(';'));
            !secret.is_empty()
                && !may_have_entity
                && secret.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
        })?;
        header.set_sensitive(true);
        let mut key =
            Self { secrets: vec![secret.into()], header: Some(header), ..Self::default() };
        key.add(secret);
        if !key.parts.is_empty() {
            key.add_parts(&url_encoded(secret));
        }
        key.index();
        Some(key)
    }

    /// Returns a key together with the keys in the query of a URL (`?api-key=…`), because servers repeat those too.
    pub(super) fn with_query(key: Option<Self>, query: &str) -> Option<Self> {
        // Some servers also separate values by `;`, others take it as a part of them.
        let query = query.trim_start_matches('?');
        let pairs = query.split('&').chain(query.split(['&', ';']));
        let secret_of = |pair: &'_ str| match named_value(pair) {
            Some((name, value)) => {
                let is_harmless = |known: &&str| name.eq_ignore_ascii_case(known);
                (!NAMES_OF_NO_KEY.iter().any(is_harmless)).then(|| value.to_owned())
            }
            // The query may consist of a key alone.
            None => Some(pair.to_owned()),
        };
        let secrets: Vec<String> =
            pairs.filter_map(secret_of).filter(|secret| secret.len() >= PART).collect();
        if secrets.is_empty() {
            return key;
        }
        let mut key = key.unwrap_or_default();
        for secret in secrets {
            key.add(&secret);
            key.add(&url_decoded(&secret));
        }
        key.index();
        Some(key)
    }

    /// Returns the keys in the query of a URL.
    fn of_url(url: &str) -> Option<Self> {
        let (_, after_scheme) = url.trim().split_once("://")?;
        Self::with_query(None, after_scheme.split('#').next()?.split_once('?')?.1)
    }

    /// Returns the keys in the program's environment variables, alone or in a URL.
    fn of_variables(variables: impl Iterator<Item = (String, String)>) -> Self {
        let mut all = Self::default();
        for (name, value) in variables {
            let key = match &*name {
                DEFAULT_KEY_VARIABLE | POLICY_KEY_VARIABLE => {
                    Self::new(value.trim()).or_else(|| Some(Self::of_invalid(&value)))
                }
                name if name.starts_with("REPOFORMER_") => Self::of_url(&value),
                _ => None,
            };
            key.into_iter().for_each(|key| all.join(key));
        }
        all
    }

    /// Returns the words of a text that is no key, for masking: `Bearer` before a key, or several keys.
    fn of_invalid(text: &str) -> Self {
        let mut key = Self::default();
        text.split(char::is_whitespace).for_each(|word| key.add(word));
        key.index();
        key
    }

    /// Returns whether this key already masks everything that another one masks.
    fn masks_all_of(&self, other: &Self) -> bool {
        other.secrets.iter().all(|secret| self.secrets.binary_search(secret).is_ok())
            && other.parts.iter().all(|part| self.parts.binary_search(part).is_ok())
    }

    /// Adds everything that another key masks; the other key's header is not taken over.
    fn join(&mut self, other: Self) {
        self.secrets.extend(other.secrets);
        self.secrets.sort_unstable();
        self.secrets.dedup();
        if other.parts.iter().all(|part| self.parts.binary_search(part).is_ok()) {
            return;
        }
        self.parts.extend(other.parts);
        self.has_signs |= other.has_signs;
        self.index();
    }

    /// Adds a key in all its forms. In base64 it may begin at any of three positions of a group, in base32 at any of five; in both it may
    /// be encoded with two bytes per character.
    fn add(&mut self, secret: &str) {
        if secret.len() < PART {
            return;
        }
        self.add_parts(secret);
        self.has_signs |= !secret.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.add_parts(&hex);
        self.add_parts(&hex.to_uppercase());
        let wide: Vec<u8> = secret.bytes().flat_map(|byte| [byte, 0]).collect();
        let starts = (0..5).flat_map(|at| [secret.as_bytes().get(at..), wide.get(at..)]);
        for bytes in starts.flatten() {
            let [base64, base32] = [BASE64, BASE32].map(|signs| encode_bits(bytes, signs));
            self.add_parts(&base64);
            self.add_parts(&base64.replace('+', "-").replace('/', "_"));
            self.add_parts(&base32);
            self.add_parts(&base32.to_lowercase());
        }
    }

    fn add_parts(&mut self, form: &str) {
        let bare: String = form.chars().filter(char::is_ascii_alphanumeric).collect();
        let parts = [form, &bare].into_iter().flat_map(|form| form.as_bytes().windows(PART));
        self.parts.extend(parts.filter_map(|part| <[u8; PART]>::try_from(part).ok()));
    }

    /// Sorts the parts and rebuilds the indexes over them.
    fn index(&mut self) {
        self.parts.sort_unstable();
        self.parts.dedup();
        let is_of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let new = || HashedTexts::with_room_for(self.parts.len());
        (self.wholes, self.beginnings, self.fours) = (new(), new(), new());
        self.before = vec![0; 1 << 8];
        for part in &self.parts {
            self.has_numbers |= part.iter().all(is_of_number);
            self.wholes.insert(hash(part));
            self.beginnings.insert(hash_of_four(part));
            for four in part.windows(4) {
                self.fours.insert(hash_of_four(four));
            }
            for pair in part.windows(2) {
                self.before[usize::from(pair[1])] |= 1 << (pair[0] & 127);
            }
        }
    }

    /// Returns whether two characters may follow each other in a part.
    fn are_neighbours(&self, one: u8, next: u8) -> bool {
        self.before[usize::from(next)] >> (one & 127) & 1 == 1
    }

    fn is_part(&self, part: &[u8; PART]) -> bool {
        self.wholes.has(hash(part)) && self.parts.binary_search(part).is_ok()
    }

    /// Returns the header that carries the key; `None` if the URL carries it.
    pub(super) fn header(&self) -> Option<&HeaderValue> {
        self.header.as_ref()
    }

    /// Masks the whole key, however short, and long parts of it in a message.
    pub(super) fn mask_message(&self, message: &[u8]) -> Vec<u8> {
        if self.parts.is_empty() && self.secrets.is_empty() {
            return message.to_vec();
        }
        without(message, &self.marks(message, &self.secrets), false)
    }

    /// Masks long parts of the key in a server's text; returns the text itself if it contains none.
    pub(super) fn mask_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if text.len() < PART || self.parts.is_empty() {
            return Cow::Borrowed(text);
        }
        let is_secret = self.marks(text.as_bytes(), &[]);
        if !is_secret.contains(&true) {
            return Cow::Borrowed(text);
        }
        Cow::Owned(to_text(without(text.as_bytes(), &is_secret, false)))
    }

    /// Returns whether a text contains a long part of the key in any form.
    pub(super) fn is_in_text(&self, text: &str) -> bool {
        matches!(self.mask_text(text), Cow::Owned(_))
    }

    /// Returns whether bytes contain a long part of the key, unencoded.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        !self.parts.is_empty() && bytes.array_windows().any(|part| self.is_part(part))
    }

    /// Marks the bytes of a complete text that belong to long parts of the key, plain or encoded, or to one of the texts `wholes`.
    fn marks(&self, text: &[u8], wholes: &[String]) -> Vec<bool> {
        let mut is_secret = vec![false; text.len()];
        self.find_all(text, wholes, |_, from, to| is_secret[from..to].fill(true));
        fill_gaps(&mut is_secret, false);
        is_secret
    }

    /// Finds long parts of the key in a complete text. Once the request is cancelled, the whole text counts as one part.
    fn find_all(&self, text: &[u8], wholes: &[String], mut fill: impl FnMut(usize, usize, usize)) {
        let mut layers = Layers::new();
        let mut left = text.len();
        for batch in text.chunks(BATCH) {
            if is_given_up() {
                return fill(0, 0, text.len());
            }
            left -= batch.len();
            layers.read(batch, left == 0, |reader| self.find(reader, wholes, &mut fill));
        }
    }

    /// Finds long parts of the key in the characters that a reader has read, and keeps those characters that may begin another part. `fill`
    /// receives the position at which a part begins, and the range of bytes to mask.
    fn find(
        &self,
        reader: &mut Reader,
        wholes: &[String],
        mut fill: impl FnMut(usize, usize, usize),
    ) {
        // Short keys are searched only in the plain text: two numbers, which any message may contain, could spell one.
        for whole in wholes.iter().filter(|_| reader.reading == Notation::Exact) {
            for found in memchr::memmem::find_iter(reader.bytes(), whole.as_bytes()) {
                let (from, to) = reader.range(found, found + whole.len());
                fill(from, from, to);
            }
        }
        let longest = wholes.iter().map(String::len).max().unwrap_or_default();
        if self.parts.is_empty() {
            reader.keep(longest);
        } else if reader.reading == Notation::Even {
            self.find_even(reader, fill);
            reader.keep((PART - 1) * LONGEST_STEP);
        } else {
            for (at, part) in reader.bytes().array_windows().enumerate() {
                if self.is_part(part) {
                    let (from, to) = reader.range(at + reader.shown_characters(), at + PART);
                    fill(reader.start(at), from, to);
                }
            }
            reader.keep(PART.max(longest) - 1);
        }
    }

    /// Finds parts whose characters are at equal distances, and the beginnings of possible parts.
    fn find_even(&self, reader: &mut Reader, mut fill: impl FnMut(usize, usize, usize)) {
        let shown = reader.shown_characters();
        // Other notations already find adjacent letters and digits.
        let shortest = if self.has_signs { 1 } else { 2 };
        let mut runs = std::mem::take(&mut reader.runs);
        let bytes = reader.bytes();
        for end in reader.seen..bytes.len() {
            let before = self.before[usize::from(bytes[end])];
            let longest = if before == 0 { 0 } else { LONGEST_STEP.min(end / shown) };
            for step in shortest..longest + 1 {
                if before >> (bytes[end - step] & 127) & 1 == 0 || !self.is_run(bytes, end, step) {
                    continue;
                }
                if let Some(first) = self.run_start(bytes, end, step, shown + 1) {
                    runs.push((first + shown * step, end + step));
                }
                let Some(first) = end.checked_sub((PART - 1) * step) else { continue };
                let part: [u8; PART] = std::array::from_fn(|at| bytes[first + at * step]);
                let (from, to) = reader.range(first + shown * step, end + 1);
                if to - from <= LONGEST_RUN && self.is_part(&part) {
                    fill(reader.start(first), from, to);
                }
            }
        }
        reader.runs = runs;
    }

    /// Returns whether the last four characters of a run at equal distances occur in a part.
    fn is_run(&self, bytes: &[u8], end: usize, step: usize) -> bool {
        let four = [bytes[end - 3 * step], bytes[end - 2 * step], bytes[end - step], bytes[end]];
        self.fours.has(hash_of_four(&four))
    }

    /// Returns the first character of the longest run at equal distances, of `least` or more characters, that may become a part.
    fn run_start(&self, bytes: &[u8], end: usize, step: usize, least: usize) -> Option<usize> {
        let lengths = (least..PART).rev().filter(|length| (length - 1) * step <= end);
        let mut firsts = lengths.map(|length| end - (length - 1) * step);
        firsts.find(|first| {
            let mut run = [0; PART];
            let mut length = 0;
            for at in (*first..end + 1).step_by(step) {
                run[length] = bytes[at];
                length += 1;
            }
            self.begins_part(&run[..length])
        })
    }

    /// Returns the position from which the end of a text may still become a long part of the key. The distance to the end is bounded,
    /// because parts and the encodings of their characters are.
    fn settled_end(&self, reader: &Reader) -> usize {
        let (bytes, shown) = (reader.bytes(), reader.shown_characters());
        let unread = reader.start(bytes.len());
        if self.parts.is_empty() {
            return unread;
        }
        if reader.reading == Notation::Even {
            let starts = reader.runs.iter().map(|(start, _)| reader.start(*start));
            return starts.filter(|start| unread - start <= LONGEST_RUN).fold(unread, usize::min);
        }
        // No part begins before the last two characters that cannot be neighbours.
        let mut first = bytes.len().saturating_sub(1);
        while first > 0 && self.are_neighbours(bytes[first - 1], bytes[first]) {
            first -= 1;
        }
        let mut places = first..bytes.len().saturating_sub(shown);
        let begins = places.find(|at| self.begins_part(&bytes[*at..]));
        reader.start(begins.map_or(bytes.len(), |at| at + shown))
    }

    fn begins_part(&self, text: &[u8]) -> bool {
        if text.len() >= 4 && !self.beginnings.has(hash_of_four(text)) {
            return false;
        }
        let at = self.parts.partition_point(|part| part[..] < *text);
        self.parts.get(at).is_some_and(|part| part.starts_with(text))
    }
}

/// All keys of the program, from its environment and from its servers. Every answer is masked for all of them: a server may have learned
/// another server's key, and answers also come from files.
#[derive(Clone)]
pub(super) struct SharedKeys(Arc<RwLock<Arc<Key>>>);

#[cfg(not(test))]
static OWN: std::sync::LazyLock<SharedKeys> =
    std::sync::LazyLock::new(SharedKeys::from_environment);

#[cfg(test)]
thread_local! {
    /// Keys of one test, so that tests do not mask each other's keys.
    static OWN: SharedKeys = SharedKeys::from_environment();
}

impl SharedKeys {
    fn from_environment() -> Self {
        let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
        let variables = std::env::vars_os().filter_map(text);
        let variables = variables.map(|(name, value)| (name, value.to_string_lossy().into()));
        Self(Arc::new(RwLock::new(Arc::new(Key::of_variables(variables)))))
    }

    #[cfg(not(test))]
    pub(super) fn of_program() -> Self {
        OWN.clone()
    }

    #[cfg(test)]
    pub(super) fn of_program() -> Self {
        OWN.with(Self::clone)
    }

    /// Returns all keys, for masking.
    pub(super) fn get(&self) -> Arc<Key> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a key, which is then masked in the answers of every server.
    pub(super) fn add(&self, key: Option<Key>) {
        let Some(key) = key else { return };
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !all.masks_all_of(&key) {
            Arc::make_mut(&mut all).join(key);
        }
    }
}

/// Adds the keys in a server's URL to the keys that are masked, including in answers read from files.
pub fn mask_keys_of(url: &str) {
    SharedKeys::of_program().add(Key::of_url(url));
}

/// Masks long parts of the program's keys in an answer that was read from a file.
pub fn mask_keys(answer: &mut Value) {
    SharedKeys::of_program().get().mask(answer);
}

/// Returns whether a text contains a long part of one of the program's keys.
pub fn holds_key(text: &str) -> bool {
    SharedKeys::of_program().get().is_in_text(text)
}

/// Mask for long parts of the key in a text that arrives in pieces: text that may become a part is held back until the next piece.
#[derive(Debug, Default)]
pub struct KeyMask {
    key: Arc<Key>,
    /// Layers of the text; `None` if there is no key.
    layers: Option<Layers>,
    /// End of the text so far that is held back.
    held: String,
    /// Length of the text before `held`.
    passed: usize,
    /// For each byte of `held`, whether it is already known to belong to a key.
    is_secret: Vec<bool>,
    /// Whether the text before `held` ends with a mask.
    is_behind_mask: bool,
}

impl KeyMask {
    pub(super) fn new(key: Arc<Key>) -> Self {
        let layers = (!key.parts.is_empty()).then(Layers::new);
        Self { key, layers, ..Self::default() }
    }

    /// Accepts a piece of the text and returns the next piece, with keys masked.
    pub(crate) fn pass(&mut self, piece: &str) -> String {
        self.release(piece, false)
    }

    /// Returns the rest of the text, once it has ended.
    pub(crate) fn finish(&mut self) -> String {
        self.release("", true)
    }

    fn release(&mut self, piece: &str, is_end: bool) -> String {
        self.held += piece;
        let (key, Some(layers)) = (&self.key, &mut self.layers) else {
            return std::mem::take(&mut self.held);
        };
        let (passed, is_secret) = (self.passed, &mut self.is_secret);
        is_secret.resize(self.held.len(), false);
        let whole = passed + self.held.len();
        let mut rest = piece.as_bytes();
        let end = loop {
            if is_given_up() {
                is_secret.fill(true);
                break whole;
            }
            let batch = rest.split_off(..rest.len().min(BATCH)).unwrap_or_default();
            let (is_last, mut end) = (is_end && rest.is_empty(), whole);
            layers.read(batch, is_last, |reader| {
                key.find(reader, &[], |_, from, to| {
                    is_secret[from - passed..to - passed].fill(true);
                });
                if !is_last {
                    end = end.min(key.settled_end(reader));
                }
            });
            if rest.is_empty() {
                break end;
            }
        };
        let text = self.held.as_bytes();
        let mut end = self.held.floor_char_boundary(end - passed);
        let gap = fill_gaps(&mut self.is_secret[..end], self.is_behind_mask);
        if !is_end && gap <= LONGEST_GAP {
            // Whether the gap is masked depends on what follows.
            end = self.held.floor_char_boundary(end - gap);
        }
        let is_secret = &self.is_secret[..end];
        let shown = to_text(without(&text[..end], is_secret, self.is_behind_mask));
        self.is_behind_mask = is_secret.last().copied().unwrap_or(self.is_behind_mask);
        self.is_secret.drain(..end);
        self.held.drain(..end);
        self.passed += end;
        shown
    }
}

/// Approximate set of texts, as a Bloom filter with one hash: it contains every text that was inserted, and possibly others.
#[derive(Clone, Default)]
struct HashedTexts {
    bits: Vec<u64>,
    /// Number of hash bits that are not used.
    unused: u32,
}

impl HashedTexts {
    /// Minimum number of bits for each part, so that few are set and few other texts match by chance.
    const BITS: usize = 32;

    fn with_room_for(parts: usize) -> Self {
        let bits = (parts * Self::BITS).next_power_of_two().max(1 << 16);
        Self { bits: vec![0; bits / 64], unused: 64 - bits.ilog2() }
    }

    fn insert(&mut self, hash: u64) {
        let place = hash >> self.unused;
        self.bits[(place / 64) as usize] |= 1 << (place % 64);
    }

    #[inline]
    fn has(&self, hash: u64) -> bool {
        let place = hash >> self.unused;
        self.bits[(place / 64) as usize] >> (place % 64) & 1 == 1
    }
}

/// Odd multiplier with well-mixed bits, derived from the golden ratio.
const MIXED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the hash of a text's first four characters.
#[inline]
fn hash_of_four(text: &[u8]) -> u64 {
    let four = text.first_chunk().copied().unwrap_or_default();
    u64::from(u32::from_le_bytes(four)).wrapping_mul(MIXED)
}

/// Returns the hash of a part.
#[inline]
fn hash(part: &[u8; PART]) -> u64 {
    let eight = part.first_chunk().copied().unwrap_or_default();
    let rest = part.last_chunk().copied().unwrap_or_default();
    let first = u64::from_le_bytes(eight).wrapping_mul(MIXED);
    (first.rotate_left(32) ^ u64::from(u32::from_le_bytes(rest))).wrapping_mul(MIXED)
}

/// Alphabets of base64 and base32 (RFC 4648, sections 4 and 6).
const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Encodes bytes in an alphabet whose size is a power of two. Bits that do not fill the last character are dropped.
fn encode_bits(bytes: &[u8], signs: &[u8]) -> String {
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

/// Encodes a text for the query of a URL.
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

/// Decodes a URL-encoded value. Invalid escapes stay, and invalid UTF-8 becomes U+FFFD.
fn url_decoded(value: &str) -> String {
    let mut pieces = value.split('%');
    let mut text = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        match piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                text.push(byte);
                text.extend_from_slice(&piece.as_bytes()[2..]);
            }
            None => {
                text.push(b'%');
                text.extend_from_slice(piece.as_bytes());
            }
        }
    }
    to_text(text)
}

/// Greatest number of bytes between two masked parts that are masked, too: otherwise the masks of whole keys could separate the
/// characters of another one.
const LONGEST_GAP: usize = 32;

/// Marks the short gaps between marked bytes. Returns the number of bytes behind the last marked byte, which precedes the text if
/// it follows a mask; [`usize::MAX`] if there is none.
fn fill_gaps(is_secret: &mut [bool], is_behind_mask: bool) -> usize {
    let mut gap = if is_behind_mask { 0 } else { usize::MAX };
    for place in 0..is_secret.len() {
        if !is_secret[place] {
            gap = gap.saturating_add(1);
            continue;
        }
        if gap <= LONGEST_GAP {
            is_secret[place - gap..place].fill(true);
        }
        gap = 0;
    }
    gap
}

/// Replaces each marked run of a text with a mask. If the text follows a mask, a run at its beginning continues that mask.
fn without(text: &[u8], is_secret: &[bool], is_behind_mask: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut was_secret = is_behind_mask;
    for (byte, is_secret) in text.iter().zip(is_secret) {
        if !*is_secret {
            out.push(*byte);
        } else if !was_secret {
            out.extend_from_slice(MASK.as_bytes());
        }
        was_secret = *is_secret;
    }
    out
}

/// Converts bytes to a text; a character that was masked in part becomes U+FFFD.
fn to_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into())
}

mod values;

#[cfg(test)]
mod tests;
