//! Checks of a `tokenizer.json` before the library reads it. The file is untrusted: a part that would crash the library, or
//! make it use time or memory out of proportion to the file and to texts, is rejected by name.

use std::path::Path;

use foldhash::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokenizers::utils::SysRegex;
use tokenizers::{NormalizedString, Normalizer, NormalizerWrapper};

use super::caught::caught;
use super::charsmap;
use super::parts::{Result, TokenizerError, TokenizerFault};
use super::pattern::is_slow;

/// Greatest number of characters that a byte of a text may become through normalizer and pre-tokenizer together.
/// SentencePiece's tables have a character of three bytes that becomes 18 characters, which `Metaspace` may double.
const GROWTH: u64 = 16;
/// Greatest number of characters that a byte may become without such tables. Tokenizers stay below it.
const PLAIN_GROWTH: u64 = 10;
/// Greatest number of characters that a byte may become if each byte of a character may become a token.
const GROWTH_OF_BYTES: u64 = 3;
/// Greatest number of steps of a part, including nested steps.
const STEPS: usize = 32;
/// Greatest size of a pattern in bytes.
const PATTERN: usize = 16 << 10;
/// Greatest number of characters in a piece of a Unigram model, which the library tries at each character; SentencePiece's
/// default is 16.
const PIECE: usize = 64;
/// Greatest number of nodes in the trie of a Unigram model's pieces; a vocabulary of 250,000 has a million.
const NODES: usize = 4 << 20;
/// Greatest number of characters of an added token.
const ADDED: usize = 256;
/// Greatest number of added tokens, for which the library takes quadratic time; Gemma 3 has 6,400.
const ADDED_TOKENS: usize = 20_000;
/// Greatest number of characters of tokens that may replace any character: the unknown token, the marks of word parts, and
/// tokens that share an id with another.
const MARK: usize = 64;
/// Greatest number of characters of a word that a WordPiece model splits, times the growth of texts; longer words are unknown. The time
/// grows with its square. The library's default is 100 characters.
const WORD: u64 = 400;
/// Greatest number of tokens that may be added around a text.
const AROUND: u64 = 1024;
/// Number of bytes of special tokens' texts that count as one token.
const LONG_TOKEN: u64 = 64;

/// Parts of a file except `truncation` and `padding`: no text is truncated or padded.
#[derive(Serialize, Deserialize)]
pub(super) struct Parts<'f> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    version: Option<&'f RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    added_tokens: Option<&'f RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    normalizer: Option<&'f RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pre_tokenizer: Option<&'f RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    post_processor: Option<&'f RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    decoder: Option<&'f RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    model: Option<&'f RawValue>,
}

/// Value, or the reason why a part is rejected.
type PartResult<T> = std::result::Result<T, String>;

impl Parts<'_> {
    /// Fails at the first part that must be rejected.
    pub(super) fn check(&self, path: &Path) -> Result<()> {
        let refused = |part| {
            move |reason| TokenizerError {
                path: path.to_owned(),
                fault: TokenizerFault::Refused { part, reason },
            }
        };
        let none = Growth { all: 1, plain: 1, read: CharsRead::OfText };
        let growth = check(self.normalizer, |step| growth_of(step, NORMALIZERS, none));
        let growth = growth.map_err(refused("normalizer"))?.unwrap_or(none);
        let growth = check(self.pre_tokenizer, |step| growth_of(step, PRE_TOKENIZERS, growth))
            .map_err(refused("pre_tokenizer"))?
            .unwrap_or(growth);
        check(self.decoder, |step| growth_of(step, DECODERS, none)).map_err(refused("decoder"))?;
        check(self.post_processor, |around| tokens_around(&around, 1, &mut 0))
            .map_err(refused("post_processor"))?;
        check(self.added_tokens, |tokens| check_added(tokens, self.normalizer))
            .map_err(refused("added_tokens"))?;
        check(self.model, |model| check_model(model, growth)).map_err(refused("model"))?;
        Ok(())
    }
}

/// Reads a part and checks it.
fn check<'f, P: Deserialize<'f>, T>(
    part: Option<&'f RawValue>,
    check: impl FnOnce(P) -> PartResult<T>,
) -> PartResult<Option<T>> {
    part.map(|part| read(part).and_then(check)).transpose()
}

fn read<'f, P: Deserialize<'f>>(part: &'f RawValue) -> PartResult<P> {
    serde_json::from_str(part.get()).map_err(|e| e.to_string())
}

