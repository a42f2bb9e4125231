//! Tokenizer of a `tokenizer.json`, and texts that consist of plain parts and special tokens.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashSet};
use serde_json::{Value, json};
use tokenizers::{AddedToken, Encoding, ModelWrapper, PostProcessorWrapper, Tokenizer};

use super::caught::caught;
use super::checked::Parts;
use super::parts::{EncodedText, Result, TextPart, TokenizerError, not_read, tokenizer_error};
use crate::reserved::{RESERVED, holds_reserved_name};

/// Tokenizer read from a file.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) digest: String,
    /// Number of tokens that the model's post-processing adds around a text, such as a beginning-of-text token.
    pub(super) around: usize,
    /// Ids of the tokens added before the text.
    pub(super) before: Vec<u32>,
    /// Special tokens and their ids.
    markers: HashMap<String, u32>,
    /// Ids of the markers.
    marker_ids: HashSet<u32>,
    /// Tokenizer that reads markers as special tokens; `None` if texts between markers are tokenized independently.
    special: Option<Tokenizer>,
    /// Tokenizer that reads markers as plain text.
    plain: Tokenizer,
}

/// Shows only the path, since the tables are long.
impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("path", &self.path).finish()
    }
}

impl File {
    /// Reads `path`, or `tokenizer.json` in it if it is a folder.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = super::tokenizer_file(path);
        let bytes = super::read(&file, path).map_err(|reason| not_read(&file, reason))?;
        Self::of_bytes(&file, &bytes)
    }

    /// Reads the content of a file.
    pub(super) fn of_bytes(path: &Path, bytes: &[u8]) -> Result<Self> {
        let file =
            with_tokenizer(path, bytes, |tokenizer| Self::of_tokenizer(path, bytes, tokenizer))?;
        file.try_out()?;
        Ok(file)
    }

    fn of_tokenizer(path: &Path, bytes: &[u8], mut special: Tokenizer) -> Self {
        let around = tokens_around(&special);
        let before = ids_before(&special);
        special.with_post_processor(None::<PostProcessorWrapper>);
        forget_dropout(&mut special);

        let added = special.get_added_tokens_decoder();
        let is_marker = |token: &AddedToken| token.special || is_bracketed(&token.content);
        let mut markers: Vec<(u32, AddedToken)> = added.into_iter().collect();
        markers.retain(|(_, token)| is_marker(token));
        let mut plain = special.clone();
        let tokens = markers.iter().map(|(_, token)| as_special(token.clone()));
        let tokens: Vec<AddedToken> = tokens.collect();
        plain.add_special_tokens(&tokens);
        plain.set_encode_special_tokens(true);
        Self {
            path: path.to_owned(),
            digest: blake3::hash(bytes).to_hex().to_string(),
            around,
            before,
            marker_ids: markers.iter().map(|(id, _)| *id).collect(),
            special: (!parts_stand_alone(&special, &markers)).then_some(special),
            markers: markers.into_iter().map(|(id, t)| (t.content, id)).collect(),
            plain,
        }
    }

    /// Encodes a sample: some tokenizers reject certain characters, and report this only when they encounter one.
    fn try_out(&self) -> Result<()> {
        let probe = "def f(x):\n\treturn \"\\u{e9}é漢😀\" + 1  # <&%$|^~`?>\r\n";
        match encode(&self.plain, probe, false) {
            Ok(encoding) if encoding.is_empty() => {
                let reason = "its vocabulary contains none of the characters of code";
                Err(tokenizer_error(&self.path, reason.to_owned()))
            }
            Ok(_) => Ok(()),
            Err(e) => {
                let reason = format!("it cannot tokenize code: {e}");
                Err(tokenizer_error(&self.path, reason))
            }
        }
    }

    /// Encodes parts like a program that knows the special tokens, and returns the positions of the special tokens. Code that
    /// spells a special token gets the ids of its characters.
    pub(super) fn ids(&self, parts: &[TextPart<'_>]) -> Result<EncodedText> {
        if let Some(encoded) = self.ids_of_whole(parts) {
            return Ok(encoded);
        }
        let (mut encoded, mut run) = (EncodedText::default(), String::new());
        for part in parts {
            match part {
                TextPart::Special(text) if self.markers.contains_key(*text) => {
                    self.push_plain(&mut run, &mut encoded.ids)?;
                    encoded.specials.push(encoded.ids.len());
                    encoded.ids.push(self.markers[*text]);
                }
                TextPart::Special(text) | TextPart::Plain(text) => run.push_str(text),
            }
        }
        self.push_plain(&mut run, &mut encoded.ids)?;
        Ok(encoded)
    }

    fn push_plain(&self, run: &mut String, ids: &mut Vec<u32>) -> Result<()> {
        if !run.is_empty() {
            let encoding = encode(&self.plain, run, false).map_err(|e| {
                tokenizer_error(&self.path, format!("it cannot tokenize a text: {e}"))
            })?;
            ids.extend_from_slice(encoding.get_ids());
            run.clear();
        }
        Ok(())
    }

    /// Encodes parts as one text, unless they are independent or a plain part spells a special token.
    fn ids_of_whole(&self, parts: &[TextPart<'_>]) -> Option<EncodedText> {
        let special = self.special.as_ref()?;
        let text: String = parts.iter().map(TextPart::text).collect();
        let encoding = encode(special, &text, false).ok()?;
        let meant = parts.iter().filter_map(|part| match part {
            TextPart::Special(marker) => self.markers.get(*marker),
            TextPart::Plain(_) => None,
        });
        let ids = encoding.get_ids();
        let found = (0..ids.len()).filter(|at| self.marker_ids.contains(&ids[*at]));
        let specials: Vec<usize> = found.collect();
        let as_meant = specials.iter().map(|at| &ids[*at]).eq(meant);
        as_meant.then(|| EncodedText { ids: ids.to_vec(), specials })
    }

    /// Decodes ids, spelling special tokens out.
    pub(super) fn decode(&self, ids: &[u32]) -> Result<String> {
        let decoded = caught(|| self.plain.decode(ids, false));
        let decoded = decoded.unwrap_or_else(|| Err(DAMAGED.into()));
        decoded.map_err(|e| tokenizer_error(&self.path, format!("it cannot decode: {e}")))
    }

    pub(super) fn special(&self, text: &str) -> Option<u32> {
        self.markers.get(text).copied()
    }

    /// Returns the number of tokens of a text without special tokens. A rejected text counts as the most tokens it could have,
    /// its number of bytes plus one, so that no budget is exceeded.
    pub(super) fn count(&self, text: &str) -> usize {
        let encoding = encode(&self.plain, text, false);
        encoding.map_or(text.len() + 1, |encoding| encoding.len())
    }

    /// Returns the number of tokens of the joined text of parts, as read by a program that knows the special tokens. Returns
    /// `None` if this number is the sum over the texts between special tokens. Also returns `None` if plain parts spell a
    /// special token: such a program would treat code as markers, which this one does not.
    pub(super) fn count_whole(&self, parts: &[(TextPart<'_>, Option<usize>)]) -> Option<usize> {
        let special = self.special.as_ref()?;
        let (mut text, mut meant) = (String::new(), 0);
        for (part, _) in parts {
            match part {
                TextPart::Special(marker) => {
                    text.push_str(marker);
                    meant += usize::from(self.markers.contains_key(*marker));
                }
                TextPart::Plain(plain) => text.push_str(plain),
            }
        }
        let encoding = encode(special, &text, false).ok()?;
        let ids = encoding.get_ids().iter();
        let found = ids.filter(|&id| self.marker_ids.contains(id)).count();
        (found == meant).then(|| encoding.len())
    }

    pub(super) fn spans(&self, text: &str) -> Vec<Range<usize>> {
        match caught(|| self.plain.encode(text, false)) {
            Some(Ok(encoding)) => {
                let offsets = encoding.get_offsets().iter();
                offsets.map(|&(start, end)| start..end).collect()
            }
            // The same number as `count` returns.
            Some(Err(_)) | None => (0..=text.len()).map(|at| at..at).collect(),
        }
    }
}

/// Returns true if the texts between markers are tokenized independently. Normalizers and pre-tokenizers process each text
/// separately, but Metaspace may put its blank only before the first, and a marker may absorb the blanks around it.
fn parts_stand_alone(tokenizer: &Tokenizer, markers: &[(u32, AddedToken)]) -> bool {
    let plain_marker = |token: &AddedToken| {
        let within_words = !token.single_word && !token.lstrip && !token.rstrip;
        within_words && (!token.normalized || tokenizer.get_normalizer().is_none())
    };
    let pre_tokenizer = tokenizer.get_pre_tokenizer().map(serde_json::to_string);
    let first_differs = match pre_tokenizer {
        None => false,
        Some(Ok(json)) => json.contains("\"prepend_scheme\":\"first\""),
        Some(Err(_)) => true,
    };
    !first_differs && markers.iter().all(|(_, token)| plain_marker(token))
}

/// Removes dropout, which skips merges at random in training; a count must not be random.
fn forget_dropout(tokenizer: &mut Tokenizer) {
    if let ModelWrapper::BPE(bpe) = tokenizer.get_model()
        && bpe.dropout.is_some()
    {
        let mut bpe = bpe.clone();
        bpe.dropout = None;
        tokenizer.with_model(bpe);
    }
}

/// Returns true if an added token looks like a marker. Qwen's files, for example, do not flag `<|fim_prefix|>` as special.
/// Other added tokens, such as CodeGen's runs of blanks, are tokens of code.
fn is_bracketed(token: &str) -> bool {
    let name = token.trim_start_matches('▁');
    let pair = [('<', '>'), ('[', ']')];
    name.chars().count() > 2
        && !name.contains(char::is_whitespace)
        && pair.iter().any(|&(open, close)| name.starts_with(open) && name.ends_with(close))
}

fn as_special(mut token: AddedToken) -> AddedToken {
    token.special = true;
    token
}

/// Returns the number of tokens that an unmodified tokenizer adds to a text.
fn tokens_around(tokenizer: &Tokenizer) -> usize {
    let count = |added| encode(tokenizer, "x", added).map_or(0, |e| e.len());
    count(true).saturating_sub(count(false))
}

/// Returns the ids of the tokens that it adds before a text.
fn ids_before(tokenizer: &Tokenizer) -> Vec<u32> {
    let ids = |added| {
        let encoding = encode(tokenizer, "x", added);
        encoding.map_or(Vec::new(), |e| e.get_ids().to_vec())
    };
    let (with, without) = (ids(true), ids(false));
    let mut windows = with.windows(without.len().max(1));
    let at = windows.position(|window| window == without).unwrap_or(0);
    with[..at].to_vec()
}

/// Message about a file for which the library panics.
const DAMAGED: &str = "part of the file is damaged; download it again";

/// Encodes a text as a whole, without the positions of its tokens.
fn encode(tokenizer: &Tokenizer, text: &str, added: bool) -> tokenizers::Result<Encoding> {
    let encoded = caught(|| tokenizer.encode_fast(text, added));
    encoded.unwrap_or_else(|| Err(DAMAGED.into()))
}

/// Checks and parses the content of a file, and returns the result of `work`.
fn with_tokenizer<T>(path: &Path, bytes: &[u8], work: impl FnOnce(Tokenizer) -> T) -> Result<T> {
    // The crate panics on a decoder that is not JSON.
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes)
        .map_err(|e| not_a_tokenizer(path, bytes, &e))?;
    if holds_reserved_name(bytes) {
        return Err(tokenizer_error(
            path,
            format!("it has a field of the reserved name '{RESERVED}'"),
        ));
    }
    let text = str::from_utf8(bytes).map_err(|e| not_a_tokenizer(path, bytes, &e))?;
    let parts: Parts<'_> =
        serde_json::from_str(text).map_err(|e| not_a_tokenizer(path, bytes, &e))?;
    parts.check(path)?;
    let used = serde_json::to_string(&parts).map_err(|e| not_a_tokenizer(path, bytes, &e))?;
    // The crate's `from_bytes` is generic: calling it would compile its whole parser again here.
    let read = caught(|| used.parse().map(work)).unwrap_or_else(|| Err(DAMAGED.into()));
    read.map_err(|e: tokenizers::Error| not_a_tokenizer(path, bytes, &*e))
}

/// Returns the error for a file that is not a tokenizer.
fn not_a_tokenizer(
    path: &Path,
    bytes: &[u8],
    reason: &(dyn std::error::Error + 'static),
) -> TokenizerError {
    let what = match serde_json::from_slice::<Value>(bytes) {
        Err(e) => format!("it is not a tokenizer.json, which is JSON ({e})"),
        Ok(Value::Object(fields)) if fields.contains_key("model") => {
            format!("its tokenizer cannot be used: {reason}")
        }
        Ok(Value::Object(fields)) if fields.contains_key("tokenizer_class") => {
            "it is a tokenizer_config.json, which only describes a tokenizer".into()
        }
        Ok(Value::Object(fields))
            if fields.values().all(Value::is_number) && !fields.is_empty() =>
        {
            "it is a vocabulary without its merges (vocab.json)".into()
        }
        Ok(_) => "it is not a tokenizer.json: it has no \"model\"".into(),
    };
    tokenizer_error(path, what)
}

/// Tokens and their ids.
pub(super) type TokenIds = Vec<(String, u32)>;

/// Adds special tokens to a `tokenizer.json`, leaving everything else unchanged. Returns the new file and the tokens' ids.
pub(super) fn extend(path: &Path, bytes: &[u8], tokens: &[&str]) -> Result<(Vec<u8>, TokenIds)> {
    let special = |token: &&str| AddedToken::from(*token, true).normalized(false);
    let new: Vec<AddedToken> = tokens.iter().map(special).collect();
    let tokenizer = with_tokenizer(path, bytes, |mut tokenizer| {
        tokenizer.add_special_tokens(&new);
        tokenizer
    })?;
    let mut json: Value = serde_json::from_slice(bytes)
        .map_err(|e| tokenizer_error(path, format!("it is not JSON: {e}")))?;
    let list = json["added_tokens"].as_array_mut();
    let mut list = list.map(std::mem::take).unwrap_or_default();
    let mut added = Vec::new();
    for token in tokens {
        let id = tokenizer.token_to_id(token);
        let id = id.ok_or_else(|| tokenizer_error(path, format!("it does not accept {token}")))?;
        // An ordinary added token becomes special.
        list.retain(|old| old["content"] != *token);
        list.push(json!({
            "id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": true,
        }));
        added.push(((*token).to_owned(), id));
    }
    json["added_tokens"] = Value::Array(list);
    let mut text = serde_json::to_vec_pretty(&json)
        .map_err(|e| tokenizer_error(path, format!("it cannot be written: {e}")))?;
    text.push(b'\n');
    Ok((text, added))
}
