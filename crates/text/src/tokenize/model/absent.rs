//! Replacement for tokenizers from files in a build that cannot read them.

use std::convert::Infallible;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::parts::{EncodedText, Result, TextPart, tokenizer_error};

/// Tokenizer read from a file. This build lacks the feature `tokenizers`, so no value of this type exists.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) digest: String,
    pub(super) around: usize,
    pub(super) before: Vec<u32>,
    none: Infallible,
}

impl File {
    pub(super) fn open(path: &Path) -> Result<Self> {
        Self::of_bytes(path, &[])
    }

    pub(super) fn of_bytes(path: &Path, _bytes: &[u8]) -> Result<Self> {
        let reason = "this build cannot read tokenizer.json: it lacks the feature `tokenizers`";
        Err(tokenizer_error(path, reason.into()))
    }

    pub(super) fn ids(&self, _parts: &[TextPart<'_>]) -> Result<EncodedText> {
        match self.none {}
    }

    pub(super) fn decode(&self, _ids: &[u32]) -> Result<String> {
        match self.none {}
    }

    pub(super) fn special(&self, _text: &str) -> Option<u32> {
        match self.none {}
    }

    pub(super) fn count(&self, _text: &str) -> usize {
        match self.none {}
    }

    pub(super) fn count_whole(&self, _parts: &[(TextPart<'_>, Option<usize>)]) -> Option<usize> {
        match self.none {}
    }

    pub(super) fn spans(&self, _text: &str) -> Vec<Range<usize>> {
        match self.none {}
    }
}

/// Tokens and their ids.
pub(super) type TokenIds = Vec<(String, u32)>;

/// Fails, since this build has no tokenizer to extend.
pub(super) fn extend(path: &Path, bytes: &[u8], _tokens: &[&str]) -> Result<(Vec<u8>, TokenIds)> {
    File::of_bytes(path, bytes).map(|file| match file.none {})
}