/// Step of a normalizer, a pre-tokenizer or a decoder.
#[derive(Deserialize)]
struct Step {
    #[serde(rename = "type")]
    kind: String,
    /// Steps of a sequence.
    #[serde(alias = "pretokenizers", alias = "decoders")]
    normalizers: Option<Vec<Step>>,
    pattern: Option<Pattern>,
    content: Option<String>,
    prepend: Option<String>,
    precompiled_charsmap: Option<String>,
    length: Option<u64>,
}

/// Text or regular expression that a step replaces or splits at.
#[derive(Deserialize)]
enum Pattern {
    String(String),
    Regex(String),
}

/// Kinds of normalizers. The library reads a step of another kind as any kind whose fields it has.
const NORMALIZERS: &[&str] = &[
    "Bert", "BertNormalizer", "Strip", "StripAccents", "NFC", "NFD", "NFKC", "NFKD", "Sequence",
    "Lowercase", "Nmt", "Precompiled", "Replace", "Prepend", "ByteLevel",
];
const PRE_TOKENIZERS: &[&str] = &[
    "BertPreTokenizer", "ByteLevel", "Delimiter", "CharDelimiterSplit", "Metaspace", "Whitespace",
    "Sequence", "Split", "Punctuation", "WhitespaceSplit", "Digits", "UnicodeScripts",
    "FixedLength",
];
const DECODERS: &[&str] = &[
    "BPEDecoder", "ByteLevel", "WordPiece", "Metaspace", "CTC", "Sequence", "Replace", "Fuse",
    "Strip", "ByteFallback",
];

/// Kinds under the names that the library writes but ignores on reading: it recognises them by their fields alone.
const BY_FIELDS: [&str; 2] = ["BertNormalizer", "CharDelimiterSplit"];

impl Step {
    /// Returns true if it has a field of a kind other than these.
    fn is_mixed(&self) -> bool {
        let texts = [&self.content, &self.prepend, &self.precompiled_charsmap];
        self.normalizers.is_some()
            || self.pattern.is_some()
            || self.length.is_some()
            || texts.iter().any(|text| text.is_some())
    }
}

/// Greatest number of characters that a byte of a text becomes.
#[derive(Clone, Copy)]
struct Growth {
    all: u64,
    /// Without the growth by tables.
    plain: u64,
    /// Origin of the characters.
    read: CharsRead,
}

/// Returns the growth `before` the step, times the factor of the step and of its nested steps. Characters that Unicode's normal forms add
/// to unmodified text do not count.
fn growth_of(step: Step, kinds: &[&str], before: Growth) -> PartResult<Growth> {
    let (mut growth, mut steps, mut rest) = (before, 0, vec![step]);
    while let Some(step) = rest.pop() {
        steps += 1;
        if steps > STEPS {
            return Err(format!("it has more than {STEPS} steps"));
        }
        if !kinds.contains(&step.kind.as_str()) {
            return Err(format!("{} is not a supported type", step.kind));
        }
        if BY_FIELDS.contains(&step.kind.as_str()) && step.is_mixed() {
            return Err(format!("{} has fields of another type", step.kind));
        }
        let times = times(&step, growth.read)?;
        growth.all = growth.all.saturating_mul(times);
        if step.kind != "Precompiled" {
            growth.plain = growth.plain.saturating_mul(times);
        }
        if adds_bytes(&step) {
            growth.read = CharsRead::OfSteps;
        }
        for (growth, most) in [(growth.plain, PLAIN_GROWTH), (growth.all, GROWTH)] {
            if growth > most {
                return Err(format!(
                    "{} makes texts more than {most} times as long, alone or with the steps before it",
                    step.kind
                ));
            }
        }
        rest.extend(step.normalizers.into_iter().flatten().rev());
    }
    Ok(growth)
}

/// Origin of the characters that a step reads: all bytes of the text's own characters are in the text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CharsRead {
    OfText,
    OfSteps,
}

/// Returns true if a text may have more bytes after a step, apart from the bytes that Unicode's normal forms add.
fn adds_bytes(step: &Step) -> bool {
    match (step.kind.as_str(), &step.pattern, &step.content) {
        ("Replace", Some(Pattern::String(found)), Some(content)) => content.len() > found.len(),
        ("Sequence" | "NFC" | "NFD" | "NFKC" | "NFKD" | "Lowercase", ..) => false,
        ("Strip" | "StripAccents" | "Nmt", ..) => false,
        _ => true,
    }
}

