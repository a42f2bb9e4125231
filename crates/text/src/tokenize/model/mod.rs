//! Tokenizers of models, for budgets in a model's own tokens.
//!
//! One type covers three kinds: [`P50k`], `words` (for budgets independent of any model's vocabulary), and any `tokenizer.json`
//! of Hugging Face's `tokenizers`. Code is always read as code: if a source file spells a special token, such as
//! `<fim_prefix>`, it has the tokens of those characters. Only tokens written by a prompt style are special
//! ([`TextPart::Special`]). No token is added at the start or the end of a text.
//!
//! Without the feature `tokenizers`, a `tokenizer.json` cannot be read: [`Tokenizer::open`] and [`Encoder::open`] return an
//! error.

#[cfg(feature = "tokenizers")]
mod caught;
#[cfg(feature = "tokenizers")]
mod charsmap;
#[cfg(feature = "tokenizers")]
mod checked;
mod cut;
mod encoder;
#[cfg(feature = "tokenizers")]
mod file;
#[cfg(not(feature = "tokenizers"))]
#[path = "absent.rs"]
mod file;
mod parts;
#[cfg(feature = "tokenizers")]
mod pattern;

use std::cell::RefCell;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::{fmt, fs};

use super::classes::Class;
use super::{P50k, PieceCache, vocabulary};
pub use encoder::Encoder;
use file::File;
use parts::Result;
pub use parts::{EncodedText, HINT, TextPart, TokenizerError, TokenizerFault};

/// Only special token of p50k_base, and its id.
const END_OF_TEXT: (&str, u32) = ("<|endoftext|>", 50_256);

thread_local! {
/// Memo of `P50k` across texts; it never affects a count.
    static PIECES: RefCell<PieceCache> = RefCell::new(PieceCache::default());
}

/// Returns the file of a tokenizer: `path`, or `tokenizer.json` in it if it is a folder.
pub fn tokenizer_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("tokenizer.json") } else { path.to_owned() }
}

/// Reads the whole file of a tokenizer. `given` is the path that the user named.
///
/// # Errors
/// The file cannot be read, is a device such as `/dev/zero`, which may have no end, or is inside the given folder and no regular file.
fn read(file: &Path, given: &Path) -> io::Result<Vec<u8>> {
    if file != given && !fs::metadata(file)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut file = fs::File::open(file)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        let kind = file.metadata()?.file_type();
        if kind.is_char_device() || kind.is_block_device() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a device, not a file"));
        }
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Tokenizer that counts the tokens of a text and truncates a text to a number of tokens. Cheap to clone, and safe to share
/// among threads.
///
/// ```
/// use repoformer_text::tokenize::model::Tokenizer;
/// let words: Tokenizer = "words".parse()?;
/// assert_eq!(words.count("x_1 = f(2)"), 6);
/// assert_eq!(words.keep_end("x_1 = f(2)", 3), "(2)");
/// let p50k: Tokenizer = "p50k_base".parse()?;
/// assert_eq!(p50k.count("import numpy as np\n"), 6);
/// assert_eq!(p50k.keep_start("import numpy as np\n", 2), "import n");
/// # Ok::<(), repoformer_text::tokenize::model::TokenizerError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tokenizer(Kind);

#[derive(Debug, Clone)]
enum Kind {
    P50k,
    Words,
    File(Arc<File>),
}

impl Tokenizer {
    /// Returns [`P50k`], OpenAI's `p50k_base` of the Codex models.
    pub const fn p50k_base() -> Self {
        Self(Kind::P50k)
    }

    /// Returns the tokenizer of words. A token is a maximal run of characters of Python's `\w` (the Unicode categories L and N,
    /// and `_`), or any other single character that is not blank (not of the property White_Space). Blanks are not tokens, and
    /// there are no special tokens.
    pub const fn words() -> Self {
        Self(Kind::Words)
    }

