//! Model's tokenizer for training: it returns ids instead of counts, and can add special tokens.

use std::path::Path;
use std::sync::Arc;

use super::file::{File, extend};
use super::parts::{EncodedText, Result, TextPart, not_read, tokenizer_error};
use super::{Kind, Tokenizer};

/// Tokenizer of a `tokenizer.json`, extended by missing special tokens.
///
/// ```
/// use repoformer_text::tokenize::model::{Encoder, TextPart};
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/tokenizers/starcoder.json");
/// let encoder = Encoder::open(path.as_ref(), &["<fim_prefix>", "<cc>", "<eof>"])?;
/// // The file has 900 tokens, `<fim_prefix>` among them.
/// assert_eq!(encoder.added, [("<cc>".to_owned(), 900), ("<eof>".to_owned(), 901)]);
/// let encoded = encoder.encode(&[TextPart::Plain("<eof>"), TextPart::Special("<eof>")])?;
/// let last = encoded.ids.len() - 1;
/// assert!(last > 1 && encoded.ids.iter().position(|id| *id == 901) == Some(last));
/// assert_eq!(encoded.specials, [last]);
/// assert_eq!(encoder.decode(&encoded.ids)?, "<eof><eof>");
/// # Ok::<(), repoformer_text::tokenize::model::TokenizerError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Encoder {
    file: Arc<File>,
    tokenizer: Tokenizer,
    /// Content of the `tokenizer.json` with the added tokens; the original bytes if none was added.
    pub json: Vec<u8>,
    /// Added tokens and their ids; the model's embeddings must have a row for each.
    pub added: Vec<(String, u32)>,
}

impl Encoder {
    /// Reads `path`, or `tokenizer.json` in it if it is a folder, and adds the missing tokens of `specials`: in their order,
    /// with the ids that Hugging Face's `tokenizers` assigns.
    ///
    /// # Errors
    /// The file does not exist, is not a tokenizer, or cannot take the tokens.
    pub fn open(path: &Path, specials: &[&str]) -> Result<Self> {
        let file = super::tokenizer_file(path);
        let bytes = super::read(&file, path).map_err(|reason| not_read(&file, reason))?;
        let path = &*file;
        let before = File::of_bytes(path, &bytes)?;
        let mut lacking: Vec<&str> = Vec::new();
        for special in specials {
            if before.special(special).is_none() && !lacking.contains(special) {
                lacking.push(special);
            }
        }
        let (file, json, added) = if lacking.is_empty() {
            (before, bytes, Vec::new())
        } else {
            let (json, added) = extend(path, &bytes, &lacking)?;
            (File::of_bytes(path, &json)?, json, added)
        };
        if let Some((token, id)) = added.iter().find(|(t, id)| file.special(t) != Some(*id)) {
            let reason = format!("it does not accept {token} as its token {id}");
            return Err(tokenizer_error(path, reason));
        }
        let file = Arc::new(file);
        let tokenizer = Tokenizer(Kind::File(Arc::clone(&file)));
        Ok(Self { file, tokenizer, json, added })
    }

    /// Returns the same tokenizer for counting and truncating.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Encodes parts one after another, and returns the positions of the special tokens. Tokens that the model's
    /// post-processing adds around a text are not included.
    ///
    /// # Errors
    /// The tokenizer rejects a text.
    pub fn encode(&self, parts: &[TextPart<'_>]) -> Result<EncodedText> {
        self.file.ids(parts)
    }

    /// Returns the ids that the model's post-processing adds before a text, such as a beginning-of-text token.
    pub fn before(&self) -> &[u32] {
        &self.file.before
    }

    /// Decodes ids, spelling special tokens out. Tokenizers that normalize texts do not restore all of them.
    ///
    /// # Errors
    /// The tokenizer cannot decode them.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        self.file.decode(ids)
    }
}