/// Returns the number of characters that a single step makes from one character. For a table, this is the number per byte of
/// the text's own characters.
fn times(step: &Step, read: CharsRead) -> PartResult<u64> {
    let kind = step.kind.as_str();
    let may_be_empty = step.pattern.as_ref().map(may_be_empty).transpose()?;
    Ok(match kind {
        "FixedLength" if step.length == Some(0) => return Err("FixedLength has length 0".into()),
        // Blanks around a character, which has three bytes in a text.
        "Bert" | "BertNormalizer" if read == CharsRead::OfText => 1,
        "Bert" | "BertNormalizer" => 3,
        // A blank, and the bytes of a character.
        "ByteLevel" if read == CharsRead::OfText => 2,
        "ByteLevel" => 5,
        "Metaspace" => 2,
        "Precompiled" => match &step.precompiled_charsmap {
            Some(table) => charsmap::growth(table, read)?,
            None => 1,
        },
        "Prepend" => 1 + step.prepend.as_deref().map_or(0, widest),
        "Replace" => {
            let content = step.content.as_deref().map_or(0, widest);
            match &step.pattern {
                _ if may_be_empty == Some(true) => 1 + content,
                Some(Pattern::String(found)) => content.div_ceil(length(found)).max(1),
                _ => content.max(1),
            }
        }
        _ => 1,
    })
}

/// Returns true if a pattern matches positions between characters. A pattern without assertions that does not match an empty
/// text never does.
fn may_be_empty(pattern: &Pattern) -> PartResult<bool> {
    const ASSERTIONS: [&str; 14] = [
        "(?=", "(?!", "(?<", "(?(", "\\b", "\\B", "\\K", "\\G", "\\A", "\\z", "\\Z", "^", "$",
        "\\<",
    ];
    let (Pattern::String(text) | Pattern::Regex(text)) = pattern;
    if text.len() > PATTERN {
        return Err(format!("it has a pattern of more than {PATTERN} bytes"));
    }
    let Pattern::Regex(regex) = pattern else { return Ok(text.is_empty()) };
    if is_slow(regex) {
        return Err("its pattern can match in too many ways at one position".into());
    }
    let asserts = ASSERTIONS.iter().any(|sign| regex.contains(sign));
    let compiled = SysRegex::new(regex).map_err(|e| format!("a pattern is not valid: {e}"))?;
    Ok(asserts || compiled.find_iter("").next().is_some())
}

/// Returns the number of characters of a text after Unicode's normal forms have decomposed it.
pub(super) fn widest(text: &str) -> u64 {
    let plain = length(text);
    if plain > 1000 * GROWTH {
        return plain;
    }
    plain.max(length(NormalizedString::from(text).lowercase().nfkd().get()))
}

fn length(text: &str) -> u64 {
    text.chars().count() as u64
}

/// Post-processor: a template of special tokens around a text, or a sequence of post-processors.
#[derive(Deserialize)]
struct PostProcessor {
    processors: Option<Vec<PostProcessor>>,
    single: Option<Vec<TemplatePiece>>,
    special_tokens: Option<HashMap<String, SpecialTokens>>,
}

/// Element of a template: the text, or special tokens.
#[derive(Deserialize)]
enum TemplatePiece {
    Sequence { id: String },
    SpecialToken { id: String },
}

/// Special tokens that a template refers to by name.
#[derive(Deserialize)]
struct SpecialTokens {
    ids: Vec<u32>,
    #[serde(default)]
    tokens: Vec<String>,
}

impl SpecialTokens {
    /// Returns the number of tokens that this one counts for: long texts of tokens are copied for each place, too.
    fn size(&self) -> u64 {
        let bytes: usize = self.tokens.iter().map(String::len).sum();
        (self.ids.len() as u64).max(bytes as u64 / LONG_TOKEN)
    }
}

/// Returns the number of tokens of a text that had `tokens` before post-processing.
fn tokens_around(around: &PostProcessor, mut tokens: u64, steps: &mut usize) -> PartResult<u64> {
    *steps += 1;
    if *steps > STEPS {
        return Err(format!("it has more than {STEPS} steps"));
    }
    for step in around.processors.iter().flatten() {
        tokens = tokens_around(step, tokens, steps)?;
    }
    if let Some(places) = &around.single {
        let mut sum: u64 = 0;
        for place in places {
            sum += match place {
                TemplatePiece::Sequence { id } if id == "A" => tokens,
                TemplatePiece::Sequence { .. } => {
                    return Err("the template for a single text contains a second text".into());
                }
                TemplatePiece::SpecialToken { id } => {
                    let special = around.special_tokens.as_ref().and_then(|known| known.get(id));
                    special.ok_or_else(|| format!("it has no special token {id}"))?.size()
                }
            };
            if sum > AROUND {
                return Err(format!("it puts more than {AROUND} tokens around a text"));
            }
        }
        tokens = sum;
    }
    Ok(tokens)
}