    /// Reads the tokenizer of a `tokenizer.json`, or of the folder that contains one. Its truncation, padding and dropout are
    /// ignored; tokens that its post-processing adds to a text are counted separately ([`around`](Self::around)).
    ///
    /// # Errors
    /// The file does not exist, or is not a tokenizer; the error states what the file is instead, if known.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self(Kind::File(Arc::new(File::open(path)?))))
    }

    /// Returns the number of tokens of a text alone, in which no characters are special.
    pub fn count(&self, text: &str) -> usize {
        match &self.0 {
            Kind::P50k => PIECES.with_borrow_mut(|pieces| P50k.count_with(text, pieces)),
            Kind::Words => words(text).count(),
            Kind::File(file) => file.count(text),
        }
    }

    /// Visits a name of each token of a text, in order: a word's characters, or the number of a token in its vocabulary. A text
    /// that the tokenizer rejects is one token, named by its characters.
    ///
    /// ```
    /// use repoformer_text::tokenize::model::Tokenizer;
    /// let mut terms = Vec::new();
    /// Tokenizer::p50k_base().each_term("import", |term| terms.push(term.to_owned()));
    /// assert_eq!(terms, ["11748"]);
    /// ```
    pub fn each_term(&self, text: &str, mut visit: impl FnMut(&str)) {
        match &self.0 {
            Kind::P50k => {
                let mut ids = Vec::with_capacity(text.len() / 3 + 8);
                PIECES.with_borrow_mut(|pieces| P50k.encode_into(text, pieces, &mut ids));
                ids.iter().for_each(|id| visit(&id.to_string()));
            }
            Kind::Words => words(text).for_each(|range| visit(&text[range])),
            Kind::File(file) => match file.ids(&[TextPart::Plain(text)]) {
                Ok(encoded) => encoded.ids.iter().for_each(|id| visit(&id.to_string())),
                Err(_) => visit(text),
            },
        }
    }

    /// Returns true if the tokenizer is `p50k_base`.
    pub fn is_p50k(&self) -> bool {
        matches!(self.0, Kind::P50k)
    }

    /// Returns the number of tokens of a text that consists of parts, as the model reads it: parts that join into one token
    /// count as one, but never across a special token.
    ///
    /// ```
    /// use repoformer_text::tokenize::model::{TextPart, Tokenizer};
    /// let p50k = Tokenizer::p50k_base();
    /// assert_eq!(p50k.count_parts(&[TextPart::Plain("im"), TextPart::Plain("port")]), 1);
    /// assert_eq!(p50k.count_parts(&[TextPart::Plain("im"), TextPart::Special("<|endoftext|>"), TextPart::Plain("port")]), 3);
    /// assert_eq!(p50k.count_parts(&[TextPart::Plain("<|endoftext|>")]), 7);
    /// ```
    pub fn count_parts(&self, parts: &[TextPart<'_>]) -> usize {
        let parts: Vec<_> = parts.iter().map(|part| (*part, None)).collect();
        self.count_known(&parts)
    }

    /// Returns the number of tokens of a text that consists of parts, some with a known number of tokens when tokenized alone.
    /// A part that is alone between two special tokens is not counted again.
    pub fn count_known(&self, parts: &[(TextPart<'_>, Option<usize>)]) -> usize {
        let whole = match &self.0 {
            Kind::File(file) => file.count_whole(parts),
            Kind::P50k | Kind::Words => None,
        };
        whole.unwrap_or_else(|| self.count_between(parts))
    }

    /// Counts each run of plain text between special tokens separately.
    fn count_between(&self, parts: &[(TextPart<'_>, Option<usize>)]) -> usize {
        let mut count = 0;
        let mut run: Vec<(&str, Option<usize>)> = Vec::new();
        for (part, tokens) in parts {
            match part {
                TextPart::Special(text) if self.special(text).is_some() => {
                    count += self.count_run(&run) + 1;
                    run.clear();
                }
                TextPart::Special("") | TextPart::Plain("") => {}
                TextPart::Special(text) | TextPart::Plain(text) => run.push((text, *tokens)),
            }
        }
        count + self.count_run(&run)
    }

    fn count_run(&self, run: &[(&str, Option<usize>)]) -> usize {
        match run {
            [] => 0,
            [(_, Some(tokens))] => *tokens,
            [(text, None)] => self.count(text),
            texts => self.count(&texts.iter().map(|(text, _)| *text).collect::<String>()),
        }
    }

    /// Returns the id of the special token with this spelling; `None` if the tokenizer has none.
    ///
    /// ```
    /// use repoformer_text::tokenize::model::Tokenizer;
    /// assert_eq!(Tokenizer::p50k_base().special("<|endoftext|>"), Some(50_256));
    /// assert_eq!(Tokenizer::words().special("<fim_prefix>"), None);
    /// ```
    pub fn special(&self, text: &str) -> Option<u32> {
        match &self.0 {
            Kind::P50k => (text == END_OF_TEXT.0).then_some(END_OF_TEXT.1),
            Kind::Words => None,
            Kind::File(file) => file.special(text),
        }
    }

    /// Returns the number of tokens that the model's post-processing adds around a prompt, such as a beginning-of-text token.
    /// Servers add them to every prompt, and they count towards its length.
    pub fn around(&self) -> usize {
        match &self.0 {
            Kind::P50k | Kind::Words => 0,
            Kind::File(file) => file.around,
        }
    }

    /// Returns true if it is a model's own tokenizer, read from a file.
    pub fn is_model(&self) -> bool {
        matches!(self.0, Kind::File(_))
    }

    /// Returns the tokenizer's name, or a digest of the bytes of its file, for use in an artifact's identity.
    pub fn digest(&self) -> String {
        match &self.0 {
            Kind::P50k | Kind::Words => self.to_string(),
            Kind::File(file) => file.digest.clone(),
        }
    }

    /// Returns the byte range in `text` of each token, in order. Tokens that share a character overlap.
    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        match &self.0 {
            Kind::P50k => p50k_spans(text),
            Kind::Words => words(text).collect(),
            Kind::File(file) => file.spans(text),
        }
    }
}

/// Displays the tokenizer's setting: `p50k_base`, `words` or the path.
impl fmt::Display for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::P50k => f.write_str("p50k_base"),
            Kind::Words => f.write_str("words"),
            Kind::File(file) => file.path.display().fmt(f),
        }
    }
}