/// Added token.
#[derive(Deserialize)]
struct AddedToken {
    content: String,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    normalized: bool,
}

fn check_added(tokens: Vec<AddedToken>, normalizer: Option<&RawValue>) -> PartResult<()> {
    if tokens.len() > ADDED_TOKENS {
        return Err(format!("it has more than {ADDED_TOKENS} tokens"));
    }
    if tokens.iter().any(|token| token.content.chars().count() > ADDED) {
        return Err(format!("a token has more than {ADDED} characters"));
    }
    let mut stripping = tokens.iter().filter(|token| token.lstrip || token.rstrip).peekable();
    if stripping.peek().is_none() {
        return Ok(());
    }
    let normalizer: Option<Option<NormalizerWrapper>> = normalizer.map(read).transpose()?;
    for token in stripping {
        if is_blank(token, normalizer.as_ref().and_then(Option::as_ref))? {
            return Err("a token of white space strips the white space around it".into());
        }
    }
    Ok(())
}

/// Returns true if a token may match white space in a text.
fn is_blank(token: &AddedToken, normalizer: Option<&NormalizerWrapper>) -> PartResult<bool> {
    let mut text = NormalizedString::from(token.content.as_str());
    if let (true, Some(normalizer)) = (token.normalized, normalizer) {
        let normalized = caught(|| normalizer.normalize(&mut text));
        normalized.ok_or("the normalizer is damaged")?.map_err(|e| e.to_string())?;
    }
    Ok(text.get().trim().is_empty())
}

/// Model: its vocabulary, and the tokens that replace characters.
#[derive(Deserialize)]
struct Model<'f> {
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    max_input_chars_per_word: Option<u64>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(borrow)]
    vocab: Option<&'f RawValue>,
}

fn check_model(model: Model<'_>, growth: Growth) -> PartResult<()> {
    let marks = [
        ("unk_token", &model.unk_token),
        ("continuing_subword_prefix", &model.continuing_subword_prefix),
        ("end_of_word_suffix", &model.end_of_word_suffix),
    ];
    for (name, mark) in marks {
        if mark.as_deref().is_some_and(is_long_mark) {
            return Err(format!("its {name} has more than {MARK} characters"));
        }
    }
    let longest = WORD / growth.all;
    if model.max_input_chars_per_word.is_some_and(|most| most > longest) {
        return Err(format!("max_input_chars_per_word is above {longest}"));
    }
    if model.byte_fallback && growth.plain > GROWTH_OF_BYTES {
        return Err(format!(
            "it has byte_fallback, and the steps before it make texts more than {GROWTH_OF_BYTES} times as long"
        ));
    }
    match model.vocab {
        // A Unigram model has a list of pieces and scores; other models map tokens to ids.
        Some(vocab) if vocab.get().starts_with('[') => check_pieces(read(vocab)?),
        Some(vocab) => check_ids(&read(vocab)?),
        None => Ok(()),
    }
}

fn is_long_mark(text: &str) -> bool {
    text.chars().count() > MARK
}

fn check_pieces(mut pieces: Vec<(String, f64)>) -> PartResult<()> {
    if pieces.iter().any(|(piece, _)| piece.chars().count() > PIECE) {
        return Err(format!("a piece has more than {PIECE} characters"));
    }
    if pieces.iter().map(|(piece, _)| piece.len()).sum::<usize>() <= NODES {
        return Ok(());
    }
    pieces.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let (mut nodes, mut last) = (0, "");
    for (piece, _) in &pieces {
        nodes += piece.len() - piece.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
        last = piece;
    }
    if nodes > NODES {
        Err(format!("its pieces have more than {NODES} different beginnings"))
    } else {
        Ok(())
    }
}

/// Checks that no two tokens share an id, since the library might return either as the name.
fn check_ids(ids: &HashMap<String, u32>) -> PartResult<()> {
    let long: Vec<u32> =
        ids.iter().filter(|(token, _)| is_long_mark(token)).map(|(_, id)| *id).collect();
    let of_long: HashSet<u32> = long.iter().copied().collect();
    let all = ids.values().filter(|id| of_long.contains(id)).count();
    if all > of_long.len() {
        Err(format!("a token of more than {MARK} characters shares the id of another token"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