impl FromStr for Tokenizer {
    type Err = TokenizerError;

    /// Parses `p50k_base`, `words`, or the path of a `tokenizer.json`.
    fn from_str(setting: &str) -> Result<Self> {
        match setting {
            "p50k_base" => Ok(Self::p50k_base()),
            "words" => Ok(Self::words()),
            path => Self::open(Path::new(path)),
        }
    }
}

fn p50k_spans(text: &str) -> Vec<Range<usize>> {
    let mut ids = Vec::with_capacity(text.len() / 3 + 8);
    PIECES.with_borrow_mut(|pieces| P50k.encode_into(text, pieces, &mut ids));
    let mut end = 0;
    let spans = ids.into_iter().map(|id| {
        let start = end;
        end += vocabulary::bytes_of(id).map_or(0, <[u8]>::len);
        // A token that is part of a character is widened to the whole character.
        text.floor_char_boundary(start)..text.ceil_char_boundary(end)
    });
    spans.collect()
}

/// Returns the tokens of [`Tokenizer::words`].
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = run_end(text, at, is_space, |class| class == Class::Space);
        let is_letter = |class| matches!(class, Class::Letter | Class::Number);
        let end = run_end(text, start, is_word, is_letter);
        at = if end > start { end } else { start + width(text, start) };
        (start < at).then_some(start..at)
    })
}

/// Returns the end of the run of characters that starts at `at` and is in the sets, which are defined by ASCII byte and, beyond
/// ASCII, by class.
#[inline(always)]
fn run_end(
    text: &str,
    mut at: usize,
    ascii: impl Fn(u8) -> bool,
    beyond: impl Fn(Class) -> bool,
) -> usize {
    while let Some(&byte) = text.as_bytes().get(at) {
        match byte {
            ..128 if ascii(byte) => at += 1,
            128.. if Class::at(text, at).is_some_and(&beyond) => at += width(text, at),
            _ => break,
        }
    }
    at
}

/// Returns the number of bytes of the character that starts at `at`; 0 at the end.
fn width(text: &str, at: usize) -> usize {
    match text.as_bytes().get(at) {
        Some(byte) => match byte.leading_ones() {
            0 => 1,
            ones => ones as usize,
        },
        None => 0,
    }
}

#[cfg(test)]
pub(crate) mod tests;
